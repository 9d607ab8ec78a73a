//! The rules that a sequence of edits must keep, and what is made of one that does.

use base::ErrorKind;
use vfs::memory::MemoryVfs;
use vfs::{IfExists, IoClass, Vfs};
use wal::framed::FramedWriter;

use super::*;
use crate::core::open_options::OpenOptions;
use crate::database::handle::Database;
use crate::maintenance::check::{CheckOptions, check};
use crate::maintenance::repair::repair;
use crate::version::edit::LogEnd;
use crate::version::edit_codec::encode_record;
use crate::version::manifest::manifest_path;
use crate::version::recover::{Recovered, recover};
use crate::version::replay::Replay;
use crate::version::table_file::Backing;

/// A directory whose MANIFEST has one record for each edit.
fn written(edits: &[VersionEdit]) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    vfs.create_dir_all(dir()).unwrap();
    let file = vfs.create(&manifest_path(dir(), FileNumber(5)), IfExists::Fail).unwrap();
    let mut writer = FramedWriter::new(file, IoClass::Manifest);
    for edit in edits {
        writer.append(&encode_record(std::slice::from_ref(edit))).unwrap();
    }
    vfs.write_file(&dir().join("CURRENT"), b"MANIFEST-000005\n").unwrap();
    vfs
}

/// What every MANIFEST needs.
fn head() -> VersionEdit {
    VersionEdit {
        comparator: Some(COMPARATOR.into()),
        log_number: Some(FileNumber(0)),
        next_file: Some(FileNumber(100)),
        last_seq: Some(SeqNo(50)),
        ..VersionEdit::default()
    }
}

fn create(id: u32, name: &str) -> VersionEdit {
    VersionEdit { add_family: Some(name.into()), comparator: Some(COMPARATOR.into()), ..VersionEdit::new(FamilyId(id)) }
}

fn drop_family(id: u32) -> VersionEdit {
    VersionEdit { drop_family: true, ..VersionEdit::new(FamilyId(id)) }
}

fn add(number: u64, level: usize) -> VersionEdit {
    VersionEdit { added: vec![(level, table(number, number, number, 1))], ..VersionEdit::default() }
}

fn delete(number: u64, level: usize) -> VersionEdit {
    VersionEdit { deleted: vec![(level, FileNumber(number))], ..VersionEdit::default() }
}

fn in_group(left: u32, edit: VersionEdit) -> VersionEdit {
    VersionEdit { atomic_group: Some(left), ..edit }
}

/// Compactions take away what they made their tables of.
#[test]
fn numbers_of_flushes_are_remembered_and_those_of_compactions_are_not() {
    let made = |number, (first, last)| {
        (0, FileMeta { smallest_seq: SeqNo(first), largest_seq: SeqNo(last), ..table(number, 1, 2, 1) })
    };
    let flush = |number, numbers| VersionEdit { added: vec![made(number, numbers)], ..VersionEdit::default() };
    let compaction = VersionEdit { added: vec![made(9, (6, 8)), made(10, (0, 0))], ..delete(7, 0) };
    let recovered = after(vec![flush(6, (2, 3)), flush(7, (2, 4)), flush(8, (6, 6)), compaction]).unwrap();
    let flushed: Vec<_> = recovered.rocksdb_logs.flushed.iter().map(|(first, last)| (first.0, last.0)).collect();
    assert_eq!(flushed, [(2, 4), (6, 6)]);
    let may_hold = |next, first| recovered.rocksdb_logs.flushes_may_hold(SeqNo(next), SeqNo(first));
    assert!(may_hold(2, 5) && may_hold(6, 7) && !may_hold(2, 6) && !may_hold(1, 2) && !may_hold(6, 8));
}

fn after(edits: Vec<VersionEdit>) -> Result<Recovered> {
    recover(&*written(&[vec![head()], edits].concat()), dir())
}

fn table_numbers(recovered: &Recovered) -> Vec<u64> {
    recovered.families[0].tables.iter().map(|(_, meta)| meta.number.0).collect()
}

/// As in RocksDB's first MANIFEST: an open takes the comparator of its options then.
#[test]
fn default_family_needs_no_comparator() {
    let mut replay = Replay::default();
    let first = VersionEdit { next_file: Some(FileNumber(2)), last_seq: Some(SeqNo(0)), ..VersionEdit::default() };
    replay.add(first).unwrap();
    let recovered = replay.finish(FileNumber(1)).unwrap();
    assert_eq!((recovered.families.len(), recovered.families[0].comparator.as_str()), (1, ""));
}

#[test]
fn sequences_that_break_a_rule_are_refused() {
    let private = VersionEdit { flushed_through: Some(SeqNo(1)), ..VersionEdit::default() };
    let other_order = VersionEdit { comparator: Some("other".into()), ..VersionEdit::default() };
    let prev_log = VersionEdit { prev_log: Some(FileNumber(3)), ..VersionEdit::default() };
    let blob = FileMeta { oldest_blob: 4, ..table(9, 1, 2, 1) };
    let blob = VersionEdit { added: vec![(0, blob)], ..VersionEdit::default() };
    let outside = parts(&[part(8, 5, 200)]);
    let unnamed = VersionEdit { add_family: Some("x".into()), ..VersionEdit::new(FamilyId(1)) };
    for (edits, message) in [
        (vec![create(1, "a"), create(1, "b")], "family 1 is created twice"),
        (vec![create(1, "a"), drop_family(1), create(1, "b")], "family 1 is created twice"),
        (vec![create(1, "a"), create(2, "a")], "two families have the name \"a\""),
        (vec![create(1, "default")], "two families have the name \"default\""),
        (vec![drop_family(1)], "family 1 is dropped, but cannot be or does not exist"),
        (vec![drop_family(0)], "family 0 is dropped, but cannot be or does not exist"),
        (vec![VersionEdit::new(FamilyId(3))], "an edit is for family 3, which does not exist"),
        (vec![unnamed], "the family \"x\" has no comparator"),
        (vec![other_order], "the family \"default\" changes its comparator from leveldb.BytewiseComparator to other"),
        (vec![add(7, 1), add(7, 2)], "table 000007.sst is added but is there already"),
        (vec![add(7, 1), delete(7, 2)], "table 000007.sst is deleted from level 2 but is not there"),
        (vec![in_group(2, add(7, 1)), in_group(0, add(8, 1))], "a group has 0 edits left after 2"),
        (vec![in_group(1, add(7, 1)), add(8, 1)], "an edit stands inside a group that it is no part of"),
        (vec![private], "a private field stands in a MANIFEST without the fence"),
        (vec![outside], "a private field stands in a MANIFEST without the fence"),
        (vec![VersionEdit::fence()], "the fence is not the first edit"),
        (vec![prev_log], "a previous log, as LevelDB wrote it"),
        (vec![blob], "table 000009.sst refers to blob file 4"),
    ] {
        let error = after(edits).unwrap_err();
        assert_eq!(error.message(), message);
        assert!(error.path().is_some(), "{error}");
        assert!(matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported));
    }
    let newer = VersionEdit { fence: Some(2), ..VersionEdit::default() };
    let error = recover(&*written(&[newer, head()]), dir()).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Unsupported, "private formats of version 2; this is version 1")
    );
    let no_numbers = VersionEdit { next_file: None, ..head() };
    assert_eq!(recover(&*written(&[no_numbers]), dir()).unwrap_err().kind(), ErrorKind::Corruption);
}

/// A virtual table in a file of so many bytes.
fn part(number: u64, file: u64, bytes: u64) -> FileMeta {
    let backing = Some(Backing { number: FileNumber(file), file_bytes: bytes });
    FileMeta { backing, ..table(number, number, number, 1) }
}

fn parts(parts: &[FileMeta]) -> VersionEdit {
    VersionEdit { added: parts.iter().map(|meta| (1, meta.clone())).collect(), ..VersionEdit::default() }
}

#[test]
fn files_of_virtual_tables_are_theirs_alone() {
    let of_second = |edit: VersionEdit| VersionEdit { family: FamilyId(1), ..edit };
    let other = "lies in 000005.sst, of which another table says otherwise, or that is another family's";
    let elsewhere = FileMeta { path_id: 1, ..part(9, 5, 200) };
    let after =
        |edits: Vec<VersionEdit>| recover(&*written(&[vec![VersionEdit::fence(), head()], edits].concat()), dir());
    for (edits, message) in [
        (vec![parts(&[part(8, 5, 200), part(9, 5, 201)])], other),
        (vec![parts(&[part(8, 5, 200), elsewhere])], other),
        (vec![create(1, "a"), parts(&[part(8, 5, 200)]), of_second(parts(&[part(9, 5, 200)]))], other),
        (
            vec![add(5, 2), parts(&[part(8, 5, 200)])],
            "table 000005.sst is there, and virtual tables are said to lie in it",
        ),
        (vec![parts(&[part(8, 5, 200), part(9, 8, 200)])], "table 000008.sst is there, and virtual tables"),
    ] {
        let error = after(edits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.message().contains(message) && error.path().is_some(), "{error}");
    }
    let whole = after(vec![add(5, 1), VersionEdit { deleted: delete(5, 1).deleted, ..parts(&[part(8, 500, 200)]) }]);
    assert_eq!(whole.unwrap().next_file, FileNumber(501), "no number of a file is given out again");
}

#[test]
fn the_file_of_virtual_tables_is_checked() {
    let edits = [VersionEdit::fence(), head(), parts(&[part(8, 5, 200), part(9, 5, 200)])];
    let vfs = written(&edits);
    let family = recover(&*vfs, dir()).unwrap().families.remove(0);
    let error = family.check_tables(&*vfs, dir()).unwrap_err();
    assert_eq!(error.to_string(), "a table of the family \"default\" is missing (/db/000005.sst)");
    vfs.write_file(Path::new("/db/000005.sst"), &[0; 109]).unwrap();
    let error = family.check_tables(&*vfs, dir()).unwrap_err();
    assert_eq!(error.to_string(), "the table has 109 bytes, the MANIFEST says 200 (/db/000005.sst)");
    vfs.write_file(Path::new("/db/000005.sst"), &[0; 200]).unwrap();
    family.check_tables(&*vfs, dir()).unwrap();
}

#[test]
fn a_group_holds_as_a_whole_or_not_at_all() {
    let mut group = vec![add(1, 1), in_group(2, add(7, 1)), in_group(1, delete(1, 1)), in_group(0, add(8, 1))];
    let whole = after(group.clone()).unwrap();
    assert_eq!((table_numbers(&whole), whole.warnings.len()), (vec![7, 8], 0));
    group.pop();
    let cut = after(group).unwrap();
    assert_eq!(table_numbers(&cut), [1]);
    assert_eq!(cut.warnings, ["a group of edits lacks its last 1 and is left out"]);
}

#[test]
fn numbers_only_grow() {
    let lower = VersionEdit {
        log_number: Some(FileNumber(3)),
        next_file: Some(FileNumber(4)),
        last_seq: Some(SeqNo(5)),
        min_log_to_keep: Some(FileNumber(2)),
        ..VersionEdit::default()
    };
    let higher =
        VersionEdit { log_number: Some(FileNumber(9)), min_log_to_keep: Some(FileNumber(8)), ..VersionEdit::default() };
    let recovered = after(vec![higher, lower]).unwrap();
    assert_eq!((recovered.next_file, recovered.last_seq), (FileNumber(100), SeqNo(50)));
    assert_eq!((recovered.min_log_to_keep, recovered.families[0].log_number), (FileNumber(8), FileNumber(9)));
    assert_eq!(recovered.warnings, ["the family \"default\" goes back from log 000009 to 000003"]);
}

#[test]
fn sequence_numbers_go_on_above_every_number_there() {
    let edit = |edit: VersionEdit| {
        let head = VersionEdit { last_seq: Some(SeqNo(5)), ..head() };
        recover(&*written(&[VersionEdit::fence(), head, edit]), dir()).unwrap().last_seq
    };
    assert_eq!(edit(VersionEdit::default()), SeqNo(5));
    assert_eq!(edit(add(70, 1)), SeqNo(70));
    assert_eq!(edit(VersionEdit { flushed_through: Some(SeqNo(8)), ..VersionEdit::default() }), SeqNo(8));
    assert_eq!(edit(VersionEdit { linked_ingests: vec![SeqNo(9)], ..VersionEdit::default() }), SeqNo(9));
    let end = LogEnd { log: FileNumber(3), end_offset: 0, last_seq: SeqNo(77), on_disk: true };
    assert_eq!(edit(VersionEdit { log_ends: vec![end], ..VersionEdit::default() }), SeqNo(77));
}

#[test]
fn file_numbers_go_on_above_every_file_there() {
    let vfs = written(&[head(), add(150, 1)]);
    assert_eq!(recover(&*vfs, dir()).unwrap().next_file, FileNumber(151));
    vfs.write_file(&dir().join("000200.splog"), b"").unwrap();
    vfs.write_file(&dir().join("000999.txt"), b"").unwrap();
    assert_eq!(recover(&*vfs, dir()).unwrap().next_file, FileNumber(201));
}

#[test]
fn dropped_families_are_left_out_and_their_ids_stay_used() {
    let recovered = after(vec![create(1, "a"), create(4, "b"), drop_family(4), create(5, "b")]).unwrap();
    let names: Vec<_> = recovered.families.iter().map(|family| (family.id.0, &*family.name)).collect();
    assert_eq!(names, [(0, "default"), (1, "a"), (5, "b")]);
    assert_eq!(recovered.max_family, 5);
}

#[test]
fn linked_ingests_are_kept_until_t_passes_them() {
    let edit = |through: Option<u64>, ingests: &[u64]| VersionEdit {
        flushed_through: through.map(SeqNo),
        linked_ingests: ingests.iter().copied().map(SeqNo).collect(),
        ..VersionEdit::default()
    };
    let edits = [VersionEdit::fence(), head(), edit(Some(10), &[]), edit(None, &[20, 15, 30]), edit(Some(20), &[])];
    let recovered = recover(&*written(&edits), dir()).unwrap();
    assert_eq!(recovered.families[0].flushed_through, Some(SeqNo(20)));
    assert_eq!(recovered.families[0].linked_ingests, [SeqNo(30)]);
}

#[test]
fn level_zero_without_epochs_is_ordered_by_sequence_numbers() {
    let with = |number: u64, level: usize, seq: u64| {
        let meta =
            FileMeta { largest_seq: SeqNo(seq), smallest_seq: SeqNo(seq), epoch_number: 0, ..table(number, 0, 9, 0) };
        VersionEdit { added: vec![(level, meta)], ..VersionEdit::default() }
    };
    let recovered = after(vec![with(7, 0, 30), with(8, 0, 20), with(9, 0, 40), with(6, 1, 10)]).unwrap();
    let (store, _) = store();
    let version = recovered.families[0].version(InternalOrder::default(), 7, &store).unwrap();
    let order: Vec<_> =
        version.all_files().map(|(level, file)| (level, file.number().0, file.meta.epoch_number)).collect();
    assert_eq!(order, [(0, 9, 4), (0, 7, 3), (0, 8, 2), (1, 6, 1)]);
    assert_eq!(version.max_epoch(), 4);
}

#[test]
fn tables_are_checked_against_their_files() {
    let vfs = written(&[head(), add(7, 1), add(8, 2)]);
    let family = recover(&*vfs, dir()).unwrap().families.remove(0);
    vfs.write_file(Path::new("/db/000007.sst"), &[0; 107]).unwrap();
    let error = family.check_tables(&*vfs, dir()).unwrap_err();
    assert_eq!(error.to_string(), "a table of the family \"default\" is missing (/db/000008.sst)");
    vfs.write_file(Path::new("/db/000008.sst"), &[0; 107]).unwrap();
    let error = family.check_tables(&*vfs, dir()).unwrap_err();
    assert_eq!(error.to_string(), "the table has 107 bytes, the MANIFEST says 108 (/db/000008.sst)");
    vfs.write_file(Path::new("/db/000008.sst"), &[0; 108]).unwrap();
    family.check_tables(&*vfs, dir()).unwrap();
}

#[test]
fn a_table_in_another_path_of_rocksdb_is_refused() {
    let far = FileMeta { path_id: 1, ..table(8, 0, 9, 1) };
    let vfs = written(&[head(), VersionEdit { added: vec![(2, far)], ..VersionEdit::default() }]);
    let family = recover(&*vfs, dir()).unwrap().families.remove(0);
    let what =
        "table 000008.sst lies in path 1 of RocksDB's db_paths, and only tables in the database's directory are read";
    let is_refused = |error: Error| assert_eq!((error.kind(), error.message()), (ErrorKind::Unsupported, what));
    is_refused(family.check_tables(&*vfs, dir()).unwrap_err());
    let how = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    let problems = check(dir(), &how, &mut |_| {}).unwrap().problems;
    let of_table: Vec<_> = problems.into_iter().filter(|problem| problem.to_string().contains("000008")).collect();
    assert_eq!(of_table.len(), 1, "it does not count as missing: {of_table:?}");
    of_table.into_iter().for_each(|problem| is_refused(problem.0));
    let mut options = OpenOptions { vfs: vfs.clone(), adopt_rocksdb: true, ..OpenOptions::default() };
    is_refused(Database::open(dir(), &options).err().unwrap());
    let files = || vfs.all_files().into_iter().filter(|path| !path.ends_with("LOCK")).collect::<Vec<_>>();
    let before = files();
    is_refused(repair(dir(), &options).unwrap_err());
    assert_eq!(files(), before);
    options.db.best_efforts_recovery = true;
    is_refused(Database::open(dir(), &options).err().unwrap());
    vfs.remove_file(&dir().join("CURRENT")).unwrap();
    is_refused(Database::open(dir(), &options).err().unwrap());
    is_refused(repair(dir(), &options).unwrap_err());
}
