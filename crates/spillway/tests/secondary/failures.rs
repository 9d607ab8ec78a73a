//! File-system calls that fail during a catch-up: readers see nothing of it, and the next catch-up shows all.

use testkit::engine::vfs::{Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule};
use testkit::engine::{Db, OpenOptions, WriteBatch, WriteOptions};

use crate::beside::{options, read_all, write};

/// News of every kind: batches in the log, a large one in a file of its own, tables, compactions, a new MANIFEST.
fn go_on(primary: &Db, n: u64) {
    write(primary, n);
    let families = primary.families();
    match n % 5 {
        1 => primary.flush(&families.iter().collect::<Vec<_>>()).unwrap(),
        2 => {
            let mut batch = WriteBatch::new();
            batch.put(families[1].id(), b"large", &[7; 40 << 10]);
            batch.delete(families[1].id(), b"large");
            primary.write(&batch, &WriteOptions::default()).unwrap();
        }
        3 => primary.compact_range(&families[0], None, None, &Default::default()).unwrap(),
        _ => {}
    }
}

#[test]
fn a_catch_up_that_fails_shows_nothing_and_the_next_one_all() {
    let inner = MemoryVfs::new(1);
    let faults = FaultVfs::new(inner.clone());
    let mut of_primary = OpenOptions { vfs: inner, ..options() };
    of_primary.db.large_batch_bytes = 16 << 10;
    of_primary.db.max_manifest_file_size = 4 << 10;
    let primary = Db::open("/db", &of_primary).unwrap();
    let of_second = OpenOptions { vfs: faults.clone(), ..of_primary.clone() };
    let second = Db::open_as_secondary("/db", "/second", &of_second).unwrap();
    let (mut n, mut failed) = (0, 0);
    for operation in [Operation::Open, Operation::Read, Operation::Metadata, Operation::ReadDir] {
        for nth in 1..12 {
            for sticky in [false, true] {
                n += 1;
                go_on(&primary, n);
                let rule = Rule::new(Fault::Error(FaultCode::Io)).on(operation).path("/db").nth(nth);
                faults.inject(if sticky { rule.sticky() } else { rule });
                let before = read_all(&second);
                let caught_up = second.try_catch_up_with_primary();
                faults.clear();
                let context = format!("{operation:?} {nth}, sticky: {sticky}, {n}: {caught_up:?}");
                let expected = if caught_up.is_ok() { n } else { before };
                failed += u64::from(caught_up.is_err());
                assert_eq!(read_all(&second), expected, "{context}");
                second.try_catch_up_with_primary().unwrap_or_else(|error| panic!("{context}, then {error}"));
                assert_eq!(read_all(&second), n, "{context}");
            }
        }
    }
    println!("{failed} of {n} catch-ups failed");
    assert!(failed > 10, "{failed} of {n} catch-ups failed");
}

/// Recovery flushes everything if the logs are many or large, and notes that nothing of them is needed. The secondary has
/// read a part of one.
#[test]
fn an_open_of_the_primary_that_fails_anywhere_leaves_a_secondary_all_writes() {
    let mut failed = 0;
    for nth in 1.. {
        let vfs = MemoryVfs::new(nth);
        let faults = FaultVfs::new(vfs.clone());
        let mut options = OpenOptions { vfs: vfs.clone(), ..options() };
        let primary = Db::open("/db", &options).unwrap();
        write(&primary, 1);
        let second = Db::open_as_secondary("/db", "/second", &options).unwrap();
        write(&primary, 2);
        second.try_catch_up_with_primary().unwrap();
        write(&primary, 3);
        primary.close().unwrap();
        drop(primary);
        vfs.set_mount(None); // so the log is replayed
        options.db.max_total_wal_size = 1;
        faults.inject(Rule::new(Fault::Error(FaultCode::Io)).path("/db").nth(nth).sticky());
        let opened = Db::open("/db", &OpenOptions { vfs: faults.clone(), ..options.clone() });
        let has_fired = faults.fired() > 0;
        drop(opened);
        faults.clear();
        failed += u64::from(has_fired);
        second.try_catch_up_with_primary().unwrap_or_else(|error| panic!("call {nth}: {error}"));
        assert_eq!((read_all(&second), second.lag().unwrap().bytes), (3, 0), "call {nth}");
        let primary = Db::open("/db", &options).unwrap();
        write(&primary, 4);
        second.try_catch_up_with_primary().unwrap_or_else(|error| panic!("call {nth}, then opened: {error}"));
        assert_eq!((read_all(&second), second.lag().unwrap().bytes), (4, 0), "call {nth}");
        if !has_fired {
            break;
        }
    }
    println!("{failed} opens failed");
    assert!(failed > 20, "{failed} opens failed");
}
