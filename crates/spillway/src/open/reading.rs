//! Opening for reading only. Takes no lock: another process may write, flush and delete logs meanwhile.
//!
//! Order: the MANIFEST is read, then the logs, then the tables are opened. A file deleted in between makes recovery
//! fail (D2: the MANIFEST lists the logs). Recovery is then retried; an error counts only if nothing changed during the
//! attempt. If the MANIFEST does not list the logs, success counts only if nothing changed either.

use std::path::Path;
use std::time::Duration;

use base::{Error, ErrorKind, FileNumber, Result};
use vfs::Vfs;

use crate::core::context::check_log_dir;
use crate::version::current::read_current;
use crate::version::file_name;
use crate::version::manifest::manifest_path;

/// Attempts at recovery, at most. If all fail, the writer deletes files faster than they are read.
const TRIES_MAX: usize = 20;

/// Pause between attempts: long enough for a writer to finish copying a record.
const PAUSE: Duration = Duration::from_millis(10);

const BUSY: &str = "another process changed the database during every try to read it; try again";

/// The state a writer changes before it deletes any file needed by a reader.
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
        check_log_dir(vfs, log_dir)?;
        let mut logs = vfs.read_dir(log_dir)?;
        logs.retain(|name| file_name::parse(name).is_some_and(|(kind, _)| kind.is_log()));
        Ok(Mark { manifest, manifest_bytes, logs })
    }
}

/// The result of one attempt.
pub(super) struct Attempt<T> {
    pub opened: T,
    /// The MANIFEST lists the logs, so a log deleted meanwhile would have been an error.
    pub notices_missing_logs: bool,
}

/// Calls `attempt`, a recovery without writes, until its result counts. Damage counts only if it persists: a record
/// still being copied by a writer looks damaged.
///
/// # Errors
/// `Busy`: a writer changed the database during every attempt. Otherwise the error of the last attempt.
pub(super) fn open_steadily<T>(
    vfs: &dyn Vfs,
    dir: &Path,
    log_dir: &Path,
    mut attempt: impl FnMut() -> Result<Attempt<T>>,
) -> Result<T> {
    let mut last: Option<Error> = None;
    for round in 0..TRIES_MAX {
        if round > 0 {
            vfs.sleep(PAUSE);
        }
        // Without a mark there is no database: the attempt reports it.
        let before = Mark::read(vfs, dir, log_dir).ok();
        let result = attempt();
        let is_steady = before == Mark::read(vfs, dir, log_dir).ok();
        match result {
            Ok(found) if found.notices_missing_logs || is_steady => return Ok(found.opened),
            Ok(_) => last = None,
            Err(error) if !is_steady => last = Some(Error::busy(BUSY).at_path(dir).with_source(error)),
            Err(error) if error.kind() == ErrorKind::Corruption => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| Error::busy(BUSY).at_path(dir)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::options::FamilyOptions;
    use vfs::MemoryVfs;

    use super::*;
    use crate::batch::options::WriteOptions;
    use crate::core::open_options::OpenOptions;
    use crate::cursor::options::ReadOptions;
    use crate::database::handle::Database;

    fn database() -> (Arc<MemoryVfs>, Database) {
        let vfs = MemoryVfs::new(11);
        let db = Database::open("/db", &OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }).unwrap();
        (vfs, db)
    }

    /// One more write, which a reader has to find in a table.
    fn write_and_flush(db: &Database, n: u32) {
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
            Ok(Attempt { opened: recovered.families[0].tables.len(), notices_missing_logs: false })
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
            Ok(Attempt { opened: (), notices_missing_logs: false })
        });
        assert_eq!((error.unwrap_err().kind(), tries), (ErrorKind::Busy, TRIES_MAX as u32));
    }

    #[test]
    fn what_fails_while_a_writer_moves_is_no_damage() {
        let (vfs, db) = database();
        let mut tries = 0;
        let error = open_steadily(&*vfs, Path::new("/db"), Path::new("/db"), || -> Result<Attempt<()>> {
            tries += 1;
            write_and_flush(&db, tries);
            Err(Error::corruption("a log is missing"))
        });
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Busy);
    }

    #[test]
    fn damage_is_reported_when_it_stays() {
        let (vfs, _db) = database();
        let mut tries = 0;
        let mut attempt = |heals_at: usize| {
            tries = 0;
            let result = open_steadily(&*vfs, Path::new("/db"), Path::new("/db"), || {
                tries += 1;
                if tries < heals_at {
                    return Err(Error::corruption("half a record"));
                }
                Ok(Attempt { opened: (), notices_missing_logs: true })
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
        let reader = Database::open("/db", &options).unwrap();
        for n in 0..20u32 {
            let value = reader.get(&reader.default_family(), &n.to_be_bytes(), &ReadOptions::default()).unwrap();
            assert_eq!(value.as_deref(), Some(&b"v"[..]));
        }
    }

    /// Also where background work runs on the threads of callers.
    #[test]
    fn a_reader_leaves_all_work_to_the_writer() {
        let (vfs, db) = database();
        (0..8).for_each(|n| write_and_flush(&db, n));
        drop(db);
        let before = vfs.read_dir(Path::new("/db")).unwrap();
        let due = FamilyOptions { level0_file_num_compaction_trigger: 1, ..FamilyOptions::default() };
        let options = OpenOptions { read_only: true, vfs: vfs.clone(), ..OpenOptions::default() };
        let reader = Database::open("/db", &options.family("default", due)).unwrap();
        assert_eq!(vfs.read_dir(Path::new("/db")).unwrap(), before, "no table was compacted");
        drop(reader);
        assert_eq!(vfs.read_dir(Path::new("/db")).unwrap(), before);
    }
}
