//! Versions of the crates compared, which do not tell them.

pub const HEED: &str = "0.23.1";
pub const REDB: &str = "4.6.0";
pub const FJALL: &str = "3.1.13";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use vfs::IoClass;

    #[test]
    fn versions_are_those_of_the_lock_file() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
        let lock = vfs::read_all(vfs::RealVfs::new().as_ref(), &path, 1 << 20, IoClass::Other).unwrap();
        let lock = String::from_utf8(lock).unwrap();
        for (name, version) in [("heed", super::HEED), ("redb", super::REDB), ("fjall", super::FJALL)] {
            assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"")), "{name} {version}");
        }
    }
}
