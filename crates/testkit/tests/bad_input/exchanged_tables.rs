//! Tables of equal name and size in each other's place: told by their unique ids.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::check::{CheckOptions, check};
use testkit::engine::{Db, OpenOptions, WriteOptions, repair};
use testkit::run::DIR;
use vfs::MemoryVfs;

use crate::common::{INGESTS, copy, files, read_with};

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }
}

/// Two tables of other keys and equal size.
fn two_tables(seed: u64) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(seed);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    let family = db.default_family();
    for key in ["a", "b"] {
        db.put(&family, key.as_bytes(), seed.to_string().as_bytes(), &WriteOptions::default()).unwrap();
        db.flush(&[&family]).unwrap();
    }
    db.close().unwrap();
    vfs
}

/// The files exchange their bytes.
fn exchange(vfs: &MemoryVfs, one: &Path, other: &Path) {
    let [of_one, of_other] = [one, other].map(|path| vfs.read_file(path).unwrap());
    assert_eq!(of_one.len(), of_other.len(), "nothing but the id tells them");
    vfs.write_file(one, &of_other).unwrap();
    vfs.write_file(other, &of_one).unwrap();
}

/// Reading, check and repair tell of each table.
fn assert_told(vfs: &Arc<MemoryVfs>, tables: &[PathBuf]) {
    let error = read_with(&options(vfs), DIR).unwrap_err();
    assert!(error.to_string().contains("Mismatch in unique ID"), "{error}");
    let checked = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    let report = check(Path::new(DIR), &checked, &mut |_| {}).unwrap();
    for table in tables {
        let named = report.problems.iter().find(|problem| problem.0.path() == Some(table));
        let text = named.map(ToString::to_string).unwrap_or_default();
        assert!(text.contains("Mismatch in unique ID"), "{}: {text}", table.display());
    }
    let report = repair(DIR, &options(vfs)).unwrap();
    assert_eq!(report.lost.len(), tables.len(), "{report}");
    read_with(&options(vfs), DIR).unwrap();
}

#[test]
fn exchanged_tables_of_one_database_are_told() {
    let vfs = two_tables(1);
    let tables = files(&vfs, ".sst");
    let [one, other] = &tables[..] else { panic!("{tables:?}") };
    exchange(&vfs, one, other);
    assert_told(&vfs, &tables);
}

#[test]
fn table_of_another_database_is_told() {
    let (vfs, stranger) = (two_tables(1), two_tables(2));
    let table = files(&vfs, ".sst").remove(0);
    vfs.write_file(&table, &stranger.read_file(&table).unwrap()).unwrap();
    assert_told(&vfs, &[table]);
}

/// Nothing but the log's record of the ingest names the id until the table has its level.
#[test]
fn table_of_a_queued_ingest_is_told() {
    let script = "create users\nput default a 1\ningest flushable; file default; put b 1\ningest flushable; file default; put b 2";
    let vfs = INGESTS.after(script);
    let tables = files(&vfs, ".sst");
    let [one, other] = &tables[..] else { panic!("{tables:?}") };
    assert!(INGESTS.read(&copy(&vfs)).is_ok());
    exchange(&vfs, one, other);
    let error = INGESTS.read(&vfs).unwrap_err();
    assert!(error.to_string().contains("Mismatch in unique ID"), "{error}");
}
