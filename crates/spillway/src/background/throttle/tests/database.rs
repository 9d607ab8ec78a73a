//! Throttled jobs of a database: jobs without a waiting caller, while callers sync.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread;

use base::extend::{Event, EventListener};

use super::*;
use crate::internal::DEFAULT_FAMILY;
use crate::internal::{
    Database, Family, FamilyOptions, IngestMode, IngestOptions, IngestRequest, OpenOptions, TableWriter, WriteOptions,
};

/// Milliseconds to wait for a caller to announce its wait.
const LOOKS_MAX: u32 = 5_000;

/// Blocks each flush until a caller waits for flushes, and counts flushes without one.
#[derive(Default)]
struct UntilAwaited {
    throttle: OnceLock<Arc<Throttle>>,
    flushes: AtomicU64,
    in_vain: AtomicU64,
}

impl EventListener for UntilAwaited {
    #[expect(clippy::disallowed_methods, reason = "the other thread goes by the system's clock")]
    fn on_event(&self, event: &Event) {
        let (Event::FlushBegin { .. }, Some(throttle)) = (event, self.throttle.get()) else { return };
        self.flushes.fetch_add(1, Ordering::Relaxed);
        for _ in 0..LOOKS_MAX {
            if throttle.flush_waiters.load(Ordering::Relaxed) > 0 {
                return;
            }
            thread::sleep(MILLISECOND);
        }
        self.in_vain.fetch_add(1, Ordering::Relaxed);
    }
}

/// A database with threads, and its statistics.
struct World {
    db: Database,
    family: Arc<Family>,
    statistics: Arc<Statistics>,
}

impl World {
    fn new(change: impl FnOnce(&mut OpenOptions, &mut FamilyOptions)) -> Self {
        let vfs = MemoryVfs::new(1);
        vfs.set_runs_inline(false);
        let mut options = OpenOptions::create_if_missing();
        options.vfs = vfs;
        options.db.statistics = true;
        let compression = base::options::CompressionKind::None; // tables are as large as what was written
        let mut family = FamilyOptions { write_buffer_size: 64 << 10, compression, ..FamilyOptions::default() };
        change(&mut options, &mut family);
        let db = Database::open("/db", &options.family(DEFAULT_FAMILY, family)).unwrap();
        let statistics = db.core().context.statistics.clone().unwrap();
        World { family: db.default_family(), db, statistics }
    }

    fn throttle(&self) -> &Arc<Throttle> {
        &self.db.core().context.throttle
    }

    fn put(&self, key: u32, options: &WriteOptions) {
        self.db.put(&self.family, &key.to_be_bytes(), &[7; 4 << 10], options).unwrap();
    }

    /// Also until a flush: a wait for memory may end by a released spare.
    fn put_until_held_up_and_flushed(&self, cause: &str, options: &WriteOptions) {
        let waits = || self.db.stalls().iter().find(|stall| stall.cause.name() == cause).unwrap().waits;
        for key in 1..1000 {
            self.put(key, options);
            if waits() > 0 && self.statistics.count(Ticker::FlushWriteBytes) > 0 {
                return;
            }
        }
        panic!("nothing was ever held up and flushed: {cause}");
    }

    /// Flushes in the background without a waiting caller.
    fn flush_unawaited(&self) {
        self.db.begin_flush(&[&self.family]).unwrap();
        while !self.db.core().state.lock().families.values().all(|family| family.queue.is_empty()) {
            thread::yield_now();
        }
    }

    fn rested_us(&self) -> u64 {
        self.statistics.count(Ticker::BackgroundRestMicros)
    }

    fn ingest(&self, mode: IngestMode) {
        let (vfs, file) = (self.db.core().context.vfs.clone(), PathBuf::from("/one.sst"));
        let mut table = TableWriter::create(vfs, &file, &FamilyOptions::default()).unwrap();
        table.put(&0u32.to_be_bytes(), b"ingested").unwrap();
        table.finish().unwrap();
        let request = IngestRequest::new(self.family.clone(), vec![file]);
        self.db.ingest_all(&[request], &IngestOptions { mode, ..IngestOptions::default() }).unwrap();
    }
}

#[test]
fn a_database_s_jobs_wait_beside_callers_that_sync() {
    let world = World::new(|_, _| {});
    world.put(0, &WriteOptions::synced());
    world.flush_unawaited();
    assert!(world.rested_us() > 0);
    let world = World::new(|_, _| {});
    world.put(0, &WriteOptions::default());
    world.flush_unawaited();
    assert_eq!(world.rested_us(), 0, "nobody synced");
    world.put(0, &WriteOptions::default());
    world.db.sync_log().unwrap();
    world.flush_unawaited();
    assert!(world.rested_us() > 0, "a caller synced the log");
}

/// Measured by the virtual clock: it advances almost only by the waits of jobs.
#[test]
fn a_database_keeps_the_limit_of_its_options_and_of_a_limiter_that_others_share() {
    let flush = |world: &World| {
        (0..14).for_each(|key| world.put(key, &WriteOptions::default()));
        world.flush_unawaited();
    };
    let rate = 64 << 10;
    let of_options = World::new(|options, _| options.db.rate_limiter_bytes_per_sec = rate);
    flush(&of_options);
    let expected_us = (14 << 12) * 1_000_000 / rate;
    assert!(of_options.rested_us().abs_diff(expected_us) < expected_us / 5, "{}", of_options.rested_us());
    let shared = MemoryVfs::new(1);
    let limiter = RateLimiter::with(shared.clone(), rate);
    let worlds = [(); 2].map(|()| World::new(|options, _| options.rate_limiter = Some(limiter.clone())));
    worlds.iter().for_each(flush);
    assert!(micros(shared.now()) >= 2 * expected_us * 4 / 5, "{:?}", shared.now());
}

#[test]
fn the_limit_of_an_open_database_changes() {
    let world = World::new(|options, _| options.db.rate_limiter_bytes_per_sec = 64 << 10);
    let rest_of_a_flush_us = || {
        let before = world.rested_us();
        (0..14).for_each(|key| world.put(key, &WriteOptions::default()));
        world.flush_unawaited();
        world.rested_us() - before
    };
    let set = |limit| world.db.set_db_options(&[("rate_limiter_bytes_per_sec", limit)]).expect("changed");
    let slow_us = rest_of_a_flush_us();
    set("131072");
    assert!((2 * rest_of_a_flush_us()).abs_diff(slow_us) < slow_us / 5);
    set("0");
    assert_eq!(rest_of_a_flush_us(), 0);
    // A fourth flush would begin a compaction, which waits too.
}

/// Begins a flush beside synced writes, and awaits it by `wait`. Returns the rests of flushes in microseconds.
fn check_awaited(
    name: &str,
    change: impl FnOnce(&mut OpenOptions, &mut FamilyOptions),
    wait: impl FnOnce(&World, &WriteOptions),
) -> u64 {
    let held = Arc::new(UntilAwaited::default());
    let world = World::new(|options, family| {
        options.db.listeners.push(held.clone());
        change(options, family);
    });
    let _ = held.throttle.set(world.throttle().clone());
    let synced = WriteOptions::synced();
    world.put(0, &synced);
    wait(&world, &synced);
    let counts = [&held.flushes, &held.in_vain].map(|count| count.load(Ordering::Relaxed));
    assert!(counts[0] > 0, "{name}: nothing was flushed");
    assert_eq!(counts[1], 0, "{name}: flushes nobody waited for");
    assert_eq!(world.throttle().flush_waiters.load(Ordering::Relaxed), 0, "{name}: nobody waits any more");
    world.rested_us()
}

#[test]
fn flushes_that_somebody_waits_for_do_not_wait() {
    let unlimited = |rested_us: u64| assert_eq!(rested_us, 0, "the caller waits until the flush ends");
    unlimited(check_awaited("flush", |_, _| {}, |world, _| world.db.flush(&[&world.family]).unwrap()));
    unlimited(check_awaited(
        "eager",
        |_, _| {},
        |world, synced| world.put(1, &WriteOptions { flush_after: true, ..*synced }),
    ));
    unlimited(check_awaited("blocking ingest", |_, _| {}, |world, _| world.ingest(IngestMode::Blocking)));
    unlimited(check_awaited("direct ingest", |_, _| {}, |world, _| world.ingest(IngestMode::Direct)));
    // Writers go on once there is room, which may be before the flush ends: its last bytes are paid for.
    check_awaited(
        "full queue",
        |_, family| family.max_write_buffer_number = 2,
        |world, synced| world.put_until_held_up_and_flushed("memtable-limit", synced),
    );
    check_awaited(
        "memory",
        |options, family| {
            family.write_buffer_size = 1 << 20;
            (options.db.db_write_buffer_size, options.db.allow_stall) = (256 << 10, true);
        },
        |world, synced| world.put_until_held_up_and_flushed("memory-limit", synced),
    );
    unlimited(check_awaited(
        "waiting for compactions",
        |_, _| {},
        |world, _| {
            world.db.begin_flush(&[&world.family]).unwrap();
            world.db.wait_for_compaction().unwrap();
        },
    ));
    unlimited(check_awaited(
        "close",
        |_, _| {},
        |world, _| {
            world.db.begin_flush(&[&world.family]).unwrap();
            while world.db.core().state.lock().flushes_running == 0 {
                thread::yield_now();
            }
            world.db.close().unwrap();
        },
    ));
}

#[test]
fn jobs_do_not_wait_once_three_compactions_do() {
    let mut options = OpenOptions::create_if_missing();
    options.vfs = MemoryVfs::new(1);
    let family = FamilyOptions { disable_auto_compactions: true, ..FamilyOptions::default() };
    let three = 3 * family.level0_file_num_compaction_trigger;
    let db = Database::open("/db", &options.family(DEFAULT_FAMILY, family)).unwrap();
    let family = db.default_family();
    for flushed in 1..=three + 1 {
        db.put(&family, b"key", b"value", &WriteOptions::default()).unwrap();
        db.flush(&[&family]).unwrap();
        assert_eq!(debt(&db) >= 1.0, flushed >= three, "after {flushed} flushes");
    }
    db.close().unwrap();
}

fn debt(db: &Database) -> f64 {
    f64::from_bits(db.core().context.throttle.debt.load(Ordering::Relaxed))
}

#[test]
fn debt_is_tables_that_wait_in_level_0_or_bytes_in_all() {
    let mut options = OpenOptions::create_if_missing();
    options.vfs = MemoryVfs::new(1);
    let family = FamilyOptions { disable_auto_compactions: true, ..FamilyOptions::default() };
    let base_bytes = *family.max_bytes_for_level_base;
    let db = Database::open("/db", &options.family(DEFAULT_FAMILY, family)).unwrap();
    let (core, family) = (db.core(), db.default_family());
    let debt_of = |pending: u64| {
        let mut state = core.state.lock();
        state.families.values_mut().for_each(|family| family.pending_compaction_bytes = pending);
        core.refresh_throttle(&state);
        (debt(&db) * 12.0).round()
    };
    assert_eq!([0, base_bytes, 3 * base_bytes, 9 * base_bytes].map(debt_of), [0.0, 2.0, 6.0, 12.0]);
    let by_tables = [1, 2, 3, 4, 5].map(|_| {
        db.put(&family, b"key", b"value", &WriteOptions::default()).unwrap();
        db.flush(&[&family]).unwrap();
        debt_of(0)
    });
    assert_eq!(by_tables, [1.0, 2.0, 3.0, 4.0, 5.0]);
    db.close().unwrap();
}
