//! Moves among the entries of an unchecked skiplist. Forward steps follow links. Backward steps search, because there
//! are no back links.

use base::Result;

use super::budget::Budget;
use super::cursor::Positions;
use super::list::{Node, Ordered};
use super::{LazyImage, Reader};
use crate::image::view::{EntryView, wrong};
use crate::record::split_target;

pub(super) struct ListPositions {
    /// The current node.
    at: u64,
    budget: Budget,
}

type Found<'a> = Result<Option<EntryView<'a>>>;

impl ListPositions {
    pub(super) fn new(budget: Budget) -> Self {
        ListPositions { at: 0, budget }
    }

    fn list(image: &LazyImage) -> Result<Ordered<'_, '_>> {
        match image.reader() {
            Reader::SkipList(list) => Ok(image.ordered(list)),
            Reader::Trie(_) => Err(wrong(0, "a trie where a list was")),
        }
    }

    /// Charges `node` to the budget, and makes it current if its entry is at or below the cut.
    fn arrive<'a>(&mut self, image: &LazyImage, node: &Node<'_>, entry: &EntryView<'a>) -> Result<bool> {
        self.budget.spend(node.at, entry.end - node.at)?;
        if entry.seq() > image.cut {
            return Ok(false);
        }
        entry.point_kind(node.at)?;
        self.at = node.at;
        Ok(true)
    }

    /// Moves to the first visible node behind `before`.
    fn forward_from<'a>(&mut self, image: &'a LazyImage, mut before: Node<'a>) -> Found<'a> {
        let list = Self::list(image)?;
        while let Some((node, entry)) = list.next(&before)? {
            if self.arrive(image, &node, &entry)? {
                return Ok(Some(entry));
            }
            before = node;
        }
        Ok(None)
    }

    /// Moves to `node`, or to the first visible node before it.
    fn backward_from<'a>(&mut self, image: &'a LazyImage, mut node: Node<'a>) -> Found<'a> {
        let list = Self::list(image)?;
        while let Some(entry) = node.entry {
            if self.arrive(image, &node, &entry)? {
                return Ok(Some(entry));
            }
            node = list.before(&node, &entry, &mut self.budget)?;
        }
        Ok(None)
    }
}

impl Positions for ListPositions {
    fn first<'a>(&mut self, image: &'a LazyImage) -> Found<'a> {
        self.budget.renew();
        let head = Self::list(image)?.head();
        self.forward_from(image, head)
    }

    fn last<'a>(&mut self, image: &'a LazyImage) -> Found<'a> {
        self.budget.renew();
        let last = Self::list(image)?.last()?;
        self.backward_from(image, last)
    }

    fn at_or_after<'a>(&mut self, image: &'a LazyImage, target: &[u8]) -> Found<'a> {
        self.budget.renew();
        let before = Self::list(image)?.last_before(split_target(target), false)?;
        self.forward_from(image, before)
    }

    fn at_or_before<'a>(&mut self, image: &'a LazyImage, target: &[u8]) -> Found<'a> {
        self.budget.renew();
        let last = Self::list(image)?.last_before(split_target(target), true)?;
        self.backward_from(image, last)
    }

    fn next<'a>(&mut self, image: &'a LazyImage) -> Found<'a> {
        let here = Self::list(image)?.node(self.at)?.0;
        self.forward_from(image, here)
    }

    fn prev<'a>(&mut self, image: &'a LazyImage) -> Found<'a> {
        let list = Self::list(image)?;
        let (here, entry) = list.node(self.at)?;
        let before = list.before(&here, &entry, &mut self.budget)?;
        self.backward_from(image, before)
    }
}
