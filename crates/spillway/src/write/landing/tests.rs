use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;
use std::thread;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, LookupKey, SeqNo};
use crossbeam_utils::Backoff;
use memtable::Memtable;
use smallvec::smallvec;
use table::{TableReadOptions, Visit};
use vfs::MemoryVfs;

use super::*;
use crate::family::Family;
use crate::flush::flushable::Flushable;
use crate::write::admission::Waiter;
use crate::write::join::JoinRequest;
use crate::write::memory::Charge;
use crate::write::staged::Staged;
use crate::{Db, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};

/// Longer than anything takes that comes at all.
const LONG: Duration = Duration::from_secs(20);

#[test]
fn numbers_are_put_where_they_belong() {
    let payload = (0..30).collect();
    let record = UnnumberedRecord { kind: RecordKind::Ingest, payload, numbers: smallvec![(0, 1), (17, 3)] };
    let given = Given { before: SeqNo(0x100), last: SeqNo(0x103), log_end: 0 };
    let bytes = record.with(&record.numbers(&given)).concat();
    let expected =
        [&0x101u64.to_le_bytes()[..], &record.payload[8..17], &0x103u64.to_le_bytes(), &record.payload[25..]];
    assert_eq!(bytes, expected.concat());
}

#[test]
fn a_change_that_comes_to_nothing_leaves_nothing_to_find_or_to_sleep_for() {
    let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
    let db = Db::open("/db", &options).expect("a new database");
    let (core, landing) = (db.core(), Landing::new(None));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _posted = Posted::of(core, &landing);
        core.post_landing(&landing);
        landing.open_window(core.ingest_waits.open_window(None));
        panic!("on its way");
    }));
    assert!(panicked.is_err() && core.landing.lock().is_none() && landing.window.lock().is_none());
}

/// Others have published the change of a thread that is lost with what readers would find it by.
#[test]
fn a_change_whose_thread_is_lost_before_it_is_in_the_queues_fails_though_others_have_done_the_rest() {
    for in_queues in [false, true] {
        let (db, families) = database();
        let (core, one) = (db.core(), &families[..1]);
        put(&db, one, b"before").expect("written");
        let landing = Landing::new(None);
        let mut posted = Posted::of(core, &landing);
        let taken = {
            let mut commit = core.commit.lock();
            core.take_numbers(&mut commit, 1, None, &[]).expect("it has room").unwrap_or_else(|_| panic!("it has room"))
        };
        let last = taken.given.last;
        landing.tell(Untold::new(), Told { taken, joined_at: Duration::ZERO, logged_through: 0 });
        core.post_landing(&landing);
        core.land_for_others();
        assert!(core.pipeline.visible() >= last && landing.done_at().is_some());
        posted.in_queues = in_queues;
        drop(posted);
        assert_eq!(put(&db, one, b"later").is_ok(), in_queues);
    }
}

/// Where a thread stops, and who lets it go on.
struct Stop {
    reached: mpsc::SyncSender<()>,
    goes_on: Mutex<mpsc::Receiver<()>>,
}

struct Gate {
    reached: mpsc::Receiver<()>,
    _goes_on_once_dropped: mpsc::Sender<()>,
}

fn gate() -> (Stop, Gate) {
    let (reached, is_reached) = mpsc::sync_channel(1);
    let (sender, goes_on) = mpsc::channel();
    (Stop { reached, goes_on: Mutex::new(goes_on) }, Gate { reached: is_reached, _goes_on_once_dropped: sender })
}

impl Gate {
    fn is_reached(&self) {
        self.reached.recv_timeout(LONG).expect("a thread comes by");
    }
}

/// An entry that stops the first threads that tell it its numbers.
struct Stopping {
    inner: Arc<dyn Joins>,
    stops: Vec<Stop>,
    calls: AtomicUsize,
}

impl Joins for Stopping {
    fn set_numbers(&self, given: &Given) {
        if let Some(stop) = self.stops.get(self.calls.fetch_add(1, Ordering::Relaxed)) {
            stop.reached.send(()).expect("it is waited for");
            let _ = stop.goes_on.lock().recv();
        }
        self.inner.set_numbers(given);
    }
}

impl Flushable for Stopping {
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        self.inner.get(key, options, visit)
    }

    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Result<Box<dyn Cursor>> {
        self.inner.clone().cursor(options)
    }

    fn tombstones(&self) -> Result<Option<Arc<FragmentedTombstones>>> {
        self.inner.tombstones()
    }

    fn created_at(&self) -> SeqNo {
        self.inner.created_at()
    }

    fn largest_seq(&self) -> Option<SeqNo> {
        self.inner.largest_seq()
    }

    fn logged_through(&self) -> LogPosition {
        self.inner.logged_through()
    }

    fn memory_bytes(&self) -> usize {
        self.inner.memory_bytes()
    }

    fn charge(&self) -> Option<&Arc<Charge>> {
        self.inner.charge()
    }

    fn as_memtable(&self) -> Option<&Arc<dyn Memtable>> {
        self.inner.as_memtable()
    }
}

/// A database whose jobs have threads, of two families.
fn database() -> (Db, [Arc<Family>; 2]) {
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false);
    let db = Db::open("/db", &OpenOptions { vfs, ..OpenOptions::create_if_missing() }).expect("a new database");
    let families = [db.default_family(), db.create_family("other", FamilyOptions::default()).expect("made")];
    (db, families)
}

fn put(db: &Db, families: &[Arc<Family>], key: &[u8]) -> Result<()> {
    let mut batch = WriteBatch::new();
    families.iter().for_each(|family| batch.put(family.id(), key, b"put"));
    db.write(&batch, &WriteOptions::default()).map(drop)
}

/// `joined` under "key" in each family, above their memtables, where the last one's entry stops threads.
fn join(db: &Db, families: &[Arc<Family>], record: Option<UnnumberedRecord>, stops: Vec<Stop>) {
    let core = db.core();
    let mut batch = WriteBatch::new();
    families.iter().for_each(|family| batch.put(family.id(), b"key", b"joined"));
    let mut joining = core.index_batch(&batch, 0, &WriteOptions::default()).expect("indexed");
    joining.iter_mut().for_each(|joining| core.make_fresh(joining).expect("made"));
    let entries = &mut joining.last_mut().expect("one").entries;
    let inner = entries.pop().expect("one");
    entries.push(Arc::new(Stopping { inner, stops, calls: AtomicUsize::new(0) }));
    let landing = Landing::new(record);
    let joined = core.join_queues(JoinRequest {
        joining: &mut joining,
        numbers: families.len() as u64,
        landing: &landing,
        bounds: &[],
        waiter: Waiter { no_slowdown: false, is_writer: false },
        latch: None,
        noted: None,
    });
    let joined = joined.expect("nothing is in its way");
    core.land_own(&landing).expect("written");
    core.settle_views(families.iter().map(|family| family.id()));
    drop(joined);
}

fn assert_holds_all(db: &Db, families: &[Arc<Family>]) {
    for family in families {
        let get = |key: &[u8]| db.get(family, key, &ReadOptions::default()).expect("read");
        let found = [get(b"before"), get(b"key"), get(b"later")];
        assert_eq!(found.each_ref().map(Option::as_deref), [Some(&b"put"[..]), Some(b"joined"), Some(b"put")]);
    }
}

/// They need the memtables that follow, which the change has to show them, and what it has shown of one family is not all.
#[test]
fn writers_go_on_while_the_thread_has_stopped_that_took_their_memtables() {
    for families_taken in 1..=2 {
        let (db, families) = database();
        let taken = &families[..families_taken];
        put(&db, &families, b"before").expect("written");
        let (stop, gate) = gate();
        thread::scope(|scope| {
            let joins = scope.spawn(|| join(&db, taken, None, vec![stop]));
            gate.is_reached();
            let (sender, receiver) = mpsc::channel();
            let db = &db;
            scope.spawn(move || sender.send(put(db, taken, b"later")));
            let written = receiver.recv_timeout(LONG);
            if written.is_ok() {
                assert_holds_all(db, taken);
            }
            drop(gate); // in any case
            written.expect("a writer does not wait for the thread").expect("written");
            joins.join().expect("it comes late, and finds nothing to do");
        });
        assert_holds_all(&db, taken);
        assert_eq!(db.core().ingest_waits.report().brief_waits, 1);
        assert!(db.core().landing.lock().is_none());
    }
}

#[test]
fn what_showing_the_next_memtable_takes_is_a_wait_for_the_ingest() {
    let (db, families) = database();
    let (core, family, one) = (db.core(), &families[0], &families[..1]);
    put(&db, one, b"before").expect("written");
    let (stop, gate) = gate();
    thread::scope(|scope| {
        let joins = scope.spawn(|| join(&db, one, None, vec![stop]));
        gate.is_reached();
        let is_shown = || family.view().mutable.id() == family.mutable_id();
        let (mut waited, was_shown) = (Duration::ZERO, is_shown());
        let done = core.show_next_memtable(&Backoff::new(), &mut waited);
        let is_shown = is_shown();
        drop(gate); // in any case
        done.expect("nothing has failed");
        assert!(!was_shown && is_shown && !waited.is_zero());
        joins.join().expect("joined");
    });
}

/// One that no ingest took.
#[test]
fn a_writer_waits_until_the_next_memtable_is_shown() {
    let (db, families) = database();
    let (core, family, one) = (db.core(), &families[0], &families[..1]);
    let made = core.make_memtable(family, 0).expect("made");
    let mut state = core.state.lock();
    let mut staged = Staged::new(&state.families[&family.id()], std::iter::empty(), Some(&made));
    staged.turn_writers_away(family);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let db = &db;
        scope.spawn(move || sender.send(put(db, one, b"later")));
        let early = receiver.recv_timeout(Duration::from_millis(50));
        let last = core.commit.lock().last_seq;
        staged::show(staged.view(), &Seam { before: last, last, logged_through: 0, log: None });
        staged.follow(state.families.get_mut(&family.id()).expect("there"));
        drop(state);
        assert!(early.is_err(), "written to a memtable that nobody finds");
        receiver.recv_timeout(LONG).expect("it goes on").expect("written");
        assert_eq!(made.memtable().entries(), 1);
        core.settle_views(one.iter().map(|family| family.id()));
    });
}

/// It takes numbers, and is visible once the thread has written that.
#[test]
fn a_writer_goes_on_as_far_as_a_long_record() {
    let (db, families) = database();
    let (family, one) = (&families[0], &families[..1]);
    put(&db, one, b"before").expect("written");
    let record = UnnumberedRecord { kind: RecordKind::Batch, payload: vec![0; SHORT_BYTES + 1], numbers: smallvec![] };
    let (stop, gate) = gate();
    thread::scope(|scope| {
        let joins = scope.spawn(|| join(&db, one, Some(record), vec![stop]));
        gate.is_reached();
        let before = db.core().pipeline.visible();
        let (sender, receiver) = mpsc::channel();
        let db = &db;
        scope.spawn(move || sender.send(put(db, one, b"later")));
        let is_inserted = || {
            let mutable = &family.view().mutable;
            mutable.id() == family.mutable_id() && mutable.memtable().entries() == 1
        };
        let is_written = || receiver.recv_timeout(Duration::from_millis(1)).is_ok();
        let inserted = (0..20_000).any(|_| is_inserted() || is_written());
        let visible = db.core().pipeline.visible();
        drop(gate); // in any case
        assert!(inserted, "the memtable that follows is not shown");
        assert_eq!(visible, before, "what is not in the log is not visible");
        joins.join().expect("joined");
        receiver.recv_timeout(LONG).expect("it goes on, and had not").expect("written");
    });
    assert_holds_all(&db, one);
}

/// Whatever has become of the memtables meanwhile.
#[test]
fn a_writer_that_comes_late_to_show_a_change_does_no_harm() {
    let (db, families) = database();
    let (family, one) = (&families[0], &families[..1]);
    put(&db, one, b"before").expect("written");
    let ((first, owner), (second, writer)) = (gate(), gate());
    let old = family.view().mutable.clone();
    thread::scope(|scope| {
        let joins = scope.spawn(|| join(&db, one, None, vec![first, second]));
        owner.is_reached();
        let (sender, receiver) = mpsc::channel();
        let db = &db;
        scope.spawn(move || sender.send(put(db, one, b"later")));
        writer.is_reached();
        drop(owner);
        joins.join().expect("joined");
        let next = family.view().mutable.clone();
        assert!(!Arc::ptr_eq(&old, &next));
        db.flush(&[family]).expect("flushed");
        put(db, &families[1..], b"meanwhile").expect("written");
        db.core().release_logs(); // which raises what the empty memtable begins after
        assert!(next.created_at().0 > old.largest_seq().expect("sealed").0 + 1);
        let numbers =
            || [&old, &next].map(|memtable| (memtable.created_at(), memtable.largest_seq(), memtable.logged_through()));
        let before = numbers();
        put(db, one, b"meanwhile").expect("written");
        drop(writer);
        receiver.recv_timeout(LONG).expect("it goes on").expect("written");
        assert_eq!(numbers(), before);
    });
    assert_holds_all(&db, one);
    db.flush(&[family]).expect("flushed");
    assert_holds_all(&db, one);
}
