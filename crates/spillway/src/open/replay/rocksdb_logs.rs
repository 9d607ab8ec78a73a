//! Replay of RocksDB's logs, as RocksDB replays them. Keeps D2, P1.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use base::note;
use base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNo, name};
use vfs::{IoClass, RandomFile, Vfs};
use wal::framed::FramedReader;
use wal::{DatabaseId, FILE_HEADER_BYTES, KnownEnd, LogConfig, LogFile, Position};

use super::rocksdb_history::{DamagedLog, RocksdbHistory, family_ahead_of};
use super::{LogReplay, wal_range};
use crate::batch::BatchReader;
use crate::core::FamilyState;
use crate::core::context::{is_same_dir, named_log_dir};
use crate::core::doubt::Doubt;
use crate::core::unnamed::{Accounted, Unexplained};
use crate::open::log_owner;
use crate::open::log_survey;
use crate::open::options_file;
use crate::records::rocksdb_record::{RocksdbStep, RocksdbSteps, steps_of};
use crate::version::file_name::{self, FileType};
use crate::version::log_life::LogsOnDemand;
use crate::version::manifest::manifest_path;
use crate::version::manifest_copy;
use crate::version::recover::{Pair, Recovered};
use crate::version::table_file::FileMeta;

const DAMAGED: &str = "is damaged, and records are lost";

/// What [`RocksdbRange::lacks_steps`](super::rocksdb_range::RocksdbRange::lacks_steps) tells of a log.
pub(crate) const LACKS_STEPS: &str = "is damaged: a transaction may have been prepared there, or rolled back";

/// Makes sure that RocksDB's logs from the oldest needed one on are where this reads them, and are those of the database in `dir`.
/// They name no database. Other files prove whose they are, and each rule rests on those before it:
///
/// 1. IDENTITY is where RocksDB opened the database for writing. RocksDB's copies lack it: their logs lie beside their tables, or they
///    have none, and the option `wal_dir` in their OPTIONS file is their original's.
/// 2. Else that option tells where RocksDB had the logs last.
/// 3. In another directory than `dir` they are another database's where this one may be a copy, and unless that option names the
///    directory, or the MANIFEST one of them.
/// 4. What has records in another place is the database's as well, and must not be passed over.
/// 5. Where nothing lies elsewhere, a log is lost that the MANIFEST names, or an open began, and that only an original needs.
///
/// `named`: the log directory, if not `dir` by default. `recovered`: what the MANIFEST tells, if there is one. Returns why it cannot be
/// known, if it cannot.
///
/// # Errors
/// `InvalidArgument`: they are not. As reading the directories.
pub(crate) fn check_place<'a>(
    vfs: &dyn Vfs,
    dir: &Path,
    named: Option<&Path>,
    recovered: impl Into<Option<&'a Recovered>>,
) -> Result<Option<Error>> {
    let (here, recovered) = (named.unwrap_or(dir), recovered.into());
    let needed = recovered.map_or(FileNumber(0), Recovered::oldest_rocksdb_log);
    let found = needed_logs(vfs, here, needed)?;
    let is_in_dir = is_same_dir(vfs, here, dir)?;
    let is_original = vfs.exists(&dir.join(file_name::format(FileType::Identity, FileNumber(0))))?;
    // 1. Logs there tell that it is a copy, and so does a caller who names that directory.
    if is_in_dir && !is_original && (named.is_some() || !found.is_empty()) {
        return Ok(None);
    }
    // 2.
    let (last, unknown) = match options_file::wal_dir(vfs, dir) {
        Err(error) if error.kind() == ErrorKind::Corruption => (None, Some(error)),
        last => (last?.as_deref().map(name::path), None),
    };
    // 3.
    let has_logs = !needed_logs(vfs, here, FileNumber(0))?.is_empty();
    if !is_in_dir {
        // A last place that cannot be looked at is another one.
        let is_last = last.as_ref().is_some_and(|last| is_same_dir(vfs, here, last).unwrap_or(false));
        let is_named = recovered.is_some_and(|recovered| recovered.names_rocksdb_log_of(&found));
        let is_unproven = (!is_last && !is_named).then(|| "names none of them, nor that directory".to_owned());
        let sign = sign_of_copy(vfs, dir, needed, &found, is_original, is_last)?.or(is_unproven);
        if let Some(sign) = sign.filter(|_| has_logs) {
            return Err(wal_range::of_original(dir, here, &sign));
        }
        check_no_originals(vfs, dir, here, recovered)?;
    }
    // 4. An open of RocksDB's writes the OPTIONS file behind its first log. Its MANIFEST can be that of an earlier open.
    let options = file_name::numbers_in(vfs, dir, FileType::Options)?.last().copied().unwrap_or_default();
    let given = recovered.map_or(FileNumber(u64::MAX), |recovered| recovered.noted_next.max(options));
    let may_be_copy = is_in_dir && !is_original;
    check_none_elsewhere(vfs, here, &found, dir, false, may_be_copy, needed..given)?;
    if let Some(last) = &last {
        // Beside the tables are this database's, if any: who copies them there may leave an empty one.
        let is_last = is_original && !is_in_dir;
        check_none_elsewhere(vfs, here, &found, last, is_last, may_be_copy, needed..given)?;
    }
    // 5.
    let lost = match recovered.filter(|_| is_original) {
        Some(recovered) => {
            // One beside the tables is empty, or counted before. A close may name the number behind its last log as the oldest needed.
            let is_begun = recovered.rocksdb_logs.begun.contains_key(&needed);
            let begun = if is_begun { needed } else { FileNumber(0) };
            let first = begun.max(FileNumber(recovered.manifest.0.saturating_sub(1)));
            let there = &needed_logs(vfs, dir, first)? | &found;
            lost_last(here, &there, recovered).or(lost_first(vfs, dir, here, &there, recovered)?)
        }
        None => None,
    };
    // A directory that the caller named is where its logs are.
    Ok(lost.or(unknown.filter(|_| is_in_dir && found.is_empty())))
}

/// A sign that the database in `dir` is a copy: then the logs in another directory, of which those `found` are needed, are its
/// original's. `is_last`: RocksDB had the logs in that directory last.
fn sign_of_copy(
    vfs: &dyn Vfs,
    dir: &Path,
    needed: FileNumber,
    found: &BTreeSet<FileNumber>,
    is_original: bool,
    is_last: bool,
) -> Result<Option<String>> {
    let beside = needed_logs(vfs, dir, needed)?;
    // RocksDB that goes on in another directory begins a new log there, and leaves an empty one beside the tables until its next open.
    let is_left = is_original && is_last && beside.last() < found.last();
    let beside = if is_left { written_logs(vfs, dir, needed)?.first().copied() } else { beside.first().copied() };
    let has_no_id = (!is_original && is_last).then(|| "has no file IDENTITY".to_owned());
    Ok(beside.map(|log| format!("has log {log} beside its tables")).or(has_no_id))
}

/// The error if the last log that the MANIFEST names is not among those `found`, nor a later one. That IDENTITY is there proves no
/// more than that RocksDB began to open the database: the words tell what to do of a copy. The times of the files prove nothing, for
/// tools that copy files change them.
fn lost_last(here: &Path, found: &BTreeSet<FileNumber>, recovered: &Recovered) -> Option<Error> {
    let begun = recovered.rocksdb_logs.last_begun().filter(|begun| found.last() < Some(begun))?;
    Some(lost_from(here, &format!("the MANIFEST names log {begun}: neither it nor a later one is here")))
}

/// The error if there is no log, and an OPTIONS file of an open: RocksDB begins a log first, then the MANIFEST. Its repair makes no
/// log, and leaves its first MANIFEST until the next open.
fn lost_first(
    vfs: &dyn Vfs,
    dir: &Path,
    here: &Path,
    found: &BTreeSet<FileNumber>,
    recovered: &Recovered,
) -> Result<Option<Error>> {
    let options = recovered.rocksdb_logs.options;
    // What the MANIFEST notes of the logs is told with the families that need them.
    // Where no OPTIONS file is left, the edits that an open begins its MANIFEST with tell.
    let is_later = options > recovered.manifest || options.0 == 0 && recovered.rocksdb_logs.is_of_open;
    let is_of_open = found.is_empty() && recovered.rocksdb_logs.synced.is_empty() && is_later;
    if !is_of_open || vfs.exists(&manifest_path(dir, FileNumber(1)))? {
        return Ok(None);
    }
    let name = match options.0 {
        0 => format!("{} is of an open, which begins one", file_name::format(FileType::Manifest, recovered.manifest)),
        _ => format!("{} was written behind the first one of an open", file_name::format(FileType::Options, options)),
    };
    Ok(Some(lost_from(here, &format!("{name}: none is here"))))
}

fn lost_from(here: &Path, why: &str) -> Error {
    let what = format!(
        "RocksDB leaves a log at every close, and {why}. Open with the wal_dir in which the logs are, or let RocksDB open the \
         database once, or go on without them by a repair. A copy that RocksDB made can lack it: there, delete the file IDENTITY, \
         which is of an open that was cut off"
    );
    Error::corruption(what).at_path(here)
}

/// RocksDB's backup has the id of the database that was taken over since. Logs of ours note their MANIFEST, but for those of a takeover
/// that was cut off.
///
/// # Errors
/// `InvalidArgument`: logs of the original are `here`.
fn check_no_originals(vfs: &dyn Vfs, dir: &Path, here: &Path, recovered: Option<&Recovered>) -> Result<()> {
    let own = log_owner(vfs, dir, recovered);
    if !own.is_known() || !vfs.exists(here)? {
        return Ok(());
    }
    for number in file_name::numbers_in(vfs, here, FileType::Log)? {
        let name = file_name::format(FileType::Log, number);
        let head = wal::read_head(vfs, &here.join(&name), number).unwrap_or_default();
        if head.database == own && head.manifest.is_some() {
            return Err(wal_range::of_original(dir, here, &format!("has the id of the database that wrote {name}")));
        }
    }
    Ok(())
}

/// Looks in another directory for logs that are the database's, beside those `found` here. If there are none here, all with bytes count;
/// else empty ones do as well where `is_last`: an original had its logs there last, and RocksDB moves none. But a
/// log that is copied here is no other one; and a number that the database had not given yet, behind `own`, is of an original that
/// went on, of which this is a copy: the database's own last log has one only where the log before it is needed as well, which counts.
/// Nor do logs beside another database's tables: RocksDB can note the database's directory as its `wal_dir`, and once that is moved or
/// copied, another one is there.
///
/// # Errors
/// `InvalidArgument`: there is one; `may_be_copy`: it may be the original's. As reading the directories.
fn check_none_elsewhere(
    vfs: &dyn Vfs,
    here: &Path,
    found: &BTreeSet<FileNumber>,
    other: &Path,
    is_last: bool,
    may_be_copy: bool,
    own: Range<FileNumber>,
) -> Result<()> {
    let current = other.join(file_name::format(FileType::Current, FileNumber(0)));
    // A place that cannot be looked at counts only where there is no log here.
    let is_same = is_same_dir(vfs, here, other).unwrap_or(!found.is_empty());
    if is_same || !found.is_empty() && vfs.exists(&current).unwrap_or(true) {
        return Ok(());
    }
    let there = match is_last && !found.is_empty() {
        true => Vec::from_iter(needed_logs(vfs, other, own.start)?),
        false => written_logs(vfs, other, own.start)?,
    };
    for number in there {
        if found.is_empty() && may_be_copy {
            return Err(wal_range::of_original(here, other, "has no file IDENTITY"));
        }
        if found.is_empty() {
            return Err(wal_range::elsewhere(here, other, number, "*.log"));
        }
        if !own.contains(&number) || is_copied(vfs, here, other, number)? {
            continue;
        }
        let (there, in_here) = (other.display(), here.display());
        let what = format!(
            "log {number} lies in {there}, where the database had its logs, and not in {in_here}, or other than there: the logs in \
             {in_here} may be another database's, or not be all. Open with wal_dir={there}, unless another database uses that \
             directory; if this one's logs are all in {in_here}, let RocksDB open it once with them there, or write {in_here} as \
             wal_dir into its newest OPTIONS file"
        );
        return Err(Error::invalid_argument(what).at_path(here));
    }
    Ok(())
}

/// Whether a log is in both directories, and one file is the beginning of the other: it was copied, also while it was written. An empty one is the beginning of
/// an empty one.
fn is_copied(vfs: &dyn Vfs, here: &Path, there: &Path, number: FileNumber) -> Result<bool> {
    const PART_BYTES: u64 = 1 << 18;
    let name = file_name::format(FileType::RocksLog, number);
    if !vfs.exists(&here.join(&name))? {
        return Ok(false);
    }
    let (one, other) = (vfs.open(&here.join(&name))?, vfs.open(&there.join(&name))?);
    let bytes = one.len()?.min(other.len()?);
    let read = |file: &dyn RandomFile, at| -> Result<Vec<u8>> {
        let mut part = vec![0; PART_BYTES.min(bytes - at) as usize];
        let read = file.read_at(at, &mut part, IoClass::Log)?;
        part.truncate(read);
        Ok(part)
    };
    for at in (0..bytes).step_by(PART_BYTES as usize) {
        if read(&*one, at)? != read(&*other, at)? {
            return Ok(false);
        }
    }
    Ok(bytes > 0 || one.len()? == other.len()?)
}

/// RocksDB's logs from `needed` on in a directory, which need not exist.
fn needed_logs(vfs: &dyn Vfs, dir: &Path, needed: FileNumber) -> Result<BTreeSet<FileNumber>> {
    match vfs.exists(dir)? {
        true => Ok(file_name::numbers_in(vfs, dir, FileType::RocksLog)?.split_off(&needed)),
        false => Ok(BTreeSet::new()),
    }
}

/// Those of [`needed_logs`] that are not empty.
fn written_logs(vfs: &dyn Vfs, dir: &Path, needed: FileNumber) -> Result<Vec<FileNumber>> {
    let mut written = Vec::new();
    for number in needed_logs(vfs, dir, needed)? {
        if vfs.metadata(&dir.join(file_name::format(FileType::RocksLog, number)))?.len > 0 {
            written.push(number);
        }
    }
    Ok(written)
}

impl LogReplay<'_> {
    /// RocksDB's logs in the log directory that are read, ascending. A database of ours has none: a takeover flushes them
    /// before its first MANIFEST, so a later file of their form is another database's.
    ///
    /// # Errors
    /// `InvalidArgument`: as [`check_place`]. `Corruption`: there is none, and it cannot be told where they are.
    pub(super) fn find_rocksdb_logs(&self, recovered: &Recovered) -> Result<Vec<FileNumber>> {
        if recovered.fenced {
            return Ok(Vec::new());
        }
        let vfs = &*self.context.vfs;
        let named = named_log_dir(&self.context.options);
        if let Some(unknown) = check_place(vfs, &self.context.dir, named.as_deref(), recovered)? {
            if self.may_flush && !self.salvages() {
                return Err(unknown);
            }
            self.doubting().add(Doubt::of_all(unknown.to_string()));
        }
        Ok(Vec::from_iter(needed_logs(vfs, &self.context.log_dir(), recovered.oldest_read_rocksdb_log())?))
    }

    pub(super) fn replay_rocksdb_logs(&mut self, numbers: &[FileNumber]) -> Result<()> {
        let mut history = RocksdbHistory::of(self.recovered);
        for &number in numbers {
            match number < self.recovered.oldest_rocksdb_log() {
                true => self.replay_old_rocksdb_log(number, &mut history)?,
                false => self.replay_rocksdb_log(number, &mut history)?,
            }
        }
        let is_lost = |log: &DamagedLog| log.is_proven || family_ahead_of(self.recovered, log.number).is_some();
        if let Some(damaged) = history.damaged.filter(is_lost) {
            self.doubt_log(damaged.number, DAMAGED);
        }
        let may_prepare = options_file::may_prepare(&*self.context.vfs, &self.context.dir);
        // A reader beside a writer, where logs come and go, reads again.
        for part in history.range.missing(self.recovered) {
            let why = format!("{} {}", file_name::format(FileType::RocksLog, part.log), part.why);
            self.doubting().families_of(part.families.iter(), &why);
            // Families that do not need the log may have had a part in a transaction that was prepared there.
            if history.range.may_have_steps(may_prepare) {
                self.doubting().add(Doubt::of_prepared(why));
            }
        }
        if let Some(log) = history.range.lacks_steps(self.recovered, may_prepare) {
            let name = file_name::format(FileType::RocksLog, log);
            self.doubting().add(Doubt::of_prepared(format!("{name} {LACKS_STEPS}")));
        }
        history.check_no_family_is_ahead(self.recovered, &self.context.log_dir())?;
        if let Some(log) = history.lost_from() {
            self.doubt_log(log, DAMAGED);
        }
        Ok(())
    }

    /// Doubts all keys of the families that are not in tables through RocksDB's log.
    fn doubt_log(&self, number: FileNumber, why: &str) {
        let is_needed = |id: &&FamilyId| self.log_numbers.get(id).is_none_or(|needed| number >= *needed);
        let name = file_name::format(FileType::RocksLog, number);
        self.doubting().families_of(self.families.keys().filter(is_needed), &format!("{name} {why}"));
    }

    /// Salvage: a batch numbered from `first` follows damage, unless it goes on where that began.
    fn end_damage(&mut self, history: &mut RocksdbHistory, first: SeqNo) {
        let Some(damaged) = history.damaged.take() else { return };
        if history.next != Some(first) {
            history.range.record_damage(damaged.number);
            self.hole_at = self.hole_at.max(Some(Position { log: damaged.number, offset: u64::MAX }));
            self.doubt_log(damaged.number, DAMAGED);
        }
    }

    /// A log whose changes are in tables: only its prepared transactions count.
    fn replay_old_rocksdb_log(&mut self, number: FileNumber, history: &mut RocksdbHistory) -> Result<()> {
        let (vfs, path) = (self.context.vfs.clone(), self.path(FileType::RocksLog, number));
        let damaged = history.read_old_log(&*vfs, &path, number, &mut |record, batch, steps| {
            let at = Position { log: number, offset: record.offset };
            if record.follows_damage {
                self.hole_at = Some(at);
            }
            self.apply_rocksdb_steps(steps, batch.seq(), at)
        })?;
        self.hole_at = damaged.map(|offset| Position { log: number, offset }).or(self.hole_at);
        Ok(())
    }

    fn replay_rocksdb_log(&mut self, number: FileNumber, history: &mut RocksdbHistory) -> Result<()> {
        let path = self.path(FileType::RocksLog, number);
        let vfs = self.context.vfs.clone();
        let mode = self.context.options.wal_recovery_mode;
        let mut reader = FramedReader::open(&*vfs, &path, Some(number.0), IoClass::Log)?;
        let (mut left_out, mut is_passed_over, mut last) = (0u64, false, None::<SeqNo>);
        let end = wal::framed::replay(&mut reader, mode, &mut |record| {
            let at = Position { log: number, offset: record.offset };
            let batch = BatchReader::new(&record.payload)?;
            if is_passed_over || !history.admits(number, batch.seq()) {
                left_out += 1;
                return Ok(());
            }
            // Where RocksDB went on in spite of damage, the next log begins with a smaller number than a salvage has read.
            let may_go_back = self.hole_at.is_some() && last.is_none();
            if record.follows_damage {
                history.damaged = Some(DamagedLog { number, is_proven: true });
                self.hole_at = Some(at);
                history.range.pass_over(number);
                history.range.record_damage(number);
            }
            if !may_go_back && let Err(error) = history.check_numbers(number, batch.seq()) {
                // Under another write policy each batch begins behind the start of the last one. A part of a log that is out of place
                // does not.
                if !self.salvages() || last.is_some_and(|last| batch.seq() > last) {
                    return Err(error);
                }
                left_out += 1;
                if last.is_some() {
                    history.damaged = Some(DamagedLog { number, is_proven: true });
                } else {
                    is_passed_over = true;
                    let error = error.at_record(&path, record.offset);
                    self.doubting().add(Doubt::of_all(format!("a log is passed over: {error}")));
                }
                return Ok(());
            }
            let steps = steps_of(&batch, self.salvages())?;
            last = Some(batch.seq());
            self.end_damage(history, batch.seq());
            history.add(number, batch.seq(), &steps);
            self.apply_rocksdb_steps(steps, batch.seq(), at)
        })?;
        if left_out > 0 {
            note::warn!(log = number.0, batches = left_out, "left out what does not continue the logs before");
        }
        if is_passed_over {
            return Ok(());
        }
        history.end_log(number, &reader, end, mode);
        // A crash can have cut off the end: what follows tells whether something is lost.
        if history.damaged.is_some_and(|damaged| damaged.number == number && damaged.is_proven) {
            self.hole_at = Some(Position { log: number, offset: reader.good_end() });
        }
        Ok(())
    }

    /// Applies the steps of a record whose first change has the number `first`.
    fn apply_rocksdb_steps(&mut self, steps: RocksdbSteps<'_>, first: SeqNo, at: Position) -> Result<()> {
        let mut next = first;
        for step in steps {
            match step {
                RocksdbStep::Changes(batch) => next = self.apply_rocksdb_batch(batch, next, at.log)?,
                RocksdbStep::Prepare { name, batch } => {
                    if self.hole_at.is_some() {
                        self.prepares.take(name); // its end is lost
                    }
                    let families = batch.clone().map_while(Result::ok).map(|change| change.family.0);
                    self.max_family = families.fold(self.max_family, u32::max);
                    self.prepares.keep(name, at, batch.to_bytes())?;
                }
                RocksdbStep::Commit(name) => {
                    let prepare = self.prepares.take(name);
                    if self.hole_at.is_some() && prepare.as_ref().map(|prepare| prepare.at) < self.hole_at {
                        self.doubt_log(at.log, "commits a transaction that a lost part of the logs may have prepared");
                    }
                    // Without its prepare, the transaction is in tables, or a part of the range is missing.
                    if let Some(prepare) = prepare {
                        next = self.apply_rocksdb_batch(prepare.batch.iter(), next, at.log)?;
                    }
                }
                RocksdbStep::Rollback(name) => drop(self.prepares.take(name)),
            }
        }
        self.last_seq = self.last_seq.max(SeqNo(next.0.saturating_sub(1)));
        Ok(())
    }

    /// Applies changes numbered from `first`. Returns the number behind the last one.
    fn apply_rocksdb_batch(&mut self, batch: BatchReader<'_>, first: SeqNo, log: FileNumber) -> Result<SeqNo> {
        let next = first.checked_add(u64::from(batch.declared_count()));
        let next = next.ok_or_else(|| Error::corruption("sequence numbers in the log are past the end of 56 bits"))?;
        self.insert_batch(batch, first, Some(log))?;
        Ok(next)
    }

    /// Writes what is prepared to a new log of ours, since the next MANIFEST lets go of the logs that were read: RocksDB's, or
    /// damaged ones (P1). Without that MANIFEST, the new log is not history.
    pub(super) fn take_over_prepares(&mut self) -> Result<()> {
        if self.prepares.is_empty() {
            return Ok(());
        }
        let number = self.context.numbers.take();
        let path = self.path(FileType::Log, number);
        let config = LogConfig {
            capacity_bytes: FILE_HEADER_BYTES + self.prepares.record_bytes(),
            backing: self.context.options.log_backing,
            database: DatabaseId::new(&self.context.db_id),
            ..LogConfig::default()
        };
        let log = LogFile::create(&*self.context.vfs, &path, number, config)?;
        self.last_seq = self.prepares.log_anew(&log, self.last_seq)?;
        self.last_record = self.last_seq;
        log.sync()?;
        self.context.vfs.sync_dir(&self.context.log_dir())?;
        self.record_replayed(FileType::Log, number, KnownEnd { offset: log.tail(), on_disk: true })
    }

    /// Where the MANIFEST has no right copy, as RocksDB's never has, it may have lost its end. Doubts a family that the OPTIONS file
    /// lacks, and the families of tables that nothing names and no crash explains. Only under the lock.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn doubt_unproven_end(&self) -> Result<()> {
        let (vfs, dir, recovered) = (&*self.context.vfs, &self.context.dir, self.recovered);
        let is_chosen = recovered.manifest_end.is_none(); // by a rescue, which reports for itself
        // Beside a writer, who holds the lock, tables come and the copy goes at any time.
        if is_chosen || !self.may_flush {
            return Ok(());
        }
        let live = self.families.values().flat_map(FamilyState::tables).map(|file| file.meta.physical_number());
        let named: BTreeSet<_> = recovered.tables().map(FileMeta::physical_number).chain(live).collect();
        let there = file_name::numbers_in(vfs, dir, FileType::Table)?;
        let is_as_long = Some(manifest_copy::copy_bytes(vfs, dir, recovered.manifest)?) == recovered.manifest_end;
        let has_no_sign = there.is_subset(&named) && is_as_long && recovered.fenced;
        if has_no_sign || Pair::has_right_copy(vfs, dir, recovered.manifest)? {
            return Ok(());
        }
        if let Some((family, what)) = options_file::family_of_lost_end(vfs, dir, recovered)? {
            let why = format!("the MANIFEST has no second copy, and {what}");
            self.context.recovery_doubts.add(Doubt { family, ..Doubt::of_all(why) });
        }
        if there.is_subset(&named) {
            return Ok(());
        }
        let orders: Vec<_> = self.families.values().map(|family| family.family.order().user.clone()).collect();
        // Replay by images reads a part of the logs.
        let logged = &log_survey::logged(vfs, &self.context.log_dir(), self.database(), recovered)?;
        let accounted = Accounted { recovered, dir, logged, orders: &orders, is_confirmed: false };
        for number in there.difference(&named) {
            let path = dir.join(file_name::format(FileType::Table, *number));
            let values = LogsOnDemand::in_dir(self.context.vfs.clone(), self.context.log_dir());
            let Some(Unexplained { error, family }) = accounted.find_unexplained(vfs, &path, *number, values)? else {
                continue;
            };
            let family = family.and_then(|id| recovered.family(id)).map(|family| family.name.clone());
            self.context.recovery_doubts.add(Doubt { family, why: error.to_string(), ..Doubt::default() });
        }
        Ok(())
    }
}
