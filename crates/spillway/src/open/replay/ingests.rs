//! Replay of ingests. Their tables are in the directory, and are queued again until a flush assigns their levels. Keeps
//! D2, D3, F2, Q1.

use std::path::Path;
use std::sync::Arc;

use base::{Error, Result, SeqNo, UserOrder};
use vfs::Vfs;

use super::{LogReplay, seal};
use crate::commit::overlap::Coverage;
use crate::order::SeqRange;
use crate::queue::flushable::Enqueue;
use crate::queue::ingest::QueuedIngest;
use crate::records::ingest_record::{FamilyIngest, IngestRecord, IngestShape};
use crate::version::recover::{check_table, table_path};
use crate::version::span::Span;

/// An ingest's share in a family that lacks it.
pub(super) struct WantedShare {
    share: Arc<FamilyIngest>,
    shape: IngestShape,
    /// Microseconds since 1970.
    arrived_us: u64,
    given: SeqRange,
}

impl LogReplay<'_> {
    /// The shares to queue, checked.
    ///
    /// # Errors
    /// `Corruption`: the record is malformed, or one of its tables is missing or has another size.
    pub(super) fn wanted_shares(&mut self, record: &IngestRecord) -> Result<Vec<WantedShare>> {
        let shape = record.shape();
        let given = SeqRange { before: SeqNo(record.first.0 - 1), last: record.last(), log_end: 0 };
        // Records of earlier versions do not tell.
        let arrived_us = if record.arrived_us > 0 { record.arrived_us } else { self.context.vfs.unix_time_us() };
        let mut wanted = Vec::with_capacity(record.families.len());
        for share in self.substituted(record) {
            self.max_family = self.max_family.max(share.family.0);
            let Some(family) = self.families.get(&share.family) else { continue };
            // Linked tables stay where a flush or later compactions put them.
            if !family.has_linked(record.first, record.last()) {
                check_bounds(&family.family.order().user, &share)?;
                check_tables(&*self.context.vfs, &self.context.dir, &share)?;
                wanted.push(WantedShare { share, shape, arrived_us, given });
            }
        }
        Ok(wanted)
    }

    /// The shares of a record, with the tables that a repair put in the place of damaged ones. The log names the damaged
    /// ones still, so all is flushed before it is let go.
    fn substituted(&mut self, record: &IngestRecord) -> Vec<Arc<FamilyIngest>> {
        let substitutes = &self.recovered.substitutes;
        let mut shares = record.families.clone();
        for share in &mut shares {
            let mut tables = share.layers.iter().flatten();
            if tables.all(|table| !substitutes.contains_key(&table.meta.number)) {
                continue;
            }
            for layer in &mut Arc::make_mut(share).layers {
                layer.retain_mut(|table| match substitutes.get(&table.meta.number) {
                    Some(Some(meta)) => {
                        table.meta.clone_from(meta);
                        true
                    }
                    Some(None) => false,
                    None => true,
                });
            }
            self.passed_damage = true;
        }
        shares
    }

    pub(super) fn queue_share(&mut self, wanted: &WantedShare) -> Result<()> {
        let WantedShare { share, shape, arrived_us, given } = wanted;
        let Some(family) = self.families.get_mut(&share.family) else { return Ok(()) };
        let handle = family.family.clone();
        let ingest = QueuedIngest::new(handle.order(), handle.tables(), share.clone(), *shape, *arrived_us, 0);
        ingest.set_numbers(given);
        // As at commit: an ingest goes under the memtable if they do not overlap, so many ingests do not seal a
        // memtable each.
        let coverage = Coverage::of(&handle.order().user, share);
        if family.mutable.memtable().entries() > 0 && coverage.meets_memtable_once_ready(family.mutable.memtable()) {
            seal(self.context, family, given.before, 0)?;
        }
        if family.mutable.is_unused() {
            family.mutable.advance_empty_to(given.last);
        }
        family.mutable.memtable().mark_foreign();
        family.queue.insert(0, ingest);
        Ok(())
    }
}

/// # Errors
/// `Corruption`: a table is missing, or has another size.
pub(crate) fn check_tables(vfs: &dyn Vfs, dir: &Path, share: &FamilyIngest) -> Result<()> {
    let missing = "a table that was ingested is missing";
    for table in share.layers.iter().flatten() {
        let path =
            table_path(dir, table.meta.path_id, table.meta.number).map_err(|e| Error::corruption(e.to_string()))?;
        check_table(vfs, &path, table.meta.file_bytes, "the log", missing)?;
    }
    Ok(())
}

/// # Errors
/// `Corruption`: bounds impossible for an ingest.
fn check_bounds(order: &UserOrder, share: &FamilyIngest) -> Result<()> {
    let is_inverted = |(start, end): &(Vec<u8>, Vec<u8>)| order.compare(start, end).is_ge();
    if share.excise.as_ref().is_some_and(is_inverted) {
        return Err(Error::corruption("an excise's span is empty or inverted"));
    }
    for layer in &share.layers {
        let mut before: Option<Span> = None;
        for span in layer.iter().map(|table| Span::of_file(&table.meta)) {
            let follows = before.is_none_or(|before| {
                order.compare(&before.start, &span.start).is_lt() && !before.overlaps(order, &span)
            });
            if !follows || order.compare(&span.start, &span.end).is_gt() {
                return Err(Error::corruption("the bounds of an ingest's tables are inverted, or overlap in a layer"));
            }
            before = Some(span);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use base::options::WalRecoveryMode;
    use base::{ErrorKind, FamilyId, FileNumber, ValueKind, key};
    use vfs::MemoryVfs;
    use wal::{LogConfig, LogFile, RecordKind};

    use super::*;
    use crate::batch::{HEADER_BYTES, WriteBatch, header};
    use crate::core::open_options::OpenOptions;
    use crate::cursor::options::ReadOptions;
    use crate::database::handle::Database;
    use crate::records::ingest_record::IngestTable;
    use crate::version::table_file::FileMeta;

    const LOG: &str = "/db/000900.splog";
    const TABLE: &str = "/db/000950.sst";
    const TABLE_BYTES: u64 = 1000;
    const FIRST: SeqNo = SeqNo(100);

    fn table(smallest: &str, largest: &str) -> IngestTable {
        let bound = |user_key: &str| key::encode(user_key.as_bytes(), SeqNo::ZERO, ValueKind::Value);
        let meta = FileMeta {
            number: FileNumber(950),
            file_bytes: TABLE_BYTES,
            smallest: bound(smallest),
            largest: bound(largest),
            ..FileMeta::default()
        };
        IngestTable { meta, ..IngestTable::default() }
    }

    fn excise(start: &str, end: &str) -> FamilyIngest {
        FamilyIngest { excise: Some((start.into(), end.into())), ..FamilyIngest::default() }
    }

    fn layered(layers: &[&[(&str, &str)]]) -> FamilyIngest {
        let tables = |bounds: &&[(&str, &str)]| -> Vec<IngestTable> {
            bounds.iter().map(|(smallest, largest)| table(smallest, largest)).collect()
        };
        FamilyIngest { layers: layers.iter().map(tables).collect(), ..FamilyIngest::default() }
    }

    /// An ingest's record whose numbers begin there.
    fn record(first: SeqNo, share: FamilyIngest) -> Vec<u8> {
        IngestRecord { first, families: vec![Arc::new(share)], ..IngestRecord::default() }.encode()
    }

    /// A batch as a log has it: it puts `key` at that number, and says that it holds so many changes.
    fn batch(seq: u64, count: u32, key: &str) -> Vec<u8> {
        let mut batch = WriteBatch::new();
        batch.put(FamilyId::DEFAULT, key.as_bytes(), b"v");
        [&header(SeqNo(seq), count)[..], &batch.as_bytes()[HEADER_BYTES..]].concat()
    }

    /// A closed database whose last log has a batch that puts "b", and an ingest whose record begins where that is said.
    fn logged(ingest: &[u8]) -> (Arc<MemoryVfs>, u64) {
        let vfs = MemoryVfs::new(3);
        let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        Database::open("/db", &options).unwrap().close().unwrap();
        let config = LogConfig { capacity_bytes: 1 << 16, ..LogConfig::default() };
        let log = LogFile::create(&*vfs, Path::new(LOG), FileNumber(900), config).unwrap();
        let append = |kind: RecordKind, payload: &[u8]| {
            let reservation = log.try_reserve(payload.len()).unwrap();
            log.append(&reservation, kind, &[payload]).unwrap();
            log.publish(reservation.end());
            reservation.offset()
        };
        append(RecordKind::Batch, &batch(90, 1, "b"));
        let offset = append(RecordKind::Ingest, ingest);
        log.sync().unwrap();
        (vfs, offset)
    }

    fn open(vfs: &Arc<MemoryVfs>, mode: WalRecoveryMode) -> Result<Database> {
        let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        options.db.wal_recovery_mode = mode;
        Database::open("/db", &options)
    }

    /// The ingest stops recovery, which names its record: what it says of that.
    fn refused(ingest: &[u8]) -> String {
        let (vfs, offset) = logged(ingest);
        let error = open(&vfs, WalRecoveryMode::PointInTime).err().expect("it is refused");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(Path::new(LOG))), "{error:?}");
        assert_eq!(error.offset(), Some(offset), "{error:?}");
        let (what, advice) = error.message().split_once("; ").expect("with a way out");
        assert!(advice.contains("wal_recovery_mode=kSkipAnyCorruptedRecords"), "{advice}");
        what.to_owned()
    }

    /// Which of these keys there are.
    fn found(db: &Database, keys: [&str; 2]) -> [bool; 2] {
        let family = db.default_family();
        keys.map(|key| db.get(&family, key.as_bytes(), &ReadOptions::default()).unwrap().is_some())
    }

    #[test]
    fn a_batch_beside_an_ingest_goes_on_from_its_numbers_and_holds_what_it_says() {
        let beside = |batch: Vec<u8>| [record(FIRST, excise("a", "c")), batch].concat();
        let (vfs, _) = logged(&beside(batch(FIRST.0 + 1, 1, "q")));
        let db = open(&vfs, WalRecoveryMode::PointInTime).unwrap();
        assert_eq!(found(&db, ["b", "q"]), [false, true], "this one is as it should be");
        for seq in [0, 1, FIRST.0, FIRST.0 + 2, SeqNo::MAX.0] {
            let message = refused(&beside(batch(seq, 1, "q")));
            assert_eq!(message, "the batch beside an ingest does not go on from its numbers", "{seq}");
        }
        for count in [0, 2, u32::MAX] {
            let message = refused(&beside(batch(FIRST.0 + 1, count, "q")));
            assert_eq!(message, "a batch in the log does not hold as many records as it says", "{count}");
        }
        refused(&beside(vec![0; HEADER_BYTES - 1]));
    }

    #[test]
    fn numbers_of_a_batch_beside_an_ingest_do_not_overflow() {
        for count in [2, 3, u32::MAX] {
            let last_but_one = record(SeqNo(SeqNo::MAX.0 - 1), excise("a", "c"));
            refused(&[last_but_one, batch(SeqNo::MAX.0, count, "q")].concat());
        }
    }

    #[test]
    fn bounds_that_no_ingest_has_are_refused() {
        for (start, end) in [("b", "b"), ("c", "b"), ("b", "")] {
            let message = refused(&record(FIRST, excise(start, end)));
            assert_eq!(message, "an excise's span is empty or inverted", "{start:?}, {end:?}");
        }
        let wrong: [&[&[(&str, &str)]]; 7] = [
            &[&[("c", "a")]],
            &[&[("a", "b"), ("d", "c")]],
            &[&[("a", "c"), ("b", "d")]],
            &[&[("a", "c"), ("c", "d")]],
            &[&[("a", "a"), ("a", "a")]],
            &[&[("c", "d"), ("a", "b")]],
            &[&[("a", "b")], &[("d", "c")]],
        ];
        for layers in wrong {
            let message = refused(&record(FIRST, layered(layers)));
            let expected = "the bounds of an ingest's tables are inverted, or overlap in a layer";
            assert_eq!(message, expected, "{layers:?}");
        }
    }

    /// Tables of two layers may overlap, and one may end where the next begins: then it is looked for them.
    #[test]
    fn tables_that_are_missing_or_of_another_length_are_named() {
        let mut until_c = layered(&[&[("a", "b"), ("c", "d")]]);
        until_c.layers[0][0].meta.largest = key::encode(b"c", SeqNo::MAX, ValueKind::RangeDeletion);
        for share in [layered(&[&[("a", "c")], &[("b", "d")]]), until_c] {
            let (vfs, _) = logged(&record(FIRST, share));
            let names_table = |expected: &str| {
                let error = open(&vfs, WalRecoveryMode::PointInTime).err().expect("it is refused");
                assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(Path::new(TABLE))), "{error:?}");
                assert!(error.message().contains(expected), "{error:?}");
            };
            names_table("a table that was ingested is missing");
            for bytes in [0, TABLE_BYTES - 1, TABLE_BYTES + 1] {
                vfs.write_file(Path::new(TABLE), &vec![0; bytes as usize]).unwrap();
                names_table(&format!("the table has {bytes} bytes, the log says {TABLE_BYTES}"));
            }
        }
    }

    #[test]
    fn a_path_that_no_ingest_has_is_refused() {
        let mut elsewhere = layered(&[&[("a", "b")]]);
        elsewhere.layers[0][0].meta.path_id = 1;
        assert!(refused(&record(FIRST, elsewhere)).contains("path"));
    }

    /// Nothing of it is queued before all of it was looked at (D3), and its numbers are not given out again.
    #[test]
    fn salvage_passes_over_an_ingest_whole() {
        let excised = record(FIRST, excise("a", "c"));
        let lying = [excised.clone(), batch(FIRST.0 + 1, 2, "q")].concat();
        let mut lacking = layered(&[&[("x", "y")]]);
        lacking.excise = Some((b"a".to_vec(), b"c".to_vec()));
        for (ingest, last) in [(lying, FIRST.0 + 2), (record(FIRST, lacking), FIRST.0 + 1)] {
            let (vfs, _) = logged(&ingest);
            let db = open(&vfs, WalRecoveryMode::SkipAnyCorruptedRecords).unwrap();
            assert_eq!(found(&db, ["b", "q"]), [true, false]);
            assert!(db.latest_sequence_number() >= SeqNo(last), "{}", db.latest_sequence_number());
        }
    }
}
