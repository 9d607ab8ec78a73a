//! Answers from the index alone: size estimates, cut points, index entries.

use base::Result;

use super::{BlockBasedTable, Fetch};
use crate::index::IndexSlot;

impl BlockBasedTable {
    fn estimate_fetch(&self) -> Fetch {
        Fetch { verify_checksums: true, ask_cache: true, fill_cache: true, class: vfs::IoClass::Other }
    }

    /// Offset of the block for `internal_key`; the end of the data past the last key.
    pub(super) fn offset_near(&self, internal_key: &[u8]) -> Result<u64> {
        let fetch = self.estimate_fetch();
        let mut index = self.index.cursor(&self.file, fetch)?;
        index.seek(internal_key, &self.order, &self.file, fetch)?;
        let data_end = self.properties.data_bytes.min(self.file.bytes());
        Ok(index.slot().map_or(data_end, |slot| slot.handle.offset))
    }

    /// Passes every index entry to `visit`, and whether its separator is a user key, until `visit` returns false.
    pub(crate) fn for_each_index_entry(
        &self,
        fetch: Fetch,
        mut visit: impl FnMut(IndexSlot<'_>, bool) -> bool,
    ) -> Result<()> {
        let mut index = self.index.cursor(&self.file, fetch)?;
        let mut found = index.seek_to_first(&self.file, fetch)?;
        while found {
            let (Some(slot), Some(block)) = (index.slot(), index.block()) else { break };
            if !visit(slot, block.has_user_keys()) {
                break;
            }
            found = index.next(&self.file, fetch)?;
        }
        Ok(())
    }

    /// At most `max` separators at even distances in the file, each with the end of its block.
    pub(super) fn cut_points(&self, max: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        let mut points: Vec<(Vec<u8>, u64)> = Vec::new();
        let data_end = self.properties.data_bytes.min(self.file.bytes());
        let distance = (data_end / (max as u64).max(1)).max(1);
        let fetch = self.estimate_fetch();
        let mut index = self.index.cursor(&self.file, fetch)?;
        let mut found = max > 0 && index.seek_to_first(&self.file, fetch)?;
        while found && points.len() < max {
            if let (Some(slot), Some(block)) = (index.slot(), index.block()) {
                let end = slot.handle.end();
                let due = points.last().map_or(0, |point| point.1).saturating_add(distance);
                let user_key = block.separator_user_key(&slot);
                let repeats = points.last().is_some_and(|point| self.order.user.equal(&point.0, user_key));
                if end >= due && !repeats {
                    points.push((user_key.to_vec(), end));
                }
            }
            found = index.next(&self.file, fetch)?;
        }
        Ok(points)
    }
}
