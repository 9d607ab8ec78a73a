//! Transactions that are prepared before they are committed: crashes at every operation of a life with two families, and
//! a history of several threads over kills. What a crash leaves prepared is ended by the next process.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use testkit::engine::{
    Change, Db, ErrorKind, Family, LockLimits, LockMode, LockTable, OpenOptions, Patience, Pessimistic,
    PreparedTransactions, ReadOptions, Result, Track, Transaction, ValueKind, WriteOptions,
};
use testkit::history::{End, Isolation, List, Record, check};
use testkit::profile;
use testkit::random::Random;
use testkit::threads::{start, within};
use vfs::{CrashPolicy, MemoryVfs, RealVfs, Vfs};

const DIR: &str = "/db";
const LIMIT: Duration = Duration::from_secs(120);
const KEYS: u64 = 8;

/// A database with locks, and the prepared transactions that nobody holds.
struct Opened {
    db: Db,
    locks: Arc<LockTable>,
    pool: Arc<PreparedTransactions>,
    wait_max: Duration,
}

type State = BTreeMap<String, List>;

impl Opened {
    fn try_open(vfs: &Arc<MemoryVfs>, profile: &str, wait_max: Duration) -> Result<Opened> {
        Opened::with(&profile::by_name(profile).unwrap().open_options(vfs.clone(), ["other"]), wait_max)
    }

    fn with(options: &OpenOptions, wait_max: Duration) -> Result<Opened> {
        let db = Db::open(DIR, options)?;
        let locks = Arc::new(LockTable::of(&db, LockLimits::default()));
        let pool = PreparedTransactions::of(&db, &locks, locking(wait_max))?;
        Ok(Opened { db, locks, pool, wait_max })
    }

    fn of(vfs: &Arc<MemoryVfs>, profile: &str) -> Opened {
        Opened::try_open(vfs, profile, Duration::ZERO).unwrap()
    }

    fn begin(&self) -> Transaction {
        Transaction::pessimistic(&self.locks, locking(self.wait_max)).in_pool(&self.pool)
    }

    /// A key stands in a family by its number.
    fn family_of(&self, key: u64) -> Arc<Family> {
        self.db.family(if key.is_multiple_of(2) { "default" } else { "other" }).unwrap()
    }

    /// Appends a number to the list of a key. Returns the list before.
    fn append(&self, transaction: &mut Transaction, key: u64, number: u64) -> Result<List> {
        let (family, bytes) = (self.family_of(key), key.to_be_bytes());
        let read =
            transaction.get_for_update(&self.db, &family, &bytes, LockMode::Exclusive, &ReadOptions::default())?;
        let before = list(read.as_deref());
        let appended = text(&[before.clone(), vec![number]].concat());
        transaction.write(&self.db, &family, set(&bytes, appended.as_bytes()), Track::Tracked)?;
        Ok(before)
    }

    fn state(&self) -> State {
        let value = |key: u64| self.db.get(&self.family_of(key), &key.to_be_bytes(), &ReadOptions::default()).unwrap();
        (0..KEYS).map(|key| (key.to_string(), list(value(key).as_deref()))).collect()
    }
}

fn locking(wait_max: Duration) -> Pessimistic {
    Pessimistic { patience: Patience { wait_max: Some(wait_max), deadlock_depth: Some(50) }, expires_after: None }
}

fn list(bytes: Option<&[u8]>) -> List {
    let text = String::from_utf8(bytes.unwrap_or_default().to_vec()).unwrap();
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

fn text(list: &List) -> String {
    list.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn set<'a>(key: &'a [u8], value: &'a [u8]) -> Change<'a> {
    Change { kind: ValueKind::Value, key, value }
}

fn name_of(transaction: &Transaction) -> u64 {
    std::str::from_utf8(transaction.name()).unwrap().parse().unwrap()
}

fn synced(sync: bool) -> WriteOptions {
    WriteOptions { sync, ..WriteOptions::default() }
}

/// What a crash must leave: what is read, and the names of prepared transactions.
type Seen = (State, BTreeSet<u64>);

/// The keys of a transaction, one in each family.
fn keys_of(number: u64) -> [u64; 2] {
    [number * 2 % KEYS, (number * 2 + 3) % KEYS]
}

/// Transactions that are prepared, and ended up to three transactions later; flushes and ordinary writes come between.
/// Calls `seen` after each step, and whether all until then is synced.
fn life(opened: &Opened, mut seen: impl FnMut(Seen, bool)) -> Result<()> {
    let mut random = Random::new(7);
    let mut open: Vec<Transaction> = Vec::new();
    let names = |open: &[Transaction]| open.iter().map(name_of).collect::<BTreeSet<_>>();
    for number in 1..22u64 {
        while open.len() > random.below(3) as usize {
            let mut transaction = open.remove(random.below(open.len() as u64) as usize);
            let sync = random.chance(40);
            if random.chance(70) {
                transaction.commit(&opened.db, &synced(sync))?;
            } else {
                transaction.rollback(&opened.db, &synced(sync))?;
            }
            seen((opened.state(), names(&open)), sync);
        }
        if random.chance(25) {
            opened.db.flush(&[&opened.family_of(number)])?;
        }
        let mut transaction = opened.begin();
        let appended =
            keys_of(number).into_iter().try_for_each(|key| opened.append(&mut transaction, key, number).map(drop));
        if appended.is_err_and(|error| error.kind() == ErrorKind::TimedOut) {
            continue; // a prepared transaction has the key
        }
        let sync = random.chance(40);
        transaction.set_name(&opened.db, number.to_string().as_bytes())?;
        transaction.prepare(&opened.db, &synced(sync))?;
        open.push(transaction);
        seen((opened.state(), names(&open)), sync);
        let filler = vec![7; random.below(9_000) as usize];
        opened.db.put(&opened.family_of(number + 1), b"filler", &filler, &WriteOptions::default())?;
    }
    open.clear(); // nobody holds them
    Ok(())
}

/// Ends what is prepared: each is whole, so committing it appends its number to both of its keys.
fn end_all(opened: &Opened, (mut expected, names): Seen) {
    let found = opened.pool.take_all();
    assert_eq!(found.iter().map(name_of).collect::<BTreeSet<_>>(), names);
    for mut transaction in found {
        let number = name_of(&transaction);
        let busy = opened.append(&mut opened.begin(), keys_of(number)[1], 99).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::TimedOut, "recovery locks the keys");
        transaction.commit(&opened.db, &WriteOptions::default()).unwrap();
        keys_of(number).iter().for_each(|key| expected.get_mut(&key.to_string()).unwrap().push(number));
        assert_eq!(opened.state(), expected);
    }
}

#[test]
fn a_crash_leaves_each_step_of_a_transaction_done_or_not() {
    for profile in ["tiny", "vector"] {
        crash_everywhere(profile);
    }
}

fn crash_everywhere(profile: &str) {
    let whole = MemoryVfs::new(1);
    let opened = Opened::of(&whole, profile);
    // Each state, with the number of file-system operations behind its step, and whether it is durable then.
    let mut states = vec![(0, (opened.state(), BTreeSet::new()), true)];
    life(&opened, |seen, is_synced| states.push((whole.operations(), seen, is_synced))).unwrap();
    assert!(states.len() > 25 && states.iter().any(|(_, (_, names), _)| names.len() > 1), "{} states", states.len());
    let operations = whole.operations();
    for policy in CrashPolicy::ALL {
        for operation in (0..operations).step_by(5) {
            let vfs = MemoryVfs::new(1);
            vfs.crash_at(operation, operation, policy);
            if let Ok(opened) = Opened::try_open(&vfs, profile, Duration::ZERO) {
                let _crashed = life(&opened, |_, _| ());
            }
            let Some(image) = vfs.take_crash_image() else { continue };
            let opened = Opened::of(&image, profile);
            let names = opened.pool.take_all().iter().map(name_of).collect(); // they go back
            let found = (opened.state(), names);
            let at = states.iter().rposition(|(_, state, _)| *state == found);
            let at = at.unwrap_or_else(|| panic!("{profile}, {policy:?} at {operation}: {found:?} is between steps"));
            let acknowledged = states.partition_point(|(behind, ..)| *behind <= operation) - 1;
            let keeps_all = policy == CrashPolicy::ProcessKilled;
            let kept = (0..=acknowledged).rfind(|&step| keeps_all || states.get(step).unwrap().2).unwrap();
            assert!(at >= kept, "{profile}, {policy:?} at {operation}: step {kept} was durable, the state is {at}");
            end_all(&opened, found);
        }
    }
}

/// Memtables in files say where replay begins: not behind a prepare (P1), from the moment when they are sealed.
#[test]
fn a_kill_in_a_flush_keeps_what_is_prepared() {
    for profile in ["converted", "referring"] {
        let with_one_family = |vfs: &Arc<MemoryVfs>| {
            let options = profile::by_name(profile).unwrap().open_options(vfs.clone(), [""; 0]);
            Opened::with(&options, Duration::ZERO)
        };
        let flushed_from = |vfs: &Arc<MemoryVfs>| -> Result<u64> {
            let opened = with_one_family(vfs)?;
            let mut transaction = opened.begin();
            transaction.write(&opened.db, &opened.family_of(0), set(b"key", b"1"), Track::Tracked)?;
            transaction.set_name(&opened.db, b"7")?;
            transaction.prepare(&opened.db, &synced(true))?;
            opened.db.put(&opened.family_of(0), b"another", b"1", &synced(true))?;
            let from = vfs.operations();
            opened.db.flush(&[&opened.family_of(0)])?;
            Ok(from)
        };
        let whole = MemoryVfs::new(1);
        let from = flushed_from(&whole).unwrap();
        assert!(whole.operations() > from + 4, "{profile}: a flush makes calls");
        for operation in from..whole.operations() {
            let vfs = MemoryVfs::new(1);
            vfs.crash_at(operation, operation, CrashPolicy::ProcessKilled);
            let _killed = flushed_from(&vfs);
            let opened = with_one_family(&vfs.take_crash_image().unwrap()).unwrap();
            let names: Vec<_> = opened.pool.take_all().iter().map(name_of).collect();
            assert_eq!(names, [7], "{profile}, killed at {operation}");
        }
    }
}

/// A directory of RocksDB 11.8.1 with transactions that were prepared before and after flushes, ended and not.
fn rocksdbs() -> Arc<MemoryVfs> {
    let fixture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/fixtures/db-prepared"));
    let (real, vfs) = (RealVfs::new(), MemoryVfs::new(1));
    vfs.create_dir_all(Path::new(DIR)).unwrap();
    for name in real.read_dir(fixture).unwrap() {
        let bytes = vfs::read_all(&*real, &fixture.join(&name), 1 << 20, vfs::IoClass::Other).unwrap();
        vfs.write_file(&Path::new(DIR).join(&name), &bytes).unwrap();
    }
    vfs
}

fn take_over(vfs: &Arc<MemoryVfs>) -> Result<Opened> {
    let mut options = profile::by_name("tiny").unwrap().open_options(vfs.clone(), ["second"]);
    options.adopt_rocksdb = true;
    Opened::with(&options, Duration::ZERO)
}

impl Opened {
    fn text(&self, family: &str, key: &str) -> Option<String> {
        let family = self.db.family(family).unwrap();
        let value = self.db.get(&family, key.as_bytes(), &ReadOptions::default()).unwrap()?;
        Some(String::from_utf8(value.to_vec()).unwrap())
    }

    /// Each transaction that waits, by its name, in the order of their prepares.
    fn waiting(&self) -> Vec<(String, Transaction)> {
        let name = |transaction: &Transaction| String::from_utf8(transaction.name().to_vec()).unwrap();
        self.pool.take_all().into_iter().map(|transaction| (name(&transaction), transaction)).collect()
    }

    fn is_locked(&self, family: &str, key: &str) -> bool {
        let family = self.db.family(family).unwrap();
        let read = ReadOptions::default();
        let got = self.begin().get_for_update(&self.db, &family, key.as_bytes(), LockMode::Exclusive, &read);
        got.is_err_and(|error| error.kind() == ErrorKind::TimedOut)
    }

    /// What RocksDB reads, and has prepared.
    fn check_as_rocksdb(&self, context: &str) {
        let committed =
            [("key03", "after the commit"), ("key05", "value 5"), ("key06", "value 6"), ("key13", "the last")];
        for (key, value) in committed {
            assert_eq!(self.text("default", key).as_deref(), Some(value), "{context}: {key}");
        }
        assert_eq!(self.text("default", "key04"), None, "{context}");
        for (key, value) in [("new", "committed"), ("key06", "second 6"), ("key07", "committed"), ("key08", "between")]
        {
            assert_eq!(self.text("second", key).as_deref(), Some(value), "{context}: {key}");
        }
        let waiting = self.waiting(); // they go back
        let names: Vec<_> = waiting.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["left old", "left empty", "left late"], "{context}");
        for (family, key) in [("default", "key06"), ("second", "key06"), ("default", "key11"), ("second", "key12")] {
            assert!(self.is_locked(family, key), "{context}: {family} {key}");
        }
        assert!(!self.is_locked("default", "key03") && !self.is_locked("default", "key05"), "{context}");
    }
}

#[test]
fn what_rocksdb_left_prepared_is_ended_here() {
    let vfs = rocksdbs();
    let opened = take_over(&vfs).unwrap();
    opened.check_as_rocksdb("taken over");
    for (name, mut transaction) in opened.waiting() {
        match name.as_str() {
            "left old" => transaction.commit(&opened.db, &synced(true)).unwrap(),
            "left empty" => transaction.rollback(&opened.db, &synced(true)).unwrap(),
            _ => {}
        }
    }
    let killed = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    let opened = take_over(&killed).unwrap();
    let texts = |key| (opened.text("default", key), opened.text("second", key));
    assert_eq!(texts("key06"), (Some("left old".to_owned()), Some("left old".to_owned())));
    let [(name, late)] = &mut opened.waiting()[..] else { panic!("one waits") };
    assert_eq!(name, "left late");
    late.commit(&opened.db, &WriteOptions::default()).unwrap();
    assert_eq!(texts("key10").0.as_deref(), Some("left late"));
    assert_eq!((texts("key11").0, texts("key12").1), (None, None));
    assert!(!opened.is_locked("default", "key10") && opened.waiting().is_empty());
}

#[test]
fn a_crash_of_a_takeover_loses_nothing_that_is_prepared() {
    let whole = rocksdbs();
    let first = whole.operations();
    let opened = take_over(&whole).unwrap();
    let operations = whole.operations();
    drop(opened);
    for policy in CrashPolicy::ALL {
        for operation in (first..operations).step_by(3) {
            let vfs = rocksdbs();
            vfs.crash_at(operation, operation, policy);
            let _crashed = take_over(&vfs);
            let Some(image) = vfs.take_crash_image() else { continue };
            let context = format!("{policy:?} at {operation} of {operations}");
            let opened = take_over(&image).unwrap_or_else(|error| panic!("{context}: {error}"));
            opened.check_as_rocksdb(&context);
        }
    }
}

/// Appends to some keys, prepares most times, and commits.
struct Worker {
    opened: Arc<Opened>,
    next: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    /// Set before the kill: what ends behind it may be there or not.
    dies: Arc<AtomicBool>,
    seed: u64,
}

impl Worker {
    fn run(&self) -> Vec<Record> {
        let mut random = Random::new(self.seed);
        let mut history = Vec::new();
        while !self.ends.load(Ordering::Acquire) {
            history.push(self.one(&mut random));
        }
        history
    }

    fn one(&self, random: &mut Random) -> Record {
        let mut record = Record { number: self.next.fetch_add(1, Ordering::Relaxed), ..Record::default() };
        let mut transaction = self.opened.begin();
        let done = self.append_and_end(&mut transaction, &mut record, random);
        record.end = match done {
            Ok(()) if self.dies.load(Ordering::Acquire) => End::Unknown,
            Ok(()) if record.number.is_multiple_of(5) => End::Aborted,
            Ok(()) => End::Committed,
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Deadlock), "{error}");
                End::Aborted
            }
        };
        record
    }

    /// Every fifth is rolled back.
    fn append_and_end(&self, transaction: &mut Transaction, record: &mut Record, random: &mut Random) -> Result<()> {
        let Opened { db, .. } = &*self.opened;
        let keys: BTreeSet<u64> = (0..1 + random.below(3)).map(|_| random.below(KEYS)).collect();
        for key in keys {
            record.reads.insert(key.to_string(), self.opened.append(transaction, key, record.number)?);
            record.appends.insert(key.to_string());
        }
        if random.chance(80) {
            transaction.set_name(db, record.number.to_string().as_bytes())?;
            transaction.prepare(db, &synced(random.chance(10)))?;
            std::thread::yield_now();
        }
        match record.number % 5 {
            0 => transaction.rollback(db, &WriteOptions::default()),
            _ => transaction.commit(db, &WriteOptions::default()),
        }
    }
}

#[test]
fn a_history_of_prepared_transactions_over_kills_is_serializable() {
    within(LIMIT, || {
        let mut vfs = MemoryVfs::new(1);
        let mut history: Vec<Record> = Vec::new();
        let mut recovered = 0;
        let next = Arc::new(AtomicU64::new(1));
        for round in 0..8 {
            vfs.set_runs_inline(false);
            let opened = Arc::new(Opened::try_open(&vfs, "tiny", Duration::from_secs(60)).unwrap());
            for mut transaction in opened.pool.take_all() {
                recovered += 1;
                match name_of(&transaction) % 5 {
                    0 => transaction.rollback(&opened.db, &WriteOptions::default()).unwrap(),
                    _ => transaction.commit(&opened.db, &WriteOptions::default()).unwrap(),
                }
            }
            let (ends, dies) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let worker = |n| {
                let (opened, next, ends, dies) = (opened.clone(), next.clone(), ends.clone(), dies.clone());
                let worker = Worker { opened, next, ends, dies, seed: round * 10 + n };
                start(move || worker.run())
            };
            let workers: Vec<_> = (0..4).map(worker).collect();
            let from = next.load(Ordering::Relaxed);
            while next.load(Ordering::Relaxed) < from + 150 {
                let family = opened.family_of(next.load(Ordering::Relaxed));
                opened.db.put(&family, b"filler", &[7; 2000], &WriteOptions::default()).unwrap();
            }
            dies.store(true, Ordering::Release);
            let image = vfs.crash_clone(round, CrashPolicy::ProcessKilled);
            ends.store(true, Ordering::Release);
            history.extend(workers.into_iter().flat_map(|worker| worker.join().unwrap()));
            opened.db.close().unwrap();
            vfs = image;
        }
        assert!(recovered > 0, "no kill met a prepared transaction");
        let opened = Opened::of(&vfs, "tiny");
        for mut transaction in opened.pool.take_all() {
            transaction.commit(&opened.db, &WriteOptions::default()).unwrap();
        }
        check(&history, &opened.state(), Isolation::Serializable).unwrap();
    });
}
