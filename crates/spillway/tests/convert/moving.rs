//! Converted tables and other directories: checkpoints link them, exports rewrite them, ingests refuse them.

use std::path::Path;
use std::process::Command;

use testkit::engine::export::ExportOptions;
use testkit::engine::{Db, ErrorKind, IngestOptions, ReadOptions, WriteOptions, dump};

use crate::common::{Place, REWRITTEN, WAYS, change, check_at, contents, flush, is_converted, is_mapped, options, put};

#[test]
fn a_checkpoint_has_converted_tables_and_no_image() {
    for (place, way) in WAYS.into_iter().flat_map(|way| Place::both().map(|place| (place, way))) {
        let db = place.open(way);
        let family = db.default_family();
        change(&db, &family, 0);
        flush(&db);
        change(&db, &family, 1);
        let copy = place.dir.with_file_name("copy");
        db.checkpoint(&copy).unwrap();
        let expected = contents(&db, &ReadOptions::default());
        let names = place.vfs.read_dir(&copy).unwrap();
        assert!(!names.iter().any(|name| name.ends_with(".spmem")), "{names:?}");
        let table = names.iter().find(|name| name.ends_with(".sst")).unwrap();
        assert!(is_converted(&place.vfs, &copy.join(table)));
        change(&db, &family, 2); // what is written now is not in the copy
        flush(&db);
        drop((family, db));
        Db::destroy(&place.dir, None, &place.vfs).unwrap();
        assert!(place.vfs.read_dir(&place.dir).map_or(true, |names| names.is_empty()), "{way}");
        check_at(&place.vfs, &copy);
        let copied = Db::open(&copy, &options(&place.vfs, way)).unwrap();
        assert_eq!(contents(&copied, &ReadOptions::default()), expected, "{way}");
    }
}

/// Lines of `key ==> value` in hexadecimal, or `None` where RocksDB's `ldb` is not installed.
fn ldb_scan(dir: &Path) -> Option<Vec<String>> {
    let scan = Command::new("ldb").arg(format!("--db={}", dir.display())).args(["scan", "--hex"]).output();
    let Ok(output) = scan else {
        println!("ldb is not installed: what RocksDB sees of an export is not checked");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn an_export_is_rocksdbs() {
    for (way, levels) in [(WAYS[0], 7), (WAYS[1], 7), (WAYS[2], 1), (WAYS[3], 7)] {
        let place = Place::real();
        let mut options = options(&place.vfs, way);
        options.families[0].1.num_levels = levels;
        options.families[0].1.level_compaction_dynamic_level_bytes &= levels > 1;
        let db = Db::open(&place.dir, &options).unwrap();
        let family = db.default_family();
        for round in 0..3 {
            (0..200).for_each(|i| put(&db, &format!("key{:04}", i * 3 + round), &format!("value {round}")));
            db.delete(&family, b"key0010", &WriteOptions::default()).unwrap();
            db.delete_range(&family, b"key0100", b"key0110", &WriteOptions::default()).unwrap();
            flush(&db);
        }
        put(&db, "unflushed", "too");
        let expected = contents(&db, &ReadOptions::default());
        let export = place.dir.with_file_name("export");
        db.export(&export, &ExportOptions::default()).unwrap();
        let names = place.vfs.read_dir(&export).unwrap();
        let tables: Vec<_> = names.iter().filter(|name| name.ends_with(".sst")).collect();
        assert!(!tables.is_empty() && !tables.iter().any(|name| is_converted(&place.vfs, &export.join(name))));
        if let Some(lines) = ldb_scan(&export) {
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
            let of_ours = expected.iter().map(|(key, value)| format!("0x{} : 0x{}", hex(key), hex(value)));
            let normal = lines.iter().map(|line| line.replace(" ==> ", " : "));
            assert_eq!(normal.collect::<Vec<_>>(), of_ours.collect::<Vec<_>>(), "{way}");
        }
        let mut taken_over = crate::common::options(&place.vfs, REWRITTEN);
        taken_over.families[0].1.num_levels = levels;
        taken_over.families[0].1.level_compaction_dynamic_level_bytes &= levels > 1;
        assert_eq!(contents(&Db::open(&export, &taken_over).unwrap(), &ReadOptions::default()), expected);
        assert_eq!(contents(&db, &ReadOptions::default()), expected, "the original");
    }
}

/// Neither the directory of RocksDB's nor what is in it is touched by private files before it is fenced; from then on
/// memtables become tables.
#[test]
fn a_directory_that_is_taken_over_gets_no_private_file_before_its_fence() {
    let place = Place::memory();
    let first = place.open(REWRITTEN);
    change(&first, &first.default_family(), 0);
    let expected = contents(&first, &ReadOptions::default());
    let export = Path::new("/export");
    first.export(export, &ExportOptions::default()).unwrap();
    let db = Db::open(export, &options(&place.vfs, WAYS[0])).unwrap();
    let images = || place.vfs.read_dir(export).unwrap().iter().filter(|name| name.ends_with(".spmem")).count();
    assert_eq!(images(), 0, "the first memtable was made before the fence");
    put(&db, "zz1", "v");
    flush(&db);
    assert_eq!(db.flushes().converted, 0);
    put(&db, "zz2", "v");
    assert!(images() > 0);
    flush(&db);
    assert_eq!(db.flushes().converted, 1);
    let mut now = contents(&db, &ReadOptions::default());
    now.retain(|key, _| !key.starts_with(b"zz"));
    assert_eq!(now, expected);
}

#[test]
fn a_converted_table_is_not_ingested_and_says_why() {
    for way in WAYS {
        let place = Place::memory();
        let db = place.open(way);
        put(&db, "k", "v");
        flush(&db);
        let table = Path::new("/elsewhere.sst").to_owned();
        place.vfs.hard_link(&db.live_files()[0].path, &table).unwrap();
        let family = db.default_family();
        let error = db.ingest(&family, &[table], &IngestOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("a converted memtable"), "{error}");
    }
}

#[test]
fn a_converted_table_is_dumped_and_verified_by_itself() {
    for (place, way) in WAYS.into_iter().flat_map(|way| Place::both().map(|place| (place, way))) {
        let db = place.open(way);
        put(&db, "k", "v");
        flush(&db);
        let path = db.live_files()[0].path.clone();
        let table = dump::open_table(&place.vfs, &path).unwrap();
        table.table().verify().unwrap();
        let mut text = String::new();
        for part in [dump::DumpPart::Layout, dump::DumpPart::Entries] {
            let mut line = |line: &str| {
                text += line;
                text.push('\n');
                true
            };
            dump::dump_table(&table, part, &mut line).unwrap();
        }
        assert!(text.contains("a converted memtable") && text.contains("k @ 1 : Value => v"), "{text}");
        assert_eq!(is_mapped(way), way.contains("kFileMmap"));
    }
}
