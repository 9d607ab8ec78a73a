//! Ingests of files damaged at every place, and prepares with an I/O fault at every call. The database is unchanged,
//! its directory has no leftovers, and the caller's files are untouched.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::{
    Db, ErrorKind, Family, FamilyOptions, IngestOptions, IngestProgress, IngestRequest, OpenOptions, ReadOptions,
    TableWriter, WriteOptions,
};
use vfs::{Fault, FaultCode, FaultVfs, IoClass, MemoryVfs, Operation, Rule, Vfs};

const DIR: &str = "/db";

fn file(name: &str) -> PathBuf {
    Path::new("/files").join(name)
}

/// A small database on a file system with fault injection.
pub fn open(vfs: Arc<dyn Vfs>) -> (Db, Arc<Family>) {
    let mut options = OpenOptions::create_if_missing();
    options.vfs = vfs;
    options.db.log_file_bytes = 256 << 10; // opened often, filled never
    let db = Db::open(DIR, &options).unwrap();
    let family = db.default_family();
    for key in ["a", "key0100", "z"] {
        db.put(&family, key.as_bytes(), b"old", &WriteOptions::default()).unwrap();
    }
    (db, family)
}

pub fn table(vfs: Arc<dyn Vfs>, name: &str, keys: std::ops::Range<u32>) -> PathBuf {
    let path = file(name);
    vfs.create_dir_all(Path::new("/files")).unwrap();
    let mut options = FamilyOptions::default();
    options.table.block_size = 256;
    let mut table = TableWriter::create(vfs, &path, &options).unwrap();
    for key in keys.clone() {
        table.put(format!("key{key:04}").as_bytes(), b"a new value").unwrap();
    }
    table.delete_range(format!("key{:04}", keys.end).as_bytes(), b"kez").unwrap();
    table.finish().unwrap();
    path
}

pub fn contents(db: &Db, family: &Arc<Family>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut iterator = db.iter(family, &ReadOptions::default()).unwrap();
    let mut all = Vec::new();
    let mut valid = iterator.seek_to_first();
    while valid {
        all.push((iterator.key().to_vec(), iterator.value().to_vec()));
        valid = iterator.next();
    }
    iterator.status().unwrap();
    all
}

/// Every file of the caller, and the names of the database's files.
pub fn seen(memory: &MemoryVfs) -> (Vec<(PathBuf, Vec<u8>)>, Vec<PathBuf>) {
    let (theirs, ours): (Vec<PathBuf>, Vec<PathBuf>) =
        memory.all_files().into_iter().partition(|path| path.starts_with("/files"));
    let read = |path: PathBuf| (path.clone(), memory.read_file(&path).unwrap());
    (theirs.into_iter().map(read).collect(), ours)
}

pub fn ways() -> [IngestOptions; 4] {
    let plain = IngestOptions::default();
    [
        plain.clone(),
        IngestOptions { move_files: true, verify_checksums_before_ingest: true, ..plain.clone() },
        IngestOptions { link_files: true, ..plain.clone() },
        IngestOptions { write_global_seqno: true, verify_checksums_before_ingest: true, ..plain },
    ]
}

/// A bit flip anywhere: the ingest fails with an error naming the caller's file, or its contents are right. Without a
/// scan a damaged block can pass; reading it then returns an error.
#[test]
fn every_flipped_bit_of_a_table_is_an_error_or_harmless() {
    let memory = MemoryVfs::new(1);
    let vfs = FaultVfs::new(memory.clone());
    let (db, family) = open(vfs.clone());
    let path = table(vfs.clone(), "in.sst", 0..60);
    let bits = 8 * vfs.metadata(&path).unwrap().len;
    let scanning = IngestOptions { verify_checksums_before_ingest: true, ..IngestOptions::default() };
    let before = seen(&memory).1;
    let request = [IngestRequest::new(family.clone(), vec![path.clone()])];
    let (mut refused, mut harmless) = (0, 0);
    for bit in (0..bits).step_by(5) {
        memory.flip_bit(&path, bit).unwrap();
        match db.prepare_ingest(&request, &scanning, &IngestProgress::default()) {
            Ok(prepared) => {
                drop(prepared);
                harmless += 1;
            }
            Err(error) => {
                let kinds = [ErrorKind::Corruption, ErrorKind::Unsupported, ErrorKind::InvalidArgument];
                assert!(kinds.contains(&error.kind()) && error.path() == Some(&path), "bit {bit}: {error:?}");
                refused += 1;
            }
        }
        memory.flip_bit(&path, bit).unwrap();
        assert_eq!(seen(&memory).1, before, "bit {bit}");
    }
    // The padding of a footer, and the like, mean nothing.
    assert!(harmless * 50 < refused, "{harmless} of {refused} pass");
    drop(db.prepare_ingest(&request, &scanning, &IngestProgress::default()).unwrap());
    assert_eq!(contents(&db, &family).len(), 3);
}

#[test]
fn every_length_of_a_table_but_its_own_is_an_error() {
    let memory = MemoryVfs::new(1);
    let vfs = FaultVfs::new(memory.clone());
    let (db, family) = open(vfs.clone());
    let path = table(vfs.clone(), "in.sst", 0..20);
    let whole = memory.read_file(&path).unwrap();
    let request = [IngestRequest::new(family, vec![path.clone()])];
    let before = seen(&memory).1;
    for len in (0..whole.len()).chain([whole.len() + 1, whole.len() + 53, 2 * whole.len()]) {
        memory.write_file(&path, &whole).unwrap();
        memory.truncate(&path, len).unwrap();
        for options in ways() {
            let error = db.prepare_ingest(&request, &options, &IngestProgress::default()).unwrap_err();
            let kinds = [ErrorKind::Corruption, ErrorKind::Unsupported];
            assert!(kinds.contains(&error.kind()) && error.path() == Some(&path), "{len} bytes: {error:?}");
        }
    }
    assert_eq!(seen(&memory).1, before);
}

/// Faults applicable to an operation.
fn faults_of(operation: Operation) -> Vec<Fault> {
    let mut faults: Vec<Fault> =
        [FaultCode::Io, FaultCode::NoSpace, FaultCode::TooManyFiles].into_iter().map(Fault::Error).collect();
    faults.push(Fault::ErrorAfter(FaultCode::Io));
    match operation {
        Operation::Read => faults.push(Fault::ShortRead),
        Operation::Write => faults.push(Fault::ShortWrite(FaultCode::NoSpace)),
        _ => {}
    }
    faults
}

/// Each call of a prepare fails in turn, in every way, once or with all later calls of its kind.
#[test]
fn a_prepare_that_fails_anywhere_leaves_nothing() {
    let (mut runs, mut errors) = (0u32, 0u32);
    for options in ways() {
        let memory = MemoryVfs::new(1);
        let vfs = FaultVfs::new(memory.clone());
        let (db, family) = open(vfs.clone());
        let files = vec![table(vfs.clone(), "1.sst", 0..40), table(vfs.clone(), "2.sst", 30..60)];
        let request = [IngestRequest::new(family.clone(), files)];
        let before = (seen(&memory), contents(&db, &family));
        let mut names = before.0.1.clone();
        for operation in Operation::ALL {
            let counting = vfs.inject(Rule::new(Fault::Latency(std::time::Duration::ZERO)).on(operation).sticky());
            drop(db.prepare_ingest(&request, &options, &IngestProgress::default()).unwrap());
            let calls = vfs.matched(counting);
            vfs.clear();
            for (nth, fault, sticky) in (1..=calls)
                .flat_map(|nth| faults_of(operation).into_iter().map(move |fault| (nth, fault)))
                .flat_map(|(nth, fault)| [(nth, fault, false), (nth, fault, true)])
            {
                let rule = Rule::new(fault).on(operation).nth(nth);
                vfs.inject(if sticky { rule.sticky() } else { rule });
                let prepared = db.prepare_ingest(&request, &options, &IngestProgress::default());
                runs += 1;
                errors += u32::from(prepared.is_err());
                // What cannot be looked at or removed when it is dropped stays until the next open.
                let ends = operation == Operation::Metadata && (sticky || prepared.is_ok());
                drop(prepared);
                vfs.clear();
                let after = seen(&memory);
                if ends || operation == Operation::RemoveFile {
                    names = after.1;
                } else {
                    assert_eq!(after.1, names, "{operation:?} {nth}, {fault:?}, sticky {sticky}, {options:?}");
                }
                assert!(after.0 == before.0.0, "the caller's files are as they were");
            }
        }
        assert_eq!(contents(&db, &family), before.1);
        drop(db);
        let (db, family) = open(vfs.clone());
        assert_eq!(contents(&db, &family), before.1, "opened again");
        let table_files = seen(&memory).1.into_iter().filter(|path| path.extension().is_some_and(|end| end == "sst"));
        assert_eq!(table_files.count(), 0, "what could not be removed is gone");
        assert_eq!(db.ingest(&family, &request[0].files, &options).unwrap().tables, 2);
    }
    assert!(errors * 10 > runs * 6, "{errors} errors in {runs} runs");
}

/// The disk fills up at any byte of a copy.
#[test]
fn a_prepare_on_a_full_disk_leaves_nothing() {
    let memory = MemoryVfs::new(1);
    let vfs = FaultVfs::new(memory.clone());
    let (db, family) = open(vfs.clone());
    let files = vec![table(vfs.clone(), "1.sst", 0..200), table(vfs.clone(), "2.sst", 200..400)];
    let sizes: u64 = files.iter().map(|path| vfs.metadata(path).unwrap().len).sum();
    let request = [IngestRequest::new(family.clone(), files)];
    let before = seen(&memory);
    memory.set_capacity(Some(0));
    let (mut full, mut fits) = (0, 0);
    let used = before.0.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>()
        + before.1.iter().map(|path| memory.read_file(path).unwrap().len() as u64).sum::<u64>();
    for room in (0..=sizes + 1000).step_by(500) {
        memory.set_capacity(Some(used + room));
        match db.prepare_ingest(&request, &IngestOptions::default(), &IngestProgress::default()) {
            Ok(prepared) => {
                assert_eq!(prepared.bytes(), sizes);
                fits += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error:?}");
                assert!(error.message().contains("/files/"), "it names the file: {error}");
                full += 1;
            }
        }
        assert_eq!(seen(&memory), before);
    }
    assert!(full > 10 && fits > 0, "{full}, {fits}");
    let linked = IngestOptions { link_files: true, ..IngestOptions::default() };
    memory.set_capacity(Some(used));
    drop(db.prepare_ingest(&request, &linked, &IngestProgress::default()).unwrap());
}

/// A commit refuses a file changed in any way since the prepare.
#[test]
fn a_file_that_changes_between_the_halves_is_not_ingested() {
    let memory = MemoryVfs::new(1);
    let vfs = FaultVfs::new(memory.clone());
    let (db, family) = open(vfs.clone());
    let linked = IngestOptions { link_files: true, ..IngestOptions::default() };
    let before = contents(&db, &family);
    let changes: [&dyn Fn(&Path); 2] =
        [&|path| vfs.open_append(path).unwrap().append(b"x", IoClass::Other).unwrap(), &|path| {
            drop(vfs.create(path, vfs::IfExists::Truncate).unwrap())
        }];
    for change in changes {
        let path = table(vfs.clone(), "in.sst", 0..20);
        let request = [IngestRequest::new(family.clone(), vec![path.clone()])];
        let names = seen(&memory).1;
        let prepared = db.prepare_ingest(&request, &linked, &IngestProgress::default()).unwrap();
        change(&path);
        let error = db.commit_ingest(prepared).unwrap_err();
        assert_eq!(error.path(), Some(path.as_path()), "{error:?}");
        assert_eq!((seen(&memory).1, contents(&db, &family)), (names, before.clone()));
        vfs.remove_file(&path).unwrap();
    }
}
