//! Point lookups: single and batched.

use std::cmp::Ordering;

use base::metrics::{Ticker, tick};
use base::{LookupKey, ParsedKey, Result, SeqNo, ValueKind, key};

use super::group::Group;
use super::reading::Reading;
use crate::reader::unknown_kind;
use crate::{TableValue, Visit};

/// Lookups descending together, to overlap their cache misses.
const BATCH: usize = 16;

/// A lookup during its descent.
#[derive(Clone, Copy, Default)]
struct Probe {
    /// Index among the caller's keys.
    nth: usize,
    /// Offset of the node or group reached.
    at: usize,
    /// Offset in the groups of the first candidate entry.
    entry: usize,
}

impl<'a> Reading<'a> {
    pub(super) fn get(&self, key: &LookupKey, visit: Visit<'_>) -> Result<()> {
        if self.is_empty() || !self.table.file.may_hold_key(key, self.verify)? {
            return Ok(());
        }
        let at = self.group_for(key.internal())?;
        self.show(at, self.group(at)?, key, visit)
    }

    pub(super) fn get_many(
        &self,
        keys: &[&LookupKey],
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        for (batch, first) in keys.chunks(BATCH).zip((0..).step_by(BATCH)) {
            let mut probes = [Probe::default(); BATCH];
            let mut count = 0;
            for (nth, key) in batch.iter().enumerate() {
                if self.table.file.may_hold_key(key, self.verify)?
                    && let Some(probe) = probes.get_mut(count)
                {
                    *probe = Probe { nth, at: self.table.file.footer.root as usize, entry: 0 };
                    count += 1;
                }
            }
            let probes = probes.get_mut(..count).unwrap_or_default();
            self.probe_all(batch, probes)?;
            for probe in probes {
                let Some(key) = batch.get(probe.nth) else { continue };
                let nth = first + probe.nth;
                let mut visit = |seq, kind, value: TableValue<'_>| visit(nth, seq, kind, value);
                self.show(probe.at, self.group(probe.at)?, key, &mut visit)?;
            }
        }
        Ok(())
    }

    /// Brings all probes to their groups. All probes make a step before any makes the next one, so their cache misses
    /// overlap.
    fn probe_all(&self, keys: &[&LookupKey], probes: &mut [Probe]) -> Result<()> {
        let target = |probe: &Probe| keys.get(probe.nth).map_or(&[][..], |key| key.internal());
        for level in (1..=self.table.file.footer.levels).rev() {
            for probe in probes.iter_mut() {
                let target = target(probe);
                let choose =
                    |node: &super::node::Node<'a>| node.child_for(target, self.heads(), &self.table.file.order);
                probe.at = self.child(probe.at, level, choose)?;
            }
        }
        for probe in probes.iter_mut() {
            let group = self.group(probe.at)?;
            let first = group.start(self.first_by_head(&group, key::user_key(target(probe))));
            probe.entry = probe.at + first.unwrap_or_default();
        }
        let touched = probes.iter().map(|probe| self.data.get(probe.entry).copied().map_or(0, usize::from));
        std::hint::black_box(touched.sum::<usize>());
        Ok(())
    }

    /// The first entry whose head is not below the head of `user_key`; 0 without heads. Any result is valid for a key
    /// without the group's prefix: it matches no entry.
    #[inline]
    fn first_by_head(&self, group: &Group<'_>, user_key: &[u8]) -> usize {
        let rest = user_key.get(group.prefix_bytes()..).unwrap_or_default();
        let head = self.heads().head(rest);
        group.heads().partition_point(|stored| u32::from_le_bytes(*stored) < head)
    }

    /// Passes the visible entries of `key` to `visit`, from the group at `at` on; they may span groups.
    fn show(&self, mut at: usize, mut group: Group<'a>, key: &LookupKey, visit: Visit<'_>) -> Result<()> {
        let file = &self.table.file;
        let Some((user_key, newest)) = key::split(key.internal()) else { return Ok(()) };
        let mut nth = self.first_by_head(&group, user_key);
        let mut awaits_first = true;
        loop {
            // Versions of one key may continue in the next group.
            let mut goes_on = false;
            while nth < group.len() {
                let entry = group.entry(nth).ok_or_else(|| self.damaged("an entry", at))?;
                let (stored, trailer) = key::split(entry.key).unwrap_or_default();
                let trailer = file.global.trailer(trailer);
                nth += 1;
                goes_on = match file.order.user.compare(stored, user_key) {
                    Ordering::Less => false,
                    Ordering::Equal => true,
                    Ordering::Greater => return Ok(()),
                };
                if !goes_on || trailer > newest {
                    continue;
                }
                let Some(parsed) = ParsedKey::parse(entry.key) else {
                    return Err(file.damaged(unknown_kind(entry.key), at));
                };
                if std::mem::take(&mut awaits_first) && file.filters_whole_keys() {
                    tick(&file.statistics, Ticker::BloomFilterFullTruePositive, 1);
                }
                let value = TableValue::of_whole(entry.value, file, || at + entry.value_range.0);
                if !visit(SeqNo(trailer >> 8), parsed.kind, value) {
                    return Ok(());
                }
            }
            at += group.bytes();
            if !goes_on || at >= self.data.len() {
                return Ok(());
            }
            group = self.group(at)?;
            nth = 0;
        }
    }
}
