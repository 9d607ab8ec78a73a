//! Repair after damage of every kind, to every file: the database opens and has everything not reported lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use testkit::engine::check::{CheckOptions, CheckReport};
use testkit::engine::version::recover::recover;
use testkit::engine::{Db, ErrorKind, FamilyOptions, OpenOptions, OtherFamilies, RepairReport, repair};
use testkit::model::Model;
use testkit::ops::Op;
use testkit::random::Random;
use testkit::run::{DIR, Runner};
use testkit::threads::within;
use testkit::{generate, parse, profile};
use vfs::{CrashPolicy, MemoryVfs, Vfs};

use crate::common::{Contents, INGESTS, PLAIN, Subject, copy, read_with};
use crate::moved_logs::rocksdbs;

const LIMIT: Duration = Duration::from_secs(300);

/// Files of the database without the lock file.
fn files(vfs: &MemoryVfs) -> Vec<PathBuf> {
    let all = vfs.all_files().into_iter();
    all.filter(|path| path.parent() == Some(Path::new(DIR)) && !path.ends_with("LOCK")).collect()
}

fn is_lost(report: &RepairReport, family: &str, key: &[u8]) -> bool {
    report.lost.iter().any(|lost| {
        let of_family = lost.family.as_ref().is_none_or(|name| name == family);
        of_family && lost.keys.as_ref().is_none_or(|(from, through)| (&from[..]..=&through[..]).contains(&key))
    })
}

/// Checks that only reported losses are missing, and that only permitted entries are extra.
pub fn assert_same(place: &str, report: &RepairReport, found: &Contents, expected: &Contents) {
    for (a, b) in [(found, expected), (expected, found)] {
        for (family, pairs) in a {
            for (key, value) in pairs.iter().filter(|(key, _)| !is_lost(report, family, key)) {
                let other = b.get(family).and_then(|pairs| pairs.get(key));
                let key = key.escape_ascii();
                assert_eq!(other, Some(value), "{place}: {family} {key}\n{report:#?}");
            }
        }
    }
}

/// Repairs a damaged database and checks the result.
fn check(subject: Subject, place: &str, vfs: &Arc<MemoryVfs>, expected: &Contents) -> RepairReport {
    let report = repair(DIR, &subject.options(vfs)).unwrap_or_else(|error| panic!("{place}: {error:?}"));
    let found = subject.read(vfs).unwrap_or_else(|error| panic!("{place}: {error:?}\n{report:#?}"));
    // Which of an ingest's excises came before what, the MANIFEST alone knows; what a damaged log lacks, nobody.
    let is_of_log = place.contains(".splog"); // the end of the last one can be gone unnoticed
    // That merges may be there twice is said to be possible; here they are not.
    let is_certain = report.doubts.iter().all(|doubt| doubt.why.contains("applied twice"));
    if report.logs.is_empty() && is_certain && !is_of_log {
        assert_same(place, &report, &found, expected);
    }
    let again = repair(DIR, &subject.options(vfs)).unwrap();
    assert!(again.lost.is_empty() && again.manifest.is_none() && again.logs.is_empty(), "{place}: {again:#?}");
    assert_eq!(subject.read(vfs).unwrap(), found, "{place}: a second repair changes something");
    report
}

pub fn check_files(vfs: &Arc<MemoryVfs>) -> CheckReport {
    let options = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    testkit::engine::check::check(Path::new(DIR), &options, &mut |_| {}).unwrap()
}

fn damage_every_file(subject: Subject) {
    let whole = subject.database();
    let expected = subject.read(&copy(&whole)).unwrap();
    let mut random = Random::new(7);
    for path in files(&whole) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let vfs = copy(&whole);
        vfs.remove_file(&path).unwrap();
        let report = check(subject, &format!("{name} removed"), &vfs, &expected);
        if name.ends_with(".sst") {
            assert!(report.lost.iter().any(|lost| lost.name == name && lost.path.is_none()), "{name}: {report:#?}");
            let kept = vfs.read_dir(&Path::new(DIR).join("lost")).unwrap();
            assert!(kept.iter().any(|name| name.starts_with("MANIFEST-")), "it tells the table's place: {kept:?}");
        }
        let len = whole.read_file(&path).unwrap().len();
        for cut in [0, 1, len / 3, len / 2, len - len.min(1)] {
            let vfs = copy(&whole);
            vfs.truncate(&path, cut).unwrap();
            check(subject, &format!("{name} cut to {cut} of {len}"), &vfs, &expected);
        }
        for _ in 0..12 {
            let bit = random.below(8 * len.min(4096) as u64);
            let vfs = copy(&whole);
            vfs.flip_bit(&path, bit).unwrap();
            check(subject, &format!("{name}, bit {bit}"), &vfs, &expected);
        }
    }
}

#[test]
fn after_a_repair_the_database_opens_and_has_what_is_not_lost() {
    within(LIMIT, || damage_every_file(PLAIN));
}

#[test]
fn after_a_repair_ingests_are_there_or_not() {
    within(LIMIT, || damage_every_file(INGESTS));
}

#[test]
fn a_whole_database_is_left_as_it_is() {
    for subject in [PLAIN, INGESTS] {
        let vfs = copy(&subject.database());
        let expected = subject.read(&copy(&vfs)).unwrap();
        let report = repair(DIR, &subject.options(&vfs)).unwrap();
        assert!(report.lost_nothing() && report.manifest.is_none() && report.superfluous.is_empty(), "{report:#?}");
        assert_eq!(subject.read(&vfs).unwrap(), expected);
    }
}

/// The MANIFEST, its copy, and what names them.
pub fn is_of_manifest(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name.starts_with("MANIFEST") || name.ends_with(".spmanifest") || name == "CURRENT"
}

/// The copy of the MANIFEST knows all that the MANIFEST knew.
#[test]
fn nothing_is_in_doubt_while_one_of_the_two_manifests_is_whole() {
    for subject in [PLAIN, INGESTS] {
        let whole = subject.database();
        let expected = subject.read(&copy(&whole)).unwrap();
        for is_lost in [|name: &str| name.starts_with("MANIFEST"), |name: &str| name.ends_with(".spmanifest")] {
            let vfs = copy(&whole);
            let is_gone = |path: &PathBuf| {
                let name = path.file_name().unwrap().to_string_lossy();
                is_lost(&name) || name == "CURRENT"
            };
            files(&vfs).iter().filter(|path| is_gone(path)).for_each(|path| vfs.remove_file(path).unwrap());
            let report = repair(DIR, &subject.options(&vfs)).unwrap();
            assert!(report.lost_nothing(), "{report:#?}");
            assert_eq!(subject.read(&vfs).unwrap(), expected);
        }
    }
}

/// Wherever the MANIFEST is cut, the copy proves it: an open and a check tell, and a repair brings all back.
#[test]
fn cut_manifest_is_told_and_repaired_from_its_copy() {
    let whole = INGESTS.database();
    let expected = INGESTS.read(&copy(&whole)).unwrap();
    let manifest = files(&whole).into_iter().find(|path| path.to_string_lossy().contains("MANIFEST")).unwrap();
    let bytes = whole.read_file(&manifest).unwrap().len();
    for cut in (0..bytes).step_by(3) {
        let vfs = copy(&whole);
        vfs.truncate(&manifest, cut).unwrap();
        let error = INGESTS.read(&vfs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{cut}: {error}");
        let checked = check_files(&vfs);
        assert!(!checked.is_whole(), "{cut}: {checked:#?}");
        let report = repair(DIR, &INGESTS.options(&vfs)).unwrap();
        assert!(report.lost_nothing() && report.manifest.is_some(), "{cut}: {report:#?}");
        assert_eq!(INGESTS.read(&vfs).unwrap(), expected, "{cut}");
    }
}

/// Without MANIFEST and copy the repair derives families, levels and flush progress from tables, OPTIONS and WALs, and
/// doubts all of it.
#[test]
fn everything_is_there_without_a_manifest() {
    let whole = PLAIN.database();
    let expected = PLAIN.read(&copy(&whole)).unwrap();
    let vfs = copy(&whole);
    let is_gone = |path: &PathBuf| is_of_manifest(path) || path.ends_with("IDENTITY");
    files(&vfs).iter().filter(|path| is_gone(path)).for_each(|path| vfs.remove_file(path).unwrap());
    let report = check(PLAIN, "no MANIFEST", &vfs, &expected);
    assert_eq!(PLAIN.read(&vfs).unwrap(), expected);
    assert!(report.lost.is_empty() && report.is_in_doubt("users", b"a", &base::UserOrder::Bytewise), "{report:#?}");
    let families: Vec<_> = report.families.iter().map(|family| family.name.as_str()).collect();
    assert_eq!(families, ["default", "users"]);
}

#[test]
fn a_repair_that_was_interrupted_is_begun_again() {
    let whole = PLAIN.database();
    let expected = PLAIN.read(&copy(&whole)).unwrap();
    let is_manifest = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("MANIFEST");
    let manifest = files(&whole).into_iter().find(is_manifest).unwrap();
    let damaged = copy(&whole);
    damaged.remove_file(&manifest).unwrap();
    let damaged = damaged.crash_clone(1, CrashPolicy::AllKept);
    let operations = {
        let vfs = copy(&damaged);
        let before = vfs.operations();
        repair(DIR, &PLAIN.options(&vfs)).unwrap();
        vfs.operations() - before
    };
    for at in (1..operations).step_by(7) {
        let vfs = copy(&damaged);
        vfs.crash_at(vfs.operations() + at, at, CrashPolicy::ALL[at as usize % CrashPolicy::ALL.len()]);
        let _ = repair(DIR, &PLAIN.options(&vfs));
        let Some(image) = vfs.take_crash_image() else { continue };
        check(PLAIN, &format!("crashed at {at} of {operations}"), &image, &expected);
    }
}

/// Lives with many tables in several levels. Without a MANIFEST the contents of each table determine its place, and
/// nothing is replayed twice. Left out: ingests and drops, partly recorded only in the MANIFEST, and unlogged writes,
/// untraceable after a compaction.
#[test]
fn random_lives_are_there_without_a_manifest() {
    const SEEDS: u64 = 6;
    const OPERATIONS: usize = 500;
    let (mut deepest, mut compared) = (0, 0);
    for name in ["tiny", "static-levels", "converted", "referring", "vector"] {
        let profile = profile::by_name(name).unwrap();
        for seed in 0..SEEDS {
            let vfs = MemoryVfs::new(seed);
            let mut runner = Runner::open(vfs.clone(), profile, Model::default()).unwrap();
            let script = generate::script(seed, &profile, OPERATIONS);
            let is_left_out =
                |op: &Op| ["ingest", "drop", "excise"].iter().any(|left| op.to_string().starts_with(left));
            for op in script.ops.iter().filter(|op| !is_left_out(op)) {
                runner.step(op).unwrap_or_else(|failure| panic!("{op}: {failure}"));
            }
            drop(runner.abandon());
            let families = Db::list_families(DIR, &(vfs.clone() as Arc<dyn Vfs>)).unwrap();
            let options = |vfs: &Arc<MemoryVfs>| profile.open_options(vfs.clone(), &families);
            let expected = read_with(&options(&copy(&vfs)), DIR).unwrap();
            for path in files(&vfs) {
                if is_of_manifest(&path) {
                    vfs.remove_file(&path).unwrap();
                }
            }
            let report = repair(DIR, &options(&vfs)).unwrap();
            assert!(report.lost.is_empty() && report.logs.is_empty(), "{name}, seed {seed}: {report}");
            let is_doubtful = |family: &str| report.doubts.iter().any(|doubt| doubt.family.as_deref() == Some(family));
            let recovered = recover(&*vfs, Path::new(DIR)).unwrap();
            let levels = recovered.families.iter().flat_map(|family| &family.tables).map(|(level, _)| *level);
            deepest = levels.fold(deepest, usize::max);
            let (mut found, mut expected) = (read_with(&options(&vfs), DIR).unwrap(), expected);
            compared += found.keys().filter(|family| !is_doubtful(family)).count();
            [&mut found, &mut expected].into_iter().for_each(|all| all.retain(|family, _| !is_doubtful(family)));
            assert_same(&format!("{name}, seed {seed}"), &report, &found, &expected);
        }
    }
    assert!(deepest > 1 && compared > 40, "{compared} families were compared, the deepest level was {deepest}");
}

/// A compaction has made the numbers of the later table zero in part. A table that was left by a prepared ingest is newer than
/// it by one key, and older by the other.
#[test]
fn contradicting_tables_of_a_fifo_family_agree() {
    let script = "
        put default k020 17
        put default k023 44
        snapshot t
        flush default
        delete default k020
        prepare q flushable; file default; put k020 273; put k023 479
        ingest flushable; file default; delete k006; put s39 516";
    let profile = profile::by_name("fifo skip-list-dump").unwrap();
    let vfs = MemoryVfs::new(1);
    let mut runner = Runner::open(vfs.clone(), profile, Model::default()).unwrap();
    for op in parse::script(script).unwrap().ops {
        runner.step(&op).unwrap_or_else(|failure| panic!("{op}: {failure}"));
    }
    let vfs = copy(&vfs);
    drop(runner.abandon());
    files(&vfs).iter().filter(|path| is_of_manifest(path)).for_each(|path| vfs.remove_file(path).unwrap());
    let options = profile.open_options(vfs.clone(), [""; 0]);
    let report = repair(DIR, &options).unwrap();
    assert!(report.doubts.iter().any(|doubt| doubt.why.contains("older and newer entries")), "{report}");
    read_with(&options, DIR).unwrap();
}

/// A repair on request takes over a RocksDB directory, whichever file names are lost.
#[test]
fn what_rocksdb_left_is_taken_over_by_a_repair() {
    let options = |vfs: &Arc<MemoryVfs>| {
        let family = FamilyOptions { merge_operator: base::merge::by_name("uint64add"), ..FamilyOptions::default() };
        let other_families = OtherFamilies::OpenWith(Box::new(family.clone()));
        OpenOptions { vfs: vfs.clone(), other_families, ..OpenOptions::default() }.family("default", family)
    };
    let whole = MemoryVfs::new(1);
    rocksdbs(&whole, DIR, None);
    let expected = read_with(&OpenOptions { read_only: true, ..options(&whole) }, DIR).unwrap();
    for lost in ["none", "CURRENT", "MANIFEST-000005"] {
        let vfs = copy(&whole);
        let _ = vfs.remove_file(&Path::new(DIR).join(lost));
        let before = vfs.all_files();
        let refused = repair(DIR, &OpenOptions { adopt_rocksdb: false, ..options(&vfs) }).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{lost}: {refused}");
        assert!(refused.message().contains("adopt"), "{lost}: {refused}");
        assert_eq!(vfs.all_files().iter().filter(|path| !path.ends_with("LOCK")).count(), before.len(), "{lost}");
        let report = repair(DIR, &options(&vfs)).unwrap();
        assert!(report.lost.is_empty() && report.logs.is_empty(), "{lost}: {report:#?}");
        assert_eq!(read_with(&options(&vfs), DIR).unwrap(), expected, "{lost}: {report:#?}");
    }
}

/// A dropped family returns if files of it are left and there is no MANIFEST; the report says so.
#[test]
fn a_dropped_family_that_comes_back_is_told_of() {
    let whole = PLAIN.database();
    let table_of_users = {
        let recovered = recover(&*whole, Path::new(DIR)).unwrap();
        let users = recovered.families.iter().find(|family| family.name == "users").unwrap();
        let number = users.tables.first().unwrap().1.number;
        Path::new(DIR).join(format!("{number}.sst"))
    };
    let vfs = copy(&whole);
    let db = Db::open(DIR, &PLAIN.options(&vfs)).unwrap();
    db.drop_family(&db.family("users").unwrap()).unwrap();
    db.close().unwrap();
    drop(db);
    let left = whole.read_file(&table_of_users).unwrap();
    vfs.write_file(&table_of_users, &left).unwrap();
    for path in files(&vfs).into_iter().filter(|path| is_of_manifest(path)) {
        vfs.remove_file(&path).unwrap();
    }
    let report = repair(DIR, &PLAIN.options(&vfs)).unwrap();
    assert!(report.families.iter().any(|family| family.name == "users"), "{report:#?}");
    let told =
        report.doubts.iter().any(|doubt| doubt.family.as_deref() == Some("users") && doubt.why.contains("dropped"));
    assert!(told, "{report:#?}");
}

/// Errors of an open through the API mention repair, too.
#[test]
fn errors_at_open_name_repair() {
    let whole = PLAIN.database();
    for path in files(&whole) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !(name.ends_with(".sst") || name.starts_with("MANIFEST") || name == "CURRENT") {
            continue;
        }
        for is_lost in [true, false] {
            let vfs = copy(&whole);
            if is_lost {
                vfs.remove_file(&path).unwrap();
            } else {
                vfs.truncate(&path, 7).unwrap();
            }
            let error = Db::open(DIR, &PLAIN.options(&vfs)).err().unwrap();
            assert_eq!(error.message().matches("spillway repair").count(), 1, "{name}: {error}");
        }
    }
}
