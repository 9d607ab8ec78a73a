//! Sorted keys of a batch: two levels of small arrays. An entry has the first bytes of its key, so most comparisons
//! touch neither the key nor its order.

use std::cmp::Ordering;

use base::UserOrder;

/// Entries of a leaf; a full one is split.
const LEAF_MAX: usize = 128;

/// Keys in order, by the numbers of their nodes.
#[derive(Default)]
pub(super) struct SortedKeys {
    /// Never empty ones; ascending.
    leaves: Vec<Leaf>,
    /// Memory for the next first leaf: a batch that is used again allocates nothing.
    spare: Vec<Entry>,
}

struct Leaf {
    entries: Vec<Entry>,
}

#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub prefix: Prefix,
    pub node: u32,
}

/// The first bytes of a key, as a number that sorts like the key: of two keys with different prefixes the smaller prefix
/// is the smaller key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Prefix(u64);

impl Prefix {
    /// Keys of a custom order have one prefix.
    #[inline]
    pub fn of(order: &UserOrder, key: &[u8]) -> Prefix {
        let mut bytes = [0; 8];
        let len = key.len().min(bytes.len());
        if let (Some(to), Some(from)) = (bytes.get_mut(..len), key.get(..len)) {
            to.copy_from_slice(from);
        }
        Prefix(match order {
            UserOrder::Bytewise => u64::from_be_bytes(bytes),
            UserOrder::ReverseBytewise => !u64::from_be_bytes(bytes),
            UserOrder::Custom(_) => 0,
        })
    }
}

/// A place between or at entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    leaf: usize,
    at: usize,
}

impl SortedKeys {
    pub fn clear(&mut self) {
        if let Some(Leaf { mut entries }) = self.leaves.drain(..).next() {
            entries.clear();
            self.spare = entries;
        }
    }

    /// The place of a key, or else the place to insert it. `compare` compares a node's key with it.
    #[inline]
    pub fn find(&self, prefix: Prefix, compare: impl Fn(u32) -> Ordering) -> Result<Spot, Spot> {
        let beside = |entry: &Entry| entry.prefix.cmp(&prefix).then_with(|| compare(entry.node));
        // Sorted input appends.
        if let Some((leaf, at, last)) = self.last() {
            match beside(last) {
                Ordering::Less => return Err(Spot { leaf, at: at + 1 }),
                Ordering::Equal => return Ok(Spot { leaf, at }),
                Ordering::Greater => {}
            }
        }
        let behind =
            self.leaves.partition_point(|leaf| leaf.entries.first().is_some_and(|first| beside(first).is_le()));
        let leaf = behind.saturating_sub(1);
        let entries = self.leaves.get(leaf).map_or(&[][..], |leaf| &leaf.entries);
        match entries.binary_search_by(beside) {
            Ok(at) => Ok(Spot { leaf, at }),
            Err(at) => Err(Spot { leaf, at }),
        }
    }

    fn last(&self) -> Option<(usize, usize, &Entry)> {
        let last = self.leaves.last()?;
        Some((self.leaves.len() - 1, last.entries.len() - 1, last.entries.last()?))
    }

    /// Inserts at a place returned by [`find`](Self::find).
    pub fn insert(&mut self, spot: Spot, entry: Entry) {
        let leaves = self.leaves.len();
        let Some(leaf) = self.leaves.get_mut(spot.leaf) else {
            let mut entries = std::mem::take(&mut self.spare);
            entries.push(entry);
            return self.leaves.push(Leaf { entries });
        };
        if leaf.entries.len() < LEAF_MAX {
            return leaf.entries.insert(spot.at, entry);
        }
        // At the end of all keys a new leaf begins: sorted input leaves full leaves behind.
        if spot.leaf + 1 == leaves && spot.at == leaf.entries.len() {
            return self.leaves.push(Leaf { entries: vec![entry] });
        }
        let mut upper = Leaf { entries: Vec::with_capacity(LEAF_MAX) };
        upper.entries.extend(leaf.entries.drain(LEAF_MAX / 2..));
        match spot.at.checked_sub(LEAF_MAX / 2) {
            Some(at) if at > 0 => upper.entries.insert(at, entry),
            _ => leaf.entries.insert(spot.at, entry),
        }
        self.leaves.insert(spot.leaf + 1, upper);
    }

    pub fn remove(&mut self, spot: Spot) {
        let Some(leaf) = self.leaves.get_mut(spot.leaf) else { return };
        leaf.entries.remove(spot.at);
        if leaf.entries.is_empty() {
            self.leaves.remove(spot.leaf);
        }
    }

    /// The node at a place, or at the first one behind it.
    pub fn first_from(&self, spot: Spot) -> Option<(Spot, u32)> {
        let leaf = self.leaves.get(spot.leaf)?;
        match leaf.entries.get(spot.at) {
            Some(entry) => Some((spot, entry.node)),
            None => {
                let next = Spot { leaf: spot.leaf + 1, at: 0 };
                Some((next, self.leaves.get(next.leaf)?.entries.first()?.node))
            }
        }
    }

    /// The node before a place.
    pub fn last_before(&self, spot: Spot) -> Option<(Spot, u32)> {
        let (leaf, at) = match spot.at.checked_sub(1) {
            Some(at) => (spot.leaf, at),
            None => {
                let before = spot.leaf.checked_sub(1)?;
                (before, self.leaves.get(before)?.entries.len().checked_sub(1)?)
            }
        };
        Some((Spot { leaf, at }, self.leaves.get(leaf)?.entries.get(at)?.node))
    }

    /// The place behind an entry.
    pub fn behind(spot: Spot) -> Spot {
        Spot { at: spot.at + 1, ..spot }
    }

    pub const START: Spot = Spot { leaf: 0, at: 0 };

    pub fn end(&self) -> Spot {
        self.last().map_or(Self::START, |(leaf, at, _)| Spot { leaf, at: at + 1 })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Random inserts and removals against a map, with walks from both ends and from places between.
    #[test]
    fn it_is_a_sorted_map() {
        let (mut sorted, mut map) = (SortedKeys::default(), BTreeMap::new());
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut random = 7u64;
        for step in 0..6000u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = format!("{:05}", (random >> 33) % 2000).into_bytes();
            let found = sorted.find(Prefix::of(&UserOrder::Bytewise, &key), |node| keys[node as usize].cmp(&key));
            assert_eq!(found.is_ok(), map.contains_key(&key), "{step}");
            match found {
                Ok(spot) if random.is_multiple_of(3) || step > 5000 => {
                    sorted.remove(spot);
                    map.remove(&key);
                }
                Ok(spot) => assert_eq!(sorted.first_from(spot).map(|(_, node)| node), map.get(&key).copied()),
                Err(spot) if step < 5000 => {
                    sorted.insert(
                        spot,
                        Entry { prefix: Prefix::of(&UserOrder::Bytewise, &key), node: keys.len() as u32 },
                    );
                    map.insert(key.clone(), keys.len() as u32);
                    keys.push(key);
                }
                Err(spot) => {
                    let next = map.range(key.clone()..).next().map(|(_, node)| *node);
                    assert_eq!(sorted.first_from(spot).map(|(_, node)| node), next);
                    let before = map.range(..key.clone()).next_back().map(|(_, node)| *node);
                    assert_eq!(sorted.last_before(spot).map(|(_, node)| node), before);
                }
            }
            if step % 500 == 0 {
                let (mut forward, mut at) = (Vec::new(), SortedKeys::START);
                while let Some((spot, node)) = sorted.first_from(at) {
                    forward.push(node);
                    at = SortedKeys::behind(spot);
                }
                assert_eq!(forward, map.values().copied().collect::<Vec<_>>());
                let (mut backward, mut at) = (Vec::new(), sorted.end());
                while let Some((spot, node)) = sorted.last_before(at) {
                    backward.push(node);
                    at = spot;
                }
                assert_eq!(backward, map.values().rev().copied().collect::<Vec<_>>());
            }
        }
    }
}
