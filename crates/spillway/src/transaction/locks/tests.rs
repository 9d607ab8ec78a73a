//! Locks of one table, by threads; then many threads at random, and whether any two held what they must not share.

#![expect(clippy::disallowed_methods, reason = "threads that wait for each other's locks, by the clock")]

use std::sync::atomic::{AtomicI64, AtomicU64};
use std::thread;

use testkit::random::Random;
use vfs::real::RealVfs;

use super::*;

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);
const LIMITS: LockLimits = LockLimits { stripes: 4, keys_max: None, deadlocks_max: 5 };

fn table() -> Arc<LockTable> {
    table_with(LIMITS)
}

fn table_with(limits: LockLimits) -> Arc<LockTable> {
    Arc::new(LockTable::new(RealVfs::new(), limits))
}

fn owner(id: u64) -> Arc<Owner> {
    Owner::new(id, None)
}

fn key(key: &str) -> LockedKey<'_> {
    LockedKey { family: FamilyId::DEFAULT, key: key.as_bytes() }
}

fn range(start: &str, end: &str) -> LockedRange {
    LockedRange {
        family: FamilyId::DEFAULT,
        order: UserOrder::default(),
        start: start.as_bytes().into(),
        end: Some(end.as_bytes().into()),
    }
}

fn no_wait() -> Patience {
    Patience { wait_max: Some(Duration::ZERO), deadlock_depth: None }
}

fn short() -> Patience {
    Patience { wait_max: Some(SHORT), deadlock_depth: None }
}

fn detecting() -> Patience {
    Patience { wait_max: Some(LONG), deadlock_depth: Some(50) }
}

/// Asks in a thread of its own and returns once it waits.
fn ask(
    table: &Arc<LockTable>,
    owner: &Arc<Owner>,
    name: &'static str,
    mode: Mode,
) -> thread::JoinHandle<Result<Granted>> {
    let (of_thread, by) = (table.clone(), owner.clone());
    let thread = thread::spawn(move || of_thread.lock(&by, key(name), mode, &detecting()));
    until(|| thread.is_finished() || owner.waits_for.lock().is_some());
    thread
}

fn ask_range(table: &Arc<LockTable>, owner: &Arc<Owner>, range: LockedRange) -> thread::JoinHandle<Result<()>> {
    let (of_thread, by) = (table.clone(), owner.clone());
    let thread = thread::spawn(move || of_thread.lock_range(&by, range, Mode::Exclusive, &detecting()));
    until(|| thread.is_finished() || owner.waits_for.lock().is_some());
    thread
}

fn until(holds: impl Fn() -> bool) {
    while !holds() {
        thread::sleep(Duration::from_micros(200));
    }
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn shared_locks_share_and_exclusive_ones_do_not() {
    let (table, a, b) = (table(), owner(1), owner(2));
    assert_eq!(table.lock(&a, key("k"), Mode::Shared, &no_wait()).unwrap(), Granted::New);
    assert_eq!(table.lock(&b, key("k"), Mode::Shared, &no_wait()).unwrap(), Granted::New);
    assert_eq!(table.lock(&a, key("k"), Mode::Shared, &no_wait()).unwrap(), Granted::Before);
    assert_eq!(kind(table.lock(&a, key("k"), Mode::Exclusive, &no_wait())), ErrorKind::TimedOut);
    table.unlock(&b, [key("k")]);
    assert_eq!(table.lock(&a, key("k"), Mode::Exclusive, &no_wait()).unwrap(), Granted::Upgraded);
    assert_eq!(table.lock(&a, key("k"), Mode::Shared, &no_wait()).unwrap(), Granted::Before, "the stronger one stays");
    assert_eq!(kind(table.lock(&b, key("k"), Mode::Shared, &short())), ErrorKind::TimedOut);
    assert_eq!(
        table.held().iter().map(|held| (held.mode, held.owners.clone())).collect::<Vec<_>>(),
        [(Mode::Exclusive, vec![1])]
    );
    table.unlock(&a, [key("k")]);
    assert!(table.held().is_empty());
    assert_eq!(table.keys_count.load(Ordering::Relaxed), 0);
}

#[test]
fn families_have_keys_of_their_own() {
    let (table, a, b) = (table(), owner(1), owner(2));
    table.lock(&a, key("k"), Mode::Exclusive, &no_wait()).unwrap();
    table.lock(&b, LockedKey { family: FamilyId(1), key: b"k" }, Mode::Exclusive, &no_wait()).unwrap();
}

#[test]
fn waiters_are_served_as_they_came_and_upgrades_first() {
    let (table, a, b) = (table(), owner(1), owner(2));
    table.lock(&a, key("k"), Mode::Shared, &no_wait()).unwrap();
    table.lock(&b, key("k"), Mode::Shared, &no_wait()).unwrap();
    let writer = owner(3);
    let writes = ask(&table, &writer, "k", Mode::Exclusive);
    // A reader that came later does not pass the writer, though it could share.
    let reader = owner(4);
    let reads = ask(&table, &reader, "k", Mode::Shared);
    assert!(!reads.is_finished());
    let upgrades = ask(&table, &a, "k", Mode::Exclusive);
    table.unlock(&b, [key("k")]);
    assert_eq!(upgrades.join().unwrap().unwrap(), Granted::Upgraded);
    assert!(!writes.is_finished() && !reads.is_finished());
    table.unlock(&a, [key("k")]);
    assert_eq!(writes.join().unwrap().unwrap(), Granted::New);
    assert!(!reads.is_finished());
    table.unlock(&writer, [key("k")]);
    assert_eq!(reads.join().unwrap().unwrap(), Granted::New);
}

#[test]
fn those_behind_one_that_gave_up_go_on() {
    let (table, a, b, c) = (table(), owner(1), owner(2), owner(3));
    table.lock(&a, key("k"), Mode::Shared, &no_wait()).unwrap();
    let (of_thread, by) = (table.clone(), b.clone());
    let writes = thread::spawn(move || of_thread.lock(&by, key("k"), Mode::Exclusive, &short()));
    until(|| b.waits_for.lock().is_some());
    assert_eq!(table.lock(&c, key("k"), Mode::Shared, &detecting()).unwrap(), Granted::New);
    assert_eq!(kind(writes.join().unwrap()), ErrorKind::TimedOut);
}

#[test]
fn a_deadlock_is_told_with_its_cycle() {
    let (table, a, b, c) = (table(), owner(1), owner(2), owner(3));
    for (owner, name) in [(&a, "x"), (&b, "y"), (&c, "z")] {
        table.lock(owner, key(name), Mode::Exclusive, &no_wait()).unwrap();
    }
    let first = ask(&table, &a, "y", Mode::Exclusive);
    let second = ask(&table, &b, "z", Mode::Shared);
    let error = table.lock(&c, key("x"), Mode::Exclusive, &detecting()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadlock);
    assert_eq!(
        error.message(),
        "deadlock of 3 transactions: 3 waits for key 0x78 of family 0, 1 waits for key 0x79 of family 0, 2 waits for \
         key 0x7A of family 0"
    );
    let cycles = table.deadlocks();
    let owners: Vec<u64> = cycles.iter().flat_map(|cycle| cycle.waits.iter().map(|wait| wait.owner)).collect();
    assert_eq!(owners, [3, 1, 2]);
    table.unlock(&c, [key("z")]);
    assert_eq!(second.join().unwrap().unwrap(), Granted::New);
    table.unlock(&b, [key("y"), key("z")]);
    assert_eq!(first.join().unwrap().unwrap(), Granted::New);
}

#[test]
fn two_upgrades_of_one_key_are_a_deadlock() {
    let (table, a, b) = (table(), owner(1), owner(2));
    table.lock(&a, key("k"), Mode::Shared, &no_wait()).unwrap();
    table.lock(&b, key("k"), Mode::Shared, &no_wait()).unwrap();
    let first = ask(&table, &a, "k", Mode::Exclusive);
    assert_eq!(kind(table.lock(&b, key("k"), Mode::Exclusive, &detecting())), ErrorKind::Deadlock);
    table.unlock(&b, [key("k")]);
    assert_eq!(first.join().unwrap().unwrap(), Granted::Upgraded);
}

#[test]
fn a_long_chain_is_not_a_deadlock_but_past_the_depth_it_is_taken_for_one() {
    let table = table();
    let names = ["a", "b", "c", "d", "e"];
    let owners: Vec<_> = (0..5).map(owner).collect();
    for (owner, name) in owners.iter().zip(names) {
        table.lock(owner, key(name), Mode::Exclusive, &no_wait()).unwrap();
    }
    let waits: Vec<_> = (0..3).map(|i| ask(&table, &owners[i + 1], names[i], Mode::Exclusive)).collect();
    let patience = Patience { deadlock_depth: Some(2), ..detecting() };
    assert_eq!(kind(table.lock(&owners[4], key("d"), Mode::Exclusive, &patience)), ErrorKind::Deadlock);
    assert!(table.deadlocks().last().unwrap().is_guess);
    let patience = Patience { deadlock_depth: Some(50), ..short() };
    assert_eq!(kind(table.lock(&owners[4], key("d"), Mode::Exclusive, &patience)), ErrorKind::TimedOut);
    for (i, wait) in waits.into_iter().enumerate() {
        table.unlock(&owners[i], [key(names[i])]);
        wait.join().unwrap().unwrap();
        table.unlock(&owners[i + 1], [key(names[i])]);
    }
}

#[test]
fn an_expired_owner_loses_its_locks_and_cannot_commit() {
    let table = table();
    let soon = table.vfs.now() + SHORT;
    let (brief, other) = (Owner::new(1, Some(soon)), owner(2));
    table.lock(&brief, key("k"), Mode::Exclusive, &no_wait()).unwrap();
    assert_eq!(kind(table.lock(&other, key("k"), Mode::Exclusive, &no_wait())), ErrorKind::TimedOut);
    assert_eq!(table.lock(&other, key("k"), Mode::Exclusive, &detecting()).unwrap(), Granted::New, "wakes by itself");
    assert!(!table.begin_commit(&brief));
    table.unlock(&brief, [key("k")]);
    assert_eq!(table.held()[0].owners, [2], "the late release takes nothing from its new owner");

    let timely = Owner::new(3, Some(table.vfs.now() + LONG));
    assert!(table.begin_commit(&timely));
    assert!(!timely.has_lost_locks(|| LONG * 1000), "locks stay through a commit");
}

#[test]
fn the_limit_of_keys_is_an_error_and_counts_keys_once() {
    let table = table_with(LockLimits { keys_max: Some(2), ..LIMITS });
    let (a, b) = (owner(1), owner(2));
    table.lock(&a, key("x"), Mode::Shared, &no_wait()).unwrap();
    table.lock(&b, key("x"), Mode::Shared, &no_wait()).unwrap();
    table.lock(&a, key("y"), Mode::Exclusive, &no_wait()).unwrap();
    let error = table.lock(&b, key("z"), Mode::Exclusive, &no_wait()).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Busy, "Failed to acquire lock due to max_num_locks limit: 2 keys are locked, as many as it allows")
    );
    table.unlock(&a, [key("x"), key("y")]);
    table.lock(&b, key("z"), Mode::Exclusive, &no_wait()).unwrap();
}

#[test]
fn ranges_and_keys_exclude_each_other() {
    let (table, a, b, c) = (table(), owner(1), owner(2), owner(3));
    table.lock(&a, key("m"), Mode::Exclusive, &no_wait()).unwrap();
    assert_eq!(kind(table.lock_range(&b, range("a", "z"), Mode::Shared, &no_wait())), ErrorKind::TimedOut);
    table.lock_range(&b, range("n", "z"), Mode::Exclusive, &no_wait()).unwrap();
    table.lock_range(&b, range("a", "m"), Mode::Exclusive, &no_wait()).unwrap();
    for name in ["a", "n", "y"] {
        assert_eq!(kind(table.lock(&c, key(name), Mode::Shared, &no_wait())), ErrorKind::TimedOut, "{name}");
    }
    table.lock(&c, key("z"), Mode::Exclusive, &no_wait()).unwrap();
    table.lock(&b, key("n"), Mode::Exclusive, &no_wait()).unwrap();
    assert_eq!(kind(table.lock_range(&c, range("l", "o"), Mode::Shared, &short())), ErrorKind::TimedOut);

    let waits = ask(&table, &c, "o", Mode::Exclusive);
    assert!(!waits.is_finished());
    table.unlock_ranges(&b);
    assert_eq!(waits.join().unwrap().unwrap(), Granted::New);
    assert_eq!(table.ranges_count.load(Ordering::Relaxed), 0);
}

#[test]
fn a_waiting_range_holds_newcomers_back_but_not_those_it_waits_for() {
    let (table, a, b, c) = (table(), owner(1), owner(2), owner(3));
    table.lock(&a, key("m"), Mode::Exclusive, &no_wait()).unwrap();
    let sweeps = ask_range(&table, &b, range("a", "z"));
    let late = ask(&table, &c, "k", Mode::Exclusive);
    assert!(!sweeps.is_finished() && !late.is_finished());
    table.lock(&a, key("k"), Mode::Exclusive, &no_wait()).unwrap();
    table.unlock(&a, [key("m"), key("k")]);
    sweeps.join().unwrap().unwrap();
    assert!(!late.is_finished());
    table.unlock_ranges(&b);
    assert_eq!(late.join().unwrap().unwrap(), Granted::New);
}

#[test]
fn a_range_that_passed_a_waiting_one_keeps_it_out() {
    let (table, a, b) = (table(), owner(1), owner(2));
    table.lock(&a, key("m"), Mode::Exclusive, &no_wait()).unwrap();
    let sweeps = ask_range(&table, &b, range("a", "z"));
    table.lock_range(&a, range("c", "d"), Mode::Exclusive, &no_wait()).unwrap();
    table.unlock(&a, [key("m")]);
    thread::sleep(SHORT);
    assert!(!sweeps.is_finished());
    table.unlock_ranges(&a);
    sweeps.join().unwrap().unwrap();
}

#[test]
fn a_deadlock_through_a_range_is_found() {
    let (table, a, b) = (table(), owner(1), owner(2));
    table.lock_range(&a, range("a", "f"), Mode::Exclusive, &no_wait()).unwrap();
    table.lock(&b, key("x"), Mode::Exclusive, &no_wait()).unwrap();
    let first = ask(&table, &b, "c", Mode::Exclusive);
    let result = table.lock_range(&a, range("t", "z"), Mode::Exclusive, &detecting());
    assert_eq!(kind(result), ErrorKind::Deadlock);
    table.unlock_ranges(&a);
    first.join().unwrap().unwrap();
}

/// Holders of each key: -1 for one exclusive, else how many share.
struct Counts([AtomicI64; 8]);

impl Counts {
    fn enter(&self, at: usize, mode: Mode) {
        match mode {
            Mode::Shared => assert!(self.0[at].fetch_add(1, Ordering::SeqCst) >= 0, "shared beside exclusive"),
            Mode::Exclusive => {
                let before = self.0[at].compare_exchange(0, -1, Ordering::SeqCst, Ordering::SeqCst);
                assert!(before.is_ok(), "exclusive beside {before:?}");
            }
        }
    }

    fn upgrade(&self, at: usize) {
        let before = self.0[at].compare_exchange(1, -1, Ordering::SeqCst, Ordering::SeqCst);
        assert!(before.is_ok(), "an upgrade beside {before:?}");
    }

    fn leave(&self, at: usize, mode: Mode) {
        match mode {
            Mode::Shared => assert!(self.0[at].fetch_sub(1, Ordering::SeqCst) > 0),
            Mode::Exclusive => assert_eq!(self.0[at].swap(0, Ordering::SeqCst), -1),
        }
    }
}

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Transactions that lock keys and ranges in random order, without a time limit: they end because every deadlock is
/// found.
#[test]
fn at_random_nobody_shares_what_is_exclusive_and_everybody_ends() {
    for seed in 0..6 {
        let table = table();
        let counts = Counts(Default::default());
        let (ids, deadlocks) = (AtomicU64::new(1), AtomicU64::new(0));
        thread::scope(|scope| {
            for worker in 0..4 {
                let (table, counts, ids, deadlocks) = (&table, &counts, &ids, &deadlocks);
                scope.spawn(move || {
                    let mut random = Random::new(seed * 100 + worker);
                    for _ in 0..300 {
                        let owner = owner(ids.fetch_add(1, Ordering::Relaxed));
                        let ended = transact(table, counts, &owner, &mut random, seed % 2 == 1);
                        deadlocks.fetch_add(u64::from(!ended), Ordering::Relaxed);
                    }
                });
            }
        });
        assert!(table.held().is_empty() && table.ranges_count.load(Ordering::Relaxed) == 0);
        assert_eq!(table.keys_count.load(Ordering::Relaxed), 0);
        assert!(deadlocks.into_inner() > 0, "seed {seed} met no deadlock: it shows nothing");
    }
}

/// Locks some keys, then releases all. False if a deadlock ended it.
fn transact(table: &LockTable, counts: &Counts, owner: &Arc<Owner>, random: &mut Random, ranges: bool) -> bool {
    let mut held: [Option<Mode>; 8] = [None; 8];
    let patience = Patience { wait_max: None, deadlock_depth: Some(50) };
    let mut ended = true;
    for _ in 0..4 {
        let (at, mode) = (random.below(8) as usize, if random.below(2) == 0 { Mode::Shared } else { Mode::Exclusive });
        let by_range = ranges && random.below(6) == 0 && at < 7;
        let (result, mode) = if by_range {
            let range = range(NAMES[at], NAMES[at + 1]);
            let locked = table.lock_range(owner, range, Mode::Exclusive, &patience);
            // Nobody else can have the key now.
            let of_key = || table.lock(owner, key(NAMES[at]), Mode::Exclusive, &no_wait()).unwrap();
            (locked.map(|()| of_key()), Mode::Exclusive)
        } else {
            (table.lock(owner, key(NAMES[at]), mode, &patience), mode)
        };
        match result {
            Ok(Granted::New) => {
                counts.enter(at, mode);
                held[at] = Some(mode);
            }
            Ok(Granted::Upgraded) => {
                counts.upgrade(at);
                held[at] = Some(Mode::Exclusive);
            }
            Ok(Granted::Before) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Deadlock);
                ended = false;
                break;
            }
        }
        if random.below(4) == 0 {
            thread::yield_now();
        }
    }
    let held = held.iter().enumerate().filter_map(|(at, mode)| mode.map(|mode| (at, mode)));
    let held: Vec<_> = held.inspect(|&(at, mode)| counts.leave(at, mode)).collect();
    table.unlock(owner, held.iter().map(|&(at, _)| key(NAMES[at])));
    table.unlock_ranges(owner);
    ended
}
