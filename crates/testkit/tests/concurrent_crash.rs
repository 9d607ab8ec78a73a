//! Crashes during concurrent writes: with a writer stalled while copying its record, and with memtables full of
//! versions of one key.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use testkit::engine::{Db, IngestOptions, ReadOptions, SeqNo, TableWriter, WriteBatch, WriteOptions};
use testkit::gate::GateVfs;
use testkit::profile::{self, Profile};
use testkit::threads::{start, wait_for, within};
use vfs::{CrashPolicy, MemoryVfs, Vfs};

const LIMIT: Duration = Duration::from_secs(120);
const DIR: &str = "/db";

fn threaded() -> Arc<MemoryVfs> {
    let memory = MemoryVfs::new(1);
    memory.set_runs_inline(false);
    memory
}

fn open(vfs: Arc<dyn Vfs>, profile: Profile) -> Arc<Db> {
    Arc::new(Db::open(DIR, &profile.open_options(vfs, ["other"])).unwrap())
}

fn get(db: &Db, family: &str, key: &str) -> Option<Vec<u8>> {
    let family = db.family(family).unwrap();
    db.get(&family, key.as_bytes(), &ReadOptions::default()).unwrap().map(|value| value.to_vec())
}

/// Writes one pair to both families and returns the sequence number of the last entry.
fn put_both(db: &Db, key: &str, value: &[u8], options: &WriteOptions) -> SeqNo {
    let mut batch = WriteBatch::new();
    for family in db.families() {
        batch.put(family.id(), key.as_bytes(), value);
    }
    db.write(&batch, options).unwrap()
}

/// Holds the writer of `held` at its store number `passing`, queues another write behind it, and crashes. False if the
/// first writer has no such store.
fn crash_with_a_stalled_writer(profile: Profile, passing: u64) -> bool {
    let memory = threaded();
    let (gated, gate) = GateVfs::new(memory.clone());
    let db = open(gated, profile);
    put_both(&db, "before", b"1", &WriteOptions::synced());
    gate.hold_after(passing);
    let writer = start({
        let db = db.clone();
        move || put_both(&db, "held", &[7; 5000], &WriteOptions::default())
    });
    wait_for("the first writer", || gate.is_holding() || writer.is_finished());
    if !gate.is_holding() {
        gate.open();
        writer.join().unwrap();
        return false;
    }
    let stores = gate.stores();
    let behind: Vec<_> = [WriteOptions::default(), WriteOptions::synced()]
        .into_iter()
        .enumerate()
        .map(|(number, options)| {
            let db = db.clone();
            start(move || put_both(&db, &format!("behind{number}"), b"2", &options))
        })
        .collect();
    wait_for("the writers behind", || gate.stores() >= stores + 2);
    // Their records are whole, but nothing tells them so before the writer in front of them is done.
    let images: Vec<_> = CrashPolicy::ALL.map(|policy| (policy, memory.crash_clone(7, policy))).into();
    assert!(get(&db, "default", "held").is_none() && get(&db, "default", "behind0").is_none(), "visible too early");
    gate.open();
    writer.join().unwrap();
    for writer in behind {
        writer.join().unwrap();
    }
    for family in ["default", "other"] {
        assert_eq!(get(&db, family, "held"), Some(vec![7; 5000]));
        assert_eq!(get(&db, family, "behind1"), Some(b"2".to_vec()));
    }
    for (policy, image) in images {
        for round in 0..2 {
            let db = open(image.clone(), profile);
            for family in ["default", "other"] {
                assert_eq!(get(&db, family, "before"), Some(b"1".to_vec()), "{policy:?}, opened {round}");
                for lost in ["held", "behind0", "behind1"] {
                    assert_eq!(get(&db, family, lost), None, "{policy:?}, opened {round}: {lost} is beyond a hole");
                }
            }
            put_both(&db, "after", b"3", &WriteOptions::synced());
        }
        let db = open(image.crash_clone(8, CrashPolicy::NothingUnsyncedKept), profile);
        assert_eq!(get(&db, "other", "after"), Some(b"3".to_vec()), "{policy:?}");
        assert_eq!(get(&db, "other", "behind1"), None, "{policy:?}");
    }
    true
}

#[test]
fn a_kill_with_a_lower_numbered_writer_stalled_in_mid_copy() {
    within(LIMIT, || {
        for name in ["tiny", "static-levels", "vector"] {
            let profile = profile::by_name(name).unwrap();
            let mut stores = 0;
            while crash_with_a_stalled_writer(profile, stores) {
                stores += 1;
            }
            assert!(stores > 0, "{name}: a record takes at least one store");
        }
    });
}

#[test]
fn memtables_fill_up_under_concurrent_writers_of_one_key() {
    const THREADS: usize = 4;
    const WRITES: usize = 150;
    within(LIMIT, || {
        for name in ["tiny", "vector", "partitioned"] {
            let profile = profile::by_name(name).unwrap();
            let memory = threaded();
            let db = open(memory.clone(), profile);
            let acknowledged = Arc::new(Mutex::new(BTreeMap::<SeqNo, Vec<u8>>::new()));
            let writers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (db, acknowledged) = (db.clone(), acknowledged.clone());
                    start(move || {
                        for write in 0..WRITES {
                            let mut value = format!("{thread}-{write}-").into_bytes();
                            value.resize(2000, b'x');
                            let seq = put_both(&db, "key", &value, &WriteOptions::default());
                            acknowledged.lock().unwrap().insert(seq, value);
                        }
                    })
                })
                .collect();
            let mut images = Vec::new();
            while !writers.iter().all(std::thread::JoinHandle::is_finished) {
                let least = acknowledged.lock().unwrap().last_key_value().map(|(seq, _)| *seq);
                images.push((least, memory.crash_clone(images.len() as u64, CrashPolicy::ProcessKilled)));
                if images.len() > 40 {
                    break;
                }
            }
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            let written = acknowledged.lock().unwrap().clone();
            let newest = written.last_key_value().map(|(_, value)| value.clone());
            assert_eq!(get(&db, "default", "key"), newest, "{name}");
            assert_eq!(get(&db, "other", "key"), newest, "{name}");
            for (least, image) in images {
                let db = open(image, profile);
                let found = get(&db, "default", "key");
                assert_eq!(found, get(&db, "other", "key"), "{name}: half a batch");
                let seq =
                    found.and_then(|found| written.iter().find(|(_, value)| **value == found)).map(|(seq, _)| *seq);
                assert!(seq >= least, "{name}: {least:?} was acknowledged, {seq:?} is there");
            }
            db.close().unwrap();
            drop(db);
            assert_eq!(get(&open(memory, profile), "default", "key"), newest, "{name}, reopened");
        }
    });
}

fn unlogged() -> WriteOptions {
    WriteOptions { disable_wal: true, ..WriteOptions::default() }
}

/// Numbers written by each thread and found in a family.
fn counters(db: &Db, family: &str, threads: usize) -> Vec<Option<Vec<u8>>> {
    (0..threads).map(|thread| get(db, family, &format!("count-{thread}"))).collect()
}

/// Memtables fill, small ones of an idle family among them, calls flush one family, and ingests come between.
#[test]
fn families_flushed_together_agree_after_crashes_beside_writers() {
    const THREADS: usize = 3;
    let write = |db: &Db, vfs: &Arc<MemoryVfs>, thread: usize, n: usize| {
        put_both(db, &format!("count-{thread}"), n.to_string().as_bytes(), &unlogged());
        let family = db.family(if n.is_multiple_of(2) { "default" } else { "other" }).unwrap();
        let filler = vec![7; 1 + n % 7 * 2000]; // some are large batches
        db.put(&family, format!("filler-{thread}-{}", n % 50).as_bytes(), &filler, &unlogged()).unwrap();
        if n % 40 == thread {
            db.flush(&[&family]).unwrap();
        }
        if thread == 2 && n.is_multiple_of(8) {
            let path = std::path::PathBuf::from(format!("/ingested-{n}.sst"));
            let mut table = TableWriter::create(vfs.clone(), &path, &family.options()).unwrap();
            table.put(format!("filler-{}-{}", n % 2, n % 50).as_bytes(), b"ingested").unwrap();
            table.finish().unwrap();
            db.ingest(&family, &[path], &IngestOptions::default()).unwrap();
        }
    };
    within(LIMIT, move || {
        let (memory, profile) = (threaded(), profile::by_name("atomic").unwrap());
        let db = open(memory.clone(), profile);
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (db, memory) = (db.clone(), memory.clone());
                start(move || (0..200).for_each(|n| write(&db, &memory, thread, n)))
            })
            .collect();
        let (mut images, mut found) = (0, std::collections::BTreeSet::new());
        while !writers.iter().all(std::thread::JoinHandle::is_finished) && images < 60 {
            images += 1;
            let policy = *CrashPolicy::ALL.iter().cycle().nth(images).unwrap();
            let image = open(memory.crash_clone(images as u64, policy), profile);
            let [here, there] = ["default", "other"].map(|family| counters(&image, family, THREADS));
            assert_eq!(here, there, "{policy:?}: families hold different numbers");
            found.insert(here);
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert!(found.len() > 2, "{found:?}: flushes left different states behind");
        db.close().unwrap();
        let all = vec![Some(b"199".to_vec()); THREADS];
        drop(db);
        assert_eq!(counters(&open(memory, profile), "other", THREADS), all, "closing flushes");
    });
}
