//! RocksDB's logs of which one is gone, cut off or exchanged, where other files prove it: the numbers of tables, the files that an
//! open writes, and the state with which a MANIFEST is begun anew. Healthy directories that look alike leave no doubt.

use std::sync::Arc;

use base::{FamilyId, FileNumber, SeqNo};
use testkit::engine::backup::{BackupEngine, BackupOptions, RestoreOptions};
use testkit::engine::options::WalRecoveryMode;
use testkit::engine::version::edit::VersionEdit;
use testkit::engine::{Db, ErrorKind, FamilyOptions, OpenOptions, TableWriter, repair};
use testkit::run::DIR;
use vfs::{MemoryVfs, Vfs};

use crate::common::copy;
use crate::rocksdb_rows::{
    F, MANIFEST, OPTIONS_TEXT, append, back_up, begun, cut, database, doubts, edit, flushed, is_told_for_f, is_whole,
    kept_from, log_path, options, path, put,
};

/// Numbers of tables, from the first to the last, that `family` got by a flush that named a log, or otherwise. A compaction left
/// nothing of them.
pub fn table(family: FamilyId, numbers: (u64, u64), log: Option<u64>) -> [Vec<u8>; 2] {
    table_by(family, numbers, |edit| edit.log_number = log.map(FileNumber))
}

fn table_by(family: FamilyId, numbers: (u64, u64), change: impl FnOnce(&mut VersionEdit)) -> [Vec<u8>; 2] {
    let came = edit(|edit| {
        edit.family = family;
        change(edit);
        edit.last_seq = Some(SeqNo(numbers.1));
        edit.added = vec![(0, Default::default())];
        let (_, meta) = edit.added.first_mut().unwrap();
        (meta.number, meta.file_bytes) = (FileNumber(11), 1);
        (meta.smallest_seq, meta.largest_seq) = (SeqNo(numbers.0), SeqNo(numbers.1));
        let key = [b"t".to_vec(), (numbers.0 << 8 | 1).to_le_bytes().to_vec()].concat();
        (meta.smallest, meta.largest) = (key.clone(), key);
    });
    [came, edit(|edit| (edit.family, edit.deleted) = (family, vec![(0, FileNumber(11))]))]
}

/// As the `nth` open that keeps the MANIFEST writes its edits (`reuse_manifest_on_open`): all tell one next file, above those before.
fn of_kept(nth: u64, change: impl FnOnce(&mut VersionEdit)) -> impl FnOnce(&mut VersionEdit) {
    move |edit| {
        (edit.prev_log, edit.next_file) = (Some(FileNumber(0)), Some(FileNumber(30 + nth)));
        change(edit);
    }
}

/// What such an open writes first.
fn kept(nth: u64) -> Vec<Vec<u8>> {
    vec![edit(of_kept(nth, |_| ())), edit(of_kept(nth, |_| ()))]
}

/// What such an open writes that gives each family the number `given`, which no log begins with.
fn kept_and_given(nth: u64, given: u64) -> Vec<Vec<u8>> {
    let gives =
        |family| edit(of_kept(nth, move |edit| (edit.family, edit.log_number) = (family, Some(FileNumber(given)))));
    [kept(nth), vec![gives(FamilyId::DEFAULT), gives(F)]].concat()
}

fn lose(vfs: &MemoryVfs, number: u64) {
    vfs.remove_file(&log_path(number)).unwrap();
}

fn write_options(vfs: &MemoryVfs, number: u64) {
    vfs.write_file(&path(&format!("OPTIONS-{}", FileNumber(number))), OPTIONS_TEXT.as_bytes()).unwrap();
}

/// As `database`, but that the MANIFEST was begun anew behind all logs. "default" was flushed for log `flushed_to`.
fn anew(flushed_to: u64, options: u64) -> Arc<MemoryVfs> {
    let vfs = begun(20);
    append(&vfs, &path("MANIFEST-000020"), &[flushed(FamilyId::DEFAULT, flushed_to, 3), kept_from(4)]);
    for (number, first) in [(4, 1), (10, 4)] {
        append(&vfs, &log_path(number), &[put(first), put(first + 1), put(first + 2)]);
    }
    write_options(&vfs, options);
    vfs
}

#[test]
fn log_lost_before_the_manifest_was_begun_anew_is_missed() {
    for flushed_to in [10, 12] {
        let vfs = anew(flushed_to, 7);
        vfs.create_dir_all(&path("archive")).unwrap(); // no OPTIONS file lies there
        assert!(doubts(&vfs, "whole").is_empty());
        lose(&vfs, 4);
        is_told_for_f(&vfs, &format!("flushed to log {flushed_to}"));
        write_options(&vfs, 22);
        is_told_for_f(&vfs, &format!("flushed to log {flushed_to}, and an option was changed"));
    }
}

/// A MANIFEST that an open began with log 14 as its first one. It left "f" the log `of_f`, and all others were read. `last` was in
/// tables.
fn opened(of_f: u64, last: u64) -> Arc<MemoryVfs> {
    opened_with([Some(11), Some(of_f)], last)
}

/// `given`: the logs that the open gave to "default", which had log 10, and to "f", which had log 4.
fn opened_with(given: [Option<u64>; 2], last: u64) -> Arc<MemoryVfs> {
    let vfs = begun(15);
    vfs.remove_file(&path("MANIFEST-000015")).unwrap();
    let at_begin = |change: &dyn Fn(&mut VersionEdit)| {
        edit(|edit| {
            edit.next_file = None;
            (edit.comparator, edit.last_seq) = (Some("leveldb.BytewiseComparator".to_owned()), Some(SeqNo(last)));
            change(edit);
        })
    };
    let state = [
        at_begin(&|edit| (edit.log_number, edit.min_log_to_keep) = (Some(FileNumber(10)), Some(FileNumber(4)))),
        at_begin(&|edit| {
            (edit.family, edit.add_family) = (F, Some("f".to_owned()));
            edit.log_number = Some(FileNumber(4));
        }),
    ];
    let of_open = |change: &dyn Fn(&mut VersionEdit)| {
        edit(|edit| {
            (edit.prev_log, edit.next_file) = (Some(FileNumber(0)), Some(FileNumber(15)));
            edit.last_seq = Some(SeqNo(last));
            change(edit);
        })
    };
    let mut edits = vec![of_open(&|edit| edit.max_family = Some(1)), of_open(&|_| ())];
    for (family, log) in [FamilyId::DEFAULT, F].into_iter().zip(given) {
        let log = log.map(FileNumber);
        edits.extend(log.map(|log| of_open(&|edit| (edit.family, edit.log_number) = (family, Some(log)))));
    }
    append(&vfs, &path("MANIFEST-000015"), &[&state[..], &edits].concat());
    vfs
}

/// An open gives a log to each family without changes. All had some.
#[test]
fn only_log_with_changes_of_every_family_is_missed() {
    let vfs = opened_with([None, None], 1);
    append(&vfs, &log_path(4), &[put(2)]);
    append(&vfs, &log_path(10), &[put(3)]);
    append(&vfs, &log_path(14), &[]);
    assert!(doubts(&vfs, "whole").is_empty());
    lose(&vfs, 10);
    assert!(!doubts(&vfs, "log 10 is gone").is_empty());
    lose(&vfs, 4);
    assert!(!doubts(&vfs, "both are gone").is_empty());
}

/// The last edit of an open counts its MANIFEST in.
#[test]
fn last_edit_of_an_open_gives_a_log_too() {
    let vfs = opened_with([None, None], 1);
    let last = edit(|edit| {
        (edit.prev_log, edit.next_file, edit.last_seq) = (Some(FileNumber(0)), Some(FileNumber(16)), Some(SeqNo(1)));
        (edit.family, edit.log_number) = (F, Some(FileNumber(13)));
    });
    append(&vfs, &path("MANIFEST-000015"), &[last]);
    append(&vfs, &log_path(10), &[put(2)]);
    append(&vfs, &log_path(14), &[]);
    assert!(doubts(&vfs, "whole").is_empty());
}

/// The OPTIONS files are lost, too, which tell where the logs lie.
#[test]
fn log_of_an_open_is_missed_without_options() {
    let vfs = opened_with([Some(11), Some(11)], 1);
    append(&vfs, &log_path(14), &[put(2)]);
    assert!(is_whole(&vfs));
    vfs.write_file(&path("IDENTITY"), b"an id").unwrap();
    lose(&vfs, 14);
    assert!(!is_whole(&vfs));
}

/// The log that the open itself began, behind an older one and before one of a flush. Its changes are in a table.
#[test]
fn own_log_of_an_open_is_missed_between_others() {
    let vfs = opened(4, 1);
    append(&vfs, &path("MANIFEST-000015"), &table(FamilyId::DEFAULT, (3, 3), Some(18)));
    append(&vfs, &log_path(4), &[put(2)]);
    append(&vfs, &log_path(14), &[put(3)]);
    append(&vfs, &log_path(18), &[put(4)]);
    assert!(doubts(&vfs, "whole").is_empty());
    vfs.truncate(&log_path(14), 0).unwrap();
    assert!(doubts(&vfs, "empty, as it may be").is_empty());
    lose(&vfs, 14);
    is_told_for_f(&vfs, "log 14 is gone");
}

/// "default" needs log 10 and later ones, "f" log 4.
#[test]
fn families_lack_all_logs_up_to_the_first_that_is_left() {
    let vfs = anew(10, 7);
    append(&vfs, &log_path(14), &[put(7)]);
    assert!(doubts(&vfs, "whole").is_empty());
    [4, 10].iter().for_each(|log| lose(&vfs, *log));
    let found = doubts(&vfs, "both are gone");
    assert!(!found.is_empty() && found.iter().all(|doubt| doubt.family.is_none()), "{found:?}");
}

/// An open that flushes nothing (`avoid_flush_during_recovery`) leaves a family the log that it has changes in.
#[test]
fn log_that_an_open_read_and_left_is_missed() {
    let begin = |of_f| {
        let vfs = opened(of_f, 1);
        append(&vfs, &log_path(4), &[put(2)]);
        append(&vfs, &log_path(10), &[]);
        append(&vfs, &log_path(14), &[put(3)]);
        vfs
    };
    let vfs = begin(4);
    assert!(doubts(&vfs, "whole").is_empty());
    lose(&vfs, 4);
    is_told_for_f(&vfs, "log 4 is gone");
    lose(&vfs, 10);
    is_told_for_f(&vfs, "all that were read are gone");
    keeps_no_logs(&vfs, &begin(4), 1);
    let vfs = begin(11);
    [4, 10].iter().for_each(|log| lose(&vfs, *log));
    assert!(doubts(&vfs, "it had none").is_empty());
}

/// A database that nobody closed, before it noted a log to keep. The log has the changes of "f".
#[test]
fn first_log_that_is_empty_before_others_is_missed() {
    for (default_needs, manifest) in [(5, 5), (0, 5), (0, 20)] {
        let begin = || {
            let vfs = begun(manifest);
            let name = path(&format!("MANIFEST-{}", FileNumber(manifest)));
            append(&vfs, &name, &[flushed(FamilyId::DEFAULT, default_needs, 0)]);
            append(&vfs, &log_path(4), &[put(1)]);
            append(&vfs, &log_path(14), &[put(2)]);
            vfs
        };
        assert!(doubts(&begin(), "whole").is_empty());
        for bytes in [0, 25] {
            let vfs = begin();
            vfs.write_file(&log_path(4), &vec![0; bytes]).unwrap();
            let found = doubts(&vfs, &format!("default needs {default_needs}, {bytes} zeros"));
            assert!(found.len() == 1 && found[0].why.starts_with("000004.log"), "{found:?}");
        }
    }
    // An open that leaves an older log begins another one behind its own, which is empty.
    let vfs = opened(4, 1);
    append(&vfs, &log_path(4), &[put(2)]);
    append(&vfs, &log_path(14), &[]);
    append(&vfs, &log_path(18), &[put(3)]);
    assert!(doubts(&vfs, "whole").is_empty());
}

/// "default" has changes there alone, and the MANIFEST was begun anew behind the log that a flush of "f" began.
#[test]
fn first_log_is_missed_where_a_flush_began_the_next_one() {
    let begin = || {
        let vfs = begun(20);
        append(&vfs, &path("MANIFEST-000020"), &table(F, (2, 2), Some(10)));
        write_options(&vfs, 7);
        append(&vfs, &log_path(4), &[put(1), put(2)]);
        append(&vfs, &log_path(10), &[]);
        vfs
    };
    assert!(doubts(&begin(), "whole").is_empty());
    let vfs = begin();
    vfs.truncate(&log_path(4), 0).unwrap();
    assert!(!doubts(&vfs, "it is empty").is_empty());
    lose(&vfs, 4);
    assert!(!doubts(&vfs, "it is gone").is_empty());
}

/// RocksDB deletes at an open what no MANIFEST names. An ingest has its number before the MANIFEST that its edit begins.
#[test]
fn ingested_table_older_than_the_manifest_is_told_unless_an_open_began_that() {
    let with_table = |vfs: Arc<MemoryVfs>| {
        let mut writer = TableWriter::create(vfs.clone(), path("000011.sst"), &FamilyOptions::default()).unwrap();
        writer.put(b"k", b"v").unwrap();
        writer.finish().unwrap();
        vfs
    };
    let of_open = with_table(opened(4, 1));
    append(&of_open, &log_path(4), &[put(2)]);
    append(&of_open, &log_path(14), &[put(3)]);
    assert!(doubts(&of_open, "an open let it go").is_empty());
    let rolled = with_table(anew(10, 7));
    assert!(!doubts(&rolled, "an ingest's").is_empty());
    drop(Db::open(DIR, &options(&rolled)).unwrap());
    assert!(rolled.exists(&path("lost/000011.sst")).unwrap());
}

/// A transaction is prepared there: nothing else keeps a log that every family has left.
#[test]
fn log_that_is_kept_for_a_prepare_is_missed() {
    let begin = |prepare: &[Vec<u8>]| {
        let vfs = begun(5);
        append(&vfs, &path(MANIFEST), &[flushed(FamilyId::DEFAULT, 10, 1), flushed(F, 10, 1), kept_from(4)]);
        append(&vfs, &log_path(4), prepare);
        append(&vfs, &log_path(10), &[put(2)]);
        vfs
    };
    let step = [&2u64.to_le_bytes()[..], &[1, 0, 0, 0, 9, 5, 1, 1, b't', 1, b'v', 10, 1, b'T']].concat();
    let vfs = begin(&[put(1), step.clone()]);
    assert!(doubts(&vfs, "whole").is_empty());
    lose(&vfs, 4);
    assert!(!doubts(&vfs, "log 4 is gone").is_empty());
    // A record that prepares a name again is damage for an open, and so for a check.
    let vfs = begin(&[put(1), step.clone(), step]);
    assert!(!is_whole(&vfs));
    assert!(!Db::open(DIR, &options(&vfs)).unwrap().recovery_doubts().is_empty());
}

/// A flush went on in a later log, so RocksDB had ended this one. A crash does not tear it then.
#[test]
fn log_that_is_torn_before_a_flush_is_no_whole_one() {
    let vfs = begun(5);
    let made = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    let other = Db::open("/other", &made).unwrap();
    other.put(&other.default_family(), b"m", b"v", &Default::default()).unwrap();
    other.flush(&[&other.default_family()]).unwrap();
    drop(other);
    let mut files = vfs.all_files().into_iter();
    let table = files.find(|file| file.extension().is_some_and(|end| end == "sst")).unwrap();
    let bytes = vfs.read_file(&table).unwrap();
    vfs.write_file(&path("000011.sst"), &bytes).unwrap();
    let flush = edit(|edit| {
        (edit.log_number, edit.last_seq) = (Some(FileNumber(10)), Some(SeqNo(1)));
        edit.added = vec![(0, Default::default())];
        let (_, meta) = edit.added.first_mut().unwrap();
        (meta.number, meta.file_bytes) = (FileNumber(11), bytes.len() as u64);
        (meta.smallest_seq, meta.largest_seq) = (SeqNo(1), SeqNo(1));
        let key = [b"m".to_vec(), (1u64 << 8 | 1).to_le_bytes().to_vec()].concat();
        (meta.smallest, meta.largest) = (key.clone(), key);
    });
    append(&vfs, &path(MANIFEST), &[flush, kept_from(4)]);
    append(&vfs, &log_path(4), &[put(1), put(2)]);
    append(&vfs, &log_path(10), &[]);
    assert!(doubts(&vfs, "whole").is_empty());
    vfs.truncate(&log_path(4), 25 + 9).unwrap();
    assert!(!is_whole(&vfs));
    Db::open(DIR, &options(&copy(&vfs))).err().expect("a family is ahead");
    assert!(!repair(DIR, &options(&copy(&vfs))).unwrap().lost_nothing());
    let mut how = options(&vfs);
    how.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    assert!(!Db::open(DIR, &how).unwrap().recovery_doubts().is_empty());
}

/// The table of the flush has numbers on both sides of what is lost, so that no number shows it.
#[test]
fn log_that_ends_with_zeros_before_a_flush_is_told() {
    let begin = |kept: usize, edits: &[Vec<u8>]| {
        let vfs = begun(5);
        append(&vfs, &path(MANIFEST), edits);
        append(&vfs, &log_path(4), &[put(1), put(2), put(3)]);
        append(&vfs, &log_path(10), &[]);
        let mut bytes = vfs.read_file(&log_path(4)).unwrap();
        bytes[25 * kept..].fill(0);
        vfs.write_file(&log_path(4), &bytes).unwrap();
        vfs
    };
    let edits = table(FamilyId::DEFAULT, (1, 3), Some(10));
    assert!(doubts(&begin(3, &edits), "whole").is_empty());
    is_told_for_f(&begin(1, &edits), "zeros from the second record on");
    // A crash left them, and a family was made behind an open that kept the MANIFEST.
    let made = [edit(|edit| (edit.family, edit.log_number) = (F, Some(FileNumber(10))))];
    assert!(doubts(&begin(1, &made), "RocksDB went on").is_empty());
}

/// A power loss leaves zeros from a page of the last record on, which was not synced. One that a flush had ended was.
#[test]
fn log_that_ends_with_zeros_inside_a_record_is_told_before_a_flush_alone() {
    let long = [&[2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 1, 1, b'2', 0x80, 0x40][..], &[b'v'; 8192]].concat();
    let begin = |edits: &[Vec<u8>], next: u64| {
        let vfs = begun(5);
        append(&vfs, &path(MANIFEST), edits);
        append(&vfs, &log_path(4), &[put(1), long.clone()]);
        let mut bytes = vfs.read_file(&log_path(4)).unwrap();
        bytes[4096..].fill(0);
        vfs.write_file(&log_path(4), &bytes).unwrap();
        append(&vfs, &log_path(10), &[put(next)]);
        vfs
    };
    assert!(doubts(&begin(&[], 2), "RocksDB went on").is_empty());
    assert!(!doubts(&begin(&[], 3), "another log tells that it was whole").is_empty());
    is_told_for_f(&begin(&table(FamilyId::DEFAULT, (1, 2), Some(10)), 3), "a flush had ended it");
}

/// With `track_and_verify_wals` each log of RocksDB's tells how long the one before it was.
#[test]
fn log_that_is_shorter_than_the_next_one_tells_is_missed() {
    let vfs = begun(5);
    append(&vfs, &path(MANIFEST), &[flushed(FamilyId::DEFAULT, 10, 3), kept_from(4)]);
    append(&vfs, &log_path(4), &[put(1), put(2), put(3)]);
    let fields = [4, 75, 3].map(u64::to_le_bytes).concat();
    let crc = base::checksum::mask(base::checksum::crc32c(&[&[130], &fields[..]].concat()));
    let begin = [&crc.to_le_bytes()[..], &[24, 0, 130], &fields].concat();
    vfs.write_file(&log_path(10), &begin).unwrap();
    assert!(doubts(&vfs, "whole").is_empty());
    let zeroed = copy(&vfs);
    cut(&vfs, 4, 2);
    is_told_for_f(&vfs, "shorter");
    let mut bytes = zeroed.read_file(&log_path(4)).unwrap();
    bytes[50..].fill(0);
    zeroed.write_file(&log_path(4), &bytes).unwrap();
    is_told_for_f(&zeroed, "as long, and its end is zeros");
}

/// An open names a number behind the last log, and then unlogged writes of one family are flushed while its log is empty.
#[test]
fn first_log_of_an_open_has_none_before_it() {
    let vfs = anew(10, 12);
    lose(&vfs, 4);
    assert!(doubts(&vfs, "log 10 is older than OPTIONS").is_empty());
}

#[test]
fn first_log_is_missed_where_none_was_let_go() {
    let begin = || {
        let vfs = begun(5);
        append(&vfs, &log_path(4), &[put(1), put(2), put(3)]);
        append(&vfs, &log_path(10), &[put(4)]);
        vfs
    };
    assert!(doubts(&begin(), "whole").is_empty());
    let vfs = begin();
    lose(&vfs, 4);
    assert!(!doubts(&vfs, "the first is gone").is_empty());
    append(&vfs, &path(MANIFEST), &[kept_from(5)]);
    assert!(doubts(&vfs, "it was let go").is_empty());
    // Imported tables bring numbers of another database.
    let vfs = begin();
    lose(&vfs, 4);
    append(&vfs, &path(MANIFEST), &table(F, (2, 3), None));
    assert!(doubts(&vfs, "imported").is_empty());
}

/// A table that was ingested behind the log's end has a number that tells how many writes came before it.
#[test]
fn end_of_the_last_log_is_missed_where_a_table_came_later() {
    let begin = |tables: &[[Vec<u8>; 2]], puts: &[u64]| {
        let vfs = begun(5);
        append(&vfs, &path(MANIFEST), &tables.concat());
        append(&vfs, &log_path(4), &puts.iter().map(|seq| put(*seq)).collect::<Vec<_>>());
        vfs
    };
    let ingested = |number| table(FamilyId::DEFAULT, (number, number), None);
    let whole = begin(&[ingested(6)], &[1, 2, 3, 4, 5]);
    assert!(doubts(&whole, "whole").is_empty());
    cut(&whole, 4, 2);
    assert!(!doubts(&whole, "cut between two records").is_empty());
    let torn = begin(&[ingested(6)], &[1, 2, 3, 4, 5]);
    torn.truncate(&log_path(4), 25 * 2 + 9).unwrap();
    assert!(!doubts(&torn, "cut off").is_empty());
    let flushed = || table(FamilyId::DEFAULT, (6, 6), Some(10));
    assert!(!doubts(&begin(&[flushed()], &[1, 2]), "a flush").is_empty());
    let behind_a_flush = [table(F, (1, 1), Some(10)), table(F, (6, 6), None)];
    assert!(!doubts(&begin(&behind_a_flush, &[1, 2]), "an ingest into a family with tables").is_empty());
    let behind_an_import = [table(F, (2, 2), None), table(F, (4, 6), Some(10))];
    assert!(!doubts(&begin(&behind_an_import, &[1]), "a flush behind what may be an import").is_empty());
    for (what, tables, puts) in [
        ("unlogged writes", vec![ingested(6)], vec![1, 3]),
        ("an ingest into another family", vec![table(F, (6, 6), None)], vec![1, 2]),
        ("tables that fill the gap", vec![table(F, (3, 5), Some(10)), ingested(6)], vec![1, 2]),
        ("a table on both sides", vec![table(F, (2, 5), Some(10)), ingested(6)], vec![1, 2]),
        ("an import before", vec![table(F, (500, 600), None), ingested(601)], vec![1, 2]),
    ] {
        assert!(doubts(&begin(&tables, &puts), what).is_empty(), "{what}");
    }
}

/// RocksDB begins a log, then the MANIFEST, and writes OPTIONS last. A copy has no IDENTITY.
#[test]
fn only_log_of_an_original_is_missed() {
    let begin = |logs: bool| {
        let vfs = begun(5);
        vfs.write_file(&path("IDENTITY"), b"5a6f0c1e-0000-4000-8000-000000000001").unwrap();
        write_options(&vfs, 7);
        if logs {
            append(&vfs, &log_path(4), &[put(1)]);
        }
        vfs
    };
    assert!(doubts(&begin(true), "whole").is_empty());
    let vfs = begin(false);
    let error = Db::open(DIR, &options(&copy(&vfs))).err().expect("its log is gone");
    let names = |what: &str| error.message().contains(what);
    assert!(error.kind() == ErrorKind::Corruption && names("OPTIONS-000007") && names("IDENTITY"), "{error}");
    assert!(!is_whole(&vfs) && !repair(DIR, &options(&copy(&vfs))).unwrap().lost_nothing());
    // RocksDB's repair leaves its first MANIFEST, and makes no log.
    let repaired = copy(&vfs);
    repaired.write_file(&path("MANIFEST-000001"), b"").unwrap();
    assert!(doubts(&repaired, "after a repair of RocksDB's").is_empty());
    vfs.remove_file(&path("IDENTITY")).unwrap();
    assert!(doubts(&vfs, "a copy").is_empty());
}

/// With `optimize_manifest_for_recovery`. The next open keeps the MANIFEST.
#[test]
fn close_that_names_a_log_that_is_not_begun_leaves_no_doubt() {
    let vfs = begun(5);
    vfs.write_file(&path("IDENTITY"), b"5a6f0c1e-0000-4000-8000-000000000001").unwrap();
    write_options(&vfs, 7);
    let closed = |family: FamilyId| {
        edit(|edit| {
            (edit.family, edit.prev_log, edit.last_seq) = (family, Some(FileNumber(0)), Some(SeqNo(1)));
            edit.log_number = Some(FileNumber(11));
        })
    };
    let flush = table(FamilyId::DEFAULT, (1, 1), Some(10));
    append(&vfs, &path(MANIFEST), &[&flush[..], &[closed(FamilyId::DEFAULT), kept_from(11), closed(F)]].concat());
    append(&vfs, &log_path(10), &[]);
    assert!(doubts(&vfs, "closed").is_empty());
    lose(&vfs, 10);
    assert!(!is_whole(&vfs), "the log that the close left is gone");
    append(&vfs, &path(MANIFEST), &kept(1));
    append(&vfs, &log_path(14), &[put(2)]);
    assert!(doubts(&vfs, "opened again").is_empty());
}

/// The first open of a database keeps the MANIFEST that its making began (`reuse_manifest_on_open`), and makes a family.
#[test]
fn family_of_the_first_open_names_the_first_log() {
    let vfs = begun(1);
    append(&vfs, &log_path(4), &[]);
    assert!(doubts(&vfs, "made").is_empty());
    append(&vfs, &log_path(4), &[put(1)]);
    assert!(doubts(&vfs, "written").is_empty());
    append(&vfs, &path("MANIFEST-000001"), &table(FamilyId::DEFAULT, (2, 2), Some(10)));
    append(&vfs, &log_path(10), &[put(3)]);
    assert!(doubts(&vfs, "flushed").is_empty());
}

/// A close gave the number before (`optimize_manifest_for_recovery`), and the open's first edit has the table.
#[test]
fn flush_of_an_open_behind_a_close_begins_no_log() {
    let vfs = begun(5);
    let read = table_by(FamilyId::DEFAULT, (1, 1), of_kept(2, |edit| edit.log_number = Some(FileNumber(9))));
    append(&vfs, &path(MANIFEST), &[&kept_and_given(1, 9)[2..], &[kept_from(9)], &kept(2), &read].concat());
    append(&vfs, &log_path(12), &[put(3)]); // number 2 went to no log
    assert!(doubts(&vfs, "opened").is_empty());
}

/// A new family names the open's own log.
#[test]
fn family_of_an_open_that_keeps_the_manifest_names_its_first_log() {
    let vfs = begun(5);
    append(&vfs, &path(MANIFEST), &[kept_and_given(1, 5), vec![kept_from(5)], kept_and_given(2, 9)].concat());
    let made = edit(|edit| {
        (edit.family, edit.add_family, edit.max_family) = (FamilyId(2), Some("g".to_owned()), Some(2));
        (edit.comparator, edit.log_number) = (Some("leveldb.BytewiseComparator".to_owned()), Some(FileNumber(12)));
    });
    append(&vfs, &path(MANIFEST), &[made]);
    append(&vfs, &log_path(12), &[]);
    assert!(doubts(&vfs, "made").is_empty());
    append(&vfs, &path(MANIFEST), &[kept_from(9)]);
    assert!(doubts(&vfs, "older logs were let go").is_empty());
    append(&vfs, &log_path(12), &[put(1)]);
    append(&vfs, &path(MANIFEST), &table(FamilyId::DEFAULT, (2, 2), Some(16)));
    append(&vfs, &log_path(16), &[]);
    assert!(doubts(&vfs, "flushed").is_empty());
}

/// A `TransactionDB` keeps it. Two flushes named it, and the second one's table has the larger number.
#[test]
fn log_that_is_empty_before_an_open_that_keeps_the_manifest_leaves_no_doubt() {
    let begin_from = |kept: u64, of_open: &[Vec<u8>]| {
        let vfs = begun(5);
        let default = table(FamilyId::DEFAULT, (1, 1), Some(16));
        let f = table_by(F, (2, 2), |edit| {
            (edit.log_number, edit.next_file) = (Some(FileNumber(16)), Some(FileNumber(31)))
        });
        append(&vfs, &path(MANIFEST), &[&default[..], &f, &[kept_from(kept)], of_open].concat());
        append(&vfs, &log_path(16), &[]);
        vfs
    };
    let vfs = begin_from(16, &kept_and_given(2, 37));
    append(&vfs, &log_path(41), &[put(3)]);
    assert!(doubts(&vfs, "written").is_empty());
    // What the open brings to tables is in the log before.
    let read = table_by(FamilyId::DEFAULT, (3, 4), of_kept(2, |edit| edit.log_number = Some(FileNumber(37))));
    let given = edit(of_kept(2, |edit| (edit.family, edit.log_number) = (F, Some(FileNumber(37)))));
    let vfs = begin_from(10, &[kept(2), read.to_vec(), vec![given]].concat());
    append(&vfs, &log_path(10), &[put(1), put(2), put(3), put(4)]);
    append(&vfs, &log_path(41), &[put(5)]);
    assert!(doubts(&vfs, "an older log has the numbers").is_empty());
    let vfs = begin_from(16, &[&kept_and_given(2, 37)[..], &[flushed(FamilyId::DEFAULT, 41, 2)]].concat());
    append(&vfs, &log_path(41), &[]);
    assert!(doubts(&vfs, "a family names the open's log").is_empty());
}

/// Its log numbers prove no log; the numbers of changes do, as everywhere.
#[test]
fn log_that_is_gone_before_an_open_that_keeps_the_manifest_is_missed_by_its_numbers() {
    let vfs = begun(5);
    append(&vfs, &path(MANIFEST), &[table(FamilyId::DEFAULT, (1, 1), Some(12)).to_vec(), kept(2)].concat());
    for (log, number) in [(4, 1), (12, 2), (41, 3)] {
        append(&vfs, &log_path(log), &[put(number)]);
    }
    assert!(doubts(&vfs, "whole").is_empty());
    lose(&vfs, 12);
    assert!(!doubts(&vfs, "number 2 is gone").is_empty());
}

/// RocksDB's repair leaves all tables and no log. An open that keeps its MANIFEST goes on behind the last number.
#[test]
fn tables_of_a_repair_of_rocksdbs_have_the_numbers_before_the_first_log() {
    let begin = |first| {
        let vfs = begun(5);
        append(&vfs, &path(MANIFEST), &table(FamilyId::DEFAULT, (2, 3), Some(0)));
        append(&vfs, &log_path(12), &[put(first)]);
        vfs
    };
    assert!(doubts(&begin(4), "whole").is_empty());
    assert!(!doubts(&begin(5), "number 4 is gone").is_empty());
}

/// It brings what it read to a table, and names the number behind the last log with it.
#[test]
fn flush_of_an_open_that_keeps_the_manifest_begins_no_log() {
    let vfs = begun(5);
    let read = table_by(FamilyId::DEFAULT, (1, 1), of_kept(2, |edit| edit.log_number = Some(FileNumber(9))));
    let given = edit(of_kept(2, |edit| (edit.family, edit.log_number) = (F, Some(FileNumber(9)))));
    append(&vfs, &path(MANIFEST), &[&kept(2)[..], &read, &[kept_from(9), given]].concat());
    append(&vfs, &log_path(12), &[put(3)]); // number 2 went to no log
    assert!(doubts(&vfs, "opened").is_empty());
    append(&vfs, &path(MANIFEST), &table(FamilyId::DEFAULT, (4, 4), Some(16)));
    append(&vfs, &log_path(16), &[put(5)]);
    assert!(doubts(&vfs, "flushed").is_empty());
}

/// What a flush for the later log brought to tables has smaller numbers than that log.
#[test]
fn old_log_in_the_place_of_a_later_one_is_told_and_passed_over() {
    let begin = || {
        let vfs = begun(5);
        let tables = [table(FamilyId::DEFAULT, (1, 3), Some(10)), table(F, (1, 3), Some(10))].concat();
        append(&vfs, &path(MANIFEST), &[tables, vec![kept_from(10)]].concat());
        append(&vfs, &log_path(10), &[put(4)]);
        vfs
    };
    assert!(doubts(&begin(), "whole").is_empty());
    let vfs = begin();
    lose(&vfs, 10);
    append(&vfs, &log_path(10), &[put(1), put(2), put(3)]);
    assert!(!is_whole(&vfs));
    let error = Db::open(DIR, &options(&copy(&vfs))).err().expect("its numbers are in tables");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Unsupported, Some(&*log_path(10))), "{error}");
    let report = repair(DIR, &options(&copy(&vfs))).unwrap();
    assert!(report.doubts.len() == 1 && report.doubts[0].family.is_none(), "{report}");
    // The log of a later open, behind what that one flushed, and behind what it found in tables.
    let flushes = table(FamilyId::DEFAULT, (1, 3), Some(11)).to_vec();
    for (last, tables) in [(0, flushes), (3, Vec::new())] {
        let vfs = opened(11, last);
        append(&vfs, &path("MANIFEST-000015"), &tables);
        append(&vfs, &log_path(14), &[put(1), put(2), put(3)]);
        assert!(!is_whole(&vfs), "through {last}");
        Db::open(DIR, &options(&copy(&vfs))).err().expect("its numbers are in tables");
        assert!(!repair(DIR, &options(&vfs)).unwrap().lost_nothing());
    }
}

/// Nobody else tells those who read with whatever can be read.
#[test]
fn readers_are_told_of_a_missing_log() {
    for bears in [false, true] {
        let reading = |vfs: &Arc<MemoryVfs>| {
            let mut how = OpenOptions { read_only: true, adopt_rocksdb: false, ..options(vfs) };
            how.bear_damage = bears;
            Db::open(DIR, &how).unwrap().recovery_doubts().len()
        };
        let vfs = database();
        assert_eq!(reading(&vfs), 0);
        lose(&vfs, 4);
        assert_eq!(reading(&vfs), 1, "bears damage: {bears}");
    }
}

/// A restore that keeps the logs of `there` over the backup of `backed_up`, whose meta file tells the number `last`.
fn restored(there: &Arc<MemoryVfs>, backed_up: &MemoryVfs, last: u64) -> base::Result<()> {
    let made = copy(backed_up);
    for log in [4, 10, 12].map(log_path).iter().filter(|log| made.exists(log).unwrap()) {
        made.remove_file(log).unwrap();
    }
    back_up(there, &made, last);
    let before = there.all_files();
    let how = BackupOptions { vfs: there.clone(), ..BackupOptions::default() };
    let kept = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
    let result = BackupEngine::open("/backups", &how).unwrap().restore(1, DIR, &kept);
    assert!(result.is_ok() || before.iter().all(|file| there.exists(file).unwrap()), "nothing is deleted");
    result
}

#[track_caller]
fn keeps_no_logs(there: &Arc<MemoryVfs>, backed_up: &MemoryVfs, last: u64) {
    let error = restored(there, backed_up, last).expect_err("writes would go");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

/// No number is missing in the logs: "f" was flushed since the backup, and its log was let go.
#[test]
fn restore_keeps_no_logs_where_one_was_let_go_that_the_backup_needs() {
    let backups = [(database(), path(MANIFEST), 6), (anew(12, 7), path("MANIFEST-000020"), 3)];
    for (backed_up, manifest, last) in backups {
        let there = copy(&backed_up);
        [4, 10].iter().for_each(|log| lose(&there, *log));
        append(&there, &manifest, &[flushed(F, 12, last), kept_from(12)]);
        if !there.exists(&log_path(12)).unwrap() {
            append(&there, &log_path(12), &[put(last + 1)]);
        }
        keeps_no_logs(&there, &backed_up, last);
    }
}

/// RocksDB's meta file counts what was in the logs, and the backup has none.
#[test]
fn restore_keeps_no_logs_for_a_backup_that_lacks_what_was_in_them() {
    let backed_up = begun(5);
    append(&backed_up, &path(MANIFEST), &[flushed(FamilyId::DEFAULT, 10, 1), flushed(F, 10, 1), kept_from(10)]);
    let there = copy(&backed_up);
    append(&there, &path(MANIFEST), &[flushed(FamilyId::DEFAULT, 12, 2), flushed(F, 12, 2), kept_from(12)]);
    append(&there, &log_path(12), &[]);
    keeps_no_logs(&there, &backed_up, 2);
    // With the log it is all there.
    let there = copy(&backed_up);
    append(&there, &log_path(10), &[put(2)]);
    restored(&there, &backed_up, 2).unwrap();
}

/// RocksDB leaves a table of another database the numbers that it has, and notes no external file.
#[test]
fn restore_keeps_no_logs_over_a_table_of_another_database() {
    let backed_up = begun(5);
    append(&backed_up, &path(MANIFEST), &[flushed(FamilyId::DEFAULT, 10, 3), flushed(F, 10, 3), kept_from(10)]);
    let made = OpenOptions { vfs: backed_up.clone(), ..OpenOptions::create_if_missing() };
    let other = Db::open("/other", &made).unwrap();
    other.put(&other.default_family(), b"m", b"v", &Default::default()).unwrap();
    other.flush(&[&other.default_family()]).unwrap();
    drop(other);
    let tables = backed_up.all_files().into_iter().filter(|file| file.starts_with("/other"));
    let table = tables.into_iter().find(|file| file.extension().is_some_and(|end| end == "sst")).unwrap();
    let bytes = backed_up.read_file(&table).unwrap();
    let there = copy(&backed_up);
    there.write_file(&path("000035.sst"), &bytes).unwrap();
    let named = edit(|edit| {
        edit.next_file = Some(FileNumber(36));
        edit.added = vec![(6, Default::default())];
        let (_, meta) = edit.added.first_mut().unwrap();
        (meta.number, meta.file_bytes) = (FileNumber(35), bytes.len() as u64);
        let key = [b"m".to_vec(), 1u64.to_le_bytes().to_vec()].concat();
        (meta.smallest, meta.largest) = (key.clone(), key);
    });
    append(&there, &path(MANIFEST), &[named]);
    append(&there, &log_path(10), &[put(4)]);
    let error = restored(&there, &backed_up, 3).unwrap_err();
    assert!(error.message().contains("was ingested since"), "{error}");
}
