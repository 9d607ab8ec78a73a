use spillway::{ErrorKind, WriteOptions, limits};

use crate::in_memory;

#[test]
fn a_batch_is_applied_whole_over_families() {
    let db = in_memory();
    let users = db.family("users").unwrap();
    db.put("pear", "green").unwrap();
    let mut batch = db.batch();
    batch.put(&users, [7], "Ada").put(db.default_family(), String::from("apple"), b"red");
    batch.delete(db.default_family(), "pear").delete_range(&users, [8]..[9]);
    assert_eq!((batch.len(), batch.is_empty()), (4, false));
    batch.commit_with(&WriteOptions::new().sync(true)).unwrap();
    assert_eq!(users.get([7]).unwrap().as_deref(), Some(b"Ada".as_slice()));
    assert_eq!(db.get("apple").unwrap().as_deref(), Some(b"red".as_slice()));
    assert!(!db.contains_key("pear").unwrap());
}

#[test]
fn what_is_wrong_with_a_batch_is_told_by_the_commit_and_nothing_is_written() {
    let (db, other) = (in_memory(), in_memory());
    let gone = db.family("gone").unwrap();
    db.drop_family(&gone).unwrap();
    let large = vec![0; limits::KEY_BYTES_MAX + 1];
    type Add<'a> = &'a dyn Fn(&mut spillway::Batch);
    let wrong: [(Add, ErrorKind); 3] = [
        (&|batch| _ = batch.put(other.default_family(), "k", ""), ErrorKind::InvalidArgument),
        (&|batch| _ = batch.delete(&gone, "k"), ErrorKind::Closed),
        (&|batch| _ = batch.put(db.default_family(), &large, ""), ErrorKind::InvalidArgument),
    ];
    for (add, kind) in wrong {
        let mut batch = db.batch();
        batch.put(db.default_family(), "before", "");
        add(&mut batch);
        batch.put(db.default_family(), "after", "");
        let error = batch.commit().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(db.iter().count(), 0, "{error}");
    }
    let late = db.family("late").unwrap();
    let mut batch = db.batch();
    batch.put(&late, "k", "").put(db.default_family(), "k", "");
    db.drop_family(&late).unwrap();
    assert_eq!(batch.commit().unwrap_err().kind(), ErrorKind::Closed, "dropped behind the change");
    assert_eq!(db.iter().count(), 0);
}

#[test]
fn a_rollback_takes_wrong_changes_back_too() {
    let (db, other) = (in_memory(), in_memory());
    let mut batch = db.batch();
    batch.put(db.default_family(), "a", "").savepoint();
    batch.put(db.default_family(), "b", "").savepoint();
    batch.put(other.default_family(), "c", "");
    assert!(batch.rollback());
    batch.put(db.default_family(), "d", "");
    assert_eq!(batch.len(), 3);
    assert!(batch.rollback());
    assert!(!batch.rollback(), "no savepoint is left");
    batch.commit().unwrap();
    assert_eq!(crate::keys(db.iter()), ["a"]);

    let mut batch = db.batch();
    batch.put(other.default_family(), "c", "").savepoint();
    assert!(batch.rollback());
    assert!(batch.commit().is_err(), "wrong before the savepoint");
}
