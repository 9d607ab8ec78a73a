//! CURRENT, the MANIFEST and tables: missing, wrong, or inconsistent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{FamilyId, Result, SeqNo};
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::version::edit::VersionEdit;
use testkit::engine::version::edit_codec;
use testkit::engine::version::recover::recover;
use testkit::engine::{Db, ErrorKind, IngestOptions, TableWriter, WriteOptions};
use testkit::run::DIR;
use vfs::{IoClass, MemoryVfs, Vfs};

use crate::common::{INGESTS, PLAIN, SCRIPT, copy, database, files, manifest, options, read, refused};

fn current() -> std::path::PathBuf {
    Path::new(DIR).join("CURRENT")
}

#[test]
fn a_current_that_names_no_manifest_is_refused() {
    let whole = database(SCRIPT);
    let name = manifest(&whole).file_name().unwrap().to_string_lossy().into_owned();
    let wrong = [
        "../MANIFEST-000001\n".to_owned(),
        format!("../db/{name}\n"),
        format!("/db/{name}\n"),
        format!("./{name}\n"),
        String::new(),
        "\n".to_owned(),
        name.clone(),
        format!("{name}\n\n"),
        format!("{name}\0\n"),
        "MANIFEST-\n".to_owned(),
        "MANIFEST-99999999999999999999999\n".to_owned(),
        "OPTIONS-000007\n".to_owned(),
        "x".repeat(1 << 20),
    ];
    for text in wrong {
        let vfs = copy(&whole);
        vfs.write_file(&current(), text.as_bytes()).unwrap();
        let error = refused(&vfs, &current());
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error:?} for {:?}", &text[..text.len().min(40)]);
    }
}

#[test]
fn a_manifest_that_is_missing_is_named() {
    let vfs = database(SCRIPT);
    let manifest = manifest(&vfs);
    vfs.remove_file(&manifest).unwrap();
    assert_eq!(refused(&vfs, &manifest).kind(), ErrorKind::Corruption);
}

#[test]
fn without_a_current_a_database_is_not_made_over_the_old_one() {
    let vfs = database(SCRIPT);
    vfs.remove_file(&current()).unwrap();
    for create in [false, true] {
        let mut options = options(&vfs);
        options.db.create_if_missing = create;
        options.db.create_missing_column_families = create;
        let error = Db::open(DIR, &options).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error:?}");
        assert!(error.path().is_some() && error.message().contains("CURRENT"), "{error:?}");
        assert!(!files(&vfs, ".sst").is_empty() && !files(&vfs, ".splog").is_empty(), "the files are still there");
    }
}

#[test]
fn tables_that_are_missing_or_of_another_length_are_named() {
    for subject in [PLAIN, INGESTS] {
        let whole = subject.database();
        for table in files(&whole, ".sst") {
            let len = whole.read_file(&table).unwrap().len();
            let vfs = copy(&whole);
            vfs.remove_file(&table).unwrap();
            assert_eq!(subject.refused(&vfs, &table).kind(), ErrorKind::Corruption);
            for wrong in [0, 1, len / 2, len - 1, len + 1, len + 4096] {
                let vfs = copy(&whole);
                vfs.truncate(&table, wrong).unwrap();
                let error = subject.refused(&vfs, &table);
                assert_eq!(error.kind(), ErrorKind::Corruption, "{wrong} of {len} bytes");
            }
        }
    }
}

#[test]
fn tables_that_changed_places_are_refused() {
    let whole = database(SCRIPT);
    let tables = files(&whole, ".sst");
    for (one, other) in tables.iter().zip(&tables[1..]) {
        let vfs = copy(&whole);
        let (of_one, of_other) = (vfs.read_file(one).unwrap(), vfs.read_file(other).unwrap());
        vfs.write_file(one, &of_other).unwrap();
        vfs.write_file(other, &of_one).unwrap();
        match read(&vfs) {
            Ok(contents) => assert_eq!(contents, read(&copy(&whole)).unwrap()),
            Err(error) => assert!([Some(&**one), Some(&**other)].contains(&error.path()), "{error:?}"),
        }
    }
}

#[test]
fn a_manifest_of_any_length_gives_all_or_an_error() {
    // Where it is not opened again, the MANIFEST tells of each flush of an ingest by itself.
    let in_one_life = INGESTS.after(&INGESTS.script.replace("reopen", ""));
    for (subject, whole) in [(PLAIN, PLAIN.database()), (INGESTS, INGESTS.database()), (INGESTS, in_one_life)] {
        let manifest = manifest(&whole);
        let expected = subject.read(&copy(&whole)).unwrap();
        let len = whole.read_file(&manifest).unwrap().len();
        for cut in 0..len {
            let vfs = copy(&whole);
            vfs.truncate(&manifest, cut).unwrap();
            match subject.read(&vfs) {
                Ok(contents) => assert_eq!(contents, expected, "cut to {cut} of {len} bytes"),
                Err(error) => assert!(error.path().is_some(), "cut to {cut} of {len} bytes: {error:?}"),
            }
        }
    }
}

/// A well-formed MANIFEST record with impossible contents.
fn with_edit(edit: VersionEdit) -> Arc<MemoryVfs> {
    let vfs = database(SCRIPT);
    let file = vfs.open_append(&manifest(&vfs)).unwrap();
    let mut writer = wal::framed::FramedWriter::new(file, IoClass::Manifest);
    writer.append(&edit_codec::encode_record(&[edit])).unwrap();
    writer.sync().unwrap();
    vfs
}

#[test]
fn overlapping_tables_in_a_level_are_refused() {
    let vfs = database(SCRIPT);
    let recovered = recover(&*vfs, Path::new(DIR)).unwrap();
    let family = recovered.families.iter().find(|family| family.id == FamilyId::DEFAULT).unwrap();
    let (level, deep) = family.tables.iter().find(|(level, _)| *level > 0).expect("a table below level 0");
    let (_, young) = family.tables.iter().find(|(level, _)| *level == 0).expect("a table in level 0");
    let mut moved = young.clone();
    (moved.smallest, moved.largest) = (deep.smallest.clone(), deep.largest.clone());
    let vfs = with_edit(VersionEdit {
        deleted: vec![(0, young.number)],
        added: vec![(*level, moved)],
        ..VersionEdit::new(FamilyId::DEFAULT)
    });
    let error = read(&vfs).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error:?}");
    assert!(error.message().contains("overlap"), "{error:?}");
}

/// A database with one sequence number left.
fn before_the_last_number() -> Arc<MemoryVfs> {
    let last_seq = Some(SeqNo(SeqNo::MAX.0 - 1));
    with_edit(VersionEdit { last_seq, ..VersionEdit::new(FamilyId::DEFAULT) })
}

/// Whichever operation takes the last number, its effect is there after the next open, and later operations fail.
fn check_last_number(name: &str, take: impl Fn(&Db, &Arc<MemoryVfs>, &[u8]) -> Result<()>) {
    let vfs = before_the_last_number();
    let mut options = options(&vfs);
    options.db.large_batch_bytes = 4096;
    let db = Db::open(DIR, &options).unwrap();
    take(&db, &vfs, b"last").unwrap_or_else(|e| panic!("{name}: {e}"));
    let error = take(&db, &vfs, b"one too many").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly, "{name}: {error:?}");
    assert!(error.message().contains("sequence numbers"), "{name}: {error:?}");
    drop(db);
    let contents = read(&vfs).unwrap_or_else(|e| panic!("{name}: {e}"));
    let has = |key: &[u8]| contents.get("default").is_some_and(|family| family.contains_key(key));
    assert!(has(b"last") && !has(b"one too many"), "{name}");
}

#[test]
fn sequence_numbers_at_their_end_are_no_wrap_around() {
    let put = |db: &Db, key: &[u8], value: &[u8]| db.put(&db.default_family(), key, value, &WriteOptions::synced());
    check_last_number("put", |db, _, key| put(db, key, b"v"));
    check_last_number("large batch", |db, _, key| put(db, key, &[7; 8 << 10]));
    check_last_number("ingest", |db, vfs, key| {
        let (family, path) = (db.default_family(), PathBuf::from(format!("/{}.sst", key.escape_ascii())));
        let mut table = TableWriter::create(vfs.clone(), &path, &family.options())?;
        table.put(key, b"v")?;
        table.finish()?;
        db.ingest(&family, &[path], &IngestOptions::default()).map(drop)
    });
}

/// A file without a checksum, as RocksDB's, looks whole if it is cut between two families.
#[test]
fn options_file_that_lost_a_family_is_noted() {
    let whole = database(SCRIPT);
    let options =
        files(&whole, "").into_iter().filter(|path| path.to_string_lossy().contains("OPTIONS-")).max().unwrap();
    let sealed = String::from_utf8(whole.read_file(&options).unwrap()).unwrap();
    let lines: Vec<&str> = sealed.lines().collect();
    let text = format!("{}\n", lines[1..lines.len() - 1].join("\n")).into_bytes();
    whole.write_file(&options, &text).unwrap();
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let mut noted = 0;
    for end in ends {
        let vfs = copy(&whole);
        vfs.truncate(&options, end).unwrap();
        let how = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
        let report = check(Path::new(DIR), &how, &mut |_| ()).unwrap();
        let has_all = String::from_utf8_lossy(&text[..end]).contains("[TableOptions/BlockBasedTable \"users\"]");
        let is_noted = report.notes.iter().any(|note| note.contains("lacks column family \"users\""));
        assert!(has_all || is_noted || !report.is_whole(), "cut to {end}: {report:#?}");
        noted += usize::from(is_noted);
    }
    assert!(noted > 0);
}
