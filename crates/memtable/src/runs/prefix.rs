//! Bases: the common beginning of most keys, left out of items' prefixes. Keys of one table, or small numbers, share
//! their first eight bytes and differ only behind the base.

use base::bytes::shared_prefix;
use std::sync::Arc;

use parking_lot::Mutex;

use super::item::{Entries, Item};
use crate::order::{Direction, KeyOrder};

/// Keys sampled to learn a base; a thousand random ones tell little more.
const SAMPLE: usize = 64;

/// Keys at either end of a sample that need not share the base. A few outliers cost comparisons; a base short enough
/// for them costs every key.
const OUTLIERS: usize = SAMPLE / 16;

/// Items of entries without the base compare by whole keys.
const BELOW: u64 = 0;
const ABOVE: u64 = u64::MAX;

pub(super) struct Base(Box<[u8]>);

impl Base {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number monotonic in key order: it never falls as keys ascend.
    #[inline]
    pub(super) fn prefix<O: KeyOrder>(&self, user_key: &[u8]) -> u64 {
        if self.is_empty() {
            return O::prefix(user_key);
        }
        match user_key.strip_prefix(&*self.0) {
            Some(rest) => O::prefix(rest).clamp(BELOW + 1, ABOVE - 1),
            None if (user_key < &*self.0) == (O::DIRECTION == Direction::Ascending) => BELOW,
            None => ABOVE,
        }
    }

    /// Sets the items' prefixes by this base.
    pub(super) fn rekey<O: KeyOrder>(&self, entries: &Entries<O>, items: &mut [Item]) {
        /// Prefetch distance in records: a few dozen nanoseconds of work each.
        const AHEAD: usize = 8;
        let ahead: Vec<Item> = items.iter().skip(AHEAD).copied().collect();
        let mut ahead = ahead.iter();
        for item in items {
            if let Some(next) = ahead.next() {
                entries.arena.prefetch(next.at);
            }
            item.prefix = self.prefix::<O>(entries.record(*item).user_key());
        }
    }
}

/// The base for future chunks. Learnt again each time the number of entries has doubled.
pub(super) struct Learner(Mutex<Learnt>);

struct Learnt {
    base: Arc<Base>,
    /// Number of entries when it was learnt.
    entries: u64,
}

impl Learner {
    pub(super) fn new() -> Learner {
        Learner(Mutex::new(Learnt { base: Arc::new(Base(Box::default())), entries: 0 }))
    }

    pub(super) fn base(&self) -> Arc<Base> {
        Arc::clone(&self.0.lock().base)
    }

    /// The base for a chunk of `new` items, given `total` entries, some of them in `sorted`.
    pub(super) fn base_for<O: KeyOrder>(
        &self,
        entries: &Entries<O>,
        new: &[Item],
        sorted: &[Item],
        total: impl Fn() -> u64,
    ) -> Arc<Base> {
        let mut learnt = self.0.lock();
        let may_learn = O::DIRECTION != Direction::Unknown && new.len() >= SAMPLE;
        if may_learn && total() >= 2 * learnt.entries {
            learnt.entries = total();
            let old = SAMPLE.min(sorted.len()) / 2;
            let mut keys: Vec<&[u8]> = evenly(new, SAMPLE - old)
                .chain(evenly(sorted, old))
                .map(|item| entries.record(*item).user_key())
                .collect();
            keys.sort_unstable();
            let inner = keys.get(OUTLIERS..keys.len().saturating_sub(OUTLIERS)).unwrap_or_default();
            let shared = inner.first().zip(inner.last()).map_or(&[][..], |(a, b)| common_prefix(a, b));
            if shared != &*learnt.base.0 {
                learnt.base = Arc::new(Base(shared.into()));
            }
        }
        Arc::clone(&learnt.base)
    }
}

/// `count` of `items`, evenly spaced.
fn evenly(items: &[Item], count: usize) -> impl Iterator<Item = &Item> {
    items.iter().step_by((items.len() / count.max(1)).max(1)).take(count)
}

pub(super) fn common_prefix<'a>(a: &'a [u8], b: &[u8]) -> &'a [u8] {
    a.get(..shared_prefix(a, b)).unwrap_or(a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Bytewise, ReverseBytewise};

    #[test]
    fn prefixes_of_a_base_never_contradict_the_order() {
        let keys: [&[u8]; 12] = [
            b"",
            b"t",
            b"table1",
            b"table1\0",
            b"table1\0\0\0\0\x01",
            b"table1abcdefgh",
            b"table1abcdefgi",
            b"table1abcdefgiz",
            b"table1\xff\xff\xff\xff\xff\xff\xff\xff",
            b"table1\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            b"table2",
            b"u",
        ];
        for base in [&b"table1"[..], b"", b"table"] {
            let base = Base(base.into());
            for pair in keys.windows(2) {
                assert!(base.prefix::<Bytewise>(pair[0]) <= base.prefix::<Bytewise>(pair[1]), "{pair:?}");
                assert!(base.prefix::<ReverseBytewise>(pair[0]) >= base.prefix::<ReverseBytewise>(pair[1]), "{pair:?}");
            }
        }
        let base = Base(b"table1"[..].into());
        assert!(base.prefix::<Bytewise>(b"table1abcdefgh") < base.prefix::<Bytewise>(b"table1abcdefgi"));
    }
}
