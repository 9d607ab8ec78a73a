//! Both files of a MANIFEST and its copy are damaged, or one cannot be read: neither passes for the end of the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::check::{CheckOptions, check};
use testkit::engine::{Db, FamilyOptions, OpenOptions, OtherFamilies, ReadOptions, WriteOptions, repair};
use testkit::run::DIR;
use vfs::{Fault, FaultCode, FaultVfs, IoClass, MemoryVfs, Operation, Rule, Vfs};
use wal::framed::FramedReader;

use crate::common::{copy, files};

/// They take some pages of the MANIFEST.
const FAMILIES: usize = 80;

const PAGE_BYTES: u64 = 4096;

fn options(vfs: Arc<dyn Vfs>) -> OpenOptions {
    let other_families = OtherFamilies::OpenWith(Box::default());
    OpenOptions { vfs, other_families, ..OpenOptions::create_if_missing() }
}

/// A closed database of many families, its MANIFEST and its MANIFEST's copy.
fn of_many_families() -> (Arc<MemoryVfs>, [PathBuf; 2]) {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(vfs.clone())).unwrap();
    for number in 0..FAMILIES {
        let family = db.create_family(&format!("family-{number:03}"), FamilyOptions::default()).unwrap();
        db.put(&family, b"k", b"v", &WriteOptions::default()).unwrap();
        db.flush(&[&family]).unwrap();
    }
    db.close().unwrap();
    let pair = pair_of(&vfs);
    assert!(vfs.read_file(&pair[0]).unwrap().len() as u64 > 3 * PAGE_BYTES);
    (vfs, pair)
}

/// The MANIFEST and its copy.
fn pair_of(vfs: &MemoryVfs) -> [PathBuf; 2] {
    let manifest = files(vfs, "").into_iter().find(|path| path.to_string_lossy().contains("MANIFEST-")).unwrap();
    let [copied] = files(vfs, ".spmanifest").try_into().unwrap();
    [manifest, copied]
}

/// What happens to the file of the pair that can be read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Other {
    Whole,
    Lost,
    Cut(usize),
    Flipped,
}

impl Other {
    fn befall(self, vfs: &MemoryVfs, path: &Path) {
        match self {
            Other::Whole => {}
            Other::Lost => vfs.remove_file(path).unwrap(),
            Other::Cut(len) => vfs.truncate(path, len).unwrap(),
            Other::Flipped => vfs.flip_bit(path, 8 * (2 * PAGE_BYTES + 100)).unwrap(),
        }
    }
}

/// Families that are there, and whether something is in doubt.
fn outcome(db: &Db, is_in_doubt: bool) -> (usize, bool) {
    (db.families().len() - 1, is_in_doubt)
}

/// Each page of each file, with every fate of the other file: the families are there, or everything is in doubt and both files
/// are kept.
#[test]
fn filling_of_an_unreadable_page_is_no_end() {
    let (whole, pair) = of_many_families();
    let pages = whole.read_file(&pair[0]).unwrap().len() as u64 / PAGE_BYTES;
    let others = [Other::Whole, Other::Lost, Other::Cut(9000), Other::Cut(0), Other::Flipped];
    for (unreadable, other) in [(0, 1), (1, 0)] {
        for (page, fate) in (0..=pages).flat_map(|page| others.map(|fate| (page, fate))) {
            for by_best_efforts in [false, true] {
                let what = format!("page {page} of file {unreadable}, other {fate:?}, best efforts {by_best_efforts}");
                let vfs = copy(&whole);
                fate.befall(&vfs, &pair[other]);
                let faulty = FaultVfs::new(vfs.clone());
                let name = pair[unreadable].file_name().unwrap().to_string_lossy().into_owned();
                let rule = Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Read).path(name);
                faulty.inject(rule.byte(page * PAGE_BYTES).sticky());
                let mut options = options(faulty.clone());
                let (families, doubts) = if by_best_efforts {
                    (options.db.best_efforts_recovery, options.db.create_if_missing) = (true, false);
                    match Db::open(DIR, &options) {
                        Ok(db) => outcome(&db, !db.recovery_doubts().is_empty()),
                        Err(_) => continue, // it tells
                    }
                } else {
                    let report = repair(DIR, &options).unwrap();
                    outcome(&Db::open(DIR, &options).unwrap(), !report.lost_nothing())
                };
                assert!(families == FAMILIES || doubts, "{what}: {families} families");
                assert!(
                    fate != Other::Whole || (families, doubts) == (FAMILIES, false),
                    "{what}: {families}, {doubts}"
                );
                let kept = Path::new(DIR).join("lost").join(pair[unreadable].file_name().unwrap());
                assert!(!doubts || vfs.exists(&kept).unwrap(), "{what}: the MANIFEST is gone");
            }
        }
    }
}

/// What happens to a file of the pair.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Whole,
    Lost,
    Cut(usize),
    /// From this byte on.
    Zeroed(usize),
    Flipped(usize),
}

impl Fate {
    fn befall(self, vfs: &MemoryVfs, path: &Path) {
        let mut bytes = vfs.read_file(path).unwrap();
        match self {
            Fate::Whole => {}
            Fate::Lost => return vfs.remove_file(path).unwrap(),
            Fate::Cut(at) => bytes.truncate(at),
            Fate::Zeroed(at) => bytes.iter_mut().skip(at).for_each(|byte| *byte = 0),
            Fate::Flipped(at) => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 0xff),
        }
        vfs.write_file(path, &bytes).unwrap();
    }

    /// Where the records end, and the file; `None` if a power loss does not leave the file so.
    fn after_power_loss(self, ends: &[usize]) -> Option<(usize, usize)> {
        let last = ends.last().copied().unwrap_or_default();
        let end = |at: usize| ends.iter().copied().filter(|end| *end <= at).max().unwrap_or(0);
        match self {
            Fate::Whole => Some((last, last)),
            Fate::Cut(at) => Some((end(at), at)),
            Fate::Zeroed(at) => Some((end(at), last)),
            Fate::Lost | Fate::Flipped(_) => None,
        }
    }
}

/// A closed database whose last keys are in tables alone.
fn of_unlogged_keys() -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(vfs.clone())).unwrap();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    for key in 0..4 {
        db.put(&db.default_family(), format!("k{key}").as_bytes(), b"v", &unlogged).unwrap();
        db.flush(&[&db.default_family()]).unwrap();
    }
    db.close().unwrap();
    vfs
}

fn keys(db: &Db) -> usize {
    let is_there = |key: &usize| {
        let key = format!("k{key}");
        db.get(&db.default_family(), key.as_bytes(), &ReadOptions::default()).unwrap().is_some()
    };
    (0..4).filter(is_there).count()
}

/// Every fate of the one with every fate of the other: an open fails or has all keys, and a rescue has all keys or tells. Left
/// out is what a power loss can leave.
#[test]
fn no_damage_of_both_files_is_taken_for_the_end() {
    let whole = of_unlogged_keys();
    let pair = pair_of(&whole);
    let mut reader = FramedReader::open(&*whole, &pair[0], None, IoClass::Manifest).unwrap();
    let mut ends = Vec::new();
    while reader.next().unwrap().is_some() {
        ends.push(reader.good_end() as usize);
    }
    let places: Vec<usize> = ends.iter().rev().skip(1).take(3).flat_map(|end| [*end, end + 9, end + 40]).collect();
    let of_place = |at: &usize| [Fate::Cut(*at), Fate::Zeroed(*at), Fate::Flipped(at + 9)];
    let fates: Vec<Fate> = [Fate::Whole, Fate::Lost].into_iter().chain(places.iter().flat_map(of_place)).collect();
    let (mut opened, mut told) = (0, 0);
    for [manifest, copied] in fates.iter().flat_map(|one| fates.iter().map(move |other| [*one, *other])) {
        // The copy has every record before the next one begins.
        let is_of_power_loss = match (manifest.after_power_loss(&ends), copied.after_power_loss(&ends)) {
            (Some((end, bytes)), Some((of_copy, copied))) if bytes == end => {
                let before = ends.iter().copied().filter(|before| *before < end).max().unwrap_or(0);
                copied <= end && (of_copy == end || of_copy == before)
            }
            (Some((end, _)), Some((_, copied))) => copied == end,
            _ => false,
        };
        if is_of_power_loss && [manifest, copied] != [Fate::Whole; 2] {
            continue;
        }
        let what = format!("MANIFEST {manifest:?}, copy {copied:?}");
        let damaged = copy(&whole);
        manifest.befall(&damaged, &pair[0]);
        copied.befall(&damaged, &pair[1]);
        let vfs = copy(&damaged);
        if let Ok(db) = Db::open(DIR, &options(vfs)) {
            let doubts = db.recovery_doubts();
            assert!(keys(&db) == 4 || !doubts.is_empty(), "{what}: an open has {} keys, and no doubt", keys(&db));
            opened += 1;
        }
        let vfs = copy(&damaged);
        let report = repair(DIR, &options(vfs.clone())).unwrap();
        let found = keys(&Db::open(DIR, &options(vfs)).unwrap());
        assert!(found == 4 || !report.lost_nothing(), "{what}: a repair has {found} keys\n{report}");
        told += usize::from(!report.lost_nothing());
        let mut options = options(copy(&damaged));
        (options.db.best_efforts_recovery, options.db.create_if_missing) = (true, false);
        if let Ok(db) = Db::open(DIR, &options) {
            let doubts = db.recovery_doubts();
            assert!(keys(&db) == 4 || !doubts.is_empty(), "{what}: best efforts have {} keys, and no doubt", keys(&db));
        }
    }
    assert!(opened > 0 && told > 0, "{opened} opened, {told} told");
}

/// Best efforts go back for a lost table, in a MANIFEST that lost its end. The logs know how far it had come.
#[test]
fn best_efforts_believe_no_manifest_that_the_logs_refute() {
    let vfs = MemoryVfs::new(1);
    let mut options = options(vfs.clone());
    options.db.log_file_bytes = 64 << 10;
    let db = Db::open(DIR, &options).unwrap();
    let put = |key: &str, value: &[u8], disable_wal| {
        db.put(&db.default_family(), key.as_bytes(), value, &WriteOptions { disable_wal, ..WriteOptions::default() })
    };
    for key in ["a", "b", "c"] {
        put(key, b"v", true).unwrap();
        db.flush(&[&db.default_family()]).unwrap();
    }
    (0..60).for_each(|key| put(&format!("logged {key}"), &[7; 4000], false).unwrap()); // some logs, which note the MANIFEST
    let vfs = copy(&vfs);
    let pair = pair_of(&vfs);
    let mut reader = FramedReader::open(&*vfs, &pair[0], None, IoClass::Manifest).unwrap();
    let mut ends = Vec::new();
    while reader.next().unwrap().is_some() {
        ends.push(reader.good_end() as usize);
    }
    drop(reader);
    let cut = ends[ends.len() / 2];
    pair.iter().for_each(|path| vfs.truncate(path, cut).unwrap());
    let named = testkit::engine::version::recover::recover(&*vfs, Path::new(DIR)).unwrap();
    let last = named.tables().map(|meta| meta.number).max().unwrap();
    vfs.remove_file(&Path::new(DIR).join(format!("{:06}.sst", last.0))).unwrap();
    let mut options = OpenOptions { vfs: vfs.clone(), ..options };
    (options.db.best_efforts_recovery, options.db.create_if_missing) = (true, false);
    let db = Db::open(DIR, &options).unwrap();
    let doubts = db.recovery_doubts();
    assert!(doubts.iter().any(|doubt| doubt.family.is_none()), "{doubts:#?}");
}

/// The copy is a spare: where it alone cannot be read, an open has everything, and a check goes on and notes it.
#[test]
fn copy_that_cannot_be_read_stops_nothing() {
    let vfs = of_unlogged_keys();
    let [table, ..] = &files(&vfs, ".sst")[..] else { panic!("no table") };
    let left = Path::new(DIR).join("000999.sst"); // as a kill leaves one
    vfs.write_file(&left, &vfs.read_file(table).unwrap()).unwrap();
    let faulty = FaultVfs::new(vfs.clone());
    faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Read).path(".spmanifest").sticky());
    let how = CheckOptions { vfs: faulty.clone(), ..CheckOptions::default() };
    let report = check(Path::new(DIR), &how, &mut |_| ()).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("is damaged or lacks records")), "{report:#?}");
    assert_eq!(keys(&Db::open(DIR, &options(faulty)).unwrap()), 4);
}
