use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use base::ValueKind;
use testkit::random::Random;
use vfs::MemoryVfs;

use super::*;
use crate::internal::{OpenOptions, ReadOptions};
use crate::transaction::Change;
use crate::transaction::locks::{DEADLOCK_DEPTH, LockLimits};

fn open() -> (Database, Arc<LockTable>) {
    let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
    let db = Database::open("/db", &options).expect("opened");
    let locks = Arc::new(LockTable::new(db.vfs().clone(), LockLimits::default()));
    (db, locks)
}

fn begin(locks: &Arc<LockTable>, wait_max: Option<Duration>) -> Transaction {
    let patience = Patience { wait_max, deadlock_depth: Some(DEADLOCK_DEPTH) };
    Transaction::pessimistic(locks, Pessimistic { patience, expires_after: None })
}

fn hasty(locks: &Arc<LockTable>) -> Transaction {
    begin(locks, Some(Duration::ZERO))
}

fn write(db: &Database, transaction: &mut Transaction, key: &str, value: &str) -> Result<()> {
    let change = Change { kind: ValueKind::Value, key: key.as_bytes(), value: value.as_bytes() };
    transaction.write(db, &db.default_family(), change, Track::Tracked)
}

fn read(db: &Database, transaction: &mut Transaction, key: &str, mode: Mode) -> Result<Option<String>> {
    let found = transaction.get_for_update(db, &db.default_family(), key.as_bytes(), mode, &ReadOptions::default())?;
    Ok(found.map(|value| String::from_utf8_lossy(&value).into_owned()))
}

fn get(db: &Database, key: &str) -> Option<String> {
    let found = db.get(&db.default_family(), key.as_bytes(), &ReadOptions::default()).expect("read");
    found.map(|value| String::from_utf8_lossy(&value).into_owned())
}

fn commit(db: &Database, transaction: &mut Transaction) -> Result<()> {
    transaction.commit(db, &WriteOptions::default())
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.expect_err("an error").kind()
}

#[test]
fn a_key_is_its_writers_until_the_commit_or_the_rollback() {
    let (db, locks) = open();
    let (mut first, mut second) = (hasty(&locks), hasty(&locks));
    write(&db, &mut first, "k", "1").expect("locked");
    assert_eq!(kind(write(&db, &mut second, "k", "2")), ErrorKind::TimedOut);
    assert_eq!(kind(read(&db, &mut second, "k", Mode::Shared)), ErrorKind::TimedOut);
    commit(&db, &mut first).expect("committed");
    assert_eq!(read(&db, &mut second, "k", Mode::Shared).expect("locked").as_deref(), Some("1"));
    assert_eq!(read(&db, &mut first, "k", Mode::Shared).expect("shared").as_deref(), Some("1"));
    assert_eq!(kind(write(&db, &mut first, "k", "3")), ErrorKind::TimedOut, "an upgrade waits for the other reader");
    second.rollback(&db, &WriteOptions::default()).expect("rolled back");
    write(&db, &mut first, "k", "3").expect("upgraded");
    drop(first);
    write(&db, &mut second, "k", "4").expect("a dropped transaction holds nothing");
    commit(&db, &mut second).expect("committed");
    assert_eq!(get(&db, "k").as_deref(), Some("4"));
    assert!(locks.held().is_empty());
}

#[test]
fn a_savepoint_gives_back_what_was_locked_since() {
    let (db, locks) = open();
    let (mut first, mut second) = (hasty(&locks), hasty(&locks));
    write(&db, &mut first, "a", "1").expect("locked");
    first.set_savepoint();
    write(&db, &mut first, "a", "2").expect("held");
    write(&db, &mut first, "b", "2").expect("locked");
    assert!(first.rollback_to_savepoint());
    write(&db, &mut second, "b", "3").expect("given back");
    assert_eq!(kind(write(&db, &mut second, "a", "3")), ErrorKind::TimedOut);
    commit(&db, &mut first).expect("committed");
    commit(&db, &mut second).expect("committed");
    assert_eq!((get(&db, "a").as_deref(), get(&db, "b").as_deref()), (Some("1"), Some("3")));
}

#[test]
fn a_change_since_the_snapshot_is_a_conflict_and_the_key_stays_free() {
    let (db, locks) = open();
    let (mut first, mut second) = (hasty(&locks), hasty(&locks));
    first.set_snapshot(&db);
    write(&db, &mut second, "k", "2").expect("locked");
    commit(&db, &mut second).expect("committed");
    assert_eq!(kind(write(&db, &mut first, "k", "1")), ErrorKind::Conflict);
    assert!(locks.held().is_empty());
    let change = Change { kind: ValueKind::Value, key: b"k", value: b"1" };
    first.write(&db, &db.default_family(), change, Track::Untracked).expect("untracked");
    assert_eq!(kind(write(&db, &mut second, "k", "3")), ErrorKind::TimedOut, "untracked changes lock, too");
    commit(&db, &mut first).expect("committed");
    assert_eq!(get(&db, "k").as_deref(), Some("1"));
    second.set_snapshot_on_next_operation();
    write(&db, &mut second, "k", "3").expect("the snapshot is of after the lock");
}

#[test]
fn an_expired_transaction_does_not_commit() {
    let (db, locks) = open();
    let patience = Patience { wait_max: None, deadlock_depth: None };
    let expires_after = Some(Duration::from_micros(20)); // of the memory file system's clock
    let mut brief = Transaction::pessimistic(&locks, Pessimistic { patience, expires_after });
    write(&db, &mut brief, "k", "1").expect("locked");
    db.vfs().sleep(Duration::from_micros(50));
    let mut other = hasty(&locks);
    write(&db, &mut other, "k", "2").expect("taken");
    assert_eq!(kind(commit(&db, &mut brief)), ErrorKind::Expired);
    brief.rollback(&db, &WriteOptions::default()).expect("rolled back");
    assert_eq!(kind(write(&db, &mut hasty(&locks), "k", "3")), ErrorKind::TimedOut, "its new owner has it still");
    commit(&db, &mut other).expect("committed");
    assert_eq!(get(&db, "k").as_deref(), Some("2"));
    // Rolled back, it is as new, its time too.
    write(&db, &mut brief, "j", "4").expect("locked");
}

#[test]
fn a_locked_range_keeps_writers_and_batches_out() {
    let (db, locks) = open();
    let (mut first, family) = (hasty(&locks), db.default_family());
    first.lock_range(&db, &family, (b"b", Some(b"d")), Mode::Exclusive).expect("locked");
    let upside_down = first.lock_range(&db, &family, (b"d", Some(b"d")), Mode::Exclusive);
    assert_eq!(kind(upside_down), ErrorKind::InvalidArgument);
    let optimistic = Transaction::default().lock_range(&db, &family, (b"b", None), Mode::Exclusive);
    assert_eq!(kind(optimistic), ErrorKind::InvalidArgument);

    let patience = Patience { wait_max: Some(Duration::ZERO), deadlock_depth: None };
    let put = |key: &str| {
        let mut batch = WriteBatch::new();
        batch.put(family.id(), b"a", b"0");
        batch.put(family.id(), key.as_bytes(), b"1");
        batch.delete_range(family.id(), b"x", b"z");
        lock_and_write(&locks, &db, &batch, &WriteOptions::default(), patience)
    };
    assert_eq!(kind(put("c")), ErrorKind::TimedOut);
    assert_eq!(get(&db, "a"), None, "nothing of the batch was written");
    put("d").expect("outside");
    write(&db, &mut first, "c", "1").expect("its own range");
    first.lock_range(&db, &family, (b"w", None), Mode::Shared).expect("locked");
    assert_eq!(kind(put("d")), ErrorKind::TimedOut, "a range deletion locks its range");
    commit(&db, &mut first).expect("committed");
    put("c").expect("given back");
}

/// Transfers between accounts, each of which reads both and writes both, in any order: deadlocks end in a rollback, and
/// the sum stays.
#[test]
fn transfers_of_many_threads_keep_the_sum() {
    const ACCOUNTS: u64 = 6;
    let (db, locks) = open();
    let (family, total, deadlocks) = (db.default_family(), ACCOUNTS * 100, AtomicU64::new(0));
    for account in 0..ACCOUNTS {
        db.put(&family, account.to_string().as_bytes(), b"100", &WriteOptions::default()).expect("put");
    }
    thread::scope(|scope| {
        for worker in 0..4 {
            let (db, locks, deadlocks) = (&db, &locks, &deadlocks);
            scope.spawn(move || {
                let mut random = Random::new(worker);
                for _ in 0..500 {
                    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                    if from != to && !transfer(db, locks, (from, to)) {
                        deadlocks.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let sum: u64 = (0..ACCOUNTS)
        .map(|account| get(&db, &account.to_string()).expect("there").parse::<u64>().expect("a number"))
        .sum();
    assert_eq!(sum, total);
    assert!(locks.held().is_empty());
    assert!(deadlocks.into_inner() > 0, "no deadlock was met: nothing is shown");
}

fn transfer(db: &Database, locks: &Arc<LockTable>, (from, to): (u64, u64)) -> bool {
    let mut transaction = begin(locks, None);
    let mut balance = |account: u64| -> Result<u64> {
        let found = read(db, &mut transaction, &account.to_string(), Mode::Exclusive)?;
        thread::yield_now();
        Ok(found.expect("there").parse().expect("a number"))
    };
    let read = balance(from).and_then(|from| Ok((from, balance(to)?)));
    let (of_from, of_to) = match read {
        Ok(balances) => balances,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Deadlock, "{error}");
            return false;
        }
    };
    let moved = of_from.min(3);
    write(db, &mut transaction, &from.to_string(), &(of_from - moved).to_string()).expect("held");
    write(db, &mut transaction, &to.to_string(), &(of_to + moved).to_string()).expect("held");
    commit(db, &mut transaction).expect("no conflict is possible");
    true
}
