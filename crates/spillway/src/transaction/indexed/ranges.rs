//! Ranges deleted by a batch.

use base::UserOrder;

/// Disjoint ranges, ascending: inclusive start, exclusive end.
#[derive(Clone, Default)]
pub(super) struct Ranges {
    list: Vec<KeyRange>,
}

/// Start and end.
type KeyRange = (Box<[u8]>, Box<[u8]>);

impl Ranges {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether a range holds the key.
    pub fn hold(&self, order: &UserOrder, key: &[u8]) -> bool {
        let behind = self.list.partition_point(|(start, _)| order.compare(start, key).is_le());
        let last = behind.checked_sub(1).and_then(|at| self.list.get(at));
        last.is_some_and(|(_, end)| order.compare(key, end).is_lt())
    }

    /// Adds a range that is not empty; overlapping and adjacent ones are merged with it.
    pub fn add(&mut self, order: &UserOrder, start: &[u8], end: &[u8]) {
        let from = self.list.partition_point(|(_, other)| order.compare(other, start).is_lt());
        let to = self.list.partition_point(|(other, _)| order.compare(other, end).is_le());
        let merged = self.list.get(from..to).unwrap_or_default();
        let first = merged.first().map(|(other, _)| other).filter(|other| order.compare(other, start).is_lt());
        let last = merged.last().map(|(_, other)| other).filter(|other| order.compare(other, end).is_gt());
        let range = (first.map_or_else(|| start.into(), Clone::clone), last.map_or_else(|| end.into(), Clone::clone));
        self.list.splice(from..to.max(from), [range]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let mut ranges = Ranges::default();
        let add = |ranges: &mut Ranges, start: &str, end: &str| {
            ranges.add(&UserOrder::Bytewise, start.as_bytes(), end.as_bytes());
            let shown = |(start, end): &KeyRange| {
                format!("{}-{}", String::from_utf8_lossy(start), String::from_utf8_lossy(end))
            };
            ranges.list.iter().map(shown).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(add(&mut ranges, "m", "p"), "m-p");
        assert_eq!(add(&mut ranges, "c", "e"), "c-e m-p");
        assert_eq!(add(&mut ranges, "e", "g"), "c-g m-p");
        assert_eq!(add(&mut ranges, "d", "f"), "c-g m-p");
        assert_eq!(add(&mut ranges, "x", "z"), "c-g m-p x-z");
        assert_eq!(add(&mut ranges, "a", "n"), "a-p x-z");
        for (key, held) in [("a", true), ("Z", false), ("o", true), ("p", false), ("y", true), ("z", false)] {
            assert_eq!(ranges.hold(&UserOrder::Bytewise, key.as_bytes()), held, "{key}");
        }
    }
}
