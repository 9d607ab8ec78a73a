//! Cases beyond the conformance suite: every form of growth and parting, and the accounting to the byte.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{FamilyId, InternalOrder, LookupKey, SeqNo, UserOrder, ValueKind, key};
use vfs::RealVfs;

use super::layout::{FAR_SHIFT, Kind, Link, NEAR_SHIFT};
use super::memory::Memory;
use super::node::Node;
use super::space::{credit, price_max};
use super::*;
use crate::order::{Bytewise, ReverseBytewise};

type Near<O> = Trie<O, NEAR_SHIFT>;

const CAPACITY: usize = if cfg!(miri) { 1 << 19 } else { 8 << 20 };

fn make<O: KeyOrder, const SHIFT: u32>(capacity: usize) -> Arc<Trie<O, SHIFT>> {
    let config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, capacity);
    Arc::new(Trie::new(&config, Arena::new(capacity).expect("mapped")).expect("room for a head"))
}

fn put(trie: &dyn Memtable, key: &[u8], seq: u64, value: &[u8]) -> bool {
    let fits = trie.try_reserve(trie.worst_case_bytes(1, key.len() + value.len()));
    if fits {
        trie.insert(Entry { user_key: key, seq: SeqNo(seq), kind: ValueKind::Value, value });
    }
    fits
}

fn newest(trie: &dyn Memtable, key: &[u8], seq: u64) -> Option<(u64, Vec<u8>)> {
    let mut found = None;
    trie.get(&LookupKey::new(key, SeqNo(seq)), &mut |seq, _, value| {
        found = Some((seq.0, value.to_vec()));
        false
    });
    found
}

/// Counts of a walk over all nodes.
#[derive(Default)]
struct Census {
    credit: usize,
    kinds: BTreeSet<Kind>,
    nodes: usize,
    keys: usize,
    own: usize,
}

/// Checks every node and counts. Not recursive: tries can be as deep as keys are long.
fn census<O: KeyOrder, const SHIFT: u32>(trie: &Trie<O, SHIFT>) -> Census {
    let tree = &trie.tree;
    let mut census = Census::default();
    let mut stack = vec![(tree.root(), 0usize)];
    while let Some((link, from)) = stack.pop() {
        if link.is_leaf() {
            census.keys += usize::from(!link.is_null());
            continue;
        }
        let node = tree.node(link);
        let header = node.header();
        let kind = header.kind().expect("a kind");
        let depth = node.depth();
        assert!(header.is_free() && depth >= from);
        assert_eq!(link, Link::node(node.at, SHIFT, kind, depth != from), "the link says what the node is");
        let (sample, ends_here) = node.sample().split_sample();
        assert!(!ends_here || tree.leaf(sample).user_key().len() == depth);
        census.own += usize::from(ends_here);
        census.nodes += 1;
        census.kinds.insert(kind);
        census.credit += credit(kind, header.children());
        let children = children(node, kind);
        assert!(children.len() + usize::from(ends_here) >= 2);
        let prefix = &tree.leaf(sample).user_key()[..depth];
        for (byte, child) in children {
            let witness = witness(tree, child);
            assert!(witness.starts_with(prefix) && witness[depth] == byte);
            assert_eq!(node.find(header, byte).map(|at| node.link(at)), Some(child));
            stack.push((child, depth + 1));
        }
    }
    census.keys += census.own;
    census
}

fn children<M: Memory>(node: Node<'_, M>, kind: Kind) -> BTreeMap<u8, Link> {
    let child = |i: usize| node.link(node.child_at(kind, i));
    if kind == Kind::N256 {
        return (0..=255u8).map(|byte| (byte, child(byte.into()))).filter(|(_, link)| !link.is_null()).collect();
    }
    let count = node.header().children();
    let children: BTreeMap<u8, Link> = (0..count).map(|i| (node.key_byte(i), child(i))).collect();
    assert_eq!(children.len(), count, "each byte once");
    children
}

fn witness<M: Memory>(tree: &Tree<M>, link: Link) -> &[u8] {
    let leaf = if link.is_leaf() { link } else { tree.node(link).sample().split_sample().0 };
    tree.leaf(leaf).user_key()
}

/// T5, with no insertion under way and every reservation used.
fn check_accounts<O: KeyOrder, const SHIFT: u32>(trie: &Trie<O, SHIFT>) -> Census {
    let census = census(trie);
    let (arena, space) = (trie.arena(), &trie.tree.space);
    assert_eq!(arena.reserved(), arena.allocated() + census.credit + space.pooled_bytes());
    assert!(space.uncut_bytes() <= arena.allocated());
    census
}

/// All entries both ways, against the model's.
fn check_walks<O: KeyOrder, const SHIFT: u32>(trie: &Arc<Trie<O, SHIFT>>, keys: &BTreeSet<Vec<u8>>) {
    let mut expected: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    if O::DIRECTION == Direction::Descending {
        expected.reverse();
    }
    let mut cursor = (Arc::clone(trie) as Arc<dyn Memtable>).cursor();
    let mut found = Vec::new();
    let mut more = cursor.seek_to_first();
    while more {
        found.push(key::user_key(cursor.key()).to_vec());
        more = cursor.next();
    }
    assert_eq!(found, expected);
    found.clear();
    let mut more = cursor.seek_to_last();
    while more {
        found.push(key::user_key(cursor.key()).to_vec());
        more = cursor.prev();
    }
    found.reverse();
    assert_eq!(found, expected);
}

#[test]
fn nodes_of_every_size_grow_with_and_without_a_key_of_their_own() {
    for own_at in [None, Some(0), Some(4), Some(10), Some(23), Some(48), Some(256)] {
        for prefix in [&b""[..], b"p", b"a longer prefix that all share"] {
            if cfg!(miri) && (prefix.len() != 1 || ![None, Some(10)].contains(&own_at)) {
                continue;
            }
            let trie = make::<Bytewise, NEAR_SHIFT>(CAPACITY);
            let mut keys = BTreeSet::new();
            let insert = |keys: &mut BTreeSet<Vec<u8>>, key: Vec<u8>| {
                assert!(put(&*trie, &key, 1, &key));
                keys.insert(key);
                check_accounts(&trie);
                for key in keys.iter() {
                    assert_eq!(newest(&*trie, key, 9), Some((1, key.clone())));
                }
            };
            let step = if cfg!(miri) { 5 } else { 1 };
            for i in (0..256usize).step_by(step) {
                if own_at.is_some_and(|at| at / step == i / step) {
                    insert(&mut keys, prefix.to_vec());
                }
                let byte = (i as u8).wrapping_mul(167);
                insert(&mut keys, [prefix, &[byte]].concat());
                let absent = [prefix, &[byte, 0]].concat();
                assert_eq!(newest(&*trie, &absent, 9), None);
            }
            if own_at == Some(256) {
                insert(&mut keys, prefix.to_vec());
            }
            assert_eq!(check_accounts(&trie).kinds.into_iter().collect::<Vec<_>>(), [Kind::N256]);
            check_walks(&trie, &keys);
        }
    }
}

#[test]
fn keys_part_at_every_place_in_every_order() {
    let long: Vec<u8> = (0..24).collect();
    let mut keys: Vec<Vec<u8>> = (0..=24).map(|len| long[..len].to_vec()).collect();
    for at in 0..24 {
        let mut key = long.clone();
        key[at] = 200;
        keys.push(key);
    }
    for rotation in 0..keys.len() {
        for stride in [1, 5, 17] {
            let trie = make::<ReverseBytewise, NEAR_SHIFT>(CAPACITY);
            let mut inserted = BTreeSet::new();
            for i in 0..keys.len() {
                let key = &keys[(rotation + i * stride) % keys.len()];
                assert!(put(&*trie, key, 1, key));
                inserted.insert(key.clone());
            }
            assert_eq!(inserted.len(), 49, "the strides visit all");
            assert_eq!(check_accounts(&trie).keys, 49);
            check_walks(&trie, &inserted);
            for key in &keys {
                assert_eq!(newest(&*trie, key, 1), Some((1, key.clone())));
            }
            if cfg!(miri) {
                return;
            }
        }
    }
}

#[test]
fn a_long_key_costs_one_node_however_deep_it_parts_and_prefixes_nest_without_end() {
    let len = if cfg!(miri) { 300 } else { 70_000 };
    let key = vec![b'x'; len];
    let trie = make::<Bytewise, NEAR_SHIFT>(if cfg!(miri) { 4 << 20 } else { 64 << 20 });
    let mut keys = BTreeSet::new();
    for at in (1..len).step_by(len / 100) {
        let mut other = key.clone();
        other[at] = b'y';
        assert!(put(&*trie, &other, 1, b""));
        keys.insert(other);
    }
    assert_eq!(check_accounts(&trie).nodes, keys.len() - 1);
    check_walks(&trie, &keys);
    let nested = make::<Bytewise, NEAR_SHIFT>(if cfg!(miri) { 4 << 20 } else { 64 << 20 });
    let levels = if cfg!(miri) { 100 } else { 2000 };
    let keys: BTreeSet<Vec<u8>> = (0..levels).map(|len| key[..len].to_vec()).collect();
    keys.iter().for_each(|key| assert!(put(&*nested, key, 1, b"")));
    assert_eq!(check_accounts(&nested).own, levels - 1);
    check_walks(&nested, &keys);
}

#[test]
fn lengths_beyond_the_short_form_are_kept() {
    let trie = make::<Bytewise, NEAR_SHIFT>(CAPACITY);
    for (key_len, value_len) in [(1023, 3), (1024, 3), (5, (1 << 19) - 1), (6, 1 << 19), (2000, 1 << 19)] {
        if cfg!(miri) && value_len > 3 {
            continue;
        }
        let (key, value) = (vec![b'k'; key_len], vec![b'v'; value_len]);
        for seq in 1..=6 {
            assert!(put(&*trie, &key, seq, if seq == 6 { &value } else { b"old" }));
        }
        assert_eq!(newest(&*trie, &key, 9), Some((6, value)));
        assert_eq!(newest(&*trie, &key, 5), Some((5, b"old".to_vec())));
    }
    check_accounts(&trie);
}

#[test]
fn old_versions_are_found_in_few_steps_wherever_late_ones_went() {
    let trie = make::<Bytewise, NEAR_SHIFT>(CAPACITY);
    let versions = if cfg!(miri) { 60 } else { 20_000 };
    let mut expected = BTreeSet::new();
    for i in 1..=versions {
        // One in eight comes late.
        let seq = if i % 8 == 0 { 10 * i - 75 } else { 10 * i };
        assert!(put(&*trie, b"hot", seq, &seq.to_le_bytes()));
        expected.insert(seq);
    }
    let memory = trie.tree.memory();
    let head = trie.tree.find(b"hot");
    for asked in (1..=10 * versions).step_by(7) {
        let older = expected.range(..=asked).next_back().map(|seq| (*seq, seq.to_le_bytes().to_vec()));
        assert_eq!(newest(&*trie, b"hot", asked), older);
        let at = first_at_or_below(memory, head, key::pack_trailer(SeqNo(asked), 0xFF));
        assert!(steps(memory, head, at) <= 64, "{} steps to {asked}", steps(memory, head, at));
    }
    let mut cursor = (Arc::clone(&trie) as Arc<dyn Memtable>).cursor();
    assert!(cursor.seek_to_last());
    for seq in &expected {
        assert_eq!(cursor.value(), seq.to_le_bytes());
        cursor.prev();
    }
    assert!(!cursor.valid());
}

/// Links that a search follows from `head` to `end`.
fn steps<M: Memory>(memory: &M, head: Link, end: Link) -> usize {
    let trailer = |link: Link| leaf::Leaf::of(memory, link).trailer();
    let (mut at, mut steps) = (head, 0);
    while at != end && !at.is_null() {
        let leaf = leaf::Leaf::of(memory, at);
        let jump = leaf.rank().jump;
        let far = jump.span > 1 && (end.is_null() || trailer(Link(jump.to)) > trailer(end));
        at = if far { Link(jump.to) } else { leaf.next() };
        steps += 1;
    }
    steps
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    /// Keys of few bytes and lengths, so that nodes of all kinds come about, some at the ends of others.
    fn key(&mut self) -> Vec<u8> {
        let fan_out = [3, 9, 20, 40, 256][self.below(5) as usize];
        (0..self.below(5)).map(|_| self.below(fan_out) as u8).collect()
    }
}

fn fill<O: KeyOrder, const SHIFT: u32>(seed: u64, count: u64) {
    let trie = make::<O, SHIFT>(CAPACITY);
    let mut random = Random(seed);
    let mut keys = BTreeSet::new();
    let mut seq = 0;
    while seq < count {
        let batch: Vec<(Vec<u8>, Vec<u8>)> =
            (0..1 + random.below(40)).map(|_| (random.key(), vec![7; random.below(30) as usize])).collect();
        let payload = batch.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert!(trie.try_reserve(trie.worst_case_bytes(batch.len(), payload)));
        trie.insert_all(&mut batch.iter().zip(seq..).map(|((key, value), seq)| Entry {
            user_key: key,
            seq: SeqNo(seq),
            kind: if seq % 50 == 0 { ValueKind::RangeDeletion } else { ValueKind::Value },
            value,
        }));
        keys.extend(batch.iter().zip(seq..).filter(|(_, seq)| seq % 50 != 0).map(|((key, _), _)| key.clone()));
        seq += batch.len() as u64;
        if seq % 64 < 8 {
            assert_eq!(check_accounts(&trie).keys, keys.len());
        }
    }
    let census = check_accounts(&trie);
    assert_eq!(census.keys, keys.len());
    assert!(cfg!(miri) || census.kinds.len() >= 4, "{:?}", census.kinds);
}

#[test]
fn accounts_are_exact_after_random_batches() {
    let count = if cfg!(miri) { 100 } else { 20_000 };
    for seed in 0..if cfg!(miri) { 1 } else { 4 } {
        fill::<Bytewise, NEAR_SHIFT>(seed, count);
        fill::<ReverseBytewise, NEAR_SHIFT>(seed + 10, count);
        fill::<Bytewise, FAR_SHIFT>(seed + 20, count);
    }
}

#[test]
fn a_full_trie_refuses_reservations_and_serves_those_it_made() {
    for capacity in [1 << 10, 5 << 10, 64 << 10, 300_000] {
        if cfg!(miri) && capacity > 5 << 10 {
            return;
        }
        for seed in 0..if cfg!(miri) { 1 } else { 6 } {
            let trie = make::<Bytewise, NEAR_SHIFT>(capacity);
            let mut random = Random(seed);
            let mut count = 0;
            // Batches are reserved for several at once, and inserted later.
            loop {
                let batch: Vec<Vec<u8>> = (0..1 + random.below(6)).map(|_| random.key()).collect();
                let payload = batch.iter().map(Vec::len).sum();
                if !trie.try_reserve(trie.worst_case_bytes(batch.len(), payload)) {
                    break;
                }
                count += batch.len();
                for key in &batch {
                    trie.insert(Entry { user_key: key, seq: SeqNo(1), kind: ValueKind::Value, value: b"" });
                }
            }
            check_accounts(&trie);
            assert_eq!(trie.entries() as usize, count);
            let left = capacity - trie.arena().reserved() + trie.tree.space.pooled_bytes();
            assert!(left < price_max(NEAR_SHIFT, 6) * 6, "{left} bytes of {capacity} are not used");
        }
    }
}

#[test]
fn what_a_node_was_paid_for_suffices_whatever_is_left() {
    // The chunk is nearly always too small, so that nodes come from the arena and are paid for by purses.
    for filler in [0, 40, 90] {
        let trie = make::<Bytewise, NEAR_SHIFT>(CAPACITY);
        let parents = if cfg!(miri) { 1 } else { 20 };
        for parent in 0..parents {
            for child in 0..=255u8 {
                assert!(put(&*trie, &[parent, child.wrapping_mul(91)], 1, &vec![1; filler]));
            }
            check_accounts(&trie);
        }
        assert_eq!(census(&trie).keys, usize::from(parents) * 256);
        if cfg!(miri) {
            return;
        }
    }
}

/// Runs `work(0)` to `work(threads - 1)` at once and waits for all.
fn together(threads: u64, work: impl Fn(u64) + Send + Sync + 'static) {
    let work = Arc::new(work);
    let vfs = RealVfs::new();
    let spawn = |t| {
        let work = Arc::clone(&work);
        vfs.spawn("trie", Box::new(move || work(t))).expect("spawned")
    };
    (0..threads).map(spawn).collect::<Vec<_>>().into_iter().for_each(|thread| thread.join());
}

const WRITERS: u64 = 4;

/// The `i`-th key of a writer: some its own, some written by all; crowded so that nodes grow and split concurrently.
fn crowded(writer: u64, i: u64) -> Vec<u8> {
    let mut random = Random(if i.is_multiple_of(3) { i } else { i << 8 | writer });
    random.below(2);
    random.key()
}

#[test]
fn writers_and_readers_at_once_lose_nothing_and_never_disagree_with_the_order() {
    let each = if cfg!(miri) { 40 } else { 8000 };
    let trie = make::<Bytewise, NEAR_SHIFT>(if cfg!(miri) { 1 << 19 } else { 32 << 20 });
    let shared = Arc::clone(&trie);
    together(WRITERS + 2, move |t| {
        if t < WRITERS {
            for i in 0..each {
                assert!(put(&*shared, &crowded(t, i), i * WRITERS + t + 1, &t.to_le_bytes()));
            }
            return;
        }
        for _ in 0..if cfg!(miri) { 2 } else { 40 } {
            read_all(&shared, t == WRITERS);
        }
    });
    let mut keys = BTreeSet::new();
    for (writer, i) in (0..WRITERS).flat_map(|writer| (0..each).map(move |i| (writer, i))) {
        let (key, seq) = (crowded(writer, i), i * WRITERS + writer + 1);
        assert_eq!(newest(&*trie, &key, seq), Some((seq, writer.to_le_bytes().to_vec())));
        keys.insert(key);
    }
    assert_eq!(check_accounts(&trie).keys, keys.len());
}

fn read_all(trie: &Arc<Near<Bytewise>>, forward: bool) {
    let order = InternalOrder::new(UserOrder::Bytewise);
    let mut cursor = (Arc::clone(trie) as Arc<dyn Memtable>).cursor();
    let mut more = if forward { cursor.seek_to_first() } else { cursor.seek_to_last() };
    let mut last: Option<Vec<u8>> = None;
    while more {
        let key = cursor.key().to_vec();
        if let Some(last) = last {
            assert_eq!(order.compare(&last, &key).is_lt(), forward, "{last:?} {key:?}");
        }
        let seq = key::ParsedKey::parse(&key).expect("whole").seq.0;
        assert_eq!(cursor.value(), ((seq - 1) % WRITERS).to_le_bytes());
        assert!(newest(&**trie, key::user_key(&key), seq).is_some_and(|(found, _)| found == seq));
        last = Some(key);
        more = if forward { cursor.next() } else { cursor.prev() };
    }
}

/// Pool steps follow the arena, not the write buffer: else the pools of eight threads fill a small arena.
#[test]
fn a_trie_that_mem_cap_bounds_holds_what_one_of_that_capacity_holds() {
    let filled = |option: &str, capacity| {
        let config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, capacity);
        let trie = crate::factory_from_option_string(option).expect("known").create(&config).expect("made");
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let trie = &trie;
                scope.spawn(move || assert!(put(&**trie, &thread.to_be_bytes(), 1, b"")));
            }
        });
        (100u64..).take_while(|i| put(&*trie, &i.to_be_bytes(), 1, b"")).count()
    };
    let (bounded, small) = (filled(r#"trie:{"mem_cap":"256K"}"#, 64 << 20), filled("trie", 256 << 10));
    assert!(bounded * 10 >= small * 9, "{bounded} entries, not {small}");
}

/// A memtable made for a batch has room for it; else creation fails.
#[test]
fn a_trie_that_is_made_for_a_batch_has_room_for_it() {
    let factory = crate::factory_from_option_string(r#"trie:{"mem_cap":"1M"}"#).expect("known");
    let mut made = 0;
    for missing in 0..300 {
        let mut config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, 64 << 20);
        config.room_bytes = (1 << 20) - missing;
        if let Ok(trie) = factory.create(&config) {
            assert!(trie.try_reserve(config.room_bytes), "{missing} bytes less than mem_cap");
            made += 1;
        }
    }
    assert!(made > 100, "{made}");
}
