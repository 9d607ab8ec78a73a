//! Which flushes of ingests wait for more of them, and for how long.
//!
//! An ingest in the queue is read as it would be in level 0 and holds no memory to speak of. What its flush costs is syncs, of
//! the table that the small memtable under it becomes and of the MANIFEST, and a step towards the next compaction: writers that sync
//! their own records stand behind both at the disk. So ingests that come soon after each other leave the queue together.
//!
//! Whoever waits for a flush ([`FamilyState::flush_wanted_through`]) ends the waiting.

use std::time::Duration;

use crate::core::{Core, FamilyState, State};
use crate::flush::job::is_ingest;

/// How long the first of them waits. The log is needed so much longer, and a compaction comes so much later.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Tables that may wait, memtables counted as one each: every read looks at each, as in level 0.
const TABLES_MAX: usize = 16;

/// Bytes of ingested tables that may wait. Larger ones are levels' matter: compactions are to see them.
const TABLE_BYTES_MAX: u64 = 32 << 20;

/// Bytes that memtables in a queue may hold meanwhile, and the part of a write buffer that they may be: far from what
/// makes writers wait ([`FamilyState::has_full_queue`]).
const MEMTABLE_BYTES_MAX: usize = 16 << 20;
const WRITE_BUFFER_PART: usize = 4;

impl FamilyState {
    /// Notes that an ingest joined the queue. True where that begins a wait, so that upkeep is to learn when it ends.
    pub fn note_ingest(&mut self, at: Duration) -> bool {
        let begins = self.joined_at.is_none();
        self.joined_at.get_or_insert(at);
        begins
    }

    /// Whether what is queued can wait: it has ingests, and is small in every respect.
    pub fn flush_can_wait(&self) -> bool {
        self.joined_at.is_some() && self.queue.iter().any(is_ingest) && self.is_small()
    }

    fn is_small(&self) -> bool {
        let options = self.family.options();
        let (mut tables, mut table_bytes, mut memtable_bytes) = (0, 0, 0);
        for entry in &self.queue {
            let Some(ingest) = entry.as_ingest() else {
                // One that becomes a table as it is leaves alone, whatever else waits.
                if entry.conversion().is_some() {
                    return false;
                }
                tables += 1;
                memtable_bytes += entry.memory_bytes();
                continue;
            };
            if ingest.has_excise() {
                return false; // it frees space
            }
            tables += ingest.tables().count();
            table_bytes += ingest.tables().map(|table| table.meta.file_bytes).sum::<u64>();
        }
        tables < tables_max(options.level0_file_num_compaction_trigger, options.level0_slowdown_writes_trigger)
            && table_bytes < TABLE_BYTES_MAX
            && memtable_bytes < MEMTABLE_BYTES_MAX.min(options.write_buffer_size / WRITE_BUFFER_PART)
    }
}

/// All may come to level 0 at once: writers are not to be slowed down for that.
fn tables_max(compaction_trigger: i32, slowdown_trigger: i32) -> usize {
    match slowdown_trigger {
        ..0 => TABLES_MAX,
        _ => usize::try_from(slowdown_trigger - compaction_trigger).unwrap_or(0).min(TABLES_MAX),
    }
}

impl State {
    /// Ends all waits: flushes are picked as soon as somebody looks.
    pub fn flush_without_waiting(&mut self) {
        self.families.values_mut().for_each(|family| family.joined_at = None);
    }

    fn end_waits_until(&mut self, due: Duration) {
        for family in self.families.values_mut() {
            family.joined_at = family.joined_at.filter(|at| *at + WAIT_MAX > due);
        }
    }
}

impl Core {
    /// Whether there is a thread that ends waits.
    pub fn flushes_can_wait(&self) -> bool {
        !self.context.vfs.runs_inline()
    }

    /// When the first flush that waits is due.
    pub fn next_flush_at(&self) -> Option<Duration> {
        let state = self.state.lock();
        state.families.values().filter_map(|family| family.joined_at).map(|at| at + WAIT_MAX).min()
    }

    /// Ends the waits that are due then.
    pub fn end_flush_waits(&self, due: Duration) {
        self.state.lock().end_waits_until(due);
        self.state_changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::thread;

    use vfs::{MemoryVfs, Vfs};

    use super::*;
    use crate::{Db, FamilyOptions, IngestOptions, IngestRequest, OpenOptions, ReadOptions, TableWriter, WriteOptions};

    /// A database with background threads, and a table of one key, which every ingest overlaps.
    struct Subject {
        db: Db,
        vfs: Arc<dyn Vfs>,
        table: PathBuf,
    }

    impl Subject {
        fn open() -> Subject {
            let vfs = MemoryVfs::new(1);
            vfs.set_runs_inline(false);
            let vfs: Arc<dyn Vfs> = vfs;
            let mut options = OpenOptions::create_if_missing();
            options.vfs = vfs.clone();
            let table = PathBuf::from("/one.sst");
            let mut writer = TableWriter::create(vfs.clone(), &table, &FamilyOptions::default()).expect("new");
            writer.put(b"key", b"ingested").expect("a key");
            writer.finish().expect("a table");
            Subject { db: Db::open("/db", &options).expect("a new database"), vfs, table }
        }

        /// Writes the key, which seals a memtable, and ingests over it.
        fn ingest(&self) {
            let family = self.db.default_family();
            self.db.put(&family, b"key", b"written", &WriteOptions::default()).expect("written");
            self.db.ingest(&family, std::slice::from_ref(&self.table), &IngestOptions::default()).expect("ingested");
        }

        fn queued(&self) -> usize {
            self.db.core().state.lock().families[&self.db.default_family().id()].queue.len()
        }

        fn wait_until_flushed(&self) {
            let family = self.db.default_family();
            while self.queued() > 0 {
                thread::yield_now();
            }
            let found = self.db.get(&family, b"key", &ReadOptions::default()).expect("readable");
            assert_eq!(found.as_deref(), Some(&b"ingested"[..]));
        }

        fn level0(&self) -> usize {
            let state = self.db.core().state.lock();
            state.families[&self.db.default_family().id()].version.level(0).len()
        }
    }

    #[test]
    fn ingests_wait_for_each_other_and_no_longer_than_so_many() {
        let subject = Subject::open();
        for nth in 1..TABLES_MAX / 2 {
            subject.ingest();
            assert_eq!(subject.queued(), 2 * nth, "a memtable and a table each");
        }
        subject.ingest();
        subject.wait_until_flushed();
    }

    #[test]
    fn a_wait_ends_by_itself() {
        let subject = Subject::open();
        subject.ingest();
        assert_eq!((subject.queued(), subject.level0()), (2, 0));
        subject.wait_until_flushed();
        assert_eq!(subject.level0(), 2);
    }

    #[test]
    fn whoever_asks_for_a_flush_does_not_wait() {
        let subject = Subject::open();
        let family = subject.db.default_family();
        subject.ingest();
        subject.db.flush(&[&family]).expect("flushed");
        assert_eq!((subject.queued(), subject.level0()), (0, 2));
        subject.ingest();
        subject.db.wait_for_compaction().expect("nothing is left to do");
        assert_eq!(subject.queued(), 0);
    }

    #[test]
    fn what_waits_at_a_close_is_there_after_the_next_open() {
        let subject = Subject::open();
        subject.ingest();
        subject.db.close().expect("closed");
        let options = OpenOptions { vfs: subject.vfs.clone(), ..OpenOptions::default() };
        let db = Db::open(Path::new("/db"), &options).expect("open");
        let found = db.get(&db.default_family(), b"key", &ReadOptions::default()).expect("readable");
        assert_eq!(found.as_deref(), Some(&b"ingested"[..]));
    }

    #[test]
    fn an_excise_does_not_wait() {
        let subject = Subject::open();
        let family = subject.db.default_family();
        subject.ingest();
        let excise = Some((b"a".to_vec(), b"b".to_vec()));
        let request = IngestRequest { excise, ..IngestRequest::new(family, Vec::new()) };
        subject.db.ingest_all(&[request], &IngestOptions::default()).expect("excised");
        subject.wait_until_flushed();
    }

    #[test]
    fn level_0_never_gets_so_many_at_once_that_writers_are_slowed_down() {
        assert_eq!([(4, 20), (4, 8), (4, 4), (8, 4), (4, -1)].map(|(a, b)| tables_max(a, b)), [16, 4, 0, 0, 16]);
    }
}
