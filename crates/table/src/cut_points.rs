//! Picks user keys that cut a table into parts of similar size.

use base::UserOrder;

/// Keys at even distances in the file, each with the bytes up to it.
pub(crate) struct CutPoints<'a> {
    order: &'a UserOrder,
    max: usize,
    distance: u64,
    points: Vec<(Vec<u8>, u64)>,
}

impl<'a> CutPoints<'a> {
    /// At most `max` points of a table with `data_bytes`.
    pub(crate) fn new(order: &'a UserOrder, data_bytes: u64, max: usize) -> Self {
        let distance = (data_bytes / (max as u64).max(1)).max(1);
        CutPoints { order, max, distance, points: Vec::new() }
    }

    /// Offers a user key with the bytes up to it; keys ascend.
    pub(crate) fn offer(&mut self, user_key: &[u8], end: u64) {
        let due = self.points.last().map_or(0, |point| point.1).saturating_add(self.distance);
        let repeats = || self.points.last().is_some_and(|point| self.order.compare(&point.0, user_key).is_ge());
        if !self.is_full() && end >= due && !repeats() {
            self.points.push((user_key.to_vec(), end));
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.points.len() >= self.max
    }

    pub(crate) fn finish(self) -> Vec<(Vec<u8>, u64)> {
        self.points
    }
}
