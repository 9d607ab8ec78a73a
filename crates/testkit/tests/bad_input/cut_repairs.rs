//! Repairs that are cut off, and what a repair leaves behind.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::UserOrder;
use testkit::engine::backup::{BackupEngine, BackupOptions};
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::export::ExportOptions;
use testkit::engine::{
    Db, Doubt, Error, FamilyOptions, IngestOptions, OpenOptions, OtherFamilies, TableWriter, repair,
};
use testkit::run::DIR;
use vfs::{Fault, FaultCode, FaultVfs, MemoryVfs, Rule, Vfs};

use crate::common::{Contents, PLAIN, REFERRING, copy, database, files, options, read, read_with};
use crate::lost_ends::noise;
use crate::moved_logs::with_logs_in;

fn over(vfs: Arc<dyn Vfs>, memory: &Arc<MemoryVfs>) -> OpenOptions {
    OpenOptions { vfs, ..options(memory) }
}

/// As [`cut_off_at_each_call_with`], with the options of small databases.
fn cut_off_at_each_call(whole: &MemoryVfs, visit: impl FnMut(usize, Arc<MemoryVfs>)) {
    cut_off_at_each_call_with(options, whole, visit);
}

/// Repairs a copy that fails from the first call of the file system on, then one from the second on, up to a repair that succeeds.
/// Calls `visit` with the number and with each copy that is left.
pub fn cut_off_at_each_call_with(
    options: impl Fn(&Arc<MemoryVfs>) -> OpenOptions,
    whole: &MemoryVfs,
    mut visit: impl FnMut(usize, Arc<MemoryVfs>),
) {
    for nth in 1.. {
        let vfs = copy(whole);
        let faulty = FaultVfs::new(vfs.clone());
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
        if repair(DIR, &OpenOptions { vfs: faulty, ..options(&vfs) }).is_ok() {
            return;
        }
        visit(nth as usize, vfs);
    }
}

/// The keys that are not as expected.
fn wrong(found: &Contents, expected: &Contents) -> Vec<(String, Vec<u8>)> {
    let of = |family: &str, contents: &Contents| contents.get(family).cloned().unwrap_or_default();
    let mut wrong = Vec::new();
    for family in expected.keys() {
        let (found, expected) = (of(family, found), of(family, expected));
        let differs = |key: &&Vec<u8>| found.get(*key) != expected.get(*key);
        let keys: std::collections::BTreeSet<_> = found.keys().chain(expected.keys()).filter(differs).collect();
        wrong.extend(keys.into_iter().map(|key| (family.clone(), key.clone())));
    }
    wrong
}

fn is_whole(vfs: &Arc<MemoryVfs>) -> bool {
    let options = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    check(Path::new(DIR), &options, &mut |_| {}).unwrap().is_whole()
}

/// Whether a database can be copied: as a checkpoint, beside another process, as an export, of one family, and as a backup.
fn copies(vfs: &Arc<MemoryVfs>) -> [bool; 5] {
    let opened = || {
        let vfs = copy(vfs);
        (Db::open(DIR, &options(&vfs)).unwrap(), vfs)
    };
    let is_refused = |error: Error| error.message().contains("a repair has not ended");
    let may = |made: Result<(), Error>| made.map_or_else(|error| !is_refused(error), |()| true);
    let beside = copy(vfs);
    [
        may(opened().0.checkpoint("/copy").map(drop)),
        may(Db::checkpoint_beside(DIR, &options(&beside), Path::new("/copy")).map(drop)),
        may(opened().0.export("/copy", &ExportOptions::default()).map(drop)),
        {
            let (db, _vfs) = opened();
            may(db.export_family(&db.default_family(), "/copy").map(drop))
        },
        {
            let (db, vfs) = opened();
            let engine = BackupEngine::open("/backups", &BackupOptions { vfs, ..BackupOptions::default() }).unwrap();
            may(engine.create_new_backup(&db, false).map(drop))
        },
    ]
}

/// Wherever a repair ends, the next open, check and repair tell of keys that it lost.
#[test]
fn repair_that_is_cut_off_leaves_no_loss_untold() {
    let whole = database(&format!("{}\nreopen", PLAIN.script));
    let expected = read(&copy(&whole)).unwrap();
    let damaged = copy(&whole);
    damaged.flip_bit(&files(&damaged, ".sst")[0], 8 * 20).unwrap();
    let (mut told, mut cut_off) = ([0, 0], 0);
    cut_off_at_each_call(&damaged, |nth, vfs| {
        let opened = copy(&vfs);
        if let Ok(db) = Db::open(DIR, &options(&opened)) {
            let doubts = db.recovery_doubts();
            drop(db);
            let found = read(&opened).unwrap_or_else(|_| expected.clone()); // an error tells, too
            let is_told = |(family, key): &(String, Vec<u8>)| {
                doubts.iter().any(|doubt: &Doubt| doubt.covers(family, key, &UserOrder::Bytewise))
            };
            let has_report = vfs.exists(&Path::new(DIR).join("lost/REPORT")).unwrap();
            let has_ended = has_report && !vfs.exists(&Path::new(DIR).join("lost/UNFINISHED")).unwrap();
            assert!(has_ended || wrong(&found, &expected).iter().all(is_told), "call {nth}: {doubts:#?}");
            assert!(has_ended || doubts.is_empty() || !is_whole(&vfs), "call {nth}");
            told[0] += usize::from(!doubts.is_empty());
            assert_eq!(copies(&vfs), [doubts.is_empty() || has_ended; 5], "call {nth}: {doubts:#?}");
        }
        let report = repair(DIR, &options(&vfs)).unwrap();
        let found = read(&vfs).unwrap();
        let is_told = |(family, key): &(String, Vec<u8>)| report.is_in_doubt(family, key, &UserOrder::Bytewise);
        assert!(wrong(&found, &expected).iter().all(is_told), "call {nth}: {report:#?}");
        assert!(is_whole(&vfs), "call {nth}: {report:#?}");
        told[1] += usize::from(!report.lost_nothing());
        cut_off = nth;
    });
    assert!(told[0] > 0 && told[1] == cut_off, "{told:?} of {cut_off}");
}

/// A guess may take the older of two values. Nothing of what it read is gone.
#[test]
fn guess_keeps_every_table_and_log() {
    let vfs = database(&format!("{}\nput default late 1", PLAIN.script));
    let of_manifest = files(&vfs, "").into_iter().filter(|path| {
        let name = path.to_string_lossy().into_owned();
        name.contains("MANIFEST") || name.ends_with(".spmanifest") || name.ends_with("CURRENT")
    });
    of_manifest.for_each(|path| vfs.remove_file(&path).unwrap());
    let read_files: Vec<PathBuf> = [".sst", ".splog"].iter().flat_map(|end| files(&vfs, end)).collect();
    let before: Vec<_> = read_files.iter().map(|path| vfs.read_file(path).unwrap()).collect();
    assert!(repair(DIR, &options(&vfs)).unwrap().is_in_doubt("default", b"a", &UserOrder::Bytewise));
    for (path, bytes) in read_files.iter().zip(before) {
        let kept = Path::new(DIR).join("lost").join(path.file_name().unwrap());
        assert_eq!(vfs.read_file(&kept).unwrap(), bytes, "{}", kept.display());
    }
}

/// The way back needs a table that was ingested, has had a level and was compacted since: its log cannot be replayed.
#[test]
fn best_efforts_goes_back_before_an_ingest_whose_table_is_gone() {
    let script = "create users\nput users k 1\nput default k 1\nflush default\n\
                  ingest flushable; file default; put k 2\nflush default\ncompact default force";
    let vfs = database(script);
    vfs.remove_file(&files(&vfs, ".sst").pop().unwrap()).unwrap();
    let mut options = options(&vfs);
    assert!(Db::open(DIR, &options).is_err());
    options.db.best_efforts_recovery = true;
    let db = Db::open(DIR, &options).unwrap();
    let doubts = db.recovery_doubts();
    assert!(doubts.iter().any(|doubt| doubt.covers("default", b"k", &UserOrder::Bytewise)), "{doubts:#?}");
}

/// Tables come and the MANIFEST's copy goes beside a writer: a reader takes neither for damage.
#[test]
fn reader_doubts_no_table_that_a_writer_may_be_making() {
    let vfs = database("create users\nput default a 1\nflush default");
    let before: Vec<_> = files(&vfs, "").into_iter().filter(|path| !path.to_string_lossy().ends_with(".sst")).collect();
    let before: Vec<_> = before.into_iter().map(|path| (vfs.read_file(&path).unwrap(), path)).collect();
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    db.put(
        &db.default_family(),
        b"b",
        b"2",
        &testkit::engine::WriteOptions { disable_wal: true, ..Default::default() },
    )
    .unwrap();
    db.flush(&[&db.default_family()]).unwrap();
    drop(db);
    files(&vfs, "")
        .iter()
        .filter(|path| !path.to_string_lossy().ends_with(".sst"))
        .for_each(|path| vfs.remove_file(path).unwrap());
    before
        .iter()
        .filter(|(_, path)| !path.to_string_lossy().ends_with(".spmanifest"))
        .for_each(|(bytes, path)| vfs.write_file(path, bytes).unwrap());
    let all = vfs.all_files();
    let reader = Db::open(DIR, &OpenOptions { read_only: true, ..options(&vfs) }).unwrap();
    assert!(reader.recovery_doubts().is_empty(), "{:#?}", reader.recovery_doubts());
    drop(reader);
    assert_eq!(vfs.all_files(), all);
    let writer = Db::open(DIR, &options(&vfs)).unwrap();
    assert!(!writer.recovery_doubts().is_empty(), "it holds the lock");
}

/// The report is of the database that was there before: it says nothing of one that was restored, or made anew, in its place.
#[test]
fn reports_are_of_one_database() {
    let vfs = database("put default a 1\nflush default");
    vfs.flip_bit(&files(&vfs, ".sst")[0], 8 * 20).unwrap();
    assert!(!repair(DIR, &options(&vfs)).unwrap().lost_nothing());
    assert!(!repair(DIR, &options(&vfs)).unwrap().lost_nothing());
    vfs.rename(&Path::new(DIR).join("lost/REPORT"), Path::new("/REPORT")).unwrap();
    assert!(repair(DIR, &options(&vfs)).unwrap().lost_nothing());
    vfs.rename(Path::new("/REPORT"), &Path::new(DIR).join("lost/REPORT.1")).unwrap();
    assert!(!repair(DIR, &options(&vfs)).unwrap().lost_nothing());
    let as_vfs: Arc<dyn Vfs> = vfs.clone();
    Db::destroy(DIR, None, &as_vfs).unwrap();
    let mut options = options(&vfs);
    options.db.create_if_missing = true;
    options.db.create_missing_column_families = true;
    drop(Db::open(DIR, &options).unwrap());
    assert!(repair(DIR, &options).unwrap().lost_nothing());
}

/// Who deletes tables and logs by hand and begins anew has another database: no report or mark of the old one doubts it.
#[test]
fn database_that_is_begun_anew_has_no_earlier_repair() {
    let vfs = database("put default a 1\nflush default");
    vfs.flip_bit(&files(&vfs, ".sst")[0], 8 * 20).unwrap();
    assert!(!repair(DIR, &options(&vfs)).unwrap().lost_nothing());
    let lost = Path::new(DIR).join("lost");
    vfs.write_file(&lost.join("UNFINISHED"), b"1 switching").unwrap();
    let is_kept = |path: &&PathBuf| !path.starts_with(&lost);
    files(&vfs, "").iter().filter(is_kept).for_each(|path| vfs.remove_file(path).unwrap());
    let mut options = options(&vfs);
    (options.db.create_if_missing, options.db.create_missing_column_families) = (true, true);
    assert!(Db::open(DIR, &options).unwrap().recovery_doubts().is_empty());
    assert!(repair(DIR, &options).unwrap().lost_nothing());
    assert!(vfs.exists(&lost.join("EARLIER-REPORT")).unwrap());
}

/// A mark doubts what the repair may have made, and nothing older.
#[test]
fn mark_is_of_a_repair_that_switched_or_not() {
    let whole = database("create users\nput default a 1\nflush default");
    let expected = read(&copy(&whole)).unwrap();
    let last = testkit::engine::version::recover::recover(&*whole, Path::new(DIR)).unwrap().manifest.0;
    let garbage = "x".repeat(100);
    let marks = [
        (format!("{} copying", last + 20), false),
        (format!("{} switching", last + 20), false),
        (format!("{last} switching"), true),
        ("12".to_owned(), true),
        (format!("{} replacing", last + 20), true),
        (garbage, true),
    ];
    for (mark, doubts) in marks {
        let vfs = copy(&whole);
        vfs.create_dir_all(&Path::new(DIR).join("lost")).unwrap();
        vfs.write_file(&Path::new(DIR).join("lost/UNFINISHED"), mark.as_bytes()).unwrap();
        assert_eq!(is_whole(&vfs), !doubts, "{mark}");
        let opened = copy(&vfs);
        let found = Db::open(DIR, &options(&opened)).unwrap().recovery_doubts();
        assert_eq!(found.is_empty(), !doubts, "{mark}: {found:#?}");
        assert_eq!(repair(DIR, &options(&vfs)).unwrap().lost_nothing(), !doubts, "{mark}");
        assert_eq!(read(&vfs).unwrap(), expected, "{mark}");
        assert!(is_whole(&vfs), "{mark}");
    }
}

/// Only CURRENT is lost: a repair loses nothing, and neither does one that is cut off, whenever.
#[test]
fn repair_of_current_that_is_cut_off_leaves_no_doubt() {
    let whole = database("create users\nput default a 1\nflush default\nput users b 2");
    let expected = read(&copy(&whole)).unwrap();
    whole.remove_file(&Path::new(DIR).join("CURRENT")).unwrap();
    cut_off_at_each_call(&whole, |nth, vfs| {
        let opened = copy(&vfs);
        if let Ok(db) = Db::open(DIR, &options(&opened)) {
            assert!(db.recovery_doubts().is_empty(), "call {nth}: {:#?}", db.recovery_doubts());
        }
        let report = repair(DIR, &options(&vfs)).unwrap();
        assert!(report.lost_nothing(), "call {nth}: {report}");
        assert_eq!(read(&vfs).unwrap(), expected, "call {nth}");
    });
}

/// Every MANIFEST and one block of a table are lost. A repetition takes no copy of the first try for the newest table.
#[test]
fn guess_that_is_cut_off_and_repeated_says_the_same() {
    let whole = database(
        "create users\nput users k 1\nput default a 1\nput default b 1\nflush default\nput default a 2\nflush default",
    );
    let is_of_manifest = |path: &&PathBuf| {
        let name = path.to_string_lossy();
        name.contains("MANIFEST") || name.ends_with(".spmanifest") || name.ends_with("CURRENT")
    };
    files(&whole, "").iter().filter(is_of_manifest).for_each(|path| whole.remove_file(path).unwrap());
    let oldest = files(&whole, ".sst").swap_remove(0);
    let bytes = whole.read_file(&oldest).unwrap().len() as u64;
    whole.flip_bit(&oldest, 8 * (bytes - 200)).unwrap(); // its properties
    let at_once = copy(&whole);
    repair(DIR, &options(&at_once)).unwrap();
    let expected = read(&at_once).unwrap();
    assert_eq!(expected["default"][&b"a"[..]], b"2");
    cut_off_at_each_call(&whole, |nth, vfs| {
        let report = repair(DIR, &options(&vfs)).unwrap();
        assert!(!report.lost_nothing(), "call {nth}: {report}");
        assert_eq!(read(&vfs).unwrap(), expected, "call {nth}: {report}");
    });
}

/// A mark is durable before anything follows it; and one of a repair that changed nothing is no doubt.
#[test]
fn mark_of_a_repair_that_changed_nothing_goes() {
    let whole = database("create users\nput default a 1\nflush default\nput default b 2");
    let expected = read(&copy(&whole)).unwrap();
    cut_off_at_each_call(&whole, |nth, vfs| {
        let opened = copy(&vfs);
        assert_eq!(read(&opened).unwrap(), expected, "call {nth}");
        repair(DIR, &options(&vfs)).unwrap();
        assert_eq!(read(&vfs).unwrap(), expected, "call {nth}");
        assert!(is_whole(&vfs), "call {nth}");
    });
}

/// A guess was cut off once its MANIFEST was current, and more was written. A second loss of every MANIFEST takes none of it away.
#[test]
fn what_was_written_behind_a_cut_off_guess_is_not_taken_for_its_copies() {
    let vfs = database("create users\nput users k 1\nput default a 1\nflush default\nput default b 1\nflush default");
    let is_of_manifest = |path: &&PathBuf| {
        let name = path.to_string_lossy();
        name.contains("MANIFEST") || name.ends_with(".spmanifest")
    };
    let lose = |vfs: &MemoryVfs, others: &[&str]| {
        let all = files(vfs, "");
        let is_other = |path: &Path| others.iter().any(|other| path.to_string_lossy().contains(other));
        let is_lost = |path: &&PathBuf| is_of_manifest(path) || is_other(path);
        all.iter().filter(is_lost).filter(|path| !path.starts_with(Path::new(DIR).join("lost"))).for_each(|path| {
            vfs.remove_file(path).unwrap();
        });
    };
    lose(&vfs, &["CURRENT"]);
    let mark = Path::new(DIR).join("lost/UNFINISHED");
    let kept = (1..).find_map(|nth| {
        let tried = copy(&vfs);
        let faulty = FaultVfs::new(tried.clone());
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
        let _ = repair(DIR, &over(faulty, &tried));
        let has_switched = tried.exists(&mark).unwrap() && tried.exists(&Path::new(DIR).join("CURRENT")).unwrap();
        has_switched.then_some(tried)
    });
    let vfs = kept.unwrap();
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    assert!(!db.recovery_doubts().is_empty());
    let default = db.default_family();
    db.put(&default, b"later", b"1", &testkit::engine::WriteOptions::synced()).unwrap();
    db.flush(&db.families().iter().collect::<Vec<_>>()).unwrap();
    drop(default);
    db.close().unwrap();
    let is_live = |path: &&PathBuf| !path.starts_with(Path::new(DIR).join("lost"));
    files(&vfs, ".splog").iter().filter(is_live).for_each(|path| vfs.remove_file(path).unwrap()); // tables have all
    for others in [&[][..], &["CURRENT"], &["CURRENT", "OPTIONS-"]] {
        let vfs = copy(&vfs);
        lose(&vfs, others);
        let report = repair(DIR, &options(&vfs)).unwrap();
        let mut any = options(&vfs); // the names of families are lost with the OPTIONS file
        any.families.retain(|(name, _)| name == "default");
        any.other_families = OtherFamilies::OpenWith(Box::default());
        let found = read_with(&any, DIR).unwrap();
        for key in ["a", "b", "later"] {
            assert!(found["default"].contains_key(key.as_bytes()), "{key}, {others:?}: {found:?}\n{report}");
        }
        assert!(!report.lost_nothing());
    }
}

/// A repair that looked for the logs in the wrong directory was cut off. The logs in the right one have later numbers than its
/// own files would have, and none of them is taken for one of these.
#[test]
fn repetition_takes_no_live_log_for_a_copy() {
    let whole = MemoryVfs::new(1);
    whole.create_dir_all(Path::new("/wal")).unwrap();
    let mut how = with_logs_in(&whole, "/wal");
    how.db.log_file_bytes = 64 << 10;
    how.families.iter_mut().for_each(|(_, family)| family.write_buffer_size = 64 << 20);
    let db = Db::open(DIR, &how).unwrap();
    let default = db.default_family();
    for key in ["a", "b"] {
        db.put(&default, key.as_bytes(), b"v", &testkit::engine::WriteOptions::synced()).unwrap();
        db.flush(&[&default]).unwrap();
    }
    for key in 0..2000u32 {
        db.put(&default, &key.to_be_bytes(), &noise(key.into()), &testkit::engine::WriteOptions::synced()).unwrap();
    }
    let whole = copy(&whole);
    drop((default, db));
    for name in whole.read_dir(Path::new(DIR)).unwrap() {
        if ["MANIFEST", "CURRENT", "OPTIONS", ".spmanifest"].iter().any(|part| name.contains(part)) {
            whole.remove_file(&Path::new(DIR).join(name)).unwrap();
        }
    }
    cut_off_at_each_call(&whole, |nth, vfs| {
        repair(DIR, &with_logs_in(&vfs, "/wal")).unwrap();
        let found = read_with(&with_logs_in(&vfs, "/wal"), DIR).unwrap();
        assert_eq!(found["default"].len(), 2002, "call {nth}");
    });
}

/// Whether a repair that was cut off had its MANIFEST take over: its repetition doubts everything then.
fn has_switched(vfs: &MemoryVfs) -> bool {
    let mark = Path::new(DIR).join("lost/UNFINISHED");
    vfs.exists(&mark).unwrap() && vfs.read_file(&mark).unwrap().ends_with(b"switching")
}

/// A repair that was cut off between its copy of a damaged table and anything else left a table that nothing names.
#[test]
fn copy_of_a_cut_off_repair_puts_nothing_in_doubt() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &with_logs_in(&vfs, "")).unwrap();
    let default = db.default_family();
    for key in 0..400u32 {
        db.put(&default, &key.to_be_bytes(), &noise(key.into()), &Default::default()).unwrap();
    }
    db.flush(&[&default]).unwrap();
    drop(default);
    db.close().unwrap();
    vfs.flip_bit(&files(&vfs, ".sst")[0], 8 * 20_000).unwrap();
    vfs.remove_file(&files(&vfs, ".spmanifest")[0]).unwrap();
    let mut repeated = 0;
    cut_off_at_each_call(&vfs, |nth, vfs| {
        if !has_switched(&vfs) {
            let report = repair(DIR, &options(&vfs)).unwrap();
            let is_done = report.earlier.is_some(); // but for the end of its mark
            assert!(report.doubts.is_empty() && (is_done || report.lost.len() == 1), "call {nth}: {report}");
            repeated += 1;
        }
    });
    assert!(repeated > 50, "{repeated} calls");
}

/// The new MANIFEST of a cut-off repair has no whole copy, which could prove its end: the repetition goes by the one in use.
#[test]
fn manifest_of_a_cut_off_repair_takes_no_proof_away() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &with_logs_in(&vfs, "")).unwrap();
    let (default, path) = (db.default_family(), Path::new("/ingested.sst"));
    let mut writer = TableWriter::create(vfs.clone(), path, &FamilyOptions::default()).unwrap();
    writer.put(b"a", b"ingested").unwrap();
    writer.finish().unwrap();
    db.ingest(&default, &[path.to_owned()], &IngestOptions::default()).unwrap();
    db.put(&default, b"a", b"newer", &Default::default()).unwrap();
    db.flush(&[&default]).unwrap();
    let tables = files(&vfs, ".sst").into_iter().filter(|path| path.starts_with(DIR));
    let left = tables.map(|path| (path.clone(), vfs.read_file(&path).unwrap()));
    let left: Vec<_> = left.filter(|(_, bytes)| bytes.windows(8).any(|part| part == b"ingested")).collect();
    assert_eq!(left.len(), 1);
    db.compact_range(&default, None, None, &Default::default()).unwrap();
    drop(default);
    db.close().unwrap();
    drop(Db::open(DIR, &options(&vfs)).unwrap()); // a MANIFEST that never named them
    left.iter().for_each(|(path, bytes)| vfs.write_file(path, bytes).unwrap());
    let is_manifest = |path: &PathBuf| path.to_string_lossy().contains("MANIFEST-");
    vfs.flip_bit(&files(&vfs, "").into_iter().find(is_manifest).unwrap(), 8 * 20).unwrap();
    let report = repair(DIR, &options(&copy(&vfs))).unwrap();
    assert!(report.lost_nothing(), "{report}");
    let mut repeated = 0;
    cut_off_at_each_call(&vfs, |nth, vfs| {
        if !has_switched(&vfs) {
            let report = repair(DIR, &options(&vfs)).unwrap();
            assert!(report.lost_nothing(), "call {nth}: {report}");
            repeated += 1;
        }
    });
    assert!(repeated > 50, "{repeated} calls");
}

/// The MANIFEST has the database's id; a file too long for one is none.
#[test]
fn long_identity_stops_nothing() {
    let vfs = database("create users\nput default a 1");
    vfs.write_file(&Path::new(DIR).join("IDENTITY"), &[b'x'; 5000]).unwrap();
    assert!(repair(DIR, &options(&copy(&vfs))).unwrap().lost_nothing());
    let found = read(&vfs).unwrap();
    assert_eq!(found["default"][&b"a"[..]], b"1");
    Db::open(DIR, &options(&vfs)).unwrap();
}

/// A table is lost. Its values lie in a log, and may be of use to somebody.
#[test]
fn repair_keeps_values_of_lost_tables() {
    let kept = |vfs: &MemoryVfs, path: &Path| {
        let lost = Path::new(DIR).join("lost").join(path.file_name().unwrap());
        vfs.read_file(path).or_else(|_| vfs.read_file(&lost)).unwrap_or_default()
    };
    let vfs = REFERRING.after(&format!("{}\nreopen\nput default e 1\nflush default\nreopen", REFERRING.script));
    let logs: Vec<_> = files(&vfs, ".splog").into_iter().map(|log| (vfs.read_file(&log).unwrap(), log)).collect();
    assert!(!logs.is_empty());
    for is_gone in [true, false] {
        let vfs = copy(&vfs);
        let table = files(&vfs, ".sst").remove(0);
        if is_gone {
            vfs.remove_file(&table).unwrap()
        } else {
            vfs.flip_bit(&table, 8 * 20).unwrap()
        }
        assert!(!repair(DIR, &REFERRING.options(&vfs)).unwrap().lost_nothing());
        assert!(logs.iter().all(|(bytes, log)| kept(&vfs, log) == *bytes), "{is_gone}: {:?}", vfs.all_files());
    }
}
