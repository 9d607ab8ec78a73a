//! A primary in another process is killed while it writes, flushes or recovers, and comes back. The secondary follows: it
//! never goes back, sees whole batches only, and after each kill all that was acknowledged.
//! `SPILLWAY_SECONDARY_SECONDS` says for how long.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "processes are real, as are their files")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::engine::Db;
use testkit::engine::vfs::{IoClass, RealVfs};
use testkit::random::Random;

use crate::beside::{options, read_all, write};

const PLACE: &str = "SPILLWAY_PRIMARY_PLACE";
const LIFE: &str = "SPILLWAY_PRIMARY_LIFE";
const SECONDS: &str = "SPILLWAY_SECONDARY_SECONDS";

/// Where a process says how far it came.
fn told_in(place: &Path, life: u64) -> PathBuf {
    place.join(format!("told-{life}"))
}

/// The process to be killed.
#[test]
#[ignore = "run by the test below, in a process of its own"]
fn primary() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let place = Path::new(&place);
    let life: u64 = std::env::var(LIFE).unwrap().parse().unwrap();
    let db = Db::open(place.join("db"), &options()).unwrap();
    let told = RealVfs::new().create_shared(&told_in(place, life)).unwrap();
    for n in read_all(&db) + 1.. {
        write(&db, n);
        told.write_at(0, &n.to_le_bytes(), IoClass::Other).unwrap();
    }
}

struct Primary {
    child: Child,
    told: PathBuf,
}

impl Primary {
    fn start(place: &Path, life: u64) -> Primary {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::primary", "--ignored", "--nocapture"])
            .env(PLACE, place)
            .env(LIFE, life.to_string())
            .stdout(Stdio::null())
            .spawn();
        Primary { child: child.unwrap(), told: told_in(place, life) }
    }

    /// The last batch that is acknowledged; 0 if none is.
    fn acknowledged(&self) -> u64 {
        let bytes = std::fs::read(&self.told).unwrap_or_default();
        bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_secondary_follows_a_primary_that_is_killed_and_comes_back() {
    let seconds = std::env::var(SECONDS).map_or(3, |seconds| seconds.parse().unwrap());
    let place = tempfile::tempdir().unwrap();
    let mut random = Random::new(std::process::id().into());
    let begun = Instant::now();
    let mut primary = Primary::start(place.path(), 0);
    while primary.acknowledged() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the primary does not begin");
        std::thread::sleep(Duration::from_millis(1));
    }
    let second = Db::open_as_secondary(place.path().join("db"), place.path().join("second"), &options()).unwrap();
    let (mut last, mut acknowledged, mut kills, mut catch_ups) = (0, 0, 0, 0);
    while begun.elapsed() < Duration::from_secs(seconds) || kills < 5 {
        let bits = 10 + random.below(9);
        let life = Duration::from_micros(random.below(1 << bits));
        let start = Instant::now();
        while start.elapsed() < life {
            second.try_catch_up_with_primary().unwrap();
            let now = read_all(&second);
            assert!(now >= last, "back from {last} to {now}");
            (last, catch_ups) = (now, catch_ups + 1);
        }
        primary.child.kill().unwrap();
        primary.child.wait().unwrap();
        acknowledged = primary.acknowledged().max(acknowledged);
        kills += 1;
        second.try_catch_up_with_primary().unwrap();
        let now = read_all(&second);
        assert!(now >= last && now >= acknowledged, "{acknowledged} acknowledged, {last} seen before, {now} now");
        assert_eq!(second.lag().unwrap().bytes, 0);
        last = now;
        primary = Primary::start(place.path(), kills);
    }
    println!("{kills} kills, {catch_ups} catch-ups, {last} batches");
    assert!(last > 10, "{last} batches");
}
