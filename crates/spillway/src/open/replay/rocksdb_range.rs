//! RocksDB's logs as a range, and its missing parts by the MANIFEST and by the numbers of the changes.
//!
//! A number between two logs may have gone to no log (`disableWAL`). These facts prove more:
//! - The MANIFEST names a log only once it was begun. RocksDB begins the next log only when the last one has changes, and keeps
//!   every log from the oldest needed one on. A copy of a directory may lack its last log, if this is empty.
//! - The MANIFEST notes sizes of synced logs (`track_and_verify_wals_in_manifest`).
//! - A prepared transaction's log is kept until each family that the transaction wrote to is flushed past its commit.

use std::collections::BTreeMap;

use base::{FamilyId, FileNumber, SeqNo};
use wal::framed::{FramedEnd, FramedReader, Predecessor};

use crate::batch::tag;
use crate::records::rocksdb_record::RocksdbStep;
use crate::version::recover::Recovered;

/// What was read of RocksDB's logs, ascending.
#[derive(Default)]
pub(crate) struct RocksdbRange {
    logs: BTreeMap<FileNumber, ReadLog>,
    /// The number of changes of each prepare without an end, by name.
    prepared: BTreeMap<Vec<u8>, u64>,
    /// Records that commit a transaction without a prepare: the log, and the number of the first change that is lacking.
    lack_prepare: Vec<(FileNumber, SeqNo)>,
    /// Numbers are missing inside a log: there are writes that go to no log.
    has_unlogged: bool,
    /// A record is of a `TransactionDB` of RocksDB's, whose transactions can be prepared.
    has_transactions: bool,
    /// The first log that is read for its prepared transactions alone, and is damaged.
    damaged_old: Option<FileNumber>,
}

#[derive(Default)]
struct ReadLog {
    has_records: bool,
    /// The number of the first change.
    first: Option<SeqNo>,
    /// The number behind the last change. `None`: not known.
    next: Option<SeqNo>,
    /// The number with which the last record begins.
    last_record: SeqNo,
    /// Where the records end, in bytes.
    end: u64,
    /// The file's size.
    bytes: u64,
    predecessor: Option<Predecessor>,
    /// Records may be lost, at the end or before. What lies behind the end is told elsewhere.
    is_cut: bool,
    /// A record is damaged, which no crash does; or what follows proves that records are lost.
    is_damaged: bool,
    /// It ends with a part of a record, or with zeros: a crash left it so, not RocksDB that began the next log.
    is_torn: bool,
}

/// A part of the range that is missing.
pub(crate) struct MissingPart {
    /// The log that it lies in, or the one before it.
    pub log: FileNumber,
    /// The families that may lack writes.
    pub families: Vec<FamilyId>,
    pub why: String,
}

impl RocksdbRange {
    /// Adds a record whose first change has the number `first`. Returns the number behind the last one; `None`: not known.
    pub fn add(&mut self, log: FileNumber, first: SeqNo, steps: &[RocksdbStep<'_>]) -> Option<SeqNo> {
        let next = self.add_steps(log, first, steps);
        let read = self.logs.entry(log).or_default();
        (read.has_records, read.last_record) = (true, read.last_record.max(first));
        if next == Some(first) {
            return next;
        }
        self.has_unlogged |= read.next.is_some_and(|next| next < first);
        read.first.get_or_insert(first);
        read.next = next;
        next
    }

    /// As [`add`](Self::add), of a record whose numbers count for nothing.
    pub fn add_steps(&mut self, log: FileNumber, first: SeqNo, steps: &[RocksdbStep<'_>]) -> Option<SeqNo> {
        let mut next = Some(first.0);
        let mut lacking = None;
        // Such a database begins each plain change with a mark, too.
        let is_plain = |step: &RocksdbStep<'_>| match step {
            RocksdbStep::Changes(batch) => batch.rest().first() != Some(&tag::NOOP),
            _ => false,
        };
        self.has_transactions |= !steps.iter().all(is_plain);
        for step in steps {
            let changes = match step {
                RocksdbStep::Changes(batch) => Some(u64::from(batch.declared_count())),
                RocksdbStep::Prepare { name, batch } => {
                    self.prepared.insert(name.to_vec(), u64::from(batch.declared_count()));
                    Some(0)
                }
                RocksdbStep::Commit(name) => self.prepared.remove(*name),
                RocksdbStep::Rollback(name) => {
                    self.prepared.remove(*name);
                    Some(0)
                }
            };
            if changes.is_none() {
                lacking = lacking.or(next);
            }
            next = next.zip(changes).map(|(next, changes)| next.saturating_add(changes));
        }
        self.lack_prepare.extend(lacking.map(|number| (log, SeqNo(number))));
        next.map(SeqNo)
    }

    /// Notes records that do not count.
    pub fn pass_over(&mut self, log: FileNumber) {
        let read = self.logs.entry(log).or_default();
        (read.has_records, read.next, read.is_cut) = (true, None, true);
    }

    /// Notes a damaged record, or that records are lost at the end.
    pub fn record_damage(&mut self, log: FileNumber) {
        self.logs.entry(log).or_default().is_damaged = true;
    }

    /// Notes damage of a log that is read for its prepared transactions alone.
    pub fn record_old_damage(&mut self, log: FileNumber) {
        self.pass_over(log);
        self.damaged_old.get_or_insert(log);
    }

    /// Ends a log that was read. `is_cut`: what lies behind its end is told elsewhere.
    pub fn end(&mut self, log: FileNumber, reader: &FramedReader, end: FramedEnd, is_cut: bool) {
        let read = self.logs.entry(log).or_default();
        (read.end, read.bytes) = (reader.offset_of(end), reader.offset_of(FramedEnd::Clean));
        read.predecessor = reader.predecessor();
        read.is_cut |= is_cut;
        read.is_torn = matches!(end, FramedEnd::Torn { .. } | FramedEnd::Zeros { .. });
    }

    /// The first log whose changes do not go on where those before it end. All go on behind `last`.
    pub fn first_gap(&self, last: SeqNo) -> Option<FileNumber> {
        let mut next = Some(SeqNo(last.0.saturating_add(1)));
        for (number, log) in &self.logs {
            let Some(first) = log.first else { continue };
            if next.is_none_or(|next| first > next) || self.has_unlogged {
                return Some(*number);
            }
            next = log.next;
        }
        None
    }

    /// The number of the last change that is known.
    pub fn last(&self) -> SeqNo {
        let next = self.logs.values().filter_map(|log| log.next).max();
        SeqNo(next.unwrap_or_default().0.saturating_sub(1))
    }

    /// Missing parts, the probable ones included.
    pub fn missing(&self, recovered: &Recovered) -> Vec<MissingPart> {
        let mut parts = BTreeMap::new();
        if !recovered.fenced {
            self.find_short(recovered, &mut parts);
            self.find_lost(recovered, &mut parts);
            self.find_gaps(recovered, &mut parts);
            self.find_lost_head(recovered, &mut parts);
            self.find_lost_end(recovered, &mut parts);
            self.find_lost_prepares(recovered, &mut parts);
        }
        parts.into_values().collect()
    }

    /// Logs that were synced, and end before that or are gone; or that were larger when the next one was begun; or that a flush ended,
    /// and a part of a record or zeros end now.
    fn find_short(&self, recovered: &Recovered, parts: &mut BTreeMap<FileNumber, MissingPart>) {
        for (&number, bytes) in recovered.rocksdb_logs.synced.range(recovered.oldest_rocksdb_log()..) {
            let what = match self.logs.get(&number) {
                Some(log) if log.end >= *bytes => continue,
                Some(log) => format!("ends at byte {}", log.end),
                None => "is missing".to_owned(),
            };
            let why = format!("{what}, and the MANIFEST notes that {bytes} bytes of it were synced");
            parts.insert(number, MissingPart::of(number, number, why, recovered));
        }
        for (by, log) in &self.logs {
            let Some(Predecessor { log, bytes, last }) = log.predecessor else { continue };
            let number = FileNumber(log);
            let Some(log) = self.logs.get(&number).filter(|_| number >= recovered.oldest_rocksdb_log()) else {
                continue;
            };
            let why = if log.bytes < bytes {
                format!("has {} bytes, and log {by} notes that it had {bytes}", log.bytes)
            } else if log.last_record.0 < last && !log.is_cut {
                format!("has records up to number {}, and log {by} notes that it had number {last}", log.last_record)
            } else {
                continue;
            };
            parts.insert(number, MissingPart::of(number, number, why, recovered));
        }
        let is_needed = |log: FileNumber| recovered.families.iter().any(|family| family.log_number <= log);
        for &number in self.logs.range(recovered.oldest_rocksdb_log()..).map(|(number, _)| number) {
            if is_needed(number) && self.is_torn_behind_its_end(number, recovered) {
                let why = "ends with a part of a record, or with zeros, and a flush went on in a later log".to_owned();
                parts.entry(number).or_insert_with(|| MissingPart::of(number, number, why, recovered));
            }
        }
    }

    /// Whether a log ends as a crash leaves it, and a flush went on in the next one: RocksDB had ended it before, and synced it.
    fn is_torn_behind_its_end(&self, number: FileNumber, recovered: &Recovered) -> bool {
        let behind = || self.logs.range(FileNumber(number.0 + 1)..);
        let known = &recovered.rocksdb_logs;
        let Some(log) = self.logs.get(&number).filter(|log| log.is_torn) else { return false };
        // What takes no number is told otherwise.
        let goes_on = behind().find_map(|(_, log)| log.first).is_some_and(|first| log.next == Some(first));
        behind().next().is_some_and(|(next, _)| known.is_of_flush(*next)) && !goes_on
    }

    /// Logs that were left for later ones, and are gone or empty.
    fn find_lost(&self, recovered: &Recovered, parts: &mut BTreeMap<FileNumber, MissingPart>) {
        let (begun, oldest) = (&recovered.rocksdb_logs.begun, recovered.oldest_rocksdb_log());
        let last = self.logs.iter().rfind(|(_, log)| log.first.is_some()).map(|(number, _)| *number);
        let last = last.max(begun.last_key_value().map(|(number, _)| *number)).unwrap_or_default();
        for (&number, _) in begun.range(oldest..).filter(|(number, _)| **number < last) {
            let (known, log) = (&recovered.rocksdb_logs, self.logs.get(&number));
            let next = self.logs.range(number..).find_map(|(_, log)| log.first);
            let may_be_empty = next.is_some_and(|next| next.0 <= known.in_tables_before(number).0 + 1);
            if may_be_empty || log.is_some_and(|log| log.has_records) {
                continue;
            }
            let what = if log.is_some() { "is empty" } else { "is missing" };
            let why = format!("{what}, and a later log was begun, which proves that it had writes");
            parts.entry(number).or_insert_with(|| MissingPart::of(number, number, why, recovered));
        }
        // The log of the open that began the MANIFEST may be empty, where older ones are left; nothing deletes it before the others.
        let own = FileNumber(recovered.manifest.0.saturating_sub(1));
        let is_left = recovered.rocksdb_logs.is_of_open && own >= oldest && begun.range(own..).next().is_some();
        if is_left && !self.logs.contains_key(&own) {
            let why = "is missing, and a later log was begun".to_owned();
            parts.entry(own).or_insert_with(|| MissingPart::of(own, own, why, recovered));
        }
        // An open that flushes nothing leaves a family the oldest log with its changes. Only where older logs are left is the open's own
        // first log empty when the next one is begun.
        let has_records = |(_, log): &(&FileNumber, &ReadLog)| log.has_records;
        let empty = self.logs.first_key_value().filter(|first| *first.0 >= oldest && !has_records(first));
        let next = self.logs.iter().find(has_records).map(|(number, _)| *number);
        for needed in recovered.families.iter().map(|family| family.log_number) {
            let is_empty = empty.is_some_and(|(number, _)| needed == *number || needed.0 == 0);
            let is_left = needed < recovered.rocksdb_logs.read_below;
            let was_left =
                is_left && !self.logs.range(needed..recovered.rocksdb_logs.read_below).any(|log| has_records(&log));
            let next = next.filter(|_| is_empty).or(was_left.then_some(recovered.rocksdb_logs.read_below));
            let Some(next) = next else { continue };
            let why = format!("is missing or empty, and so is every log up to log {next}; a family needs one");
            let through = FileNumber(next.0 - 1);
            // A family that was never flushed names no log.
            let needed = empty.filter(|_| needed.0 == 0).map_or(needed, |(number, _)| *number);
            parts.entry(needed).or_insert_with(|| MissingPart::of(needed, through, why, recovered));
        }
        let named = begun.range(oldest..).next().map(|(number, _)| *number).filter(|next| *next > oldest);
        let kept = recovered.min_log_to_keep;
        let prepared_in = recovered.rocksdb_logs.prepared_in.filter(|log| *log == kept);
        let behind = prepared_in.map(|log| FileNumber(log.0 + 1)).or(self.log_with_one_before(recovered));
        let Some(next) = named.into_iter().chain(behind).min() else { return };
        if !self.logs.range(oldest..next).any(|(_, log)| log.has_records) {
            let why = format!("is missing or empty, and so is every log up to log {next}; the MANIFEST needs one");
            // Up to the first one that is there.
            let through = FileNumber(self.logs.range(next..).next().map_or(u64::MAX, |(there, _)| there.0 - 1));
            parts.entry(oldest).or_insert_with(|| MissingPart::of(oldest, through, why, recovered));
        }
    }

    /// A log that another one was begun before, which has changes and is kept for a family. The first log of an open has none before it,
    /// and unlogged writes are flushed while it is empty: it is older than the MANIFEST that the open begins, and than its OPTIONS file.
    /// Before RocksDB noted which logs it keeps, it let go of logs that families without changes name.
    fn log_with_one_before(&self, recovered: &Recovered) -> Option<FileNumber> {
        let (kept, first) = (recovered.min_log_to_keep, self.behind_first_log(recovered));
        let named = || recovered.families.iter().map(|family| family.log_number);
        let with_changes = self.logs.iter().filter(|(_, log)| log.first.is_some()).map(|(number, _)| *number);
        let is_needed = kept.0 > 0 && named().any(|log| log == kept);
        let later = named().chain(with_changes).filter(|log| first.0 > 0 && *log > first);
        later.filter(|log| is_needed && *log > kept).min()
    }

    /// A file that is younger than the first log of the last open. 0: not known.
    fn behind_first_log(&self, recovered: &Recovered) -> FileNumber {
        let known = &recovered.rocksdb_logs;
        if known.is_kept {
            return FileNumber(0);
        }
        // Of a MANIFEST that is begun anew later, the number before its own is a table's.
        let is_of_open =
            known.is_of_open || self.logs.contains_key(&FileNumber(recovered.manifest.0.saturating_sub(1)));
        if is_of_open { recovered.manifest } else { known.options_before }
    }

    /// Numbers that are missing before the first log, where RocksDB has let no log go yet: no family has been flushed.
    fn find_lost_head(&self, recovered: &Recovered, parts: &mut BTreeMap<FileNumber, MissingPart>) {
        let known = &recovered.rocksdb_logs;
        // A repair without a MANIFEST, whose number is 0 then, cannot know.
        let has_let_none_go = recovered.manifest.0 > 0 && recovered.oldest_rocksdb_log() == FileNumber(0);
        let with_changes = self.logs.iter().find_map(|(number, log)| Some((*number, log.first?)));
        // The log that a flush began has one with changes before it, which a family needs that was not flushed.
        let (named, behind) =
            (recovered.families.iter().map(|family| family.log_number), self.behind_first_log(recovered));
        let flushed_for = named.filter(|log| behind.0 > 0 && *log > behind).min();
        let without = flushed_for.map(|log| (log, SeqNo(recovered.last_seq.0.saturating_add(1))));
        let Some((log, first)) = with_changes.or(without).filter(|_| has_let_none_go) else { return };
        let is_told = self.has_unlogged || parts.range(..log).next().is_some();
        let may_hold = known.flushes_may_hold(SeqNo(known.imported.0.saturating_add(1)), first);
        if is_told || may_hold || may_lack_numbers(recovered, log) {
            return;
        }
        let why = format!(
            "begins with number {first}, and no log was let go: a log before it is lost, or the writes before went to no log \
             (disableWAL)"
        );
        parts.entry(log).or_insert_with(|| MissingPart::of(log, FileNumber(log.0 - 1), why, recovered));
    }

    /// Numbers that are missing between the last log and a table of later ones.
    fn find_lost_end(&self, recovered: &Recovered, parts: &mut BTreeMap<FileNumber, MissingPart>) {
        let known = &recovered.rocksdb_logs;
        let Some((&log, read)) = self.logs.iter().rfind(|(_, log)| log.first.is_some()) else { return };
        let behind_imports = SeqNo(known.imported.0.saturating_add(1));
        let Some(next) = read.next.map(|next| next.max(behind_imports)).filter(|next| *next < known.given) else {
            return;
        };
        let is_told = self.has_unlogged || read.is_damaged || parts.range(log..).next().is_some();
        let may_hold = known.has_flushed(next) || known.flushes_may_hold(next, known.given);
        if is_told || may_hold || may_lack_numbers(recovered, log) {
            return;
        }
        let why = format!(
            "ends before number {next}, and the MANIFEST names a table of number {}: the log's end or a log is lost, or the \
             writes between went to no log (disableWAL)",
            known.given
        );
        parts.insert(log, MissingPart::of(log, FileNumber(u64::MAX), why, recovered));
    }

    /// Numbers that are missing between two logs. Writes that went to no log explain them where such writes show elsewhere, or
    /// where flushes can have brought them to tables.
    fn find_gaps(&self, recovered: &Recovered, parts: &mut BTreeMap<FileNumber, MissingPart>) {
        let with_changes = || self.logs.iter().filter(|(_, log)| log.first.is_some());
        for ((&before, read), (&behind, later)) in with_changes().zip(with_changes().skip(1)) {
            let (Some(next), Some(first)) = (read.next, later.first) else { continue };
            let is_told = self.has_unlogged || read.is_cut || parts.range(before..behind).next().is_some();
            if next >= first || is_told {
                continue;
            }
            let through = FileNumber(behind.0 - 1);
            let is_explained =
                recovered.rocksdb_logs.flushes_may_hold(next, first) || may_have_no_numbers(recovered, behind);
            if is_explained || recovered.families.iter().all(|family| family.log_number > through) {
                continue;
            }
            let why = format!(
                "ends before number {next}, and log {behind} begins with number {first}: the log's end or a log is lost, or \
                 the writes between went to no log (disableWAL, or an ingest)"
            );
            parts.insert(before, MissingPart::of(before, through, why, recovered));
        }
    }

    /// The first log that commits, behind the number `last`, a transaction whose prepare is in no log.
    pub fn lacks_prepare_behind(&self, last: SeqNo) -> Option<FileNumber> {
        self.lack_prepare.iter().find(|(_, first)| *first > last).map(|(log, _)| *log)
    }

    /// Whether a lost part of the logs may have had a prepare, or the end of one. `may_prepare`: by the stored options.
    pub fn may_have_steps(&self, may_prepare: bool) -> bool {
        self.has_transactions || may_prepare
    }

    /// The first log whose damaged part may have had a prepare or a rollback. They take no number, so that none is missing where the
    /// next record goes on. `may_prepare`: as in [`may_have_steps`](Self::may_have_steps).
    pub fn lacks_steps(&self, recovered: &Recovered, may_prepare: bool) -> Option<FileNumber> {
        let next_of = |number: FileNumber| self.logs.range(FileNumber(number.0 + 1)..).next();
        let is_ended = |number| next_of(number).is_some_and(|(next, _)| recovered.rocksdb_logs.is_of_flush(*next));
        let lacks = |(number, log): &(&FileNumber, &ReadLog)| log.is_damaged || log.is_torn && is_ended(**number);
        let damaged = self.logs.iter().filter(|_| self.may_have_steps(may_prepare)).find(lacks);
        self.damaged_old.or(damaged.map(|(number, _)| *number))
    }

    /// Commits whose prepare is in no log. A transaction is in tables only if one has its first number. A dropped family may have
    /// had it.
    fn find_lost_prepares(&self, recovered: &Recovered, parts: &mut BTreeMap<FileNumber, MissingPart>) {
        let was_dropped = recovered.families.len() as u64 <= u64::from(recovered.max_family);
        let is_whole = parts.is_empty();
        let is_needed = |log: FileNumber| recovered.families.iter().any(|family| family.log_number <= log);
        for &(log, first) in self.lack_prepare.iter().filter(|(log, _)| is_needed(*log)) {
            let is_in_tables =
                was_dropped || recovered.rocksdb_logs.has_flushed(first) || may_have_no_numbers(recovered, log);
            let follows_cut = self.logs.range(..log).any(|(_, earlier)| earlier.is_cut);
            if is_in_tables && is_whole && !follows_cut {
                continue;
            }
            let why = "commits a transaction whose prepare is lost".to_owned();
            parts.entry(log).or_insert_with(|| MissingPart::of(log, log, why, recovered));
        }
    }
}

/// Whether tables may have numbers that the MANIFEST does not tell. A flush begins the next log, or `log`, before its table. A
/// MANIFEST begun after both may find only what a compaction made of the table.
fn may_have_no_numbers(recovered: &Recovered, log: FileNumber) -> bool {
    recovered.manifest > log && recovered.rocksdb_logs.unnumbered > log
}

/// As [`may_have_no_numbers`], of numbers behind those of the log. An open begins its MANIFEST right behind its log: such a one tells
/// them all.
fn may_lack_numbers(recovered: &Recovered, log: FileNumber) -> bool {
    recovered.manifest.0 > log.0 + 1 && may_have_no_numbers(recovered, log)
}

impl MissingPart {
    /// `through`: families that need no log up to this number lack nothing. Where all are so, a prepared transaction is lost.
    fn of(log: FileNumber, through: FileNumber, why: String, recovered: &Recovered) -> MissingPart {
        let ids = |needs: bool| {
            let families = recovered.families.iter().filter(move |family| !needs || family.log_number <= through);
            families.map(|family| family.id).collect::<Vec<_>>()
        };
        let needing = ids(true);
        MissingPart { log, families: if needing.is_empty() { ids(false) } else { needing }, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::BatchReader;
    use crate::version::edit::VersionEdit;
    use crate::version::replay::{RecoveredFamily, Replay, RocksdbLogs};
    use crate::version::table_file::FileMeta;

    /// Each record: its log, its first number, and the count of its changes.
    fn range(records: &[(u64, u64, u32)]) -> RocksdbRange {
        let mut range = RocksdbRange::default();
        for (log, first, count) in records {
            let changes = RocksdbStep::Changes(BatchReader::of_changes(SeqNo::ZERO, *count, &[]));
            range.add(FileNumber(*log), SeqNo(*first), &[changes]);
            range.logs.entry(FileNumber(*log)).or_default().end = 100;
        }
        range
    }

    fn family(id: u32, log_number: u64) -> RecoveredFamily {
        RecoveredFamily { id: FamilyId(id), log_number: FileNumber(log_number), ..RecoveredFamily::default() }
    }

    /// The families in doubt, by log. `flushes`: first and last numbers of tables.
    fn found(recovered: &Recovered, flushes: &[(u64, u64)], records: &[(u64, u64, u32)]) -> Vec<(u64, Vec<FamilyId>)> {
        let mut rocksdb_logs = RocksdbLogs::default();
        rocksdb_logs.flushed.extend(flushes.iter().map(|(smallest, largest)| (SeqNo(*smallest), SeqNo(*largest))));
        let families = vec![family(0, 10), family(1, 4)];
        let recovered = Recovered { families, max_family: 1, rocksdb_logs, ..recovered.clone() };
        range(records).missing(&recovered).into_iter().map(|part| (part.log.0, part.families)).collect()
    }

    const GAP: [(u64, u64, u32); 3] = [(4, 1, 2), (4, 3, 1), (10, 9, 1)];

    #[test]
    fn gap_between_logs_is_told_unless_unlogged_writes_explain_it() {
        let found = |flushes: &[(u64, u64)], records: &[_]| found(&Recovered::default(), flushes, records);
        let told = vec![(4, vec![FamilyId(1)])];
        assert_eq!(found(&[], &GAP), told);
        assert_eq!(found(&[(4, 7)], &GAP), told, "no table has the last number");
        assert_eq!(found(&[(1, 8)], &GAP), told, "a memtable with logged writes");
        assert_eq!(found(&[(4, 5), (7, 8)], &GAP), told, "no table has the number between them");
        assert!(found(&[(1, 3), (4, 5), (6, 8)], &GAP).is_empty(), "flushes of unlogged writes");
        assert!(found(&[], &[(4, 1, 2), (4, 4, 1), (10, 9, 1)]).is_empty(), "writes that go to no log");
        assert!(found(&[], &[(4, 1, 2), (4, 3, 1), (10, 4, 1)]).is_empty());
    }

    /// A compaction makes numbers zero. Flushes that a MANIFEST begun before the later log does not have were not there.
    #[test]
    fn table_without_numbers_explains_a_gap_only_before_the_manifest() {
        let made = |manifest, table| {
            let mut recovered = Recovered { manifest: FileNumber(manifest), ..Recovered::default() };
            recovered.families = vec![family(0, 10), family(1, 4)];
            recovered.rocksdb_logs.unnumbered = FileNumber(table);
            let missing = range(&GAP).missing(&Recovered { max_family: 1, ..recovered });
            missing.len()
        };
        assert_eq!((made(13, 12), made(13, 9), made(5, 12)), (0, 1, 1));
    }

    /// An ingest has the number zero, too. What comes behind the state with which a MANIFEST begins tells its numbers otherwise.
    #[test]
    fn table_that_came_since_the_manifest_was_begun_explains_no_gap() {
        let mut replay = Replay::default();
        for (table, next) in [(7, None), (17, Some(FileNumber(18)))] {
            let meta = FileMeta { number: FileNumber(table), ..FileMeta::default() };
            let edit = VersionEdit { next_file: next, last_seq: Some(SeqNo(9)), ..VersionEdit::default() };
            replay.add(VersionEdit { added: vec![(6, meta)], ..edit }).unwrap();
        }
        assert_eq!(replay.finish(FileNumber(13)).unwrap().rocksdb_logs.unnumbered, FileNumber(7));
    }

    #[test]
    fn logs_behind_a_backup_have_no_gap() {
        let gap = |last, records: &[(u64, u64, u32)]| range(records).first_gap(SeqNo(last)).map(|log| log.0);
        assert_eq!(gap(2, &[(4, 1, 2), (4, 3, 1), (10, 4, 1)]), None, "the first may be older");
        assert_eq!(gap(0, &[(4, 1, 2), (10, 4, 1)]), Some(10));
        assert_eq!(gap(0, &[(4, 1, 1), (4, 3, 1), (10, 4, 1)]), Some(4));
        assert_eq!(gap(0, &[(10, 4, 1)]), Some(10));
    }
}
