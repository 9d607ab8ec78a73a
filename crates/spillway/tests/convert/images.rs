//! The files that memtables lie in: when they are made, and that none is left.

use std::sync::Arc;
use testkit::engine::vfs::{CrashPolicy, Fault, FaultCode, MemoryVfs, Operation, Rule, Vfs};
use testkit::engine::{Db, OpenOptions, WriteOptions};

use crate::common::{Place, WAYS, flush, get, is_converted, is_mapped, options, put};

#[test]
fn images_are_there_while_their_memtables_are() {
    for (place, way) in WAYS.into_iter().flat_map(|way| Place::both().map(|place| (place, way))) {
        let db = place.open(way);
        put(&db, "k", "v");
        assert_eq!(place.names(".spmem").is_empty(), !is_mapped(way), "{way}");
        let before = place.names(".spmem");
        flush(&db);
        let table = &db.live_files()[0];
        assert!(is_converted(&place.vfs, &table.path));
        if is_mapped(way) {
            let image = table.path.with_extension("spmem");
            let image = image.file_name().unwrap().to_str().unwrap();
            assert!(before.iter().any(|name| name == image) && !place.names(".spmem").iter().any(|name| name == image));
        }
        // A page of header, one that the entries begin, and the tail.
        assert!(table.bytes < 16 << 10, "what was allocated ahead is gone: {} bytes", table.bytes);
        put(&db, "other", "v");
        db.close().unwrap();
        drop(db);
        assert_eq!(place.names(".spmem"), [""; 0], "closed");
        assert_eq!(get(&place.open(way), "other"), Some(b"v".to_vec()));
    }
}

#[test]
fn what_a_killed_process_left_is_removed() {
    for way in WAYS.into_iter().filter(|way| is_mapped(way)) {
        let memory = MemoryVfs::new(1);
        let vfs: Arc<dyn Vfs> = memory.clone();
        let db = Db::open("/db", &options(&vfs, way)).unwrap();
        (0..2000).for_each(|i| put(&db, &format!("key{i:05}"), &"v".repeat(100)));
        let killed: Arc<dyn Vfs> = memory.crash_clone(1, CrashPolicy::ProcessKilled);
        let images = |vfs: &Arc<dyn Vfs>| {
            let names = vfs.read_dir("/db".as_ref()).unwrap();
            names.into_iter().filter(|name| name.ends_with(".spmem")).collect::<Vec<_>>()
        };
        let left = images(&killed);
        assert!(!left.is_empty());
        let read_only = OpenOptions { read_only: true, ..options(&killed, way) };
        drop(Db::open("/db", &read_only).unwrap());
        assert_eq!(images(&killed), left, "a reader makes and removes none");
        let again = Db::open("/db", &options(&killed, way)).unwrap();
        assert!(!images(&killed).iter().any(|name| left.contains(name)));
        assert!((0..2000).all(|i| get(&again, &format!("key{i:05}")).is_some()));
        again.close().unwrap();
        drop(again);
        assert!(images(&killed).is_empty());
    }
}

/// Where files cannot be mapped the memtable is made in memory, and written out.
#[test]
fn without_mappings_memtables_are_written_out() {
    for code in [FaultCode::OtherDevice, FaultCode::NoSpace, FaultCode::Io] {
        for operation in [Operation::CreateMapped, Operation::Allocate] {
            let (place, faults) = Place::faulty();
            faults.inject(Rule::new(Fault::Error(code)).on(operation).path(".spmem").sticky());
            let db = place.open(WAYS[0]);
            for i in 0..3000 {
                put(&db, &format!("key{i:05}"), &"v".repeat(100));
            }
            flush(&db);
            let report = db.flushes();
            assert!(report.converted > 2 && report.fallen_back == 0 && report.rewritten == 0, "{report:?}");
            assert!(place.names(".spmem").is_empty());
            assert!((0..3000).all(|i| get(&db, &format!("key{i:05}")).is_some()));
            db.close().unwrap();
            place.check();
        }
    }
}

/// A disk that fills up while a memtable grows seals it early; what is there already becomes a table.
#[test]
fn a_memtable_whose_file_cannot_grow_is_sealed_early() {
    let (place, faults) = Place::faulty();
    let mut options = options(&place.vfs, WAYS[0]);
    options.families[0].1.write_buffer_size = 12 << 20; // three steps of allocation
    let db = Db::open(&place.dir, &options).unwrap();
    faults.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(Operation::Allocate).path(".spmem").sticky());
    for i in 0..6000 {
        put(&db, &format!("key{i:05}"), &"v".repeat(1000));
    }
    let report = db.flushes();
    assert_eq!((report.converted, report.fallen_back), (1, 0), "at the end of the first step: {report:?}");
    let bytes = db.live_files()[0].bytes;
    assert!((3 << 20..5 << 20).contains(&bytes), "{bytes}");
    faults.clear();
    flush(&db);
    assert!((0..6000).all(|i| get(&db, &format!("key{i:05}")).is_some()));
    place.check();
}

/// Large batches, and memtables that are to be merged, are rewritten; neither lies in a file.
#[test]
fn what_does_not_become_a_table_lies_in_no_file() {
    for way in WAYS {
        let place = Place::memory();
        let mut merging = options(&place.vfs, way);
        merging.families[0].1.min_write_buffer_number_to_merge = 2;
        merging.families[0].1.max_write_buffer_number = 4;
        let db = Db::open(&place.dir, &merging).unwrap();
        put(&db, "k", "v");
        assert!(place.names(".spmem").is_empty());
        flush(&db);
        assert_eq!((db.flushes().rewritten, db.flushes().converted), (1, 0));

        let place = Place::memory();
        let mut batching = options(&place.vfs, way);
        batching.db.large_batch_bytes = 4 << 10;
        let db = Db::open(&place.dir, &batching).unwrap();
        let mut batch = testkit::engine::WriteBatch::new();
        (0..100u32).for_each(|i| batch.put(db.default_family().id(), &i.to_be_bytes(), &[7; 100]));
        db.write(&batch, &WriteOptions::default()).unwrap();
        put(&db, "k", "v");
        flush(&db);
        assert_eq!((db.flushes().rewritten, db.flushes().converted), (1, 1), "{way}");
        assert_eq!(get(&db, "k"), Some(b"v".to_vec()));
        place.check();
    }
}
