//! Large tables that are ingested over a little that was written: the little is rewritten, and they sink beneath it as they are.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use base::extend::{Event, MergeOperator};
use parking_lot::Mutex;
use testkit::engine::{
    BottommostLevelCompaction, CompactRangeOptions, IngestOptions, ReadOptions, TableWriter, WriteOptions,
};

use super::common::{Contents, World, contents, name};

/// Of the base level that tables count from.
const BASE_BYTES: u64 = 64 << 10;

struct Append;

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "append"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some([&[existing.unwrap_or_default()], operands].concat().concat())
    }

    fn partial_merge(&self, _key: &[u8], left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
        Some([left, right].concat())
    }
}

/// Work is done by whoever waits for it, small ingests count as large, and a memtable is flushed alone.
fn world() -> World {
    World::with(|options| {
        for (_, family) in &mut options.families {
            family.max_bytes_for_level_base = BASE_BYTES.into();
            family.merge_operator = Some(Arc::new(Append));
        }
    })
}

/// Writes a little, flushes that, and brings a table of every second key from 0 to 8,000 over it.
fn bring(world: &World, write: impl FnOnce(&World)) {
    write(world);
    world.flush();
    let file = world.table("large", (0..8000).step_by(2), "ingested");
    world.ingest(file, &IngestOptions::default()).expect("ingested");
    world.flush();
    world.db.wait_for_compaction().expect("compacted");
}

/// Files in level 0 and in the last level.
fn files(world: &World) -> (usize, usize) {
    let levels = world.db.levels(&world.family);
    let [level0, .., last] = levels.as_slice() else { panic!("one level") };
    (level0.files, last.files)
}

/// What the table holds, changed.
fn holding(change: impl FnOnce(&mut Contents)) -> Contents {
    let mut expected: Contents = (0..8000).step_by(2).map(|key| (name(key), "ingested".to_owned())).collect();
    change(&mut expected);
    expected
}

#[test]
fn what_the_table_holds_too_goes_and_the_rest_stays_above_it() {
    let mut world = world();
    bring(&world, |world| world.put_all([10, 11, 500, 501, 9000], "written"));
    assert_eq!(files(&world), (1, 1));
    let expected = holding(|all| {
        for key in [11, 501, 9000] {
            all.insert(name(key), "written".to_owned());
        }
    });
    assert_eq!(world.contents(), expected);
    assert_eq!(world.number("rocksdb.estimate-num-keys"), 4003, "what the table hides is nowhere");
    world.reopen();
    assert_eq!(world.contents(), expected);
    assert_eq!((world.get(10).as_deref(), world.get(11).as_deref()), (Some("ingested"), Some("written")));
}

#[test]
fn nothing_stays_above_where_the_table_holds_all() {
    let world = world();
    bring(&world, |world| world.put_all([10, 500], "written"));
    assert_eq!((files(&world), world.contents()), ((0, 1), holding(|_| {})));
}

#[test]
fn the_next_one_sinks_beneath_what_is_left() {
    let world = world();
    bring(&world, |world| world.put_all([11, 9001], "written"));
    world.put_all([13, 9000, 9003], "written");
    world.flush();
    let file = world.table("next", (8500..16500).step_by(2), "ingested");
    world.ingest(file, &IngestOptions::default()).expect("ingested");
    world.flush();
    world.db.wait_for_compaction().expect("compacted");
    assert_eq!(files(&world), (1, 2));
    let expected = holding(|all| {
        all.extend((8500..16500).step_by(2).map(|key| (name(key), "ingested".to_owned())));
        all.extend([11, 13, 9001, 9003].map(|key| (name(key), "written".to_owned())));
    });
    assert_eq!(world.contents(), expected);
}

/// What reads after it find is what was written after it, and deletions of keys that are not in it are kept.
#[test]
fn later_writes_and_a_compaction_of_all_come_to_the_same() {
    let world = world();
    let delete = |key| world.db.delete(&world.family, name(key).as_bytes(), &WriteOptions::default()).expect("deleted");
    bring(&world, |world| {
        world.put_all([10, 11, 13], "written");
        [11, 500, 501].into_iter().for_each(&delete);
    });
    world.put(10, "later");
    delete(12);
    let expected = holding(|all| {
        all.insert(name(10), "later".to_owned());
        all.insert(name(13), "written".to_owned());
        all.remove(&name(12));
    });
    assert_eq!((files(&world), world.contents()), ((1, 1), expected.clone()));
    world.flush();
    world.db.compact_range(&world.family, None, None, &CompactRangeOptions::default()).expect("compacted");
    assert_eq!((files(&world).0, world.contents()), (0, expected));
}

/// Operands of keys that the table has not are kept, with what is under them.
#[test]
fn operands_stay_above() {
    let world = world();
    let merge = |key, operand: &str| {
        let key = name(key);
        world.db.merge(&world.family, key.as_bytes(), operand.as_bytes(), &WriteOptions::default()).expect("merged");
    };
    bring(&world, |world| {
        world.put(11, "a");
        [(10, "b"), (11, "b"), (13, "b")].into_iter().for_each(|(key, operand)| merge(key, operand));
    });
    [10, 11, 13].into_iter().for_each(|key| merge(key, "+"));
    let expected = holding(|all| {
        all.extend([(10, "ingested+"), (11, "ab+"), (13, "b+")].map(|(key, value)| (name(key), value.to_owned())));
    });
    assert_eq!((files(&world), world.contents()), ((1, 1), expected));
}

/// Stays above what was written, with which it then goes down when level 0 is due. Reads are right all the while.
#[track_caller]
fn stays(world: &World, expected: &Contents) {
    assert_eq!((files(world), &world.contents()), ((2, 0), expected));
    world.db.wait_for_compaction().expect("nothing is tried for ever");
    world.db.compact_range(&world.family, None, None, &CompactRangeOptions::default()).expect("compacted");
    assert_eq!((files(world).0, &world.contents()), (0, expected));
}

#[test]
fn what_a_snapshot_sees_keeps_the_table_above() {
    let world = world();
    let mut snapshot = None;
    bring(&world, |world| {
        world.put_all([10, 11], "written");
        snapshot = Some(world.db.snapshot());
    });
    let before: Contents = [10, 11].map(|key| (name(key), "written".to_owned())).into();
    assert_eq!(contents(&world.db, &world.family, snapshot.clone()), before);
    let expected = holding(|all| _ = all.insert(name(11), "written".to_owned()));
    stays(&world, &expected);
    assert_eq!(contents(&world.db, &world.family, snapshot.clone()), before);
}

/// A snapshot that sees nothing of the keys that both hold is not in the way.
#[test]
fn a_snapshot_of_other_keys_does_not() {
    let world = world();
    let mut snapshot = None;
    bring(&world, |world| {
        world.put(11, "written");
        snapshot = Some(world.db.snapshot());
    });
    assert_eq!(files(&world), (1, 1));
    let before: Contents = [(name(11), "written".to_owned())].into();
    assert_eq!(contents(&world.db, &world.family, snapshot.clone()), before);
}

#[test]
fn a_range_tombstone_keeps_the_table_above() {
    let world = world();
    bring(&world, |world| {
        world.put_all([11, 101], "written");
        let range = (name(100), name(200));
        let (start, end) = (range.0.as_bytes(), range.1.as_bytes());
        world.db.delete_range(&world.family, start, end, &WriteOptions::default()).expect("deleted");
    });
    stays(&world, &holding(|all| _ = all.insert(name(11), "written".to_owned())));
}

/// A single deletion is not done with when it is hidden.
#[test]
fn a_single_deletion_of_its_key_keeps_the_table_above() {
    let world = world();
    bring(&world, |world| {
        world.put(11, "written");
        let options = WriteOptions::default();
        world.db.single_delete(&world.family, name(10).as_bytes(), &options).expect("deleted");
    });
    stays(&world, &holding(|all| _ = all.insert(name(11), "written".to_owned())));
}

/// The table's own operands need what is under them; its range tombstones cover it.
#[test]
fn operands_and_range_tombstones_of_its_own_keep_the_table_above() {
    for is_operand in [true, false] {
        let world = world();
        world.put_all([10, 11, 8500], "written");
        world.flush();
        let file = with_last(&world, |writer| match is_operand {
            true => writer.merge(name(8500).as_bytes(), b"+"),
            false => writer.delete_range(name(8500).as_bytes(), name(8600).as_bytes()),
        });
        world.ingest(file, &IngestOptions::default()).expect("ingested");
        world.flush();
        world.db.wait_for_compaction().expect("compacted");
        let expected = holding(|all| {
            all.insert(name(11), "written".to_owned());
            if is_operand {
                all.insert(name(8500), "written+".to_owned());
            }
        });
        stays(&world, &expected);
    }
}

/// A table of what [`bring`] brings, with something more at its end.
fn with_last(world: &World, last: impl FnOnce(&mut TableWriter) -> Result<(), testkit::engine::Error>) -> PathBuf {
    let path = world.table("plain", [0], "for its directory").with_file_name("with-last");
    let options = testkit::engine::FamilyOptions { merge_operator: Some(Arc::new(Append)), ..Default::default() };
    let mut writer = TableWriter::create(world.vfs.clone(), &path, &options).expect("new");
    for key in (0..8000).step_by(2) {
        writer.put(name(key).as_bytes(), b"ingested").expect("ascending");
    }
    last(&mut writer).expect("ascending");
    writer.finish().expect("written");
    path
}

/// What an open iterator walks stays as it was.
#[test]
fn an_iterator_that_was_open_sees_what_it_saw() {
    let world = world();
    world.put_all([10, 11], "written");
    world.flush();
    let mut iterator = world.db.iter(&world.family, &ReadOptions::default()).expect("iterator");
    bring(&world, |_| {});
    assert_eq!(files(&world), (1, 1));
    let mut seen = Vec::new();
    iterator.seek_to_first();
    while iterator.valid() {
        seen.push((iterator.key().to_vec(), iterator.value().to_vec()));
        iterator.next();
    }
    let expected = [10, 11].map(|key| (name(key).into_bytes(), b"written".to_vec()));
    assert_eq!(seen, expected);
}

/// Every compaction that listeners hear begin they hear end.
#[test]
fn what_does_not_sink_is_told_to_have_ended() {
    let world = world();
    let told = Arc::new(Mutex::new((0, Vec::new())));
    let telling = told.clone();
    world.whenever(move |_, event| match event {
        Event::CompactionBegin { .. } => telling.lock().0 += 1,
        Event::CompactionEnd { outputs, output_level, .. } => telling.lock().1.push((*outputs, *output_level)),
        _ => {}
    });
    let mut snapshot = None;
    bring(&world, |world| {
        world.put(10, "written");
        snapshot = Some(world.db.snapshot());
    });
    assert_eq!(*told.lock(), (1, vec![(0, 6)]));
}

/// Reads are for whoever needs the table, and the database goes on.
#[test]
fn a_table_that_cannot_be_read_stays_above() {
    let mut world = World::with(|options| {
        for (_, family) in &mut options.families {
            family.max_bytes_for_level_base = BASE_BYTES.into();
            family.disable_auto_compactions = true;
        }
    });
    bring(&world, |world| world.put_all((1..8000).step_by(40), "written")); // some in every block
    assert_eq!(files(&world), (2, 0));
    world.db.close().expect("closed");
    let dir = Path::new("/w/db");
    let tables = world.vfs.read_dir(dir).expect("listed").into_iter().filter(|name| name.ends_with(".sst"));
    let largest = tables.max_by_key(|name| world.vfs.metadata(&dir.join(name)).expect("there").len).expect("a table");
    world.damage_middle(&dir.join(largest));
    world.change_options(|options| {
        options.families.iter_mut().for_each(|(_, family)| family.disable_auto_compactions = false);
    });
    world.db.wait_for_compaction().expect("nothing has failed");
    assert_eq!(files(&world), (2, 0));
    world.put(12, "goes on");
    assert_eq!((world.get(1).as_deref(), world.get(12).as_deref()), (Some("written"), Some("goes on")));
}

/// A compaction by hand that comes while a table sinks past the levels that it would look at takes everything together all the
/// same.
#[test]
fn a_compaction_by_hand_waits_for_what_sinks() {
    let world = World::threaded_with(|options| {
        for (_, family) in &mut options.families {
            family.max_bytes_for_level_base = BASE_BYTES.into();
            family.level_compaction_dynamic_level_bytes = false;
        }
    });
    world.put_all([10, 11], "written");
    world.flush();
    let (begun, begins) = channel();
    world.whenever(move |_, event| {
        if let Event::CompactionBegin { output_level: 6, .. } = event {
            let _ = begun.send(());
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let file = world.table("large", (0..8000).step_by(2), "ingested");
    world.ingest(file, &IngestOptions::default()).expect("ingested");
    world.flush();
    begins.recv_timeout(Duration::from_secs(20)).expect("it sinks");
    let options = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    world.db.compact_range(&world.family, None, None, &options).expect("compacted");
    let used: Vec<usize> = world.db.levels(&world.family).iter().map(|level| level.files).collect();
    assert_eq!(used.iter().filter(|files| **files > 0).count(), 1, "all is in one level: {used:?}");
}
