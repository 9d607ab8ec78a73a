//! Writes a fast table: groups as entries come, then nodes, filter, tombstones, checksums, properties and footer.
//! Memory: the open group, the nodes (about a byte per entry) and the filter's hashes (eight bytes per key).

use base::Result;
use base::key::{self, ParsedKey};
use base::tombstone::RangeTombstone;
use vfs::AppendFile;

use super::footer::Footer;
use super::group::GroupBuilder;
use super::heads::Heads;
use super::node::{Nodes, NodesBuilder, Subtree, separator};
use crate::private::Output;
use crate::writer::{Draft, TableBuilderConfig};
use crate::{TableBuilder, TableSummary};

/// Bytes of checksums, properties and footer, about.
const TAIL_BYTES: u64 = 1500;

/// Writes one fast table.
pub struct FastTableBuilder {
    draft: Draft,
    heads: Heads,
    output: Output,
    group: GroupBuilder,
    /// Bytes of the group written last.
    previous_bytes: u32,
    nodes: NodesBuilder,
    /// Between the previous group and the open one.
    separator: Vec<u8>,
}

impl FastTableBuilder {
    /// Uses the filter options of block-based tables, except partitions. Ignores all other options and compression.
    ///
    /// # Errors
    /// `InvalidArgument`: the file is not empty.
    pub fn new(file: Box<dyn AppendFile>, config: TableBuilderConfig) -> Result<Self> {
        let heads = Heads::of(&config.order.user);
        Ok(FastTableBuilder {
            heads,
            output: Output::new::<Footer>(file, &config)?,
            group: GroupBuilder::default(),
            previous_bytes: 0,
            nodes: NodesBuilder::new(heads),
            separator: Vec::new(),
            draft: Draft::of_mapped(config),
        })
    }

    fn add_entry(&mut self, key: &[u8], value: &[u8], entry: &ParsedKey<'_>) -> Result<()> {
        let (trailer, config) = (key::pack_trailer(entry.seq, entry.kind as u8), &self.draft.config);
        let is_new_key = config.check_order(&self.draft.last_key, entry.user_key, trailer)?.is_gt();
        if !self.group.has_room() {
            self.end_group()?;
        }
        if self.group.is_empty() {
            separator(&mut self.separator, &self.draft.last_key, key, &self.draft.config.order.user);
        }
        self.group.add(key, value);
        self.draft.add(entry, is_new_key, key, value);
        Ok(())
    }

    /// Writes the open group.
    fn end_group(&mut self) -> Result<()> {
        let at = self.output.offset();
        let (first_key, last_key) = (key::user_key(self.group.first_key()), key::user_key(self.group.last_key()));
        self.nodes.add(Subtree { at, separator: &self.separator, first_key, last_key });
        let (directory, records) = self.group.finish(self.heads, self.previous_bytes);
        self.previous_bytes = (self.output.append(directory)? + self.output.append(records)?) as u32;
        self.group.clear();
        self.draft.properties.data_blocks += 1;
        Ok(())
    }

    fn finish_table(mut self) -> Result<TableSummary> {
        self.draft.check_whole()?;
        if !self.group.is_empty() {
            self.end_group()?;
        }
        let FastTableBuilder { mut draft, heads, mut output, nodes, .. } = self;
        let data_bytes = output.offset();
        let Nodes { bytes, levels, root } = nodes.finish(key::user_key(&draft.last_key));
        let nodes_bytes = output.append(&bytes)?;
        draft.properties.data_bytes = data_bytes;
        draft.properties.index_bytes = nodes_bytes;
        draft.properties.compression = "NoCompression".to_owned();
        draft.finish_mapped(output, |meta| Footer {
            data_bytes,
            nodes_bytes,
            meta,
            root,
            levels,
            heads: heads.number(),
        })
    }
}

impl TableBuilder for FastTableBuilder {
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

    fn estimated_bytes(&self) -> u64 {
        let open = self.group.bytes() + self.nodes.bytes() + self.draft.filter_bytes() + self.output.memory_bytes();
        self.output.offset() + open as u64 + TAIL_BYTES
    }

    fn finish(self: Box<Self>) -> Result<TableSummary> {
        let path = self.draft.config.path.clone();
        self.finish_table().map_err(|e| e.at_path(path))
    }
}
