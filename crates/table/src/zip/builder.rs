//! Collects a table's entries. Nothing is written before the end: codes and dictionary depend on all entries.

use std::path::PathBuf;
use std::sync::Arc;

use base::Result;
use base::key::{self, ParsedKey};
use base::limits;
use base::tombstone::RangeTombstone;
use vfs::{AppendFile, Vfs};

use super::footer::Footer;
use super::keys::KeyBounds;
use super::spill::Spill;
use crate::private::Output;
use crate::writer::{Draft, TableBuilderConfig};
use crate::{TableBuilder, TableSummary};

/// Of an internal key.
pub(super) const KEY_BYTES_MAX: usize = limits::KEY_BYTES_MAX + key::TRAILER_BYTES;

/// Bytes of codes, properties and footer, about.
const TAIL_BYTES: u64 = 2500;

/// Settings of zip tables only.
#[derive(Clone)]
pub struct ZipSettings {
    /// Where temporary files are.
    pub vfs: Arc<dyn Vfs>,
    /// Folder of the spill file, for entries beyond `memory_bytes`. The file is unlinked as soon as it is created.
    pub spill_dir: PathBuf,
    /// Limit of buffered entries, compressed fast. The open chunk comes on top: 1 MiB and one entry. A builder also
    /// needs 8 bytes per key if there is a filter, then 5 MiB for training, the index, and two entries.
    pub memory_bytes: usize,
}

/// Writes one zip table.
pub struct ZipTableBuilder {
    pub(super) draft: Draft,
    pub(super) output: Output,
    pub(super) spill: Spill,
    /// Of point entries.
    pub(super) keys: Option<KeyBounds>,
    pub(super) value_bytes: u64,
    pub(super) value_bytes_max: u32,
}

impl ZipTableBuilder {
    /// Uses the filter options of block-based tables, except partitions, and `verify_compression`. Ignores
    /// compression.
    ///
    /// # Errors
    /// `InvalidArgument`: the file is not empty.
    pub fn new(file: Box<dyn AppendFile>, config: TableBuilderConfig, settings: ZipSettings) -> Result<Self> {
        Ok(ZipTableBuilder {
            output: Output::new::<Footer>(file, &config)?,
            spill: Spill::new(settings, config.class)?,
            draft: Draft::of_mapped(config),
            keys: None,
            value_bytes: 0,
            value_bytes_max: 0,
        })
    }

    fn add_entry(&mut self, key: &[u8], value: &[u8], entry: &ParsedKey<'_>) -> Result<()> {
        let (trailer, draft) = (key::pack_trailer(entry.seq, entry.kind as u8), &mut self.draft);
        let is_new_key = draft.config.check_order(&draft.last_key, entry.user_key, trailer)?.is_gt();
        self.spill.add(key, value)?;
        let bytes = entry.user_key.len() as u32;
        let alone = KeyBounds { bytes_min: bytes, bytes_max: bytes, smallest_seq: entry.seq };
        let bounds = self.keys.get_or_insert(alone);
        bounds.bytes_min = bounds.bytes_min.min(bytes);
        bounds.bytes_max = bounds.bytes_max.max(bytes);
        bounds.smallest_seq = bounds.smallest_seq.min(entry.seq);
        self.value_bytes += value.len() as u64;
        self.value_bytes_max = self.value_bytes_max.max(value.len() as u32);
        draft.add(entry, is_new_key, key, value);
        Ok(())
    }
}

impl TableBuilder for ZipTableBuilder {
    fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let entry = self.draft.point_entry(internal_key, value)?;
        let added = self.add_entry(internal_key, value, &entry);
        self.draft.added(added)
    }

    fn add_tombstone(&mut self, tombstone: &RangeTombstone) -> Result<()> {
        self.draft.add_tombstone(tombstone)
    }

    fn entries(&self) -> u64 {
        self.draft.properties.entries
    }

    /// Bytes after fast compression: close to the final size.
    fn estimated_bytes(&self) -> u64 {
        self.spill.estimated_bytes() + self.draft.filter_bytes() as u64 + TAIL_BYTES
    }

    fn finish(self: Box<Self>) -> Result<TableSummary> {
        let path = self.draft.config.path.clone();
        self.finish_table().map_err(|e| e.at_path(path))
    }
}
