//! Files changed during their ingest, and cancelled ingests, at each file-system call of the prepare.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use testkit::engine::{Db, ErrorKind, IngestOptions, IngestProgress, IngestRequest, PreparedIngest};
use testkit::gate::{Calls, Gate, GateVfs};
use testkit::threads::{start, wait_for, within};
use vfs::{IoClass, MemoryVfs, Vfs};

use super::ingest::{contents, open, seen, table, ways};

const LIMIT: Duration = Duration::from_secs(60);

/// What somebody does to a file meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// Another file comes under its name, as large and as old.
    Swapped,
    Grown,
}

impl Change {
    fn make(self, vfs: &MemoryVfs, path: &Path) {
        match self {
            Change::Swapped => vfs.rename(Path::new("/files/other.sst"), path).unwrap(),
            Change::Grown => vfs.open_append(path).unwrap().append(b"more", IoClass::Other).unwrap(),
        }
    }
}

/// What a prepare asks of the file system before it has looked at the file.
const CALLS_BEFORE: u64 = 1;

/// And before a file that is linked is in place, as large as it was. Then its contents are looked at.
const CALLS_UNTIL_LINKED: u64 = 7;

struct Subject {
    memory: Arc<MemoryVfs>,
    gate: Arc<Gate>,
    db: Arc<Db>,
    path: PathBuf,
    request: IngestRequest,
}

impl Subject {
    fn new() -> Subject {
        let memory = MemoryVfs::new(1);
        let (gated, gate) = GateVfs::new(memory.clone());
        let vfs: Arc<dyn Vfs> = gated;
        let (db, family) = open(vfs.clone());
        let [other, path] =
            [("other.sst", 60..100), ("in.sst", 0..40)].map(|(name, keys)| table(vfs.clone(), name, keys));
        assert_eq!(vfs.metadata(&other).unwrap().len, vfs.metadata(&path).unwrap().len);
        Subject { memory, gate, db: Arc::new(db), request: IngestRequest::new(family, vec![path.clone()]), path }
    }

    /// Prepares an ingest and acts at the call after the next `passing` ones; `None` if there is no such call.
    fn prepare(
        &self,
        options: &IngestOptions,
        passing: u64,
        meanwhile: impl FnOnce(&IngestProgress),
    ) -> Option<testkit::engine::Result<PreparedIngest>> {
        let progress = IngestProgress::default();
        let preparing = start({
            let (gate, db, request, options) =
                (self.gate.clone(), self.db.clone(), self.request.clone(), options.clone());
            let progress = progress.clone();
            move || {
                gate.hold_call(Calls::Of(std::thread::current().id()), passing);
                db.prepare_ingest(&[request], &options, &progress)
            }
        });
        wait_for("the call", || self.gate.is_holding() || preparing.is_finished());
        let held = self.gate.is_holding();
        if held {
            meanwhile(&progress);
        }
        self.gate.open();
        let prepared = preparing.join().unwrap();
        held.then_some(prepared)
    }
}

/// False if the prepare makes no such call.
fn change_at(options: &IngestOptions, passing: u64, change: Change) -> bool {
    let subject = Subject::new();
    let (db, path) = (&subject.db, &subject.path);
    let (family, said) = (db.default_family(), format!("{change:?} at call {passing}, {options:?}"));
    let before = (seen(&subject.memory).1, contents(db, &family));
    let prepared = subject.prepare(options, passing, |_| change.make(&subject.memory, path));
    let Some(prepared) = prepared else { return false };
    let ingested = prepared.and_then(|prepared| db.commit_ingest(prepared));
    let keys = |of: std::ops::Range<u32>| {
        let all = contents(db, &family);
        of.filter(|key| all.iter().any(|(k, v)| *k == format!("key{key:04}").as_bytes() && v == b"a new value")).count()
    };
    match ingested {
        Ok(_) if passing < CALLS_BEFORE => assert_eq!((keys(0..40), keys(60..100)), (0, 40), "{said}"),
        Ok(_) => assert_eq!((keys(0..40), keys(60..100)), (40, 0), "{said}: it was looked at before"),
        Err(error) => {
            let links = options.link_files || options.move_files;
            let may_look_damaged = passing < CALLS_BEFORE || (links && passing >= CALLS_UNTIL_LINKED);
            let is_change =
                error.kind() == ErrorKind::InvalidArgument && error.message().contains("changed or removed");
            assert!(is_change || (may_look_damaged && error.kind() == ErrorKind::Corruption), "{said}: {error:?}");
            assert_eq!(error.path(), Some(path.as_path()), "{said}: {error:?}");
            assert_eq!((seen(&subject.memory).1, contents(db, &family)), before, "{said}");
        }
    }
    true
}

/// Either the ingest refuses the file, or it ingests the contents it checked.
#[test]
fn a_file_that_changes_while_it_is_prepared_is_refused_or_taken_as_it_was() {
    for options in ways() {
        for change in [Change::Swapped, Change::Grown] {
            let mut calls = 0;
            loop {
                let options = options.clone();
                if !within(LIMIT, move || change_at(&options, calls, change)) {
                    break;
                }
                calls += 1;
            }
            assert!(calls > CALLS_BEFORE + 4, "a prepare makes more calls than {calls}");
        }
    }
}

/// False if the prepare makes no such call.
fn cancel_at(options: &IngestOptions, passing: u64) -> bool {
    let subject = Subject::new();
    let (db, said) = (&subject.db, format!("cancelled at call {passing}, {options:?}"));
    let state = || (seen(&subject.memory), contents(db, &db.default_family()));
    let before = state();
    let Some(prepared) = subject.prepare(options, passing, IngestProgress::cancel) else { return false };
    let error = prepared.and_then(|prepared| db.commit_ingest(prepared)).expect_err(&said);
    assert_eq!((error.kind(), error.message().contains("cancelled")), (ErrorKind::Closed, true), "{said}: {error:?}");
    assert!(state() == before, "{said}");
    true
}

#[test]
fn an_ingest_that_is_cancelled_at_any_call_of_its_prepare_leaves_nothing() {
    for options in ways() {
        let mut calls = 0;
        loop {
            let options = options.clone();
            if !within(LIMIT, move || cancel_at(&options, calls)) {
                break;
            }
            calls += 1;
        }
        assert!(calls > CALLS_BEFORE + 4, "a prepare makes more calls than {calls}");
    }
}
