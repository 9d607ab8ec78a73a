//! The last 88 bytes of a fast table. Format: docs/format/fast.md, "Footer".

use super::node::LEVELS_MAX;
use crate::private::{self, FILTER, Field, Format, MetaSizes, Section, TOMBSTONES};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Footer {
    /// The groups.
    pub(super) data_bytes: u64,
    pub(super) nodes_bytes: u64,
    pub(super) meta: MetaSizes,
    /// Offset of the topmost node among the nodes; 0 without nodes.
    pub(super) root: u64,
    /// Levels of nodes.
    pub(super) levels: u32,
    /// The number of the table's `Heads`.
    pub(super) heads: u32,
}

impl private::Footer for Footer {
    const FORMAT: Format = private::FAST;

    fn fields(&mut self) -> Vec<Field<'_>> {
        let file_bytes = self.file_bytes();
        vec![
            Field::U64(&mut self.data_bytes),
            Field::U64(&mut self.nodes_bytes),
            Field::U64(&mut self.meta.filter_bytes),
            Field::U64(&mut self.meta.tombstones_bytes),
            Field::U64(&mut self.meta.properties_bytes),
            Field::Follows(file_bytes),
            Field::U64(&mut self.root),
            Field::U32(&mut self.levels),
            Field::U32(&mut self.heads),
        ]
    }

    fn sections(&self) -> Vec<Section> {
        vec![
            Section { name: "groups", bytes: self.data_bytes },
            Section { name: "nodes", bytes: self.nodes_bytes },
            Section { name: FILTER, bytes: self.meta.filter_bytes },
            Section { name: TOMBSTONES, bytes: self.meta.tombstones_bytes },
        ]
    }

    fn properties_bytes(&self) -> u64 {
        self.meta.properties_bytes
    }

    fn is_possible(&self) -> bool {
        match self.levels {
            0 => self.nodes_bytes == 0 && self.root == 0,
            _ => self.levels <= LEVELS_MAX && self.root < self.nodes_bytes,
        }
    }
}
