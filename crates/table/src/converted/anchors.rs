//! Offsets of keys in a converted table, estimated as shares of its image: real offsets do not ascend with the keys.

use base::key::user_key;

use super::ConvertedTable;
use crate::cut_points::CutPoints;

/// Anchors kept, about: parts of a table cut at them differ by a two-hundredth of it.
const ANCHORS_MAX: u64 = 256;

/// A user key, and the bytes up to and including it.
pub(super) struct Anchor {
    key: Vec<u8>,
    end: u64,
}

impl Anchor {
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.key.capacity()
    }
}

impl ConvertedTable {
    /// The image's bytes times the share of entries before `user_key`.
    pub(super) fn offset_near(&self, user_key: &[u8]) -> u64 {
        let Some((first, last)) = &self.span else { return self.image_bytes };
        let order = &self.order.user;
        if order.compare(user_key, first).is_le() {
            return 0;
        }
        if order.compare(user_key, last).is_gt() {
            return self.image_bytes;
        }
        let entries = self.memtable.entries().max(1);
        let before = self.memtable.approximate_entries(first, user_key).min(entries);
        share_of(self.image_bytes, before, entries)
    }

    /// At most `max` of the anchors, at even distances.
    pub(super) fn cut_points(&self, max: usize) -> Vec<(Vec<u8>, u64)> {
        let anchors = self.anchors.get_or_init(|| self.walk_for_anchors());
        let mut points = CutPoints::new(&self.order.user, self.image_bytes, max);
        anchors.iter().for_each(|Anchor { key, end }| points.offer(key, *end));
        points.finish()
    }

    /// Walks all entries; done once per open table.
    fn walk_for_anchors(&self) -> Vec<Anchor> {
        let mut anchors: Vec<Anchor> = Vec::new();
        let all = self.memtable.counts().payload_bytes.max(1);
        let distance = (all / ANCHORS_MAX).max(1);
        let (mut passed, mut due) = (0, distance);
        let mut cursor = self.memtable.clone().cursor();
        let mut found = cursor.seek_to_first();
        while found {
            let key = user_key(cursor.key());
            passed += (key.len() + cursor.value().len()) as u64;
            if passed >= due {
                let end = share_of(self.image_bytes, passed.min(all), all);
                match anchors.last_mut() {
                    Some(last) if self.order.user.equal(&last.key, key) => last.end = end,
                    _ => anchors.push(Anchor { key: key.to_vec(), end }),
                }
                due = passed + distance;
            }
            found = cursor.next();
        }
        anchors
    }
}

/// `whole * part / all`.
fn share_of(whole: u64, part: u64, all: u64) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(all)) as u64
}
