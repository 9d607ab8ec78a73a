//! A cursor over entries: a walk over keys, and over the versions of each key. The walk goes one way; a turn is a new
//! search for the current key. Versions are linked from new to old, so the first step back within a key collects them.

use std::sync::Arc;

use base::{Cursor, Result};

use super::Trie;
use super::layout::Link;
use super::leaf::Leaf;
use super::memory::ArenaMemory;
use super::tree::Tree;
use super::versions::{first_at_or_below, last_above, oldest};
use super::walk::Walk;
use crate::order::{Direction, KeyOrder};
use crate::record::split_target;

pub(super) struct TrieCursor<O: KeyOrder, const SHIFT: u32, const IMAGE: bool> {
    trie: Arc<Trie<O, SHIFT, IMAGE>>,
    walk: Walk,
    /// The current entry, or null.
    entry: Link,
    /// Direction of the walk in key order.
    forward: bool,
    /// Walking backwards: the newest version of the entry's key.
    newest: Link,
    /// Walking backwards, once `gathered`: the versions newer than the entry, the newest first.
    newer: Vec<Link>,
    gathered: bool,
}

impl<O: KeyOrder, const SHIFT: u32, const IMAGE: bool> TrieCursor<O, SHIFT, IMAGE> {
    pub(super) fn new(trie: Arc<Trie<O, SHIFT, IMAGE>>) -> Self {
        TrieCursor {
            trie,
            walk: Walk::new(),
            entry: Link::NULL,
            forward: true,
            newest: Link::NULL,
            newer: Vec::new(),
            gathered: false,
        }
    }

    fn tree(&self) -> &Tree<ArenaMemory<SHIFT, IMAGE>> {
        &self.trie.tree
    }

    fn leaf(&self) -> Leaf<'_, ArenaMemory<SHIFT, IMAGE>> {
        self.tree().leaf(self.entry)
    }

    /// Converts a direction in key order to one in byte order.
    fn upwards(forward: bool) -> bool {
        forward == (O::DIRECTION == Direction::Ascending)
    }

    fn start(&mut self, forward: bool) {
        self.forward = forward;
        self.walk.start(&self.trie.tree, Self::upwards(forward));
    }

    fn search(&mut self, user_key: &[u8], forward: bool) {
        self.forward = forward;
        self.walk.seek(&self.trie.tree, user_key, Self::upwards(forward));
    }

    /// Searches for the current key, to walk the other way from it.
    fn turn(&mut self, forward: bool) {
        self.forward = forward;
        let key = self.trie.tree.leaf(self.entry).user_key();
        self.walk.seek(&self.trie.tree, key, Self::upwards(forward));
        self.newest = self.walk.next(&self.trie.tree);
        self.gathered = false;
    }

    /// Moves to the newest version of the next key.
    fn enter_forward(&mut self) -> bool {
        self.entry = self.walk.next(&self.trie.tree);
        !self.entry.is_null()
    }

    /// Moves to the oldest version of the key with newest version `newest`.
    fn enter_backward(&mut self, newest: Link) -> bool {
        self.newest = newest;
        self.gathered = false;
        self.entry = if newest.is_null() { newest } else { oldest(self.trie.tree.memory(), newest) };
        !newest.is_null()
    }

    /// Lists the versions newer than the entry.
    fn gather(&mut self) {
        self.gathered = true;
        self.newer.clear();
        let mut version = self.newest;
        while version != self.entry && !version.is_null() {
            self.newer.push(version);
            version = self.trie.tree.leaf(version).next();
        }
    }
}

impl<O: KeyOrder, const SHIFT: u32, const IMAGE: bool> Cursor for TrieCursor<O, SHIFT, IMAGE> {
    fn valid(&self) -> bool {
        !self.entry.is_null()
    }

    fn seek_to_first(&mut self) -> bool {
        self.start(true);
        self.enter_forward()
    }

    fn seek_to_last(&mut self) -> bool {
        self.start(false);
        let newest = self.walk.next(&self.trie.tree);
        self.enter_backward(newest)
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        let (user_key, trailer) = split_target(target);
        self.search(user_key, true);
        if !self.enter_forward() || self.leaf().user_key() != user_key {
            return self.valid();
        }
        self.entry = first_at_or_below(self.trie.tree.memory(), self.entry, trailer);
        self.valid() || self.enter_forward()
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        let (user_key, trailer) = split_target(target);
        self.search(user_key, false);
        let mut newest = self.walk.next(&self.trie.tree);
        if newest.is_null() || self.tree().leaf(newest).user_key() != user_key {
            return self.enter_backward(newest);
        }
        if self.tree().leaf(newest).trailer() < trailer {
            newest = self.walk.next(&self.trie.tree);
            return self.enter_backward(newest);
        }
        self.newest = newest;
        self.gathered = false;
        self.entry = match trailer.checked_sub(1) {
            Some(below) => last_above(self.trie.tree.memory(), newest, below).0,
            None => oldest(self.trie.tree.memory(), newest),
        };
        true
    }

    fn next(&mut self) -> bool {
        assert!(self.valid(), "a step from no entry");
        if !self.forward {
            self.turn(true);
        }
        let older = self.leaf().next();
        if older.is_null() {
            return self.enter_forward();
        }
        self.entry = older;
        true
    }

    fn prev(&mut self) -> bool {
        assert!(self.valid(), "a step from no entry");
        if self.forward {
            self.turn(false);
        }
        if self.entry != self.newest {
            if !self.gathered {
                self.gather();
            }
            self.entry = self.newer.pop().expect("an entry that is not the newest has newer ones");
            return true;
        }
        let newest = self.walk.next(&self.trie.tree);
        self.enter_backward(newest)
    }

    fn key(&self) -> &[u8] {
        if self.entry.is_null() { &[] } else { self.leaf().internal_key() }
    }

    fn value(&self) -> &[u8] {
        if self.entry.is_null() { &[] } else { self.leaf().value() }
    }

    fn status(&self) -> Result<()> {
        Ok(())
    }
}
