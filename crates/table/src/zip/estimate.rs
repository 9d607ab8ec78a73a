//! Estimates from the index alone: offsets and cut points.

use base::key::user_key;

use super::ZipTable;

impl ZipTable {
    /// Offset of the group for `internal_key`; the end of the groups if the key is past the last one.
    pub(super) fn offset_near(&self, internal_key: &[u8]) -> u64 {
        let key = user_key(internal_key);
        if self.last_key.as_ref().is_some_and(|last| self.order.user.compare(key, last).is_gt()) {
            return self.footer.groups_bytes;
        }
        self.index.place(self.index.find(key, &self.order.user)).start
    }

    /// At most `max` separators at even distances in the file, each with the end of the group before it.
    pub(super) fn cut_points(&self, max: usize) -> Vec<(Vec<u8>, u64)> {
        let distance = (self.footer.groups_bytes / (max as u64).max(1)).max(1);
        let mut points: Vec<(Vec<u8>, u64)> = Vec::new();
        let separators =
            (1..self.index.len()).map(|group| (self.index.separator(group), self.index.place(group).start));
        let last = self.last_key.as_deref().map(|last| (last, self.footer.groups_bytes));
        for (separator, end) in separators.chain(last) {
            let due = points.last().map_or(0, |point| point.1).saturating_add(distance);
            let repeats = points.last().is_some_and(|point| self.order.user.equal(&point.0, separator));
            if points.len() < max && end >= due && !repeats {
                points.push((separator.to_vec(), end));
            }
        }
        points
    }
}
