//! A cursor along the list. Forward steps follow links. Backward there are no links, so the cursor remembers the nodes
//! passed in its last search, and checks each with one load before stepping there.

use std::sync::Arc;

use base::{Cursor, Result};

use super::list::{HEIGHT_MAX, Splice};
use super::{SkipList, list::List};
use crate::arena::Ref;
use crate::order::KeyOrder;

/// Nodes remembered for backward steps, the nearest last.
const BEHIND_MAX: usize = 32;

/// Upper bound of `reach`: 2^4 nodes for each search.
const REACH_MAX: usize = 4;

pub(super) struct SkipCursor<O: KeyOrder, const IMAGE: bool> {
    memtable: Arc<SkipList<O, IMAGE>>,
    /// Null if the cursor is on no entry.
    node: Ref,
    behind: Behind,
    /// Level at which the next backward search starts to remember nodes. 0 at first, so a single step back costs only
    /// one search.
    reach: usize,
}

/// A ring of the last nodes of a walk.
struct Behind {
    nodes: [Ref; BEHIND_MAX],
    /// Nodes pushed minus nodes popped.
    end: usize,
    len: usize,
}

impl Behind {
    #[inline]
    fn push(&mut self, node: Ref) {
        if let Some(slot) = self.nodes.get_mut(self.end % BEHIND_MAX) {
            *slot = node;
        }
        self.end += 1;
        self.len = (self.len + 1).min(BEHIND_MAX);
    }

    #[inline]
    fn pop(&mut self) -> Option<Ref> {
        self.len = self.len.checked_sub(1)?;
        self.end -= 1;
        self.nodes.get(self.end % BEHIND_MAX).copied()
    }
}

impl<O: KeyOrder, const IMAGE: bool> SkipCursor<O, IMAGE> {
    pub(super) fn new(memtable: Arc<SkipList<O, IMAGE>>) -> Self {
        let behind = Behind { nodes: [Ref::NULL; BEHIND_MAX], end: 0, len: 0 };
        SkipCursor { memtable, node: Ref::NULL, behind, reach: 0 }
    }

    fn list(&self) -> &List<O, IMAGE> {
        &self.memtable.list
    }

    /// Moves to `node`, and prefetches its successor while the caller reads.
    #[inline]
    fn stand(&mut self, node: Ref) -> bool {
        self.node = if node == self.list().head { Ref::NULL } else { node };
        if self.node.is_null() {
            return false;
        }
        self.list().arena.prefetch(self.list().next(self.node, 0).node());
        true
    }

    /// As [`stand`](Self::stand), and forgets the remembered nodes.
    fn jump(&mut self, node: Ref) -> bool {
        self.behind.len = 0;
        self.reach = 0;
        self.stand(node)
    }

    /// Remembers nodes before the current one, including the head if there are few.
    fn look_back(&mut self) {
        let list = &self.memtable.list;
        let target = list.internal_target(list.record(self.node).internal_key());
        let mut splice = Splice::new(list.head);
        list.descend::<false>(&target, |level, node| splice.set(level, node));
        let mut node = splice.at(self.reach.min(HEIGHT_MAX - 1));
        while node != self.node {
            self.behind.push(node);
            node = list.next(node, 0).node();
        }
        self.reach = (self.reach + 1).min(REACH_MAX);
    }

    /// RocksDB's lookahead: walks short distances forward. True if the walk ended at the target.
    fn walk_to(&mut self, target: &[u8]) -> bool {
        let list = &self.memtable.list;
        if self.memtable.lookahead == 0 || self.node.is_null() {
            return false;
        }
        let target = list.internal_target(target);
        if list.compare(self.node, &target).is_ge() {
            return false; // the target may lie before the node
        }
        let mut node = self.node;
        for _ in 0..self.memtable.lookahead {
            let link = list.next(node, 0);
            node = link.node();
            if !list.passes::<false>(link, &target) {
                self.jump(node);
                return true;
            }
        }
        false
    }
}

impl<O: KeyOrder, const IMAGE: bool> Cursor for SkipCursor<O, IMAGE> {
    fn valid(&self) -> bool {
        !self.node.is_null()
    }

    fn seek_to_first(&mut self) -> bool {
        let first = self.list().next(self.list().head, 0).node();
        self.jump(first)
    }

    fn seek_to_last(&mut self) -> bool {
        let last = self.list().last();
        self.jump(last)
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        if self.walk_to(target) {
            return self.valid();
        }
        let list = self.list();
        let found = list.seek(&list.internal_target(target));
        self.jump(found)
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        let list = self.list();
        let (last, _) = list.descend::<true>(&list.internal_target(target), |_, _| {});
        self.jump(last)
    }

    fn next(&mut self) -> bool {
        assert!(self.valid(), "a step from no entry");
        let next = self.list().next(self.node, 0).node();
        self.jump(next)
    }

    fn prev(&mut self) -> bool {
        assert!(self.valid(), "a step from no entry");
        if self.behind.len == 0 {
            self.look_back();
        }
        // A remembered node stays before this node. Entries inserted since may lie between, so walk up to it.
        let mut before = self.behind.pop().expect("the head or a node is before every node");
        while let next = self.list().next(before, 0).node()
            && next != self.node
        {
            before = next;
        }
        self.stand(before)
    }

    fn key(&self) -> &[u8] {
        if self.node.is_null() { &[] } else { self.list().record(self.node).internal_key() }
    }

    fn value(&self) -> &[u8] {
        if self.node.is_null() { &[] } else { self.list().record(self.node).value() }
    }

    fn status(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use base::key::user_key;
    use base::{FamilyId, InternalOrder, SeqNo, ValueKind};

    use crate::{Entry, Memtable, MemtableConfig, factory_from_option_string};

    fn put(memtable: &dyn Memtable, key: u32) {
        assert!(memtable.try_reserve(memtable.worst_case_bytes(1, 4)));
        memtable.insert(Entry { user_key: &key.to_be_bytes(), seq: SeqNo(1), kind: ValueKind::Value, value: b"" });
    }

    #[test]
    fn steps_back_meet_what_was_inserted_since_the_last() {
        let (order, family) = (InternalOrder::default(), FamilyId::DEFAULT);
        let config = MemtableConfig::new(order, family, 1 << 20);
        let memtable = factory_from_option_string("skip_list").expect("known").create(&config).expect("created");
        (0..500).for_each(|i| put(&*memtable, 10 * i));
        let mut cursor = std::sync::Arc::clone(&memtable).cursor();
        assert!(cursor.seek_to_last());
        for i in (0..499).rev() {
            put(&*memtable, 10 * i + 3);
            put(&*memtable, 10 * i + 7);
            for expected in [10 * i + 7, 10 * i + 3, 10 * i] {
                assert!(cursor.prev());
                assert_eq!(user_key(cursor.key()), expected.to_be_bytes());
            }
        }
        assert!(!cursor.prev() && !cursor.valid());
    }
}
