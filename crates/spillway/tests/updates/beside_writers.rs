//! Cursors beside writers, flushes and log switches, compared with what the writers were told.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use testkit::engine::{Db, FamilyOptions, LogCursor, OpenOptions, SeqNo, WriteBatch, WriteOptions};

/// Batches by their first number.
type History = BTreeMap<u64, Vec<u8>>;

const WRITERS: u64 = 3;
const BATCHES: u64 = 400;

fn options() -> OpenOptions {
    let family = FamilyOptions { write_buffer_size: 256 << 10, ..FamilyOptions::default() };
    let mut options = OpenOptions::create_if_missing().family("default", family.clone()).family("second", family);
    options.db.create_missing_column_families = true;
    options.db.large_batch_bytes = 16 << 10;
    options.db.log_file_bytes = 128 << 10;
    options.db.wal_ttl_seconds = 3600;
    options
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Writes batches of all sizes, and notes their numbers.
fn write(db: &Db, seed: u64, written: &Mutex<History>) {
    let families = [db.default_family(), db.family("second").unwrap()];
    let mut state = seed;
    for _ in 0..BATCHES {
        let mut batch = WriteBatch::new();
        for _ in 0..=random(&mut state) % 4 {
            let family = &families[random(&mut state) as usize % 2];
            let (key, bytes) = (random(&mut state) % 500, random(&mut state) % 2000);
            match random(&mut state) % 8 {
                0 => batch.delete(family.id(), &key.to_be_bytes()),
                1 => batch.delete_range(family.id(), &key.to_be_bytes(), &(key + 9).to_be_bytes()),
                2 if bytes < 200 => batch.put(family.id(), &key.to_be_bytes(), &vec![key as u8; 20_000]),
                _ => batch.put(family.id(), &key.to_be_bytes(), &vec![key as u8; bytes as usize]),
            }
        }
        let last = db.write(&batch, &WriteOptions::default()).unwrap();
        let first = last.0 + 1 - u64::from(batch.count());
        written.lock().unwrap().insert(first, batch.as_bytes()[12..].to_vec());
    }
}

/// Reads until the writers are done and nothing is left.
fn follow(cursor: &mut LogCursor, is_done: &AtomicBool) -> History {
    let mut seen = History::new();
    let mut next = 1;
    loop {
        let was_done = is_done.load(Ordering::Acquire);
        while let Some(update) = cursor.read().unwrap() {
            assert_eq!(update.sequence_number().0, next, "in order, without a gap");
            next = update.last_sequence_number().0 + 1;
            seen.insert(update.sequence_number().0, update.as_bytes()[12..].to_vec());
        }
        if was_done {
            return seen;
        }
        thread::yield_now();
    }
}

#[test]
fn cursors_beside_writers_see_every_batch_once_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), &options()).unwrap();
    let (written, is_done) = (Mutex::new(History::new()), AtomicBool::new(false));
    let seen = thread::scope(|scope| {
        let followers: Vec<_> =
            (0..2).map(|_| scope.spawn(|| follow(&mut db.updates_since(SeqNo(1), false).unwrap(), &is_done))).collect();
        let writers: Vec<_> = (1..=WRITERS)
            .map(|seed| {
                scope.spawn({
                    let (db, written) = (&db, &written);
                    move || write(db, seed << 20 | 77, written)
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_done.store(true, Ordering::Release);
        followers.into_iter().map(|follower| follower.join().unwrap()).collect::<Vec<_>>()
    });
    let written = written.into_inner().unwrap();
    assert_eq!(written.len() as u64, WRITERS * BATCHES);
    for seen in seen {
        assert!(seen == written, "{} of {}", seen.len(), written.len());
    }
}
