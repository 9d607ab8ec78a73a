//! Ingested tables in a family's queue: read like a memtable, until a flush links them into levels. Keeps Q1, Q3.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use base::tombstone::{FragmentedTombstones, RangeTombstone};
use base::{Cursor, FileNumber, InternalOrder, LookupKey, Result, SeqNo};
use table::{TableReadOptions, TableValue, Visit};

use crate::cursor::damage::{is_damage, pass_over_table};
use crate::cursor::level::{LevelCursor, LevelFiles};
use crate::cursor::merging::MergingCursor;
use crate::order::SeqRange;
use crate::order::pipeline::LogPosition;
use crate::queue::flushable::Enqueue;
use crate::queue::flushable::Flushable;
use crate::records::ingest_record::{FamilyIngest, IngestShape, IngestTable, numbered};
use crate::version::level::ends_before;
use crate::version::table_file::TableFile;
use crate::version::table_store::TableStore;

/// One ingest's share in one family: a single queue entry, so that the share leaves the queue at once.
pub struct QueuedIngest {
    order: InternalOrder,
    store: Arc<TableStore>,
    /// As prepared, without numbers.
    share: Arc<FamilyIngest>,
    shape: IngestShape,
    /// Microseconds since 1970 by the wall clock.
    arrived_us: u64,
    given: OnceLock<SeqRange>,
    /// The numbered tables, by layer. Built on first use, not under the commit lock (C3).
    layers: OnceLock<Vec<Vec<Arc<TableFile>>>>,
    tombstones: OnceLock<Option<Arc<FragmentedTombstones>>>,
    /// The committer links the tables itself; no flush takes the entry.
    held: AtomicBool,
    /// Tables with more bytes together are not rewritten. 0 if none of them may be.
    merged_max_bytes: u64,
    /// Id of the places reserved in the last level for its tables; 0 for none.
    reservation: AtomicU64,
    memory_bytes: usize,
}

impl QueuedIngest {
    /// `shape` and `arrived_us` are the whole ingest's. Without an excise, tables of at most `merged_max_bytes` together may be merged with
    /// a memtable under them: in level 0 one table costs reads and compactions less than many small ones.
    pub(crate) fn new(
        order: &InternalOrder,
        store: &Arc<TableStore>,
        share: Arc<FamilyIngest>,
        shape: IngestShape,
        arrived_us: u64,
        merged_max_bytes: u64,
    ) -> Arc<Self> {
        let may_merge = share.excise.is_none()
            && share.layers.iter().flatten().any(|table: &IngestTable| table.bytes() <= merged_max_bytes);
        let of_table = |table: &IngestTable| {
            size_of::<IngestTable>()
                + size_of::<TableFile>()
                + 2 * (table.meta.smallest.len() + table.meta.largest.len())
        };
        let memory_bytes = size_of::<Self>() + share.layers.iter().flatten().map(of_table).sum::<usize>();
        Arc::new(QueuedIngest {
            order: order.clone(),
            store: store.clone(),
            shape,
            arrived_us,
            given: OnceLock::new(),
            layers: OnceLock::new(),
            tombstones: OnceLock::new(),
            held: AtomicBool::new(false),
            merged_max_bytes: if may_merge { merged_max_bytes } else { 0 },
            reservation: AtomicU64::new(0),
            memory_bytes,
            share,
        })
    }

    pub(crate) fn share(&self) -> &FamilyIngest {
        &self.share
    }

    /// Microseconds since the arrival, by the wall clock; 0 if that was set back. The process that queued the ingest first
    /// may be gone.
    pub fn queued_for_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.arrived_us)
    }

    /// Keeps flushes from taking the entry. The entry overlaps nothing older in its queue.
    pub(crate) fn hold(&self) {
        self.held.store(true, Ordering::Release);
    }

    /// Lets flushes take the entry. Called under the state lock.
    pub(crate) fn end_hold(&self) {
        self.held.store(false, Ordering::Release);
    }

    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    /// Limit on the bytes of tables that a flush rewrites together with memtables under them. 0: it links all.
    pub(crate) fn merged_max_bytes(&self) -> u64 {
        self.merged_max_bytes
    }

    /// The entry with only some of its tables, by the same handles. For a flush; it is not queued.
    pub(crate) fn part(&self, holds: impl Fn(FileNumber) -> bool) -> Arc<QueuedIngest> {
        let mut share = FamilyIngest { family: self.share.family, ..FamilyIngest::default() };
        let mut layers = Vec::new();
        for (tables, files) in self.share.layers.iter().zip(self.layers()) {
            let both = tables.iter().cloned().zip(files.iter().cloned());
            let (tables, files): (Vec<_>, Vec<_>) = both.filter(|(_, file)| holds(file.number())).unzip();
            if !files.is_empty() {
                share.layers.push(tables);
                layers.push(files);
            }
        }
        Arc::new(QueuedIngest {
            order: self.order.clone(),
            store: self.store.clone(),
            share: Arc::new(share),
            shape: self.shape,
            arrived_us: self.arrived_us,
            given: self.given.clone(),
            layers: OnceLock::from(layers),
            tombstones: OnceLock::new(),
            held: AtomicBool::new(false),
            merged_max_bytes: self.merged_max_bytes,
            reservation: AtomicU64::new(0),
            memory_bytes: self.memory_bytes,
        })
    }

    pub(crate) fn keep_reservation(&self, id: u64) {
        self.reservation.store(id, Ordering::Release);
    }

    pub(crate) fn reservation(&self) -> Option<u64> {
        Some(self.reservation.load(Ordering::Acquire)).filter(|id| *id > 0)
    }

    fn given(&self) -> SeqRange {
        *self.given.get().expect("numbered before it is queued")
    }

    /// The tables, oldest layer first.
    pub fn layers(&self) -> &[Vec<Arc<TableFile>>] {
        self.layers.get_or_init(|| {
            let first = SeqNo(self.given().before.0 + 1);
            let layer = |(i, tables): (usize, &Vec<IngestTable>)| {
                let number = self.shape.number_of_layer(first, i);
                tables.iter().map(|table| self.store.file(numbered(table.meta.clone(), number))).collect()
            };
            self.share.layers.iter().enumerate().map(layer).collect()
        })
    }

    pub fn files(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.layers().iter().flatten()
    }

    /// The tables as prepared.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &IngestTable> {
        self.share.layers.iter().flatten()
    }

    pub fn has_excise(&self) -> bool {
        self.share.excise.is_some()
    }

    /// The excise as readers see it: a range tombstone.
    pub fn excise(&self) -> Option<RangeTombstone> {
        let (start, end) = self.share.excise.clone()?;
        Some(RangeTombstone { start, end, seq: SeqNo(self.given().before.0 + 1) })
    }

    /// Clears `is_whole` if a damaged table is passed over.
    fn collect_tombstones(
        &self,
        options: &TableReadOptions,
        is_whole: &mut bool,
    ) -> Result<Option<Arc<FragmentedTombstones>>> {
        let mut all: Vec<RangeTombstone> = self.excise().into_iter().collect();
        for (tables, files) in self.share.layers.iter().zip(self.layers()) {
            for (_, file) in tables.iter().zip(files).filter(|(table, _)| table.has_range_deletions) {
                let table = match (file.open_by(options), &options.skip_damaged) {
                    (Err(error), Some(damage)) if is_damage(&error) => {
                        pass_over_table(file, error, damage);
                        *is_whole = false;
                        continue;
                    }
                    (opened, _) => opened?,
                };
                let Some(found) = table.tombstones() else { continue };
                for fragment in file.meta.tombstones_inside(&found).fragments() {
                    let (start, end) = (&fragment.start, &fragment.end);
                    let piece = |&seq| RangeTombstone { start: start.clone(), end: end.clone(), seq };
                    all.extend(fragment.seqs.iter().map(piece));
                }
            }
        }
        let built = FragmentedTombstones::build(self.order.user.clone(), all);
        Ok((!built.is_empty()).then(|| Arc::new(built)))
    }
}

impl Flushable for QueuedIngest {
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        let (order, user_key) = (&self.order.user, key.user_key());
        let mut more = true;
        for files in self.layers().iter().rev() {
            if !more {
                break;
            }
            // At most one file of a layer holds the key.
            let at = files.partition_point(|file| ends_before(order, &file.meta, user_key));
            let holds = |file: &&Arc<TableFile>| order.compare(file.smallest_user_key(), user_key).is_le();
            let Some(file) = files.get(at).filter(holds) else { continue };
            file.read_by(options, |table| {
                table.get(key, options, &mut |seq, kind, value: TableValue<'_>| {
                    more = visit(seq, kind, value);
                    more
                })
            })?;
        }
        Ok(())
    }

    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Result<Box<dyn Cursor>> {
        let layer = |files: &Vec<Arc<TableFile>>| -> Box<dyn Cursor> {
            Box::new(LevelCursor::over(self.order.clone(), LevelFiles::Listed(files.clone()), options.clone()))
        };
        let mut layers: Vec<Box<dyn Cursor>> = self.layers().iter().rev().map(layer).collect();
        Ok(match layers.len() {
            1 => layers.swap_remove(0),
            _ => Box::new(MergingCursor::new(self.order.clone(), layers)),
        })
    }

    fn tombstones(&self, options: &TableReadOptions) -> Result<Option<Arc<FragmentedTombstones>>> {
        if let Some(known) = self.tombstones.get() {
            return Ok(known.clone());
        }
        let mut is_whole = true;
        let collected = self.collect_tombstones(options, &mut is_whole)?;
        if !is_whole {
            return Ok(collected); // other reads refuse the damage
        }
        Ok(self.tombstones.get_or_init(|| collected).clone())
    }

    fn created_at(&self) -> SeqNo {
        self.given().before
    }

    fn largest_seq(&self) -> Option<SeqNo> {
        Some(SeqNo(self.given().before.0 + self.shape.numbers))
    }

    fn logged_through(&self) -> LogPosition {
        self.given().log_end
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn as_ingest(&self) -> Option<&QueuedIngest> {
        Some(self)
    }
}

impl Enqueue for QueuedIngest {
    fn set_numbers(&self, given: &SeqRange) {
        self.given.set(*given).expect("an entry is numbered once");
    }
}

#[cfg(test)]
mod tests;
