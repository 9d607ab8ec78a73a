//! The start of an open: recovers from the MANIFEST, or begins a new database.

use std::path::Path;

use base::{Error, FileNumber, Result, SeqNo};
use vfs::Vfs;

use super::{best_efforts, identity};
use crate::core::context::log_dir;
use crate::core::doubt::Doubt;
use crate::database::handle::{DEFAULT_FAMILY, OpenOptions};
use crate::maintenance::repair::lost::LOST_DIR;
use crate::open::replay::own_logs;
use crate::version::file_name::{self, FileType};
use crate::version::recover::{self, Recovered};
use crate::version::replay::RecoveredFamily;
use crate::wal::archive::ARCHIVE_DIR;

/// Recovers the database in the directory, or begins a new one. The next file number is above the number of every file
/// in the directory, the log directory, `archive/` and `lost/`, and above every log of the MANIFEST. Adds to `doubts` what
/// `best_efforts_recovery` could not bring back for certain.
///
/// # Errors
/// `InvalidArgument`: a database exists but must not, or must exist but does not; or the log directory is another
/// database's. `Corruption`: as [`recover`](recover::recover), or CURRENT is missing but tables or WAL records exist.
pub(super) fn recover_or_begin(dir: &Path, options: &OpenOptions, doubts: &mut Vec<Doubt>) -> Result<Recovered> {
    let vfs = &*options.vfs;
    let logs = log_dir(dir, &options.db);
    let found = match options.db.best_efforts_recovery && !options.read_only {
        true => best_efforts::recover_best(dir, &logs, options, doubts),
        false => recover::recover(vfs, dir),
    };
    let mut recovered = match found {
        Ok(_) if options.db.error_if_exists => {
            return Err(Error::invalid_argument("there is a database already (error_if_exists is set)").at_path(dir));
        }
        Ok(recovered) => recovered,
        Err(e) if e.is_not_found() => {
            check_nothing_is_left(vfs, dir, &logs)?;
            if !options.db.create_if_missing || options.read_only {
                let what = "there is no database here; set create_if_missing to make one";
                return Err(Error::invalid_argument(what).at_path(dir).with_source(e));
            }
            let mut new = empty_database();
            new.pass_numbers_in(vfs, dir)?; // a crashed first open may have left files
            new
        }
        Err(e) => return Err(e),
    };
    if logs != dir {
        recovered.pass_numbers_in(vfs, &logs)?;
    }
    // Files that went there may come back.
    for aside in [logs.join(ARCHIVE_DIR), dir.join(LOST_DIR)] {
        match recovered.pass_numbers_in(vfs, &aside) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(recovered)
}

/// Makes sure that a directory without CURRENT never was a database. A crash in a first open leaves no tables and no
/// WAL records: both are made only after CURRENT is durable.
fn check_nothing_is_left(vfs: &dyn Vfs, dir: &Path, logs: &Path) -> Result<()> {
    for place in [dir, logs] {
        let names = match vfs.read_dir(place) {
            Err(e) if e.is_not_found() => continue,
            names => names?,
        };
        for name in names {
            let Some((kind, number)) = file_name::parse(&name) else { continue };
            let path = place.join(&name);
            let is_left = match kind {
                FileType::Table => place == dir,
                _ => kind.is_log() && has_records(vfs, &path, kind, number)?,
            };
            let owner = log::database_of(vfs, &path, number).unwrap_or_default();
            if is_left && place != dir && owner.is_known() && owner != identity::log_owner(vfs, dir, None) {
                let what = format!("this log is of the database {owner}; choose another directory for logs (wal_dir)");
                return Err(Error::invalid_argument(what).at_path(path));
            }
            if is_left {
                let what = format!(
                    "CURRENT is missing, but {name} shows that there was a database; repair it (spillway repair), or delete \
                     what is left of it (tables and logs) to begin anew"
                );
                return Err(Error::corruption(what).at_path(path));
            }
        }
    }
    Ok(())
}

/// Whether a log may hold records. An unreadable log of ours counts as having some.
fn has_records(vfs: &dyn Vfs, path: &Path, kind: FileType, number: FileNumber) -> Result<bool> {
    if kind == FileType::RocksLog {
        return Ok(vfs.metadata(path)?.len > 0);
    }
    Ok(own_logs::has_records(vfs, path, number))
}

/// The recovered state of an empty database.
fn empty_database() -> Recovered {
    let default = RecoveredFamily {
        name: DEFAULT_FAMILY.to_owned(),
        flushed_through: Some(SeqNo::ZERO),
        ..RecoveredFamily::default()
    };
    Recovered { families: vec![default], next_file: FileNumber(2), fenced: true, ..Recovered::default() }
}
