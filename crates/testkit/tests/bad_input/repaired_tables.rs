//! Repair of damaged tables: what can be read of a table stays, wherever it is and whatever names it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::options::apply_string;
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::version::recover::recover;
use testkit::engine::{
    Db, ErrorKind, FamilyOptions, IngestOptions, IngestRequest, OpenOptions, RepairReport, TableWriter, WriteOptions,
    repair,
};
use testkit::run::DIR;
use vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule, Vfs};

use crate::common::{Contents, INGESTS, PLAIN, REFERRING, copy, files, read_with};
use crate::repair::{assert_same, check_files, is_of_manifest};

/// A data block of a table of [`many`] holds a few keys.
const KEYS: usize = 400;

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    over(vfs.clone())
}

fn over(vfs: Arc<dyn Vfs>) -> OpenOptions {
    OpenOptions { vfs, ..OpenOptions::create_if_missing() }
}

/// A database with one table of many blocks, and the table.
fn many() -> (Arc<MemoryVfs>, PathBuf) {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    let family = db.default_family();
    for n in 0..KEYS {
        db.put(&family, format!("k{n:04}").as_bytes(), &[n as u8; 100], &WriteOptions::default()).unwrap();
    }
    db.flush(&[&family]).unwrap();
    db.close().unwrap();
    let table = files(&vfs, ".sst").remove(0);
    (vfs, table)
}

fn contents(vfs: &Arc<MemoryVfs>) -> Contents {
    read_with(&options(vfs), DIR).unwrap()
}

fn count(contents: &Contents) -> usize {
    contents.values().map(|pairs| pairs.len()).sum()
}

/// Damages a block in the middle of a table.
fn flip(vfs: &MemoryVfs, table: &Path) {
    let len = vfs.read_file(table).unwrap().len();
    vfs.flip_bit(table, 8 * (len as u64 / 2)).unwrap();
}

fn append(vfs: &MemoryVfs, table: &Path, tail: &[u8]) {
    let bytes = [&vfs.read_file(table).unwrap()[..], tail].concat();
    vfs.write_file(table, &bytes).unwrap();
}

/// Keys that are lost, of family and bounds alone.
fn spans(report: &RepairReport) -> Vec<String> {
    report.lost.iter().map(|lost| format!("{:?} {:?}", lost.family, lost.keys)).collect()
}

/// The MANIFEST has the table's length: an open refuses another one, and a repair reads as far as that.
#[test]
fn bytes_behind_a_table_cost_nothing() {
    for subject in [PLAIN, INGESTS] {
        let whole = subject.database();
        let expected = subject.read(&copy(&whole)).unwrap();
        for table in files(&whole, ".sst") {
            let other = whole.read_file(&table).unwrap();
            for tail in [&[0][..], &[0; 4096], &other] {
                let vfs = copy(&whole);
                append(&vfs, &table, tail);
                let longer = vfs.read_file(&table).unwrap();
                subject.refused(&vfs, &table);
                assert!(!check_files(&vfs).is_whole());
                let report = repair(DIR, &subject.options(&vfs)).unwrap();
                assert!(report.lost_nothing() && report.notes.len() == 1, "{}: {report:#?}", table.display());
                assert_eq!(subject.read(&vfs).unwrap(), expected, "{}", table.display());
                let kept = Path::new(DIR).join("lost").join(table.file_name().unwrap());
                assert_eq!(vfs.read_file(&kept).unwrap(), longer);
                assert!(files(&vfs, ".dbtmp").is_empty());
                let again = repair(DIR, &subject.options(&vfs)).unwrap();
                assert!(again.lost_nothing() && again.notes.is_empty(), "{again:#?}");
            }
        }
    }
}

#[test]
fn damaged_table_with_bytes_behind_it_loses_the_damage_alone() {
    let (whole, table) = many();
    let expected = contents(&copy(&whole));
    let vfs = copy(&whole);
    flip(&vfs, &table);
    append(&vfs, &table, &[0; 512]);
    let report = repair(DIR, &options(&vfs)).unwrap();
    let found = contents(&vfs);
    assert_same("flipped and longer", &report, &found, &expected);
    assert!(count(&found) > KEYS / 2 && report.lost.len() == 1, "{report:#?}");
    assert!(report.lost[0].why.contains(&*table.to_string_lossy()), "{report:#?}");
}

/// Interrupted between any two steps, a repair ends as an uninterrupted one does.
#[test]
fn interrupted_repair_of_a_damaged_table_loses_no_more() {
    let (damaged, table) = many();
    flip(&damaged, &table);
    let uninterrupted = copy(&damaged);
    let before = uninterrupted.operations();
    let expected = repair(DIR, &options(&uninterrupted)).unwrap();
    let operations = uninterrupted.operations() - before;
    let left = contents(&uninterrupted);
    assert!(count(&left) > KEYS / 2 && count(&left) < KEYS);
    let mut begun_again = 0;
    for at in 1..operations {
        let vfs = copy(&damaged);
        vfs.crash_at(vfs.operations() + at, at, CrashPolicy::ALL[at as usize % CrashPolicy::ALL.len()]);
        let _ = repair(DIR, &options(&vfs));
        let Some(image) = vfs.take_crash_image() else { continue };
        let report = repair(DIR, &options(&image)).unwrap();
        let is_begun_again = !report.lost.is_empty();
        if is_begun_again {
            assert_eq!(spans(&report), spans(&expected), "crashed at {at} of {operations}: {report:#?}");
        }
        begun_again += u32::from(is_begun_again && !image.exists(&table).unwrap());
        assert_eq!(contents(&image), left, "crashed at {at} of {operations}: {report:#?}");
    }
    assert!(begun_again > 0);
}

/// A table that can be read again goes back, as after a read error that has passed.
#[test]
fn whole_table_that_an_earlier_repair_moved_is_back() {
    for subject in [PLAIN, INGESTS] {
        let whole = subject.database();
        let expected = subject.read(&copy(&whole)).unwrap();
        for table in files(&whole, ".sst") {
            let vfs = copy(&whole);
            let lost = Path::new(DIR).join("lost");
            vfs.create_dir_all(&lost).unwrap();
            vfs.rename(&table, &lost.join(table.file_name().unwrap())).unwrap();
            let report = repair(DIR, &subject.options(&vfs)).unwrap();
            assert!(report.lost_nothing() && report.notes.len() == 1, "{}: {report:#?}", table.display());
            assert_eq!(subject.read(&vfs).unwrap(), expected, "{}", table.display());
        }
    }
}

/// Without a MANIFEST all is in doubt, and what can be read is there.
#[test]
fn damaged_table_without_a_manifest_keeps_what_can_be_read() {
    let (whole, table) = many();
    let expected = contents(&copy(&whole));
    let vfs = copy(&whole);
    flip(&vfs, &table);
    let of_manifest = vfs.all_files().into_iter().filter(|path| path.starts_with(DIR) && is_of_manifest(path));
    of_manifest.for_each(|path| vfs.remove_file(&path).unwrap());
    let report = repair(DIR, &options(&vfs)).unwrap();
    let found = contents(&vfs);
    assert_same("no MANIFEST", &report, &found, &expected);
    assert!(count(&found) > KEYS / 2 && report.lost.len() == 1 && !report.doubts.is_empty(), "{report:#?}");
    assert!(report.lost[0].keys.is_some() && report.lost[0].family.is_some(), "{report:#?}");
    assert!(report.lost[0].path.as_ref().is_some_and(|path| vfs.exists(path).unwrap()), "{report:#?}");
}

/// Bytes that the storage does not return are damage of their file.
#[test]
fn table_that_cannot_be_read_is_damaged() {
    let (whole, table) = many();
    let expected = contents(&copy(&whole));
    let name = table.file_name().unwrap().to_string_lossy().into_owned();
    let read = |code| Rule::new(Fault::Error(code)).on(Operation::Read).path(&*name);
    for (first, second) in (1..6).flat_map(|first| (first..40).map(move |second| (first, second))) {
        let vfs = copy(&whole);
        let faulty = FaultVfs::new(vfs.clone());
        faulty.inject(read(FaultCode::Io).nth(first));
        let rule = read(FaultCode::Io).nth(second);
        faulty.inject(if first == second { rule.sticky() } else { rule });
        let report = repair(DIR, &over(faulty.clone())).unwrap();
        faulty.clear();
        let (found, place) = (contents(&vfs), format!("read {first} and {second}"));
        assert_same(&place, &report, &found, &expected);
        let is_told = report.unreadable.iter().any(|what| what.contains("cannot read"));
        assert!(report.lost.is_empty() || is_told, "{place}: {report:#?}");
    }
    let vfs = copy(&whole);
    let before = vfs.all_files();
    let faulty = FaultVfs::new(vfs.clone());
    faulty.inject(read(FaultCode::TooManyFiles).sticky());
    let error = repair(DIR, &over(faulty)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(vfs.all_files(), before);
    assert_eq!(contents(&vfs), expected);
    assert_eq!(recover(&*vfs, Path::new(DIR)).unwrap().tables().count(), 1);
}

/// As [`many`], ingested over older values of the same keys.
fn ingested() -> (Arc<MemoryVfs>, PathBuf) {
    let (vfs, older) = many();
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    let family = db.default_family();
    let path = PathBuf::from("/new.sst");
    let mut table = TableWriter::create(vfs.clone(), &path, &family.options()).unwrap();
    (0..KEYS).for_each(|n| table.put(format!("k{n:04}").as_bytes(), &[!n as u8; 100]).unwrap());
    table.finish().unwrap();
    db.ingest_all(&[IngestRequest::new(family, vec![path])], &IngestOptions::default()).unwrap();
    db.close().unwrap();
    let table = files(&vfs, ".sst").into_iter().find(|table| *table != older).unwrap();
    (vfs, table)
}

/// Places in the properties block of a table.
fn of_properties(vfs: &MemoryVfs, table: &Path) -> Vec<u64> {
    let bytes = vfs.read_file(table).unwrap();
    let place = |name: &[u8]| bytes.windows(name.len()).position(|part| part == name).unwrap() as u64;
    (place(b"rocksdb.block.based.table.index.type")..place(b"rocksdb.raw.value.size")).step_by(11).collect()
}

/// The MANIFEST knows the family, the order and the number of an ingest; the index names all blocks.
#[test]
fn table_with_damaged_properties_is_whole() {
    for (whole, table) in [many(), ingested()] {
        let expected = contents(&copy(&whole));
        for place in of_properties(&whole, &table) {
            let vfs = copy(&whole);
            vfs.flip_bit(&table, 8 * place).unwrap();
            let report = repair(DIR, &options(&vfs)).unwrap();
            assert!(report.lost_nothing() && report.notes.len() == 1, "{place}: {report:#?}");
            assert_eq!(contents(&vfs), expected, "{place}");
        }
    }
}

/// Numbers of an ingest and of a flush look alike if a block is missing: only a number that is there proves a flush.
#[test]
fn table_with_damaged_properties_and_blocks_is_kept_if_its_numbers_are_certain() {
    for ((whole, table), is_certain) in [(many(), true), (ingested(), false)] {
        let expected = contents(&copy(&whole));
        let vfs = copy(&whole);
        vfs.flip_bit(&table, 8 * of_properties(&whole, &table)[0]).unwrap();
        flip(&vfs, &table);
        let report = repair(DIR, &options(&vfs)).unwrap();
        let found = contents(&vfs);
        assert_same("properties and a block", &report, &found, &expected);
        let of_table = found["default"].iter().filter(|(key, value)| expected["default"].get(*key) == Some(*value));
        assert_eq!(of_table.count() > KEYS / 2, is_certain, "{report:#?}");
        let all = Some((b"k0000".to_vec(), format!("k{:04}", KEYS - 1).into_bytes()));
        assert!(report.lost.iter().any(|lost| lost.keys == all), "{report:#?}");
    }
}

/// Tables of every kind and in every place, without their properties: what is not told of is right.
#[test]
fn tables_with_damaged_properties_lose_nothing_unsaid() {
    for subject in [PLAIN, INGESTS] {
        let whole = subject.database();
        let expected = subject.read(&copy(&whole)).unwrap();
        for table in files(&whole, ".sst") {
            let bytes = whole.read_file(&table).unwrap();
            let name = b"rocksdb.num.entries";
            let Some(place) = bytes.windows(name.len()).position(|part| part == name) else { continue };
            let vfs = copy(&whole);
            vfs.flip_bit(&table, 8 * place as u64).unwrap();
            let report = repair(DIR, &subject.options(&vfs)).unwrap();
            assert_same(&table.to_string_lossy(), &report, &subject.read(&vfs).unwrap(), &expected);
        }
    }
}

/// All values of a lost log have the same error: each is told of.
#[test]
fn every_value_of_a_damaged_log_is_told_of() {
    let whole = REFERRING.database();
    let expected = REFERRING.read(&copy(&whole)).unwrap();
    let log = files(&whole, ".splog")[0].clone();
    let len = whole.read_file(&log).unwrap().len();
    for left in [0, 100, len / 2] {
        let vfs = copy(&whole);
        vfs.truncate(&log, left).unwrap();
        let report = repair(DIR, &REFERRING.options(&vfs)).unwrap();
        let found = REFERRING.read(&vfs).unwrap();
        assert_same(&format!("the first {left} bytes of the log"), &report, &found, &expected);
        assert!(left > 100 || report.lost.len() == 2, "b can be read, c and d are neighbours: {report:#?}");
        assert_eq!(found["default"].get(&b"b"[..]), Some(&b"1".to_vec()));
    }
}

/// Two tables with the same keys, the second with newer values. Their blocks have equal lengths.
fn two_generations() -> (Arc<MemoryVfs>, [PathBuf; 2]) {
    let vfs = MemoryVfs::new(1);
    let mut options = options(&vfs);
    let stays =
        "compression=kNoCompression;disable_auto_compactions=true;block_based_table_factory={block_restart_interval=1}";
    let mut family = FamilyOptions::default();
    apply_string(&mut family, stays).unwrap();
    options.families = vec![("default".to_owned(), family)];
    let db = Db::open(DIR, &options).unwrap();
    let family = db.default_family();
    for generation in 1..=2u8 {
        for n in 0..KEYS {
            let value = [&[generation; 90][..], &[n as u8; 10]].concat();
            db.put(&family, format!("k{n:04}").as_bytes(), &value, &WriteOptions::default()).unwrap();
        }
        db.flush(&[&family]).unwrap();
    }
    drop(family);
    db.close().unwrap();
    let tables = files(&vfs, ".sst").try_into().unwrap();
    (vfs, tables)
}

fn is_whole(vfs: &Arc<MemoryVfs>) -> bool {
    let options = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    check(Path::new(DIR), &options, &mut |_| {}).unwrap().is_whole()
}

/// A disk wrote into the wrong place, or not at all: the block there is whole, and of another table.
#[test]
fn blocks_of_another_table_are_no_silent_loss() {
    let (whole, [older, newer]) = two_generations();
    let expected = contents(&copy(&whole));
    let (older, bytes) = (whole.read_file(&older).unwrap(), whole.read_file(&newer).unwrap());
    let parts = (4060..4120).map(|end| (0, end)).chain((0..9).map(|page| (4096 * page, 4096 * (page + 2))));
    let mut whole_blocks = 0;
    for (from, end) in parts.chain([(0, older.len())]) {
        let vfs = copy(&whole);
        let end = end.min(older.len());
        vfs.write_file(&newer, &[&bytes[..from], &older[from..end], &bytes[end..]].concat()).unwrap();
        let report = repair(DIR, &options(&vfs)).unwrap();
        let found = contents(&vfs);
        assert_same(&format!("bytes {from} to {end}"), &report, &found, &expected);
        assert!(!report.lost_nothing() && is_whole(&vfs), "{report}");
        whole_blocks += usize::from(report.lost.iter().any(|lost| lost.why.contains("has number")));
    }
    assert!(whole_blocks > 0, "no block ends where one of another table begins");
}

/// Blocks of one table in each other's places, or twice.
#[test]
fn blocks_out_of_order_are_told_and_left_out() {
    let (whole, [_, newer]) = two_generations();
    let expected = contents(&copy(&whole));
    let bytes = whole.read_file(&newer).unwrap();
    let mut out_of_order = 0;
    for block in 4060..4120 {
        let (first, second, rest) = (&bytes[..block], &bytes[block..2 * block], &bytes[2 * block..]);
        for parts in [[second, first, rest], [first, first, rest]] {
            let vfs = copy(&whole);
            vfs.write_file(&newer, &parts.concat()).unwrap();
            let report = repair(DIR, &options(&vfs)).unwrap();
            assert_same(&format!("blocks of {block} bytes"), &report, &contents(&vfs), &expected);
            assert!(!report.lost_nothing() && is_whole(&vfs), "{report}");
            out_of_order += usize::from(report.lost.iter().any(|lost| lost.why.contains("out of order")));
        }
    }
    assert!(out_of_order >= 2, "no two blocks were exchanged");
}

/// The table's bounds come from its first and last entry: a damaged block must not move them.
#[test]
fn import_refuses_tables_with_damaged_ends() {
    let (whole, _) = two_generations();
    let db = Db::open(DIR, &options(&whole)).unwrap();
    let exported = db.export_family(&db.default_family(), "/exported").unwrap();
    let table = &exported[0].path;
    let bytes = whole.read_file(table).unwrap();
    let import = |files| db.import_family("imported", FamilyOptions::default(), &[files], false);
    let of_last_value = [(KEYS - 1) as u8; 10];
    let last = bytes.windows(10).rposition(|part| part == of_last_value).unwrap();
    for at in [23, last] {
        whole.flip_bit(table, 8 * at as u64).unwrap();
        let error = import(&exported[..]).err().expect("an end is damaged");
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        whole.write_file(table, &bytes).unwrap();
    }
    whole.write_file(table, &[&bytes[..], b"more"].concat()).unwrap();
    let error = import(&exported[..]).err().expect("it is another file");
    assert!(error.message().contains("the export had"), "{error}");
    whole.write_file(table, &bytes).unwrap();
    import(&exported[..]).unwrap();
}
