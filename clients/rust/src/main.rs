//! What programs do with the crate `rocksdb`. Prints `ok NAME` or `FAILED NAME: why` for each check, which
//! scripts/clients.sh counts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use rocksdb::backup::{BackupEngine, BackupEngineOptions, RestoreOptions};
use rocksdb::checkpoint::Checkpoint;
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType, Direction, Env, FlushOptions,
    IngestExternalFileOptions, IteratorMode, MergeOperands, Options, ReadOptions, SliceTransform, SstFileWriter,
    WriteBatch, WriteOptions, compaction_filter::Decision,
};

/// Called with an empty directory; panics where something is not as it should be.
type Check = fn(&Path);

const CHECKS: [(&str, Check); 19] = [
    ("puts_are_got", puts_are_got),
    ("values_are_pinned_and_got_together", values_are_pinned_and_got_together),
    ("iterators_go_both_ways", iterators_go_both_ways),
    ("iterators_keep_to_bounds_and_prefixes", iterators_keep_to_bounds_and_prefixes),
    ("families_are_apart", families_are_apart),
    ("families_come_and_go", families_come_and_go),
    ("batches_are_whole", batches_are_whole),
    ("values_have_stamps_that_are_not_seen", values_have_stamps_that_are_not_seen),
    ("snapshots_stay", snapshots_stay),
    ("merge_operators_are_called", merge_operators_are_called),
    ("compaction_filters_are_called", compaction_filters_are_called),
    ("comparators_order_keys", comparators_order_keys),
    ("ranges_are_deleted", ranges_are_deleted),
    ("tables_are_ingested", tables_are_ingested),
    ("backups_come_back", backups_come_back),
    ("checkpoints_open", checkpoints_open),
    ("table_options_are_taken", table_options_are_taken),
    ("threads_write_and_read_at_once", threads_write_and_read_at_once),
    ("errors_say_what_is_wrong", errors_say_what_is_wrong),
];

/// Each check runs in a process of its own, so that one that crashes ends no other.
fn main() -> ExitCode {
    match std::env::args().nth(1) {
        Some(name) => run_one(&name),
        None => run_all(),
    }
}

fn run_all() -> ExitCode {
    let program = std::env::current_exe().expect("the path of this program");
    let mut failed = 0;
    for (name, _) in CHECKS {
        let ran = Command::new(&program).arg(name).output().expect("a process");
        let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        eprint!("{err}");
        if ran.status.success() || out.contains("FAILED ") {
            print!("{out}");
        } else {
            println!("FAILED {name}: {}, {}", ran.status, err.lines().last().unwrap_or("without a word"));
        }
        failed += usize::from(!ran.status.success());
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_one(name: &str) -> ExitCode {
    let (_, check) = CHECKS.into_iter().find(|(known, _)| *known == name).expect("a check of this name");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(dir.path()))) else {
        println!("ok {name}");
        return ExitCode::SUCCESS;
    };
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked");
    println!("FAILED {name}: {}", text.split_whitespace().collect::<Vec<_>>().join(" "));
    ExitCode::FAILURE
}

fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options
}

fn key(i: u32) -> Vec<u8> {
    format!("key{i:04}").into_bytes()
}

fn filled(dir: &Path) -> DB {
    let db = DB::open(&options(), dir.join("db")).unwrap();
    for i in 0..1000 {
        db.put(key(i), format!("value {i}")).unwrap();
    }
    db
}

fn keys(db: &DB, mode: IteratorMode<'_>) -> Vec<Vec<u8>> {
    db.iterator(mode).map(|entry| entry.unwrap().0.into_vec()).collect()
}

fn puts_are_got(dir: &Path) {
    let db = filled(dir);
    assert_eq!(db.get(key(7)).unwrap().as_deref(), Some(&b"value 7"[..]));
    assert_eq!(db.get(b"absent").unwrap(), None);
    db.put(b"empty", b"").unwrap();
    db.delete(key(7)).unwrap();
    let synced = {
        let mut options = WriteOptions::default();
        options.set_sync(true);
        options
    };
    db.put_opt(b"\x00\xff", vec![0; 100_000], &synced).unwrap();
    db.flush().unwrap();
    drop(db);
    let db = DB::open_for_read_only(&options(), dir.join("db"), false).unwrap();
    assert_eq!(db.get(b"empty").unwrap(), Some(Vec::new()));
    assert_eq!(db.get(key(7)).unwrap(), None);
    assert_eq!(db.get(b"\x00\xff").unwrap(), Some(vec![0; 100_000]));
    assert!(db.put(b"k", b"v").is_err(), "open for reading only");
}

fn values_are_pinned_and_got_together(dir: &Path) {
    let db = filled(dir);
    let pinned = db.get_pinned(key(5)).unwrap().unwrap();
    db.put(key(5), b"new").unwrap();
    assert_eq!(&*pinned, b"value 5");
    let found = db.multi_get([key(1), b"absent".to_vec(), key(999)]);
    let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!(found, [Some(b"value 1".to_vec()), None, Some(b"value 999".to_vec())]);
    assert!(db.key_may_exist(key(1)));
}

fn iterators_go_both_ways(dir: &Path) {
    let db = filled(dir);
    db.flush().unwrap();
    db.put(b"key0000+", b"in memory").unwrap();
    let forward = keys(&db, IteratorMode::Start);
    assert_eq!(forward.len(), 1001);
    assert!(forward.is_sorted());
    let mut backward = keys(&db, IteratorMode::End);
    backward.reverse();
    assert_eq!(forward, backward);
    assert_eq!(keys(&db, IteratorMode::From(b"key0998", Direction::Forward)), [key(998), key(999)]);
    assert_eq!(keys(&db, IteratorMode::From(b"key0001x", Direction::Reverse))[..2], [key(1), b"key0000+".to_vec()]);
    let mut raw = db.raw_iterator();
    raw.seek_for_prev(b"key0500x");
    assert_eq!(raw.item(), Some((&key(500)[..], &b"value 500"[..])));
    raw.next();
    raw.prev();
    raw.prev();
    assert_eq!(raw.key(), Some(&key(499)[..]));
    raw.seek(b"z");
    assert!(!raw.valid());
    raw.status().unwrap();
}

fn iterators_keep_to_bounds_and_prefixes(dir: &Path) {
    let mut options = options();
    options.set_prefix_extractor(SliceTransform::create_fixed_prefix(6));
    options.set_memtable_prefix_bloom_ratio(0.1);
    let db = DB::open(&options, dir.join("db")).unwrap();
    for i in 0..1000 {
        db.put(key(i), b"v").unwrap();
    }
    let mut bounds = ReadOptions::default();
    bounds.set_iterate_lower_bound(key(10));
    bounds.set_iterate_upper_bound(key(20));
    let found: Vec<_> = db.iterator_opt(IteratorMode::Start, bounds).map(|e| e.unwrap().0.into_vec()).collect();
    assert_eq!(found, (10..20).map(key).collect::<Vec<_>>());
    let mut within = ReadOptions::default();
    within.set_prefix_same_as_start(true);
    let mut raw = db.raw_iterator_opt(within);
    raw.seek(b"key012");
    let mut count = 0;
    while raw.valid() {
        assert!(raw.key().unwrap().starts_with(b"key012"));
        count += 1;
        raw.next();
    }
    assert_eq!(count, 10);
    assert!(db.prefix_iterator(b"key099").count() >= 10);
}

fn families_are_apart(dir: &Path) {
    let path = dir.join("db");
    let open = || {
        let families = ["default", "one", "two"].map(|name| ColumnFamilyDescriptor::new(name, Options::default()));
        DB::open_cf_descriptors(&options(), &path, families).unwrap()
    };
    let db = open();
    let [one, two] = ["one", "two"].map(|name| db.cf_handle(name).unwrap());
    db.put_cf(&one, b"k", b"1").unwrap();
    db.put_cf(&two, b"k", b"2").unwrap();
    db.put(b"k", b"0").unwrap();
    db.flush_cf(&one).unwrap();
    let found = db.multi_get_cf([(&one, b"k"), (&two, b"k")]);
    let found: Vec<_> = found.into_iter().map(|value| value.unwrap().unwrap()).collect();
    assert_eq!(found, [b"1", b"2"]);
    assert_eq!(db.iterator_cf(&two, IteratorMode::Start).count(), 1);
    drop(db);
    let mut names = DB::list_cf(&options(), &path).unwrap();
    names.sort();
    assert_eq!(names, ["default", "one", "two"]);
    let db = open();
    assert_eq!(db.get(b"k").unwrap().unwrap(), b"0");
    assert_eq!(db.get_cf(&db.cf_handle("one").unwrap(), b"k").unwrap().unwrap(), b"1");
}

fn families_come_and_go(dir: &Path) {
    let mut db = DB::open(&options(), dir.join("db")).unwrap();
    db.create_cf("late", &Options::default()).unwrap();
    let late = db.cf_handle("late").unwrap();
    db.put_cf(&late, b"k", b"v").unwrap();
    db.compact_range_cf(&late, None::<&[u8]>, None::<&[u8]>);
    assert_eq!(db.get_cf(&late, b"k").unwrap().unwrap(), b"v");
    assert!(db.create_cf("late", &Options::default()).is_err(), "there is one of that name");
    db.drop_cf("late").unwrap();
    assert!(db.cf_handle("late").is_none());
    drop(db);
    assert_eq!(DB::list_cf(&options(), dir.join("db")).unwrap(), ["default"]);
}

fn batches_are_whole(dir: &Path) {
    let db = filled(dir);
    let mut batch = WriteBatch::default();
    batch.put(b"a", b"1");
    batch.put(b"b", b"2");
    batch.delete(b"a");
    batch.delete_range(key(100), key(200));
    assert_eq!(batch.len(), 4);
    let copy = WriteBatch::from_data(batch.data());
    assert_eq!(copy.len(), 4);
    db.write(batch).unwrap();
    assert_eq!((db.get(b"a").unwrap(), db.get(b"b").unwrap()), (None, Some(b"2".to_vec())));
    assert_eq!(keys(&db, IteratorMode::Start).len(), 901);
    let before = db.latest_sequence_number();
    db.write(copy).unwrap();
    assert_eq!(db.latest_sequence_number(), before + 4);
}

fn values_have_stamps_that_are_not_seen(dir: &Path) {
    let db = DB::open_with_ttl(&options(), dir.join("db"), Duration::from_secs(1000)).unwrap();
    let mut batch = WriteBatch::default();
    batch.put(b"a", b"1");
    db.write(batch).unwrap();
    assert_eq!(db.get(b"a").unwrap(), Some(b"1".to_vec()));
    assert_eq!(db.iterator(IteratorMode::Start).next().unwrap().unwrap().1.as_ref(), b"1");
    drop(db);
    let db = DB::open(&options(), dir.join("db")).unwrap();
    assert_eq!(db.get(b"a").unwrap().map(|value| value.len()), Some(b"1".len() + 4));
}

fn snapshots_stay(dir: &Path) {
    let db = filled(dir);
    let snapshot = db.snapshot();
    for i in 0..1000 {
        db.put(key(i), b"new").unwrap();
    }
    db.delete(key(3)).unwrap();
    db.flush().unwrap();
    db.compact_range(None::<&[u8]>, None::<&[u8]>);
    assert_eq!(snapshot.get(key(3)).unwrap().unwrap(), b"value 3");
    assert_eq!(snapshot.iterator(IteratorMode::Start).count(), 1000);
    let old =
        snapshot.iterator(IteratorMode::Start).map(Result::unwrap).filter(|(_, value)| **value != *b"new").count();
    assert_eq!(old, 1000);
    assert_eq!(db.get(key(3)).unwrap(), None);
}

fn concat(_: &[u8], existing: Option<&[u8]>, operands: &MergeOperands) -> Option<Vec<u8>> {
    let mut value = existing.unwrap_or_default().to_vec();
    operands.iter().for_each(|operand| value.extend_from_slice(operand));
    Some(value)
}

fn merge_operators_are_called(dir: &Path) {
    let mut options = options();
    options.set_merge_operator_associative("concat", concat);
    let db = DB::open(&options, dir.join("db")).unwrap();
    db.put(b"with", b"0").unwrap();
    for i in 1..10 {
        db.merge(b"with", i.to_string()).unwrap();
        db.merge(b"without", i.to_string()).unwrap();
        if i == 5 {
            db.flush().unwrap();
        }
    }
    for _ in 0..2 {
        assert_eq!(db.get(b"with").unwrap().unwrap(), b"0123456789");
        assert_eq!(db.get(b"without").unwrap().unwrap(), b"123456789");
        let values: Vec<_> = db.iterator(IteratorMode::Start).map(|entry| entry.unwrap().1).collect();
        assert_eq!(values.len(), 2);
        assert_eq!(&*values[0], b"0123456789");
        db.flush().unwrap();
        db.compact_range(None::<&[u8]>, None::<&[u8]>);
    }
}

fn compaction_filters_are_called(dir: &Path) {
    let mut options = options();
    options.set_compaction_filter("by_key", |_, key, _| match key.last() {
        Some(b'0') => Decision::Remove,
        Some(b'1') => Decision::Change(b"changed"),
        _ => Decision::Keep,
    });
    let db = DB::open(&options, dir.join("db")).unwrap();
    for i in 0..100 {
        db.put(key(i), b"v").unwrap();
    }
    db.flush().unwrap();
    let mut how = rocksdb::CompactOptions::default();
    how.set_bottommost_level_compaction(rocksdb::BottommostLevelCompaction::Force);
    db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &how);
    assert_eq!(keys(&db, IteratorMode::Start).len(), 90);
    assert_eq!(db.get(key(11)).unwrap().unwrap(), b"changed");
    assert_eq!(db.get(key(12)).unwrap().unwrap(), b"v");
}

fn comparators_order_keys(dir: &Path) {
    let mut options = options();
    options.set_comparator("by_reversed_bytes", Box::new(|a, b| b.cmp(a)));
    let path = dir.join("db");
    let db = DB::open(&options, &path).unwrap();
    for i in 0..100 {
        db.put(key(i), b"v").unwrap();
    }
    db.flush().unwrap();
    assert_eq!(keys(&db, IteratorMode::Start), (0..100).rev().map(key).collect::<Vec<_>>());
    assert_eq!(keys(&db, IteratorMode::From(b"key0050x", Direction::Forward))[0], key(50));
    drop(db);
    assert!(DB::open(&self::options(), &path).is_err(), "another order of keys");
}

fn ranges_are_deleted(dir: &Path) {
    drop(filled(dir));
    let db = DB::open_cf(&options(), dir.join("db"), ["default"]).unwrap();
    db.flush().unwrap();
    db.delete_range_cf(&db.cf_handle("default").unwrap(), key(100), key(900)).unwrap();
    assert_eq!(keys(&db, IteratorMode::Start).len(), 200);
    db.put(key(500), b"again").unwrap();
    db.flush().unwrap();
    db.compact_range(None::<&[u8]>, None::<&[u8]>);
    assert_eq!(keys(&db, IteratorMode::Start).len(), 201);
    assert_eq!(db.get(key(499)).unwrap(), None);
}

fn tables_are_ingested(dir: &Path) {
    let db = filled(dir);
    let options = options();
    let path = dir.join("made.sst");
    let mut table = SstFileWriter::create(&options);
    table.open(&path).unwrap();
    for i in 500..1500 {
        table.put(key(i), b"ingested").unwrap();
    }
    table.delete(b"z").unwrap();
    table.finish().unwrap();
    assert!(table.file_size() > 1000);
    db.ingest_external_file(vec![&path]).unwrap();
    assert_eq!(keys(&db, IteratorMode::Start).len(), 1500);
    assert_eq!(db.get(key(500)).unwrap().unwrap(), b"ingested");
    assert_eq!(db.get(key(499)).unwrap().unwrap(), b"value 499");
    let mut moving = IngestExternalFileOptions::default();
    moving.set_move_files(true);
    let absent = db.ingest_external_file_opts(&moving, vec![dir.join("absent.sst")]);
    assert!(absent.is_err());
}

fn backups_come_back(dir: &Path) {
    let db = filled(dir);
    let options = BackupEngineOptions::new(dir.join("backups")).unwrap();
    let mut engine = BackupEngine::open(&options, &Env::new().unwrap()).unwrap();
    engine.create_new_backup(&db).unwrap();
    db.put(b"later", b"v").unwrap();
    engine.create_new_backup_flush(&db, true).unwrap();
    let info = engine.get_backup_info();
    assert_eq!(info.iter().map(|backup| backup.backup_id).collect::<Vec<_>>(), [1, 2]);
    assert!(info.iter().all(|backup| backup.size > 0 && backup.num_files > 0 && backup.timestamp > 1_600_000_000));
    engine.verify_backup(1).unwrap();
    drop(db);
    let how = RestoreOptions::default();
    let target = dir.join("restored");
    engine.restore_from_backup(&target, &target, &how, 1).unwrap();
    assert_eq!(keys(&DB::open_default(&target).unwrap(), IteratorMode::Start).len(), 1000);
    engine.restore_from_latest_backup(&target, &target, &how).unwrap();
    assert_eq!(keys(&DB::open_default(&target).unwrap(), IteratorMode::Start).len(), 1001);
    engine.purge_old_backups(1).unwrap();
    assert_eq!(engine.get_backup_info().len(), 1);
    assert!(engine.verify_backup(1).is_err());
}

fn checkpoints_open(dir: &Path) {
    let db = filled(dir);
    let target = dir.join("checkpoint");
    Checkpoint::new(&db).unwrap().create_checkpoint(&target).unwrap();
    db.delete(key(0)).unwrap();
    let copy = DB::open_default(&target).unwrap();
    assert_eq!(keys(&copy, IteratorMode::Start).len(), 1000);
    copy.put(b"only here", b"v").unwrap();
    assert_eq!(db.get(b"only here").unwrap(), None);
}

fn table_options_are_taken(dir: &Path) {
    let mut options = options();
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(4 << 20));
    table.set_bloom_filter(10.0, false);
    table.set_block_size(4096);
    table.set_cache_index_and_filter_blocks(true);
    options.set_block_based_table_factory(&table);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(64 << 10);
    options.set_max_background_jobs(2);
    options.enable_statistics();
    let db = DB::open(&options, dir.join("db")).unwrap();
    for i in 0..20_000u32 {
        db.put(i.to_be_bytes(), [7; 100]).unwrap();
    }
    let mut waiting = FlushOptions::default();
    waiting.set_wait(true);
    db.flush_opt(&waiting).unwrap();
    assert_eq!(db.iterator(IteratorMode::Start).count(), 20_000);
    assert!(db.property_int_value("rocksdb.estimate-num-keys").unwrap().unwrap() > 10_000);
    assert!(db.property_value("rocksdb.stats").unwrap().is_some());
    assert!(!db.live_files().unwrap().is_empty());
    assert!(options.get_statistics().is_some());
}

fn threads_write_and_read_at_once(dir: &Path) {
    let db = Arc::new(filled(dir));
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let db = db.clone();
            scope.spawn(move || {
                for i in 0..2000 {
                    db.put(format!("{thread}/{i:05}"), i.to_string()).unwrap();
                    assert_eq!(
                        db.get(format!("{thread}/{:05}", i / 2)).unwrap().unwrap(),
                        (i / 2).to_string().as_bytes()
                    );
                }
            });
        }
    });
    assert_eq!(keys(&db, IteratorMode::Start).len(), 9000);
}

fn errors_say_what_is_wrong(dir: &Path) {
    let absent = DB::open(&Options::default(), dir.join("absent")).unwrap_err();
    assert_eq!(absent.kind(), rocksdb::ErrorKind::InvalidArgument, "{absent}");
    let db = filled(dir);
    let locked = DB::open(&options(), dir.join("db")).unwrap_err();
    assert!(locked.to_string().contains("lock"), "{locked}");
    drop(db);
    DB::destroy(&options(), dir.join("db")).unwrap();
    assert!(!dir.join("db").join("CURRENT").exists());
}
