//! Read-only opens beside a process that writes, flushes, compacts and rotates WALs and MANIFESTs. Every successful
//! open shows a prefix of the history, whole across families, with every write acknowledged before it. The only
//! permitted error is `Busy`.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use testkit::engine::check::{CheckOptions, check};
use testkit::engine::{Db, ErrorKind, OpenOptions, ReadOptions, WriteBatch, WriteOptions};
use testkit::profile;
use vfs::RealVfs;

const DIR_VARIABLE: &str = "SPILLWAY_BESIDE_DIR";
const FAMILIES: [&str; 2] = ["default", "other"];
/// Write number n goes to key n modulo this.
const KEYS: u64 = 300;
const LAST: &[u8] = b"last";
/// Every so manieth write is flushed by hand, in one family only.
const FLUSH_STRIDE: u64 = 97;
/// Opens that must succeed, and writes beside which they do: some 70 logs, and as many flushes and compactions.
const OPENS: usize = 60;
const WRITES: u64 = 5000;
/// Opens that may be turned away, for one that succeeds.
const BUSY_MAX: usize = 2;

fn options() -> OpenOptions {
    profile::by_name("tiny").unwrap().open_options(RealVfs::new(), FAMILIES)
}

fn number(db: &Db, family: &str, key: &[u8]) -> Option<u64> {
    let value = db.get(&db.family(family).unwrap(), key, &ReadOptions::default()).unwrap()?;
    Some(u64::from_le_bytes(value.first_chunk().copied().unwrap()))
}

fn key_of(write: u64) -> [u8; 8] {
    (write % KEYS).to_be_bytes()
}

/// The writing process; it runs until killed.
#[test]
#[ignore = "run by the test below, in a process of its own"]
fn writer() {
    let db = Db::open(std::env::var(DIR_VARIABLE).unwrap(), &options()).unwrap();
    let mut out = std::io::stdout().lock();
    for write in 0u64.. {
        let mut batch = WriteBatch::new();
        let mut value = write.to_le_bytes().to_vec();
        value.resize(8 + (write * 37 % 900) as usize, b'v');
        for family in db.families() {
            batch.put(family.id(), &key_of(write), &value);
            batch.put(family.id(), LAST, &write.to_le_bytes());
        }
        db.write(&batch, &WriteOptions::default()).unwrap();
        if write % FLUSH_STRIDE == 0 {
            db.flush(&[&db.families()[(write / FLUSH_STRIDE % 2) as usize]]).unwrap();
        }
        writeln!(out, "acknowledged {write}").unwrap();
        out.flush().unwrap();
    }
}

struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Starts the writer. The number is its last acknowledged write.
fn start(dir: &Path) -> (Writer, Arc<AtomicU64>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--ignored", "--nocapture"])
        .env(DIR_VARIABLE, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let told = acknowledged.clone();
    let mut take = move || {
        let line = lines.next()?.ok()?;
        if let Some((_, write)) = line.split_once("acknowledged ") {
            told.store(write.parse().unwrap(), Ordering::Release);
        }
        Some(())
    };
    while acknowledged.load(Ordering::Acquire) < KEYS {
        take().expect("the writer goes on");
    }
    #[expect(clippy::disallowed_methods, reason = "a test's own thread")]
    std::thread::spawn(move || while take().is_some() {});
    (Writer(child), acknowledged)
}

/// Returns the last write found.
fn check_prefix(db: &Db, at_least: u64) -> u64 {
    let last = number(db, "default", LAST).unwrap();
    assert!(last >= at_least, "{at_least} was acknowledged or seen, {last} is there");
    for family in FAMILIES {
        assert_eq!(number(db, family, LAST), Some(last), "half a batch");
        for back in 0..KEYS {
            assert_eq!(number(db, family, &key_of(last - back)), Some(last - back), "{family}: a hole");
        }
    }
    last
}

#[test]
fn checkpoints_beside_a_writer_are_prefixes_and_databases_of_their_own() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("db");
    let (writer, acknowledged) = start(&dir);
    let mut seen = 0;
    for round in 0..12 {
        let before = acknowledged.load(Ordering::Acquire);
        let copy = temporary.path().join(round.to_string());
        let made = (0..20).find_map(|_| match Db::checkpoint_beside(&dir, &options(), &copy) {
            Err(error) if error.kind() == ErrorKind::Busy => None,
            made => Some(made.unwrap()),
        });
        made.expect("not busy for ever");
        let report = check(&copy, &CheckOptions::default(), &mut |_| {}).unwrap();
        assert!(report.is_whole(), "{:?}", report.problems);
        let db = Db::open(&copy, &options()).unwrap();
        seen = check_prefix(&db, before.max(seen));
        db.put(&db.default_family(), b"own", b"write", &WriteOptions::default()).unwrap();
    }
    drop(writer);
}

#[test]
fn a_reader_beside_a_writer_sees_prefixes() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("db");
    let (writer, acknowledged) = start(&dir);
    let read_only = OpenOptions { read_only: true, ..options() };
    let (mut opened, mut busy, mut seen) = (0, 0, 0);
    while opened < OPENS || seen < WRITES {
        let before = acknowledged.load(Ordering::Acquire);
        let db = match Db::open(&dir, &read_only) {
            Ok(db) => db,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Busy, "{error:?}");
                busy += 1;
                assert!(busy <= BUSY_MAX * (opened + OPENS), "{opened} opens succeeded: {error:?}");
                continue;
            }
        };
        opened += 1;
        seen = check_prefix(&db, before.max(seen));
    }
    drop(writer);
    println!("{opened} opens, {busy} times busy, {seen} writes");
}
