//! Space runs out and returns under threads that write, flush, compact and resume. Every crash image holds the
//! acknowledged writes, the only error is a lack of space, and work resumes by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use testkit::engine::{
    CompactRangeOptions, Db, Error, ErrorKind, FamilyOptions, OtherFamilies, ReadOptions, WriteBatch, WriteOptions,
};
use testkit::profile::{self, Profile};
use testkit::random::Random;
use testkit::threads::{wait_for, within};
use vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, IoClass, MemoryVfs, Operation, Rule, Vfs};

use super::{DIR, LIMIT};

const WRITERS: u64 = 2;
const ROUNDS: usize = 6;
const FAMILIES: [&str; 2] = ["default", "other"];
const POLICIES: [CrashPolicy; 3] =
    [CrashPolicy::NothingUnsyncedKept, CrashPolicy::RandomBlocksKept, CrashPolicy::ProcessKilled];

fn entry(writer: u64, n: u64) -> (Vec<u8>, Vec<u8>) {
    let mut random = Random::new(writer << 32 | n);
    let key = [random.draw().to_le_bytes(), (writer << 32 | n).to_le_bytes()].concat();
    (key, (0..100).flat_map(|_| random.draw().to_le_bytes()).collect())
}

/// What the writers have written, each its own entries in order, each into both families.
#[derive(Default)]
struct Written([AtomicU64; WRITERS as usize]);

impl Written {
    fn now(&self) -> Vec<u64> {
        self.0.iter().map(|count| count.load(Ordering::Acquire)).collect()
    }
}

fn check(db: &Db, written: &[u64], what: &str) {
    for (writer, count) in (0..).zip(written) {
        for (n, name) in (0..*count).flat_map(|n| FAMILIES.map(|name| (n, name))) {
            let (key, value) = entry(writer, n);
            let found = db.get(&db.family(name).unwrap(), &key, &ReadOptions::default()).unwrap();
            assert!(found.as_deref() == Some(&value[..]), "{what}: {name}: write {n} of {count} is lost");
        }
    }
}

fn assert_lacks_space(who: &str, error: &Error) {
    assert!(matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Busy), "{who}: {error:?}");
}

fn write_until(ended: &AtomicBool, db: &Db, writer: u64, count: &AtomicU64) {
    while !ended.load(Ordering::Relaxed) {
        let n = count.load(Ordering::Relaxed);
        let (key, value) = entry(writer, n);
        let mut batch = WriteBatch::new();
        FAMILIES.iter().for_each(|name| batch.put(db.family(name).unwrap().id(), &key, &value));
        match db.write(&batch, &WriteOptions { no_slowdown: true, ..WriteOptions::synced() }) {
            Ok(_) => count.store(n + 1, Ordering::Release),
            Err(error) => assert_lacks_space("a writer", &error),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn manage_until(ended: &AtomicBool, db: &Db) {
    let mut random = Random::new(7);
    for n in 0.. {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let family = db.family(random.pick::<&str>(&FAMILIES)).unwrap();
        let (what, done) = match random.below(5) {
            0 => ("a flush", db.flush(&[&family])),
            1 => ("a compaction", db.compact_range(&family, None, None, &CompactRangeOptions::default())),
            2 => ("a wait", db.wait_for_compaction()),
            3 => ("resume", db.resume()),
            _ => ("a family", come_and_go(db, n)),
        };
        done.as_ref().err().into_iter().for_each(|error| assert_lacks_space(what, error));
        std::thread::sleep(Duration::from_millis(random.below(4)));
    }
}

fn come_and_go(db: &Db, n: u64) -> testkit::engine::Result<()> {
    let family = db.create_family(&n.to_string(), FamilyOptions::default())?;
    db.put(&family, b"key", b"value", &WriteOptions::default())?;
    let flushed = db.flush(&[&family]);
    flushed.and(db.drop_family(&family))
}

fn a_rule(random: &mut Random) -> Rule {
    let faults: [fn(FaultCode) -> Fault; 3] = [Fault::Error, Fault::ErrorAfter, Fault::ShortWrite];
    let rule = Rule::new(random.pick(&faults)(FaultCode::NoSpace));
    let rule = match random.below(6) {
        0 => rule.on(Operation::Write).path("MANIFEST"),
        1 => rule.on(Operation::Sync).path("MANIFEST"),
        2 => rule.on(Operation::Write).class(IoClass::Flush),
        3 => rule.on(Operation::Write).class(IoClass::Compaction),
        4 => rule.on(Operation::Create).path("MANIFEST"),
        _ => rule.on(Operation::Create).path(".sst"),
    };
    if random.chance(60) { rule.sticky() } else { rule }
}

fn open_all(vfs: Arc<dyn Vfs>, profile: Profile) -> Db {
    let mut options = profile.open_options(vfs, FAMILIES);
    options.other_families = OtherFamilies::OpenWith(Box::default());
    Db::open(DIR, &options).unwrap()
}

fn live(name: &'static str, seed: u64) {
    let memory = MemoryVfs::new(seed);
    memory.set_runs_inline(false);
    let faults = FaultVfs::new(memory.clone());
    let profile = profile::by_name(name).unwrap();
    let db = open_all(faults.clone(), profile);
    let (written, ended) = (Written::default(), AtomicBool::new(false));
    let mut random = Random::new(seed);
    std::thread::scope(|scope| {
        let _ends = Ends(&ended);
        for (writer, count) in (0..).zip(&written.0) {
            let (ended, db) = (&ended, &db);
            scope.spawn(move || write_until(ended, db, writer, count));
        }
        scope.spawn(|| manage_until(&ended, &db));
        for round in 0..ROUNDS {
            std::thread::sleep(Duration::from_millis(random.below(40)));
            let rule = a_rule(&mut random);
            let what = format!("{name}, seed {seed}, round {round}: {rule:?}");
            faults.inject(rule);
            std::thread::sleep(Duration::from_millis(random.below(60)));
            let least = written.now();
            let crashed = memory.crash_clone(seed, *random.pick(&POLICIES));
            check(&open_all(crashed, profile), &least, &what);
            faults.clear();
            let before = written.now();
            wait_for(&what, || written.now().iter().zip(&before).all(|(now, before)| *now > before + 2));
        }
    });
    let written = written.now();
    db.wait_for_compaction().unwrap();
    check(&db, &written, name);
    db.close().unwrap();
    check(&open_all(memory, profile), &written, name);
}

/// Ends the threads when dropped, by a panic too: who panics waits for them.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `SPILLWAY_SEED` sets the first seed, `SPILLWAY_SEEDS` the number of seeds.
#[test]
fn space_comes_and_goes_under_threads() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let first: u64 = number("SPILLWAY_SEED", 1);
    for seed in first..first + number("SPILLWAY_SEEDS", 1) {
        for name in ["tiny", "converted", "referring"] {
            within(LIMIT, move || live(name, seed));
        }
    }
}
