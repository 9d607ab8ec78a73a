//! Collects a table's entries. Nothing is written before the end: codes and dictionary depend on all entries.

use std::path::PathBuf;
use std::sync::Arc;

use base::key::{self, ParsedKey};
use base::limits;
use base::tombstone::RangeTombstone;
use base::{Error, Result, SeqNo, ValueKind};
use vfs::{AppendFile, Vfs};

use super::finish::Output;
use super::keys::KeyBounds;
use super::spill::Spill;
use crate::properties::Properties;
use crate::writer::{FilterCollector, Sink, TableBuilderConfig};
use crate::{TableBuilder, TableSummary};

/// Of an internal key.
pub(super) const KEY_BYTES_MAX: usize = limits::KEY_BYTES_MAX + key::TRAILER_BYTES;

/// Default of [`ZipSettings::memory_bytes`].
pub const ZIP_MEMORY_BYTES_DEFAULT: usize = 64 << 20;

/// Bytes of codes, properties and footer, about.
const TAIL_BYTES: u64 = 2500;

/// Settings of zip tables only.
#[derive(Clone)]
pub struct ZipSettings {
    pub vfs: Arc<dyn Vfs>,
    /// Folder of the spill file, for entries beyond `memory_bytes`. The file is unlinked as soon as it is created.
    pub spill_dir: PathBuf,
    /// Limit of buffered entries, compressed fast. The open chunk comes on top: 1 MiB and one entry. A builder also
    /// needs 8 bytes per key if there is a filter, then 5 MiB for training, the index, and two entries.
    pub memory_bytes: usize,
}

/// Writes one zip table.
pub struct ZipTableBuilder {
    pub(super) config: TableBuilderConfig,
    pub(super) output: Output,
    pub(super) spill: Spill,
    pub(super) filter: Option<FilterCollector>,
    pub(super) tombstones: Vec<RangeTombstone>,
    pub(super) properties: Properties,
    pub(super) seqs: Option<(SeqNo, SeqNo)>,
    /// Internal keys: the table's first, and the last one added.
    pub(super) first_key: Vec<u8>,
    pub(super) last_key: Vec<u8>,
    /// Of point entries.
    pub(super) keys: Option<KeyBounds>,
    pub(super) value_bytes: u64,
    pub(super) value_bytes_max: u32,
    pub(super) failed: bool,
}

impl ZipTableBuilder {
    /// Uses the filter options of block-based tables, except partitions, and `verify_compression`. Ignores
    /// compression.
    ///
    /// # Errors
    /// `InvalidArgument`: the file is not empty.
    pub fn new(file: Box<dyn AppendFile>, mut config: TableBuilderConfig, settings: ZipSettings) -> Result<Self> {
        config.options.partition_filters = false;
        Ok(ZipTableBuilder {
            output: Output::new(Sink::new(file, &config)?),
            spill: Spill::new(settings, config.class)?,
            filter: FilterCollector::new(&config),
            tombstones: Vec::new(),
            properties: Properties::default(),
            seqs: None,
            first_key: Vec::new(),
            last_key: Vec::new(),
            keys: None,
            value_bytes: 0,
            value_bytes_max: 0,
            failed: false,
            config,
        })
    }

    fn check_entry(&self, value: &[u8], entry: &ParsedKey<'_>) -> Result<()> {
        if self.failed {
            return Err(Error::invalid_argument("a write of this table has failed").at_path(&self.config.path));
        }
        self.config.check_short_key(entry.user_key)?;
        self.config.check_entry(value, entry)
    }

    fn count(&mut self, entry: &ParsedKey<'_>, key: &[u8], value: &[u8]) {
        self.properties.count(entry.kind, key.len(), value.len());
        let (smallest, largest) = self.seqs.unwrap_or((entry.seq, entry.seq));
        self.seqs = Some((smallest.min(entry.seq), largest.max(entry.seq)));
    }

    fn add_entry(&mut self, key: &[u8], value: &[u8], entry: &ParsedKey<'_>) -> Result<()> {
        let trailer = key::pack_trailer(entry.seq, entry.kind as u8);
        let is_new_key = self.config.check_order(&self.last_key, entry.user_key, trailer)?.is_gt();
        self.spill.add(key, value)?;
        if is_new_key && let Some(filter) = &mut self.filter {
            filter.add(entry.user_key);
        }
        if self.last_key.is_empty() {
            self.first_key.extend_from_slice(key);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        let bytes = entry.user_key.len() as u32;
        let alone = KeyBounds { bytes_min: bytes, bytes_max: bytes, smallest_seq: entry.seq };
        let bounds = self.keys.get_or_insert(alone);
        bounds.bytes_min = bounds.bytes_min.min(bytes);
        bounds.bytes_max = bounds.bytes_max.max(bytes);
        bounds.smallest_seq = bounds.smallest_seq.min(entry.seq);
        self.value_bytes += value.len() as u64;
        self.value_bytes_max = self.value_bytes_max.max(value.len() as u32);
        self.count(entry, key, value);
        Ok(())
    }
}

impl TableBuilder for ZipTableBuilder {
    fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let entry = self.config.point_entry(internal_key)?;
        self.check_entry(value, &entry)?;
        let added = self.add_entry(internal_key, value, &entry);
        self.failed = added.is_err();
        added
    }

    fn add_tombstone(&mut self, tombstone: &RangeTombstone) -> Result<()> {
        let entry = ParsedKey { user_key: &tombstone.start, seq: tombstone.seq, kind: ValueKind::RangeDeletion };
        self.check_entry(&tombstone.end, &entry)?;
        let mut key = Vec::with_capacity(tombstone.start.len() + key::TRAILER_BYTES);
        entry.encode_to(&mut key);
        self.count(&entry, &key, &tombstone.end);
        self.tombstones.push(tombstone.clone());
        Ok(())
    }

    fn entries(&self) -> u64 {
        self.properties.entries
    }

    /// Bytes after fast compression: close to the final size.
    fn estimated_bytes(&self) -> u64 {
        let filter = self.filter.as_ref().map_or(0, FilterCollector::estimated_bytes);
        self.spill.estimated_bytes() + filter as u64 + TAIL_BYTES
    }

    fn finish(self: Box<Self>) -> Result<TableSummary> {
        let path: PathBuf = self.config.path.clone();
        self.finish_table().map_err(|e| e.at_path(path))
    }
}
