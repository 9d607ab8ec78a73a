//! Moves among the entries of an unchecked trie: a walk over keys, and for each key its versions. The walk goes one
//! way; a turn is a new search for the entry's key. Versions are linked from new to old, so the first step back within
//! a key gathers them. The live cursor: [`crate::trie::cursor`].

use std::cmp::Ordering;
use std::ops::Range;

use base::{Result, SeqNo};

use super::budget::Budget;
use super::cursor::{Positions, newest_trailer};
use super::versions::Versions;
use super::{LazyImage, Reader};
use crate::image::trie::{LeafView, TrieView};
use crate::image::view::{EntryView, wrong};
use crate::image::walk::Walk;
use crate::record::split_target;
use crate::trie::layout::Link;

pub(super) struct TriePositions {
    walk: Walk,
    /// True if key order is ascending byte order.
    upwards: bool,
    /// True if the walk goes forward in key order.
    forward: bool,
    /// The range of the last user key found by the walk.
    walked: Option<Range<usize>>,
    /// The current entry.
    entry: Link,
    /// Walking backwards: the newest version of the entry's key at or below the cut.
    newest: Link,
    /// Walking backwards, once `gathered`: the versions newer than the entry, the newest first.
    newer: Vec<Link>,
    gathered: bool,
    budget: Budget,
}

type Found<'a> = Result<Option<EntryView<'a>>>;

impl TriePositions {
    pub(super) fn new(budget: Budget, upwards: bool) -> Self {
        TriePositions {
            walk: Walk::new(),
            upwards,
            forward: true,
            walked: None,
            entry: Link::NULL,
            newest: Link::NULL,
            newer: Vec::new(),
            gathered: false,
            budget,
        }
    }

    fn begin(&mut self, forward: bool) {
        self.forward = forward;
        self.walked = None;
        self.budget.renew();
    }

    fn start(&mut self, at: &At<'_>, forward: bool) -> Result<()> {
        self.begin(forward);
        self.walk.start(&at.trie, forward == self.upwards)
    }

    /// Begins at `key` or its place, and returns the first key met.
    fn search<'a>(&mut self, at: &At<'a>, key: &[u8], forward: bool) -> Result<Option<LeafView<'a>>> {
        self.begin(forward);
        self.walk.seek(&at.trie, key, forward == self.upwards)?;
        let found = self.next_key(at)?;
        if let Some(leaf) = &found {
            let passes = if forward == self.upwards { Ordering::Less } else { Ordering::Greater };
            if leaf.entry.user_key().cmp(key) == passes {
                return Err(wrong(leaf.at, "a search for a key ends on the wrong side of it"));
            }
        }
        Ok(found)
    }

    /// The walk's next key, as its newest version, even if above the cut.
    fn next_key<'a>(&mut self, at: &At<'a>) -> Result<Option<LeafView<'a>>> {
        let Some(link) = self.walk.next_key(&at.trie)? else { return Ok(None) };
        let leaf = at.trie.leaf(link)?;
        let key = leaf.entry.user_key();
        let before = self.walked.take().map(|range| at.bytes.get(range).unwrap_or_default());
        self.walk.check_way(leaf.at, key, before)?;
        self.budget.spend(leaf.at, leaf.entry.end - leaf.at)?;
        let value_at = leaf.entry.end as usize - leaf.entry.value.len();
        let key_at = value_at - leaf.entry.internal_key.len();
        self.walked = Some(key_at..key_at + key.len());
        Ok(Some(leaf))
    }

    /// Runs a search among versions on this walk's budget.
    fn among<'a, T>(&mut self, at: &At<'a>, search: impl FnOnce(&mut Versions<'a>) -> Result<T>) -> Result<T> {
        let mut versions = Versions::new(at.trie, self.budget);
        let found = search(&mut versions);
        self.budget = versions.budget();
        found
    }

    /// Arrives at `leaf`.
    fn arrive<'a>(&mut self, at: &At<'a>, leaf: LeafView<'a>) -> Found<'a> {
        leaf.entry.point_kind(leaf.at)?;
        self.entry = at.trie.leaf_link(&leaf);
        Ok(Some(leaf.entry))
    }

    /// Arrives at the newest version at or below the cut of `found`, or else of the first key behind it with one.
    fn enter_forward<'a>(&mut self, at: &At<'a>, mut found: Option<LeafView<'a>>) -> Found<'a> {
        while let Some(newest) = found {
            if let Some(leaf) = self.among(at, |versions| versions.first_visible(newest, at.cut))? {
                return self.arrive(at, leaf);
            }
            found = self.next_key(at)?;
        }
        Ok(None)
    }

    /// Arrives at the oldest version of `found`, or else of the first key before it with a version at or below the cut.
    fn enter_backward<'a>(&mut self, at: &At<'a>, mut found: Option<LeafView<'a>>) -> Found<'a> {
        while let Some(newest) = found {
            if let Some(visible) = self.among(at, |versions| versions.first_visible(newest, at.cut))? {
                self.stand_backward(at, &visible);
                let oldest = self.among(at, |versions| versions.oldest(visible))?;
                return self.arrive(at, oldest);
            }
            found = self.next_key(at)?;
        }
        Ok(None)
    }

    fn stand_backward(&mut self, at: &At<'_>, newest: &LeafView<'_>) {
        self.newest = at.trie.leaf_link(newest);
        self.gathered = false;
    }

    /// Searches for the entry's key, to walk the other way from it.
    fn turn<'a>(&mut self, at: &At<'a>, forward: bool) -> Result<()> {
        let here = at.trie.leaf(self.entry)?;
        let found = self.search(at, here.entry.user_key(), forward)?;
        let Some(newest) = found.filter(|leaf| leaf.entry.user_key() == here.entry.user_key()) else {
            return Err(wrong(here.at, "a key that is not found from above"));
        };
        match self.among(at, |versions| versions.first_visible(newest, at.cut))? {
            Some(visible) => self.stand_backward(at, &visible),
            None => return Err(wrong(here.at, "a version that is not found from above")),
        }
        Ok(())
    }

    /// Lists the versions newer than the entry.
    fn gather(&mut self, at: &At<'_>) -> Result<()> {
        self.gathered = true;
        self.newer.clear();
        let mut newer = std::mem::take(&mut self.newer);
        let (first, entry) = (at.trie.leaf(self.newest)?, self.entry);
        self.among(at, |versions| {
            let mut version = first;
            while at.trie.leaf_link(&version) != entry {
                newer.push(at.trie.leaf_link(&version));
                let Some(older) = versions.older(&version)? else {
                    return Err(wrong(version.at, "versions that end before one of them"));
                };
                version = older;
            }
            Ok(())
        })?;
        self.newer = newer;
        Ok(())
    }
}

/// The trie, its bytes and the cut.
struct At<'a> {
    trie: TrieView<'a>,
    bytes: &'a [u8],
    cut: SeqNo,
}

impl<'a> At<'a> {
    fn new(image: &'a LazyImage) -> Result<At<'a>> {
        match image.reader() {
            Reader::Trie(trie) => Ok(At { trie, bytes: (*image.mapping).as_ref(), cut: image.cut }),
            Reader::SkipList(list) => Err(wrong(list.head(), "a list where a trie was")),
        }
    }
}

impl Positions for TriePositions {
    fn first<'a>(&mut self, image: &'a LazyImage) -> Found<'a> {
        let at = At::new(image)?;
        self.start(&at, true)?;
        let found = self.next_key(&at)?;
        self.enter_forward(&at, found)
    }

    fn last<'a>(&mut self, image: &'a LazyImage) -> Found<'a> {
        let at = At::new(image)?;
        self.start(&at, false)?;
        let found = self.next_key(&at)?;
        self.enter_backward(&at, found)
    }

    fn at_or_after<'a>(&mut self, image: &'a LazyImage, target: &[u8]) -> Found<'a> {
        let at = At::new(image)?;
        let (user_key, trailer) = split_target(target);
        let mut found = self.search(&at, user_key, true)?;
        if let Some(newest) = found.filter(|leaf| leaf.entry.user_key() == user_key) {
            let trailer = trailer.min(newest_trailer(at.cut));
            if let Some(leaf) = self.among(&at, |versions| versions.first_at_or_below(newest, trailer))? {
                return self.arrive(&at, leaf);
            }
            found = self.next_key(&at)?;
        }
        self.enter_forward(&at, found)
    }

    fn at_or_before<'a>(&mut self, image: &'a LazyImage, target: &[u8]) -> Found<'a> {
        let at = At::new(image)?;
        let (user_key, trailer) = split_target(target);
        let mut found = self.search(&at, user_key, false)?;
        if let Some(newest) = found.filter(|leaf| leaf.entry.user_key() == user_key) {
            let visible = self.among(&at, |versions| versions.first_visible(newest, at.cut))?;
            if let Some(visible) = visible.filter(|leaf| leaf.entry.trailer() >= trailer) {
                self.stand_backward(&at, &visible);
                let last = self.among(&at, |versions| match trailer.checked_sub(1) {
                    Some(below) => Ok(versions.last_above(visible, below)?.0),
                    None => versions.oldest(visible),
                })?;
                return self.arrive(&at, last);
            }
            found = self.next_key(&at)?;
        }
        self.enter_backward(&at, found)
    }

    fn next<'a>(&mut self, image: &'a LazyImage) -> Found<'a> {
        let at = At::new(image)?;
        if !self.forward {
            self.turn(&at, true)?;
        }
        let here = at.trie.leaf(self.entry)?;
        match self.among(&at, |versions| versions.older(&here))? {
            Some(older) => self.arrive(&at, older),
            None => {
                let found = self.next_key(&at)?;
                self.enter_forward(&at, found)
            }
        }
    }

    fn prev<'a>(&mut self, image: &'a LazyImage) -> Found<'a> {
        let at = At::new(image)?;
        if self.forward {
            self.turn(&at, false)?;
        }
        if self.entry == self.newest {
            let found = self.next_key(&at)?;
            return self.enter_backward(&at, found);
        }
        if !self.gathered {
            self.gather(&at)?;
        }
        let link = self.newer.pop().ok_or_else(|| wrong(0, "no version where there was one"))?;
        let leaf = at.trie.leaf(link)?;
        self.arrive(&at, leaf)
    }
}
