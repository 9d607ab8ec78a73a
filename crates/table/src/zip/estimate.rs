//! What the index alone tells: sizes and cut points.

use base::key::user_key;

use super::ZipTable;

impl ZipTable {
    /// The offset of the group that `internal_key` would be in; the end of the groups past the last key.
    pub(super) fn offset_near(&self, internal_key: &[u8]) -> u64 {
        let key = user_key(internal_key);
        if self.last_key.as_ref().is_some_and(|last| self.order.user.compare(key, last).is_gt()) {
            return self.footer.groups_bytes;
        }
        self.index.place(self.index.find(key, &self.order.user)).start
    }

    /// At most `max` separators at even distances in the file, each with where the group before it ends.
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
