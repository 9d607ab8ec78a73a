//! The chunks of a list, and the rule keeping them few: each must be at least [`RATIO`] times as long as the next, so n
//! entries make at most log n chunks to that base.

use std::sync::Arc;

use super::chunk::{Chunk, Run};
use super::item::{Entries, Item};
use crate::order::KeyOrder;

/// Length ratio of neighbouring chunks. If entries are cut off one by one, 20,000 of them are moved 13 times each at 2,
/// and make seven chunks on average; 17 times at 4, for four chunks; 24 times at 8, for three and a half.
const RATIO: usize = 4;

/// Chunks, the longest first, and the number of each stripe's items in them.
pub(super) struct Parts {
    pub(super) chunks: Vec<Arc<Chunk>>,
    pub(super) covered: Vec<u64>,
}

impl Parts {
    /// Adds a chunk at its place by length.
    pub(super) fn with(&self, chunk: Arc<Chunk>) -> Parts {
        let mut chunks = Vec::with_capacity(self.chunks.len() + 1);
        let longer = self.chunks.partition_point(|other| other.len() >= chunk.len());
        chunks.extend(self.chunks.iter().take(longer).cloned());
        chunks.push(chunk);
        chunks.extend(self.chunks.iter().skip(longer).cloned());
        Parts { chunks, covered: self.covered.clone() }
    }

    /// With `merged` in place of `inputs`; `None` unless all `inputs` are still present.
    pub(super) fn replacing(&self, inputs: &[Arc<Chunk>], merged: Arc<Chunk>) -> Option<Parts> {
        let is_input = |chunk: &Arc<Chunk>| inputs.iter().any(|input| Arc::ptr_eq(input, chunk));
        let rest: Vec<Arc<Chunk>> = self.chunks.iter().filter(|chunk| !is_input(chunk)).cloned().collect();
        let all_here = rest.len() + inputs.len() == self.chunks.len();
        all_here.then(|| Parts { chunks: rest, covered: self.covered.clone() }.with(merged))
    }

    /// The shortest two neighbours that break the rule and have at most `len_max` entries together.
    pub(super) fn too_similar(&self, len_max: usize) -> Option<[Arc<Chunk>; 2]> {
        let pairs = self.chunks.iter().zip(self.chunks.iter().skip(1)).rev();
        let broken = |(longer, shorter): &(&Arc<Chunk>, &Arc<Chunk>)| {
            is_too_similar(longer.len(), shorter.len()) && longer.len() + shorter.len() <= len_max
        };
        pairs.into_iter().find(broken).map(|(longer, shorter)| [Arc::clone(longer), Arc::clone(shorter)])
    }

    /// The sorted items of the `i`-th chunk; empty if it is not sorted.
    #[inline]
    pub(super) fn items(&self, i: usize) -> &[Item] {
        self.chunks.get(i).and_then(|chunk| chunk.run()).map_or(&[], |run| &run.items)
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.chunks.iter().filter_map(|chunk| chunk.run())
    }
}

/// True if neighbours of these lengths must be merged.
pub(super) fn is_too_similar(longer: usize, shorter: usize) -> bool {
    longer < RATIO * shorter
}

/// Merges sorted items of one base.
pub(super) fn merge<O: KeyOrder>(entries: &Entries<O>, mut a: &[Item], mut b: &[Item]) -> Vec<Item> {
    let mut merged = Vec::with_capacity(a.len() + b.len());
    while let ([x, a_rest @ ..], [y, b_rest @ ..]) = (a, b) {
        let a_is_next = entries.compare(*x, *y).is_lt();
        merged.push(if a_is_next { *x } else { *y });
        (a, b) = if a_is_next { (a_rest, b) } else { (a, b_rest) };
    }
    merged.extend_from_slice(a);
    merged.extend_from_slice(b);
    merged
}
