use parking_lot::Mutex;
use vfs::MemoryVfs;

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

/// Time passes in sleep, and by a microsecond for each look at the clock.
fn pace() -> Arc<Pace> {
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false);
    Pace::new(vfs, Some(Arc::new(Statistics::new())), true)
}

fn synced_pace() -> Arc<Pace> {
    let pace = pace();
    pace.vfs.sleep(MILLISECOND);
    pace.note_log_sync(pace.vfs.now());
    pace
}

/// How long a job rests that worked for so long.
fn rest_after(pacer: &Pacer, work: Duration) -> Duration {
    let vfs = &pacer.pace.vfs;
    pacer.rested_us.store(micros(vfs.now()), Ordering::Relaxed);
    vfs.sleep(work);
    let start = vfs.now();
    pacer.breathe();
    vfs.now() - start
}

fn is_about(rest: Duration, expected: Duration) -> bool {
    rest >= expected && rest < expected + Duration::from_micros(50)
}

#[test]
fn a_job_rests_for_a_multiple_of_its_work_while_the_log_is_synced() {
    let pace = synced_pace();
    let (compaction, flush) = (pace.pacer(IoClass::Compaction), pace.pacer(IoClass::Flush));
    assert!(is_about(rest_after(&compaction, MILLISECOND), 8 * MILLISECOND));
    assert!(is_about(rest_after(&flush, MILLISECOND), MILLISECOND));
    assert!(is_about(rest_after(&compaction, BURST / 2), Duration::ZERO), "a burst is not over");
    assert!(is_about(rest_after(&compaction, 40 * MILLISECOND), REST_MAX));
    let rested = pace.statistics.as_ref().unwrap().count(Ticker::BackgroundRestMicros);
    assert!((19_000..19_100).contains(&rested), "{rested}");
}

#[test]
fn a_compaction_rests_the_longer_the_less_waits_for_it() {
    let pace = synced_pace();
    let (compaction, flush) = (pace.pacer(IoClass::Compaction), pace.pacer(IoClass::Flush));
    for (backlog, rests) in [(0.0, 8), (0.5, 5), (1.0, 2), (7.0, 2), (f64::NAN, 2), (0.0, 8)] {
        pace.set_backlog(backlog);
        assert!(is_about(rest_after(&compaction, MILLISECOND), rests * MILLISECOND), "{backlog}");
        assert!(is_about(rest_after(&flush, MILLISECOND), MILLISECOND), "a flush frees memory: {backlog}");
    }
}

#[test]
fn nothing_rests_that_is_behind_or_beside_nobody() {
    let never_synced = pace();
    assert!(is_about(rest_after(&never_synced.pacer(IoClass::Flush), MILLISECOND), Duration::ZERO));
    let pace = synced_pace();
    let pacer = pace.pacer(IoClass::Flush);
    pace.set_behind(true);
    assert!(is_about(rest_after(&pacer, MILLISECOND), Duration::ZERO));
    pace.set_behind(false);
    assert!(is_about(rest_after(&pacer, MILLISECOND), MILLISECOND));
    assert!(is_about(rest_after(&pacer, SYNCED_LATELY), Duration::ZERO), "the last sync is long past");
}

#[test]
fn jobs_rest_beside_writers_that_do_not_fill_memtables_fast() {
    let pace = pace();
    let pacer = pace.pacer(IoClass::Flush);
    let rests = || !is_about(rest_after(&pacer, MILLISECOND), Duration::ZERO);
    let see = |visible: u64| pace.note_visible(SeqNo(visible), pace.vfs.now());
    pace.vfs.sleep(MILLISECOND);
    see(7);
    assert!(rests());
    pace.vfs.sleep(WRITTEN_LATELY);
    see(7);
    assert!(!rests(), "nothing was written since");
    see(8);
    assert!(rests());
    pace.note_replaced(pace.vfs.now());
    assert!(rests(), "one memtable in a long time");
    pace.note_replaced(pace.vfs.now());
    assert!(!rests(), "two in a short one");
    pace.vfs.sleep(FILLS_FAST);
    see(9);
    assert!(rests());
    pace.note_replaced(pace.vfs.now());
    assert!(rests(), "the one before is long past");
}

#[test]
fn a_job_rests_no_more_while_somebody_waits_for_its_like() {
    let pace = synced_pace();
    let (compaction, flush) = (pace.pacer(IoClass::Compaction), pace.pacer(IoClass::Flush));
    let rests = || [&compaction, &flush].map(|pacer| !is_about(rest_after(pacer, MILLISECOND), Duration::ZERO));
    assert_eq!(rests(), [true, true]);
    let awaited = (pace.await_flushes(), pace.await_flushes());
    assert_eq!(rests(), [true, false], "a compaction gives way to what is waited for");
    drop(awaited.0);
    assert_eq!(rests(), [true, false], "one of two waits still");
    drop(awaited.1);
    assert_eq!(rests(), [true, true]);
    let _awaited = pace.await_compactions();
    assert_eq!(rests(), [false, true]);
}

/// Notes what it is told to do.
struct Told(Arc<Mutex<Vec<u64>>>, u64);

impl AppendFile for Told {
    fn append(&mut self, bytes: &[u8], _class: IoClass) -> Result<()> {
        self.1 += bytes.len() as u64;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.1
    }

    fn sync(&mut self, _class: IoClass) -> Result<()> {
        Ok(())
    }

    fn write_back(&mut self, _class: IoClass) {
        self.0.lock().push(self.1);
    }
}

#[test]
fn a_table_goes_to_the_disk_in_pieces_while_the_log_is_synced() {
    let pace = synced_pace();
    let written_back = Arc::new(Mutex::new(Vec::new()));
    let mut file = pace.pacer(IoClass::Compaction).keep(Box::new(Told(written_back.clone(), 0)));
    file.append(&[7; 200 << 10], IoClass::Compaction).unwrap();
    assert_eq!(*written_back.lock(), [64 << 10, 128 << 10, 200 << 10], "the last takes the rest: no crumbs");
}

#[test]
fn a_table_goes_on_in_one_piece_once_somebody_waits_for_it() {
    let pace = synced_pace();
    let written_back = Arc::new(Mutex::new(Vec::new()));
    let mut file = pace.pacer(IoClass::Flush).keep(Box::new(Told(written_back.clone(), 0)));
    file.append(&[7; 200 << 10], IoClass::Flush).unwrap();
    let in_pieces = written_back.lock().len();
    let _awaited = pace.await_flushes();
    file.append(&[7; 200 << 10], IoClass::Flush).unwrap();
    assert_eq!((in_pieces, written_back.lock().len(), file.len()), (3, 3, 400 << 10));
}

mod database;
