use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use vfs::{Fault, FaultCode, FaultVfs, Operation, RealVfs, Rule};

use super::registration::as_away;
use super::signal::Signal;
use super::timer::{LOOK_EVERY, LOOKS};
use super::*;

const LIMIT: Duration = Duration::from_secs(20);
/// Long after any look.
const LONG: Duration = LOOK_EVERY.saturating_mul(LOOKS + 10);

type Work = Box<dyn FnOnce() + Send>;

/// A database without files.
struct Fake {
    jobs: Mutex<VecDeque<Work>>,
    turns: Mutex<Vec<bool>>,
    /// What each turn of upkeep returns.
    until_next: Mutex<Option<Duration>>,
    /// A turn of upkeep was taken.
    turned: Condvar,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

struct Database {
    fake: Arc<Fake>,
    upkeep: Arc<Signal>,
    registration: Arc<Registration>,
}

impl Client for Fake {
    fn work(&self, _: Lane, found: &dyn Fn()) -> bool {
        let Some(job) = self.jobs.lock().pop_front() else { return false };
        let running = 1 + self.running.fetch_add(1, Ordering::SeqCst);
        self.most_running.fetch_max(running, Ordering::SeqCst);
        found();
        job();
        self.running.fetch_sub(1, Ordering::SeqCst);
        true
    }

    fn keep_up(&self, is_over: bool) -> Option<Duration> {
        self.turns.lock().push(is_over);
        self.turned.notify_all();
        *self.until_next.lock()
    }
}

impl Database {
    fn new(env: &Env, at_once: usize) -> Database {
        let fake = Arc::new(Fake {
            jobs: Mutex::default(),
            turns: Mutex::default(),
            until_next: Mutex::default(),
            turned: Condvar::new(),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
        });
        let limits =
            Limits { flushes: at_once, compactions: at_once, tasks: at_once, compaction_lane: Lane::Compaction };
        let upkeep = Arc::new(Signal::default());
        let client: std::sync::Weak<Fake> = Arc::downgrade(&fake);
        let registration = env.register(client, limits, upkeep.clone()).expect("a thread");
        Database { fake, upkeep, registration }
    }

    fn hand_in(&self, job: impl FnOnce() + Send + 'static) {
        self.fake.jobs.lock().push_back(Box::new(job));
        self.registration.signal(Lane::Flush);
    }

    fn wait_for_turns(&self, count: usize) -> Vec<bool> {
        let mut turns = self.fake.turns.lock();
        while turns.len() < count {
            assert!(!self.fake.turned.wait_for(&mut turns, LIMIT).timed_out(), "{turns:?}");
        }
        turns.clone()
    }
}

/// An Env with so many flush threads.
fn env(threads: usize) -> Env {
    Env::new(EnvOptions::default().flush_threads(threads))
}

/// Holds jobs until it is opened.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut is_open = self.is_open.lock();
        while !*is_open {
            assert!(!self.opened.wait_for(&mut is_open, LIMIT).timed_out(), "nobody opens the gate");
        }
    }

    fn job(self: &Arc<Self>) -> impl FnOnce() + Send + 'static {
        let gate = self.clone();
        move || gate.pass()
    }

    fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

fn sleep(time: Duration) {
    RealVfs::new().sleep(time);
}

fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let vfs = RealVfs::new();
    let start = vfs.now();
    while !holds() {
        assert!(vfs.now().saturating_sub(start) < LIMIT, "{what}");
        vfs.sleep(Duration::from_millis(1));
    }
}

#[test]
fn databases_take_turns() {
    let env = env(1);
    let databases = [(); 3].map(|()| Database::new(&env, 1));
    let (gate, order) = (Arc::<Gate>::default(), Arc::<Mutex<Vec<usize>>>::default());
    databases[0].hand_in(gate.job());
    wait_for("the only thread is at work", || gate.waiting() == 1);
    for (index, database) in databases.iter().enumerate() {
        for _ in 0..3 {
            let order = order.clone();
            database.hand_in(move || order.lock().push(index));
        }
    }
    gate.open();
    wait_for("all jobs", || order.lock().len() == 9);
    let mut firsts: Vec<usize> = order.lock()[..3].to_vec();
    firsts.sort_unstable();
    assert_eq!(firsts, [0, 1, 2], "one job of each before a second of any: {:?}", order.lock());
    databases.iter().for_each(|database| database.registration.end());
}

#[test]
fn a_database_runs_no_more_jobs_than_its_own_limit() {
    let env = env(6);
    let database = Database::new(&env, 2);
    let gate = Arc::<Gate>::default();
    (0..6).for_each(|_| database.hand_in(gate.job()));
    wait_for("two run", || gate.waiting() == 2);
    sleep(Duration::from_millis(20));
    assert_eq!(gate.waiting(), 2);
    gate.open();
    wait_for("all run", || gate.waiting() == 6);
    database.registration.end();
    assert_eq!(database.fake.most_running.load(Ordering::SeqCst), 2);
}

#[test]
fn a_pool_has_no_more_threads_than_its_size_and_grows_with_it() {
    let env = env(1);
    let databases = [(); 4].map(|()| Database::new(&env, 1));
    let gate = Arc::<Gate>::default();
    databases.iter().for_each(|database| database.hand_in(gate.job()));
    wait_for("one runs", || gate.waiting() == 1);
    sleep(Duration::from_millis(20));
    assert_eq!((gate.waiting(), env.flush_threads()), (1, 1));
    env.set_flush_threads(3);
    wait_for("three run", || gate.waiting() == 3);
    sleep(Duration::from_millis(20));
    assert_eq!(gate.waiting(), 3);
    gate.open();
    wait_for("all run", || gate.waiting() == 4);
    let larger = Database::new(&env, 9);
    assert_eq!(env.flush_threads(), 9, "a database that may run as many");
    databases.iter().chain([&larger]).for_each(|database| database.registration.end());
}

#[test]
fn a_pool_that_was_made_smaller_goes_on() {
    let env = env(4);
    let database = Database::new(&env, 4);
    let gate = Arc::<Gate>::default();
    (0..4).for_each(|_| database.hand_in(gate.job()));
    wait_for("four run", || gate.waiting() == 4);
    gate.open();
    wait_for("all are over", || database.fake.running.load(Ordering::SeqCst) == 0);
    sleep(Duration::from_millis(20)); // until they wait
    env.set_flush_threads(1);
    database.hand_in(gate.job());
    wait_for("one that is left", || gate.waiting() == 5);
    database.registration.end();
}

#[test]
fn an_end_waits_for_what_runs_and_cancels_what_is_queued() {
    let env = env(1);
    let (first, second) = (Database::new(&env, 1), Database::new(&env, 1));
    let gate = Arc::<Gate>::default();
    first.hand_in(gate.job());
    wait_for("it runs", || gate.waiting() == 1);
    let never = Arc::new(AtomicUsize::new(0));
    let count = never.clone();
    second.hand_in(move || _ = count.fetch_add(1, Ordering::SeqCst));
    second.registration.end();
    let ended = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            first.registration.end();
            ended.store(1, Ordering::SeqCst);
        });
        sleep(Duration::from_millis(20));
        assert_eq!(ended.load(Ordering::SeqCst), 0, "a job runs");
        gate.open();
    });
    first.registration.signal(Lane::Flush);
    second.registration.signal(Lane::Flush);
    sleep(Duration::from_millis(20));
    assert_eq!(never.load(Ordering::SeqCst), 0);
    first.registration.end(); // a second time
}

#[test]
fn what_a_job_defers_runs_after_it_and_may_end_the_database() {
    let env = env(1);
    let database = Database::new(&env, 1);
    let ended = Arc::new(AtomicUsize::new(0));
    assert!(!database.registration.defer(|| ()), "no thread of an Env");
    let (registration, count) = (database.registration.clone(), ended.clone());
    database.hand_in(move || {
        let last = registration.clone();
        assert!(registration.defer(move || {
            last.end();
            count.store(1, Ordering::SeqCst);
        }));
    });
    wait_for("the end", || ended.load(Ordering::SeqCst) == 1);
    database.hand_in(|| unreachable!("it has left"));
    assert_eq!(database.fake.jobs.lock().len(), 1);
}

#[test]
fn a_thread_in_a_callers_code_keeps_nobody_waiting() {
    let env = env(1);
    let (first, second) = (Database::new(&env, 1), Database::new(&env, 1));
    let (gate, done) = (Arc::<Gate>::default(), Arc::new(AtomicUsize::new(0)));
    let held = gate.clone();
    first.hand_in(move || as_away(|| held.pass()));
    wait_for("it is away", || gate.waiting() == 1);
    for database in [&first, &second] {
        let done = done.clone();
        database.hand_in(move || _ = done.fetch_add(1, Ordering::SeqCst));
    }
    wait_for("jobs of both", || done.load(Ordering::SeqCst) == 2);
    gate.open();
    [&first, &second].iter().for_each(|database| database.registration.end());
}

#[test]
fn threads_end_once_they_are_idle() {
    let env = Env::with(RealVfs::new(), EnvOptions::default(), Duration::from_millis(20));
    let database = Database::new(&env, 4);
    let gate = Arc::<Gate>::default();
    (0..4).for_each(|_| database.hand_in(gate.job()));
    wait_for("four run", || gate.waiting() == 4);
    assert_eq!(env.threads(), 5, "and the timer");
    gate.open();
    wait_for("the timer alone is left", || env.threads() == 1);
    let again = Arc::<Gate>::default();
    database.hand_in(again.job());
    wait_for("a new one", || again.waiting() == 1);
    again.open();
    database.registration.end();
    wait_for("nobody is left", || env.threads() == 0);
}

#[test]
fn upkeep_is_woken_or_looked_at_before_long() {
    let env = env(1);
    for age in [LOOK_EVERY / 4, LONG] {
        for raise in [Signal::raise as fn(&Signal), Signal::raise_soon, Signal::raise_again] {
            let database = Database::new(&env, 1);
            database.upkeep.raise();
            database.wait_for_turns(1);
            sleep(age);
            raise(&database.upkeep);
            assert_eq!(database.wait_for_turns(2), [false, false]);
            database.registration.end();
        }
    }
}

#[test]
fn upkeep_has_a_turn_when_its_time_is_over() {
    let env = env(1);
    for limit in [Duration::from_millis(1), LONG] {
        let database = Database::new(&env, 1);
        *database.fake.until_next.lock() = Some(limit);
        database.upkeep.raise();
        assert_eq!(database.wait_for_turns(3)[..3], [false, true, true]);
        database.registration.end();
        let turns = database.fake.turns.lock().len();
        sleep(limit * 3);
        assert_eq!(database.fake.turns.lock().len(), turns, "none after the end");
    }
}

#[test]
fn a_signal_that_nobody_raises_calls_for_no_turn() {
    let database = Database::new(&env(1), 1);
    database.upkeep.raise();
    database.wait_for_turns(1);
    sleep(LONG);
    assert_eq!(database.fake.turns.lock().len(), 1);
    database.registration.end();
}

#[test]
fn a_panic_costs_no_thread() {
    let env = env(1);
    let database = Database::new(&env, 1);
    database.hand_in(|| panic!("a panic that the test asks for"));
    let gate = Arc::<Gate>::default();
    gate.open();
    database.hand_in(gate.job());
    wait_for("the next job", || gate.waiting() == 1);
    database.registration.end();
}

#[test]
fn work_waits_for_a_thread_that_could_not_be_started() {
    let faulty = FaultVfs::new(RealVfs::new());
    let env = Env::with(faulty.clone(), EnvOptions::default(), LIMIT);
    let database = Database::new(&env, 1);
    faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Spawn).path("spillway-flush"));
    let gate = Arc::<Gate>::default();
    gate.open();
    database.hand_in(gate.job());
    wait_for("a failure", || faulty.fired() == 1);
    wait_for("the next try", || gate.waiting() == 1);
    database.registration.end();
}

#[test]
fn where_no_thread_can_be_had_the_timers_does_the_work() {
    let faulty = FaultVfs::new(RealVfs::new());
    let env = Env::with(faulty.clone(), EnvOptions::default(), LIMIT);
    let database = Database::new(&env, 1);
    faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Spawn).sticky());
    let done = Arc::new(AtomicUsize::new(0));
    for _ in 0..20 {
        let done = done.clone();
        database.hand_in(move || _ = done.fetch_add(1, Ordering::SeqCst));
    }
    wait_for("all jobs", || done.load(Ordering::SeqCst) == 20);
    database.registration.end();
}

#[test]
fn a_database_without_a_timer_is_refused() {
    let faulty = FaultVfs::new(RealVfs::new());
    let env = Env::with(faulty.clone(), EnvOptions::default(), LIMIT);
    faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Spawn));
    let fake: std::sync::Weak<Fake> = std::sync::Weak::new();
    let limits = Limits { flushes: 1, compactions: 1, tasks: 1, compaction_lane: Lane::Compaction };
    let refused = env.register(fake, limits, Arc::default()).map(drop);
    assert_eq!(refused.map_err(|error| error.kind()), Err(base::ErrorKind::Io));
    Database::new(&env, 1).registration.end();
}

#[test]
fn reads_run_on_threads_of_their_own_or_on_the_caller() {
    let faulty = FaultVfs::new(RealVfs::new());
    let env = Env::with(faulty.clone(), EnvOptions::default(), LIMIT);
    faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Spawn));
    let (sender, receiver) = std::sync::mpsc::channel();
    for i in 0..50 {
        let sender = sender.clone();
        env.run_read(Box::new(move || sender.send((i, std::thread::current().id())).unwrap()));
    }
    let mut ran: Vec<_> = (0..50).map(|_| receiver.recv_timeout(LIMIT).unwrap()).collect();
    ran.sort_unstable_by_key(|(i, _)| *i);
    assert!(ran.iter().map(|(i, _)| *i).eq(0..50), "each once");
    let caller = std::thread::current().id();
    assert_eq!(
        ran.iter().filter(|(_, thread)| *thread == caller).count(),
        1,
        "no thread could be started for the first"
    );
    assert!(env.threads() <= 16);
}

#[test]
fn the_event_log_says_once_that_no_thread_can_be_had() {
    let faulty = FaultVfs::new(RealVfs::new());
    let dir = tempfile::tempdir().unwrap();
    let options = crate::internal::OpenOptions {
        env: Env::with(faulty.clone(), EnvOptions::default(), LIMIT),
        ..crate::internal::OpenOptions::create_if_missing()
    };
    faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Spawn).path("spillway-flush").sticky());
    let db = crate::internal::Database::open(dir.path(), &options).unwrap();
    for key in [b"k", b"l"] {
        db.put(&db.default_family(), key, b"v", &Default::default()).unwrap();
        db.flush(&[&db.default_family()]).unwrap();
    }
    drop(db);
    let log = vfs::read_all(&*RealVfs::new(), &dir.path().join("LOG"), 1 << 20, vfs::IoClass::Other).unwrap();
    let log = String::from_utf8(log).unwrap();
    assert_eq!(log.matches("no thread can be had").count(), 1, "{log}");
}
