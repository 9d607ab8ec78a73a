//! The trie's own code over memory watched by a model checker: every interleaving of a few writers and a reader, and
//! every value a load may see, up to a bound of preemptions. `RUSTFLAGS="--cfg loom" cargo test -p spillway-db-memtable
//! --release --lib loom_`, with its own target folder.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::{SeqNo, ValueKind};
use loom::cell::UnsafeCell as Watched;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::thread;

use super::layout::{HEAD_BYTES, Link, NEAR_SHIFT, Offset};
use super::memory::Memory;
use super::space::{Purse, Space, price_max};
use super::tree::Tree;
use super::walk::Walk;
use crate::Entry;

const CAPACITY: usize = 2048;

/// With 2, the slowest race has a quarter of a million executions.
const PREEMPTIONS_MAX: usize = 2;

/// Words watched by the model checker, and bytes. For bytes it checks per granule that they are not read before
/// publication.
struct LoomMemory {
    words: Vec<AtomicU32>,
    granules: Vec<Watched<()>>,
    bytes: Vec<UnsafeCell<u8>>,
    reserved: AtomicUsize,
    allocated: AtomicUsize,
}

// SAFETY: `bytes` are accessed only between accesses of their granules, which the model checker watches.
unsafe impl Send for LoomMemory {}
// SAFETY: as for Send.
unsafe impl Sync for LoomMemory {}

impl LoomMemory {
    fn new() -> Self {
        LoomMemory {
            words: (0..CAPACITY / 4).map(|_| AtomicU32::new(0)).collect(),
            granules: (0..CAPACITY / 8).map(|_| Watched::new(())).collect(),
            bytes: (0..CAPACITY).map(|_| UnsafeCell::new(0)).collect(),
            // The head, after the null offset.
            reserved: AtomicUsize::new(2 * HEAD_BYTES),
            allocated: AtomicUsize::new(2 * HEAD_BYTES),
        }
    }

    fn watched(&self, at: Offset, len: usize) -> &[Watched<()>] {
        let (start, end) = (at as usize, at as usize + len);
        &self.granules[start / 8..end.div_ceil(8)]
    }
}

impl Memory for LoomMemory {
    const SHIFT: u32 = NEAR_SHIFT;

    fn head(&self) -> Offset {
        HEAD_BYTES as u64
    }

    unsafe fn load(&self, at: Offset, order: Ordering) -> u32 {
        self.words[at as usize / 4].load(order)
    }

    unsafe fn store(&self, at: Offset, word: u32, order: Ordering) {
        self.words[at as usize / 4].store(word, order);
    }

    unsafe fn exchange(&self, at: Offset, current: u32, new: u32, order: Ordering) -> bool {
        self.words[at as usize / 4].compare_exchange(current, new, order, Ordering::Relaxed).is_ok()
    }

    unsafe fn write(&self, at: Offset, bytes: &[u8]) {
        for granule in self.watched(at, bytes.len()) {
            granule.with_mut(|_| ());
        }
        for (to, from) in self.bytes[at as usize..].iter().zip(bytes) {
            // SAFETY: the model checker has just found that nobody else accesses the granule.
            unsafe { *to.get() = *from };
        }
    }

    unsafe fn read(&self, at: Offset, len: usize) -> &[u8] {
        for granule in self.watched(at, len) {
            granule.with(|_| ());
        }
        // SAFETY: the model checker has just found that the writes came before; an `UnsafeCell<u8>` is laid out as a `u8`.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().add(at as usize).cast(), len) }
    }

    fn prefetch(&self, _at: Offset) {}

    fn pause(&self, _nth: u32) {
        thread::yield_now();
    }

    fn capacity(&self) -> usize {
        CAPACITY
    }

    fn try_reserve(&self, bytes: usize) -> bool {
        self.reserved.fetch_add(bytes, Ordering::Relaxed) + bytes <= CAPACITY
    }

    fn give_back(&self, bytes: usize) {
        self.reserved.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn allocate(&self, bytes: usize) -> Offset {
        let at = self.allocated.fetch_add(bytes, Ordering::Relaxed);
        assert!(at + bytes <= self.reserved.load(Ordering::Relaxed).min(CAPACITY));
        at as u64
    }
}

type Shared = Arc<Tree<LoomMemory>>;

fn insert(tree: &Tree<LoomMemory>, key: &[u8], seq: u64) {
    assert!(tree.space.try_reserve(price_max(NEAR_SHIFT, key.len())));
    let mut purse = Purse::default();
    purse.receive(NEAR_SHIFT, key.len());
    let stripe = tree.space.stripes.mine();
    tree.insert(stripe, &mut purse, &Entry { user_key: key, seq: SeqNo(seq), kind: ValueKind::Value, value: b"" });
    tree.space.settle(&stripe.own, &mut purse);
}

/// The numbers of a key's versions, the newest first.
fn versions(tree: &Tree<LoomMemory>, key: &[u8]) -> Vec<u64> {
    let mut link = tree.find(key);
    let mut seqs = Vec::new();
    while !link.is_null() {
        let leaf = tree.leaf(link);
        assert_eq!(leaf.user_key(), key);
        seqs.push(leaf.version().0.0);
        link = leaf.next();
    }
    assert!(seqs.is_sorted_by(|a, b| a > b), "{seqs:?}");
    seqs
}

fn all_keys(tree: &Tree<LoomMemory>) -> Vec<Vec<u8>> {
    let mut walk = Walk::new();
    walk.start(tree, true);
    let keys = std::iter::from_fn(|| Some(walk.next(tree)).filter(|link: &Link| !link.is_null()));
    keys.map(|link| tree.leaf(link).user_key().to_vec()).collect()
}

type Version = (&'static [u8], u64);

/// A reader's guarantees while `first` and others are inserted: earlier entries stay, and every visible entry is whole.
fn read(tree: &Tree<LoomMemory>, before: &[Version], first: Version, all: &[Version]) {
    let seen = versions(tree, first.0);
    assert!(seen.len() >= before.iter().filter(|(key, _)| *key == first.0).count());
    if let Some((key, seq)) = before.last() {
        assert!(versions(tree, key).contains(seq));
    }
    let is_known = |key: &Vec<u8>| all.iter().any(|(known, _)| known == key);
    assert!(all_keys(tree).iter().all(is_known), "a leaf is whole where a node counts it");
}

/// Two writers and a reader, over the entries in `before`. The reader has its own thread: the model checker does not
/// switch away from the main thread while it runs.
fn race(before: &'static [Version], first: Version, second: Version) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    builder.check(move || {
        let tree: Shared = Arc::new(Tree { space: Space::new(LoomMemory::new()) });
        before.iter().for_each(|(key, seq)| insert(&tree, key, *seq));
        let all = [before, &[first, second]].concat();
        let writers = [first, second].map(|(key, seq)| {
            let tree = Arc::clone(&tree);
            thread::spawn(move || insert(&tree, key, seq))
        });
        let reader = {
            let (tree, all) = (Arc::clone(&tree), all.clone());
            thread::spawn(move || read(&tree, before, first, &all))
        };
        for thread in writers.into_iter().chain([reader]) {
            thread.join().expect("no panic");
        }
        for (key, seq) in &all {
            assert!(versions(&tree, key).contains(seq));
        }
        let mut keys: Vec<&[u8]> = all.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(all_keys(&tree), keys);
    });
}

#[test]
fn loom_the_first_keys() {
    race(&[], (b"a", 1), (b"b", 1));
}

#[test]
fn loom_two_appends_to_one_node() {
    race(&[(b"a", 1), (b"b", 1)], (b"c", 1), (b"d", 1));
}

#[test]
fn loom_an_append_fills_the_node_and_another_grows_it() {
    race(&[(b"a", 1), (b"b", 1), (b"c", 1)], (b"d", 1), (b"e", 1));
}

#[test]
fn loom_two_growths_of_one_node() {
    race(&[(b"a", 1), (b"b", 1), (b"c", 1), (b"d", 1)], (b"e", 1), (b"f", 1));
}

#[test]
fn loom_a_growth_and_a_node_in_front_of_it() {
    race(&[(b"xa", 1), (b"xb", 1), (b"xc", 1), (b"xd", 1)], (b"xe", 1), (b"y", 1));
}

#[test]
fn loom_a_growth_below_a_growth() {
    race(&[(b"b", 1), (b"c", 1), (b"d", 1), (b"aa", 1), (b"ab", 1), (b"ac", 1), (b"ad", 1)], (b"ae", 1), (b"e", 1));
}

#[test]
fn loom_two_versions_of_one_key_and_one_late() {
    race(&[(b"a", 4), (b"b", 1)], (b"a", 3), (b"a", 6));
    race(&[(b"a", 4), (b"a", 1)], (b"a", 3), (b"a", 2));
}

#[test]
fn loom_a_key_at_its_node_and_a_version_of_it() {
    race(&[(b"ab", 1), (b"ac", 1)], (b"a", 1), (b"a", 2));
    race(&[(b"ab", 1), (b"ac", 1), (b"a", 1)], (b"a", 2), (b"ad", 1));
}

#[test]
fn loom_a_version_and_a_key_that_parts_from_it() {
    race(&[(b"xa", 1)], (b"xa", 2), (b"xb", 1));
}
