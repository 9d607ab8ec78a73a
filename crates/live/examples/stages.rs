// A database that is well, or has one of three troubles, with its live page: to learn what they look like.
//
//     cargo run --release -p spillway-db-live --example stages -- [well|compactions|cache|iterator] [DIR [SECONDS]]
//
// The trouble is in `staged`. Look at the page, or with `spillway top --db DIR`, and find it without reading on.

#![allow(clippy::disallowed_methods, reason = "an example has the clock and threads of any program")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use spillway::{Db, FamilyOptions, Options, Result, TableOptions};

/// What a page must show as text.
const HOSTILE: &str = "</td><img src=x onerror=alert(1)><b>\"&amp;";
const KEYS: u64 = 400_000;

fn staged(stage: &str) -> (Options, FamilyOptions) {
    let options = Options::new().statistics(true).observe_socket(true).observe_changes(true);
    let family = FamilyOptions::new().write_buffer_size(4 << 20).max_bytes_for_level_base(16 << 20);
    let well = TableOptions::new().bloom_filter(10.0).block_cache(256 << 20);
    match stage {
        "compactions" => (options.rate_limiter_bytes_per_sec(2 << 20), family.table(well)),
        "cache" => (options, family.table(well.block_cache(256 << 10))),
        _ => (options, family.table(well)),
    }
}

fn key(n: u64) -> [u8; 8] {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS).to_be_bytes()
}

/// Two thousand writes a second, but for slow compactions, which need more.
fn write(db: &Db, stage: &str, ended: &AtomicBool) -> Result<()> {
    let pause = if stage == "compactions" { Duration::ZERO } else { Duration::from_millis(10) };
    let mut n = 0;
    while !ended.load(Relaxed) {
        for _ in 0..20 {
            db.put(key(n), [b'v'; 200])?;
            n += 1;
        }
        std::thread::sleep(pause);
    }
    Ok(())
}

fn read(db: &Db, ended: &AtomicBool) -> Result<()> {
    let mut n = 0;
    while !ended.load(Relaxed) {
        for _ in 0..50 {
            db.get(key(n * 7))?;
            n += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let stage = arguments.next().unwrap_or_else(|| "well".to_string());
    let dir = arguments.next().map_or_else(|| std::env::temp_dir().join("spillway-stages"), PathBuf::from);
    let seconds = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(600);
    let (options, family) = staged(&stage);
    let db = Db::open_with(&dir, &options.default_family(family.clone()))?;
    db.family_with(HOSTILE, &family)?.put("key", "value")?;
    let mut settings = live::Settings::default();
    settings.allow_changes = true;
    let server = live::Server::start(db.clone(), settings)?;
    println!("Look at {}\nor with `spillway top --db {}`. It ends after {seconds} s.", server.url(), dir.display());
    for n in 0..KEYS {
        db.put(key(n), [b'v'; 200])?;
    }
    let held = (stage == "iterator").then(|| {
        let mut iterator = db.iter();
        iterator.next();
        iterator
    });
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&db, &stage, &ended));
        let reader = scope.spawn(|| read(&db, &ended));
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end && !writer.is_finished() && !reader.is_finished() {
            std::thread::sleep(Duration::from_millis(100));
        }
        ended.store(true, Relaxed);
        writer.join().expect("no panic").and(reader.join().expect("no panic"))
    })?;
    drop(held);
    drop(server);
    db.close()
}
