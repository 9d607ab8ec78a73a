//! A trie's image after every store of every insertion: a valid trie with all entries of returned insertions, and each
//! other entry whole or absent.

#![cfg(not(miri))]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{InternalOrder, SeqNo, UserOrder, ValueKind, key};
use parking_lot::Mutex;
use vfs::{MemoryVfs, RealVfs};

use super::layout::{FAR_SHIFT, NEAR_SHIFT, Offset};
use super::memory::{ArenaMemory, Memory};
use super::space::{Purse, Space, price_max};
use super::tree::Tree;
use crate::arena::{Arena, ArenaConfig};
use crate::conformance::Random;
use crate::image::tests::Pairs;
use crate::image::tests::contents::Image;
use crate::image::tests::lazy::assert_shows;
use crate::image::{self, Representation};
use crate::{Entry, ImageFile};

const CAPACITY: usize = 128 << 10;

/// An arena whose image is checked after every store. Stores of all threads come one after another.
struct Watched<const SHIFT: u32> {
    inner: ArenaMemory<SHIFT>,
    vfs: Arc<MemoryVfs>,
    seen: Arc<Mutex<Seen>>,
}

/// Internal keys; each entry's value is its key again.
#[derive(Default)]
struct Seen {
    begun: BTreeSet<Vec<u8>>,
    done: BTreeSet<Vec<u8>>,
    states: u64,
    locked: u64,
}

impl<const SHIFT: u32> Watched<SHIFT> {
    fn new() -> Self {
        let vfs = MemoryVfs::new(1);
        let file = ImageFile::new(vfs.clone(), "/image");
        let arena = Arena::with(&ArenaConfig { image: Some(&file), ..ArenaConfig::new(CAPACITY) }).expect("made");
        assert!(arena.file().is_some());
        let inner = ArenaMemory::new(arena).expect("room for a head");
        let representation = Representation::Trie { shift: SHIFT };
        image::begin(inner.arena(), representation, inner.head(), &UserOrder::Bytewise).expect("a short name");
        Watched { inner, vfs, seen: Arc::default() }
    }

    fn check(&self, seen: &mut Seen) {
        let end = self.inner.arena().allocated();
        let whole = self.vfs.read_file(Path::new("/image")).expect("there");
        let mut bytes = whole.clone();
        bytes.truncate(end);
        let image = Image::open(&bytes, &UserOrder::Bytewise).expect("valid after every store");
        let mut found = BTreeSet::new();
        for (key, value) in image.entries() {
            assert_eq!(key, value);
            assert!(found.insert(key.to_vec()) && seen.begun.contains(key), "{key:?}");
        }
        assert!(found.is_superset(&seen.done), "what was inserted is there");
        let mut pairs: Pairs = found.into_iter().map(|key| (key.clone(), key)).collect();
        pairs.sort_by(|a, b| InternalOrder::default().compare(&a.0, &b.0));
        assert_shows(&whole, &InternalOrder::default(), &pairs, &[u64::MAX >> 8, 20_000]);
        seen.states += 1;
        seen.locked += image.report.locked_nodes;
    }
}

impl<const SHIFT: u32> Memory for Watched<SHIFT> {
    const SHIFT: u32 = SHIFT;

    fn head(&self) -> Offset {
        self.inner.head()
    }

    unsafe fn load(&self, at: Offset, order: Ordering) -> u32 {
        // SAFETY: the caller's promise is the arena's.
        unsafe { self.inner.load(at, order) }
    }

    unsafe fn store(&self, at: Offset, word: u32, order: Ordering) {
        let mut seen = self.seen.lock();
        // SAFETY: as in `load`.
        unsafe { self.inner.store(at, word, order) };
        self.check(&mut seen);
    }

    unsafe fn exchange(&self, at: Offset, current: u32, new: u32, order: Ordering) -> bool {
        let mut seen = self.seen.lock();
        // SAFETY: as in `load`.
        let done = unsafe { self.inner.exchange(at, current, new, order) };
        self.check(&mut seen);
        done
    }

    unsafe fn write(&self, at: Offset, bytes: &[u8]) {
        // SAFETY: as in `load`.
        unsafe { self.inner.write(at, bytes) };
    }

    unsafe fn read(&self, at: Offset, len: usize) -> &[u8] {
        // SAFETY: as in `load`.
        unsafe { self.inner.read(at, len) }
    }

    fn prefetch(&self, _at: Offset) {}

    fn pause(&self, nth: u32) {
        self.inner.pause(nth);
    }

    fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    fn try_reserve(&self, bytes: usize) -> bool {
        self.inner.try_reserve(bytes)
    }

    fn give_back(&self, bytes: usize) {
        self.inner.give_back(bytes);
    }

    fn allocate(&self, bytes: usize) -> Offset {
        self.inner.allocate(bytes)
    }
}

fn insert<const SHIFT: u32>(tree: &Tree<Watched<SHIFT>>, user_key: &[u8], seq: u64) {
    let internal = key::encode(user_key, SeqNo(seq), ValueKind::Value);
    let payload = user_key.len() + internal.len();
    assert!(tree.space.try_reserve(price_max(SHIFT, payload)));
    let mut purse = Purse::default();
    purse.receive(SHIFT, payload);
    let stripe = tree.space.stripes.mine();
    tree.memory().seen.lock().begun.insert(internal.clone());
    let entry = Entry { user_key, seq: SeqNo(seq), kind: ValueKind::Value, value: &internal };
    tree.insert(stripe, &mut purse, &entry);
    tree.space.settle(&stripe.own, &mut purse);
    tree.memory().seen.lock().done.insert(internal);
}

fn tree<const SHIFT: u32>() -> Tree<Watched<SHIFT>> {
    Tree { space: Space::new(Watched::new()) }
}

/// Keys of every shape; no two entries have equal internal keys.
fn shapes(random: &mut Random, thread: u64, count: u64) -> Vec<(Vec<u8>, u64)> {
    let mut entries = Vec::new();
    for i in 0..count {
        let letters = if random.below(3) == 0 { 5 } else { 2 };
        let mut key: Vec<u8> = (0..random.below(5)).map(|_| b"ab\0\xffc"[random.below(letters) as usize]).collect();
        if random.below(4) == 0 {
            key.extend_from_slice(b" a long way that many keys share ");
            key.push(random.below(70) as u8);
        }
        entries.push((key, random.below(1000) * 64 + i % 8 * 8 + thread));
    }
    entries
}

/// Single-threaded, after every store: splits, growth of every kind to 256, keys that end at nodes, versions in and out
/// of order.
fn one_writer<const SHIFT: u32>() {
    let tree = tree::<SHIFT>();
    for (key, seq) in shapes(&mut Random(11), 0, 120) {
        insert(&tree, &key, seq);
    }
    for byte in 0..52u8 {
        insert(&tree, &[b'f', byte.wrapping_mul(59)], 1);
    }
    for seq in [5u64, 9, 1, 8, 20, 21, 22, 23, 2, 24, 25, 3] {
        insert(&tree, b"f", seq);
        insert(&tree, b"versions", seq);
    }
    let seen = tree.memory().seen.lock();
    assert!(seen.states > 1000 && seen.locked > 0, "{} states", seen.states);
}

#[test]
fn every_store_of_an_insertion_leaves_a_valid_image() {
    one_writer::<NEAR_SHIFT>();
    one_writer::<FAR_SHIFT>();
}

/// The same with three writers and interleaved stores, as a crash finds them.
#[test]
fn every_store_of_three_writers_at_once_leaves_a_valid_image() {
    let (tree, vfs) = (Arc::new(tree::<NEAR_SHIFT>()), RealVfs::new());
    let spawn = |thread: u64| {
        let tree = Arc::clone(&tree);
        let work = move || {
            for (key, seq) in shapes(&mut Random(thread + 1), thread, 70) {
                insert(&tree, &key, seq);
            }
        };
        vfs.spawn("writer", Box::new(work)).expect("spawned")
    };
    let running: Vec<_> = (0..3).map(spawn).collect();
    running.into_iter().for_each(|thread| thread.join());
    let seen = tree.memory().seen.lock();
    assert_eq!((seen.begun.len(), &seen.begun), (seen.done.len(), &seen.done));
}
