//! The file system was unmounted, without having written everything, and mounted again on the same boot: what was synced
//! is there, and nothing else is relied on.

use std::sync::Arc;

use testkit::engine::vfs::{CrashPolicy, MemoryVfs};
use testkit::engine::{Db, WriteOptions};

use crate::common::{Contents, MEMTABLES, batch, contents, options, property};

/// Past the mark that memtables are told after so many bytes of log.
const WRITES: u64 = 260;
const SYNCED: u64 = 200;
const SEEDS: u64 = 12;

/// Returns what was there behind each write from the last synced one on.
fn live(memory: &Arc<MemoryVfs>, memtable: &str) -> Vec<Contents> {
    let db = Db::open("/db", &options(memory.clone(), memtable, false)).unwrap();
    let mut states = Vec::new();
    for n in 0..WRITES {
        let options = if n == SYNCED { WriteOptions::synced() } else { WriteOptions::default() };
        db.write(&batch(&db, n), &options).unwrap();
        if n >= SYNCED {
            states.push(contents(&db));
        }
    }
    std::mem::forget(db); // killed
    states
}

#[test]
fn after_a_remount_what_was_synced_is_there_by_replay() {
    for memtable in MEMTABLES {
        let memory = MemoryVfs::new(7);
        let states = live(&memory, memtable);
        let policies = [CrashPolicy::NothingUnsyncedKept, CrashPolicy::RandomBlocksKept, CrashPolicy::AllKept];
        for (policy, seed) in policies.into_iter().flat_map(|policy| (0..SEEDS).map(move |seed| (policy, seed))) {
            let remounted = memory.remounted(seed, policy);
            let db = Db::open("/db", &options(remounted.clone(), memtable, false))
                .unwrap_or_else(|error| panic!("{memtable}, {policy:?}, {seed}: {error}"));
            assert!(states.contains(&contents(&db)), "{memtable}, {policy:?}, {seed}");
            assert_eq!(property(&db, "spillway.memtables-restored"), 0);
        }
    }
}

#[test]
fn without_knowing_the_mount_the_log_is_replayed() {
    let memory = MemoryVfs::new(7);
    let states = live(&memory, MEMTABLES[0]);
    let restored = |mounts: [Option<u64>; 2]| {
        let killed = memory.crash_clone(1, CrashPolicy::ProcessKilled);
        killed.set_mount(mounts[0]);
        let db = Db::open("/db", &options(killed.clone(), MEMTABLES[0], false)).unwrap();
        assert!(states.last() == Some(&contents(&db)));
        db.write(&batch(&db, 1), &WriteOptions::default()).unwrap();
        let expected = contents(&db);
        let again = killed.crash_clone(1, CrashPolicy::ProcessKilled);
        again.set_mount(mounts[1]);
        let reopened = Db::open("/db", &options(again, MEMTABLES[0], false)).unwrap();
        assert!(contents(&reopened) == expected);
        [&db, &reopened].map(|db| property(db, "spillway.memtables-restored") > 0)
    };
    assert!(restored([Some(1), Some(1)])[0]);
    assert!(!restored([None, Some(1)])[0], "whose memory it was cannot be told");
    assert_eq!(restored([None, None]), [false, false], "a database that never knew its mount");
}
