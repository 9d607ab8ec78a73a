//! Writes a fast table: groups as entries come, then nodes, filter, tombstones, checksums, properties and footer.
//! Memory: the open group, the nodes (about a byte per entry) and the filter's hashes (eight bytes per key).

use std::path::PathBuf;

use base::key::{self, ParsedKey};
use base::tombstone::RangeTombstone;
use base::{Error, Result, SeqNo, ValueKind};
use vfs::AppendFile;

use super::footer::{EXTENT_BYTES, Footer, check_properties_bytes};
use super::group::GroupBuilder;
use super::heads::Heads;
use super::node::{Nodes, NodesBuilder, Subtree, separator};
use crate::extents::ExtentSums;
use crate::properties::Properties;
use crate::writer::{FilterCollector, Sink, TableBuilderConfig};
use crate::{TableBuilder, TableSummary, tombstones};

/// Bytes of checksums, properties and footer, about.
const TAIL_BYTES: u64 = 1500;

/// Writes one fast table.
pub struct FastTableBuilder {
    config: TableBuilderConfig,
    heads: Heads,
    sink: Sink,
    sums: ExtentSums,
    group: GroupBuilder,
    /// Bytes of the group written last.
    previous_bytes: u32,
    nodes: NodesBuilder,
    filter: Option<FilterCollector>,
    tombstones: Vec<RangeTombstone>,
    properties: Properties,
    seqs: Option<(SeqNo, SeqNo)>,
    /// Internal keys: the table's first, and the last one added.
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    /// Between the previous group and the open one.
    separator: Vec<u8>,
    failed: bool,
}

impl FastTableBuilder {
    /// Uses the filter options of block-based tables, except partitions. Ignores all other options and compression.
    ///
    /// # Errors
    /// `InvalidArgument`: the file is not empty.
    pub fn new(file: Box<dyn AppendFile>, mut config: TableBuilderConfig) -> Result<Self> {
        config.options.partition_filters = false;
        let heads = Heads::of(&config.order.user);
        Ok(FastTableBuilder {
            heads,
            sink: Sink::new(file, &config)?,
            sums: ExtentSums::new(EXTENT_BYTES),
            group: GroupBuilder::default(),
            previous_bytes: 0,
            nodes: NodesBuilder::new(heads),
            filter: FilterCollector::new(&config),
            tombstones: Vec::new(),
            properties: Properties::default(),
            seqs: None,
            first_key: Vec::new(),
            last_key: Vec::new(),
            separator: Vec::new(),
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

    #[inline]
    fn count(&mut self, entry: &ParsedKey<'_>, key: &[u8], value: &[u8]) {
        self.properties.count(entry.kind, key.len(), value.len());
        let (smallest, largest) = self.seqs.unwrap_or((entry.seq, entry.seq));
        self.seqs = Some((smallest.min(entry.seq), largest.max(entry.seq)));
    }

    fn add_entry(&mut self, key: &[u8], value: &[u8], entry: &ParsedKey<'_>) -> Result<()> {
        let trailer = key::pack_trailer(entry.seq, entry.kind as u8);
        let is_new_key = self.config.check_order(&self.last_key, entry.user_key, trailer)?.is_gt();
        if !self.group.has_room() {
            self.end_group()?;
        }
        if self.group.is_empty() {
            separator(&mut self.separator, &self.last_key, key, &self.config.order.user);
        }
        if self.last_key.is_empty() {
            self.first_key.extend_from_slice(key);
        }
        if is_new_key && let Some(filter) = &mut self.filter {
            filter.add(entry.user_key);
        }
        self.group.add(key, value);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.count(entry, key, value);
        Ok(())
    }

    /// Writes the open group.
    fn end_group(&mut self) -> Result<()> {
        let at = self.sink.offset();
        let (first_key, last_key) = (key::user_key(self.group.first_key()), key::user_key(self.group.last_key()));
        self.nodes.add(Subtree { at, separator: &self.separator, first_key, last_key });
        let (directory, records) = self.group.finish(self.heads, self.previous_bytes);
        for part in [directory, records] {
            self.sums.add(part);
            self.sink.append(part)?;
        }
        self.group.clear();
        self.previous_bytes = (self.sink.offset() - at) as u32;
        self.properties.data_blocks += 1;
        Ok(())
    }

    /// Appends a part and adds it to the checksums. Returns its bytes.
    fn append_checked(&mut self, part: &[u8]) -> Result<u64> {
        self.sums.add(part);
        self.sink.append(part)?;
        Ok(part.len() as u64)
    }

    fn finish_table(mut self) -> Result<TableSummary> {
        if self.failed {
            return Err(Error::invalid_argument("a write of this table has failed"));
        }
        if !self.group.is_empty() {
            self.end_group()?;
        }
        let mut footer = Footer { data_bytes: self.sink.offset(), heads: self.heads.number(), ..Footer::default() };
        let nodes = std::mem::replace(&mut self.nodes, NodesBuilder::new(self.heads));
        let Nodes { bytes, levels, root } = nodes.finish(key::user_key(&self.last_key));
        (footer.levels, footer.root) = (levels, root);
        footer.nodes_bytes = self.append_checked(&bytes)?;
        footer.filter_bytes = self.append_filter()?;
        if !self.tombstones.is_empty() {
            let block = tombstones::encode(&self.config.order.user, &mut self.tombstones);
            footer.tombstones_bytes = self.append_checked(&block)?;
        }
        self.complete_properties(&footer);
        let properties = self.properties.encode();
        footer.properties_bytes = check_properties_bytes(properties.len())?;
        let mut tail = self.sums.finish();
        tail.extend_from_slice(&properties);
        let encoded = footer.encode(&tail);
        tail.extend_from_slice(&encoded);
        let file_bytes = self.sink.finish(&tail)?;
        let point_bounds = (!self.last_key.is_empty()).then_some((self.first_key, self.last_key));
        let (smallest_seq, largest_seq) = self.seqs.unwrap_or((SeqNo::ZERO, SeqNo::ZERO));
        Ok(TableSummary { file_bytes, point_bounds, smallest_seq, largest_seq, properties: self.properties })
    }

    fn append_filter(&mut self) -> Result<u64> {
        let Some(filter) = self.filter.take() else { return Ok(0) };
        let (parts, entries) = filter.finish(&[]);
        self.properties.filter_entries = entries;
        parts.first().map_or(Ok(0), |whole| self.append_checked(&whole.contents))
    }

    fn complete_properties(&mut self, footer: &Footer) {
        let (config, properties) = (&self.config, &mut self.properties);
        properties.data_bytes = footer.data_bytes;
        properties.index_bytes = footer.nodes_bytes;
        properties.filter_bytes = footer.filter_bytes;
        properties.compression = "NoCompression".to_owned();
        config.describe(properties);
    }
}

impl TableBuilder for FastTableBuilder {
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

    fn estimated_bytes(&self) -> u64 {
        let filter = self.filter.as_ref().map_or(0, FilterCollector::estimated_bytes);
        let open = self.group.bytes() + self.nodes.bytes() + filter + self.sums.memory_bytes();
        self.sink.offset() + open as u64 + TAIL_BYTES
    }

    fn finish(self: Box<Self>) -> Result<TableSummary> {
        let path: PathBuf = self.config.path.clone();
        self.finish_table().map_err(|e| e.at_path(path))
    }
}
