use parking_lot::Mutex;
use vfs::MemoryVfs;

use super::*;
use crate::db::DEFAULT_FAMILY;
use crate::{Db, FamilyOptions, OpenOptions, WriteOptions};

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
    let (compaction, flush) = (pace.pacer(IoClass::Compaction, false), pace.pacer(IoClass::Flush, false));
    assert!(is_about(rest_after(&compaction, MILLISECOND), 2 * MILLISECOND));
    assert!(is_about(rest_after(&flush, MILLISECOND), MILLISECOND));
    assert!(is_about(rest_after(&compaction, BURST / 2), Duration::ZERO), "a burst is not over");
    assert!(is_about(rest_after(&compaction, 40 * MILLISECOND), REST_MAX));
    let rested = pace.statistics.as_ref().unwrap().count(Ticker::BackgroundRestMicros);
    assert!((13_000..13_100).contains(&rested), "{rested}");
}

#[test]
fn nothing_rests_that_is_waited_for_or_behind_or_beside_no_sync() {
    let never_synced = pace();
    assert!(is_about(rest_after(&never_synced.pacer(IoClass::Flush, false), MILLISECOND), Duration::ZERO));
    let pace = synced_pace();
    assert!(is_about(rest_after(&pace.pacer(IoClass::Flush, true), MILLISECOND), Duration::ZERO));
    let pacer = pace.pacer(IoClass::Flush, false);
    pace.set_behind(true);
    assert!(is_about(rest_after(&pacer, MILLISECOND), Duration::ZERO));
    pace.set_behind(false);
    assert!(is_about(rest_after(&pacer, MILLISECOND), MILLISECOND));
    assert!(is_about(rest_after(&pacer, SYNCED_LATELY), Duration::ZERO), "the last sync is long past");
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
    let mut file = pace.pacer(IoClass::Compaction, false).keep(Box::new(Told(written_back.clone(), 0)));
    file.append(&[7; 200 << 10], IoClass::Compaction).unwrap();
    assert_eq!(*written_back.lock(), [64 << 10, 128 << 10, 200 << 10], "the last takes the rest: no crumbs");
}

/// How long a database's flush rested.
fn rested_us(synced: bool, paced: bool) -> u64 {
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false);
    let mut options = OpenOptions::create_if_missing();
    options.vfs = vfs;
    (options.db.statistics, options.db.pace_background_writes) = (true, paced);
    let db = Db::open("/db", &options).unwrap();
    let family = db.default_family();
    let sync = if synced { WriteOptions::synced() } else { WriteOptions::default() };
    db.put(&family, b"key", b"value", &sync).unwrap();
    db.flush(&[&family]).unwrap();
    let statistics = db.core().context.statistics.clone().unwrap();
    db.close().unwrap();
    statistics.count(Ticker::BackgroundRestMicros)
}

#[test]
fn a_database_s_jobs_rest_beside_writers_that_sync() {
    assert!(rested_us(true, true) > 0);
    assert_eq!(rested_us(false, true), 0, "nobody synced");
    assert_eq!(rested_us(true, false), 0, "switched off");
}

#[test]
fn jobs_go_on_without_rests_once_three_compactions_wait() {
    let mut options = OpenOptions::create_if_missing();
    options.vfs = MemoryVfs::new(1);
    let family = FamilyOptions { disable_auto_compactions: true, ..FamilyOptions::default() };
    let three = 3 * family.level0_file_num_compaction_trigger;
    let db = Db::open("/db", &options.family(DEFAULT_FAMILY, family)).unwrap();
    let family = db.default_family();
    for flushed in 1..=three + 1 {
        db.put(&family, b"key", b"value", &WriteOptions::default()).unwrap();
        db.flush(&[&family]).unwrap();
        let is_behind = db.core().context.pace.is_behind.load(Ordering::Relaxed);
        assert_eq!(is_behind, flushed >= three, "after {flushed} flushes");
    }
    db.close().unwrap();
}
