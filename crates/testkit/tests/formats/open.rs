//! Opens a stored directory, compares, writes, and opens again.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use testkit::engine::check::{CheckOptions, check};
use testkit::engine::{Db, OpenOptions, ReadOptions, WriteOptions};
use vfs::{CrashPolicy, MemoryVfs};

use crate::life::{DIR, Life};
use crate::store;

/// Opens on the boot of the writing machine and on a later one, with the original options and with defaults.
pub fn open_in_every_way(folder: &Path) {
    let (life, stored, expected) = (Life::of(folder), store::load(folder), store::contents(folder));
    for policy in [CrashPolicy::ProcessKilled, CrashPolicy::AllKept] {
        for own in [true, false] {
            let vfs = stored.crash_clone(1, policy);
            let place = format!("{} after {policy:?}, own options: {own}", folder.display());
            open(&vfs, &life.options(&vfs, own), &expected, &place);
        }
    }
}

fn open(vfs: &Arc<MemoryVfs>, options: &OpenOptions, expected: &str, place: &str) {
    let check_whole = |when: &str| {
        let log_dir = (!options.db.wal_dir.is_empty()).then(|| options.db.wal_dir.clone().into());
        let options = CheckOptions { vfs: vfs.clone(), log_dir, ..CheckOptions::default() };
        let report = check(Path::new(DIR), &options, &mut |_| {}).unwrap();
        assert!(report.is_whole(), "{place}, {when}: {:?}", report.problems);
    };
    let open = || Db::open(DIR, options).unwrap_or_else(|error| panic!("{place}: {error:?}"));
    check_whole("as it was stored");
    let db = open();
    let found = contents(&db);
    assert!(found == expected, "{place}: {}", first_difference(&found, expected));
    for family in db.families() {
        db.put(&family, b"~written by a later version", b"1", &WriteOptions::default()).unwrap();
    }
    let written = contents(&db);
    db.close().unwrap();
    check_whole("written to");
    let db = open();
    assert!(contents(&db) == written, "{place}: reopened");
    let families = db.families();
    db.flush(&families.iter().collect::<Vec<_>>()).unwrap();
    assert!(contents(&db) == written, "{place}: flushed");
    db.close().unwrap();
    check_whole("flushed");
}

/// Every pair of every family, one per line, read by iteration and by lookup.
pub fn contents(db: &Db) -> String {
    let mut text = String::new();
    for family in db.families() {
        writeln!(text, "family {}", family.name()).unwrap();
        let mut entries = db.iter(&family, &ReadOptions::default()).unwrap();
        let mut valid = entries.seek_to_first();
        while valid {
            let found = db.get(&family, entries.key(), &ReadOptions::default()).unwrap();
            assert_eq!(found.as_deref(), Some(entries.value()), "lookup and iteration differ");
            writeln!(text, "{} = {}", entries.key().escape_ascii(), entries.value().escape_ascii()).unwrap();
            valid = entries.next();
        }
        entries.status().unwrap();
    }
    text
}

fn first_difference(found: &str, expected: &str) -> String {
    let mut pairs = found.lines().zip(expected.lines());
    match pairs.find(|(found, expected)| found != expected) {
        Some((found, expected)) => format!("found {found:.200}, expected {expected:.200}"),
        None => format!("found {} lines, expected {}", found.lines().count(), expected.lines().count()),
    }
}
