use vfs::MemoryVfs;

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);
const MIB: u64 = 1 << 20;

/// Time passes in sleep, and by a microsecond for each look at the clock.
fn throttle(bytes_per_s: u64) -> (Arc<MemoryVfs>, Arc<Throttle>) {
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false);
    vfs.sleep(MILLISECOND);
    let limiter = RateLimiter::with(vfs.clone(), bytes_per_s);
    (vfs.clone(), Throttle::new(vfs, Some(Arc::new(Statistics::new())), limiter))
}

/// Notes what it is told to do.
#[derive(Clone, Default)]
struct Told {
    bytes: u64,
    written_back: Arc<Mutex<Vec<u64>>>,
}

impl AppendFile for Told {
    fn append(&mut self, bytes: &[u8], _class: IoClass) -> Result<()> {
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn sync(&mut self, _class: IoClass) -> Result<()> {
        Ok(())
    }

    fn write_back(&mut self, _class: IoClass) {
        self.written_back.lock().push(self.bytes);
    }
}

/// How long it takes to write so much.
fn time_of(throttle: &Arc<Throttle>, class: IoClass, bytes: u64) -> Duration {
    let start = throttle.vfs.now();
    let mut file = throttle.limit(Box::new(Told::default()), class);
    file.append(&vec![7; bytes as usize], class).unwrap();
    throttle.vfs.now() - start
}

fn is_about(time: Duration, expected: Duration) -> bool {
    time.abs_diff(expected) <= expected / 5
}

#[test]
fn a_limit_is_kept_by_all_jobs_together_whoever_writes() {
    let (vfs, throttle) = throttle(8 * MIB);
    assert!(is_about(time_of(&throttle, IoClass::Flush, 8 * MIB), Duration::from_secs(1)));
    assert!(is_about(time_of(&throttle, IoClass::Compaction, 16 * MIB), Duration::from_secs(2)));
    let rested = throttle.statistics.as_ref().unwrap().count(Ticker::BackgroundRestMicros);
    assert!(is_about(Duration::from_micros(rested), Duration::from_secs(3)));
    // Two databases, one of which wrote before.
    let other = Throttle::new(vfs.clone(), None, throttle.limiter.clone());
    throttle.limiter.charge(Work::Flush, 4 * MIB, 8 * MIB);
    assert!(is_about(time_of(&other, IoClass::Flush, 4 * MIB), Duration::from_secs(1)));
    throttle.limiter.set_bytes_per_second(0);
    assert!(time_of(&other, IoClass::Flush, 8 * MIB) < MILLISECOND, "no limit");
}

#[test]
fn freed_space_takes_nothing_of_a_limit_on_bytes_written() {
    let (_, fixed) = throttle(8 * MIB);
    let wait = |throttle: &Throttle| throttle.charge(Work::Deletion, 64 * MIB).expect("limited");
    assert!(is_about(wait(&fixed), Duration::from_secs(2)), "four times the limit");
    assert!(is_about(time_of(&fixed, IoClass::Flush, 8 * MIB), Duration::from_secs(1)));
    let (_, automatic) = throttle(0);
    automatic.record_sync();
    let freed = wait(&automatic);
    automatic.record_sync();
    assert!(time_of(&automatic, IoClass::Flush, MIB) >= freed / 2, "the disk has both to do");
}

#[test]
fn what_nobody_wrote_meanwhile_is_not_made_up_for() {
    let (vfs, throttle) = throttle(8 * MIB);
    vfs.sleep(Duration::from_secs(60));
    assert!(is_about(time_of(&throttle, IoClass::Flush, 8 * MIB), Duration::from_secs(1)));
}

#[test]
fn a_job_that_somebody_waits_for_passes_the_limit_by() {
    let (_, throttle) = throttle(MIB);
    let times = || [IoClass::Flush, IoClass::Compaction].map(|class| time_of(&throttle, class, MIB) >= MILLISECOND);
    assert_eq!(times(), [true, true]);
    let awaited = (throttle.await_flushes(), throttle.await_flushes());
    assert_eq!(times(), [false, true]);
    drop(awaited.0);
    assert_eq!(times(), [false, true], "one of two waits still");
    drop(awaited.1);
    let awaited = throttle.await_compactions();
    assert_eq!(times(), [true, false]);
    drop(awaited);
    assert_eq!(times(), [true, true]);
}

#[test]
fn a_job_that_waits_goes_on_once_somebody_comes_to_wait_for_it() {
    let vfs = vfs::RealVfs::new();
    let limiter = RateLimiter::with(vfs.clone(), 1000); // a minute for what is written
    let throttle = Throttle::new(vfs.clone(), None, limiter);
    let written = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            written.wait();
            vfs.sleep(20 * MILLISECOND);
            let awaited = throttle.await_flushes();
            written.wait();
            drop(awaited);
        });
        written.wait();
        let took = time_of(&throttle, IoClass::Flush, 60_000);
        written.wait();
        assert!(took < Duration::from_secs(10), "{took:?}");
    });
}

#[test]
fn without_a_limit_jobs_are_slower_beside_syncs_only() {
    let (vfs, throttle) = throttle(0);
    let flush = || time_of(&throttle, IoClass::Flush, 16 * MIB);
    assert!(flush() < MILLISECOND, "nobody syncs");
    throttle.record_sync();
    assert!(is_about(time_of(&throttle, IoClass::Flush, 8 * MIB), Duration::from_millis(500)));
    throttle.record_sync();
    throttle.set_debt(1.0);
    assert!(flush() < MILLISECOND, "behind");
    throttle.set_debt(0.0);
    vfs.sleep(LATELY);
    assert!(flush() < MILLISECOND, "nobody syncs any more");
}

#[test]
fn memtables_that_fill_fast_are_flushed_fast() {
    let (vfs, throttle) = throttle(0);
    let fill = |bytes: u64, time: Duration| {
        vfs.sleep(time);
        throttle.record_filled(bytes as usize);
        throttle.record_sync();
    };
    fill(64 * MIB, Duration::from_secs(1));
    fill(64 * MIB, Duration::from_secs(1));
    assert!(is_about(time_of(&throttle, IoClass::Flush, 64 * MIB), Duration::from_millis(500)));
    assert!(is_about(time_of(&throttle, IoClass::Compaction, 64 * MIB), Duration::from_millis(100)));
    vfs.sleep(Duration::from_secs(100));
    throttle.record_sync();
    assert!(is_about(time_of(&throttle, IoClass::Flush, 8 * MIB), Duration::from_millis(500)), "that is long ago");
}

#[test]
fn a_table_goes_to_the_disk_in_pieces_while_it_is_limited() {
    let (_, throttle) = throttle(MIB);
    let told = Told::default();
    let mut file = throttle.limit(Box::new(told.clone()), IoClass::Compaction);
    file.append(&[7; 200 << 10], IoClass::Compaction).unwrap();
    assert_eq!(*told.written_back.lock(), [64 << 10, 128 << 10, 200 << 10], "the last takes the rest: no crumbs");
}

mod database;

#[test]
fn what_passes_is_counted_limited_or_not() {
    for bytes_per_s in [0, 8 * MIB] {
        let (_, throttle) = throttle(bytes_per_s);
        time_of(&throttle, IoClass::Flush, MIB);
        time_of(&throttle, IoClass::Compaction, 2 * MIB);
        assert_eq!((throttle.limiter.total_bytes(), throttle.limiter.total_requests()), (3 * MIB, 2));
    }
    let (vfs, throttle) = throttle(8 * MIB);
    let start = vfs.now();
    throttle.limiter.request(8 * MIB);
    assert!(is_about(vfs.now() - start, Duration::from_secs(1)));
    assert_eq!(throttle.limiter.total_bytes(), 8 * MIB);
}
