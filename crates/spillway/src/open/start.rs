//! The start of an open: recovers from the MANIFEST, or begins a new database.

use std::path::Path;

use base::{Error, FileNumber, Result, SeqNo};
use vfs::Vfs;

use super::{best_efforts, identity};
use crate::core::context::{check_log_dir, log_dir};
use crate::core::doubt::Doubt;
use crate::core::lost::{LOST_DIR, Lost};
use crate::core::open_options::{DEFAULT_FAMILY, OpenOptions};
use crate::log_files::archive::ARCHIVE_DIR;
use crate::open::options_file;
use crate::open::replay::own_logs;
use crate::version::backup_dirs;
use crate::version::file_name::{self, FileType};
use crate::version::incomplete;
use crate::version::recover::{self, Pair, Recovered};
use crate::version::replay::RecoveredFamily;

/// # Errors
/// `Corruption`: the options were stored before the last ones, which are lost.
fn check_stored_options(dir: &Path, options: &OpenOptions, recovered: &Recovered) -> Result<()> {
    let Some(newest) = options.stored_in.filter(|_| !options.read_only) else { return Ok(()) };
    match options_file::lost_last(&*options.vfs, dir, recovered, Some(newest).filter(|newest| newest.0 > 0)) {
        Some(error) => Err(error.advise(
            "restore the file from a copy, or give all options: by Options::ignore_stored_options, by `--options FILE`, or take \
             the defaults by `--options defaults`",
        )),
        None => Ok(()),
    }
}

/// The error for a directory without a database that an open may not make.
pub(super) fn no_database(dir: &Path) -> Error {
    let what = format!("{}: does not exist (create_if_missing is false)", dir.join("CURRENT").display());
    Error::invalid_argument(what).advise("there is no database here; set create_if_missing to make one")
}

/// Recovers the database in the directory, or begins a new one. The next file number is above the number of every file
/// in the directory, the log directory, `archive/` and `lost/`, and above every log of the MANIFEST. Adds to `doubts` what
/// `best_efforts_recovery` could not bring back for certain.
///
/// # Errors
/// `InvalidArgument`: a database exists but must not, or must exist but does not; or the log directory is another
/// database's, or missing. `Io`: there is no database to read. `Corruption`: as [`recover`](recover::recover), or CURRENT is missing but tables or WAL records exist.
pub(super) fn recover_or_begin(dir: &Path, options: &OpenOptions, doubts: &mut Vec<Doubt>) -> Result<Recovered> {
    let vfs = &*options.vfs;
    let logs = log_dir(dir, &options.db);
    let found = match options.db.best_efforts_recovery && !options.read_only {
        true => best_efforts::recover_best(dir, &logs, options, doubts),
        false => recover::recover(vfs, dir),
    };
    let mut recovered = match found {
        Ok(_) if options.db.error_if_exists && !options.read_only => {
            return Err(Error::invalid_argument(format!("{}: exists (error_if_exists is true)", dir.display())));
        }
        Ok(recovered) => {
            check_log_dir(vfs, &logs)?;
            check_stored_options(dir, options, &recovered)?;
            doubts.extend(Lost::new(vfs, dir).unfinished(Some(recovered.manifest))?);
            recovered
        }
        Err(e) if e.is_not_found() => {
            check_nothing_is_left(vfs, dir, &logs)?;
            check_no_manifest(dir, options)?;
            if options.read_only {
                return Err(e.advise("there is no database here"));
            }
            if !options.db.create_if_missing {
                return Err(no_database(dir).with_source(e));
            }
            Lost::new(vfs, dir).retire_reports()?; // they are about a database that was deleted
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

/// Refuses a directory that is no database, before it gets a LOCK. A directory with LOCK, CURRENT or a MANIFEST is left to
/// [`recover_or_begin`].
///
/// # Errors
/// `InvalidArgument`: a copy in the making, or no database. `Corruption`: tables or logs lie there.
pub(super) fn check_unlocked(dir: &Path, options: &OpenOptions) -> Result<()> {
    let vfs = &*options.vfs;
    incomplete::check(vfs, dir)?;
    let was_opened = |kind| matches!(kind, FileType::Lock | FileType::Current | FileType::Manifest);
    if vfs.read_dir(dir)?.iter().filter_map(|name| file_name::parse(name)).any(|(kind, _)| was_opened(kind)) {
        return Ok(());
    }
    check_nothing_is_left(vfs, dir, &log_dir(dir, &options.db))?;
    match options.db.create_if_missing {
        true => Ok(()),
        false => Err(no_database(dir)),
    }
}

/// Refuses a directory without anything to repair, before it gets a LOCK.
///
/// # Errors
/// `InvalidArgument`: a copy in the making, or no database.
pub(crate) fn check_repairable(vfs: &dyn Vfs, dir: &Path, logs: &Path) -> Result<()> {
    incomplete::check(vfs, dir)?;
    for place in [dir, logs] {
        let names = match vfs.read_dir(place) {
            Err(e) if e.is_not_found() => continue,
            names => names?,
        };
        let mut kinds = names.iter().filter_map(|name| file_name::parse(name)).map(|(kind, _)| kind);
        if kinds
            .any(|kind| kind.is_log() || matches!(kind, FileType::Table | FileType::Manifest | FileType::ManifestCopy))
        {
            return Ok(());
        }
    }
    Err(Error::invalid_argument("there is no database to repair: no MANIFEST, table or log").at_path(dir))
}

/// Refuses to begin anew over a MANIFEST of ours that was in use, or has a family that this open does not make. A kill in a
/// first open leaves one with the families that its repetition makes.
///
/// # Errors
/// `Corruption`: there is such a MANIFEST.
fn check_no_manifest(dir: &Path, options: &OpenOptions) -> Result<()> {
    let vfs = &*options.vfs;
    if !vfs.exists(dir)? {
        return Ok(());
    }
    let mut numbers = file_name::numbers_in(vfs, dir, FileType::Manifest)?;
    numbers.extend(file_name::numbers_in(vfs, dir, FileType::ManifestCopy)?);
    for number in numbers {
        let Some(file) = Pair::read(vfs, dir, number)?.proven.filter(|file| file.replay.is_fenced()) else { continue };
        let Ok(found) = file.replay.finish(number) else { continue };
        let makes = |name: &str| options.families.iter().any(|(made, _)| made == name);
        if found.is_in_use()
            || !found.families.iter().all(|family| family.name == DEFAULT_FAMILY || makes(&family.name))
        {
            return Err(was_one(vfs, dir, &file.path)?);
        }
    }
    Ok(())
}

/// The error for a file that shows that there was a database.
fn was_one(vfs: &dyn Vfs, dir: &Path, path: &Path) -> Result<Error> {
    backup_dirs::check_is_outside(vfs, dir)?; // no repair helps there
    let name = path.file_name().unwrap_or_default().display();
    let what = format!(
        "CURRENT is missing, but {name} shows that there was a database; repair it (spillway repair), or delete what is left of \
         it (MANIFESTs, tables and logs) to begin anew"
    );
    Ok(Error::corruption(what).at_path(path))
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
            let owner = wal::database_of(vfs, &path, number).unwrap_or_default();
            if is_left && place != dir && owner.is_known() && owner != identity::log_owner(vfs, dir, None) {
                let what = format!(
                    "this log is of the database {owner}; choose another directory for logs (wal_dir), or, if that database is gone, \
                     delete its logs"
                );
                return Err(Error::invalid_argument(what).at_path(path));
            }
            if is_left {
                return Err(was_one(vfs, dir, &path)?);
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
