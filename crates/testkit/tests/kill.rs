//! A process that is killed with SIGKILL while it writes, over and over: whatever it said it had written is there, and
//! what is there is a prefix of what it wrote, whole across families (D1-D3).
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use spillway::{Db, ReadOptions, WriteBatch, WriteOptions};
use testkit::profile;
use testkit::random::Random;
use vfs::RealVfs;

const ROUNDS: u64 = 20;
const DIR_VARIABLE: &str = "SPILLWAY_KILL_DIR";
const FAMILIES: [&str; 2] = ["default", "other"];
/// Write number n goes to key n modulo this.
const KEYS: u64 = 400;
const LAST: &[u8] = b"last";

fn open(dir: &Path) -> Arc<Db> {
    let profile = profile::by_name("tiny").unwrap();
    Arc::new(Db::open(dir, &profile.open_options(RealVfs::new(), FAMILIES)).unwrap())
}

fn number(db: &Db, family: &str, key: &[u8]) -> Option<u64> {
    let value = db.get(&db.family(family).unwrap(), key, &ReadOptions::default()).unwrap()?;
    Some(u64::from_le_bytes(value.first_chunk().copied().unwrap()))
}

fn key_of(write: u64) -> [u8; 8] {
    (write % KEYS).to_be_bytes()
}

/// The process that is killed. It goes on behind the last write that it finds.
#[test]
#[ignore = "run by the test below, in a process of its own"]
fn writer() {
    let dir = std::env::var(DIR_VARIABLE).unwrap();
    let db = open(Path::new(&dir));
    let first = number(&db, "default", LAST).map_or(0, |last| last + 1);
    let mut out = std::io::stdout().lock();
    for write in first.. {
        let mut batch = WriteBatch::new();
        let mut value = write.to_le_bytes().to_vec();
        value.resize(8 + (write * 37 % 900) as usize, b'v');
        for family in db.families() {
            batch.put(family.id(), &key_of(write), &value);
            batch.put(family.id(), LAST, &write.to_le_bytes());
        }
        let options = WriteOptions { sync: write % 16 == 0, ..WriteOptions::default() };
        db.write(&batch, &options).unwrap();
        writeln!(out, "acknowledged {write}").unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut random = Random::new(std::process::id().into());
    let mut total = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer", "--ignored", "--nocapture"])
            .env(DIR_VARIABLE, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let life = 1 + random.below(1500);
        let mut acknowledged = None;
        let mut seen = 0;
        // Behind the kill the pipe still holds what was acknowledged before it.
        for line in lines {
            let line = line.unwrap();
            let Some((_, write)) = line.split_once("acknowledged ") else { continue };
            acknowledged = Some(write.parse::<u64>().unwrap());
            seen += 1;
            if seen == life {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= life, "round {round}: the writer ended by itself after {seen} writes");
        total += seen;
        check(&path, acknowledged.unwrap(), round);
    }
    println!("{total} writes acknowledged over {ROUNDS} kills");
}

fn check(path: &Path, acknowledged: u64, round: u64) {
    let db = open(path);
    for family in FAMILIES {
        let last = number(&db, family, LAST).unwrap();
        assert!(
            (acknowledged..=acknowledged + 1).contains(&last),
            "round {round}, {family}: {acknowledged} was acknowledged, {last} is there"
        );
        assert_eq!(Some(last), number(&db, "default", LAST), "round {round}: half a batch");
        for back in 0..KEYS.min(last + 1) {
            assert_eq!(number(&db, family, &key_of(last - back)), Some(last - back), "round {round}, {family}: a hole");
        }
    }
}
