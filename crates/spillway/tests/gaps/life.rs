//! Writers, flushes, compactions, snapshots and iterators at once. Each writer owns the keys of one prefix, and each of
//! its batches names its own step, so a reader knows what it must see.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use testkit::engine::vfs::RealVfs;
use testkit::engine::{
    CompactRangeOptions, Db, Family, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions,
};
use testkit::random::Random;

use super::walk;

const WRITERS: u64 = 3;
const STEPS: u64 = 4000;
const LENGTH: u64 = 60;

/// A queue: it grows at one end, is eaten at the other, and now and then something comes back in the middle.
#[derive(Clone)]
struct Queue {
    writer: u64,
    random: Random,
    step: u64,
    front: u64,
    back: u64,
    live: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Queue {
    fn new(writer: u64) -> Self {
        Queue { writer, random: Random::new(writer), step: 0, front: 0, back: 0, live: BTreeMap::new() }
    }

    fn key(&self, n: u64) -> Vec<u8> {
        format!("{}-{:03}", self.writer, n % 1000).into_bytes()
    }

    /// Changes of the next step: a key, and its value unless it is deleted.
    fn advance(&mut self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        self.step += 1;
        let value = || Some(self.step.to_string().into_bytes());
        let mut changes = Vec::new();
        let n = self.random.below(100);
        if n == 0 {
            changes.push((self.key(self.random.clone().below(1000)), value()));
        } else if n == 1 {
            let stray = self.live.keys().next().cloned();
            changes.extend(stray.map(|key| (key, None)));
        } else if self.back - self.front < LENGTH {
            changes.push((self.key(self.back), value()));
            self.back += 1;
        } else {
            for _ in 0..self.random.below(LENGTH) {
                changes.push((self.key(self.front), None));
                self.front += 1;
            }
        }
        for (key, value) in &changes {
            match value {
                Some(value) => drop(self.live.insert(key.clone(), value.clone())),
                None => drop(self.live.remove(key)),
            }
        }
        changes
    }
}

fn write(db: &Db, family: &Family, mut queue: Queue) {
    for _ in 0..STEPS {
        let mut batch = WriteBatch::new();
        for (key, value) in queue.advance() {
            match value {
                Some(value) => batch.put(family.id(), &key, &value),
                None => batch.delete(family.id(), &key),
            };
        }
        batch.put(family.id(), format!("step {}", queue.writer).as_bytes(), queue.step.to_string().as_bytes());
        db.write(&batch, &WriteOptions::default()).expect("written");
    }
}

fn number(text: &[u8]) -> u64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).expect("a number")
}

/// Reads everything, and brings the models to the steps that were read.
fn check(db: &Db, family: &Family, models: &mut [Queue], options: &ReadOptions, forward: bool) {
    let mut found = walk(db, family, options, forward);
    if !forward {
        found.reverse();
    }
    let steps = found.split_off(found.partition_point(|(key, _)| key < &b"step".to_vec()));
    for (key, value) in steps {
        let step = number(&value);
        let model = models.get_mut(number(key.strip_prefix(b"step ").expect("a step")) as usize).expect("a writer");
        assert!(model.step <= step, "time went back");
        while model.step < step {
            model.advance();
        }
    }
    let expected: Vec<_> = models.iter().flat_map(|model| model.live.clone()).collect();
    assert_eq!(found, expected, "forward: {forward}, steps {:?}", models.iter().map(|m| m.step).collect::<Vec<_>>());
}

fn read(db: &Db, family: &Family, seed: u64, done: &AtomicBool) {
    let mut models: Vec<_> = (0..WRITERS).map(Queue::new).collect();
    let mut random = Random::new(seed);
    loop {
        let last = done.load(Ordering::Relaxed);
        let snapshot = random.chance(50).then(|| db.snapshot());
        let options = ReadOptions { snapshot, ..ReadOptions::default() };
        let forward = random.chance(50);
        check(db, family, &mut models, &options, forward);
        if options.snapshot.is_some() {
            check(db, family, &mut models, &options, !forward);
        }
        if last {
            assert!(models.iter().all(|model| model.step == STEPS));
            return;
        }
    }
}

fn tend(db: &Db, family: &Arc<Family>, done: &AtomicBool) {
    let mut random = Random::new(9);
    while !done.load(Ordering::Relaxed) {
        match random.below(4) {
            0 => db.compact_range(family, None, None, &CompactRangeOptions::default()).expect("compacted"),
            _ => db.flush(&[family]).expect("flushed"),
        }
    }
}

#[test]
fn every_reader_sees_its_state_while_all_goes_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = OpenOptions { vfs: RealVfs::new(), ..OpenOptions::create_if_missing() };
    let family = FamilyOptions { write_buffer_size: 64 << 10, ..FamilyOptions::default() };
    let db = Db::open(dir.path(), &options.family("default", family)).expect("opened");
    let (family, done) = (db.default_family(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let (db, family) = (&db, &family);
                    move || write(db, family, Queue::new(writer))
                })
            })
            .collect();
        (0..2).for_each(|seed| {
            drop(scope.spawn({
                let (db, family, done) = (&db, &family, &done);
                move || read(db, family, seed, done)
            }))
        });
        scope.spawn(|| tend(&db, &family, &done));
        writers.into_iter().for_each(|writer| writer.join().expect("wrote"));
        done.store(true, Ordering::Relaxed);
    });
}
