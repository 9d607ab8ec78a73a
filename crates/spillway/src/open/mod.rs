//! Opening a database: the MANIFEST, the families, WAL replay, a new MANIFEST, removal of orphans. Keeps D2, V3.

use std::path::Path;
use std::sync::Arc;

use base::note;
use base::options::{FileMode, InfoLogLevel, kept};
use base::{Error, ErrorKind, FileNumber, Result};
use vfs::{FileKind, LockGuard, Vfs};

use crate::background::Env;
use crate::background::staging::create_durable_dir;
use crate::core::context::log_dir;
use crate::core::open_options::{OpenOptions, lock_path};
use crate::core::reserve::give_up_in;
use crate::core::settled::{remark, tell};
use crate::info_log::InfoLog;
use crate::version::backup_dirs;
use crate::version::file_name::{self, FileType};
use crate::version::recover::{self, Recovered};
use crate::version::session::{self, Session};

mod adoption;
mod beside;
mod best_efforts;
mod destroy;
pub(crate) mod dump;
pub(crate) mod families;
pub(crate) mod follow;
pub(crate) mod identity;
pub(crate) mod log_survey;
mod opening;
pub(crate) mod options_file;
mod orphans;
mod reading;
pub(crate) mod replay;
pub(crate) mod restart;
mod start;
mod value_logs;

use crate::engine::Engine;
use opening::Opening;
use reading::Attempt;

pub(crate) use beside::checkpoint_beside;
pub(crate) use destroy::{destroy, has_logs_in, remove_files, remove_load_dir};
pub(crate) use identity::{directory_owner, is_ours, log_owner, owners_beside};
pub(crate) use start::check_repairable;

/// The result of [`open`], for the database's handle.
pub(crate) struct Opened {
    pub engine: Arc<Engine>,
    pub lock: Option<Box<dyn LockGuard>>,
}

impl OpenOptions {
    /// Notes in the event log the warnings of the text these options were read from. Leaves out kept options: the open
    /// notes them itself.
    pub fn remark_on(&mut self, warnings: &[String]) {
        let told = remarks_on_kept(self);
        let is_told = |warning: &String| told.iter().any(|told| warning.ends_with(told.as_str()));
        self.remarks.extend(warnings.iter().filter(|warning| !is_told(warning)).cloned());
    }
}

pub(crate) fn open(dir: &Path, options: &OpenOptions) -> Result<Opened> {
    let with_mode = match options.db.file_mode {
        FileMode::DEFAULT => None,
        mode => options.vfs.with_file_mode(mode.bits()).map(|vfs| OpenOptions { vfs, ..options.clone() }),
    };
    let options = with_mode.as_ref().unwrap_or(options);
    let remarks = validate(options)?;
    let logs = log_dir(dir, &options.db);
    let own = match &options.secondary {
        Some(own) => vec![&**own],
        None if options.read_only => vec![],
        None => vec![dir, &logs],
    };
    own.iter().try_for_each(|own| backup_dirs::check_is_outside(&*options.vfs, own))?;
    let lock = if options.read_only { None } else { Some(take_directory(dir, options)?) };
    if lock.is_some() && !options.vfs.runs_inline() {
        Env::check_process()?;
    }
    // After the lock: the event log of another owner must not be rotated.
    let info_log = match &options.secondary {
        Some(own_dir) => InfoLog::new(&options.vfs, own_dir, &options.db, false),
        None => InfoLog::new(&options.vfs, dir, &options.db, options.read_only),
    };
    let scope = note::within(Some(info_log.clone()));
    info_log.log_program(dir, &options.db);
    remarks.iter().chain(&options.remarks).for_each(|text| remark(text));
    let opened = match lock {
        Some(_) => open_with_reserve(dir, options, &info_log),
        None => open_for_reading(dir, options, &info_log),
    };
    let opened = opened.map_err(|error| name_way_out(error, dir, options));
    match &opened {
        Ok(engine) => {
            tell_doubts(engine);
            dump::log_opened(engine);
        }
        Err(error) => tell(InfoLogLevel::Error, &format!("the database cannot be opened: {error}")),
    }
    drop(scope);
    if opened.is_err()
        && !options.vfs.exists(&dir.join(file_name::format(FileType::Current, FileNumber(0)))).unwrap_or(true)
    {
        info_log.leave_no_file(); // without a database, leave no event log either
    }
    info_log.write_out();
    let engine = opened?;
    if let Some(lock) = &lock {
        lock.end_in_children(engine.core.closing_flag());
    }
    Ok(Opened { engine, lock })
}

/// Adds advice if a table, a MANIFEST or a log is lost or damaged, and the error has none.
fn name_way_out(error: Error, dir: &Path, options: &OpenOptions) -> Error {
    let name = error.path().and_then(Path::file_name).and_then(|name| name.to_str());
    let Some((kind, _)) = name.and_then(file_name::parse).filter(|_| error.kind() == ErrorKind::Corruption) else {
        return error;
    };
    if let Some(backups) = backup_dirs::around(&*options.vfs, dir) {
        return error.advise(backup_dirs::way_out(&backups));
    }
    let has = |advice| error.message().contains(advice);
    match kind {
        FileType::Log | FileType::LargeBatch if options.secondary.is_some() => error.advise(
            "a secondary leaves nothing out, whatever wal_recovery_mode says: open the database for reading only to go on without \
             what cannot be read",
        ),
        FileType::Table | FileType::Manifest | FileType::Current if !has("spillway repair") => error.advise(
            "restore the file from a copy, or keep what can be read with `spillway repair` (rocksdb_repair_db)",
        ),
        FileType::Log | FileType::LargeBatch if !has("wal_recovery_mode=") => error.advise(
            "restore the file from a copy, or open with wal_recovery_mode=kSkipAnyCorruptedRecords, which goes on without what \
             cannot be read",
        ),
        _ => error,
    }
}

fn open_for_reading(dir: &Path, options: &OpenOptions, info_log: &Arc<InfoLog>) -> Result<Arc<Engine>> {
    let logs = log_dir(dir, &options.db);
    reading::open_steadily(&*options.vfs, dir, &logs, || {
        let opening = prepare(dir, options, info_log)?;
        let notices_missing_logs = opening.recovered.wal_range.is_some();
        Ok(Attempt { opened: opening.run()?, notices_missing_logs })
    })
}

/// Opens for writing. On a full disk, gives the reserve up: an open writes a MANIFEST, and may flush.
fn open_with_reserve(dir: &Path, options: &OpenOptions, info_log: &Arc<InfoLog>) -> Result<Arc<Engine>> {
    match open_for_writing(dir, options, info_log) {
        Err(error) if error.kind() == ErrorKind::NoSpace && give_up_in(&*options.vfs, dir) => {
            note::warn!(%error, "the disk is full: the reserve is given up to open the database");
            open_for_writing(dir, options, info_log)
        }
        opened => opened,
    }
}

/// Recovers with images first. If an image flushed by replay turns out to be damaged, recovers again without its family's images:
/// nothing written until then counts, and the WAL has all but unlogged writes (F2).
fn open_for_writing(dir: &Path, options: &OpenOptions, info_log: &Arc<InfoLog>) -> Result<Arc<Engine>> {
    let mut opening = prepare(dir, options, info_log)?;
    let adopts = !opening.recovered.fenced;
    let core = match opening.recover() {
        Err(error) if error.kind() == ErrorKind::Corruption && opening.has_images() => {
            note::warn!(%error, "memtables that were found are not relied on; all of the log is replayed");
            let damaged = restart::find_damaged(&opening.families, &opening.restored, &error);
            drop(opening);
            Opening { damaged, ..prepare(dir, options, info_log)? }.run()
        }
        replayed => {
            let replayed = replayed?;
            if adopts {
                opening.check_tables_are_supported()?;
            }
            opening.begin(replayed)
        }
    }?;
    if adopts {
        note::warn!(path = %dir.display(), "a RocksDB database was taken over: RocksDB refuses it from now on");
    }
    Ok(core)
}

/// Opens `recovered` for writing, whatever CURRENT says, without the images. The caller holds the directory's lock.
pub(crate) fn open_as(dir: &Path, options: &OpenOptions, mut recovered: Recovered) -> Result<Arc<Engine>> {
    recovered.pass_named_logs();
    let info_log = InfoLog::new(&options.vfs, dir, &options.db, options.read_only);
    let _scope = note::within(Some(info_log.clone()));
    info_log.log_program(dir, &options.db);
    let opening = Opening { is_repairs: true, ..Opening::new(dir, options, recovered, &info_log)? };
    let opened = opening.run();
    opened.iter().for_each(tell_doubts);
    info_log.write_out();
    opened
}

fn prepare<'a>(dir: &Path, options: &'a OpenOptions, info_log: &Arc<InfoLog>) -> Result<Opening<'a>> {
    let mut doubts = Vec::new();
    let mut recovered = start::recover_or_begin(dir, options, &mut doubts)?;
    for warning in &recovered.warnings {
        note::warn!(warning, "recovery");
    }
    adoption::check(dir, options, &mut recovered).inspect_err(|_| info_log.leave_no_file())?;
    if options.secondary.is_some() {
        follow::check_format(&recovered).map_err(|error| error.at_path(dir))?;
    }
    // A repair, which may not know all logs, begins none.
    if !options.read_only {
        let (from, after) = (recovered.next_file, recovered.last_seq);
        session::begin(&mut recovered.sessions, Session { id: options.vfs.random_u64() as u32 | 1, from, after });
    }
    let opening = Opening::new(dir, options, recovered, info_log)?;
    doubts.into_iter().for_each(|doubt| opening.context.recovery_doubts.add(doubt));
    Ok(opening)
}

fn tell_doubts(engine: &Arc<Engine>) {
    for doubt in engine.core.context.recovery_doubts.all() {
        tell(InfoLogLevel::Warn, &format!("recovery leaves in doubt: {doubt}"));
    }
}

/// An open's remarks on kept options of the database and of the families.
pub(crate) fn remarks_on_kept(options: &OpenOptions) -> Vec<String> {
    let families = options.families.iter().map(|(_, family)| family);
    let others = options.other_families.all().map(|(_, family)| family);
    let of_families = families.chain(others).map(|family| kept::review(family, true));
    // Errors are reported by the open.
    [kept::review(&options.db, true)].into_iter().chain(of_families).flat_map(Result::unwrap_or_default).collect()
}

/// Validates all options. Returns remarks on the database's options.
pub(crate) fn validate(options: &OpenOptions) -> Result<Vec<String>> {
    options.db.validate()?;
    let ignore_unsupported = options.db.ignore_unsupported_options;
    let remarks = kept::review(&options.db, ignore_unsupported)?;
    let all = options.families.iter().map(|(name, family)| (name.as_str(), family));
    for (name, family) in all.chain(options.other_families.all()) {
        let valid = family.validate().and_then(|()| kept::review(family, ignore_unsupported).map(drop));
        valid.map_err(|e| e.context(format!("column family \"{name}\"")))?;
    }
    Ok(remarks)
}

/// The error for a file where a directory has to be.
fn no_directory(path: &Path) -> Error {
    Error::new(ErrorKind::Io, format!("`{}' exists but is not a directory", path.display()))
}

/// Makes sure that the directory exists, and locks it.
fn take_directory(dir: &Path, options: &OpenOptions) -> Result<Box<dyn LockGuard>> {
    if options.db.create_if_missing {
        for dir in [dir.to_owned(), log_dir(dir, &options.db)] {
            create_durable_dir(&*options.vfs, &dir)?;
        }
    } else {
        match options.vfs.metadata(dir) {
            Ok(found) if found.kind == FileKind::File => return Err(no_directory(dir)),
            Ok(_) => {} // a link is followed
            Err(error) if error.is_not_found() => return Err(start::no_database(dir)),
            Err(error) => return Err(error),
        }
    }
    start::check_unlocked(dir, options)?;
    options.vfs.lock(&lock_path(dir))
}

pub(crate) fn list_families(dir: &Path, vfs: &Arc<dyn Vfs>) -> Result<Vec<String>> {
    Ok(recover::recover(&**vfs, dir)?.families.into_iter().map(|family| family.name).collect())
}
