//! The files of large batches: how many stay, and that none stays for nothing.

use std::path::Path;
use std::sync::Arc;

use spillway::vfs::{Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule, Vfs};
use spillway::{Db, Family, OpenOptions, ReadOptions, WriteBatch, WriteOptions};

fn options(vfs: Arc<dyn Vfs>) -> OpenOptions {
    let mut options = OpenOptions { vfs, ..OpenOptions::create_if_missing() };
    options.db.large_batch_bytes = 16 << 10;
    options
}

/// Writes a batch of 20 KiB.
fn write_large(db: &Db, family: &Family, n: u32) -> spillway::Result<()> {
    let mut batch = WriteBatch::new();
    batch.put(family.id(), &n.to_be_bytes(), &[7; 20 << 10]);
    db.write(&batch, &WriteOptions::default()).map(drop)
}

fn has(db: &Db, family: &Family, n: u32) -> bool {
    db.get(family, &n.to_be_bytes(), &ReadOptions::default()).expect("get").is_some()
}

fn batch_files(vfs: &dyn Vfs) -> usize {
    let names = vfs.read_dir(Path::new("/db")).expect("there");
    names.iter().filter(|name| name.ends_with(".spbatch")).count()
}

#[test]
fn files_of_large_batches_count_towards_the_limit_of_all_logs() {
    let vfs = MemoryVfs::new(1);
    let mut options = options(vfs.clone());
    options.db.max_total_wal_size = 128 << 10;
    let db = Db::open("/db", &options).expect("open");
    let idle = db.create_family("idle", Default::default()).expect("created");
    db.put(&idle, b"key", b"value", &WriteOptions::default()).expect("put");
    let family = db.default_family();
    let mut most = 0;
    for n in 0..50 {
        write_large(&db, &family, n).expect("written");
        most = most.max(batch_files(&*vfs));
        assert!(most <= 7, "{n}: {most}");
    }
    assert!(most >= 5, "the log that is written to counts with what is in it, not with the space that it has: {most}");
    assert!((0..50).all(|n| has(&db, &family, n)));
}

#[test]
fn a_large_batch_whose_file_cannot_be_synced_leaves_none() {
    let mut failed = 0;
    for nth in 1.. {
        let memory = MemoryVfs::new(2);
        let faulty = FaultVfs::new(memory.clone());
        let db = Db::open("/db", &options(faulty.clone())).expect("open");
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Sync).path(".spbatch").nth(nth));
        let family = db.default_family();
        let written = write_large(&db, &family, 1);
        if faulty.fired() == 0 {
            break;
        }
        written.expect_err("its file cannot be synced");
        assert_eq!(batch_files(&*memory), 0, "sync {nth}");
        write_large(&db, &family, 2).expect("written");
        assert!(!has(&db, &family, 1) && has(&db, &family, 2));
        failed += 1;
    }
    assert!(failed > 1, "the file is synced when it is made, and when it is filled");
}
