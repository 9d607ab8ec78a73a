//! Threads that write and ingest concurrently, checked by snapshots: each snapshot must show the state after exactly
//! the operations at or below its sequence number (S2, D3).
//!
//! Workers have disjoint, interleaved keys, so every table overlaps the writes of all workers. Each worker writes the
//! same to two families.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::{Db, IngestProgress, ReadOptions, Snapshot, WriteBatch, WriteOptions};
use base::SeqNo;
use vfs::Vfs;

use crate::ingest::{File, Ingest, Way};
use crate::model::{Contents, Entry, Model};
use crate::ops::{Action, Change, Durability, Key, Value};
use crate::random::Random;
use crate::tables::{self, Tables};

/// Two families with equal contents at all times.
pub const FAMILIES: [&str; 2] = ["default", "other"];

/// Distinct keys of a worker.
const KEYS: u64 = 20;

/// Last sequence number of each operation of a worker, and the worker's pairs after it.
pub struct History(Vec<(SeqNo, Arc<Contents>)>);

/// A snapshot and the pairs it showed.
pub struct Seen {
    pub snapshot: Snapshot,
    pub pairs: Contents,
}

pub struct Worker {
    pub db: Arc<Db>,
    pub vfs: Arc<dyn Vfs>,
    /// Directory of its tables.
    pub dir: PathBuf,
    pub number: u64,
    /// Percentage of ingests.
    pub ingests_percent: u64,
    pub ways: Vec<Way>,
    /// Largest sequence number of a returned ingest; it survives a power loss.
    pub durable: Arc<AtomicU64>,
}

impl Worker {
    /// Runs `operations` operations; each must succeed.
    pub fn run(&self, operations: u64) -> History {
        let mut random = Random::new(self.number);
        let (mut model, mut tables, mut points) = (Model::default(), 0, Vec::new());
        self.vfs.create_dir_all(&self.dir).expect("a directory for tables");
        for operation in 0..operations {
            let is_ingest = random.chance(self.ingests_percent);
            let ingest = self.operation(&mut random, operation, is_ingest);
            let last = if is_ingest { self.ingest(&ingest, &mut tables) } else { self.write(&ingest.batch) };
            model.write(&ingest.changes(model.order()), Durability::default());
            points.push((last, model.contents(FAMILIES[0])));
        }
        History(points)
    }

    fn key(&self, random: &mut Random) -> Key {
        format!("{:02}-{}", random.below(KEYS), self.number).into_bytes()
    }

    /// One operation for either family. Every operation increments the worker's counter.
    fn operation(&self, random: &mut Random, operation: u64, is_ingest: bool) -> Ingest {
        let family = FAMILIES[0].to_owned();
        let mut ingest = Ingest { way: *random.pick(&self.ways), ..Ingest::default() };
        let count =
            Action::Put(format!("{:02}-{}", KEYS, self.number).into_bytes(), Value::text(operation.to_string()));
        if is_ingest && random.chance(30) {
            let start = self.key(random);
            ingest.excises.push((family.clone(), start.clone(), [&*start, b"~"].concat()));
        }
        let mut actions: Vec<Action> = (0..1 + random.below(6)).map(|_| self.action(random, operation)).collect();
        actions.push(count);
        if is_ingest {
            let rides_along = random.chance(25);
            let in_batch = if rides_along { actions.split_off(actions.len() / 2) } else { Vec::new() };
            ingest.batch = in_batch.into_iter().map(|action| Change { family: family.clone(), action }).collect();
            if !actions.is_empty() {
                ingest.files.push(File { family, entries: actions });
            }
        } else {
            ingest.batch = actions.into_iter().map(|action| Change { family: family.clone(), action }).collect();
        }
        ingest
    }

    fn action(&self, random: &mut Random, operation: u64) -> Action {
        let key = self.key(random);
        match random.below(20) {
            0..12 => Action::Put(key, Value::Repeated { text: format!("{operation}.").into(), times: 100 }),
            12..15 => Action::Delete(key),
            15..18 => Action::Merge(key, Value::text(operation.to_string())),
            _ => {
                let end = [&*key, b"~"].concat();
                Action::DeleteRange(key, end)
            }
        }
    }

    fn write(&self, changes: &[Change]) -> SeqNo {
        self.db.write(&self.batch_of(changes), &WriteOptions::default()).expect("written")
    }

    fn batch_of(&self, changes: &[Change]) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for name in FAMILIES {
            let family = self.db.family(name).expect("never dropped");
            changes.iter().for_each(|change| crate::run::add(&mut batch, &family, &change.action));
        }
        batch
    }

    fn ingest(&self, ingest: &Ingest, made: &mut u64) -> SeqNo {
        let [_, other] = FAMILIES.map(str::to_owned);
        let mut both = ingest.clone();
        let of_other = ingest.excises.iter().map(|(_, start, end)| (other.clone(), start.clone(), end.clone()));
        both.excises.extend(of_other);
        let of_other = ingest.files.iter().map(|file| File { family: other.clone(), ..file.clone() });
        both.files.extend(of_other);
        let mut next_path = || {
            *made += 1;
            self.dir.join(format!("{}-{made}.sst", self.number))
        };
        let (tables, requests) = Tables::make(&self.db, &self.vfs, &both, &mut next_path).expect("tables");
        let options = tables::options(&both);
        let prepared = self.db.prepare_ingest(&requests, &options, &IngestProgress::default()).expect("prepared");
        let report = match ingest.batch.is_empty() {
            true => self.db.commit_ingest(prepared),
            false => self.db.write_with_ingest(&self.batch_of(&ingest.batch), prepared),
        };
        let last = report.expect("ingested").last;
        drop(tables);
        self.vfs.sync_dir(&self.dir).expect("synced"); // else the in-memory file system keeps all names forever
        self.durable.fetch_max(last.0, Ordering::AcqRel);
        last
    }
}

/// Reads all pairs of a family.
///
/// # Panics
/// A read fails.
pub fn read_all(db: &Db, family: &str, snapshot: Option<&Snapshot>, backward: bool) -> Contents {
    let options = ReadOptions { snapshot: snapshot.cloned(), ..ReadOptions::default() };
    let mut iterator = db.iter(&db.family(family).expect("it is there"), &options).expect("an iterator");
    let mut pairs = Contents::new();
    let mut valid = if backward { iterator.seek_to_last() } else { iterator.seek_to_first() };
    while valid {
        pairs.insert(iterator.key().to_vec(), Entry { value: iterator.value().into() });
        valid = if backward { iterator.prev() } else { iterator.next() };
    }
    iterator.status().expect("readable");
    pairs
}

/// Takes snapshots while `goes_on`. Each must show equal contents in both families, now and later; the visible sequence
/// number must never fall.
///
/// # Panics
/// A check fails.
pub fn observe(db: &Db, seed: u64, goes_on: impl Fn() -> bool) -> Vec<Seen> {
    const KEPT_MAX: usize = 30;
    let mut random = Random::new(seed);
    let mut all: Vec<Seen> = Vec::new();
    let mut visible = SeqNo::ZERO;
    while goes_on() {
        let snapshot = db.snapshot();
        let now = db.latest_sequence_number();
        assert!(now >= visible && now >= snapshot.seq() && snapshot.seq() >= visible, "{visible:?}, then {now:?}");
        visible = now;
        let pairs = read_all(db, FAMILIES[0], Some(&snapshot), random.chance(50));
        let other = read_all(db, FAMILIES[1], Some(&snapshot), random.chance(50));
        assert!(pairs == other, "half of an operation at {}", snapshot.seq());
        if !all.is_empty() {
            let Seen { snapshot, pairs } = random.pick(&all);
            let again = read_all(db, FAMILIES[0], Some(snapshot), random.chance(50));
            assert!(again == *pairs, "snapshot {} shows something else now", snapshot.seq());
        }
        if all.len() >= KEPT_MAX {
            let at = random.below(KEPT_MAX as u64) as usize;
            all.swap_remove(at);
        }
        all.push(Seen { snapshot, pairs });
    }
    all
}

/// Checks that every snapshot showed exactly the operations through its sequence number.
///
/// # Panics
/// A snapshot did not.
pub fn check_prefixes(histories: &[History], all: &[Seen]) {
    for Seen { snapshot, pairs } in all {
        assert!(state_at(histories, snapshot.seq()) == *pairs, "the snapshot at {} is no prefix", snapshot.seq());
    }
}

/// State after every operation through `seq`.
pub fn state_at(histories: &[History], seq: SeqNo) -> Contents {
    let of_worker = |History(points): &History| {
        let through = points.partition_point(|(last, _)| *last <= seq);
        through.checked_sub(1).and_then(|at| points.get(at)).map(|(_, contents)| (**contents).clone())
    };
    histories.iter().filter_map(of_worker).flatten().collect()
}

/// Largest sequence number with the state `pairs`, if any.
pub fn last_state_like(histories: &[History], pairs: &Contents) -> Option<SeqNo> {
    let mut numbers: Vec<SeqNo> = histories.iter().flat_map(|History(points)| points).map(|(last, _)| *last).collect();
    numbers.push(SeqNo::ZERO);
    numbers.sort();
    numbers.into_iter().rev().find(|number| state_at(histories, *number) == *pairs)
}
