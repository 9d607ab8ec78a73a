//! A MANIFEST or its copy of which the device cannot read a page: the filling in its place proves no end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::{Db, FamilyOptions, OpenOptions, OtherFamilies, WriteOptions, repair};
use testkit::run::DIR;
use vfs::{Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule, Vfs};

use crate::common::{copy, files};

/// They take some pages of the MANIFEST.
const FAMILIES: usize = 80;

const PAGE_BYTES: u64 = 4096;

fn options(vfs: Arc<dyn Vfs>) -> OpenOptions {
    let other_families = OtherFamilies::OpenWith(Box::default());
    OpenOptions { vfs, other_families, ..OpenOptions::create_if_missing() }
}

/// A closed database of many families, its MANIFEST and its MANIFEST's copy.
fn database() -> (Arc<MemoryVfs>, [PathBuf; 2]) {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(vfs.clone())).unwrap();
    for number in 0..FAMILIES {
        let family = db.create_family(&format!("family-{number:03}"), FamilyOptions::default()).unwrap();
        db.put(&family, b"k", b"v", &WriteOptions::default()).unwrap();
        db.flush(&[&family]).unwrap();
    }
    db.close().unwrap();
    let manifest = files(&vfs, "").into_iter().find(|path| path.to_string_lossy().contains("MANIFEST-")).unwrap();
    let [copied] = files(&vfs, ".spmanifest").try_into().unwrap();
    assert!(vfs.read_file(&manifest).unwrap().len() as u64 > 3 * PAGE_BYTES);
    (vfs, [manifest, copied])
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
    let (whole, pair) = database();
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
