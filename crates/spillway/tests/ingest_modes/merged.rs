//! Small ingests over memtables: a flush writes both into one table of level 0.

use std::path::PathBuf;
use std::sync::Arc;

use base::extend::MergeOperator;
use testkit::engine::{
    Family, IngestMode, IngestOptions, IngestRequest, OpenOptions, ReadOptions, TableWriter, WriteOptions,
};

use super::common::{World, contents, mode, name};

/// Links all, and compacts nothing by itself.
fn linking(options: &mut OpenOptions) {
    options.families.iter_mut().for_each(|(_, family)| {
        family.merge_ingests_max_bytes = 0;
        family.disable_auto_compactions = true;
    });
}

/// Writes and ingests over them by turns; returns what has to be there.
fn three_turns(world: &World) -> Vec<(u32, String)> {
    for turn in 0..3 {
        world.put_all(turn * 10..turn * 10 + 20, &format!("put {turn}"));
        let file = world.table(&format!("{turn}"), turn * 10 + 5..turn * 10 + 15, &format!("ingested {turn}"));
        world.ingest(file, &mode(IngestMode::Flushable)).expect("ingested");
    }
    let value = |key: u32| match key {
        25..35 => "ingested 2".to_owned(),
        20..40 => "put 2".to_owned(),
        15..20 => "ingested 1".to_owned(),
        10..15 => "put 1".to_owned(),
        5..10 => "ingested 0".to_owned(),
        _ => "put 0".to_owned(),
    };
    (0..40).map(|key| (key, value(key))).collect()
}

#[test]
fn few_tables_come_of_them_and_theirs_are_deleted() {
    // A job comes once four entries are queued, and the flush takes the rest.
    for (merges, tables) in [(true, 2), (false, 6)] {
        let mut world = World::with(|options| {
            linking(options);
            options.families[0].1.merge_ingests_max_bytes = if merges { 1 << 20 } else { 0 };
        });
        // They see what they saw, whatever becomes of the files.
        let snapshots: Vec<_> = (0..3)
            .map(|turn| {
                world.put(100 + turn, "before");
                let over = world.table(&format!("over {turn}"), 100..105, "over");
                world.ingest(over, &mode(IngestMode::Flushable)).expect("ingested");
                let snapshot = world.db.snapshot();
                (contents(&world.db, &world.family, Some(snapshot.clone())), snapshot)
            })
            .collect();
        let mut reader = world.db.iter(&world.family, &ReadOptions::default()).expect("iterator");
        assert!(reader.seek_to_first());
        world.flush();
        let before = (world.db.levels(&world.family)[0].files, world.merged());
        let expected = three_turns(&world);
        world.flush();
        let files = world.db.levels(&world.family)[0].files - before.0;
        assert_eq!((files, world.merged() - before.1), (tables, if merges { 3 } else { 0 }));
        for (found, snapshot) in &snapshots {
            assert_eq!(*found, contents(&world.db, &world.family, Some(snapshot.clone())));
        }
        let seen = std::iter::from_fn(|| reader.next().then(|| reader.key().to_vec()));
        assert_eq!(seen.last().expect("some"), name(104).into_bytes());
        drop((reader, snapshots));
        world.put(200, "after which files are deleted that nobody reads any more");
        world.flush();
        for _ in 0..2 {
            expected.iter().for_each(|(key, value)| assert_eq!(world.get(*key).as_ref(), Some(value), "{key}"));
            let named = world.db.live_files().len();
            let there = world.vfs.read_dir("/w/db".as_ref()).expect("listed");
            let there = there.iter().filter(|file| file.ends_with(".sst")).count();
            assert_eq!(there, named, "no file is left that no version names");
            world.reopen();
        }
    }
}

/// In every family, small or large, merged or linked.
#[test]
fn tables_over_no_memtable_go_to_the_last_level_as_they_are() {
    for (merged_max_bytes, keys_over, level0) in [(1 << 20, 20, 1), (0, 20, 2), (1 << 20, 2000, 2)] {
        let mut world = World::with(|options| {
            linking(options);
            options.families[0].1.merge_ingests_max_bytes = merged_max_bytes;
        });
        world.db.create_family("other", (*world.family.options()).clone()).expect("created");
        let families = |world: &World| ["default", "other"].map(|name| world.db.family(name).expect("there"));
        let value = "v".repeat(1000);
        for family in families(&world) {
            for key in [405, 410] {
                world.db.put(&family, name(key).as_bytes(), b"under", &WriteOptions::default()).expect("written");
            }
        }
        let request = |family: &Arc<Family>| {
            let deep = world.table(&format!("deep {}", family.name()), 0..10, &value);
            let over = world.table(&format!("over {}", family.name()), 400..400 + keys_over, &value);
            IngestRequest::new(family.clone(), vec![deep, over])
        };
        let requests: Vec<IngestRequest> = families(&world).iter().map(request).collect();
        world.db.ingest_all(&requests, &mode(IngestMode::Flushable)).expect("ingested");
        let bytes = world.vfs.metadata("/w/deep other".as_ref()).expect("there").len;
        for family in families(&world) {
            world.db.flush(&[&family]).expect("flushed");
        }
        assert_eq!(world.merged(), if level0 == 1 { 2 } else { 0 }, "a table of each family");
        for _ in 0..2 {
            for family in families(&world) {
                let tables = world.db.live_files().into_iter().filter(|table| table.family == family.name());
                let (above, below): (Vec<_>, Vec<_>) = tables.partition(|table| table.level == 0);
                assert_eq!(above.len(), level0, "{above:?}");
                let below: Vec<_> =
                    below.iter().map(|table| (table.level, table.bytes, table.smallest.clone())).collect();
                assert_eq!(below, [(6, bytes, name(0).into_bytes())], "{keys_over} keys over the memtable");
                let found = contents(&world.db, &family, None);
                assert_eq!(found.len(), 10 + keys_over as usize);
                assert!(found.values().all(|found| *found == value));
            }
            world.reopen();
        }
    }
}

#[test]
fn larger_ones_are_linked() {
    let world = World::with(|options| {
        linking(options);
        options.families[0].1.merge_ingests_max_bytes = 4 << 10;
    });
    for (keys, more) in [(10, 1), (1000, 0), (20, 1)] {
        let before = world.merged();
        world.put(5, "under");
        let file = world.table(&format!("{keys}"), 0..keys, "a value of some length");
        world.ingest(file, &mode(IngestMode::Flushable)).expect("ingested");
        world.flush();
        assert_eq!(world.merged() - before, more, "{keys} keys");
        assert_eq!(world.get(5).as_deref(), Some("a value of some length"));
    }
    // Compressed it is small.
    world.put(5, "under");
    let file = world.table("compressible", 0..10, &"a".repeat(1000));
    assert!(world.vfs.metadata(&file).expect("there").len < 4 << 10);
    let before = world.merged();
    world.ingest(file, &mode(IngestMode::Flushable)).expect("ingested");
    world.flush();
    assert_eq!(world.merged() - before, 0);
}

/// The other modes give tables their levels themselves, and an excise removes what is in tables.
#[test]
fn nothing_else_is_merged() {
    for ingest in [IngestMode::Blocking, IngestMode::FlushFirst, IngestMode::Direct] {
        let world = World::inline();
        world.put(5, "under");
        world.ingest(world.table("over", 0..10, "over"), &mode(ingest)).expect("ingested");
        world.flush();
        assert_eq!(world.merged(), 0, "{ingest:?}");
    }
    let world = World::inline();
    world.put(5, "under");
    let excise = Some((name(3).into_bytes(), name(8).into_bytes()));
    let request = IngestRequest { excise, ..world.request(world.table("over", 4..6, "over")) };
    world.db.ingest_all(&[request], &IngestOptions::default()).expect("ingested");
    world.flush();
    assert_eq!((world.merged(), world.contents().len()), (0, 2));
}

/// What a link would not have read is no reason for a flush to fail.
#[test]
fn where_a_block_cannot_be_read_the_table_is_linked() {
    let mut world = World::with(linking);
    world.change_options(|options| options.families[0].1.merge_ingests_max_bytes = 1 << 20);
    world.put_all(0..1000, "under");
    let file = world.table("damaged", 0..1000, "a value of some length, so that there are several blocks");
    world.damage_middle(&file);
    world.ingest(file, &mode(IngestMode::Flushable)).expect("its ends are fine");
    world.flush();
    assert_eq!((world.merged(), world.db.levels(&world.family)[0].files), (0, 2));
    for _ in 0..2 {
        world.put(2000, "goes on");
        assert_eq!(world.get(0).as_deref(), Some("a value of some length, so that there are several blocks"));
        let errors = (0..1000u32)
            .filter(|key| world.db.get(&world.family, name(*key).as_bytes(), &ReadOptions::default()).is_err());
        assert!(errors.count() > 10, "the damage is told to whoever reads it");
        world.reopen();
    }
}

/// Panics on one operand.
struct Picky;

impl MergeOperator for Picky {
    fn name(&self) -> &str {
        "test.Picky"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        assert!(!operands.contains(&b"bad".as_slice()), "it was told not to");
        Some([existing.unwrap_or_default(), &operands.concat()].concat())
    }
}

/// Nor would it have called the user's code.
#[test]
fn where_the_merge_operator_panics_the_table_is_linked() {
    let world = World::with(|options| {
        linking(options);
        options.families[0].1.merge_ingests_max_bytes = 1 << 20;
        options.families[0].1.merge_operator = Some(Arc::new(Picky));
    });
    world.put_all(0..10, "under");
    let file = PathBuf::from("/w/operands.sst");
    let mut table = TableWriter::create(world.vfs.clone(), &file, &world.family.options()).expect("new");
    table.merge(name(5).as_bytes(), b"bad").expect("ascending");
    table.put(name(6).as_bytes(), b"over").expect("ascending");
    table.finish().expect("written");
    world.ingest(file, &mode(IngestMode::Flushable)).expect("ingested");
    world.flush();
    assert_eq!((world.merged(), world.db.levels(&world.family)[0].files), (0, 2));
    assert_eq!([4, 6].map(|key| world.get(key)), [Some("under".to_owned()), Some("over".to_owned())]);
    world.put(20, "goes on");
}

/// Tables that were built beside one that failed are built again, and count once.
#[test]
fn what_is_built_anew_is_counted_once() {
    let world = World::with(|options| {
        linking(options);
        options.families[0].1.merge_ingests_max_bytes = 100 << 10;
    });
    world.put_all(0..10, "a run of its own");
    let file = world.table("linked", 0..5000, "so many values that it is linked, and parts the runs");
    world.ingest(file, &mode(IngestMode::Flushable)).expect("ingested");
    world.put_all(0..1000, "under");
    let file = world.table("damaged", 0..1000, "a value of some length, so that there are several blocks");
    world.damage_middle(&file);
    world.ingest(file, &mode(IngestMode::Flushable)).expect("its ends are fine");
    world.flush();
    assert_eq!((world.merged(), world.db.flushes().rewritten), (0, 2), "{:?}", world.db.flushes());
}
