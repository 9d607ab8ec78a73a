//! The layout of a fast table, for the command line.

use base::Result;

use super::FastTable;

impl FastTable {
    /// The footer, line by line.
    pub(crate) fn layout(&self) -> Vec<String> {
        let footer = &self.file.footer;
        let topmost = footer.data_bytes + footer.root;
        self.file.layout(vec![format!("levels of nodes: {}, the topmost at {topmost}", footer.levels)])
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
