//! What builders of every kind collect besides the entries themselves: filter, tombstones, counts, bounds.

use base::key::{self, ParsedKey};
use base::tombstone::RangeTombstone;
use base::{Error, Result, SeqNo, ValueKind};

use super::{FilterCollector, TableBuilderConfig};
#[cfg(feature = "topling")]
use crate::private::{Footer, MetaSizes, Output};
use crate::properties::Properties;
use crate::{TableSummary, tombstones};

pub(crate) struct Draft {
    pub(crate) config: TableBuilderConfig,
    pub(crate) filter: Option<FilterCollector>,
    tombstones: Vec<RangeTombstone>,
    pub(crate) properties: Properties,
    seqs: Option<(SeqNo, SeqNo)>,
    /// Internal keys of the first and the last point entry. Kinds that keep the last key elsewhere set it at the end.
    pub(crate) first_key: Vec<u8>,
    pub(crate) last_key: Vec<u8>,
    /// The index has whole keys: they have a limit of their own.
    indexes_keys: bool,
    failed: bool,
}

impl Draft {
    pub(crate) fn new(config: TableBuilderConfig) -> Draft {
        Draft {
            filter: FilterCollector::new(&config),
            config,
            tombstones: Vec::new(),
            properties: Properties::default(),
            seqs: None,
            first_key: Vec::new(),
            last_key: Vec::new(),
            indexes_keys: false,
            failed: false,
        }
    }

    /// For fast and zip tables: one filter without partitions, and whole keys in the index.
    #[cfg(feature = "topling")]
    pub(crate) fn of_mapped(mut config: TableBuilderConfig) -> Draft {
        config.options.partition_filters = false;
        Draft { indexes_keys: true, ..Draft::new(config) }
    }

    /// # Errors
    /// `InvalidArgument`: not an internal key, or one this table cannot hold; or a write has failed before.
    #[inline]
    pub(crate) fn point_entry<'k>(&self, internal_key: &'k [u8], value: &[u8]) -> Result<ParsedKey<'k>> {
        let entry = self.config.point_entry(internal_key)?;
        self.check_entry(value, &entry)?;
        Ok(entry)
    }

    fn check_entry(&self, value: &[u8], entry: &ParsedKey<'_>) -> Result<()> {
        self.check_whole().map_err(|e| e.at_path(&self.config.path))?;
        if self.indexes_keys {
            self.config.check_short_key(entry.user_key)?;
        }
        self.config.check_entry(value, entry)
    }

    /// # Errors
    /// `InvalidArgument`: a write has failed before.
    pub(crate) fn check_whole(&self) -> Result<()> {
        if self.failed { Err(Error::invalid_argument("a write of this table has failed")) } else { Ok(()) }
    }

    /// Remembers a failure to add an entry.
    #[inline]
    pub(crate) fn added(&mut self, result: Result<()>) -> Result<()> {
        self.failed = result.is_err();
        result
    }

    #[inline]
    pub(crate) fn count(&mut self, entry: &ParsedKey<'_>, key: &[u8], value: &[u8]) {
        self.properties.count(entry.kind, key.len(), value.len());
        let (smallest, largest) = self.seqs.unwrap_or((entry.seq, entry.seq));
        self.seqs = Some((smallest.min(entry.seq), largest.max(entry.seq)));
    }

    /// Counts a point entry and keeps its key. `is_new_key`: it is not a version of the last key.
    #[cfg(feature = "topling")]
    #[inline]
    pub(crate) fn add(&mut self, entry: &ParsedKey<'_>, is_new_key: bool, key: &[u8], value: &[u8]) {
        if is_new_key && let Some(filter) = &mut self.filter {
            filter.add(entry.user_key);
        }
        if self.last_key.is_empty() {
            self.first_key.extend_from_slice(key);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.count(entry, key, value);
    }

    /// # Errors
    /// `InvalidArgument`: this table cannot hold it.
    pub(crate) fn add_tombstone(&mut self, tombstone: &RangeTombstone) -> Result<()> {
        let entry = ParsedKey { user_key: &tombstone.start, seq: tombstone.seq, kind: ValueKind::RangeDeletion };
        self.check_entry(&tombstone.end, &entry)?;
        self.count(&entry, &key::encode(entry.user_key, entry.seq, entry.kind), &tombstone.end);
        self.tombstones.push(tombstone.clone());
        Ok(())
    }

    pub(crate) fn filter_bytes(&self) -> usize {
        self.filter.as_ref().map_or(0, FilterCollector::estimated_bytes)
    }

    /// The block of range tombstones; `None` without any.
    pub(crate) fn tombstone_block(&mut self) -> Option<Vec<u8>> {
        let some = !self.tombstones.is_empty();
        some.then(|| tombstones::encode(&self.config.order.user, &mut self.tombstones))
    }

    /// Writes the rest of a fast or zip table behind its own sections: filter, range tombstones and tail.
    #[cfg(feature = "topling")]
    pub(crate) fn finish_mapped<F: Footer>(
        mut self,
        mut output: Output,
        footer: impl FnOnce(MetaSizes) -> F,
    ) -> Result<TableSummary> {
        let mut meta = MetaSizes::default();
        if let Some(filter) = self.filter.take() {
            let (parts, entries) = filter.finish(&[]);
            self.properties.filter_entries = entries;
            meta.filter_bytes = parts.first().map_or(Ok(0), |whole| output.append(&whole.contents))?;
        }
        if let Some(block) = self.tombstone_block() {
            meta.tombstones_bytes = output.append(&block)?;
        }
        self.properties.filter_bytes = meta.filter_bytes;
        self.config.describe(&mut self.properties);
        let footer = |properties_bytes| footer(MetaSizes { properties_bytes, ..meta });
        let file_bytes = output.finish(&self.properties, footer)?;
        Ok(self.summary(file_bytes))
    }

    pub(crate) fn summary(self, file_bytes: u64) -> TableSummary {
        let (smallest_seq, largest_seq) = self.seqs.unwrap_or((SeqNo::ZERO, SeqNo::ZERO));
        let point_bounds = (!self.first_key.is_empty()).then_some((self.first_key, self.last_key));
        TableSummary { file_bytes, point_bounds, smallest_seq, largest_seq, properties: self.properties }
    }
}
