use std::thread;

use base::{ErrorKind, SeqNo};
use vfs::MemoryVfs;

use super::*;
use crate::internal::{Database, OpenOptions, ReadOptions};
use crate::order::latch::LatchSpan;

/// Holds as long as the counter is what was read.
struct Unchanged<'a> {
    db: &'a Database,
    counter: u64,
}

impl ConflictCheck for Unchanged<'_> {
    fn check(&self, _visible: SeqNo) -> Result<()> {
        let unchanged = read(self.db) == self.counter;
        if unchanged { Ok(()) } else { Err(Error::new(ErrorKind::Conflict, "the counter has changed")) }
    }

    fn spans(&self) -> Vec<LatchSpan> {
        Vec::new() // the batch has the counter
    }
}

fn read(db: &Database) -> u64 {
    let value = db.get(&db.default_family(), b"counter", &ReadOptions::default()).expect("read");
    value.map_or(0, |value| value.as_ref().try_into().map(u64::from_le_bytes).expect("eight bytes"))
}

/// Reads the counter and writes one more. Whether nobody came in between.
fn try_increment(db: &Database) -> bool {
    let counter = read(db);
    thread::yield_now();
    let (committer, options) = (&db.engine().committer, WriteOptions::default());
    let mut batch = WriteBatch::new();
    batch.put(db.default_family().id(), b"counter", &(counter + 1).to_le_bytes());
    let set = committer.core.families.load();
    let check = Unchanged { db, counter };
    let mut commit = Commit { conflicts: Some(&check), ..Commit::of_batch(&batch, &options) };
    commit.take_apart(&set).expect("a family of the database");
    match committer.number(&mut commit) {
        Ok(numbered) => committer.apply(&mut commit, numbered).map(|_| true).expect("written"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            false
        }
    }
}

#[test]
fn a_commit_with_a_conflict_is_not_made_and_none_is_overlooked() {
    const THREADS: usize = 4;
    const INCREMENTS: u64 = 250;
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false);
    let db = Database::open("/db", &OpenOptions { vfs, ..OpenOptions::create_if_missing() }).expect("a new database");
    let increment_all = || {
        let mut conflicts = 0;
        for _ in 0..INCREMENTS {
            while !try_increment(&db) {
                conflicts += 1;
            }
        }
        conflicts
    };
    let conflicts: u64 = thread::scope(|scope| {
        let all: Vec<_> = (0..THREADS).map(|_| scope.spawn(increment_all)).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).sum()
    });
    assert_eq!(read(&db), THREADS as u64 * INCREMENTS);
    assert!(conflicts > 0, "the threads never met");
}
