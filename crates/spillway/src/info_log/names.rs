//! Directory and names of a database's event logs.

use std::path::{Path, PathBuf};

use vfs::Vfs;

/// The event log in the database's directory.
const NAME: &str = "LOG";

/// Suffix of a renamed log, before the time.
const OLD: &str = ".old.";

/// Limit in bytes of RocksDB's flattened path.
const PREFIX_BYTES_MAX: usize = 255;

/// The names of one database's event logs.
pub(crate) struct Names {
    pub dir: PathBuf,
    current: String,
}

impl Names {
    /// `log_dir` is the option `db_log_dir`. Several databases share it, so their paths are part of the names.
    pub fn new(vfs: &dyn Vfs, dir: &Path, log_dir: &str) -> Names {
        if log_dir.is_empty() {
            return Names { dir: dir.to_owned(), current: NAME.to_owned() };
        }
        let whole = vfs.canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        Names { dir: base::name::path(log_dir), current: format!("{}_{NAME}", flattened(&whole)) }
    }

    pub fn current(&self) -> PathBuf {
        self.dir.join(&self.current)
    }

    /// The name of the log once renamed at `time_us`.
    pub fn old(&self, time_us: u64) -> PathBuf {
        self.dir.join(format!("{}{OLD}{time_us}", self.current))
    }

    /// When the log named `name` was renamed; `None` if it is not this database's.
    pub fn put_aside_at(&self, name: &str) -> Option<u64> {
        let time = name.strip_prefix(self.current.as_str())?.strip_prefix(OLD)?;
        time.parse().ok()
    }

    pub fn is_one(&self, name: &str) -> bool {
        name == self.current || self.put_aside_at(name).is_some()
    }
}

/// A path with an underscore for every character but letters, digits, `-`, `.` and `_`, as in RocksDB.
fn flattened(path: &Path) -> String {
    let path = path.to_string_lossy();
    let kept = |c: char| c.is_ascii_alphanumeric() || ['-', '.', '_'].contains(&c);
    let flat: String = path.trim_start_matches('/').chars().map(|c| if kept(c) { c } else { '_' }).collect();
    flat.chars().take(PREFIX_BYTES_MAX - NAME.len() - 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_rocksdbs() {
        let vfs = vfs::MemoryVfs::new(1);
        let here = Names::new(&*vfs, Path::new("/db"), "");
        assert_eq!((here.current(), here.old(7)), ("/db/LOG".into(), "/db/LOG.old.7".into()));
        let there = Names::new(&*vfs, Path::new("/var/my db"), "/logs");
        assert_eq!(there.current(), Path::new("/logs/var_my_db_LOG"));
        assert_eq!(there.put_aside_at("var_my_db_LOG.old.12"), Some(12));
        for other in ["LOG", "var_my_db_LOG.old.", "var_my_db_LOG2", "xvar_my_db_LOG", "var_my_db_LOG.old.x"] {
            assert!(!there.is_one(other), "{other}");
        }
    }
}
