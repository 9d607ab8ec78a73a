//! Reads the MANIFEST named by CURRENT: every family with its tables, and the numbers the database continues from.
//!
//! Edits of all families are replayed into plain lists; no table is opened and nothing is written. Groups of edits hold
//! as a whole or not at all (D3). A cut-off end is skipped; damage anywhere else is an error naming its offset (D2).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, ErrorKind, FamilyId, FileNumber, InternalOrder, Result, SeqNo};
use vfs::{IoClass, Vfs};
use wal::framed::{FramedEnd, FramedReader, FramedRecord};
use wal::{DatabaseId, Frontiers};

use super::builder::VersionBuilder;
use super::current::read_current;
use super::edit::{LOG_DIR_OF_COPY, LogEnd, NotedLogs, VersionEdit, WalRange};
use super::edit_codec;
use super::file_name::{self, FileType};
use super::manifest::manifest_path;
use super::manifest_copy::{self, Comparison};
use super::replay::{RecoveredFamily, Replay, RocksdbLogs};
use super::session::{self, Session};
use super::table_file::FileMeta;
use super::table_store::TableStore;
use super::tail::{self, Stop};
use super::version::Version;

/// State recorded in a directory's MANIFEST.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The number of the MANIFEST.
    pub manifest: FileNumber,
    /// Where the MANIFEST's edits end, in bytes; a group that is not whole does not count. `None`: a rescue chose the state,
    /// and logs may know of a later one.
    pub manifest_end: Option<u64>,
    /// Live families, ascending by id, the default one first.
    pub families: Vec<RecoveredFamily>,
    /// Larger than the number of any file in the directory.
    pub next_file: FileNumber,
    /// As `next_file`, by the MANIFEST's records alone.
    pub noted_next: FileNumber,
    /// At or above every sequence number in the MANIFEST (S1).
    pub last_seq: SeqNo,
    /// As `last_seq`, but not above the last write: T may be a number that was given and not logged yet.
    pub last_written: SeqNo,
    /// The largest family id ever used.
    pub max_family: u32,
    /// RocksDB's WALs below this number are not needed. 0: not recorded.
    pub min_log_to_keep: FileNumber,
    /// RocksDB's WALs that were there.
    pub(crate) rocksdb_logs: RocksdbLogs,
    /// Ends of logs.
    pub log_ends: Vec<LogEnd>,
    /// How far the logs were synced and published when the MANIFEST was last written.
    pub log_frontiers: Frontiers,
    /// A running database wrote the MANIFEST: only such a one notes frontiers with a range of logs.
    pub is_writers: bool,
    /// `None` if the MANIFEST records none: RocksDB wrote it, or there is no WAL.
    pub wal_range: Option<WalRange>,
    /// The option `wal_dir` at the last open for writing.
    pub log_dir: Option<String>,
    /// The database's directory at that open, noted beside a `log_dir` elsewhere.
    pub home: Option<String>,
    /// The opens for writing, oldest first; empty: of earlier versions, or not known.
    pub sessions: Vec<Session>,
    /// Number of the last OPTIONS file; `None`: nothing tells it.
    pub options_file: Option<FileNumber>,
    /// The database's id.
    pub db_id: Option<String>,
    /// Written by us for our own use; false for RocksDB's MANIFESTs and our exports.
    pub fenced: bool,
    /// Set by a repair: what stands in for tables of queued ingests; `None` for a lost table.
    pub substitutes: BTreeMap<FileNumber, Option<FileMeta>>,
    /// Warnings about skipped content, for the info log.
    pub warnings: Vec<String>,
}

/// Recovers from the last MANIFEST in `dir`: CURRENT's, or a later one that is whole.
///
/// # Errors
/// `Corruption` for damage, `Unsupported` for unsupported fields; both name file and offset. Not found
/// (`Error::is_not_found`) if there is no CURRENT: then there is no database.
pub fn recover(vfs: &dyn Vfs, dir: &Path) -> Result<Recovered> {
    let manifest = last_manifest(vfs, dir)?;
    let mut comparison = Comparison::begin(vfs, dir, manifest)?;
    let path = manifest_path(dir, manifest);
    if !vfs.exists(&path)? {
        return Err(Error::corruption("CURRENT names a MANIFEST that is not there").at_path(path));
    }
    let mut replay = Replay::default();
    let mut end = 0;
    let warnings = read_edits_from(vfs, &path, 0, |record_end, record, edits| {
        comparison.see(record);
        let added = edits.into_iter().try_for_each(|edit| replay.add(edit));
        added.map_err(|e| e.at_path(&path).at_offset(record.offset))?;
        if !replay.is_in_group() {
            end = record_end;
        }
        Ok(())
    })?;
    comparison.check(dir, manifest, replay.is_fenced().then_some(end))?;
    let mut recovered = replay.finish(manifest).map_err(|error| error.at_path(&path))?;
    recovered.manifest_end = Some(end);
    recovered.warnings.extend(warnings);
    recovered.see_files_in(vfs, dir)?;
    Ok(recovered)
}

/// As [`recover`]; or, where a part is damaged or lost, the state that a MANIFEST and its copy prove: those that CURRENT names, else
/// the newest. In a marked directory, too, where the state may be another's.
///
/// # Errors
/// As [`recover`], if they prove none. As [`ReadManifest::read`].
pub(crate) fn recover_proven(vfs: &dyn Vfs, dir: &Path) -> Result<Recovered> {
    let error = match recover(vfs, dir) {
        Err(error) if vfs.exists(dir)? => error,
        found => return found,
    };
    let mut numbers = file_name::numbers_in(vfs, dir, FileType::Manifest)?;
    numbers.extend(file_name::numbers_in(vfs, dir, FileType::ManifestCopy)?);
    let Some(number) = read_current(vfs, dir).ok().or_else(|| numbers.last().copied()) else { return Err(error) };
    let Some(proven) = Pair::read(vfs, dir, number)?.proven else { return Err(error) };
    let end = proven.end;
    Ok(Recovered { manifest_end: Some(end), ..proven.replay.finish(number)? })
}

/// The last MANIFEST that is whole: CURRENT's, or a later one of ours after one of ours. A roll-over writes MANIFEST and copy, then CURRENT; if it is
/// cut off between, or CURRENT went back to an older state, the later MANIFEST holds the same or more.
///
/// # Errors
/// As of reading CURRENT. `Unsupported`, `Io`: as of reading the later one.
fn last_manifest(vfs: &dyn Vfs, dir: &Path) -> Result<FileNumber> {
    let named = read_current(vfs, dir)?;
    let later = file_name::numbers_in(vfs, dir, FileType::ManifestCopy)?.split_off(&FileNumber(named.0 + 1));
    if later.is_empty() {
        return Ok(named);
    }
    let Some(current) = ReadManifest::read(vfs, &manifest_path(dir, named))? else { return Ok(named) };
    let is_same =
        |replay: &Replay| replay.is_fenced() && current.replay.is_fenced() && replay.db_id() == current.replay.db_id();
    for number in later.into_iter().rev() {
        let whole = |path: &Path| -> Result<bool> {
            Ok(ReadManifest::read(vfs, path)?.is_some_and(|file| file.is_whole() && is_same(&file.replay)))
        };
        if whole(&manifest_copy::copy_path(dir, number))? && whole(&manifest_path(dir, number))? {
            return Ok(number);
        }
    }
    Ok(named)
}

/// The edits of a MANIFEST, or of its copy, up to its end or its first damage.
pub(crate) struct ReadManifest {
    pub path: PathBuf,
    pub replay: Replay,
    /// Where the whole edits end.
    pub end: u64,
    /// Where the whole edits before the last ones end. A block's padding can follow.
    end_before: u64,
    bytes: u64,
    ending: Ending,
    /// A state the database once had.
    is_state: bool,
}

/// What follows the whole edits of a MANIFEST or of its copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Clean,
    /// The rest of an append that was cut off, by the looks of it.
    CutOff,
    Damage,
}

impl ReadManifest {
    /// `None` if there is no such file.
    ///
    /// # Errors
    /// `Unsupported`: contents unknown to this version. The file system's.
    pub fn read(vfs: &dyn Vfs, path: &Path) -> Result<Option<ReadManifest>> {
        let (mut replay, mut end, mut end_before) = (Replay::default(), 0, 0);
        let read = read_edits_from(vfs, path, 0, |record_end, record, edits| {
            let added = edits.into_iter().try_for_each(|edit| replay.add(edit));
            added.map_err(|error| error.at_path(path).at_offset(record.offset))?;
            (end_before, end) = (end, record_end);
            Ok(())
        });
        let ending = match read {
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Corruption => Ending::Damage,
            Err(error) => return Err(error),
            Ok(cut_off) if cut_off.is_empty() => Ending::Clean,
            Ok(_) => Ending::CutOff,
        };
        let is_state = replay.is_whole_state() && replay.clone().finish(FileNumber(0)).is_ok();
        let bytes = match vfs.metadata(path) {
            Err(error) if error.is_not_found() => return Ok(None), // deleted beside a writer
            metadata => metadata?.len,
        };
        Ok(Some(ReadManifest { path: path.to_owned(), replay, end, end_before, bytes, ending, is_state }))
    }

    /// A state the database once had, and no damage behind it.
    fn is_whole(&self) -> bool {
        self.is_state && self.ending != Ending::Damage
    }

    /// Whether a copy is as far as one of this MANIFEST is at any instant: it has every record before the next one begins.
    fn may_have(&self, copy: &ReadManifest) -> bool {
        match (self.ending, copy.ending) {
            (Ending::Damage, _) | (_, Ending::Damage) => false,
            (Ending::CutOff, _) => copy.bytes == self.end,
            (Ending::Clean, _) => copy.bytes <= self.end && (copy.end == self.end || copy.end == self.end_before),
        }
    }
}

/// What a MANIFEST and its copy prove together (R1).
pub(crate) struct Pair {
    /// The file that proves the last state.
    pub proven: Option<ReadManifest>,
    /// The other file is there, and is as far as it has to be.
    pub is_confirmed: bool,
    /// There is a copy, and it is as far as it has to be beside this MANIFEST.
    pub has_right_copy: bool,
}

/// Tries to read both files between two records of a writer beside.
const TRIES_BESIDE_WRITER: usize = 3;

impl Pair {
    /// # Errors
    /// As [`ReadManifest::read`].
    pub fn read(vfs: &dyn Vfs, dir: &Path, number: FileNumber) -> Result<Pair> {
        let paths = [manifest_path(dir, number), manifest_copy::copy_path(dir, number)];
        let bytes = || paths.each_ref().map(|path| vfs.metadata(path).map_or(0, |metadata| metadata.len));
        let mut tries = 1;
        loop {
            let before = bytes();
            let [manifest, copy] = &paths;
            let pair = Pair::of(ReadManifest::read(vfs, manifest)?, ReadManifest::read(vfs, copy)?);
            if tries == TRIES_BESIDE_WRITER || before == bytes() {
                return Ok(pair);
            }
            tries += 1;
        }
    }

    /// The pair without a file of another database's than `owner`, where the files hold different records; and whether it is
    /// certain which is the owner's.
    ///
    /// # Errors
    /// As [`ReadManifest::read`].
    pub fn of_owner(vfs: &dyn Vfs, dir: &Path, number: FileNumber, owner: DatabaseId) -> Result<(Pair, bool)> {
        if manifest_copy::first_difference(vfs, dir, number)?.is_none() {
            return Ok((Pair::read(vfs, dir, number)?, true));
        }
        let of_owner = |path: &Path| -> Result<Option<ReadManifest>> {
            let is_another = |id: &str| DatabaseId::new(id).is_another_than(owner);
            let file = ReadManifest::read(vfs, path)?;
            Ok(file.filter(|file| !file.replay.db_id().is_some_and(is_another)))
        };
        let manifest = of_owner(&manifest_path(dir, number))?;
        let copy = of_owner(&manifest_copy::copy_path(dir, number))?;
        let is_certain = owner.is_known() && manifest.is_some() != copy.is_some();
        Ok((Pair::of(manifest, copy), is_certain))
    }

    /// Whether there is a copy that is as far as it has to be beside a MANIFEST that can be read. A device's read failure is the
    /// copy's then, and the copy counts as none.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn has_right_copy(vfs: &dyn Vfs, dir: &Path, number: FileNumber) -> Result<bool> {
        match Pair::read(vfs, dir, number) {
            Err(error) if error.is_read_failure() => Ok(false),
            pair => pair.map(|pair| pair.has_right_copy),
        }
    }

    /// A file proves the last state if it is whole, and nothing can lie behind its end in the other. The MANIFEST has every
    /// record whole before the copy has it. So a cut-off end is one only in the MANIFEST, and only if the copy does not go past
    /// it: else records may have been up to the file's end.
    pub fn of(manifest: Option<ReadManifest>, copy: Option<ReadManifest>) -> Pair {
        let copy_bytes = copy.as_ref().map_or(0, |copy| copy.bytes);
        let has_right_copy =
            manifest.as_ref().zip(copy.as_ref()).is_some_and(|(manifest, copy)| manifest.may_have(copy));
        let reach = |file: &ReadManifest, may_be_cut_off: bool| match file.ending {
            Ending::Clean => file.end,
            Ending::CutOff if may_be_cut_off => file.end,
            _ => file.bytes,
        };
        let of_manifest = manifest.map(|file| (reach(&file, copy_bytes <= file.end), file));
        let of_copy = copy.map(|file| (reach(&file, false), file));
        let proves = |one: &Option<(u64, ReadManifest)>, other: &Option<(u64, ReadManifest)>| {
            let other = other.as_ref().map_or(0, |(reach, _)| *reach);
            one.as_ref().is_some_and(|(reach, file)| file.is_whole() && file.end == *reach && file.end >= other)
        };
        let (proven, is_confirmed) = match (proves(&of_manifest, &of_copy), proves(&of_copy, &of_manifest)) {
            (true, _) => (of_manifest, has_right_copy),
            (false, true) => {
                let is_as_long = |(_, manifest): &(u64, ReadManifest)| {
                    Some(manifest.bytes) == of_copy.as_ref().map(|copy| copy.1.end)
                };
                let is_confirmed = of_manifest.as_ref().is_some_and(is_as_long);
                (of_copy, is_confirmed)
            }
            (false, false) => (None, false),
        };
        Pair { proven: proven.map(|(_, file)| file), is_confirmed, has_right_copy }
    }
}

impl Recovered {
    /// Every write up to this number is in tables, whatever T the families record. If a fenced MANIFEST records no live
    /// WAL range, as in a backup made after a flush, all data is in tables. 0 otherwise.
    pub fn all_in_tables(&self) -> SeqNo {
        if self.fenced && self.wal_range.is_none() { self.last_seq } else { SeqNo::ZERO }
    }

    /// Of logs kept beside a backup, those with numbers through this one may be gone: the original let them go once all was in
    /// tables. `None`: a database lets a log go only after its MANIFEST does, and one that the MANIFEST wants can hold a
    /// prepared transaction, which no table shows.
    pub(crate) fn let_go_through(&self) -> Option<SeqNo> {
        let flushed = self.families.iter().map(|family| family.flushed_through.unwrap_or_default()).min();
        self.is_backups().then(|| self.all_in_tables().max(flushed.unwrap_or_default()))
    }

    /// The oldest of RocksDB's WALs that is read. Those before [`oldest_rocksdb_log`](Self::oldest_rocksdb_log) count for their
    /// prepared transactions: RocksDB reads every log that is there until it has noted one to keep.
    pub(crate) fn oldest_read_rocksdb_log(&self) -> FileNumber {
        self.min_log_to_keep
    }

    /// The oldest of RocksDB's WALs that has to be there. With prepared transactions it is older than all unflushed changes.
    pub(crate) fn oldest_rocksdb_log(&self) -> FileNumber {
        match self.min_log_to_keep {
            FileNumber(0) => self.families.iter().map(|family| family.log_number).min().unwrap_or_default(),
            kept => kept,
        }
    }

    /// Whether the MANIFEST names one of the logs `found` that are needed: it begins right behind a log of RocksDB's.
    pub(crate) fn names_rocksdb_log_of(&self, found: &BTreeSet<FileNumber>) -> bool {
        let known = &self.rocksdb_logs;
        let first = FileNumber(self.manifest.0.saturating_sub(1));
        let named = self.families.iter().map(|family| family.log_number).chain(known.begun.keys().copied());
        named.chain(known.synced.keys().copied()).chain([first]).any(|log| found.contains(&log))
    }

    /// Number through which the family is flushed; `None` if there is no such family.
    pub(crate) fn flushed_through(&self, family: FamilyId) -> Option<SeqNo> {
        Some(self.family(family)?.flushed_through.unwrap_or_default())
    }

    /// Whether logs may follow that know of other families and of another MANIFEST, perhaps of the same number: the MANIFEST
    /// is a backup's, which can be restored beside kept logs.
    pub(crate) fn is_backups(&self) -> bool {
        self.fenced && !self.is_writers && self.wal_range.is_none_or(|range| range.newest.is_none())
    }

    /// The number of the MANIFEST that its logs note. `None`: a backup's, and the logs kept beside it note the original's.
    pub(crate) fn noted_by_logs(&self) -> Option<FileNumber> {
        (!self.is_backups()).then_some(self.manifest)
    }

    /// The id that the database had: what lies in the directory has it.
    pub(crate) fn id(&self) -> DatabaseId {
        DatabaseId::new(self.db_id.as_deref().unwrap_or_default())
    }

    /// Whether it is a checkpoint that was not opened for writing yet: it has its original's id.
    pub(crate) fn is_copy(&self) -> bool {
        self.log_dir.as_deref() == Some(LOG_DIR_OF_COPY)
    }

    /// The session that made the log or large batch `number`; 0: not known.
    pub(crate) fn session_of(&self, number: FileNumber) -> u32 {
        session::of_log(&self.sessions, number).unwrap_or_default()
    }

    /// What the MANIFEST knows of our logs.
    pub(crate) fn noted_logs(&self) -> NotedLogs {
        NotedLogs {
            range: self.wal_range,
            frontiers: self.log_frontiers,
            sessions: self.sessions.clone(),
            manifest: self.noted_by_logs(),
            ends: self.log_ends.clone(),
        }
    }

    /// No log of ours is needed any more, and none is missed.
    pub(crate) fn forget_logs(&mut self) {
        (self.wal_range, self.log_frontiers) = (None, Frontiers::default());
    }

    /// Whether anything was written. A kill in the first open leaves a database without anything.
    pub(crate) fn is_in_use(&self) -> bool {
        self.last_seq.0 > 0
            || self.tables().next().is_some()
            || self.wal_range.is_some_and(|range| range.newest.is_some())
    }

    /// The family of a number.
    pub fn family(&self, id: FamilyId) -> Option<&RecoveredFamily> {
        self.families.iter().find(|family| family.id == id)
    }

    /// The tables of all families.
    pub fn tables(&self) -> impl Iterator<Item = &FileMeta> {
        self.families.iter().flat_map(|family| &family.tables).map(|(_, meta)| meta)
    }

    /// Checks that every table lies in the database's directory. One in another directory is not looked for, and must not count
    /// as missing.
    ///
    /// # Errors
    /// `Unsupported`: as [`table_path`].
    pub(crate) fn check_paths(&self, dir: &Path) -> Result<()> {
        let mut paths = self.tables().map(|meta| table_path(dir, meta.path_id, meta.physical_number()));
        paths.try_for_each(|path| path.map(drop)).map_err(|error| error.at_path(dir))
    }

    /// Notes the OPTIONS files in the database's directory, and passes the numbers there.
    ///
    /// # Errors
    /// As [`pass_numbers_in`](Self::pass_numbers_in).
    pub(crate) fn see_files_in(&mut self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        let options = file_name::numbers_in(vfs, dir, FileType::Options)?;
        self.rocksdb_logs.options = options.last().copied().unwrap_or_default();
        let earlier = options.range(..self.manifest).next_back().copied();
        self.rocksdb_logs.options_before = earlier.unwrap_or(self.rocksdb_logs.options);
        self.pass_numbers_in(vfs, dir)
    }

    /// Raises the next file number above every database file in `dir`, leftovers of a crash included, and above every
    /// log of the MANIFEST.
    ///
    /// # Errors
    /// Errors of reading the directory.
    pub fn pass_numbers_in(&mut self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        self.next_file = self.next_file.max(file_name::next_number(vfs, dir)?);
        self.pass_named_logs();
        Ok(())
    }

    /// Raises the next file number above every log of the MANIFEST. A new log names the one before it, which has to be
    /// the smaller number even if that log is lost.
    pub(crate) fn pass_named_logs(&mut self) {
        let range = self.wal_range.into_iter().flat_map(|range| [Some(range.oldest), range.newest]).flatten();
        let of_values = self.tables().flat_map(|meta| &meta.value_logs).map(|share| share.log);
        let ends = self.log_ends.iter().map(|end| end.log);
        let frontiers = [self.log_frontiers.synced.log, self.log_frontiers.published.log];
        let named = range.chain(ends).chain(of_values).chain(frontiers).max();
        let next = named.map_or(0, |log| log.0.saturating_add(1));
        self.next_file = self.next_file.max(FileNumber(next));
    }
}

/// Calls `visit` with each record of a MANIFEST and its edits. Returns warnings.
pub(super) fn read_edits(
    vfs: &dyn Vfs,
    path: &Path,
    mut visit: impl FnMut(&FramedRecord, Vec<VersionEdit>) -> Result<()>,
) -> Result<Vec<String>> {
    read_edits_from(vfs, path, 0, |_, record, edits| visit(record, edits))
}

/// Whether a record of the MANIFEST at `path`, or of its copy, adds the table. Records from an unreadable one on do not count.
///
/// # Errors
/// The file system's.
pub(crate) fn has_named_in(vfs: &dyn Vfs, path: &Path, table: FileNumber) -> Result<bool> {
    let mut has_named = false;
    let read = read_edits(vfs, path, |_, edits| {
        let mut added = edits.iter().flat_map(|edit| &edit.added);
        has_named |= added.any(|(_, meta)| meta.physical_number() == table);
        Ok(())
    });
    match read {
        Err(error) if !(error.kind() == ErrorKind::Corruption || error.is_not_found() || error.is_read_failure()) => {
            Err(error)
        }
        _ => Ok(has_named),
    }
}

/// As [`read_edits`], from the record at `from` on. `visit` also gets each record's end.
pub(super) fn read_edits_from(
    vfs: &dyn Vfs,
    path: &Path,
    from: u64,
    visit: impl FnMut(u64, &FramedRecord, Vec<VersionEdit>) -> Result<()>,
) -> Result<Vec<String>> {
    let warnings = read_to_end(vfs, path, from, visit)?;
    match vfs.read_failure(path) {
        Some(error) => Err(unreadable(path, &error)),
        None => Ok(warnings),
    }
}

/// The damage of a MANIFEST, or of its copy, whose unreadable part was filled. The filling can pass for a torn end.
fn unreadable(path: &Path, error: &Error) -> Error {
    let what = format!("a part of it cannot be read: {}", error.message());
    Error::corruption(what).at_path(path).at_offset(error.offset().unwrap_or_default())
}

fn read_to_end(
    vfs: &dyn Vfs,
    path: &Path,
    from: u64,
    mut visit: impl FnMut(u64, &FramedRecord, Vec<VersionEdit>) -> Result<()>,
) -> Result<Vec<String>> {
    let mut reader = FramedReader::open(vfs, path, None, IoClass::Manifest)?;
    reader.go_on_at(from)?;
    loop {
        let (offset, stop, error) = match reader.next() {
            Ok(Some(record)) => {
                let edits = edit_codec::decode_record(&record.payload);
                visit(reader.good_end(), &record, edits.map_err(|e| e.at_path(path).at_offset(record.offset))?)?;
                continue;
            }
            Ok(None) => match reader.end() {
                Some(FramedEnd::Torn { offset }) => (offset, Stop::CutOff, None),
                Some(FramedEnd::OtherLog { offset } | FramedEnd::Damaged { offset }) => (offset, Stop::Damage, None),
                Some(FramedEnd::Zeros { offset }) => return Ok(vec![cut_off(path, offset)]),
                Some(FramedEnd::Clean) | None => return Ok(Vec::new()),
            },
            Err(error) if error.kind() == base::ErrorKind::Corruption => {
                // The error names the damaged fragment of a record; tearing concerns the whole record.
                (reader.good_end(), Stop::Damage, Some(error))
            }
            Err(error) => return Err(error),
        };
        if tail::is_torn(&*vfs.open(path)?, offset, stop)? {
            return Ok(vec![cut_off(path, offset)]);
        }
        let what = "damaged in the middle, or where it was synced";
        return Err(error.unwrap_or_else(|| Error::corruption(what).at_path(path).at_offset(offset)));
    }
}

fn cut_off(path: &Path, offset: u64) -> String {
    format!("{} has no whole record from byte {offset} on: it was never written, or is lost", path.display())
}

/// The path of a table: all tables of a database lie in its directory.
///
/// # Errors
/// `Unsupported`: the table lies in another of RocksDB's paths.
pub(crate) fn table_path(dir: &Path, path_id: u32, number: FileNumber) -> Result<PathBuf> {
    let name = file_name::format(FileType::Table, number);
    if path_id > 0 {
        let what = format!(
            "table {name} lies in path {path_id} of RocksDB's db_paths, and only tables in the database's directory are read"
        );
        return Err(Error::unsupported(what));
    }
    Ok(dir.join(name))
}

/// Checks that a table's file has the `bytes` stated by `source`.
///
/// # Errors
/// `Corruption`: another size, or no file; `missing` is the message then.
pub(crate) fn check_table(vfs: &dyn Vfs, path: &Path, bytes: u64, source: &str, missing: &str) -> Result<()> {
    let what = match vfs.metadata(path) {
        Ok(metadata) if metadata.len == bytes => return Ok(()),
        Ok(_) => match vfs.open(path)?.len()? {
            len if len == bytes => return Ok(()), // by a symbolic link
            len => format!("the table has {len} bytes, {source} says {bytes}"),
        },
        Err(error) if error.is_not_found() => missing.to_owned(),
        Err(error) => return Err(error),
    };
    Err(Error::corruption(what).at_path(path))
}

impl RecoveredFamily {
    /// Checks that every table file exists with the length in the MANIFEST, without opening any.
    ///
    /// # Errors
    /// `Corruption` naming the file if it is missing or of different length.
    pub fn check_tables(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        let missing = format!("a table of the family {:?} is missing", self.name);
        let mut checked = BTreeSet::new();
        let files = self.tables.iter().map(|(_, meta)| (meta.path_id, meta.physical_number(), meta.physical_bytes()));
        for (path_id, number, bytes) in files.filter(|file| checked.insert(*file)) {
            check_table(vfs, &table_path(dir, path_id, number)?, bytes, "the MANIFEST", &missing)?;
        }
        Ok(())
    }

    /// Builds the family's first version.
    ///
    /// # Errors
    /// `Corruption` if tables overlap in a sorted level or lie below the last one.
    pub fn version(&self, order: InternalOrder, num_levels: usize, store: &Arc<TableStore>) -> Result<Version> {
        let base = Version::empty(order, num_levels);
        let mut builder = VersionBuilder::new(&base, store);
        builder.apply(&VersionEdit { added: self.tables.clone(), ..VersionEdit::new(self.id) })?;
        Ok(builder.build()?.version)
    }
}
