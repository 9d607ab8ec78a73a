//! The space of what an excise took out comes back by itself.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::extend::Event;
use testkit::engine::compaction::{BottommostLevelCompaction, CompactRangeOptions};
use testkit::engine::{IngestMode, IngestOptions, IngestRequest, Snapshot};

use super::common::{MODES, World, contents, mode, name};

const TABLES: u32 = 4;
/// Each with a value of 8 KiB.
const KEYS: u32 = 256;
const TABLE_BYTES: u64 = (KEYS as u64) << 13;

/// Random, so that compression finds nothing in it.
fn value() -> String {
    let mut state = 1u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b' ' + (state >> 33) as u8 % 95)
    };
    (0..8 << 10).map(|_| letter()).collect()
}

/// Ingests large tables beside each other, into the last level.
fn ingest_tables(world: &World) {
    let value = value();
    for table in 0..TABLES {
        let file = world.table(&format!("{table}"), first_key(table)..first_key(table) + KEYS, &value);
        let options = IngestOptions { move_files: true, ..mode(IngestMode::Direct) };
        world.ingest(file, &options).expect("ingested");
    }
    assert!(world.db.live_files().iter().all(|file| file.level == 6 && !file.is_virtual));
}

fn first_key(table: u32) -> u32 {
    table * 1000
}

/// Takes all but so many keys out of each table.
fn excise_all_but(world: &World, kept: u32, ingest: IngestMode) {
    for table in 0..TABLES {
        let excise = Some((name(first_key(table) + kept).into_bytes(), name(first_key(table) + KEYS).into_bytes()));
        let request = IngestRequest { excise, ..IngestRequest::new(world.family.clone(), Vec::new()) };
        world.db.ingest_all(&[request], &mode(ingest)).expect("excised");
    }
}

/// Bytes of all tables' files in the directory.
fn file_bytes(world: &World) -> u64 {
    let dir = Path::new("/w/db");
    let names = world.vfs.read_dir(dir).expect("listed");
    let tables = names.iter().filter(|name| name.ends_with(".sst"));
    tables.map(|name| world.vfs.metadata(&dir.join(name)).expect("there").len).sum()
}

fn excised_bytes(world: &World) -> u64 {
    world.number("spillway.excised-bytes")
}

/// Counts compactions.
fn count_compactions(world: &World) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    world.whenever(move |_, event| {
        if let Event::CompactionEnd { .. } = event {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    count
}

fn check_freed(world: &World, kept: u32) {
    assert_eq!(excised_bytes(world), 0);
    let files = world.db.live_files();
    assert!(files.iter().all(|file| file.level == 6 && !file.is_virtual), "{files:?}");
    assert!(file_bytes(world) < TABLE_BYTES, "{} of {} tables' bytes", file_bytes(world), TABLES);
    let left = (0..TABLES).flat_map(|table| (first_key(table)..first_key(table) + kept).map(name));
    assert!(world.contents().into_keys().eq(left));
}

#[test]
fn what_an_excise_took_from_the_last_level_comes_free_by_itself() {
    for ingest in MODES {
        let world = World::inline();
        ingest_tables(&world);
        assert!(file_bytes(&world) > u64::from(TABLES) * TABLE_BYTES);
        let compactions = count_compactions(&world);
        excise_all_but(&world, 1, ingest);
        check_freed(&world, 1);
        let count = compactions.load(Ordering::Relaxed);
        assert!((1..=TABLES as usize).contains(&count), "{ingest:?}: {count}");
        // Whole tables are left alone.
        world.put(1, "more");
        world.flush();
        world.db.wait_for_compaction().expect("waited");
        assert_eq!(compactions.load(Ordering::Relaxed), count, "{ingest:?}");
    }
}

#[test]
fn it_comes_free_where_level_0_is_the_only_one() {
    let world = World::with(|options| options.families[0].1.num_levels = 1);
    let file = world.table("0", 0..KEYS, &value());
    world.ingest(file, &mode(IngestMode::Flushable)).expect("ingested");
    excise_all_but(&world, 1, IngestMode::Flushable);
    world.db.wait_for_compaction().expect("waited");
    assert!(world.db.live_files().iter().all(|file| !file.is_virtual));
    assert!(file_bytes(&world) < TABLE_BYTES / 2);
    assert!(world.contents().into_keys().eq([name(0)]));
}

#[test]
fn threads_free_what_an_excise_took() {
    const LONG: Duration = Duration::from_secs(60);
    for ingest in MODES {
        let world = World::threaded();
        ingest_tables(&world);
        excise_all_but(&world, 1, ingest);
        let start = Instant::now();
        // Nobody asks for anything: an excise that is queued is gone within a second.
        while world.db.live_files().iter().any(|file| file.is_virtual) || file_bytes(&world) > TABLE_BYTES {
            assert!(start.elapsed() < LONG, "{ingest:?}: {} are excised", excised_bytes(&world));
            std::thread::sleep(Duration::from_millis(5));
        }
        check_freed(&world, 1);
    }
}

#[test]
fn without_automatic_compactions_the_space_stays_and_is_told() {
    let world = World::with(|options| options.families[0].1.disable_auto_compactions = true);
    ingest_tables(&world);
    let all_bytes = file_bytes(&world);
    excise_all_but(&world, 1, IngestMode::Flushable);
    world.db.wait_for_compaction().expect("waited");
    assert_eq!(file_bytes(&world), all_bytes);
    let counted: u64 = world.db.live_files().iter().map(|file| file.bytes).sum();
    assert!(world.db.live_files().iter().all(|file| file.is_virtual) && counted < TABLE_BYTES, "{counted}");
    assert_eq!(excised_bytes(&world), all_bytes - counted);
    assert_eq!(world.number("rocksdb.live-sst-files-size"), counted);
    world.db.set_options(&world.family, &[("disable_auto_compactions", "false")]).expect("set");
    world.db.wait_for_compaction().expect("waited");
    check_freed(&world, 1);
}

#[test]
fn a_file_of_which_a_part_counts_stays() {
    let world = World::inline();
    ingest_tables(&world);
    let all_bytes = file_bytes(&world);
    excise_all_but(&world, KEYS / 3, IngestMode::Flushable);
    world.db.wait_for_compaction().expect("waited");
    assert_eq!(file_bytes(&world), all_bytes);
    assert!(excised_bytes(&world) > all_bytes / 2);
}

/// Without compactions.
fn idle() -> World {
    World::with(|options| options.families.iter_mut().for_each(|(_, family)| family.disable_auto_compactions = true))
}

/// Takes all but a key of each table out, under a snapshot that is older.
fn excise_under_a_snapshot(world: &World, ingest: IngestMode) -> Snapshot {
    ingest_tables(world);
    let before = world.db.snapshot();
    excise_all_but(world, 1, ingest);
    world.flush();
    check_kept(world, &before);
    before
}

/// The snapshot sees what it saw, and nobody else does.
fn check_kept(world: &World, before: &Snapshot) {
    assert_eq!(contents(&world.db, &world.family, Some(before.clone())).len() as u32, TABLES * KEYS);
    assert!((0..TABLES).all(|table| world.get(first_key(table) + 1).is_none()));
    assert!(file_bytes(world) > u64::from(TABLES) * TABLE_BYTES);
}

#[test]
fn what_a_snapshot_kept_from_an_excise_goes_with_the_snapshot() {
    for ingest in MODES {
        let world = idle();
        let older = world.db.snapshot();
        let before = excise_under_a_snapshot(&world, ingest);
        drop(older);
        world.db.wait_for_compaction().expect("waited");
        check_kept(&world, &before);
        drop(before);
        world.db.wait_for_compaction().expect("waited");
        let files = world.db.live_files();
        assert!(files.len() as u32 == TABLES && files.iter().all(|file| file.is_virtual), "{ingest:?}: {files:?}");
        world.db.set_options(&world.family, &[("disable_auto_compactions", "false")]).expect("set");
        world.db.wait_for_compaction().expect("waited");
        check_freed(&world, 1);
    }
}

#[test]
fn what_was_written_over_an_excise_stays_when_its_snapshot_goes() {
    let world = idle();
    let before = excise_under_a_snapshot(&world, IngestMode::Flushable);
    world.put(5, "flushed");
    world.flush();
    world.put(6, "in memory");
    drop(before);
    world.db.wait_for_compaction().expect("waited");
    let found = [5, 6, 7].map(|key| world.get(key));
    assert_eq!(found, [Some("flushed".to_owned()), Some("in memory".to_owned()), None]);
    let levels: Vec<_> = world.db.live_files().iter().map(|file| (file.level, file.is_virtual)).collect();
    assert_eq!(levels.iter().filter(|file| **file == (0, false)).count(), 1, "{levels:?}");
    assert_eq!(levels.iter().filter(|file| **file == (6, true)).count() as u32, TABLES, "{levels:?}");
}

/// What is new bears the number 0 then, as what the excise takes out may.
#[test]
fn where_a_compaction_took_the_tombstone_nothing_is_left_to_do() {
    let world = idle();
    let before = excise_under_a_snapshot(&world, IngestMode::Flushable);
    world.put(5, "new");
    let everything = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    world.db.compact_range(&world.family, None, None, &everything).expect("compacted");
    check_kept(&world, &before);
    drop(before);
    world.db.compact_range(&world.family, None, None, &everything).expect("compacted");
    world.db.wait_for_compaction().expect("waited");
    assert_eq!((world.get(5).as_deref(), world.contents().len() as u32), (Some("new"), TABLES + 1));
}

#[test]
fn threads_take_out_what_waited_for_a_snapshot() {
    const LONG: Duration = Duration::from_secs(60);
    for ingest in MODES {
        let world = World::threaded_with(|options| options.families[0].1.disable_auto_compactions = true);
        let before = excise_under_a_snapshot(&world, ingest);
        let start = Instant::now();
        drop(before);
        while world.db.live_files().iter().any(|file| !file.is_virtual) {
            assert!(start.elapsed() < LONG, "{ingest:?}: {:?}", world.db.live_files());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(world.contents().len() as u32, TABLES);
    }
}
