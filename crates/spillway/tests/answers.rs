//! The kept answers of hot keys: found again, and never stale.
#![allow(clippy::disallowed_methods, reason = "a test of threads needs threads")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use testkit::engine::extend::{CompactionFilter, FilterDecision};
use testkit::engine::metrics::{Statistics, Ticker};
use testkit::engine::options::{DbOptions, TableOptions};
use testkit::engine::vfs::{MemoryVfs, Vfs};
use testkit::engine::{
    BlockCache, BottommostLevelCompaction, CompactRangeOptions, Db, FamilyOptions, IngestOptions, IngestRequest,
    OpenOptions, ReadOptions, TableWriter, WriteOptions,
};

struct World {
    vfs: Arc<MemoryVfs>,
    db: Db,
}

fn options(vfs: &Arc<MemoryVfs>, family: FamilyOptions) -> OpenOptions {
    let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }.family("default", family);
    options.db.statistics = true;
    options
}

impl World {
    fn new() -> World {
        World::with(FamilyOptions::default(), |_| {})
    }

    fn with(family: FamilyOptions, change: impl FnOnce(&mut OpenOptions)) -> World {
        let vfs = MemoryVfs::new(1);
        let mut options = options(&vfs, FamilyOptions { disable_auto_compactions: true, ..family });
        change(&mut options);
        World { db: Db::open("/db", &options).expect("open"), vfs }
    }

    fn put(&self, key: &str, value: &str) {
        let family = self.db.default_family();
        self.db.put(&family, key.as_bytes(), value.as_bytes(), &WriteOptions::default()).expect("put");
    }

    fn flush(&self) {
        self.db.flush(&[&self.db.default_family()]).expect("flushed");
    }

    fn compact(&self) {
        let all = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        self.db.compact_range(&self.db.default_family(), None, None, &all).expect("compacted");
    }

    fn count(&self, ticker: Ticker) -> u64 {
        let statistics: Arc<Statistics> = self.db.statistics().expect("asked for");
        statistics.count(ticker)
    }

    fn get_by(&self, key: &str, options: &ReadOptions) -> Option<String> {
        let found = self.db.get(&self.db.default_family(), key.as_bytes(), options).expect("get");
        found.map(|value| String::from_utf8(value.to_vec()).expect("text"))
    }

    /// The value, and whether a kept answer gave it.
    fn get(&self, key: &str) -> (Option<String>, bool) {
        let before = self.count(Ticker::RowCacheHit);
        let found = self.get_by(key, &ReadOptions::default());
        (found, self.count(Ticker::RowCacheHit) > before)
    }

    /// Looks the key up until its answer is kept, and checks every answer.
    fn heat(&self, key: &str, expected: Option<&str>) {
        (0..6).for_each(|_| assert_eq!(self.get(key).0.as_deref(), expected, "{key}"));
        assert_eq!(self.get(key), (expected.map(str::to_owned), true), "{key}");
    }

    fn table(&self, name: &str, fill: impl FnOnce(&mut TableWriter)) -> PathBuf {
        let path = PathBuf::from(format!("/{name}.sst"));
        let vfs: Arc<dyn Vfs> = self.vfs.clone();
        let mut writer = TableWriter::create(vfs, &path, &FamilyOptions::default()).expect("made");
        fill(&mut writer);
        writer.finish().expect("finished");
        path
    }

    fn ingest(&self, request: IngestRequest, options: &IngestOptions) {
        self.db.ingest_all(&[request], options).expect("ingested");
    }
}

#[test]
fn a_key_looked_up_often_is_answered_without_its_table() {
    let world = World::new();
    world.put("a", "1");
    assert_eq!(world.get("a"), (Some("1".into()), false));
    world.flush();
    let hits: Vec<bool> = (0..7).map(|_| world.get("a").1).collect();
    assert_eq!(hits, [false, false, false, false, false, true, true]);
    let blocks = world.count(Ticker::BlockCacheDataHit);
    world.heat("a", Some("1"));
    assert_eq!(world.count(Ticker::BlockCacheDataHit), blocks);
    assert!(world.count(Ticker::RowCacheMiss) >= 5);
    world.heat("missing", None);
}

#[test]
fn many_lookups_at_once_ask_and_keep_answers_too() {
    let world = World::new();
    ["a", "b", "c"].iter().for_each(|key| world.put(key, key));
    world.flush();
    let (family, keys) = (world.db.default_family(), [&b"c"[..], b"a", b"x", b"b"]);
    for _ in 0..7 {
        let found = world.db.multi_get(&family, &keys, &ReadOptions::default()).expect("looked up");
        let found: Vec<_> = found.into_iter().map(|value| value.expect("found").map(|value| value.to_vec())).collect();
        assert_eq!(found, [Some(b"c".to_vec()), Some(b"a".to_vec()), None, Some(b"b".to_vec())]);
    }
    assert!(world.count(Ticker::RowCacheHit) >= 4);
    assert!(world.get("a").1 && world.get("x").1);
}

#[test]
fn a_write_is_seen_in_memory_and_in_tables() {
    let world = World::new();
    let (family, write) = (world.db.default_family(), WriteOptions::default());
    world.put("a", "1");
    world.flush();
    world.heat("a", Some("1"));
    let steps: [(&dyn Fn(), Option<&str>); 4] = [
        (&|| world.put("a", "2"), Some("2")),
        (&|| world.db.delete(&family, b"a", &write).expect("deleted"), None),
        (&|| world.put("a", "3"), Some("3")),
        (&|| world.db.delete_range(&family, b"a", b"b", &write).expect("deleted"), None),
    ];
    for (step, expected) in steps {
        step();
        assert_eq!(world.get("a"), (expected.map(str::to_owned), false), "the memtable answers");
        world.flush();
        assert_eq!(world.get("a"), (expected.map(str::to_owned), false), "answers end with a flush");
        world.heat("a", expected);
    }
}

#[test]
fn a_merge_takes_a_value_and_its_result_is_kept_if_it_is_always_the_same() {
    let family = FamilyOptions { merge_operator: base::merge::by_name("stringappend"), ..FamilyOptions::default() };
    let world = World::with(family, |_| {});
    let merge = |operand: &[u8]| {
        world.db.merge(&world.db.default_family(), b"a", operand, &WriteOptions::default()).expect("merged");
    };
    world.put("a", "1");
    world.flush();
    world.heat("a", Some("1"));
    merge(b"2");
    (0..7).for_each(|_| assert_eq!(world.get("a"), (Some("1,2".into()), false)));
    world.flush();
    world.heat("a", Some("1,2"));
    merge(b"3");
    assert_eq!(world.get("a"), (Some("1,2,3".into()), false));
    world.flush();
    world.heat("a", Some("1,2,3"));
    world.compact();
    assert_eq!(world.get("a"), (Some("1,2,3".into()), true));
}

/// Its results differ from call to call.
struct Counting(AtomicU64);

impl testkit::engine::extend::MergeOperator for Counting {
    fn name(&self) -> &str {
        "test.Counting"
    }

    fn full_merge(&self, _key: &[u8], _existing: Option<&[u8]>, _operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(self.0.fetch_add(1, Ordering::SeqCst).to_string().into_bytes())
    }
}

#[test]
fn the_results_of_an_operator_that_promises_nothing_are_not_kept() {
    let operator = Arc::new(Counting(AtomicU64::new(0)));
    let world =
        World::with(FamilyOptions { merge_operator: Some(operator.clone()), ..FamilyOptions::default() }, |_| {});
    world.db.merge(&world.db.default_family(), b"a", b"", &WriteOptions::default()).expect("merged");
    world.flush();
    let start = operator.0.load(Ordering::SeqCst);
    (start..start + 8).for_each(|n| assert_eq!(world.get("a"), (Some(n.to_string()), false)));
}

#[test]
fn a_compaction_keeps_the_answers() {
    let world = World::new();
    for value in ["1", "2"] {
        world.put("a", value);
        world.put("z", value);
        world.flush();
    }
    world.db.delete(&world.db.default_family(), b"z", &WriteOptions::default()).expect("deleted");
    world.flush();
    world.heat("a", Some("2"));
    world.heat("z", None);
    world.compact();
    assert_eq!((world.get("a"), world.get("z")), ((Some("2".into()), true), (None, true)));
    // So does a move to another level.
    world.put("y", "1");
    world.flush();
    world.heat("y", Some("1"));
    let moves = CompactRangeOptions::default();
    world.db.compact_range(&world.db.default_family(), Some(b"y"), Some(b"y"), &moves).expect("moved");
    assert_eq!(world.get("y"), (Some("1".into()), true));
}

/// Removes "a", changes "b".
struct Picky;

impl CompactionFilter for Picky {
    fn name(&self) -> &str {
        "test.Picky"
    }

    fn filter(&self, _level: usize, key: &[u8], _value: &[u8]) -> FilterDecision {
        match key {
            b"a" => FilterDecision::Remove,
            b"b" => FilterDecision::ChangeValue(b"changed".to_vec()),
            _ => FilterDecision::Keep,
        }
    }
}

#[test]
fn a_filtered_compaction_ends_the_answers() {
    let filter: Arc<dyn CompactionFilter> = Arc::new(Picky);
    let world = World::with(FamilyOptions { compaction_filter: Some(filter), ..FamilyOptions::default() }, |_| {});
    ["a", "b", "c"].iter().for_each(|key| world.put(key, "1"));
    world.flush();
    ["a", "b", "c"].iter().for_each(|key| world.heat(key, Some("1")));
    world.compact();
    world.heat("a", None);
    world.heat("b", Some("changed"));
    world.heat("c", Some("1"));
}

#[test]
fn a_snapshot_sees_its_own_state_beside_the_answers() {
    let world = World::new();
    let snapshots: Vec<ReadOptions> = (1..=3)
        .map(|n| {
            world.put("a", &n.to_string());
            ReadOptions { snapshot: Some(world.db.snapshot()), ..ReadOptions::default() }
        })
        .collect();
    world.db.delete_range(&world.db.default_family(), b"a", b"b", &WriteOptions::default()).expect("deleted");
    let check = || {
        for (n, options) in (1..=3).zip(&snapshots) {
            assert_eq!(world.get_by("a", options), Some(n.to_string()));
        }
    };
    world.flush();
    (0..4).for_each(|_| check());
    world.heat("a", None);
    check();
    world.compact();
    assert_eq!(world.get("a"), (None, true), "the answer of the newest state, number and all");
    check();
    // A snapshot of the newest state has the answers, and gives them.
    world.put("b", "1");
    world.flush();
    let newest = ReadOptions { snapshot: Some(world.db.snapshot()), ..ReadOptions::default() };
    world.put("b", "2");
    let hits = world.count(Ticker::RowCacheHit);
    (0..7).for_each(|_| assert_eq!(world.get_by("b", &newest), Some("1".into())));
    assert!(world.count(Ticker::RowCacheHit) > hits);
    assert_eq!(world.get("b"), (Some("2".into()), false));
}

/// The compaction gives the entries number 0 once no snapshot is older.
#[test]
fn an_answer_without_its_number_serves_no_older_snapshot() {
    let world = World::new();
    world.put("b", "0");
    let old = ReadOptions { snapshot: Some(world.db.snapshot()), ..ReadOptions::default() };
    world.put("a", "1");
    world.flush();
    world.compact();
    world.heat("a", Some("1"));
    assert_eq!(world.get_by("a", &old), None);
    drop(old);
    world.compact();
    assert_eq!(world.get("a"), (Some("1".into()), true));
    assert_eq!(world.get_by("b", &ReadOptions::default()), Some("0".into()));
}

#[test]
fn ingests_and_excises_end_the_answers() {
    let world = World::new();
    ["a", "b", "c"].iter().for_each(|key| world.put(key, "1"));
    world.flush();
    let heat_all = |expected: [Option<&str>; 3]| {
        ["a", "b", "c"].iter().zip(expected).for_each(|(key, expected)| world.heat(key, expected));
    };
    heat_all([Some("1"); 3]);
    let file = world.table("t", |table| table.put(b"b", b"2").expect("put"));
    world.ingest(IngestRequest::new(world.db.default_family(), vec![file]), &IngestOptions::default());
    assert_eq!(world.get("b").0.as_deref(), Some("2"));
    world.flush();
    heat_all([Some("1"), Some("2"), Some("1")]);
    let excise = Some((b"b".to_vec(), b"z".to_vec()));
    world.ingest(
        IngestRequest { excise, ..IngestRequest::new(world.db.default_family(), Vec::new()) },
        &IngestOptions::default(),
    );
    assert_eq!((world.get("b").0, world.get("c").0), (None, None));
    world.flush();
    heat_all([Some("1"), None, None]);
    world.db.wait_for_compaction().expect("idle");
    heat_all([Some("1"), None, None]);
}

#[test]
fn what_comes_from_behind_is_found_and_dropped_tables_are_not() {
    let world = World::with(FamilyOptions::default(), |options| options.db.allow_ingest_behind = true);
    world.put("a", "1");
    world.flush();
    world.heat("a", Some("1"));
    world.heat("b", None);
    let file =
        world.table("t", |table| ["a", "b"].iter().for_each(|key| table.put(key.as_bytes(), b"0").expect("put")));
    let behind = IngestOptions { ingest_behind: true, ..IngestOptions::default() };
    world.ingest(IngestRequest::new(world.db.default_family(), vec![file]), &behind);
    world.heat("a", Some("1"));
    world.heat("b", Some("0"));
    assert_eq!(world.db.drop_tables_in_range(&world.db.default_family(), Some(b"a"), Some(b"z")).expect("dropped"), 1);
    world.heat("b", None);
}

#[test]
fn a_reopened_or_recreated_family_starts_without_answers() {
    let cache = Arc::new(BlockCache::new(1 << 20));
    let vfs = MemoryVfs::new(1);
    let mut options = options(&vfs, FamilyOptions::default());
    options.block_cache = Some(cache.clone());
    for n in 0..3 {
        let world = World { vfs: vfs.clone(), db: Db::open("/db", &options).expect("open") };
        let before = n.to_string();
        world.heat("a", Some(before.as_str()).filter(|_| n > 0));
        world.put("a", &(n + 1).to_string());
        world.flush();
        // A family of the same name and key, dropped and made again.
        for value in ["x", "y"] {
            let family = world.db.create_family("other", FamilyOptions::default()).expect("made");
            world.db.put(&family, b"a", value.as_bytes(), &WriteOptions::default()).expect("put");
            world.db.flush(&[&family]).expect("flushed");
            for _ in 0..7 {
                let found = world.db.get(&family, b"a", &ReadOptions::default()).expect("get");
                assert_eq!(found.as_deref(), Some(value.as_bytes()));
            }
            world.db.drop_family(&family).expect("dropped");
        }
        world.db.close().expect("closed");
    }
}

#[test]
fn some_reads_and_large_values_leave_nothing() {
    let world = World::new();
    let large = "x".repeat(1100);
    world.put("a", "1");
    world.put("large", &large);
    world.flush();
    let passing = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    (0..7).for_each(|_| assert_eq!(world.get_by("a", &passing).as_deref(), Some("1")));
    (0..7).for_each(|_| assert_eq!(world.get("large"), (Some(large.clone()), false)));
    assert_eq!(world.count(Ticker::RowCacheHit), 0);
    world.heat("a", Some("1"));
}

#[test]
fn answers_have_a_cache_of_their_own_or_share_that_of_blocks_or_are_not_kept() {
    let without = |change: &dyn Fn(&mut TableOptions)| {
        let mut family = FamilyOptions::default();
        change(&mut family.table);
        family
    };
    let fill = |world: &World| {
        world.put("a", "1");
        world.flush();
        (0..7).for_each(|_| assert_eq!(world.get("a").0.as_deref(), Some("1")));
        world.get("a").1
    };
    assert!(fill(&World::new()));
    assert!(!fill(&World::with(without(&|table| table.cache_answers = false), |_| {})));
    assert!(!fill(&World::with(without(&|table| table.no_block_cache = true), |_| {})));
    for capacity in [0, 1 << 20] {
        let own = Arc::new(BlockCache::new(capacity));
        let unblocked = without(&|table| table.no_block_cache = true);
        let world = World::with(unblocked, |options| options.row_cache = Some(own.clone()));
        assert_eq!((fill(&world), own.usage() > 0), (capacity > 0, capacity > 0));
    }
}

/// Writers count each key up; readers see no count below the last that was acknowledged before they began, nor above
/// the last that was begun when they ended; a snapshot sees the same count each time.
#[test]
fn readers_beside_writers_flushes_and_compactions_see_no_stale_count() {
    const KEYS: usize = 8;
    const ROUNDS: u64 = 400;
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false);
    let family = FamilyOptions { level0_file_num_compaction_trigger: 2, ..FamilyOptions::default() };
    let mut options = options(&vfs, family);
    options.db = DbOptions { max_background_jobs: 4, ..options.db };
    let db = Db::open("/db", &options).expect("open");
    let family = db.default_family();
    let begun: [AtomicU64; KEYS] = Default::default();
    let ended: [AtomicU64; KEYS] = Default::default();
    let over = AtomicBool::new(false);
    let key = |i: usize| [b'k', i as u8];
    let read = |i: usize, options: &ReadOptions| {
        let found = db.get(&family, &key(i), options).expect("get");
        found.map_or(0, |value| u64::from_le_bytes((*value).try_into().expect("a count")))
    };
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..=ROUNDS {
                for i in 0..KEYS {
                    // Every other key is rarely written: its answers live longer.
                    if i % 2 == 1 && round % 16 != 0 {
                        continue;
                    }
                    begun[i].store(round, Ordering::SeqCst);
                    db.put(&family, &key(i), &round.to_le_bytes(), &WriteOptions::default()).expect("put");
                    ended[i].store(round, Ordering::SeqCst);
                }
                if round % 4 == 0 {
                    db.flush(&[&family]).expect("flushed");
                }
            }
            over.store(true, Ordering::SeqCst);
        });
        for reader in 0..2 {
            let (read, over, begun, ended, db) = (&read, &over, &begun, &ended, &db);
            scope.spawn(move || {
                let mut step = reader;
                while !over.load(Ordering::SeqCst) {
                    step += 1;
                    let i = step % KEYS;
                    let least = ended[i].load(Ordering::SeqCst);
                    if step % 5 == 0 {
                        let at = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
                        let most = begun[i].load(Ordering::SeqCst);
                        let counts = [read(i, &at), read(i, &ReadOptions::default()), read(i, &at)];
                        assert!(least <= counts[0] && counts[0] <= most, "key {i}: {least} {counts:?} {most}");
                        assert!(counts[0] <= counts[1] && counts[0] == counts[2], "key {i}: {counts:?}");
                    } else {
                        let count = read(i, &ReadOptions::default());
                        let most = begun[i].load(Ordering::SeqCst);
                        assert!(least <= count && count <= most, "key {i}: {least} {count} {most}");
                    }
                }
            });
        }
        writer.join().expect("no panic");
    });
    let hits = db.statistics().expect("asked for").count(Ticker::RowCacheHit);
    assert!(hits > 100, "answers were in use: {hits}");
}
