//! Finds our live WAL range for recovery, and missing logs in it. Keeps D2: a missing log is a hole in the history.
//!
//! The MANIFEST names the oldest needed log and the newest log at the time of its note; every log names its
//! predecessor. So any missing log is noticed, unless it is the last one and began after the note, which lags behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use base::options::WalRecoveryMode;
use base::{Error, FileNumber, Result, SeqNo, name};
use vfs::Vfs;
use wal::{DatabaseId, FILE_HEADER_BYTES, Frontiers, LogHead, NotedManifest, Position};

use super::own_logs::{has_records, was_let_go};
use crate::core::context::is_same_dir;
use crate::core::doubt::Doubt;
use crate::open::identity;
use crate::version::edit::{LOG_DIR_OF_COPY, NotedLogs};
use crate::version::file_name::{self, FileType};
use crate::version::manifest::manifest_path;
use crate::version::recover::{Recovered, recover};
use crate::version::session;

/// The needed logs in a directory.
#[derive(Default)]
pub(crate) struct FoundRange {
    /// Ascending.
    pub logs: Vec<FoundLog>,
    /// Ascending. Of adjacent missing logs only the last may be known.
    pub missing: Vec<MissingLog>,
    /// Foreign logs with numbers in the needed range.
    pub others: BTreeMap<FileNumber, DatabaseId>,
    /// How far the MANIFEST had come when the newest log was made.
    pub manifest: Option<NotedManifest>,
    /// The newest log that notes no MANIFEST: an earlier version of this program made it.
    pub unnoted: Option<FileNumber>,
    /// Some logs are of sessions after the MANIFEST's, which only a rescue takes.
    pub has_later_sessions: bool,
}

pub(crate) struct FoundLog {
    pub number: FileNumber,
    /// The frontiers recorded in later logs; and the end of its header, if something names it.
    pub later: Frontiers,
}

/// A needed log that is missing.
pub(crate) struct MissingLog {
    pub number: FileNumber,
    /// The log after it; `None` if named by the MANIFEST.
    pub named_by: Option<FileNumber>,
    /// The log of the same name.
    pub in_its_place: Option<InItsPlace>,
}

/// A log that has the name of a missing one.
#[derive(Clone, Copy)]
pub(crate) enum InItsPlace {
    /// Of another database.
    OfDatabase(DatabaseId),
    /// Of a copy of the database's files, which went its own way.
    OfCopy,
}

/// Finds the logs of the database `own` in `dir`. Foreign logs count as missing. `read_head` returns a log's record of
/// the logs before it.
///
/// # Errors
/// As reading the directory, and as `read_head`.
pub(crate) fn find(
    vfs: &dyn Vfs,
    dir: &Path,
    own: DatabaseId,
    noted: NotedLogs,
    mut read_head: impl FnMut(&Path, FileNumber) -> Result<LogHead>,
) -> Result<FoundRange> {
    let in_tables: BTreeSet<_> = noted.in_tables().map(|end| end.log).collect();
    let oldest = noted.range.map_or(FileNumber(0), |range| range.oldest);
    let mut numbers = file_name::numbers_in(vfs, dir, FileType::Log)?;
    numbers.retain(|number| *number >= oldest);
    let (mut heads, mut others) = (BTreeMap::new(), BTreeMap::new());
    for &number in &numbers {
        match read_head(&path_of(dir, number), number) {
            Ok(head) if head.database.is_another_than(own) => drop(others.insert(number, head.database)),
            head => drop(heads.insert(number, head)),
        }
    }
    let (of_copies, has_later_sessions) = logs_of_copies(&heads, &noted);
    heads.retain(|number, _| !of_copies.contains(number));
    numbers.retain(|number| !others.contains_key(number) && !of_copies.contains(number));
    let mut missing: BTreeMap<_, _> = of_copies.iter().map(|number| (*number, None)).collect();
    let (mut known, mut manifest, mut unnoted) = (noted.frontiers, None, None);
    let mut logs = Vec::with_capacity(numbers.len());
    let named = noted.range.and_then(|range| range.newest.map(|newest| vec![range.oldest, newest])).unwrap_or_default();
    let mut before = None;
    for (number, head) in heads.into_iter().rev() {
        if before.is_some_and(|before| number > before) {
            continue; // made ahead, not used, and not deleted
        }
        let is_used = before == Some(number) || named.contains(&number);
        // One that nothing names may be anybody's. One of which nothing is read may be anything.
        let head = if in_tables.contains(&number) { head.unwrap_or_default() } else { head? };
        before = head.predecessor;
        // A log's header is synced before anything names the log.
        let header = if is_used { Position { log: number, offset: FILE_HEADER_BYTES } } else { Position::default() };
        logs.push(FoundLog { number, later: Frontiers { synced: known.synced.max(header), ..known } });
        known = known.max(head.frontiers);
        manifest = manifest.or(head.manifest);
        unnoted = unnoted.or(Some(number).filter(|_| head.manifest.is_none() && head.database.is_known()));
        if let Some(before) = head.predecessor.filter(|before| *before >= oldest && !numbers.contains(before)) {
            missing.insert(before, Some(number));
        }
    }
    logs.reverse();
    // One that is in tables may be gone with the name of the log before it; the end of that one is noted, too.
    let synced = Some(noted.frontiers.synced.log).filter(|log| log.0 > 0);
    for named in named.into_iter().chain(synced).chain(noted.ends.iter().map(|end| end.log)) {
        if named >= oldest && !numbers.contains(&named) {
            missing.entry(named).or_insert(None);
        }
    }
    let missing = missing.into_iter().filter(|(number, _)| !in_tables.contains(number));
    let in_place = |number| match others.get(&number) {
        Some(database) => Some(InItsPlace::OfDatabase(*database)),
        None => of_copies.contains(&number).then_some(InItsPlace::OfCopy),
    };
    let missing =
        missing.map(|(number, named_by)| MissingLog { number, named_by, in_its_place: in_place(number) }).collect();
    Ok(FoundRange { logs, missing, others, manifest, unnoted, has_later_sessions })
}

/// Logs of another session than the MANIFEST notes for their numbers, and whether there are ones of sessions after it. Those note a
/// later MANIFEST, and have no log of a known session behind them. A log that notes none can be of an open that was cut off.
fn logs_of_copies(heads: &BTreeMap<FileNumber, Result<LogHead>>, noted: &NotedLogs) -> (BTreeSet<FileNumber>, bool) {
    let heads = || heads.iter().filter_map(|(number, head)| Some((*number, head.as_ref().ok()?)));
    let is_of_noted = |number, head: &LogHead| session::of_log(&noted.sessions, number) == Some(head.session);
    let last = heads().filter(|(number, head)| is_of_noted(*number, head)).map(|(number, _)| number).max();
    let (mut of_copies, mut has_later) = (BTreeSet::new(), false);
    for (number, head) in heads().filter(|(number, head)| !is_of_noted(*number, head)) {
        let Some(manifest) = head.manifest.filter(|_| session::of_log(&noted.sessions, number).is_some()) else {
            continue;
        };
        if last < Some(number) && noted.manifest.is_some_and(|noted| manifest.is_after(noted)) {
            has_later = true;
        } else {
            of_copies.insert(number);
        }
    }
    (of_copies, has_later)
}

impl FoundRange {
    /// Checks that the MANIFEST has come as far as a log noted.
    ///
    /// # Errors
    /// `Corruption`: the MANIFEST lost its end, or CURRENT names an older one.
    pub fn check_manifest(&self, dir: &Path, recovered: &Recovered) -> Result<()> {
        let Some(end) = recovered.manifest_end.filter(|_| !recovered.is_backups()) else { return Ok(()) };
        let number = recovered.manifest;
        match self.lost_end(number, end) {
            Some(what) => Err(Error::corruption(what).at_path(manifest_path(dir, number)).at_offset(end)),
            None => Ok(()),
        }
    }

    /// What a log noted of the MANIFEST `number` behind its `end`, or of a later MANIFEST.
    pub fn lost_end(&self, number: FileNumber, end: u64) -> Option<String> {
        let noted = self.manifest?;
        match noted.bytes_of(number) {
            Some(bytes) if bytes > end => {
                Some(format!("the end of the MANIFEST is missing: it had {bytes} bytes when its last log was made"))
            }
            None if noted.is_after(number) => {
                Some("the MANIFEST is not the last one: a log was made when a later one was current".to_owned())
            }
            _ => None,
        }
    }
}

/// Whether a file is a foreign database's log: not replayed, and not ours to delete.
pub(crate) fn is_of_another(vfs: &dyn Vfs, path: &Path, own: DatabaseId) -> bool {
    database_of(vfs, path).is_some_and(|found| found.is_another_than(own))
}

/// Whether a log may be a foreign database's, and is not to be deleted or moved by the database `own` in `dir`. Outside that
/// directory one that cannot be read may be anybody's.
pub(crate) fn may_be_of_another(vfs: &dyn Vfs, dir: &Path, path: &Path, own: DatabaseId) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    match name.and_then(file_name::parse) {
        Some((FileType::Log | FileType::LargeBatch, number)) => match wal::database_of(vfs, path, number) {
            Ok(found) => found.is_another_than(own),
            Err(error) => !error.is_not_found() && path.parent() != Some(dir),
        },
        _ => false,
    }
}

/// The database of a log; `None` if the file is no log or unreadable.
pub(crate) fn database_of(vfs: &dyn Vfs, path: &Path) -> Option<DatabaseId> {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some((FileType::Log | FileType::LargeBatch, number)) = name.and_then(file_name::parse) else { return None };
    wal::database_of(vfs, path, number).ok()
}

fn path_of(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(file_name::format(FileType::Log, number))
}

impl MissingLog {
    /// Whether its name is that of a log of a copy of the database.
    pub fn is_replaced_by_copys(&self) -> bool {
        matches!(self.in_its_place, Some(InItsPlace::OfCopy))
    }

    /// The error for a database with its logs in `dir`.
    pub fn error(&self, dir: &Path) -> Error {
        if self.is_replaced_by_copys() {
            return Error::corruption(wal::OF_A_COPY).at_path(path_of(dir, self.number));
        }
        let who = match self.named_by {
            Some(later) => format!("log {later} came after it"),
            None => "the MANIFEST names it".to_owned(),
        };
        let mut what = format!("log {} is missing: {who}, and it can hold what no table has", self.number);
        if let Some(InItsPlace::OfDatabase(other)) = self.in_its_place {
            let _ = write!(what, "; the file of its name is of the database {other}: give each its own wal_dir");
        }
        Error::corruption(what).at_path(path_of(dir, self.number))
    }
}

/// Where a database in `dir` looks for its logs, and where they may be if `wal_dir` changed.
pub(crate) struct LogPlaces {
    here: PathBuf,
    others: Vec<PathBuf>,
    /// The database is a copy that was not opened for writing yet, and `here` is not its own directory, where its logs are.
    is_of_others: bool,
    /// The database whose files were copied to this directory, and whose logs are `here`.
    original: Option<PathBuf>,
}

/// The directory that the MANIFEST notes beside its directory of logs, if the same database lies there and has its logs in the same
/// place: `dir` is a copy of its files, made by other means than ours. A database whose MANIFEST cannot be read counts by its id; a
/// place that cannot be looked at has none.
pub(crate) fn original_of(vfs: &dyn Vfs, dir: &Path, recovered: &Recovered) -> Option<PathBuf> {
    let home = recovered.home.as_deref().map(name::path)?;
    if is_same_dir(vfs, &home, dir).unwrap_or(true) {
        return None;
    }
    let is_same = match recover(vfs, &home) {
        Ok(there) => there.db_id == recovered.db_id && there.log_dir == recovered.log_dir,
        Err(_) => identity::read(vfs, &home).is_ok_and(|id| id.is_some() && id == recovered.db_id),
    };
    Some(home).filter(|_| is_same)
}

impl LogPlaces {
    /// `here`: the log directory of this open. `last`: the `wal_dir` of the MANIFEST, or of the OPTIONS file if the
    /// MANIFEST is lost.
    ///
    /// # Errors
    /// `InvalidArgument`: a log with values of tables is in another place, and not `here`. As reading the directories.
    pub fn new(
        vfs: &dyn Vfs,
        dir: &Path,
        here: &Path,
        last: Option<&str>,
        recovered: Option<&Recovered>,
    ) -> Result<LogPlaces> {
        let last = last.filter(|dir| !dir.is_empty() && *dir != LOG_DIR_OF_COPY).map(name::path);
        let original = match (&last, recovered) {
            (Some(last), Some(recovered)) if is_same_dir(vfs, last, here)? => original_of(vfs, dir, recovered),
            _ => None,
        };
        let mut others: Vec<PathBuf> = Vec::new();
        for other in std::iter::once(dir.to_owned()).chain(last) {
            if !is_same_dir(vfs, &other, here)? && !others.contains(&other) {
                others.push(other);
            }
        }
        let tables = recovered.iter().flat_map(|recovered| recovered.tables());
        for log in tables.flat_map(|meta| &meta.value_logs).map(|share| share.log).collect::<BTreeSet<_>>() {
            let own = recovered.map(Recovered::id).unwrap_or_default();
            // Those beside the tables can have the id of the original of which this was a copy.
            let is_own = |other: &Path| other == dir || !is_of_another(vfs, &path_of(other, log), own);
            let is_there = |place: &Path| vfs.exists(&path_of(place, log)).unwrap_or(true) && is_own(place);
            if let Some(other) = others.iter().find(|other| is_there(other))
                && !is_there(here)
            {
                if !vfs.exists(&path_of(here, log))? {
                    return Err(elsewhere(here, other, log, "*.splog, *.spbatch"));
                }
                let there = other.display();
                let what = format!(
                    "this log is another database's, and that of this one is in {there}: open with wal_dir={there}"
                );
                return Err(Error::invalid_argument(what).at_path(path_of(here, log)));
            }
        }
        let is_of_others = recovered.is_some_and(Recovered::is_copy) && !is_same_dir(vfs, here, dir)?;
        Ok(LogPlaces { here: here.to_owned(), others, is_of_others, original })
    }

    /// A copy has its original's database id, and must neither replay nor delete the original's logs, those below the range included.
    ///
    /// # Errors
    /// `InvalidArgument`: such a log is here, or the original of copied files has its logs here. As reading the directory.
    fn check_no_originals(&self, vfs: &dyn Vfs, own: DatabaseId) -> Result<()> {
        if let Some(original) = &self.original {
            let what = format!(
                "this directory is a copy of the files of {}, and these are that database's logs: copy the logs (*.splog, *.spbatch), \
                 too, and open the copy with wal_dir, the directory of that copy. If the database there is gone, move what is left \
                 of it away",
                original.display()
            );
            return Err(Error::invalid_argument(what).at_path(&self.here));
        }
        if !self.is_of_others || !own.is_known() {
            return Ok(());
        }
        let there = file_name::numbers_in(vfs, &self.here, FileType::Log)?.into_iter();
        let mut there = there.map(|number| path_of(&self.here, number));
        let what = "this is a copy that was not opened for writing yet, and its logs are not here: this log is of the database that it \
                    was made of, or was moved here. Open the copy once without wal_dir; or, if the other database is gone, move its \
                    logs away";
        match there.find(|log| database_of(vfs, log) == Some(own)) {
            Some(log) => Err(Error::invalid_argument(what).at_path(log)),
            None => Ok(()),
        }
    }

    /// Looks for logs of the database `own` in the other places. Two kinds count: logs missing in `found`, and newer logs whose
    /// headers note `manifest` or cannot be read. Logs of later MANIFESTs belong to the original of a copy. Without a MANIFEST,
    /// all count. `let_go` is as in [`Recovered::let_go_through`].
    ///
    /// If no log is missing, a newer one can also be of the original of which this database is a copy. So a salvage goes on without
    /// it, with a doubt.
    ///
    /// # Errors
    /// `InvalidArgument`: a log lies in another place. As reading the other places; a missing directory is no error.
    pub fn check(
        &self,
        vfs: &dyn Vfs,
        own: DatabaseId,
        found: &FoundRange,
        manifest: Option<FileNumber>,
        let_go: Option<SeqNo>,
        mode: WalRecoveryMode,
    ) -> Result<Option<Doubt>> {
        self.check_no_originals(vfs, own)?;
        let last = found.logs.last().map(|log| log.number);
        let is_dispensable = |number| was_let_go(vfs, &self.here, number, &found.logs, let_go);
        let has_all = found.missing.iter().all(|missing| is_dispensable(missing.number));
        let may_be_a_copy = last.is_some() && has_all;
        for other in &self.others {
            if !vfs.exists(other)? {
                continue;
            }
            for number in file_name::numbers_in(vfs, other, FileType::Log)? {
                let path = path_of(other, number);
                let is_missed = found.missing.iter().any(|missing| missing.number == number);
                let is_missed = is_missed && !is_of_another(vfs, &path, own);
                let is_needed = is_missed || self.is_unnamed(vfs, own, &path, number, manifest, last)?;
                let is_past = manifest.is_none() && last > Some(number);
                if !is_needed || is_past || is_dispensable(number) {
                    continue;
                }
                if !may_be_a_copy {
                    return Err(elsewhere(&self.here, other, number, "*.splog, *.spbatch"));
                }
                let (here, there) = (self.here.display(), other.display());
                if mode == WalRecoveryMode::SkipAnyCorruptedRecords {
                    let what = format!("log {number} is newer than those in {here}, and is left out: it is in {there}");
                    return Ok(Some(Doubt::of_all(what)));
                }
                let what = format!(
                    "log {number} is newer than those in {here}, where this open looks for logs, and is in {there}. If this is a copy \
                     of a database that has its logs there, open or repair the copy once with \
                     wal_recovery_mode=kSkipAnyCorruptedRecords. Otherwise open with wal_dir={there}, or copy the logs (*.splog, \
                     *.spbatch) from there to {here}"
                );
                return Err(Error::invalid_argument(what).at_path(&self.here));
            }
        }
        Ok(None)
    }

    /// Whether a log in another place is the database's, of the time of `manifest`, holds records and is not here. One whose
    /// header cannot be read counts, too, if it is newer than the `last` one here.
    fn is_unnamed(
        &self,
        vfs: &dyn Vfs,
        own: DatabaseId,
        path: &Path,
        number: FileNumber,
        manifest: Option<FileNumber>,
        last: Option<FileNumber>,
    ) -> Result<bool> {
        if vfs.exists(&path_of(&self.here, number))? {
            return Ok(false);
        }
        let Ok(head) = wal::read_head(vfs, path, number) else { return Ok(last.is_some_and(|last| last < number)) };
        let is_own = head.database.is_known() && !head.database.is_another_than(own);
        let is_noted = |last: FileNumber| head.manifest.is_some_and(|noted| noted.bytes_of(last).is_some());
        let is_of_then = manifest.is_none_or(is_noted);
        Ok(is_own && is_of_then && has_records(vfs, path, number))
    }
}

/// The error for a database that lacks logs in its log directory. They are in no other place.
pub(crate) fn refusal(places: &LogPlaces, missing: &[MissingLog]) -> Error {
    let dir = &places.here;
    let Some(first) = missing.first() else { return Error::corruption("no log is missing").at_path(dir) };
    let others = match missing.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let nor: String = places.others.iter().map(|other| format!(", nor is it in {}", other.display())).collect();
    let way_out = "restore the file, or keep what the other logs hold with wal_recovery_mode=kSkipAnyCorruptedRecords";
    let error = first.error(dir);
    let what = format!("{}{others}{nor}; {way_out}", error.message());
    Error::corruption(what).at_path(path_of(dir, first.number))
}

/// The error for logs expected in `dir` but found in `other`.
pub(crate) fn elsewhere(dir: &Path, other: &Path, number: FileNumber, names: &str) -> Error {
    let (here, there) = (dir.display(), other.display());
    let what = format!(
        "log {number} is not in {here}, where this open looks for logs, but in {there}; open with wal_dir={there}, or, if \
         another database uses that directory, copy the logs ({names}) from there to {here}"
    );
    Error::invalid_argument(what).at_path(dir)
}

/// The error for RocksDB's logs in `here` that may be of the original of which the database in `dir` is a copy. `sign`: by what.
pub(crate) fn of_original(dir: &Path, here: &Path, sign: &str) -> Error {
    let (copy, here) = (dir.display(), here.display());
    let what = format!(
        "the logs in {here} may be another database's: this one {sign}, as a copy that RocksDB made with the original's option wal_dir. \
         If it is a copy, open it with wal_dir={copy}. If the logs in {here} are its own, copy them (*.log) to {copy} before, in place \
         of those there, or let RocksDB open it once with that wal_dir (and write_identity_file=true)"
    );
    Error::invalid_argument(what).at_path(dir)
}
