//! Restores a backup to a directory. A mark is durable before anything else changes, and removed once all is durable: in
//! between the directory does not open, is not repaired, and does not pass for another database.

use base::name;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base::{Error, ErrorKind, FileNumber, Result, shell};
use vfs::{IfExists, IoClass, Vfs, write_all};
use wal::DatabaseId;

use super::copy::{self, Target, check, for_each_file};
use super::kept_logs::{Kept, is_left};
use super::path::META_DIR;
use super::store::{Backup, Store};
use super::{BackupId, BackupOptions};
use crate::background::staging::create_durable_dir;
use crate::core::context::whole_path;
use crate::core::lost::Lost;
use crate::core::open_options::lock_path;
use crate::log_files::archive::ARCHIVE_DIR;
use crate::open::options_file;
use crate::open::{has_logs_in, identity, is_ours, log_owner, owners_beside, remove_files, remove_load_dir};
use crate::version::backup_dirs;
use crate::version::current::{install_current, read_current};
use crate::version::edit::VersionEdit;
use crate::version::file_name::{self, FileType};
use crate::version::ids::new_identity;
use crate::version::incomplete::{self, absolute};
use crate::version::manifest::{add_if_fenced, manifest_path};
use crate::version::manifest_copy::copy_path;
use crate::version::recover::{self, ReadManifest, Recovered};

/// How a backup is restored.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    /// Directory for the logs; the database's directory if `None`. Logs of the database that is replaced are deleted
    /// unless kept; those of others stay, the original's included. Refused where one that stays has the name of a log of the backup, or
    /// cannot be read and would be read by the database; and for a backup of RocksDB's, whose logs tell no database, unless it replaces one of RocksDB's. The restored OPTIONS file names the
    /// directory. Our MANIFESTs do, too: an open that looks for the logs elsewhere is refused.
    pub wal_dir: Option<PathBuf>,
    /// Keeps existing logs, with the ingested tables they name, for the database to continue with. Requires a backup
    /// without logs, made after a flush; the logs must follow it without a gap, RocksDB's without a missing number, up to
    /// the last write that the existing MANIFEST knows. A flush since the backup may have let them go. Unlogged changes do
    /// not come back:
    /// writes with `disable_wal`, ingests from behind, and families created since.
    pub keep_log_files: bool,
}

impl RestoreOptions {
    /// The command line of such a restore of backup `id` in `backups`.
    pub fn command(&self, id: BackupId, backups: &Path, to: &Path) -> String {
        let logs = self.wal_dir.as_ref().map(|dir| format!(" --wal-dir {}", shell::word(dir))).unwrap_or_default();
        let kept = if self.keep_log_files { " --keep-logs" } else { "" };
        format!("spillway backup restore {id} --dir {} --to {}{logs}{kept}", shell::word(backups), shell::word(to))
    }
}

/// The directories to restore to.
#[derive(Clone)]
pub(super) struct Places {
    pub db: PathBuf,
    pub logs: PathBuf,
}

impl Places {
    /// An empty `wal_dir`, or the database's directory under another name, is none.
    fn new(vfs: &dyn Vfs, db_dir: &Path, how: &RestoreOptions) -> Places {
        let place = |dir: &Path| vfs.canonicalize(dir).unwrap_or_else(|_| absolute(dir));
        let is_apart = |dir: &&PathBuf| !dir.as_os_str().is_empty() && place(dir) != place(db_dir);
        let logs = how.wal_dir.as_ref().filter(is_apart).map_or(db_dir, |dir| dir);
        Places { db: db_dir.to_owned(), logs: logs.to_owned() }
    }

    fn of(&self, kind: FileType) -> &Path {
        if kind.is_log() { &self.logs } else { &self.db }
    }
}

pub(super) fn restore(
    store: &Store,
    options: &BackupOptions,
    backup: Backup,
    db_dir: &Path,
    how: &RestoreOptions,
) -> Result<()> {
    let vfs = &*store.vfs;
    let places = Places::new(vfs, db_dir, how);
    for dir in [&places.db, &places.logs] {
        backup_dirs::check_is_outside(vfs, dir)?;
    }
    let manifest = manifest_of(store, &backup)?;
    let state = state_of(store, &backup)?;
    if !how.keep_log_files && !state.fenced {
        check_rocksdb_logs_are_of_what_goes(store, &places, how)?;
    }
    for dir in [&places.db, &places.logs] {
        create_durable_dir(vfs, dir)?;
    }
    let _lock = vfs.lock(&lock_path(&places.db))?;
    Lost::new(vfs, &places.db).check_place()?;
    let earlier = incomplete::read(vfs, &places.db)?;
    if how.keep_log_files {
        check_logs_were_kept(&places, earlier.as_deref())?;
    }
    let replaced = Replaced::find(vfs, &places, how)?;
    let logs = logs_that_go(vfs, &places, &backup, &state, &replaced)?;
    if !how.keep_log_files {
        check_none_is_in_the_way(vfs, &places, &state)?;
    }
    // Beside its original's logs it is a database of its own; with its logs it goes on as the same one.
    let own = (state.fenced && !how.keep_log_files).then(|| new_identity(vfs));
    let kept = how
        .keep_log_files
        .then(|| Kept::find(store, &places, &backup, state, earlier.as_deref(), &options.orders))
        .transpose()?;
    let id = backup.id;
    let current = places.db.join(file_name::format(FileType::Current, FileNumber(0)));
    let replaces = vfs.exists(&current)?;
    let notes: Vec<String> =
        kept.iter().map(|kept| kept.reached.to_string()).chain(replaced.notes(own.as_deref())).collect();
    let mark = |remedy: &str| incomplete::mark(vfs, &places.db, &mark_of(store, id, replaces, how, &notes, remedy));
    mark(&begin_again(store, id, &places, how))?;
    // A database that is as it was needs no mark; what an earlier restore left keeps it.
    let unmark = || if earlier.is_some() { Ok(()) } else { incomplete::unmark(vfs, &places.db) };
    let removed = remove_current(vfs, &places.db);
    if removed.is_err() && (!replaces || vfs.exists(&current).unwrap_or(false)) {
        drop(unmark());
        return removed;
    }
    removed
        .and_then(|()| clear(vfs, &places, kept.as_ref(), &logs))
        .and_then(|()| bring_all(store, options, backup, &places, own.as_deref()))
        .and_then(|()| tell_place(vfs, &places, manifest, own, kept.as_ref()))
        .and_then(|()| Lost::new(vfs, &places.db).retire_reports())
        .and_then(|()| [&places.logs, &places.db].into_iter().try_for_each(|dir| vfs.sync_dir(dir)))
        .and_then(|()| install_current(vfs, &places.db, manifest))
        .map_err(|error| {
            let is_damaged = error.kind() == ErrorKind::Corruption;
            let remedy = if is_damaged { take_another(store, id, error.path()) } else { "restore again".to_owned() };
            if is_damaged {
                drop(mark(&remedy)); // else the earlier mark stays
            }
            let deleted = if replaces { ", and the database that was there is gone" } else { "" };
            let db = places.db.display();
            error.advise(format!("the restore of backup {id} to {db} is unfinished{deleted}: {remedy}"))
        })?;
    incomplete::unmark(vfs, &places.db).map_err(|error| {
        error.advise("all is restored, but the mark of an unfinished restore may remain: restore again")
    })
}

/// The text of the mark. The last line is compared by [`is_leftover`]. The `notes` before it say how far kept logs reach, and whose
/// logs are here.
fn mark_of(
    store: &Store,
    id: BackupId,
    replaces: bool,
    how: &RestoreOptions,
    notes: &[String],
    remedy: &str,
) -> String {
    let replaced = if replaces { ", in place of the database that was here" } else { "" };
    let notes: String = notes.iter().map(|note| format!("{note}\n")).collect();
    let (from, logs) = (absolute(&store.dir), logs_line(how));
    format!("an unfinished restore of backup {id} in {}{replaced}; {remedy}\n{notes}{logs}\n", from.display())
}

/// Whether a mark is of a restore from these backups.
fn is_of_backups(store: &Store, mark: &str) -> bool {
    let from = absolute(&store.dir).display().to_string();
    let behind = mark.split_once(" in ").and_then(|(_, behind)| behind.strip_prefix(&from));
    behind.is_some_and(|behind| behind.starts_with("; ") || behind.starts_with(", in place of "))
}

/// What to do about a restore that was cut off.
fn begin_again(store: &Store, id: BackupId, places: &Places, how: &RestoreOptions) -> String {
    let command = how.command(id, &absolute(&store.dir), &absolute(&places.db));
    format!("wait for the restore if it is still running, else restore again (`{command}`)")
}

/// What to do about a restore of a backup whose file `damaged` is not as its meta file says. One of the two is damaged: the
/// meta file, if the file is as another backup's says.
fn take_another(store: &Store, id: BackupId, damaged: Option<&Path>) -> String {
    let loaded = store.load_all().unwrap_or_default();
    let others: Vec<&Backup> = loaded.iter().flatten().filter(|other| other.id != id).collect();
    let found = damaged.and_then(|path| copy::read(&*store.vfs, path, None).ok());
    // `None`: the backup does not have the file.
    let has_as_found = |other: &Backup| {
        let mut files = other.meta.files.iter().zip(&other.file_bytes);
        let (file, bytes) = files.find(|(file, _)| Some(&*file.path.at(&store.dir)) == damaged)?;
        Some(found.is_some_and(|found| check(other.id, &store.dir, file, *bytes, found).is_ok()))
    };
    let named = |states: &[Option<bool>]| {
        let others = others.iter().filter(|other| states.contains(&has_as_found(other)));
        others.map(|other| format!("backup {}", other.id)).collect::<Vec<_>>().join(", ")
    };
    let (damaged, why) = match named(&[Some(true)]) {
        having if having.is_empty() => ("the damaged file".to_owned(), String::new()),
        having => (format!("{META_DIR}/{id}"), format!(" (the file itself is as {having} should have it)")),
    };
    let others = match (named(&[None, Some(true)]), named(&[Some(false)])) {
        (whole, _) if !whole.is_empty() => format!("restore another one in its place ({whole})"),
        (_, sharing) if !sharing.is_empty() => format!(
            "every other one shares that file ({sharing}): move it out of the backups, and a new backup of a database that \
             still has the file brings it back to all of them"
        ),
        _ => "there is no other backup".to_owned(),
    };
    format!("backup {id} is damaged, and its restore fails again until {damaged} is brought back{why}; {others}")
}

/// Begins the last line of the mark of a restore that keeps logs.
const LOGS_KEPT: &str = "logs kept";

/// The line of a mark that says which logs the restore keeps.
fn logs_line(how: &RestoreOptions) -> String {
    let logs = if how.keep_log_files { LOGS_KEPT } else { "logs restored" };
    match &how.wal_dir {
        Some(dir) => format!("{logs} in {}", name::of_path(&absolute(dir).components().collect::<PathBuf>())),
        None => logs.to_owned(),
    }
}

/// Whether a mark is of a restore, or of a deletion, with the same directory of logs.
fn is_of_same_logs(mark: &str, how: &RestoreOptions) -> bool {
    let restored = [true, false].map(|keep_log_files| logs_line(&RestoreOptions { keep_log_files, ..how.clone() }));
    let deleted = how.wal_dir.as_ref().map(|dir| name::of_path(dir));
    mark.lines().last().is_some_and(|line| restored.iter().any(|one| one == line) || deleted.as_deref() == Some(line))
}

/// Refuses to keep logs where an unfinished restore did not: it may have deleted some.
///
/// # Errors
/// `InvalidArgument`: the mark is of another copy than a restore that keeps logs.
fn check_logs_were_kept(places: &Places, mark: Option<&str>) -> Result<()> {
    if mark.is_none_or(|text| text.lines().last().is_some_and(|line| line.starts_with(LOGS_KEPT))) {
        return Ok(());
    }
    let what = "no logs can be kept here: an unfinished restore did not keep them, and may have deleted some; restore \
                without keep_log_files";
    Err(Error::invalid_argument(what).at_path(&places.db))
}

/// Whether the directory has only what an unfinished restore left that treated the logs as this one does.
fn is_leftover(vfs: &dyn Vfs, db_dir: &Path, how: &RestoreOptions) -> Result<bool> {
    let mark = incomplete::read(vfs, db_dir)?;
    Ok(mark.is_some_and(|text| text.lines().last() == Some(&logs_line(how))))
}

/// The MANIFEST named by the backup's CURRENT.
///
/// # Errors
/// `Corruption`: no CURRENT, or its MANIFEST is not in the backup.
fn manifest_of(store: &Store, backup: &Backup) -> Result<FileNumber> {
    let number = read_current(&*store.vfs, &store.private_dir(backup.id))?;
    let name = file_name::format(FileType::Manifest, number);
    if backup.meta.files.iter().any(|file| file.path.database_name() == name) {
        return Ok(number);
    }
    let what = format!("backup {} lacks {name}, which its CURRENT names", backup.id);
    Err(Error::corruption(what).at_path(store.private_dir(backup.id)))
}

/// The state of the backup. Nothing else tells whose logs it has.
///
/// # Errors
/// As [`recover`](recover::recover).
fn state_of(store: &Store, backup: &Backup) -> Result<Recovered> {
    recover::recover(&*store.vfs, &store.private_dir(backup.id)).map_err(|error| match error.kind() {
        ErrorKind::Corruption => {
            let remedy = take_another(store, backup.id, error.path());
            error.advise(format!("nothing was changed: {remedy}"))
        }
        _ => error,
    })
}

/// What a restore replaces.
struct Replaced {
    /// Nothing has its logs in the directory of logs.
    is_none: bool,
    /// Whose logs there go: the database's id, and those of restores to here that were cut off: of their logs and of what they
    /// replaced.
    owners: Vec<DatabaseId>,
    /// The same of the logs in the database's own directory. `None`: all logs there count as the database's, whose id is lost.
    here: Option<Vec<DatabaseId>>,
    /// `None`: nothing tells.
    is_rocksdbs: Option<bool>,
}

/// Begins a line of a mark with an id of [`Replaced::owners`].
const OWNER: &str = "logs of ";

/// Begins a line of a mark with an id of [`Replaced::here`].
const HERE: &str = "database ";

impl Replaced {
    /// A copy has its original's id, and not its logs. Of what is marked the mark tells, and without a MANIFEST the id.
    fn find(vfs: &dyn Vfs, places: &Places, how: &RestoreOptions) -> Result<Replaced> {
        let found = match recover::recover_proven(vfs, &places.db) {
            Ok(found) => Some(found),
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Unsupported) && !error.is_not_found() => {
                return Err(error);
            }
            Err(_) => None, // nothing is there, or a mark, or damage
        };
        let mark = incomplete::read(vfs, &places.db)?;
        let has_logs = match (&mark, &found) {
            (Some(mark), _) => is_of_same_logs(mark, how),
            (None, Some(found)) => has_logs_in(vfs, &places.db, &places.logs, found)?,
            (None, None) => true,
        };
        // Under a mark the MANIFEST can be the backup's, and the IDENTITY a copy's, which is its original's.
        let (mut owners, mut here) = match &mark {
            Some(mark) => {
                let noted = |what| mark.lines().filter_map(move |line| line.strip_prefix(what)).map(DatabaseId::new);
                (noted(OWNER).collect(), noted(HERE).collect())
            }
            None => (vec![log_owner(vfs, &places.db, found.as_ref())], owners_beside(vfs, &places.db, found.as_ref())),
        };
        owners.retain(|owner: &DatabaseId| has_logs && owner.is_known());
        here.retain(|owner: &DatabaseId| owner.is_known());
        let is_ours = is_ours(vfs, &places.db, found.as_ref())?;
        let is_lost = here.is_empty() && is_ours;
        let is_rocksdbs = found.map(|found| !found.fenced).or(is_ours.then_some(false));
        Ok(Replaced { is_none: !has_logs, owners, here: (!is_lost).then_some(here), is_rocksdbs })
    }

    /// Lines of the mark. `own`: the id of the restored database.
    fn notes(&self, own: Option<&str>) -> impl Iterator<Item = String> {
        let own = own.map(DatabaseId::new);
        let owners = self.owners.iter().copied().chain(own).map(|owner| format!("{OWNER}{owner}"));
        owners.chain(self.here.iter().flatten().copied().chain(own).map(|owner| format!("{HERE}{owner}")))
    }

    /// The logs to delete, and the logs to leave, of the directory of logs, the database's own, and their archives.
    fn logs(&self, vfs: &dyn Vfs, places: &Places, brings_ours: bool) -> Result<[BTreeSet<PathBuf>; 2]> {
        let (mut go, mut stay) = (BTreeSet::new(), BTreeSet::new());
        let dirs = BTreeSet::from([&places.db, &places.logs]);
        for (own_dir, dir) in dirs.into_iter().flat_map(|dir| [(dir, dir.clone()), (dir, dir.join(ARCHIVE_DIR))]) {
            let is_apart = *own_dir != places.db;
            for name in if vfs.exists(&dir)? { vfs.read_dir(&dir)? } else { Vec::new() } {
                let Some((kind, number)) = file_name::parse(&name).filter(|(kind, _)| kind.is_log()) else { continue };
                let path = dir.join(&name);
                let stays = match kind {
                    FileType::RocksLog => match self.is_rocksdbs {
                        Some(true) => is_apart && self.is_none,
                        Some(false) => true, // a guest's
                        None => brings_ours,
                    },
                    _ => self.leaves(wal::database_of(vfs, &path, number), is_apart),
                };
                if stays { &mut stay } else { &mut go }.insert(path);
            }
        }
        Ok([go, stay])
    }

    /// Whether a log of ours stays. Apart from the tables it goes only if it is the replaced database's: by its id or, if it has
    /// none, because that has its logs there. One whose header cannot be read may be anybody's.
    fn leaves(&self, owner: Result<DatabaseId>, is_apart: bool) -> bool {
        match owner {
            Ok(owner) if is_apart && owner.is_known() => !self.owners.contains(&owner),
            Ok(_) if is_apart => self.owners.is_empty(),
            Err(_) => is_apart,
            Ok(owner) => owner.is_known() && self.here.as_ref().is_some_and(|here| !here.contains(&owner)),
        }
    }
}

/// RocksDB's logs have no id. For a backup of RocksDB's they may go if it replaces a database of RocksDB's, or one that cannot be
/// read, or if such a restore was cut off.
///
/// # Errors
/// `InvalidArgument`: there are some, and nothing tells that their database goes.
fn check_rocksdb_logs_are_of_what_goes(store: &Store, places: &Places, how: &RestoreOptions) -> Result<()> {
    let vfs = &*store.vfs;
    if !vfs.exists(&places.logs)? {
        return Ok(());
    }
    let mark = incomplete::read(vfs, &places.db)?;
    if mark.is_some_and(|mark| is_of_same_logs(&mark, how) && is_of_backups(store, &mark)) {
        return Ok(());
    }
    let replaced = Replaced::find(vfs, places, how)?;
    let is_beside = places.logs == places.db;
    let may_be_rocksdbs = match replaced.is_rocksdbs {
        None => is_beside || is_left(vfs, &places.db)?,
        Some(is_rocksdbs) => is_rocksdbs,
    };
    if may_be_rocksdbs && (is_beside || !replaced.is_none) {
        return Ok(());
    }
    match file_name::numbers_in(vfs, &places.logs, FileType::RocksLog)?.first() {
        Some(&number) => {
            let what = "the backup's database may have its logs here (RocksDB's logs do not tell), and nothing tells that it is the \
                        one restored over: it would lose them. Restore to another wal_dir, or remove the logs if that database is \
                        gone";
            Err(Error::invalid_argument(what).at_path(places.logs.join(file_name::format(FileType::RocksLog, number))))
        }
        None => Ok(()),
    }
}

/// The logs that the restore deletes. Those that others make from now on stay.
///
/// # Errors
/// `InvalidArgument`: another database's has the name of a log of the backup.
fn logs_that_go(
    vfs: &dyn Vfs,
    places: &Places,
    backup: &Backup,
    state: &Recovered,
    replaced: &Replaced,
) -> Result<BTreeSet<PathBuf>> {
    let [go, others] = replaced.logs(vfs, places, state.fenced)?;
    let mut files = backup.meta.files.iter().map(|file| places.logs.join(file.path.database_name()));
    match files.find(|path| others.contains(path)) {
        Some(path) => {
            let what = "another database's log, or one that cannot be read, is where the backup has one; restore to another wal_dir, \
                        or remove the log if its database is gone";
            Err(Error::invalid_argument(what).at_path(path))
        }
        None => Ok(go),
    }
}

/// Refuses a directory of logs with one that stays and cannot be read: the database would not open.
///
/// # Errors
/// `InvalidArgument`: there is one.
fn check_none_is_in_the_way(vfs: &dyn Vfs, places: &Places, state: &Recovered) -> Result<()> {
    if places.logs == places.db || !state.fenced {
        return Ok(());
    }
    let oldest = state.wal_range.map_or(FileNumber(0), |range| range.oldest);
    for number in file_name::numbers_in(vfs, &places.logs, FileType::Log)?.range(oldest..) {
        let path = places.logs.join(file_name::format(FileType::Log, *number));
        if wal::database_of(vfs, &path, *number).is_err() {
            let what = "this log cannot be read, so that nothing tells whose it is: the restored database would take it for its own. \
                        Move it away, or restore to another wal_dir";
            return Err(Error::invalid_argument(what).at_path(path));
        }
    }
    Ok(())
}

/// Removes CURRENT durably. Of the existing database nothing else is gone before.
fn remove_current(vfs: &dyn Vfs, db_dir: &Path) -> Result<()> {
    remove_files(vfs, db_dir, |kind, _| kind == FileType::Current)?;
    vfs.sync_dir(db_dir)
}

/// Removes the rest of the existing database, and the logs that `go`. Keeps files of no database.
fn clear(vfs: &dyn Vfs, places: &Places, kept: Option<&Kept>, go: &BTreeSet<PathBuf>) -> Result<()> {
    let stays = |kind: FileType, number| kind.is_log() || kept.is_some_and(|kept| kept.has(kind, number));
    let is_of_restore = |kind| matches!(kind, FileType::Lock | FileType::Incomplete);
    remove_files(vfs, &places.db, |kind, number| !is_of_restore(kind) && !stays(kind, number))?;
    remove_load_dir(vfs, &places.db)?;
    if kept.is_none() {
        go.iter().try_for_each(|log| vfs.remove_file(log))?;
        // A file reappearing after a power loss could pass for one of the backup.
        for dir in [&places.logs, &places.logs.join(ARCHIVE_DIR), &places.db.join(ARCHIVE_DIR)] {
            if vfs.exists(dir)? {
                vfs.sync_dir(dir)?;
            }
        }
    }
    vfs.sync_dir(&places.db)
}

/// Files [`restore`] may delete: a database's files in its directories, except types that always stay. None, if only an
/// unfinished restore lies there.
pub(super) fn replaced(vfs: &dyn Vfs, db_dir: &Path, how: &RestoreOptions) -> Result<Vec<PathBuf>> {
    if is_leftover(vfs, db_dir, how)? {
        return Ok(Vec::new());
    }
    let places = Places::new(vfs, db_dir, how);
    let [_, others] = Replaced::find(vfs, &places, how)?.logs(vfs, &places, false)?;
    let mut found = Vec::new();
    let mut add = |dir: &Path, goes: &dyn Fn(FileType) -> bool| -> Result<()> {
        if vfs.exists(dir)? {
            let names = vfs.read_dir(dir)?;
            let ours = names.iter().filter(|name| file_name::parse(name).is_some_and(|(kind, _)| goes(kind)));
            found.extend(ours.map(|name| dir.join(name)));
        }
        Ok(())
    };
    add(db_dir, &|kind| !matches!(kind, FileType::Lock | FileType::Incomplete) && !kind.is_log())?;
    if !how.keep_log_files {
        let dirs = BTreeSet::from([places.db, places.logs]);
        for dir in dirs.iter().flat_map(|dir| [dir.clone(), dir.join(ARCHIVE_DIR)]) {
            add(&dir, &|kind| kind.is_log())?;
        }
    }
    found.retain(|path| !others.contains(path));
    found.sort_unstable();
    Ok(found)
}

/// Has the restored files tell the database's id and its log directory. A MANIFEST of ours tells how far kept logs reach, too: a
/// backup's names no logs beside it, so an open without them, or without the last one, would miss nothing. The OPTIONS file of a
/// backup names the original's log directory. Last, adds what backups lack.
fn tell_place(
    vfs: &dyn Vfs,
    places: &Places,
    manifest: FileNumber,
    own: Option<String>,
    kept: Option<&Kept>,
) -> Result<()> {
    let [logs, home] = match places.logs == places.db {
        true => Default::default(),
        false => [&places.logs, &places.db].map(|dir| whole_path(vfs, dir)),
    };
    options_file::tell_place(vfs, &places.db, &logs, own.as_deref())?;
    let edit = VersionEdit {
        db_id: own,
        home: Some(home).filter(|home| !home.is_empty()),
        log_dir: Some(logs),
        log_frontiers: kept.and_then(Kept::frontiers),
        sessions: kept.map(|kept| kept.sessions.clone()),
        ..VersionEdit::default()
    };
    let path = manifest_path(&places.db, manifest);
    let is_fenced = add_if_fenced(vfs, &path, edit)?;
    add_what_backups_lack(vfs, places, manifest, is_fenced)
}

/// Writes the copy of a MANIFEST of ours, and IDENTITY. RocksDB's database gets no IDENTITY, which RocksDB does not back up, but
/// where its logs lie elsewhere: they pass for an original's without it. An original has the last log that its MANIFEST names, which
/// RocksDB does not back up where it is empty.
fn add_what_backups_lack(vfs: &dyn Vfs, places: &Places, manifest: FileNumber, is_fenced: bool) -> Result<()> {
    let path = manifest_path(&places.db, manifest);
    let logs = file_name::numbers_in(vfs, &places.logs, FileType::RocksLog)?;
    if is_fenced {
        copy::copy(vfs, &path, None, &Target { vfs, path: &copy_path(&places.db, manifest), syncs: true })?;
    } else if places.logs == places.db || logs.is_empty() {
        return Ok(());
    }
    let replay = ReadManifest::read(vfs, &path)?.map(|file| file.replay);
    let id = replay.as_ref().and_then(|replay| replay.db_id().map(str::to_owned));
    // Logs that are kept may tell the id that the MANIFEST does not.
    let id = id.or_else(|| (!is_fenced).then(|| new_identity(vfs)));
    // A MANIFEST that cannot be read is for the open to tell.
    let restored = replay.filter(|_| !is_fenced).and_then(|replay| replay.finish(manifest).ok());
    let last = restored.and_then(|restored| restored.rocksdb_logs.last_begun());
    if let Some(last) = last.filter(|last| logs.last() < Some(last)) {
        let path = places.logs.join(file_name::format(FileType::RocksLog, last));
        write_all(vfs, &path, IfExists::Fail, b"", IoClass::Other)?;
    }
    id.map_or(Ok(()), |id| identity::write(vfs, &places.db, &id))
}

/// Copies every file except CURRENT, and compares all files with their checksums. Logs of ours become those of the database `own`.
fn bring_all(store: &Store, options: &BackupOptions, backup: Backup, places: &Places, own: Option<&str>) -> Result<()> {
    let (store, places, id): (Store, Places, BackupId) = (store.clone(), places.clone(), backup.id);
    let own = own.map(DatabaseId::new);
    for_each_file(options, backup, move |file, bytes| {
        let (vfs, kind, from) = (&*store.vfs, file.path.file_type(), file.path.at(&store.dir));
        let to = places.of(kind).join(file.path.database_name());
        let to = Target { vfs, path: &to, syncs: true };
        let contents = match (kind, own) {
            (FileType::Current, _) => copy::read(vfs, &from, None)?,
            (FileType::Log | FileType::LargeBatch, Some(own)) => copy::copy_log(vfs, &from, &to, own)?,
            _ => copy::copy(vfs, &from, None, &to)?,
        };
        check(id, &from, file, bytes, contents)
    })
}
