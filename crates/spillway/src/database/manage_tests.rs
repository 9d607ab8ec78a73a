use std::collections::BTreeSet;
use std::path::Path;

use base::ErrorKind;
use table::Properties;
use vfs::{MemoryVfs, Vfs};

use crate::cursor::options::TableFilter;
use crate::internal::{Database, FileNumber, OpenOptions, ReadOptions, WriteOptions};

fn open(vfs: &std::sync::Arc<MemoryVfs>) -> Database {
    let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    options.db.max_background_jobs = 1;
    Database::open("/db", &options).expect("opened")
}

/// A table of each group of keys.
fn tables(db: &Database, groups: &[&[&str]]) -> Vec<FileNumber> {
    let family = db.default_family();
    for keys in groups {
        for key in *keys {
            db.put(&family, key.as_bytes(), b"value", &WriteOptions::default()).expect("put");
        }
        db.flush(&[&family]).expect("flushed");
    }
    numbers_at(db, 0)
}

fn numbers_at(db: &Database, level: usize) -> Vec<FileNumber> {
    let mut numbers: Vec<_> = db.live_files().iter().filter(|file| file.level == level).map(|f| f.number).collect();
    numbers.sort();
    numbers
}

fn keys_by(db: &Database, options: &ReadOptions) -> (Vec<String>, Vec<String>) {
    let mut all = db.iter(&db.default_family(), options).expect("an iterator");
    let (mut forward, mut back) = (Vec::new(), Vec::new());
    let key = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let mut is_on = all.seek_to_first();
    while is_on {
        forward.push(key(all.key()));
        is_on = all.next();
    }
    is_on = all.seek_to_last();
    while is_on {
        back.insert(0, key(all.key()));
        is_on = all.prev();
    }
    (forward, back)
}

#[test]
fn a_file_is_dropped_if_nothing_is_below_it() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs);
    let family = db.default_family();
    let numbers = tables(&db, &[&["a", "b"], &["b", "c"]]);
    let drop_table = |number| db.drop_table(&family, number).map_err(|error| error.kind());
    assert_eq!(drop_table(numbers[1]), Err(ErrorKind::InvalidArgument), "older data would come up");
    assert_eq!(drop_table(FileNumber(999)), Err(ErrorKind::InvalidArgument));
    assert_eq!(drop_table(numbers[0]), Ok(()));
    assert_eq!(keys_by(&db, &ReadOptions::default()).0, ["b", "c"]);
    let path = format!("/db/{:06}.sst", numbers[0].0);
    assert!(!vfs.exists(Path::new(&path)).expect("asked"), "the file is deleted by then");
}

#[test]
fn level_0_moves_down_as_it_is() {
    let db = open(&MemoryVfs::new(2));
    let family = db.default_family();
    db.promote_level0(&family, 2).expect("nothing to move");
    let numbers = tables(&db, &[&["a", "b"], &["c", "d"]]);
    for level in [0, 99] {
        assert_eq!(db.promote_level0(&family, level).expect_err("no such level").kind(), ErrorKind::InvalidArgument);
    }
    db.promote_level0(&family, 2).expect("they do not overlap");
    assert_eq!((numbers_at(&db, 0), numbers_at(&db, 2)), (Vec::new(), numbers));
    tables(&db, &[&["x"]]);
    assert!(db.promote_level0(&family, 3).expect_err("refused").message().contains("has tables"));
    let db = open(&MemoryVfs::new(3));
    tables(&db, &[&["a", "c"], &["b", "d"]]);
    assert!(db.promote_level0(&db.default_family(), 1).expect_err("refused").message().contains("overlap"));
}

#[test]
fn no_compaction_starts_while_they_are_paused() {
    let db = open(&MemoryVfs::new(4));
    let trigger = db.default_family().options().level0_file_num_compaction_trigger;
    db.pause_compactions().expect("none runs");
    db.pause_compactions().expect("none runs");
    let keys: [&[&str]; 1] = [&["a", "b"]];
    (0..trigger).for_each(|_| drop(tables(&db, &keys)));
    db.continue_compactions();
    assert_eq!(tables(&db, &keys).len(), trigger as usize + 1, "paused twice");
    db.continue_compactions();
    assert!(tables(&db, &keys).len() <= 1, "due for long");
}

#[test]
fn damage_is_found_where_no_iterator_would_meet_it() {
    let vfs = MemoryVfs::new(5);
    let db = open(&vfs);
    let [number] = tables(&db, &[&["a", "b"]])[..] else { panic!("one table") };
    db.verify_tables().expect("as it was written");
    drop(db);
    let path = format!("/db/{:06}.sst", number.0);
    vfs.flip_bit(Path::new(&path), 24).expect("a table");
    let error = open(&vfs).verify_tables().expect_err("damaged");
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains(&path), "{error}");
}

#[test]
fn iterators_leave_refused_tables_out_but_not_their_range_deletions() {
    let db = open(&MemoryVfs::new(6));
    let family = db.default_family();
    db.pause_compactions().expect("none runs");
    tables(&db, &[&["a", "b", "c"]]);
    db.delete_range(&family, b"b", b"c", &WriteOptions::default()).expect("deleted");
    let numbers = tables(&db, &[&["d", "e"]]);
    assert_eq!(numbers.len(), 2);
    let only = |entries: u64| -> ReadOptions {
        let filter: TableFilter = std::sync::Arc::new(move |table: &Properties| table.entries == entries);
        ReadOptions { table_filter: Some(filter), ..ReadOptions::default() }
    };
    let both = |keys: &[&str]| {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        (keys.clone(), keys)
    };
    let seen: BTreeSet<u64> = numbers.iter().map(|number| number.0).collect();
    assert_eq!(seen.len(), 2);
    for _ in 0..2 {
        assert_eq!(keys_by(&db, &ReadOptions::default()), both(&["a", "c", "d", "e"]));
        // The first table has 3 entries, the second 2 keys and a range deletion: 3 as well.
        assert_eq!(keys_by(&db, &only(3)), both(&["a", "c", "d", "e"]));
        assert_eq!(keys_by(&db, &only(4)), both(&[]));
        let first: TableFilter = std::sync::Arc::new(|table: &Properties| table.range_deletions == 0);
        let options = ReadOptions { table_filter: Some(first), ..ReadOptions::default() };
        assert_eq!(keys_by(&db, &options), both(&["a", "c"]));
    }
    assert!(db.get(&family, b"d", &only(4)).expect("read").is_some(), "lookups do not ask");
}

#[test]
fn fewer_files_stay_open_after_a_change_of_the_option() {
    let db = open(&MemoryVfs::new(7));
    let family = db.default_family();
    db.pause_compactions().expect("none runs");
    tables(&db, &[&["a"], &["b"], &["c"], &["d"]]);
    let read = || keys_by(&db, &ReadOptions::default()).0.len();
    let open_files = || family.view_full().version.all_files().filter(|(_, file)| file.is_open()).count();
    assert_eq!((read(), open_files()), (4, 4));
    db.set_db_options(&[("max_open_files", "2")]).expect("mutable");
    assert_eq!((read(), open_files()), (4, 2));
    db.set_db_options(&[("max_open_files", "-1")]).expect("mutable");
    assert_eq!((read(), open_files()), (4, 4));
}
