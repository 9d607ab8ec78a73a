//! The versions of one key in an unchecked trie. Each step leads to a version of the same key, not newer than the one
//! before. The live search: [`crate::trie::versions`].

use base::{Result, SeqNo};

use super::budget::Budget;
use super::cursor::newest_trailer;
use crate::image::trie::{LeafView, TrieView};
use crate::image::view::wrong;
use crate::trie::layout::Link;

pub(super) struct Versions<'a> {
    trie: TrieView<'a>,
    budget: Budget,
}

impl<'a> Versions<'a> {
    pub(super) fn new(trie: TrieView<'a>, budget: Budget) -> Self {
        Versions { trie, budget }
    }

    /// The remaining budget.
    pub(super) fn budget(&self) -> Budget {
        self.budget
    }

    /// The version at `link`, a link in `leaf`.
    fn follow(&self, leaf: &LeafView<'a>, link: Link) -> Result<LeafView<'a>> {
        let older = self.trie.leaf(link)?;
        if older.entry.user_key() != leaf.entry.user_key() {
            return Err(wrong(older.at, "an older version of another key"));
        }
        if older.entry.trailer() > leaf.entry.trailer() {
            return Err(wrong(older.at, "a newer version behind an older one"));
        }
        Ok(older)
    }

    /// The next older version.
    #[inline]
    pub(super) fn older(&mut self, leaf: &LeafView<'a>) -> Result<Option<LeafView<'a>>> {
        if leaf.next.is_null() {
            return Ok(None);
        }
        let older = self.follow(leaf, leaf.next)?;
        self.budget.spend(older.at, older.entry.end - older.at)?;
        Ok(Some(older))
    }

    /// The target of the jump of `leaf`, if it skips versions.
    fn jump(&self, leaf: &LeafView<'a>) -> Result<Option<LeafView<'a>>> {
        match leaf.jump {
            Some((to, span)) if span > 1 => self.follow(leaf, to).map(Some),
            _ => Ok(None),
        }
    }

    /// The newest version at or below `seq`, from `newest` on.
    #[inline]
    pub(super) fn first_visible(&mut self, newest: LeafView<'a>, seq: SeqNo) -> Result<Option<LeafView<'a>>> {
        self.first_at_or_below(newest, newest_trailer(seq))
    }

    #[inline]
    pub(super) fn first_at_or_below(&mut self, newest: LeafView<'a>, trailer: u64) -> Result<Option<LeafView<'a>>> {
        if newest.entry.trailer() <= trailer { Ok(Some(newest)) } else { Ok(self.last_above(newest, trailer)?.1) }
    }

    /// The last version above `trailer`, and the one behind it. `newest` must be above `trailer`.
    pub(super) fn last_above(
        &mut self,
        newest: LeafView<'a>,
        trailer: u64,
    ) -> Result<(LeafView<'a>, Option<LeafView<'a>>)> {
        let is_above = |leaf: &LeafView<'_>| leaf.entry.trailer() > trailer;
        let mut at = newest;
        loop {
            if let Some(far) = self.jump(&at)?.filter(is_above) {
                self.budget.spend(far.at, far.entry.end - far.at)?;
                at = far;
                continue;
            }
            match self.older(&at)? {
                Some(next) if is_above(&next) => at = next,
                next => return Ok((at, next)),
            }
        }
    }

    /// The oldest version, from `newest` on.
    pub(super) fn oldest(&mut self, newest: LeafView<'a>) -> Result<LeafView<'a>> {
        let mut at = newest;
        loop {
            let Some(next) = self.older(&at)? else { return Ok(at) };
            at = self.jump(&at)?.unwrap_or(next);
        }
    }
}
