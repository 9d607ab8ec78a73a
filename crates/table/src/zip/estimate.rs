//! Estimates from the index alone: offsets and cut points.

use base::key::user_key;

use super::ZipTable;
use crate::cut_points::CutPoints;

impl ZipTable {
    /// Offset of the group for `internal_key`; the end of the groups if the key is past the last one.
    pub(super) fn offset_near(&self, internal_key: &[u8]) -> u64 {
        let key = user_key(internal_key);
        if self.last_key.as_ref().is_some_and(|last| self.file.order.user.compare(key, last).is_gt()) {
            return self.file.footer.groups_bytes;
        }
        self.index.place(self.index.find(key, &self.file.order.user)).start
    }

    /// At most `max` separators at even distances in the file, each with the end of the group before it.
    pub(super) fn cut_points(&self, max: usize) -> Vec<(Vec<u8>, u64)> {
        let (order, groups_bytes) = (&self.file.order.user, self.file.footer.groups_bytes);
        let mut points = CutPoints::new(order, groups_bytes, max);
        for group in 1..self.index.len() {
            points.offer(self.index.separator(group), self.index.place(group).start);
        }
        if let Some(last) = &self.last_key {
            points.offer(last, groups_bytes);
        }
        points.finish()
    }
}
