//! Storage of a directory, with each file compressed: WALs and images are mostly zeros.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs::MemoryVfs;

const LEVEL: i32 = 19;

/// The folders of a stored world: of the database, and of logs that lie elsewhere.
const ROOTS: [&str; 2] = ["db", "wal"];

pub fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// Unpacks into memory.
pub fn load(folder: &Path) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    for root in ROOTS.iter().filter(|root| folder.join(root).exists()) {
        for entry in std::fs::read_dir(folder.join(root)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().strip_suffix(".zst").unwrap().to_owned();
            let bytes = zstd::decode_all(&*std::fs::read(&path).unwrap()).unwrap();
            vfs.write_file(&Path::new("/").join(root).join(name), &bytes).unwrap();
        }
    }
    vfs
}

/// Packs an in-memory file system and stores the contents beside it.
///
/// # Panics
/// The folder exists already: a later version must not overwrite the directory of an earlier one.
pub fn save(folder: &Path, vfs: &MemoryVfs, contents: &str) {
    for path in vfs.all_files() {
        let inside = path.strip_prefix("/").unwrap();
        if ROOTS.iter().any(|root| inside.starts_with(root)) && !inside.ends_with("LOCK") {
            pack(&folder.join(format!("{}.zst", inside.display())), &vfs.read_file(&path).unwrap());
        }
    }
    pack(&folder.join("contents.zst"), contents.as_bytes());
}

fn pack(path: &Path, bytes: &[u8]) {
    assert!(!path.exists(), "{} is there already", path.display());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, zstd::encode_all(bytes, LEVEL).unwrap()).unwrap();
}

/// Contents stored by [`save`].
pub fn contents(folder: &Path) -> String {
    let bytes = std::fs::read(folder.join("contents.zst")).unwrap();
    String::from_utf8(zstd::decode_all(&*bytes).unwrap()).unwrap()
}
