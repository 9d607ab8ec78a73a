//! Many descents at once: each goes one node further and asks for the next, and lets the others go on until it is there.
//! Where memory is what a descent waits for, the waits of a batch overlap.

use super::layout::Link;
use super::memory::Memory;
use super::tree::Tree;

/// Descents in flight: processors keep 10 to 20 misses going, and more would only push each other's lines out.
pub(super) const WIDTH: usize = 16;

/// A descent for one key, under way or done.
#[derive(Clone, Copy)]
pub(super) struct Probe<'a> {
    key: &'a [u8],
    /// Once done: a leaf that may be the key's, or null.
    pub(super) link: Link,
    from: usize,
    /// Bytes were skipped on the way.
    skips: bool,
}

impl<'a> Probe<'a> {
    pub(super) const NONE: Probe<'static> = Probe { key: &[], link: Link::NULL, from: 0, skips: false };

    pub(super) fn new(key: &'a [u8]) -> Self {
        Probe { key, ..Probe::NONE }
    }
}

impl<M: Memory> Tree<M> {
    /// Descends for all probes, and asks for the leaves that they arrive at; `TO_INSERT`, also for those that an insertion
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

    /// Goes one node further; false where the descent is done.
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
