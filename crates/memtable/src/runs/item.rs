//! Items: references to entries, each with enough of the key to settle most comparisons.

use std::cmp::Ordering;

use crate::arena::{Arena, Ref};
use crate::order::KeyOrder;
use crate::record::{self, Record, split_target};

/// A published entry.
#[derive(Clone, Copy)]
pub(crate) struct Item {
    /// Never contradicts the order among items of one [`Base`](super::prefix::Base).
    pub(super) prefix: u64,
    pub(super) at: Ref,
}

impl Item {
    /// A placeholder to fill buffers.
    pub(crate) const NONE: Item = Item { prefix: 0, at: Ref::NULL };
}

/// An internal key to search for.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(super) user_key: &'a [u8],
    pub(super) trailer: u64,
}

impl<'a> Target<'a> {
    pub(super) fn of_internal(internal_key: &'a [u8]) -> Target<'a> {
        let (user_key, trailer) = split_target(internal_key);
        Target { user_key, trailer }
    }
}

/// Where entries are, and how they sort.
pub(crate) struct Entries<O> {
    pub(crate) arena: Arena,
    pub(crate) order: O,
}

impl<O: KeyOrder> Entries<O> {
    /// The item, with the empty base, of the record at `at`, written by the calling thread.
    #[inline]
    pub(crate) fn item(&self, at: Ref, user_key: &[u8]) -> Item {
        Item { prefix: O::prefix(user_key), at }
    }

    #[inline]
    pub(crate) fn record(&self, item: Item) -> Record<'_> {
        // SAFETY: items are made from written records and reach other threads through the lists' locks and the chunks,
        // which publish the records too (A2).
        unsafe { record::read(&self.arena, item.at) }
    }

    /// Orders `item` against the target, whose prefix in the item's base is `prefix`.
    #[inline]
    pub(super) fn compare_to(&self, item: Item, prefix: u64, target: &Target<'_>) -> Ordering {
        item.prefix.cmp(&prefix).then_with(|| self.compare_key(item, target))
    }

    #[inline]
    pub(super) fn compare_key(&self, item: Item, target: &Target<'_>) -> Ordering {
        let (user_key, trailer) = self.record(item).split();
        self.order.compare(user_key, target.user_key).then_with(|| target.trailer.cmp(&trailer))
    }

    /// A total order of items of one base. Of equal internal keys the later comes first.
    #[inline]
    pub(super) fn compare(&self, a: Item, b: Item) -> Ordering {
        a.prefix.cmp(&b.prefix).then_with(|| self.compare_keys(a, b))
    }

    /// As `compare`, for items of any bases.
    pub(super) fn compare_keys(&self, a: Item, b: Item) -> Ordering {
        let (user_key, trailer) = self.record(b).split();
        self.compare_key(a, &Target { user_key, trailer }).then_with(|| b.at.cmp(&a.at))
    }
}
