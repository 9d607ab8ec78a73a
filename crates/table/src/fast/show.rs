//! The layout of a fast table, for the command line.

use base::Result;

use super::FastTable;
use super::footer::{EXTENT_BYTES, FORMAT_VERSION};

impl FastTable {
    /// The footer, line by line.
    pub(crate) fn layout(&self) -> Vec<String> {
        let footer = &self.footer;
        let parts = [
            ("groups", 0, footer.data_bytes),
            ("nodes", footer.nodes_at(), footer.nodes_bytes),
            ("filter", footer.filter_at(), footer.filter_bytes),
            ("range tombstones", footer.tombstones_at(), footer.tombstones_bytes),
            ("properties", footer.properties_at(), footer.properties_bytes),
        ];
        let mut lines = vec![
            format!("format version: {FORMAT_VERSION}, a fast table"),
            format!("checksum: crc32c of {EXTENT_BYTES} bytes each"),
            format!("levels of nodes: {}, the topmost at {}", footer.levels, footer.nodes_at() + footer.root),
        ];
        lines.extend(parts.iter().filter(|part| part.2 > 0).map(|(name, at, bytes)| format!("{name}: {at}+{bytes}")));
        lines
    }

    /// Passes offset, bytes, entries and first internal key of every group to `visit`, until it returns false.
    pub(crate) fn for_each_group(&self, mut visit: impl FnMut(usize, usize, usize, &[u8]) -> bool) -> Result<()> {
        let (reading, mut at) = (self.reading(true), 0);
        while at < reading.data.len() {
            let group = reading.group(at)?;
            let first = group.entry(0).ok_or_else(|| self.damaged("an entry", at))?;
            if !visit(at, group.bytes(), group.len(), first.key) {
                break;
            }
            at += group.bytes();
        }
        Ok(())
    }
}
