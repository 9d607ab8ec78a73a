// A bulk load beside writers: tables are written by several threads, then made part of the database at one instant.
// Writers go on meanwhile, and none waits for the load. Run it with
//
//     cargo run --example bulk_load

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use spillway::{Db, Family, IngestFiles, IngestOptions, IngestProgress, Result};

const USERS: u32 = 100_000;
const PARTS: u32 = 4;

/// Writes the table of a part of the users. Keys have to ascend. A directory on the database's file system spares a copy.
fn write_part(users: &Family, dir: &Path, part: u32) -> Result<PathBuf> {
    let path = dir.join(format!("spillway-users-{part}.sst"));
    let mut table = users.table_writer(&path)?;
    for id in part * USERS / PARTS..(part + 1) * USERS / PARTS {
        table.put(id.to_be_bytes(), format!("loaded user {id}"))?;
    }
    table.finish()?;
    Ok(path)
}

/// Writes tables on threads of their own, and loads them in place of all users there were.
fn load(db: &Db, users: &Family) -> Result<()> {
    let paths: Vec<PathBuf> = std::thread::scope(|scope| {
        let parts: Vec<_> =
            (0..PARTS).map(|part| scope.spawn(move || write_part(users, &std::env::temp_dir(), part))).collect();
        parts.into_iter().map(|part| part.join().expect("no panic")).collect::<Result<_>>()
    })?;

    // Checks the tables and brings them into the directory. It can be watched, and cancelled, from another thread.
    let files = IngestFiles::new(users, &paths).replacing([0u8; 4]..[u8::MAX; 4]);
    let options = IngestOptions::new().move_files(true).verify_checksums_before_ingest(true);
    let prepared = db.prepare_ingest([files], &options, &IngestProgress::default())?;
    println!(
        "prepared {} tables, {} KiB; users there: {}",
        prepared.files(),
        prepared.bytes() >> 10,
        users.iter().count()
    );

    // Tables and batch become visible at the same instant, durably.
    let mut batch = db.batch();
    batch.put(db.default_family(), "users loaded", USERS.to_string());
    let report = prepared.commit_with_batch(batch)?;
    println!(
        "committed {} tables at one instant; it held the writers' lock for {:?}",
        report.tables, report.locked_for
    );
    Ok(())
}

fn main() -> Result<()> {
    let dir = std::env::temp_dir().join("spillway-bulk-load");
    let db = Db::open(&dir)?;
    let (users, events) = (db.family("users")?, db.family("events")?);
    for id in [7u32, 8, 9] {
        users.put(id.to_be_bytes(), "a user of yesterday")?;
    }

    let is_loaded = AtomicBool::new(false);
    let written = std::thread::scope(|scope| -> Result<u64> {
        let writer = scope.spawn(|| -> Result<u64> {
            let mut written = 0u64;
            while !is_loaded.load(Ordering::Relaxed) {
                events.put(written.to_be_bytes(), "an event")?;
                written += 1;
            }
            Ok(written)
        });
        let loaded = load(&db, &users);
        is_loaded.store(true, Ordering::Relaxed);
        let written = writer.join().expect("no panic")?;
        loaded.map(|()| written)
    })?;

    println!(
        "{} users now, and all {written} events of the writer beside it: {}",
        users.iter().count(),
        events.iter().count() as u64 == written
    );
    println!("user 7: {}", users.get(7u32.to_be_bytes())?.expect("loaded").escape_ascii());
    for stall in db.stalls().iter().filter(|stall| stall.waits > 0) {
        println!("writers waited {} times for {:?}", stall.waits, stall.cause);
    }
    db.close()?;
    Db::destroy(&dir)
}
