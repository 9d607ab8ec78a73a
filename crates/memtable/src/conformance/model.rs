//! Random operations, compared with a sorted vector.

use std::ops::ControlFlow;

use base::key;

use super::*;

/// Entries in the memtable's expected order.
struct Model {
    order: InternalOrder,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Model {
    fn insert(&mut self, user_key: &[u8], seq: u64, kind: ValueKind, value: &[u8]) {
        let internal = key::encode(user_key, SeqNo(seq), kind);
        let at = self.first_at(&internal);
        self.entries.insert(at, (internal, value.to_vec()));
    }

    fn first_at(&self, target: &[u8]) -> usize {
        self.entries.partition_point(|(key, _)| self.order.compare(key, target).is_lt())
    }

    fn last_at(&self, target: &[u8]) -> Option<usize> {
        self.entries.partition_point(|(key, _)| self.order.compare(key, target).is_le()).checked_sub(1)
    }

    fn get(&self, user_key: &[u8], seq: u64) -> Vec<(u64, ValueKind, Vec<u8>)> {
        let from = self.first_at(LookupKey::new(user_key, SeqNo(seq)).internal());
        let parsed =
            self.entries[from..].iter().map(|(key, value)| (key::ParsedKey::parse(key).expect("whole"), value));
        let same = parsed.take_while(|(key, _)| self.order.user.equal(key.user_key, user_key));
        same.map(|(key, value)| (key.seq.0, key.kind, value.clone())).collect()
    }
}

struct Case<'a> {
    memtable: Arc<dyn Memtable>,
    model: Model,
    random: Random,
    prefix: &'a [u8],
    seqs: u64,
    /// The memtable's memory is a file's.
    is_image: bool,
}

impl Case<'_> {
    /// Few keys, of few lengths, some of them prefixes of others.
    fn key(&mut self) -> Vec<u8> {
        let mut key = self.prefix.to_vec();
        let len = self.random.below(12) as usize;
        key.extend((0..len).map(|_| b"aAb\xff\0"[self.random.below(5) as usize]));
        key
    }

    fn entry(&mut self) -> (Vec<u8>, u64, ValueKind, Vec<u8>) {
        let kinds = [ValueKind::Value, ValueKind::Deletion, ValueKind::Merge, ValueKind::SingleDeletion];
        let kind = kinds[self.random.below(4) as usize];
        let value = vec![self.random.below(256) as u8; self.random.below(40) as usize];
        // Numbers out of order, some of them duplicates.
        (self.key(), self.random.below(self.seqs), kind, value)
    }

    fn insert_one(&mut self) {
        let (key, seq, kind, value) = self.entry();
        assert!(put(&*self.memtable, &key, seq, kind, &value));
        self.model.insert(&key, seq, kind, &value);
    }

    fn insert_batch(&mut self) {
        let len = self.random.below(50);
        let mut batch: Vec<_> = (0..len).map(|_| self.entry()).collect();
        if self.random.below(2) == 0 {
            batch.sort();
        }
        let payload = batch.iter().map(|(key, _, _, value)| key.len() + value.len()).sum();
        assert!(self.memtable.try_reserve(self.memtable.worst_case_bytes(batch.len(), payload)));
        let entry =
            |(key, seq, kind, value): &'_ (Vec<u8>, u64, ValueKind, Vec<u8>)| (key.clone(), *seq, *kind, value.clone());
        let owned: Vec<_> = batch.iter().map(entry).collect();
        self.memtable.insert_all(&mut owned.iter().map(|(key, seq, kind, value)| Entry {
            user_key: key,
            seq: SeqNo(*seq),
            kind: *kind,
            value,
        }));
        for (key, seq, kind, value) in &batch {
            self.model.insert(key, *seq, *kind, value);
        }
    }

    fn check_gets(&mut self) {
        let keys: Vec<Vec<u8>> = (0..20).map(|_| self.key()).collect();
        let lookups: Vec<LookupKey> =
            keys.iter().map(|key| LookupKey::new(key, SeqNo(self.random.below(self.seqs)))).collect();
        let mut many = vec![Vec::new(); lookups.len()];
        self.memtable.multi_get(&lookups.iter().collect::<Vec<_>>(), &mut |i, seq, kind, value| {
            many[i].push((seq.0, kind, value.to_vec()));
            true
        });
        for (lookup, many) in lookups.iter().zip(&many) {
            let expected = self.model.get(lookup.user_key(), lookup.seq().0);
            assert_eq!(get(&*self.memtable, lookup.user_key(), lookup.seq().0), expected);
            assert_eq!(many, &expected);
        }
        let mut first = ControlFlow::Continue(0);
        if let Some((key, _)) = self.model.entries.first() {
            self.memtable.get(&LookupKey::new(key::user_key(key), SeqNo::MAX), &mut |_, _, _| {
                first = match first {
                    ControlFlow::Continue(n) => ControlFlow::Break(n + 1),
                    ControlFlow::Break(n) => ControlFlow::Break(n + 1),
                };
                false
            });
            assert_eq!(first, ControlFlow::Break(1), "a visitor that has enough is not asked again");
        }
    }

    /// A walk with turns, from existing and missing keys.
    fn check_cursor(&mut self, cursor: &mut dyn Cursor) {
        for _ in 0..10 {
            let target = key::encode(&self.key(), SeqNo(self.random.below(self.seqs)), ValueKind::Merge);
            let mut at = if self.random.below(2) == 0 {
                cursor.seek(&target);
                Some(self.model.first_at(&target))
            } else {
                cursor.seek_for_prev(&target);
                self.model.last_at(&target)
            };
            for _ in 0..self.random.below(60) {
                let expected = at.and_then(|at| self.model.entries.get(at)).cloned();
                assert_eq!(standing(cursor), expected);
                if expected.is_none() {
                    assert!(cursor.key().is_empty() && cursor.value().is_empty() && cursor.status().is_ok());
                    break;
                }
                at = if self.random.below(3) == 0 {
                    cursor.next();
                    at.map(|at| at + 1)
                } else {
                    cursor.prev();
                    at.and_then(|at| at.checked_sub(1))
                };
            }
        }
    }

    fn check_whole(&self) {
        self.check_walks();
        self.check_counts();
    }

    fn check_walks(&self) {
        let mut cursor = Arc::clone(&self.memtable).cursor();
        assert!(!cursor.valid());
        assert_eq!(forward(&mut *cursor), self.model.entries);
        let mut reversed = backward(&mut *cursor);
        reversed.reverse();
        assert_eq!(reversed, self.model.entries);
    }

    /// The same reads of the memtable's image, unchecked, cut at numbers from the largest down.
    fn check_unchecked(&mut self) {
        let Some(bytes) = self.memtable.image().map(|image| image.bytes.to_vec()) else { return };
        let (sealed, whole) = (Arc::clone(&self.memtable), self.model.entries.clone());
        for cut in [u64::MAX >> 8, 70, 20, 0] {
            let seq = |key: &[u8]| key::ParsedKey::parse(key).expect("whole").seq.0;
            self.model.entries.retain(|(key, _)| seq(key) <= cut);
            self.memtable = LazyMemtable::open(bytes.clone(), &self.model.order.user, SeqNo(cut)).expect("an image");
            self.check_walks();
            let mut cursor = Arc::clone(&self.memtable).cursor();
            for _ in 0..4 {
                self.check_gets();
                self.check_cursor(&mut *cursor);
            }
        }
        (self.memtable, self.model.entries) = (sealed, whole);
    }

    /// The same reads of the memtable's image.
    fn check_reopened(mut self) {
        let Some(reopened) = reopened(&*self.memtable, &self.model.order.user) else { return };
        for _ in 0..20 {
            let (start, end) = (self.key(), self.key());
            let live = self.memtable.approximate_entries(&start, &end);
            assert_eq!(reopened.approximate_entries(&start, &end), live);
        }
        self.memtable = reopened;
        self.is_image = true;
        self.check_whole();
        let mut cursor = Arc::clone(&self.memtable).cursor();
        for _ in 0..10 {
            self.check_gets();
            self.check_cursor(&mut *cursor);
        }
    }

    fn check_counts(&self) {
        let parsed = |(key, value): &(Vec<u8>, Vec<u8>)| {
            let kind = key::ParsedKey::parse(key).expect("whole").kind;
            (
                matches!(kind, ValueKind::Deletion | ValueKind::SingleDeletion),
                key.len() - key::TRAILER_BYTES + value.len(),
            )
        };
        let (mut deletions, mut payload) = (0, 0);
        for (deletes, bytes) in self.model.entries.iter().map(parsed) {
            deletions += u64::from(deletes);
            payload += bytes as u64;
        }
        assert_eq!(self.memtable.entries(), self.model.entries.len() as u64);
        assert_eq!(self.memtable.counts().deletions, deletions);
        assert_eq!(self.memtable.counts().payload_bytes, payload);
        assert!(self.is_image || self.memtable.memory_bytes() as u64 >= payload);
    }
}

fn run(option: &str, order: UserOrder, prefix: &[u8], bloom_ratio: f64, seed: u64) {
    let mut config = config(order, 8 << 20);
    config.bloom_ratio = bloom_ratio;
    let model = Model { order: config.order.clone(), entries: Vec::new() };
    let mut case =
        Case { memtable: make(option, &config), model, random: Random(seed), prefix, seqs: 100, is_image: false };
    case.check_whole();
    let mut cursor = Arc::clone(&case.memtable).cursor();
    for round in 0..60 {
        for _ in 0..case.random.below(20) {
            case.insert_one();
        }
        if round % 3 == 0 {
            case.insert_batch();
        }
        case.check_gets();
        case.check_cursor(&mut *cursor);
    }
    case.check_whole();
    case.memtable.seal();
    case.check_whole();
    case.check_gets();
    case.check_cursor(&mut *cursor);
    case.check_unchecked();
    case.check_reopened();
}

#[test]
fn random_operations_agree_with_the_model() {
    for option in options() {
        for (seed, prefix) in [&b""[..], b"a prefix of many bytes that all keys share"].into_iter().enumerate() {
            for bloom in [0.0, 0.1] {
                let seed = seed as u64;
                run(&option, UserOrder::Bytewise, prefix, bloom, seed);
                run(&option, UserOrder::ReverseBytewise, prefix, bloom, seed + 10);
                run(&option, UserOrder::Custom(Arc::new(ShortestFirst)), prefix, bloom, seed + 20);
                run(&option, UserOrder::Custom(Arc::new(CaseBlind)), prefix, bloom, seed + 30);
            }
        }
    }
}

/// Reads every number of a small history, in any order of writes.
#[test]
fn numbers_out_of_order_are_placed_rightly() {
    for option in options() {
        let memtable = make(&option, &config(UserOrder::Bytewise, 1 << 20));
        for seq in [5u64, 1, 9, 3, 7, 8, 2] {
            assert!(put(&*memtable, b"k", seq, ValueKind::Value, &[seq as u8]));
            assert!(put(&*memtable, b"j", seq, ValueKind::Deletion, b""));
            assert!(put(&*memtable, b"ka", seq, ValueKind::Value, b"other"));
        }
        for seq in 0..11 {
            let expected: Vec<u64> = [9, 8, 7, 5, 3, 2, 1].into_iter().filter(|s| *s <= seq).collect();
            let found = get(&*memtable, b"k", seq);
            assert_eq!(found.iter().map(|(seq, _, _)| *seq).collect::<Vec<_>>(), expected, "{option} at {seq}");
            assert!(found.iter().all(|(seq, _, value)| value == &[*seq as u8]));
        }
    }
}
