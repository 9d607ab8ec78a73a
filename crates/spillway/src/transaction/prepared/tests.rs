use std::path::Path;
use std::time::Duration;

use base::options::WalRecoveryMode;
use base::{ErrorKind, FamilyId, FileNumber};
use vfs::{CrashPolicy, MemoryVfs, Vfs};

use super::*;
use crate::internal::{FamilyOptions, OpenOptions, ReadOptions, WriteBatch};
use crate::maintenance::check::{CheckOptions, check};
use crate::transaction::Change;
use crate::transaction::locks::{LockLimits, Patience};
use crate::version::file_name::{FileType, format, numbers_in};
use crate::version::recover::recover;

/// A database, its locks, and the transactions without a handle.
struct Opened {
    db: Database,
    locks: Arc<LockTable>,
    pool: Arc<PreparedTransactions>,
}

const DIR: &str = "/db";
const HASTY: Pessimistic =
    Pessimistic { patience: Patience { wait_max: Some(Duration::ZERO), deadlock_depth: None }, expires_after: None };

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    options.db.log_file_bytes = 64 << 10;
    options.db.create_missing_column_families = true;
    options.family("other", FamilyOptions::default())
}

impl Opened {
    fn of(vfs: &Arc<MemoryVfs>) -> Opened {
        Opened::by(&options(vfs))
    }

    fn by(options: &OpenOptions) -> Opened {
        let db = Database::open(DIR, options).expect("opened");
        let locks = Arc::new(LockTable::of(&db, LockLimits::default()));
        let pool = PreparedTransactions::of(&db, &locks, HASTY).expect("locked");
        Opened { db, locks, pool }
    }

    fn begin(&self) -> Transaction {
        Transaction::pessimistic(&self.locks, HASTY).in_pool(&self.pool)
    }

    /// Puts a value under the key in both families, and prepares.
    fn prepared(&self, name: &str, key: &str) -> Transaction {
        let mut transaction = self.begin();
        self.change(&mut transaction, key, name).expect("written");
        transaction.set_name(&self.db, name.as_bytes()).expect("named");
        transaction.prepare(&self.db, &WriteOptions::synced()).expect("prepared");
        transaction
    }

    fn change(&self, transaction: &mut Transaction, key: &str, value: &str) -> Result<()> {
        let change = Change { kind: ValueKind::Value, key: key.as_bytes(), value: value.as_bytes() };
        self.db.families().iter().try_for_each(|family| transaction.write(&self.db, family, change, Track::Tracked))
    }

    fn commit(&self, mut transaction: Transaction) {
        transaction.commit(&self.db, &WriteOptions::synced()).expect("committed");
    }

    fn roll_back(&self, mut transaction: Transaction) {
        transaction.rollback(&self.db, &WriteOptions::synced()).expect("rolled back");
    }

    /// The value in both families.
    fn get(&self, key: &str) -> Option<String> {
        let get = |family: &Arc<_>| self.db.get(family, key.as_bytes(), &ReadOptions::default()).expect("read");
        let found: Vec<_> = self.db.families().iter().map(get).collect();
        assert!(found.iter().all(|value| value.as_deref() == found[0].as_deref()), "a transaction is whole (D3)");
        found[0].as_deref().map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// Fills logs and flushes, until several logs have come and gone.
    fn fill(&self) {
        for round in 0..6u8 {
            for i in 0..20u8 {
                let value = vec![i; 4 << 10];
                self.db
                    .put(&self.db.default_family(), &[b'z', round, i], &value, &WriteOptions::default())
                    .expect("put");
            }
            self.flush();
        }
    }

    fn flush(&self) {
        let families = self.db.families();
        self.db.flush(&families.iter().collect::<Vec<_>>()).expect("flushed");
    }

    /// Prepared transactions without a handle, and all values under the keys.
    fn names(&self) -> Vec<String> {
        let waiting = self.pool.take_all();
        waiting.iter().map(|transaction| String::from_utf8_lossy(transaction.name()).into_owned()).collect()
    }
}

fn logs(vfs: &MemoryVfs) -> usize {
    numbers_in(vfs, Path::new(DIR), FileType::Log).expect("listed").len()
}

fn reopened(opened: Opened, vfs: &Arc<MemoryVfs>) -> Opened {
    opened.db.close().expect("closed");
    drop(opened);
    Opened::of(vfs)
}

fn crashed(opened: Opened, vfs: &Arc<MemoryVfs>, policy: CrashPolicy) -> (Opened, Arc<MemoryVfs>) {
    let image = vfs.crash_clone(7, policy);
    drop(opened);
    let reopened = Opened::of(&image);
    (reopened, image)
}

fn text<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.expect_err("refused").message().to_owned()
}

#[test]
fn a_prepared_transaction_is_seen_once_it_is_committed() {
    let vfs = MemoryVfs::new(1);
    let opened = Opened::of(&vfs);
    let transaction = opened.prepared("one", "k");
    assert_eq!(opened.get("k"), None);
    assert_eq!(opened.change(&mut opened.begin(), "k", "2").expect_err("locked").kind(), ErrorKind::TimedOut);
    opened.commit(transaction);
    assert_eq!(opened.get("k").as_deref(), Some("one"));
    opened.roll_back(opened.prepared("two", "k"));
    opened.change(&mut opened.begin(), "k", "2").expect("free");
    let opened = reopened(opened, &vfs);
    assert_eq!((opened.get("k").as_deref(), opened.names().len()), (Some("one"), 0));
}

#[test]
fn what_is_prepared_is_there_after_each_end_of_the_process() {
    for policy in [None, Some(CrashPolicy::ProcessKilled), Some(CrashPolicy::NothingUnsyncedKept)] {
        for flushed in [false, true] {
            let mut vfs = MemoryVfs::new(1);
            let mut opened = Opened::of(&vfs);
            for (name, key) in [("committed", "a"), ("rolled", "b"), ("dropped", "c"), ("later", "d")] {
                drop(opened.prepared(name, key));
            }
            // Twice: what one recovery found is there for the next.
            for _ in 0..2 {
                if flushed {
                    opened.fill();
                }
                (opened, vfs) = match policy {
                    None => (reopened(opened, &vfs), vfs),
                    Some(policy) => crashed(opened, &vfs, policy),
                };
                assert_eq!(opened.names(), ["committed", "rolled", "dropped", "later"], "{policy:?}");
            }
            for transaction in opened.pool.take_all() {
                let key = transaction.tracked.iter().next().expect("locked").user_key.to_vec();
                let key = String::from_utf8(key).expect("text");
                assert!(opened.change(&mut opened.begin(), &key, "2").is_err(), "locked");
                assert_eq!(
                    text(opened.begin().set_name(&opened.db, transaction.name())).split(' ').next(),
                    Some("Duplicate")
                );
                match transaction.name() {
                    b"committed" | b"later" => opened.commit(transaction),
                    b"rolled" => opened.roll_back(transaction),
                    _ => drop(transaction),
                }
            }
            let opened = reopened(opened, &vfs);
            assert_eq!(opened.names(), ["dropped"]);
            let values = ["a", "b", "c", "d"].map(|key| opened.get(key));
            assert_eq!(values, [Some("committed".into()), None, None, Some("later".into())], "{policy:?}");
        }
    }
}

#[test]
fn a_log_stays_while_a_prepare_in_it_is_needed() {
    for commits in [true, false] {
        let vfs = MemoryVfs::new(1);
        let opened = Opened::of(&vfs);
        let transaction = opened.prepared("old", "k");
        opened.fill();
        let kept = logs(&vfs);
        assert!(kept > 3, "{kept} logs: all since the prepare");
        if commits {
            opened.commit(transaction)
        } else {
            opened.roll_back(transaction)
        }
        assert_eq!(logs(&vfs), kept, "the end is not flushed");
        let (opened, vfs) = crashed(opened, &vfs, CrashPolicy::NothingUnsyncedKept);
        assert_eq!((opened.get("k").is_some(), opened.names().len()), (commits, 0));
        opened.flush();
        opened.fill();
        assert!(logs(&vfs) < 3, "{} logs", logs(&vfs));
        let (opened, _) = crashed(opened, &vfs, CrashPolicy::NothingUnsyncedKept);
        assert_eq!((opened.get("k").is_some(), opened.names().len()), (commits, 0));
    }
}

/// The commit's family is flushed, and the prepare's log gone; the commit's log stays for another family.
#[test]
fn a_commit_in_tables_needs_no_prepare() {
    let vfs = MemoryVfs::new(1);
    let opened = Opened::of(&vfs);
    let (default, other) = (opened.db.default_family(), opened.db.family("other").expect("there"));
    let mut transaction = opened.begin();
    let change = Change { kind: ValueKind::Value, key: b"k", value: b"1" };
    transaction.write(&opened.db, &default, change, Track::Tracked).expect("written");
    transaction.set_name(&opened.db, b"t").expect("named");
    transaction.prepare(&opened.db, &WriteOptions::synced()).expect("prepared");
    opened.fill();
    opened.commit(transaction);
    opened.db.put(&other, b"o", b"1", &WriteOptions::synced()).expect("put");
    opened.db.flush(&[&default]).expect("flushed");
    for policy in [CrashPolicy::NothingUnsyncedKept, CrashPolicy::ProcessKilled] {
        let image = vfs.crash_clone(7, policy);
        let opened = Opened::of(&image);
        let get = |family: Arc<_>, key: &[u8]| opened.db.get(&family, key, &ReadOptions::default()).expect("read");
        assert_eq!(get(opened.db.default_family(), b"k").as_deref(), Some(&b"1"[..]));
        assert_eq!(get(opened.db.family("other").expect("there"), b"o").as_deref(), Some(&b"1"[..]));
    }
}

/// Replay flushes within a record of two families: a commit's, or a large batch's. The family that ends first stays idle, and the
/// record's log stays for another transaction.
#[test]
fn a_flush_within_a_replayed_record_leaves_no_need_of_an_older_file() {
    for is_large_batch in [false, true] {
        let vfs = MemoryVfs::new(1);
        let options_in = |vfs: &Arc<MemoryVfs>| {
            let mut options = options(vfs);
            options.db.log_file_bytes = 4 << 20;
            if is_large_batch {
                options.db.large_batch_bytes = 4096;
            }
            options
        };
        let opened = Opened::by(&options_in(&vfs));
        // Or a large batch is flushed by its writer, whose vfs runs inline.
        opened.db.core().state.lock().families.values_mut().for_each(|family| family.flushing = true);
        let mut batch = WriteBatch::new();
        batch.put(opened.db.family("other").expect("there").id(), b"o", b"1");
        (0..60u8).for_each(|i| batch.put(FamilyId::DEFAULT, &[b'k', i], &[i; 9000]));
        let (opened, vfs) = match is_large_batch {
            true => {
                opened.db.write(&batch, &WriteOptions::synced()).expect("written");
                (opened, vfs)
            }
            false => {
                let mut transaction = opened.begin();
                transaction.rebuild_from(&opened.db, &batch).expect("written");
                transaction.set_name(&opened.db, b"first").expect("named");
                transaction.prepare(&opened.db, &WriteOptions::synced()).expect("prepared");
                drop(transaction);
                let vfs = vfs.crash_clone(7, CrashPolicy::ProcessKilled);
                (Opened::by(&options_in(&vfs)), vfs)
            }
        };
        let number_of = |kind| numbers_in(&*vfs, Path::new(DIR), kind).expect("listed").first().copied();
        let kind = if is_large_batch { FileType::LargeBatch } else { FileType::Log };
        let oldest = number_of(kind).expect("the file that the record needs");
        opened.pool.take_all().into_iter().for_each(|transaction| opened.commit(transaction));
        drop(opened.prepared("second", "z"));
        let vfs = vfs.crash_clone(7, CrashPolicy::ProcessKilled);
        let mut small = options_in(&vfs);
        small.db.db_write_buffer_size = 200 << 10;
        let opened = Opened::by(&small);
        opened.db.flush(&[&opened.db.default_family()]).expect("flushed");
        let row = recover(&*vfs, Path::new(DIR)).expect("read").wal_range.expect("noted");
        let live = opened.db.core().logs.pin_all();
        assert!(row.oldest > oldest && live.iter().all(|(number, _)| *number != oldest), "the file is let go");
        let _due = vfs.remove_file(&Path::new(DIR).join(format(kind, oldest)));
        for policy in [CrashPolicy::NothingUnsyncedKept, CrashPolicy::ProcessKilled] {
            let opened = Opened::by(&options_in(&vfs.crash_clone(7, policy)));
            assert_eq!(opened.names(), ["second"], "{policy:?}");
            let get = |name, key: &[u8]| {
                opened.db.get(&opened.db.family(name).expect("there"), key, &ReadOptions::default()).expect("read")
            };
            assert_eq!(get("other", b"o").as_deref(), Some(&b"1"[..]), "{policy:?}");
            assert!((0..60u8).all(|i| get("default", &[b'k', i]).is_some()), "{policy:?}");
        }
    }
}

#[test]
fn an_empty_transaction_has_two_phases_too() {
    let vfs = MemoryVfs::new(1);
    let opened = Opened::of(&vfs);
    let mut transaction = opened.begin();
    transaction.set_name(&opened.db, b"empty").expect("named");
    transaction.prepare(&opened.db, &WriteOptions::default()).expect("prepared");
    drop(transaction);
    let opened = reopened(opened, &vfs);
    let mut found = opened.pool.take_all();
    opened.commit(found.remove(0));
    assert!(found.is_empty() && reopened(opened, &vfs).names().is_empty());
}

#[test]
fn refusals_are_rocksdbs() {
    let vfs = MemoryVfs::new(1);
    let opened = Opened::of(&vfs);
    let (db, write) = (&opened.db, WriteOptions::default());
    let mut optimistic = Transaction::default();
    assert_eq!(text(optimistic.set_name(db, b"n")), "Optimistic transactions cannot be named.");
    assert_eq!(text(optimistic.prepare(db, &write)), "Two phase commit not supported for optimistic transactions.");
    let mut transaction = opened.begin();
    assert_eq!(text(transaction.prepare(db, &write)), "Cannot prepare a transaction that has not been named.");
    for name in [&b""[..], &[b'n'; 513]] {
        let refused = text(transaction.set_name(db, name));
        assert_eq!(refused, "Transaction name length must be between 1 and 512 chars.");
    }
    transaction.set_name(db, &[b'n'; 512]).expect("named");
    assert_eq!(text(transaction.set_name(db, b"m")), "Transaction has already been named.");
    opened.change(&mut transaction, "k", "1").expect("written");
    transaction.set_savepoint();
    transaction.prepare(db, &write).expect("prepared");
    assert_eq!(text(transaction.prepare(db, &write)), "Transaction has already been prepared.");
    assert_eq!(text(transaction.set_name(db, b"m")), "Transaction is beyond state for naming.");
    assert!(opened.change(&mut transaction, "l", "1").is_err() && !transaction.rollback_to_savepoint());
    transaction.commit(db, &write).expect("committed");
    assert_eq!(text(transaction.commit(db, &write)), "Transaction has already been committed.");
    assert_eq!(text(transaction.rollback(db, &write)), "This transaction has already been committed.");
    assert_eq!(text(transaction.prepare(db, &write)), "Transaction has already been committed.");
    let mut transaction = opened.prepared("r", "k");
    transaction.rollback(db, &write).expect("rolled back");
    assert_eq!(text(transaction.commit(db, &write)), "Transaction has already been rolledback.");
    assert_eq!(text(transaction.rollback(db, &write)), "Two phase transaction is not in state for rollback.");
}

#[test]
fn what_was_not_prepared_is_not_committed() {
    let vfs = MemoryVfs::new(1);
    let opened = Opened::of(&vfs);
    let mut transaction = opened.prepared("t", "k");
    transaction.batch().write().add_unindexed(FamilyId::DEFAULT, ValueKind::Value, b"late", b"");
    assert!(text(transaction.commit(&opened.db, &WriteOptions::default())).contains("changed after the prepare"));
    assert!(transaction.is_prepared() && opened.get("k").is_none());
    opened.roll_back(transaction);
    // A merge that no operator could apply is refused before it is in the log.
    let mut transaction = opened.begin();
    let merge = Change { kind: ValueKind::Merge, key: b"m", value: b"1" };
    transaction.write(&opened.db, &opened.db.default_family(), merge, Track::Tracked).expect("written");
    transaction.set_name(&opened.db, b"m").expect("named");
    assert!(text(transaction.prepare(&opened.db, &WriteOptions::default())).contains("no merge operator"));
    assert!(!transaction.is_prepared());
}

#[test]
fn an_expired_transaction_is_not_prepared_and_a_prepared_one_does_not_expire() {
    let vfs = MemoryVfs::new(1);
    let opened = Opened::of(&vfs);
    let begin = || {
        let expiring = Pessimistic { expires_after: Some(Duration::from_millis(10)), ..HASTY };
        Transaction::pessimistic(&opened.locks, expiring).in_pool(&opened.pool)
    };
    let (mut late, mut prepared) = (begin(), begin());
    opened.change(&mut late, "late", "1").expect("written");
    opened.change(&mut prepared, "k", "1").expect("written");
    late.set_name(&opened.db, b"late").expect("named");
    prepared.set_name(&opened.db, b"prepared").expect("named");
    prepared.prepare(&opened.db, &WriteOptions::default()).expect("prepared");
    opened.db.vfs().sleep(Duration::from_millis(20));
    assert_eq!(late.prepare(&opened.db, &WriteOptions::default()).expect_err("late").kind(), ErrorKind::Expired);
    assert!(opened.change(&mut opened.begin(), "k", "2").is_err(), "the locks are kept");
    opened.commit(prepared);
}

#[test]
fn readers_pass_over_what_is_prepared_and_a_checkpoint_has_it() {
    let vfs = MemoryVfs::new(1);
    let opened = Opened::of(&vfs);
    drop(opened.prepared("t", "k"));
    opened.flush();
    drop(opened.prepared("a", "c"));
    opened.commit(opened.prepared("ended", "d"));
    opened.db.export(Path::new("/export"), &Default::default()).map(drop).expect("exported");
    opened.db.checkpoint(Path::new("/copy")).expect("copied");
    let reader = Database::open(DIR, &OpenOptions { read_only: true, ..options(&vfs) }).expect("opened");
    let found = reader.get(&reader.default_family(), b"k", &ReadOptions::default()).expect("read");
    assert!(found.is_none());
    drop(reader);
    opened.db.close().expect("closed");
    drop(opened);
    for dir in ["/copy", "/export"] {
        let copy = Database::open(dir, &options(&vfs)).expect("opened");
        let locks = Arc::new(LockTable::of(&copy, LockLimits::default()));
        let pool = PreparedTransactions::of(&copy, &locks, HASTY).expect("locked");
        let mut found = pool.take_all();
        let names: Vec<_> = found.iter().map(|transaction| transaction.name()).collect();
        assert_eq!(names, [b"t", b"a"], "in the order of their prepares, in {dir}");
        found[0].commit(&copy, &WriteOptions::default()).expect("committed");
        let get = |key: &[u8]| copy.get(&copy.default_family(), key, &ReadOptions::default()).expect("read");
        let found = [&b"k"[..], b"c", b"d"].map(|key| get(key).is_some());
        assert_eq!(found, [true, false, true], "{dir}");
    }
}

/// A secondary that reads a prepare and not its end takes the next one of the name.
#[test]
fn secondary_forgets_a_prepare_whose_log_is_gone() {
    for is_read_between in [false, true] {
        let vfs = MemoryVfs::new(1);
        let opened = Opened::of(&vfs);
        let transaction = opened.prepared("t", "k");
        let secondary = Database::open_as_secondary(DIR, "/secondary", &options(&vfs)).expect("opened");
        let get = |key: &[u8]| {
            let found = secondary.get(&secondary.default_family(), key, &ReadOptions::default()).expect("read");
            found.is_some()
        };
        opened.commit(transaction);
        opened.flush();
        opened.db.close().expect("closed");
        drop(opened);
        let opened = Opened::of(&vfs);
        if is_read_between {
            secondary.try_catch_up_with_primary().expect("caught up");
        }
        let transaction = opened.prepared("t", "again");
        secondary.try_catch_up_with_primary().expect("caught up");
        assert!(get(b"k") && !get(b"again"));
        opened.commit(transaction);
        secondary.try_catch_up_with_primary().expect("caught up");
        assert!(get(b"again"));
    }
}

/// As a takeover leaves one that is cut off, behind which RocksDB ended the transaction.
#[test]
fn a_log_that_a_takeover_left_is_no_history_of_the_next_one() {
    let vfs = MemoryVfs::new(1);
    let opened = Opened::of(&vfs);
    let transaction = opened.prepared("t", "k");
    let number = *numbers_in(&*vfs, Path::new(DIR), FileType::Log).expect("listed").first().expect("a log");
    let name = format(FileType::Log, number);
    let left = vfs.read_file(&Path::new(DIR).join(&name)).expect("read");
    opened.commit(transaction);
    let dir = Path::new("/export");
    opened.db.export(dir, &Default::default()).map(drop).expect("exported");
    let batches = || {
        let how = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
        check(dir, &how, &mut |_| ()).expect("checked").log_batches
    };
    let before = batches();
    vfs.write_file(&dir.join(&name), &left).expect("written");
    assert_eq!(batches(), before);
    drop(Database::open(dir, &options(&vfs)).expect("taken over"));
    let image = vfs.crash_clone(7, CrashPolicy::ProcessKilled);
    image.write_file(&dir.join(&name), &left).expect("not deleted yet");
    let copy = Database::open(dir, &options(&image)).expect("opened");
    let locks = Arc::new(LockTable::of(&copy, LockLimits::default()));
    assert!(PreparedTransactions::of(&copy, &locks, HASTY).expect("locked").take_all().is_empty());
    let got = copy.get(&copy.default_family(), b"k", &ReadOptions::default()).expect("read");
    assert_eq!(got.as_deref(), Some(&b"t"[..]));
}

/// Each short-lived process leaves a log; many are flushed and let go at an open, but not those of a prepare.
#[test]
fn many_old_logs_keep_what_is_prepared() {
    let mut vfs = MemoryVfs::new(1);
    let mut opened = Opened::of(&vfs);
    drop(opened.prepared("t", "k"));
    for round in 0..20u8 {
        opened.db.put(&opened.db.default_family(), &[b'z', round], b"1", &WriteOptions::default()).expect("put");
        (opened, vfs) = match round % 2 {
            0 => (reopened(opened, &vfs), vfs),
            _ => crashed(opened, &vfs, CrashPolicy::ProcessKilled),
        };
        assert_eq!(opened.names(), ["t"]);
    }
    for transaction in opened.pool.take_all() {
        opened.commit(transaction);
    }
    opened.flush();
    assert_eq!(reopened(opened, &vfs).get("k").as_deref(), Some("t"));
    assert!(logs(&vfs) < 3, "{} logs", logs(&vfs));
}

#[test]
fn a_lost_prepare_is_corruption_and_salvage_goes_on() {
    let vfs = MemoryVfs::new(1);
    let opened = Opened::of(&vfs);
    let transaction = opened.prepared("t", "k");
    while numbers_in(&*vfs, Path::new(DIR), FileType::Log).expect("listed").len() < 2 {
        opened.db.put(&opened.db.default_family(), b"z", &[7; 8 << 10], &WriteOptions::default()).expect("put");
    }
    opened.commit(transaction);
    opened.db.close().expect("closed");
    drop(opened);
    let first: FileNumber = *numbers_in(&*vfs, Path::new(DIR), FileType::Log).expect("listed").first().expect("a log");
    let path = Path::new(DIR).join(crate::version::file_name::format(FileType::Log, first));
    vfs.remove_file(&path).expect("removed");
    let mut salvage = options(&vfs);
    salvage.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    let refused = Database::open(DIR, &options(&vfs)).map(drop).expect_err("a log is missing");
    assert_eq!(refused.kind(), ErrorKind::Corruption, "{refused}");
    assert_eq!(Opened::by(&salvage).get("k"), None);
}
