use std::collections::BTreeMap;
use std::sync::Arc;

use base::extend::MergeOperator;
use vfs::MemoryVfs;

use super::*;
use crate::internal::{Database, FamilyOptions, OpenOptions, ReadOptions, WriteOptions};

/// Joins operands by commas.
struct Joins;

impl MergeOperator for Joins {
    fn name(&self) -> &str {
        "joins"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(existing.into_iter().chain(operands.iter().copied()).collect::<Vec<_>>().join(&b','))
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn change(map: &mut Map, kind: ValueKind, key: &[u8], value: &[u8]) {
    match kind {
        ValueKind::Value => drop(map.insert(key.to_vec(), value.to_vec())),
        ValueKind::Merge => {
            let merged = map.get(key).map(Vec::as_slice).into_iter().chain([value]).collect::<Vec<_>>().join(&b',');
            map.insert(key.to_vec(), merged);
        }
        ValueKind::RangeDeletion => map.retain(|other, _| !(key <= &other[..] && &other[..] < value)),
        _ => drop(map.remove(key)),
    }
}

fn key(n: u64) -> Vec<u8> {
    format!("a long prefix {n:03}").into_bytes()
}

struct Rig {
    db: Database,
    batch: SharedBatch,
    /// The database with the batch; those of the savepoints before it.
    model: Map,
    savepoints: Vec<Map>,
    random: Random,
}

impl Rig {
    fn new(seed: u64) -> Rig {
        let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
        let family = FamilyOptions { merge_operator: Some(Arc::new(Joins)), ..FamilyOptions::default() };
        let db = Database::open("/db", &options.family("default", family)).expect("opened");
        let mut model = Map::new();
        for n in (0..100).step_by(3) {
            db.put(&db.default_family(), &key(n), b"below", &WriteOptions::default()).expect("put");
            model.insert(key(n), b"below".to_vec());
        }
        Rig { db, batch: SharedBatch::default(), model, savepoints: Vec::new(), random: Random(seed) }
    }

    fn change(&mut self) {
        let kinds = [
            ValueKind::Value,
            ValueKind::Value,
            ValueKind::Merge,
            ValueKind::Merge,
            ValueKind::Deletion,
            ValueKind::SingleDeletion,
            ValueKind::RangeDeletion,
        ];
        let kind = kinds[self.random.below(7) as usize];
        let (from, value) = (self.random.below(100), self.random.below(1000).to_string().into_bytes());
        let value = if kind == ValueKind::RangeDeletion { key(from + self.random.below(6)) } else { value };
        let value = if matches!(kind, ValueKind::Deletion | ValueKind::SingleDeletion) { Vec::new() } else { value };
        self.batch.write().add(FamilyId::DEFAULT, || UserOrder::Bytewise, kind, &key(from), &value);
        change(&mut self.model, kind, &key(from), &value);
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0 | 1 => {
                self.batch.write().set_savepoint();
                self.savepoints.push(self.model.clone());
            }
            2 => {
                let before = self.savepoints.pop();
                assert_eq!(self.batch.write().rollback_to_savepoint(), before.is_some());
                self.model = before.unwrap_or_else(|| self.model.clone());
            }
            3 => assert_eq!(self.batch.write().pop_savepoint(), self.savepoints.pop().is_some()),
            _ => self.change(),
        }
    }

    fn over(&self, options: &ReadOptions) -> OverBase<crate::read::iterator::DbIterator> {
        let family = self.db.default_family();
        let below = self.db.iter(&family, options).expect("made");
        OverBase::new(below, &self.batch, family.id(), &UserOrder::Bytewise, operator_of(&family.options()), options)
    }

    fn check_gets(&self) {
        let family = self.db.default_family();
        for n in 0..106 {
            let below = || self.db.get(&family, &key(n), &ReadOptions::default());
            let found =
                self.batch.read().get_over(family.id(), &key(n), &operator_of(&family.options()), below).expect("read");
            assert_eq!(found.as_deref(), self.model.get(&key(n)).map(Vec::as_slice), "{n}");
        }
    }

    /// Walks with turns, and changes of the batch on the way. A walk that came to the end of the batch's entries sees later ones
    /// after a seek.
    fn check_walk(&mut self) {
        let (lower, upper) = (self.random.below(50), 50 + self.random.below(60));
        let bounded = ReadOptions {
            iterate_lower_bound: Some(key(lower)),
            iterate_upper_bound: Some(key(upper)),
            ..ReadOptions::default()
        };
        let mut walk = self.over(&bounded);
        let (mut at, mut must_seek): (Option<Vec<u8>>, bool) = (None, false);
        for _ in 0..60 {
            if self.random.below(8) == 0 {
                self.change();
                must_seek |= walk.is_past_batch();
            }
            let choices = if std::mem::take(&mut must_seek) { 4 } else { 14 };
            let within = self.model.range(key(lower)..key(upper)).map(|(key, _)| key.clone());
            let keys: Vec<Vec<u8>> = within.collect();
            let target = key(self.random.below(110));
            let (to, expected) = match (self.random.below(choices), &at) {
                (0, _) => (Move::First, keys.first()),
                (1, _) => (Move::Last, keys.last()),
                (2, _) => (Move::To(&target), keys.iter().find(|key| **key >= target)),
                (3, _) => (Move::ToOrBefore(&target), keys.iter().rev().find(|key| **key <= target)),
                (_, None) => (Move::First, keys.first()),
                (4..9, Some(at)) => (Move::Next, keys.iter().find(|key| *key > at)),
                (_, Some(at)) => (Move::Prev, keys.iter().rev().find(|key| *key < at)),
            };
            walk.go(to);
            walk.status().expect("no error");
            assert_eq!(walk.valid().then(|| walk.key()), expected.map(Vec::as_slice));
            if let Some(key) = expected {
                assert_eq!(Some(walk.value()), self.model.get(key).map(Vec::as_slice), "{key:?}");
            }
            at = expected.cloned();
        }
    }
}

/// Gets and walks against a map, over savepoints and range deletions, then the written batch.
#[test]
fn what_is_read_is_what_will_be_written() {
    for seed in 0..30 {
        let mut rig = Rig::new(seed);
        for _ in 0..12 {
            (0..8).for_each(|_| rig.step());
            rig.check_gets();
            rig.check_walk();
        }
        let written = rig.batch.read().batch().clone();
        rig.db.write(&written, &WriteOptions::default()).expect("written");
        rig.batch.write().clear();
        rig.check_gets();
        rig.check_walk();
    }
}
