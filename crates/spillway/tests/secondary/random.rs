//! Random work of a primary, compared with a model at the number that the secondary shows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use testkit::engine::extend::MergeOperator;
use testkit::engine::vfs::{MemoryVfs, Vfs};
use testkit::engine::{
    Db, DbIterator, FamilyOptions, IngestOptions, OpenOptions, ReadOptions, TableWriter, WriteBatch, WriteOptions,
};

type Model = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

const KEYS: u64 = 40;
const NAMES: [&str; 2] = ["default", "second"];

struct Life {
    state: u64,
    vfs: Arc<MemoryVfs>,
    options: OpenOptions,
    primary: Option<Db>,
    second: Db,
    model: Model,
    /// The model by number.
    states: BTreeMap<u64, Model>,
    iterators: Vec<(DbIterator, usize, u64)>,
}

fn options(vfs: Arc<dyn Vfs>) -> OpenOptions {
    let mut options = super::options(vfs);
    for (_, family) in &mut options.families {
        family.write_buffer_size = 64 << 10;
        family.merge_operator = Some(appending());
        family.level0_file_num_compaction_trigger = 2;
    }
    options
}

fn appending() -> Arc<dyn MergeOperator> {
    testkit::engine::merge::by_name("StringAppendOperator").expect("built in")
}

impl Life {
    fn new(seed: u64) -> Life {
        let vfs = MemoryVfs::new(seed);
        let options = options(vfs.clone());
        let primary = Some(Db::open("/db", &options).unwrap());
        let second = super::secondary(&options);
        let states = BTreeMap::from([(0, Model::default())]);
        Life {
            state: seed * 7919 + 1,
            vfs,
            options,
            primary,
            second,
            model: Model::default(),
            states,
            iterators: Vec::new(),
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % below
    }

    fn primary(&self) -> &Db {
        self.primary.as_ref().unwrap()
    }

    fn key(&mut self) -> Vec<u8> {
        format!("{:02}", self.random(KEYS)).into_bytes()
    }

    fn write(&mut self) {
        let mut batch = WriteBatch::new();
        for _ in 0..=self.random(3) {
            let at = self.random(2) as usize;
            let family = self.primary().family(NAMES[at]).unwrap().id();
            let (key, n) = (self.key(), self.random(1000));
            let value = format!("{n}-").repeat(if n < 10 { 5000 } else { 1 + n as usize % 300 }).into_bytes();
            match self.random(10) {
                0 => {
                    batch.delete(family, &key);
                    self.model[at].remove(&key);
                }
                1 => {
                    let end = format!("{:02}", (self.random(KEYS) + 1).min(99)).into_bytes();
                    if key < end {
                        batch.delete_range(family, &key, &end);
                        self.model[at].retain(|other, _| *other < key || *other >= end);
                    }
                }
                2 | 3 => {
                    batch.merge(family, &key, b"m");
                    let now = self.model[at].get(&key).map_or_else(|| b"m".to_vec(), |now| [now, &b",m"[..]].concat());
                    self.model[at].insert(key, now);
                }
                _ => {
                    batch.put(family, &key, &value);
                    self.model[at].insert(key, value);
                }
            }
        }
        self.primary().write(&batch, &WriteOptions::default()).unwrap();
    }

    fn ingest(&mut self) {
        let path = PathBuf::from("/in.sst");
        let _ = self.vfs.remove_file(&path);
        let mut table = TableWriter::create(self.vfs.clone(), &path, &FamilyOptions::default()).unwrap();
        let (at, start) = (self.random(2) as usize, self.random(KEYS - 5));
        for key in start..start + 1 + self.random(4) {
            let key = format!("{key:02}").into_bytes();
            table.put(&key, b"ingested").unwrap();
            self.model[at].insert(key, b"ingested".to_vec());
        }
        table.finish().unwrap();
        let family = self.primary().family(NAMES[at]).unwrap();
        self.primary().ingest(&family, &[path], &IngestOptions::default()).unwrap();
    }

    fn reopen(&mut self) {
        self.primary = None;
        self.primary = Some(Db::open("/db", &self.options).unwrap());
    }

    fn step(&mut self) {
        match self.random(40) {
            0 => {
                let family = self.primary().family(NAMES[self.state as usize % 2]).unwrap();
                self.primary().flush(&[&family]).unwrap();
            }
            1 => {
                let family = self.primary().family(NAMES[self.state as usize % 2]).unwrap();
                self.primary().compact_range(&family, None, None, &Default::default()).unwrap();
            }
            2 | 3 => self.ingest(),
            4 => self.reopen(),
            5..=9 => self.catch_up(),
            10 => self.keep_iterator(),
            11 => self.check(),
            12 => self.second = super::secondary(&self.options),
            _ => self.write(),
        }
        self.states.insert(self.primary().latest_sequence_number().0, self.model.clone());
    }

    fn catch_up(&mut self) {
        self.second.try_catch_up_with_primary().unwrap();
        assert_eq!(self.second.latest_sequence_number(), self.primary().latest_sequence_number());
        self.check();
    }

    fn keep_iterator(&mut self) {
        let (at, number) = (self.random(2) as usize, self.second.latest_sequence_number().0);
        let family = self.second.family(NAMES[at]).unwrap();
        let iterator = self.second.iter(&family, &ReadOptions::default()).unwrap();
        self.iterators.push((iterator, at, number));
        if self.iterators.len() > 3 {
            let (mut oldest, at, number) = self.iterators.remove(0);
            assert_eq!(all(&mut oldest), self.states[&number][at], "an iterator of number {number}");
        }
    }

    fn check(&self) {
        let number = self.second.latest_sequence_number().0;
        let model = self.states.get(&number).unwrap_or_else(|| panic!("the primary never stood at {number}"));
        for (name, model) in NAMES.iter().zip(model) {
            let family = self.second.family(name).unwrap();
            let mut iterator = self.second.iter(&family, &ReadOptions::default()).unwrap();
            let found = all(&mut iterator);
            let differs =
                || found.iter().find(|(key, value)| model.get(*key) != Some(*value)).map(|(key, _)| key.clone());
            assert!(found == *model, "at {number} in {name}: {:?} keys, {:?}", (found.len(), model.len()), differs());
            for key in 0..KEYS {
                let key = format!("{key:02}").into_bytes();
                let value = self.second.get(&family, &key, &ReadOptions::default()).unwrap();
                assert!(value.as_deref() == model.get(&key).map(|value| &value[..]), "{key:?} at {number} in {name}");
            }
        }
    }
}

fn all(iterator: &mut DbIterator) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut found = BTreeMap::new();
    iterator.seek_to_first();
    while iterator.valid() {
        found.insert(iterator.key().to_vec(), iterator.value().to_vec());
        iterator.next();
    }
    found
}

#[test]
fn a_secondary_shows_a_state_that_the_primary_had() {
    let seeds = std::env::var("SPILLWAY_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(4);
    for seed in 1..=seeds {
        let mut life = Life::new(seed);
        (0..400).for_each(|_| life.step());
        life.catch_up();
    }
}
