//! A position in several runs at once: a tournament of their nearest entries.

use std::cmp::Ordering;
use std::sync::Arc;

use super::item::{Entries, Item, Target};
use super::ladder::Parts;
use crate::order::KeyOrder;

/// Entries ahead, in the same run, whose records a step prefetches.
const AHEAD: usize = 8;

/// For each run, its first entry at or after the current one. The current entry's run points at it, all other runs
/// beyond it, so a turn needs no search.
#[derive(Default)]
pub(super) struct Walk {
    heads: Vec<Head>,
    /// A binary tree of `heads`' indices: the winner at 1, the leaves in the upper half.
    winners: Vec<u32>,
    backward: bool,
    /// All runs have one base, so that prefixes can be compared across them.
    same_base: bool,
}

struct Head {
    at: usize,
    /// The run's next entry in the walk's direction.
    item: Option<Item>,
}

impl Walk {
    /// Positions at the first entry at or after the target (the very first without one), or, backward, at the last at
    /// or before it.
    pub(super) fn seek<O: KeyOrder>(
        &mut self,
        entries: &Entries<O>,
        parts: &Parts,
        target: Option<&Target<'_>>,
        backward: bool,
    ) {
        let mut bases = parts.runs().map(|run| &run.base);
        let first = bases.next();
        self.same_base = bases.all(|base| first.is_some_and(|first| Arc::ptr_eq(first, base)));
        self.heads.clear();
        self.heads.extend(parts.runs().map(|run| {
            let end = if backward { run.items.len() } else { 0 };
            let at = target.map_or(end, |target| run.position(entries, target, backward));
            Head { at, item: None }
        }));
        self.turn(entries, parts, backward);
    }

    /// Steps forward from an entry.
    pub(super) fn next<O: KeyOrder>(&mut self, entries: &Entries<O>, parts: &Parts) {
        let Some(winner) = self.winner() else { return };
        let turns = self.backward;
        if let Some(head) = self.heads.get_mut(winner) {
            let items = parts.items(winner);
            head.at += 1;
            head.item = items.get(head.at).copied();
            if let Some(ahead) = items.get(head.at + AHEAD) {
                entries.arena.prefetch(ahead.at);
            }
        }
        if turns { self.turn(entries, parts, false) } else { self.replay(entries, winner) }
    }

    /// Steps back from an entry.
    pub(super) fn prev<O: KeyOrder>(&mut self, entries: &Entries<O>, parts: &Parts) {
        let Some(winner) = self.winner() else { return };
        if !self.backward {
            return self.turn(entries, parts, true);
        }
        if let Some(head) = self.heads.get_mut(winner) {
            let items = parts.items(winner);
            head.item = before(items, head.at);
            if let Some(ahead) = before(items, head.at.saturating_sub(AHEAD)) {
                entries.arena.prefetch(ahead.at);
            }
        }
        self.replay(entries, winner);
        self.point_at_winner();
    }

    pub(super) fn item(&self) -> Option<Item> {
        self.heads.get(self.winner()?)?.item
    }

    fn winner(&self) -> Option<usize> {
        self.winners.get(1).map(|winner| *winner as usize)
    }

    /// Loads every run's item in one direction, and finds the winner.
    fn turn<O: KeyOrder>(&mut self, entries: &Entries<O>, parts: &Parts, backward: bool) {
        self.backward = backward;
        for (i, head) in self.heads.iter_mut().enumerate() {
            let items = parts.items(i);
            head.item = if backward { before(items, head.at) } else { items.get(head.at).copied() };
        }
        let count = self.heads.len();
        self.winners.clear();
        self.winners.resize(count, 0);
        self.winners.extend(0..count as u32);
        for node in (1..count).rev() {
            self.play(entries, node);
        }
        if backward {
            self.point_at_winner();
        }
    }

    /// Replays the games of a head with a new item.
    fn replay<O: KeyOrder>(&mut self, entries: &Entries<O>, head: usize) {
        let mut node = (self.heads.len() + head) / 2;
        while node >= 1 {
            self.play(entries, node);
            node /= 2;
        }
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "`node` is below the number of heads, the tree twice as long")]
    fn play<O: KeyOrder>(&mut self, entries: &Entries<O>, node: usize) {
        let (a, b) = (self.winners[2 * node], self.winners[2 * node + 1]);
        let offer = |head: u32| self.heads[head as usize].item;
        let a_wins = match (offer(a), offer(b)) {
            (Some(x), Some(y)) if self.same_base => self.wins(entries.compare(x, y)),
            (Some(x), Some(y)) => self.wins(entries.compare_keys(x, y)),
            (x, _) => x.is_some(),
        };
        self.winners[node] = if a_wins { a } else { b };
    }

    #[inline]
    fn wins(&self, order: Ordering) -> bool {
        if self.backward { order.is_gt() } else { order.is_lt() }
    }

    /// Backward, heads point behind their items; the current entry's head points at it.
    fn point_at_winner(&mut self) {
        if let Some(head) = self.winner().and_then(|winner| self.heads.get_mut(winner))
            && head.item.is_some()
        {
            head.at -= 1;
        }
    }
}

fn before(items: &[Item], at: usize) -> Option<Item> {
    items.get(at.checked_sub(1)?).copied()
}
