//! Point lookups, one by one and many together, and the descent that all searches share.

use base::metrics::{Ticker, tick};
use base::{LookupKey, ParsedKey, Result, SeqNo, ValueKind, key};

use super::FastTable;
use super::group::Group;
use super::heads::rank;
use super::node::Node;
use crate::filter::FilterReader;
use crate::reader::unknown_kind;
use crate::{TableReadOptions, TableValue, Visit};

/// Lookups that go down the tree side by side, so that their misses overlap.
const BATCH: usize = 16;

/// A lookup on its way down.
#[derive(Clone, Copy, Default)]
struct Probe {
    /// Of the caller's keys.
    nth: usize,
    /// Of the node or group reached.
    at: usize,
    /// The first entry that can be the one looked for, and where it begins in its group.
    rank: usize,
    start: usize,
}

impl FastTable {
    pub(super) fn is_empty(&self) -> bool {
        self.footer.data_bytes == 0
    }

    /// The place of the group to which `choose` leads; the table is not empty.
    #[inline]
    pub(super) fn descend(&self, verify: bool, choose: impl Fn(&Node<'_>) -> Option<usize>) -> Result<usize> {
        let mut at = self.footer.root as usize;
        for level in (1..=self.footer.levels).rev() {
            at = self.child(at, level, verify, &choose)?;
        }
        Ok(at)
    }

    #[inline]
    fn child(&self, at: usize, level: u32, verify: bool, choose: impl Fn(&Node<'_>) -> Option<usize>) -> Result<usize> {
        let node = self.node(at, level, verify)?;
        let child = choose(&node).and_then(|nth| node.child(nth)).and_then(|child| usize::try_from(child).ok());
        child.ok_or_else(|| self.damaged("a node", self.footer.nodes_at() as usize + at))
    }

    /// The place of the group that internal keys like `target` lie in.
    #[inline]
    pub(super) fn group_for(&self, target: &[u8], verify: bool) -> Result<usize> {
        self.descend(verify, |node| node.child_for(target, self.heads, &self.order))
    }

    /// Of the group's entries that are `target`'s user key or after it the first not before `target`; where there is none,
    /// any other, or their number. Entries that do not begin as the group's do are not told from others.
    #[inline]
    fn candidate(&self, group: &Group<'_>, target: &[u8]) -> Option<usize> {
        let rest = key::user_key(target).get(group.prefix_bytes()..).unwrap_or_default();
        let is_before = |nth| Some(self.global.compare(&self.order, group.entry(nth)?.key, target).is_lt());
        rank(group.heads(), group.len(), self.heads.head(rest), is_before)
    }

    pub(super) fn get_entries(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        let verify = options.verify_checksums;
        if self.is_empty() || !self.filter_allows(key, verify)? {
            return Ok(());
        }
        let at = self.group_for(key.internal(), verify)?;
        let group = self.group(at, verify)?;
        let first = self.candidate(&group, key.internal()).ok_or_else(|| self.damaged("an entry", at))?;
        self.show((at, first), key, verify, visit)
    }

    pub(super) fn get_many(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let verify = options.verify_checksums;
        for (batch, first) in keys.chunks(BATCH).zip((0..).step_by(BATCH)) {
            let mut probes = [Probe::default(); BATCH];
            let mut count = 0;
            for (nth, key) in batch.iter().enumerate() {
                if self.filter_allows(key, verify)?
                    && let Some(probe) = probes.get_mut(count)
                {
                    *probe = Probe { nth, at: self.footer.root as usize, ..Probe::default() };
                    count += 1;
                }
            }
            let probes = probes.get_mut(..count).unwrap_or_default();
            self.probe_all(batch, probes, verify)?;
            for probe in probes {
                let Some(key) = batch.get(probe.nth) else { continue };
                let nth = first + probe.nth;
                self.show((probe.at, probe.rank), key, verify, &mut |seq, kind, value| visit(nth, seq, kind, value))?;
            }
        }
        Ok(())
    }

    /// Brings all probes to their entries. Each step is made for all before the next one: what one loads from memory
    /// another does not wait for.
    fn probe_all(&self, keys: &[&LookupKey], probes: &mut [Probe], verify: bool) -> Result<()> {
        let target = |probe: &Probe| keys.get(probe.nth).map_or(&[][..], |key| key.internal());
        for level in (1..=self.footer.levels).rev() {
            for probe in probes.iter_mut() {
                let choose = |node: &Node<'_>| node.child_for(target(probe), self.heads, &self.order);
                probe.at = self.child(probe.at, level, verify, choose)?;
            }
        }
        for probe in probes.iter_mut() {
            let group = self.group(probe.at, verify)?;
            let first = self.candidate(&group, target(probe));
            probe.rank = first.ok_or_else(|| self.damaged("an entry", probe.at))?;
            probe.start = probe.at + group.start(probe.rank).unwrap_or_default();
        }
        let touched = probes.iter().map(|probe| self.bytes().get(probe.start).copied().map_or(0, usize::from));
        std::hint::black_box(touched.sum::<usize>());
        Ok(())
    }

    /// Shows the entries of the lookup's user key from a group's place and `rank` on, over as many groups as they lie in.
    fn show(&self, (mut at, mut nth): (usize, usize), key: &LookupKey, verify: bool, visit: Visit<'_>) -> Result<()> {
        let order = &self.order.user;
        let mut group = self.group(at, verify)?;
        if nth == group.len() {
            // Older versions of the last entry are in the next group.
            let last = nth.checked_sub(1).and_then(|last| group.entry(last));
            let last = last.ok_or_else(|| self.damaged("an entry", at))?;
            if !order.equal(key::user_key(last.key), key.user_key()) {
                return Ok(());
            }
        }
        let mut awaits_first = true;
        loop {
            while nth < group.len() {
                let entry = group.entry(nth).ok_or_else(|| self.damaged("an entry", at))?;
                let Some((user_key, trailer)) = key::split(entry.key) else { return Ok(()) };
                if !order.equal(user_key, key.user_key()) {
                    return Ok(());
                }
                let Some(parsed) = ParsedKey::parse(entry.key) else {
                    return Err(unknown_kind(entry.key).at_path(&self.path).at_offset(at as u64));
                };
                if std::mem::take(&mut awaits_first) && self.filter.as_ref().is_some_and(|f| f.by_whole_keys()) {
                    tick(&self.statistics, Ticker::BloomFilterFullTruePositive, 1);
                }
                let seq = SeqNo(self.global.trailer(trailer) >> 8);
                let value = self.value(entry.value, at + entry.value_range.0);
                if !visit(seq, parsed.kind, value) {
                    return Ok(());
                }
                nth += 1;
            }
            at += group.bytes();
            if at >= self.data_end() {
                return Ok(());
            }
            group = self.group(at, verify)?;
            nth = 0;
        }
    }

    fn filter_allows(&self, key: &LookupKey, verify: bool) -> Result<bool> {
        let Some(question) = &self.filter else { return Ok(true) };
        let ask = |part: &[u8]| self.filter(verify).map(|filter| filter.may_match(part));
        question.may_hold_key(key.user_key(), &self.order.user, &self.statistics, ask)
    }

    /// False where no key at or after `target` has its prefix.
    pub(super) fn filter_allows_prefix(&self, target: &[u8], verify: bool) -> Result<bool> {
        let Some(question) = &self.filter else { return Ok(true) };
        let ask = |part: &[u8]| self.filter(verify).map(|filter| filter.may_match(part));
        question.may_hold_prefix(key::user_key(target), &self.order.user, &self.statistics, ask)
    }

    pub(super) fn filter(&self, verify: bool) -> Result<FilterReader<&[u8]>> {
        let (start, end) = (self.footer.filter_at() as usize, self.footer.tombstones_at() as usize);
        if verify {
            self.check_extents(start, end)?;
        }
        Ok(FilterReader::new(self.bytes().get(start..end).unwrap_or_default()))
    }
}
