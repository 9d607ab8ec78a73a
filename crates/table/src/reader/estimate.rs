//! Answers from the index alone: size estimates, cut points, index entries.

use base::Result;

use super::{BlockBasedTable, Fetch};
use crate::cut_points::CutPoints;
use crate::index::{IndexBlock, IndexSlot};

impl BlockBasedTable {
    fn estimate_fetch(&self) -> Fetch {
        Fetch {
            verify_checksums: true,
            ask_cache: true,
            fill_cache: true,
            memory_only: false,
            class: vfs::IoClass::Other,
        }
    }

    /// Offset of the block for `internal_key`; the end of the data past the last key.
    pub(super) fn offset_near(&self, internal_key: &[u8]) -> Result<u64> {
        let fetch = self.estimate_fetch();
        let mut index = self.index.cursor(&self.file, fetch)?;
        index.seek(internal_key, &self.order, &self.file, fetch)?;
        let data_end = self.properties.data_bytes.min(self.file.bytes());
        Ok(index.slot().map_or(data_end, |slot| slot.handle.offset))
    }

    /// Passes every index entry and its block to `visit`, until `visit` returns false.
    pub(crate) fn for_each_index_entry(
        &self,
        fetch: Fetch,
        mut visit: impl FnMut(&IndexBlock, IndexSlot<'_>) -> bool,
    ) -> Result<()> {
        let mut index = self.index.cursor(&self.file, fetch)?;
        let mut found = index.seek_to_first(&self.file, fetch)?;
        while found {
            let (Some(slot), Some(block)) = (index.slot(), index.block()) else { break };
            if !visit(block, slot) {
                break;
            }
            found = index.next(&self.file, fetch)?;
        }
        Ok(())
    }

    /// At most `max` separators at even distances in the file, each with the end of its block.
    pub(super) fn cut_points(&self, max: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        let mut points = CutPoints::new(&self.order.user, self.properties.data_bytes.min(self.file.bytes()), max);
        self.for_each_index_entry(self.estimate_fetch(), |block, slot| {
            points.offer(block.separator_user_key(&slot), slot.handle.end());
            !points.is_full()
        })?;
        Ok(points.finish())
    }
}
