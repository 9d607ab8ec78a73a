use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;

use vfs::{MemoryVfs, Vfs};

use super::*;
use crate::internal::{
    Database, Family, FamilyOptions, IngestMode, IngestOptions, IngestRequest, OpenOptions, ReadOptions, TableWriter,
    WriteOptions,
};

/// Long after the end of every test.
const NEVER: Duration = Duration::from_secs(1 << 20);

/// Fails where a test is not over in time: it is one wait that nobody ended.
#[expect(clippy::disallowed_methods, reason = "a test's own thread")]
fn within_a_minute(test: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        test();
        let _ = sender.send(()); // nobody listens any more after the minute
    });
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("nobody ended the wait"),
        _ => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
    }
}

/// A database with background threads, and a table of one key, which every ingest overlaps.
struct Subject {
    db: Database,
    family: Arc<Family>,
    vfs: Arc<dyn Vfs>,
    table: PathBuf,
}

impl Subject {
    fn open() -> Subject {
        Subject::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut OpenOptions)) -> Subject {
        let vfs = MemoryVfs::new(1);
        vfs.set_runs_inline(false);
        let vfs: Arc<dyn Vfs> = vfs;
        let mut options = OpenOptions::create_if_missing();
        options.vfs = vfs.clone();
        change(&mut options);
        let table = PathBuf::from("/one.sst");
        let mut writer = TableWriter::create(vfs.clone(), &table, &FamilyOptions::default()).expect("new");
        writer.put(b"key", b"ingested").expect("a key");
        writer.finish().expect("a table");
        let db = Database::open("/db", &options).expect("a new database");
        Subject { family: db.default_family(), db, vfs, table }
    }

    /// From now on no clock ends the wait for more ingests, until a flush has taken what waits.
    fn wait_for_ever(&self) {
        let mut state = self.db.core().state.lock();
        state.families.get_mut(&self.family.id()).expect("it is there").joined_at = Some(NEVER);
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        self.db.put(&self.family, key, value, &WriteOptions::default()).expect("written");
    }

    fn ingest_by(&self, mode: IngestMode) {
        let options = IngestOptions { mode, ..IngestOptions::default() };
        self.db.ingest(&self.family, std::slice::from_ref(&self.table), &options).expect("ingested");
    }

    /// Writes the key, which seals a memtable, and ingests over it.
    fn ingest(&self) {
        self.put(b"key", b"written");
        self.ingest_by(IngestMode::Flushable);
    }

    /// The same, and both wait in the queue until somebody ends that.
    fn ingest_and_wait(&self) {
        self.wait_for_ever();
        self.ingest();
        let state = self.db.core().state.lock();
        let family = &state.families[&self.family.id()];
        assert_eq!((family.queue.len(), family.flush_can_wait()), (2, true));
    }

    fn queued(&self) -> usize {
        self.db.core().state.lock().families[&self.family.id()].queue.len()
    }

    fn wait_until_flushed(&self) {
        while self.queued() > 0 {
            thread::yield_now();
        }
        assert_eq!(self.get().as_deref(), Some(&b"ingested"[..]));
    }

    fn get(&self) -> Option<Vec<u8>> {
        let found = self.db.get(&self.family, b"key", &ReadOptions::default()).expect("readable");
        found.map(|value| value.to_vec())
    }

    fn level0(&self) -> usize {
        let state = self.db.core().state.lock();
        state.families[&self.family.id()].version.level(0).len()
    }
}

#[test]
fn ingests_wait_for_each_other_and_no_longer_than_so_many() {
    within_a_minute(|| {
        let subject = Subject::open();
        subject.wait_for_ever();
        for nth in 1..TABLES_MAX / 2 {
            subject.ingest();
            assert_eq!(subject.queued(), 2 * nth, "a memtable and a table each");
        }
        subject.ingest();
        subject.wait_until_flushed();
    });
}

#[test]
fn a_wait_ends_by_itself() {
    within_a_minute(|| {
        let subject = Subject::open();
        subject.ingest();
        subject.wait_until_flushed();
        assert_eq!(subject.level0(), 1, "merged with the memtable under it");
    });
}

#[test]
fn whoever_asks_for_a_flush_does_not_wait() {
    within_a_minute(|| {
        let subject = Subject::open();
        subject.ingest_and_wait();
        subject.db.flush(&[&subject.family]).expect("flushed");
        assert_eq!((subject.queued(), subject.level0()), (0, 1));
        subject.ingest_and_wait();
        subject.db.wait_for_compaction().expect("nothing is left to do");
        assert_eq!(subject.queued(), 0);
    });
}

#[test]
fn an_ingest_that_has_to_flush_does_not_wait() {
    for mode in [IngestMode::Blocking, IngestMode::FlushFirst, IngestMode::Direct] {
        within_a_minute(move || {
            let subject = Subject::open();
            subject.ingest_and_wait();
            subject.ingest_by(mode);
            assert_eq!((subject.queued(), subject.get().as_deref()), (0, Some(&b"ingested"[..])), "{mode:?}");
        });
    }
}

/// What is in the queue is small, but the limit on all memtables together is near.
#[test]
fn a_writer_without_memory_does_not_wait() {
    within_a_minute(|| {
        let subject = Subject::with(|options| {
            options.db.db_write_buffer_size = 8 << 20;
            options.db.large_batch_bytes = 8 << 20;
        });
        subject.put(b"a", &[1; 3 << 20]);
        subject.ingest_and_wait();
        subject.put(b"b", &[2; 6 << 20]);
        subject.wait_until_flushed();
    });
}

/// Its queue is full long after it is small.
#[test]
fn a_writer_at_a_full_queue_does_not_wait() {
    within_a_minute(|| {
        let family = FamilyOptions {
            // A memtable with one key holds 68 KiB: small beside this.
            write_buffer_size: 1 << 20,
            max_write_buffer_number: 2,
            disable_auto_compactions: true, // what is flushed stays in level 0
            ..FamilyOptions::default()
        };
        let subject = Subject::with(|options| options.families.push(("default".to_owned(), family)));
        subject.ingest_and_wait();
        (0..40u8).for_each(|key| subject.put(&[key], &[key; 64 << 10]));
        while subject.level0() == 0 {
            thread::yield_now();
        }
        assert_eq!(subject.get().as_deref(), Some(&b"ingested"[..]));
    });
}

/// Another family is written, until the log in which the ingest is recorded must go.
#[test]
fn logs_that_are_over_their_limit_do_not_wait() {
    within_a_minute(|| {
        let subject = Subject::with(|options| {
            options.db.log_file_bytes = 64 << 10;
            options.db.max_total_wal_size = 128 << 10;
        });
        let other = subject.db.create_family("other", FamilyOptions::default()).expect("made");
        subject.ingest_and_wait();
        for key in 0..60u8 {
            subject.db.put(&other, &[key], &[key; 8 << 10], &WriteOptions::default()).expect("written");
        }
        subject.wait_until_flushed();
    });
}

#[test]
fn what_waits_at_a_close_is_there_after_the_next_open() {
    within_a_minute(|| {
        let subject = Subject::open();
        subject.ingest_and_wait();
        subject.db.close().expect("closed");
        let options = OpenOptions { vfs: subject.vfs.clone(), ..OpenOptions::default() };
        let db = Database::open(Path::new("/db"), &options).expect("open");
        let found = db.get(&db.default_family(), b"key", &ReadOptions::default()).expect("readable");
        assert_eq!(found.as_deref(), Some(&b"ingested"[..]));
    });
}

#[test]
fn an_excise_does_not_wait() {
    within_a_minute(|| {
        let subject = Subject::open();
        subject.ingest_and_wait();
        let excise = Some((b"a".to_vec(), b"b".to_vec()));
        let request = IngestRequest { excise, ..IngestRequest::new(subject.family.clone(), Vec::new()) };
        subject.db.ingest_all(&[request], &IngestOptions::default()).expect("excised");
        subject.wait_until_flushed();
    });
}

#[test]
fn level_0_never_gets_so_many_at_once_that_writers_are_slowed_down() {
    assert_eq!([(4, 20), (4, 8), (4, 4), (8, 4), (4, -1)].map(|(a, b)| tables_max(a, b)), [16, 4, 0, 0, 16]);
}
