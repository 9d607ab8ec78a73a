//! Interleaved descents: each step moves one descent to its next node and prefetches, then moves the next descent. The
//! cache misses of a batch overlap.

use super::layout::Link;
use super::memory::Memory;
use super::tree::Tree;

/// Descents in flight. Processors sustain 10 to 20 misses; more would evict each other's lines.
pub(super) const WIDTH: usize = 16;

/// A descent for one key, in progress or done.
#[derive(Clone, Copy)]
pub(super) struct Probe<'a> {
    key: &'a [u8],
    /// Once done: a candidate leaf of the key, or null.
    pub(super) link: Link,
    from: usize,
    /// True if bytes were skipped on the way.
    skips: bool,
}

impl<'a> Probe<'a> {
    pub(super) const NONE: Probe<'static> = Probe { key: &[], link: Link::NULL, from: 0, skips: false };

    pub(super) fn new(key: &'a [u8]) -> Self {
        Probe { key, ..Probe::NONE }
    }
}

impl<M: Memory> Tree<M> {
    /// Descends for all probes, and prefetches the leaves at their ends. With `TO_INSERT`, also the leaves an insertion
    /// compares its key with.
    pub(super) fn probe_all<const TO_INSERT: bool>(&self, probes: &mut [Probe<'_>]) {
        debug_assert!(probes.len() <= WIDTH);
        let root = self.root();
        probes.iter_mut().for_each(|probe| probe.link = root);
        let mut under_way = (1u32 << probes.len()) - 1;
        while under_way != 0 {
            for (i, probe) in probes.iter_mut().enumerate() {
                if under_way & (1 << i) != 0 && !self.advance::<TO_INSERT>(probe) {
                    under_way &= !(1 << i);
                }
            }
        }
    }

    /// Advances one node; false if the descent is done.
    #[inline(always)]
    fn advance<const TO_INSERT: bool>(&self, probe: &mut Probe<'_>) -> bool {
        if probe.link.is_leaf() {
            return false;
        }
        let (node, used) = (probe.link, probe.from);
        probe.link = self.step(node, &mut probe.from, probe.key);
        probe.skips |= probe.from != used + 1;
        if TO_INSERT && probe.skips && probe.link.is_null() {
            self.memory().prefetch(self.node(node).sample().leaf_offset(M::SHIFT));
        } else {
            self.prefetch(probe.link, probe.from, probe.key);
        }
        true
    }
}
