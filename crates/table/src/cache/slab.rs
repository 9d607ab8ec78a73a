//! Eviction order: queues linked by index through one vector. An entry leaves any place in constant time.

use super::BlockKey;

/// No slot. A shard has far fewer slots: each takes more than a hundred bytes.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// New entries, on probation.
    Small = 0,
    /// Blocks hit again, or returned after eviction.
    Main = 1,
    /// High priority.
    High = 2,
}

/// An entry's place in its queue.
pub(super) struct Slot {
    pub(super) key: BlockKey,
    /// Charged bytes, overhead included.
    pub(super) cost: usize,
    newer: u32,
    older: u32,
    pub(super) queue: Queue,
}

#[derive(Clone, Copy)]
struct Ends {
    newest: u32,
    oldest: u32,
    bytes: usize,
}

#[derive(Default)]
pub(super) struct Slab {
    slots: Vec<Slot>,
    free: Vec<u32>,
    queues: [Ends; 3],
}

impl Slab {
    pub(super) fn table_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.free.capacity() * size_of::<u32>()
    }

    /// Places an entry at the young end of a queue.
    pub(super) fn add(&mut self, key: BlockKey, cost: usize, queue: Queue) -> u32 {
        let slot = Slot { key, cost, newer: NONE, older: NONE, queue };
        let at = match self.free.pop() {
            Some(at) => {
                *self.slot_mut(at) = slot;
                at
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).expect("a shard's entries fit its memory")
            }
        };
        self.link(at, queue);
        at
    }

    /// Removes an entry and frees its slot.
    pub(super) fn remove(&mut self, at: u32) {
        self.unlink(at);
        self.free.push(at);
    }

    /// Moves an entry to the young end of a queue.
    pub(super) fn requeue(&mut self, at: u32, queue: Queue) {
        self.unlink(at);
        self.link(at, queue);
    }

    pub(super) fn oldest(&self, queue: Queue) -> Option<u32> {
        let oldest = self.ends(queue).oldest;
        (oldest != NONE).then_some(oldest)
    }

    pub(super) fn queue_bytes(&self, queue: Queue) -> usize {
        self.ends(queue).bytes
    }

    pub(super) fn used_bytes(&self) -> usize {
        self.queues.iter().map(|ends| ends.bytes).sum()
    }

    #[expect(clippy::indexing_slicing, reason = "slots are never taken from the vector; indices come from `add`")]
    pub(super) fn slot(&self, at: u32) -> &Slot {
        &self.slots[at as usize]
    }

    #[expect(clippy::indexing_slicing, reason = "as for `slot`")]
    fn slot_mut(&mut self, at: u32) -> &mut Slot {
        &mut self.slots[at as usize]
    }

    fn link(&mut self, at: u32, queue: Queue) {
        let newest = self.ends(queue).newest;
        let slot = self.slot_mut(at);
        (slot.newer, slot.older, slot.queue) = (NONE, newest, queue);
        let cost = slot.cost;
        if newest == NONE {
            self.ends_mut(queue).oldest = at;
        } else {
            self.slot_mut(newest).newer = at;
        }
        let ends = self.ends_mut(queue);
        ends.newest = at;
        ends.bytes += cost;
    }

    fn unlink(&mut self, at: u32) {
        let slot = self.slot(at);
        let (newer, older, queue, cost) = (slot.newer, slot.older, slot.queue, slot.cost);
        if newer == NONE {
            self.ends_mut(queue).newest = older;
        } else {
            self.slot_mut(newer).older = older;
        }
        if older == NONE {
            self.ends_mut(queue).oldest = newer;
        } else {
            self.slot_mut(older).newer = newer;
        }
        self.ends_mut(queue).bytes -= cost;
    }

    #[expect(clippy::indexing_slicing, reason = "three queues, numbered from 0")]
    fn ends(&self, queue: Queue) -> &Ends {
        &self.queues[queue as usize]
    }

    #[expect(clippy::indexing_slicing, reason = "three queues, numbered from 0")]
    fn ends_mut(&mut self, queue: Queue) -> &mut Ends {
        &mut self.queues[queue as usize]
    }
}

impl Default for Ends {
    fn default() -> Self {
        Ends { newest: NONE, oldest: NONE, bytes: 0 }
    }
}
