//! A MANIFEST that is cut between two records, without its second copy, looks whole. Other files may tell.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::UserOrder;
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::compaction::{BottommostLevelCompaction, CompactRangeOptions};
use testkit::engine::{
    Db, Doubt, Family, FamilyOptions, IngestOptions, OpenOptions, OtherFamilies, TableWriter, WriteOptions, repair,
};
use testkit::run::DIR;
use vfs::{Fault, FaultCode, FaultVfs, IoClass, MemoryVfs, Rule, Vfs};
use wal::framed::FramedReader;

use crate::common::{Contents, copy, files, manifest, read_with};

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    let by_hand = FamilyOptions { disable_auto_compactions: true, ..FamilyOptions::default() };
    OpenOptions {
        vfs: vfs.clone(),
        other_families: OtherFamilies::OpenWith(Box::new(by_hand.clone())),
        ..OpenOptions::create_if_missing().family("default", by_hand)
    }
}

fn put(db: &Db, key: &str) {
    db.put(&db.default_family(), key.as_bytes(), b"v", &WriteOptions::default()).unwrap();
}

fn flush(db: &Db) {
    db.flush(&[&db.default_family()]).unwrap();
}

fn compact(db: &Db) {
    let how = BottommostLevelCompaction::Force;
    let how = CompactRangeOptions { bottommost_level_compaction: how, ..CompactRangeOptions::default() };
    db.compact_range(&db.default_family(), None, None, &how).unwrap();
}

fn ingest(db: &Db, vfs: &Arc<MemoryVfs>, keys: &[&str]) {
    ingest_into(db, &db.default_family(), vfs, keys);
}

fn ingest_into(db: &Db, family: &Arc<Family>, vfs: &Arc<MemoryVfs>, keys: &[&str]) {
    let path = PathBuf::from(format!("/{}.sst", keys.concat()));
    let mut table = TableWriter::create(vfs.clone(), &path, &FamilyOptions::default()).unwrap();
    keys.iter().for_each(|key| table.put(key.as_bytes(), b"ingested").unwrap());
    table.finish().unwrap();
    db.ingest(family, &[path], &IngestOptions::default()).unwrap();
}

/// Keys with their families.
type Keys = BTreeSet<(String, Vec<u8>)>;

type Life = fn(&Db, &Arc<MemoryVfs>);

/// What the records of a MANIFEST may tell of, by what the unnamed tables show of it.
const LIVES: &[(&str, Life)] = &[
    ("flush of unlogged writes", |db, _| flush_unlogged(db, &["a"])),
    ("flush", |db, _| {
        put(db, "a");
        flush(db);
    }),
    ("compaction to the bottom, which makes numbers zero", |db, _| {
        ["a", "b"].iter().for_each(|key| {
            put(db, key);
            flush(db);
        });
        compact(db);
    }),
    ("ingest", |db, vfs| ingest(db, vfs, &["a", "c"])),
    ("ingest under a memtable, linked before the memtable is flushed", |db, vfs| {
        put(db, "z");
        ingest(db, vfs, &["a", "c"]);
        compact(db);
        put(db, "y");
        flush(db);
    }),
    ("ingest over a memtable", |db, vfs| {
        put(db, "a");
        put(db, "b");
        ingest(db, vfs, &["a", "c"]);
        flush(db);
    }),
    ("ingest and what a compaction made of it", |db, vfs| {
        ingest(db, vfs, &["a", "c"]);
        put(db, "b");
        flush(db);
        compact(db);
    }),
    ("flush of a deleted range", |db, _| {
        db.delete_range(&db.default_family(), b"k", b"l", &WriteOptions::default()).unwrap();
        flush(db);
    }),
    ("drop of a family", |db, _| {
        let family = db.family("other").unwrap();
        db.drop_family(&family).unwrap();
    }),
    ("import of a family from this database", |db, _| {
        let family = db.create_family("source", FamilyOptions::default()).unwrap();
        db.put(&family, b"a", b"v", &WriteOptions::default()).unwrap();
        let files = db.export_family(&family, "/export").unwrap();
        db.drop_family(&family).unwrap();
        db.import_family("imported", FamilyOptions::default(), &[&files], false).unwrap();
    }),
    ("import of a family from another database", |db, vfs| {
        let other = Db::open("/another", &options(vfs)).unwrap();
        put(&other, "a");
        let files = other.export_family(&other.default_family(), "/export").unwrap();
        db.import_family("imported", FamilyOptions::default(), &[&files], false).unwrap();
    }),
    ("new family", |db, _| {
        let family = db.create_family("new", FamilyOptions::default()).unwrap();
        db.put(&family, b"a", b"v", &WriteOptions::default()).unwrap();
        db.flush(&[&family]).unwrap();
    }),
];

/// Closed after a `life`, so that no log is left, over an earlier one that each open begins the MANIFEST with. Its tables are there
/// still, as if their deletion had been cut off.
fn lived(life: Life) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    let other = db.create_family("other", FamilyOptions::default()).unwrap();
    db.put(&other, b"o", b"v", &WriteOptions::default()).unwrap();
    put(&db, "k");
    db.flush(&[&db.default_family(), &other]).unwrap();
    drop(other);
    db.close().unwrap();
    let before = copy(&vfs);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    life(&db, &vfs);
    db.close().unwrap();
    assert!(files(&vfs, ".splog").is_empty());
    for table in files(&before, ".sst") {
        vfs.write_file(&table, &before.read_file(&table).unwrap()).unwrap();
    }
    copy(&vfs)
}

fn record_ends(vfs: &MemoryVfs) -> Vec<usize> {
    let mut reader = FramedReader::open(vfs, &manifest(vfs), None, IoClass::Manifest).unwrap();
    let mut ends = Vec::new();
    while reader.next().unwrap().is_some() {
        ends.push(reader.good_end() as usize);
    }
    ends
}

/// The keys that differ, with their families.
fn wrong(found: &Contents, expected: &Contents) -> Keys {
    let pairs = |contents: &Contents| -> BTreeSet<(String, Vec<u8>, Vec<u8>)> {
        let of = |(family, pairs): (&String, &std::collections::BTreeMap<Vec<u8>, Vec<u8>>)| {
            pairs.iter().map(|(key, value)| (family.clone(), key.clone(), value.clone())).collect::<Vec<_>>()
        };
        contents.iter().flat_map(of).collect()
    };
    let (found, expected) = (pairs(found), pairs(expected));
    found.symmetric_difference(&expected).map(|(family, key, _)| (family.clone(), key.clone())).collect()
}

fn is_told(wrong: &Keys, doubts: &[Doubt]) -> bool {
    wrong.iter().all(|(family, key)| doubts.iter().any(|doubt| doubt.covers(family, key, &UserOrder::Bytewise)))
}

/// Opens and reads. Returns what differs, and the doubts; `None` if the open is refused.
fn opened(options: &OpenOptions, expected: &Contents) -> Option<(Keys, Vec<Doubt>)> {
    let doubts = Db::open(DIR, options).ok()?.recovery_doubts();
    let found = read_with(options, DIR).unwrap();
    Some((wrong(&found, expected), doubts))
}

#[test]
fn what_is_lost_with_the_end_is_told() {
    for (name, life) in LIVES {
        let mut told = 0;
        let whole = lived(*life);
        let expected = read_with(&options(&copy(&whole)), DIR).unwrap();
        for cut in record_ends(&whole) {
            let vfs = copy(&whole);
            vfs.truncate(&manifest(&vfs), cut).unwrap();
            files(&vfs, ".spmanifest").iter().for_each(|path| vfs.remove_file(path).unwrap());
            let checked = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
            let checked = check(Path::new(DIR), &checked, &mut |_| ()).unwrap();
            let (by_open, by_best) = (copy(&vfs), copy(&vfs));
            if let Some((wrong, doubts)) = opened(&options(&by_open), &expected) {
                assert!(is_told(&wrong, &doubts), "{name}, {cut}, open: {wrong:?}, {doubts:#?}");
                assert!(wrong.is_empty() || !checked.is_whole(), "{name}, {cut}, check: {wrong:?}");
                told += usize::from(!wrong.is_empty());
            }
            let mut best = options(&by_best);
            best.db.best_efforts_recovery = true;
            if let Some((wrong, doubts)) = opened(&best, &expected) {
                assert!(is_told(&wrong, &doubts), "{name}, {cut}, best efforts: {wrong:?}, {doubts:#?}");
            }
            let report = repair(DIR, &options(&vfs)).unwrap();
            let wrong = wrong(&read_with(&options(&vfs), DIR).unwrap(), &expected);
            let is_told = |(family, key): &(String, Vec<u8>)| report.is_in_doubt(family, key, &UserOrder::Bytewise);
            assert!(wrong.iter().all(is_told), "{name}, {cut}, repair: {wrong:?}\n{report}");
        }
        assert!(told > 0, "{name}");
    }
}

/// The MANIFEST without its copy, cut before the record that adds the newest table. Also returns the table.
fn cut_before_the_newest(whole: &MemoryVfs) -> (Arc<MemoryVfs>, PathBuf) {
    let newest = files(whole, ".sst").pop().unwrap();
    let cuts = record_ends(whole).into_iter().rev();
    let vfs = cuts.map(|cut| {
        let vfs = copy(whole);
        vfs.truncate(&manifest(&vfs), cut).unwrap();
        files(&vfs, ".spmanifest").iter().for_each(|path| vfs.remove_file(path).unwrap());
        vfs
    });
    let is_unnamed = |vfs: &Arc<MemoryVfs>| {
        let found = testkit::engine::version::recover::recover(&**vfs, Path::new(DIR)).unwrap();
        found.tables().all(|meta| Path::new(DIR).join(format!("{:06}.sst", meta.number.0)) != newest)
    };
    (vfs.into_iter().find(is_unnamed).unwrap(), newest)
}

fn flush_unlogged(db: &Db, keys: &[&str]) {
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    for key in keys {
        db.put(&db.default_family(), key.as_bytes(), b"v", &unlogged).unwrap();
        flush(db);
    }
}

/// A table that shows the loss is damaged as well: in a block, which its numbers lie in.
#[test]
fn damaged_table_is_no_explained_one() {
    let (vfs, newest) = cut_before_the_newest(&lived(|db, _| flush_unlogged(db, &["a"])));
    vfs.flip_bit(&newest, 8 * 4).unwrap();
    let checked = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    assert!(!check(Path::new(DIR), &checked, &mut |_| ()).unwrap().is_whole());
    assert!(!repair(DIR, &options(&copy(&vfs))).unwrap().lost_nothing());
    assert!(!Db::open(DIR, &options(&vfs)).unwrap().recovery_doubts().is_empty());
}

/// An open that doubts is cut off at every call of the file system. The next one doubts as well, or finds the report.
#[test]
fn doubts_outlive_an_open_that_is_cut_off() {
    let (whole, _) = cut_before_the_newest(&lived(|db, _| flush_unlogged(db, &["a", "b", "c"])));
    let lost = Path::new(DIR).join("lost");
    for best_efforts_recovery in [false, true] {
        for nth in 1.. {
            let vfs = copy(&whole);
            if best_efforts_recovery {
                let tables = files(&vfs, ".sst");
                vfs.remove_file(&tables[tables.len() - 2]).unwrap();
            }
            let tables = files(&vfs, ".sst");
            let faulty = FaultVfs::new(vfs.clone());
            faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
            let mut how = OpenOptions { vfs: faulty, ..options(&vfs) };
            how.db.best_efforts_recovery = best_efforts_recovery;
            let has_opened = Db::open(DIR, &how).is_ok();
            for table in &tables {
                let is_there =
                    [table.clone(), lost.join(table.file_name().unwrap())].iter().any(|path| vfs.exists(path).unwrap());
                assert!(is_there, "call {nth}: {}", table.display());
            }
            how.vfs = vfs.clone();
            let doubts = Db::open(DIR, &how).unwrap().recovery_doubts();
            let is_told = !doubts.is_empty() || vfs.exists(&lost.join("REPORT")).unwrap();
            assert!(is_told, "call {nth}, best efforts: {best_efforts_recovery}");
            if has_opened {
                break;
            }
        }
    }
}

/// What a kill leaves beside a MANIFEST that lost its copy alone is no doubt, where logs or file numbers explain it.
#[test]
fn what_a_kill_leaves_is_explained() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    ["a", "b"].iter().for_each(|key| {
        put(&db, key);
        flush(&db);
    });
    compact(&db);
    ingest(&db, &vfs, &["c", "d"]); // stays in the log
    let dropped = db.create_family("dropped", FamilyOptions::default()).unwrap();
    db.put(&dropped, b"a", b"v", &WriteOptions::default()).unwrap();
    ingest_into(&db, &dropped, &vfs, &["a", "b"]); // over a memtable: it waits, and no record names its table
    let before = copy(&vfs);
    db.drop_family(&dropped).unwrap();
    drop(dropped);
    put(&db, "e");
    flush(&db);
    put(&db, "f");
    compact(&db);
    let killed = copy(&vfs);
    drop(db);
    for table in files(&before, ".sst").into_iter().filter(|path| !killed.exists(path).unwrap()) {
        killed.write_file(&table, &before.read_file(&table).unwrap()).unwrap(); // its deletion was cut off
    }
    files(&killed, ".spmanifest").iter().for_each(|path| killed.remove_file(path).unwrap());
    let checked = CheckOptions { vfs: killed.clone(), ..CheckOptions::default() };
    let report = check(Path::new(DIR), &checked, &mut |_| ()).unwrap();
    assert!(report.is_whole() && !report.superfluous.is_empty(), "{report:#?}");
    assert!(repair(DIR, &options(&copy(&killed))).unwrap().lost_nothing());
    assert!(Db::open(DIR, &options(&killed)).unwrap().recovery_doubts().is_empty());
}
