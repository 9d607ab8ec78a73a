//! Opening for reading only, which takes no lock: beside a process that writes, flushes and deletes logs meanwhile.
//!
//! The MANIFEST is read first and the logs after it. A log that is flushed and deleted in between would be a hole in the
//! history (D2), so what was recovered counts only if nothing moved until the end.

use std::path::Path;
use std::time::Duration;

use base::{Error, ErrorKind, FileNumber, Result};
use vfs::Vfs;

use crate::version::current::read_current;
use crate::version::file_name;
use crate::version::manifest::manifest_path;

/// How often the recovery is tried. A writer that flushes faster than its logs are replayed is left alone after that.
const TRIES_MAX: usize = 5;

/// Between two tries: long enough for a record that was being copied.
const PAUSE: Duration = Duration::from_millis(10);

/// What a writer changes before it deletes anything that a reader needs.
#[derive(PartialEq, Eq)]
struct Mark {
    manifest: FileNumber,
    manifest_bytes: u64,
    /// Names, sorted.
    logs: Vec<String>,
}

impl Mark {
    fn read(vfs: &dyn Vfs, dir: &Path, log_dir: &Path) -> Result<Mark> {
        let manifest = read_current(vfs, dir)?;
        let manifest_bytes = vfs.metadata(&manifest_path(dir, manifest))?.len;
        let mut logs = vfs.read_dir(log_dir)?;
        logs.retain(|name| file_name::parse(name).is_some_and(|(kind, _)| kind.is_log()));
        Ok(Mark { manifest, manifest_bytes, logs })
    }
}

/// Calls `attempt`, which recovers a database without writing, until nothing moved meanwhile. Damage is believed only
/// when it stays: a record that a writer is copying looks like it.
///
/// # Errors
/// `Busy`: a writer changed the database during every try. Otherwise what the last attempt yielded.
pub(super) fn open_steadily<T>(
    vfs: &dyn Vfs,
    dir: &Path,
    log_dir: &Path,
    mut attempt: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut last = None;
    for round in 0..TRIES_MAX {
        if round > 0 {
            vfs.sleep(PAUSE);
        }
        // Where there is no mark, there is no database: that is for the attempt to report.
        let before = Mark::read(vfs, dir, log_dir).ok();
        let result = attempt();
        let is_steady = before == Mark::read(vfs, dir, log_dir).ok();
        match result {
            Ok(opened) if is_steady => return Ok(opened),
            Ok(_) => last = None,
            Err(error) if error.kind() == ErrorKind::Corruption || !is_steady => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    let what = format!("another process changed the database during each of {TRIES_MAX} tries to read it; try again");
    Err(last.unwrap_or_else(|| Error::busy(what).at_path(dir)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vfs::MemoryVfs;

    use super::*;
    use crate::db::{Db, OpenOptions};
    use crate::read::options::ReadOptions;
    use crate::write::options::WriteOptions;

    fn database() -> (Arc<MemoryVfs>, Db) {
        let vfs = MemoryVfs::new(11);
        let db = Db::open("/db", &OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }).unwrap();
        (vfs, db)
    }

    /// One more write, which a reader has to find in a table.
    fn write_and_flush(db: &Db, n: u32) {
        db.put(&db.default_family(), &n.to_be_bytes(), b"v", &WriteOptions::default()).unwrap();
        db.flush(&[&db.default_family()]).unwrap();
    }

    #[test]
    fn what_a_writer_moved_during_a_try_is_not_missed() {
        let (vfs, db) = database();
        let dir = Path::new("/db");
        let mut tries = 0;
        let found = open_steadily(&*vfs, dir, dir, || {
            let recovered = crate::version::recover::recover(&*vfs, dir)?;
            tries += 1;
            if tries < 3 {
                write_and_flush(&db, tries);
            }
            Ok(recovered.families[0].tables.len())
        });
        assert_eq!((found.unwrap(), tries), (2, 3));
    }

    #[test]
    fn a_writer_that_never_rests_is_reported() {
        let (vfs, db) = database();
        let mut tries = 0;
        let error = open_steadily(&*vfs, Path::new("/db"), Path::new("/db"), || {
            tries += 1;
            write_and_flush(&db, tries);
            Ok(())
        });
        assert_eq!((error.unwrap_err().kind(), tries), (ErrorKind::Busy, TRIES_MAX as u32));
    }

    #[test]
    fn damage_is_reported_when_it_stays() {
        let (vfs, _db) = database();
        let mut tries = 0;
        let mut attempt = |heals_at: usize| {
            tries = 0;
            let result = open_steadily(&*vfs, Path::new("/db"), Path::new("/db"), || {
                tries += 1;
                if tries < heals_at { Err(Error::corruption("half a record")) } else { Ok(()) }
            });
            (result.map_err(|e| e.kind()), tries)
        };
        assert_eq!(attempt(2), (Ok(()), 2));
        assert_eq!(attempt(usize::MAX), (Err(ErrorKind::Corruption), TRIES_MAX));
    }

    #[test]
    fn a_reader_sees_everything_of_a_writer_that_flushes_beside_it() {
        let (vfs, db) = database();
        (0..20).for_each(|n| write_and_flush(&db, n));
        let options = OpenOptions { read_only: true, vfs, ..OpenOptions::default() };
        let reader = Db::open("/db", &options).unwrap();
        for n in 0..20u32 {
            let value = reader.get(&reader.default_family(), &n.to_be_bytes(), &ReadOptions::default()).unwrap();
            assert_eq!(value.as_deref(), Some(&b"v"[..]));
        }
    }
}
