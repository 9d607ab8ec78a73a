//! The tables in the directory: their contents, and whether they are whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::key::{self, ParsedKey};
use base::value_source::{ValueRef, ValueSource};
use base::{Error, ErrorKind, FileNumber, InternalOrder, Pinned, Result, SeqNo, UserOrder, ValueKind};
use parking_lot::Mutex;
use table::{
    AnyTable, BlockBasedTableBuilder, ExternalFile, PassedOver, Properties, Table, TableBuilderConfig, TableContext,
    TableReadOptions, open_any,
};
use vfs::{IfExists, IoClass, Vfs};

use crate::core::tables::{identified, open_in_any, within};
use crate::cursor::damage::SkippedDamage;
use crate::manage::copied_table::{config_like, copy_all, copy_table};
use crate::version::log_life::{LogsOnDemand, ValueLog};
use crate::version::replay::RecoveredFamily;
use crate::version::span::widen;
use crate::version::table_file::FileMeta;

/// Location of tables, and the context to read them.
pub(super) struct TableSource<'a> {
    pub vfs: &'a Arc<dyn Vfs>,
    pub dir: &'a Path,
    pub log_dir: &'a Path,
    pub orders: Vec<UserOrder>,
}

/// A table read through and found whole.
pub(super) struct WholeTable {
    pub meta: FileMeta,
    pub order: InternalOrder,
    pub properties: Properties,
    /// The largest sequence number from a flush, directly or through a compaction.
    pub largest_flushed: SeqNo,
}

/// The readable part of a damaged table, in its own file.
pub(super) struct Salvaged {
    pub table: WholeTable,
    pub skipped: Vec<PassedOver>,
}

impl TableSource<'_> {
    /// Reads a table named by the MANIFEST. Its metadata is kept. `None`: the file is another table.
    ///
    /// # Errors
    /// `Corruption`: the table is damaged. `Unsupported`: its key order is unknown.
    pub fn read_named(&self, meta: &FileMeta, path: &Path) -> Result<Option<WholeTable>> {
        let values = self.values();
        let (whole, order) = self.open(path, meta.physical_bytes(), Some(meta.largest_seq), &values)?;
        whole.verify()?;
        let table = identified(meta, &order, whole)?;
        let seen = self.walk(&table, &order, None)?;
        let lies_within = |(smallest, largest): &(Vec<u8>, Vec<u8>)| {
            order.compare(&meta.smallest, smallest).is_le() && order.compare(largest, &meta.largest).is_le()
        };
        let is_it = meta.is_virtual() || seen.largest_seq <= meta.largest_seq && seen.points.iter().all(lies_within);
        let properties = table.properties().clone();
        if is_it && seen.bounds.is_some() {
            meta.check_number(seen.smallest_seq)?; // a block of another table
        }
        Ok(is_it.then(|| WholeTable { meta: meta.clone(), order, properties, largest_flushed: seen.largest_flushed }))
    }

    /// Reads a table known only as a file. `number`: sequence number of an ingested table, from the log or guessed.
    ///
    /// # Errors
    /// As [`read_named`](Self::read_named).
    pub fn read_unnamed(&self, file: FileNumber, path: &Path, number: Option<SeqNo>) -> Result<WholeTable> {
        let bytes = self.vfs.metadata(path)?.len;
        let values = self.values();
        let (table, order) = self.open(path, bytes, number, &values)?;
        table.verify()?;
        let seen = self.walk(&table, &order, number)?;
        let Some((smallest, largest)) = seen.bounds else { return Err(Error::corruption("the table has no entries")) };
        let properties = table.properties().clone();
        let meta = FileMeta {
            number: file,
            file_bytes: bytes,
            smallest,
            largest,
            smallest_seq: seen.smallest_seq,
            largest_seq: seen.largest_seq,
            epoch_number: 1,
            oldest_ancestor_time: properties.creation_time_s,
            file_creation_time: properties.file_creation_time_s,
            value_logs: values.shares(),
            unique_id: properties.unique_id(),
            ..FileMeta::default()
        };
        Ok(WholeTable { meta, order, properties, largest_flushed: seen.largest_flushed })
    }

    /// Copies the readable part of a damaged table to file `to`. `None` if nothing is readable. Keeps the bounds:
    /// neighbours in the level rely on them.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn salvage(
        &self,
        family: &RecoveredFamily,
        meta: &FileMeta,
        path: &Path,
        to: FileNumber,
    ) -> Result<Option<Salvaged>> {
        let opened = self.open(path, meta.physical_bytes(), Some(meta.largest_seq), &self.values());
        let (opened, has_properties) = match if_readable(opened)? {
            Some(opened) => (Some(opened), true),
            None => (if_readable(self.open_without_properties(family, meta, path))?.flatten(), false),
        };
        let Some((whole, order)) = opened else { return Ok(None) };
        // Without properties only its entries tell whose the table is.
        let part = if has_properties { identified } else { within };
        let Some(table) = if_readable(part(meta, &order, whole))? else { return Ok(None) };
        let skipped = SkippedDamage::new();
        let target = path_of(self.dir, to);
        let builder = self.builder(&target, config_like(table.properties(), &order, &target))?;
        let summary = copy_table(&table, meta, &order, builder, Some(&skipped))?;
        if summary.properties.entries == 0 {
            self.vfs.remove_file(&target)?;
            return Ok(None);
        }
        let meta = meta.copied_to(to, &summary);
        let table = WholeTable { meta, order, properties: summary.properties, largest_flushed: SeqNo::ZERO };
        let mut skipped = skipped.list();
        if !has_properties {
            skipped.iter_mut().for_each(|part| (part.from, part.through) = (None, None));
        }
        Ok(Some(Salvaged { table, skipped }))
    }

    /// Opens a table with damaged properties: the MANIFEST has the family, its order, and the number that all keys of an
    /// ingested table take. `None`: it is not certain whether they take it.
    fn open_without_properties(
        &self,
        family: &RecoveredFamily,
        meta: &FileMeta,
        path: &Path,
    ) -> Result<Option<(Arc<dyn Table>, InternalOrder)>> {
        let Some(order) = self.orders.iter().find(|order| order.name() == family.comparator) else { return Ok(None) };
        let order = InternalOrder::new(order.clone());
        let open = |external: Option<ExternalFile>| {
            let given = Properties {
                family_id: Some(family.id.0),
                family_name: family.name.clone(),
                comparator: family.comparator.clone(),
                external,
                ..Properties::default()
            };
            let context = TableContext {
                order: order.clone(),
                largest_seq: Some(meta.largest_seq),
                stands_in: Some(Arc::new(given)),
                ..TableContext::default()
            };
            let file = self.vfs.open(path)?;
            open_any(&**self.vfs, file, path, meta.physical_bytes(), &context).map(AnyTable::into_table)
        };
        let table = open(None)?;
        let skipped = SkippedDamage::new();
        if has_numbers(&table, &skipped)? || meta.largest_seq == SeqNo::ZERO {
            return Ok(Some((table, order)));
        }
        let has_one_number = meta.smallest_seq == meta.largest_seq;
        match (has_one_number, skipped.is_empty()) {
            (true, true) => {}
            (false, false) => return Ok(Some((table, order))), // its numbers are in what is damaged
            _ => return Ok(None),
        }
        let external = ExternalFile { version: ExternalFile::VERSION, global_seqno: 0 };
        Ok(Some((open(Some(external))?, order)))
    }

    /// Copies the readable part of a damaged table to file `to`, for a table known only as a file. `number` is as in
    /// [`read_unnamed`](Self::read_unnamed). `None` if nothing is readable.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn salvage_unnamed(&self, path: &Path, number: Option<SeqNo>, to: FileNumber) -> Result<Option<Salvaged>> {
        let bytes = self.vfs.metadata(path)?.len;
        let opened = if_readable(self.open(path, bytes, number, &self.values()))?;
        let Some((table, order)) = opened else { return Ok(None) };
        let (skipped, target) = (SkippedDamage::new(), path_of(self.dir, to));
        // A number that is still unknown stays so.
        let ingestable = number.is_none() && lacks_number(table.properties());
        let config = TableBuilderConfig { ingestable, ..config_like(table.properties(), &order, &target) };
        let summary = copy_all(&table, &order, self.builder(&target, config)?, &skipped)?;
        if summary.properties.entries == 0 {
            self.vfs.remove_file(&target)?;
            return Ok(None);
        }
        let mut table = self.read_unnamed(to, &target, None)?;
        if number.is_some() {
            table.largest_flushed = SeqNo::ZERO;
        }
        Ok(Some(Salvaged { table, skipped: skipped.list() }))
    }

    fn builder(&self, path: &Path, config: TableBuilderConfig) -> Result<BlockBasedTableBuilder> {
        BlockBasedTableBuilder::new(self.vfs.create(path, IfExists::Truncate)?, config)
    }

    /// Reopens a table for iteration.
    ///
    /// # Errors
    /// The table's.
    pub fn reopen(&self, table: &WholeTable, path: &Path) -> Result<Arc<dyn Table>> {
        let meta = &table.meta;
        let (opened, order) = self.open(path, meta.physical_bytes(), Some(meta.largest_seq), &self.values())?;
        within(meta, &order, opened)
    }

    fn open(
        &self,
        path: &Path,
        bytes: u64,
        largest_seq: Option<SeqNo>,
        values: &Arc<SeenValues>,
    ) -> Result<(Arc<dyn Table>, InternalOrder)> {
        let context = TableContext { largest_seq, values: Some(values.clone()), ..TableContext::default() };
        match open_in_any(&**self.vfs, path, bytes, &context, &self.orders) {
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {
                let what = format!("{}: open it with that comparator among the options", error.message());
                Err(Error::unsupported(what).at_path(path))
            }
            opened => opened.map(|(any, order)| (any.into_table(), order)),
        }
    }

    pub fn values(&self) -> Arc<SeenValues> {
        let logs = LogsOnDemand::in_dir(self.vfs.clone(), self.log_dir.to_owned());
        Arc::new(SeenValues { logs, bytes: Mutex::default() })
    }

    /// Iterates over all entries. `number`: an ingested table's sequence number, shared by all its entries.
    fn walk(&self, table: &Arc<dyn Table>, order: &InternalOrder, number: Option<SeqNo>) -> Result<Seen> {
        let mut seen = Seen { smallest_seq: SeqNo::MAX, ..Seen::default() };
        let options = TableReadOptions { fill_cache: false, class: IoClass::Other, ..TableReadOptions::default() };
        let mut cursor = table.clone().cursor(&options);
        let mut valid = cursor.seek_to_first();
        while valid {
            let entry =
                ParsedKey::parse(cursor.key()).ok_or_else(|| Error::corruption("an entry of an unknown kind"))?;
            seen.note(entry.seq, number.is_some());
            widen(&mut seen.bounds, cursor.key(), cursor.key(), |a, b| order.compare(a, b));
            widen(&mut seen.points, cursor.key(), cursor.key(), |a, b| order.compare(a, b));
            valid = cursor.next();
        }
        cursor.status()?;
        for fragment in table.tombstones().iter().flat_map(|all| all.fragments()) {
            fragment.seqs.iter().for_each(|seq| seen.note(*seq, number.is_some()));
            let newest = fragment.seqs.first().copied().unwrap_or_default();
            let start = key::encode(&fragment.start, newest, ValueKind::RangeDeletion);
            let end = key::encode(&fragment.end, SeqNo::MAX, ValueKind::RangeDeletion);
            widen(&mut seen.bounds, &start, &end, |a, b| order.compare(a, b));
        }
        seen.smallest_seq = seen.smallest_seq.min(seen.largest_seq);
        Ok(seen)
    }
}

/// `None` if the table is damaged.
fn if_readable<T>(opened: Result<T>) -> Result<Option<T>> {
    match opened {
        Err(error) if error.kind() == ErrorKind::Corruption => Ok(None),
        opened => opened.map(Some),
    }
}

/// Findings of a walk over a table.
#[derive(Default)]
struct Seen {
    /// The first and the last internal key.
    bounds: Option<(Vec<u8>, Vec<u8>)>,
    /// As `bounds`, without range tombstones.
    points: Option<(Vec<u8>, Vec<u8>)>,
    smallest_seq: SeqNo,
    largest_seq: SeqNo,
    largest_flushed: SeqNo,
}

impl Seen {
    /// An ingest's file holds nothing flushed. A table that a flush or a compaction made of it does.
    fn note(&mut self, seq: SeqNo, is_ingested: bool) {
        (self.smallest_seq, self.largest_seq) = (self.smallest_seq.min(seq), self.largest_seq.max(seq));
        if !is_ingested {
            self.largest_flushed = self.largest_flushed.max(seq);
        }
    }
}

/// Whether an entry that can be read has a sequence number of its own.
fn has_numbers(table: &Arc<dyn Table>, skipped: &Arc<SkippedDamage>) -> Result<bool> {
    let mut fragments = table.tombstones().into_iter().flat_map(|all| all.fragments().to_vec());
    if fragments.any(|fragment| fragment.seqs.iter().any(|seq| *seq != SeqNo::ZERO)) {
        return Ok(true);
    }
    let options = TableReadOptions {
        fill_cache: false,
        class: IoClass::Other,
        skip_damaged: Some(skipped.clone() as _),
        ..TableReadOptions::default()
    };
    let mut cursor = table.clone().cursor(&options);
    let mut valid = cursor.seek_to_first();
    while valid {
        if ParsedKey::parse(cursor.key()).is_some_and(|entry| entry.seq != SeqNo::ZERO) {
            return Ok(true);
        }
        valid = cursor.next();
    }
    cursor.status().map(|()| false)
}

/// Whether a table was made to be ingested, and its sequence number was only in the MANIFEST.
pub(super) fn lacks_number(properties: &Properties) -> bool {
    properties.external.is_some_and(|external| external.version == ExternalFile::VERSION && external.global_seqno == 0)
}

/// Reads values in logs, and records which were read.
pub(super) struct SeenValues {
    logs: Arc<LogsOnDemand>,
    /// Value lengths, by log and offset.
    bytes: Mutex<BTreeMap<FileNumber, BTreeMap<u64, u64>>>,
}

impl SeenValues {
    fn shares(&self) -> Vec<ValueLog> {
        let seen = self.bytes.lock();
        seen.iter().map(|(log, values)| ValueLog { log: *log, bytes: values.values().sum() }).collect()
    }
}

impl ValueSource for SeenValues {
    fn resolve(&self, value: ValueRef) -> Result<Pinned> {
        self.bytes.lock().entry(value.log).or_default().insert(value.offset, u64::from(value.len));
        self.logs.resolve(value)
    }
}

/// The path of a table.
pub(super) fn path_of(dir: &Path, number: FileNumber) -> PathBuf {
    use crate::version::file_name::{FileType, format};
    dir.join(format(FileType::Table, number))
}
