use std::time::Duration;

use spillway::{ErrorKind, FamilyOptions, Options, TransactionOptions};

use crate::in_memory;

fn shown(items: spillway::Iter) -> String {
    let entry = |item: spillway::Result<(spillway::Pinned, spillway::Pinned)>| {
        let (key, value) = item.unwrap();
        format!("{}={}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value))
    };
    items.map(entry).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_transaction_is_committed_whole_or_conflicts() {
    let db = in_memory();
    let (own, users) = (db.default_family(), db.family("users").unwrap());
    db.put("balance", "10").unwrap();
    let mut transaction = db.transaction();
    assert_eq!(transaction.get_for_update(own, "balance").unwrap().as_deref(), Some(b"10".as_slice()));
    transaction.put(&users, "ada", "20").unwrap();
    transaction.delete(own, "balance").unwrap();
    assert_eq!((transaction.len(), transaction.is_empty()), (2, false));
    assert!(!users.contains_key("ada").unwrap(), "nobody else sees it");
    db.put("balance", "11").unwrap();
    let error = transaction.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("\"default\""), "{error}");
    assert!(!users.contains_key("ada").unwrap());

    let mut again = db.transaction();
    again.put(&users, "ada", "20").unwrap();
    again.delete(own, "balance").unwrap();
    again.commit().unwrap();
    assert!(users.contains_key("ada").unwrap() && !db.contains_key("balance").unwrap());
}

#[test]
fn reads_show_the_transactions_changes_over_its_snapshot() {
    let db = in_memory();
    let own = db.default_family();
    for key in ["a", "b", "c", "d"] {
        db.put(key, "old").unwrap();
    }
    let mut transaction = db.transaction_with(&TransactionOptions::new().snapshot(true));
    db.put("a", "new").unwrap();
    transaction.put_untracked(own, "b", "mine").unwrap();
    transaction.delete(own, "c").unwrap();
    assert_eq!(shown(transaction.iter(own)), "a=old b=mine d=old");
    let mut back = transaction.range(own, "a".."d");
    assert_eq!(back.next_back().unwrap().unwrap().0.as_ref(), b"b");
    transaction.put(own, "aa", "mine").unwrap();
    assert_eq!(back.next_back().unwrap().unwrap().0.as_ref(), b"aa", "made while the iterator lives");
    let values = transaction.multi_get(own, ["a", "b", "c"]).unwrap();
    assert_eq!(values.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(values[0].as_deref(), Some(b"old".as_slice()));
    transaction.savepoint();
    transaction.delete(own, "a").unwrap();
    assert!(transaction.get(own, "a").unwrap().is_none());
    assert!(transaction.rollback_to_savepoint() && !transaction.rollback_to_savepoint());
    db.put("b", "theirs").unwrap();
    transaction.commit().unwrap();
    assert_eq!(shown(db.iter()), "a=new aa=mine b=mine d=old");
}

#[test]
fn families_with_operators_and_with_lifetimes_work_as_without_a_transaction() {
    let sum = |_: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]| {
        let number = |bytes: &&[u8]| bytes.first().copied().unwrap_or(0);
        Some(vec![existing.iter().chain(operands).map(number).sum::<u8>()])
    };
    let options = Options::in_memory()
        .family("sums", FamilyOptions::new().merge_fn("sum", sum))
        .family("fleeting", FamilyOptions::new().ttl(std::time::Duration::from_secs(3600)));
    let db = spillway::Db::open_with("/db", &options).unwrap();
    let (sums, fleeting) = (db.family("sums").unwrap(), db.family("fleeting").unwrap());
    sums.put("n", [1]).unwrap();
    fleeting.put("k", "below").unwrap();
    let mut transaction = db.transaction();
    transaction.merge(&sums, "n", [2]).unwrap();
    transaction.merge(&sums, "n", [3]).unwrap();
    assert_eq!(transaction.get(&sums, "n").unwrap().as_deref(), Some([6].as_slice()));
    transaction.put(&fleeting, "l", "mine").unwrap();
    assert_eq!(transaction.get(&fleeting, "l").unwrap().as_deref(), Some(b"mine".as_slice()));
    assert_eq!(shown(transaction.iter(&fleeting)), "k=below l=mine");
    transaction.commit().unwrap();
    assert_eq!(sums.get("n").unwrap().as_deref(), Some([6].as_slice()));
    assert_eq!(shown(fleeting.iter()), "k=below l=mine");
}

#[test]
fn what_is_wrong_with_a_transaction_is_told() {
    let (db, other) = (in_memory(), in_memory());
    let gone = db.family("gone").unwrap();
    let mut transaction = db.transaction();
    assert_eq!(transaction.put(other.default_family(), "k", "").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(transaction.get_for_update(other.default_family(), "k").unwrap_err().kind(), ErrorKind::InvalidArgument);
    transaction.put(&gone, "k", "").unwrap();
    db.drop_family(&gone).unwrap();
    assert_eq!(transaction.put(&gone, "l", "").unwrap_err().kind(), ErrorKind::Closed);
    transaction.put(db.default_family(), "k", "").unwrap();
    transaction.commit().unwrap_err();
    assert!(!db.contains_key("k").unwrap());
    let mut late = db.transaction();
    late.put(db.default_family(), "k", "").unwrap();
    db.close().unwrap();
    assert_eq!(late.commit().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn pessimistic_transactions_lock_keys_and_ranges() {
    let db = in_memory();
    let own = db.default_family();
    let options = TransactionOptions::new().pessimistic(true).lock_timeout(Some(Duration::ZERO));
    let (mut first, mut second) = (db.transaction_with(&options), db.transaction_with(&options));
    first.put(own, "k", "1").unwrap();
    assert_eq!(second.get_for_update(own, "k").unwrap_err().kind(), ErrorKind::TimedOut);
    first.lock_range(own, "p".."q").unwrap();
    assert_eq!(second.put(own, "part", "2").unwrap_err().kind(), ErrorKind::TimedOut);
    first.commit().unwrap();
    assert_eq!(second.get_shared(own, "k").unwrap().as_deref(), Some(b"1".as_slice()));
    second.put(own, "part", "2").unwrap();

    let waiting = options.lock_timeout(None);
    let mut third = db.transaction_with(&waiting);
    assert_eq!(third.get_shared(own, "k").unwrap().as_deref(), Some(b"1".as_slice()));
    third.put(own, "z", "3").unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            third.put(own, "part", "3")?; // `second` has it
            third.commit()
        });
        // Either may close the cycle; the one that does is told of it, and the other goes on.
        let closed = second.put(own, "z", "2");
        drop(second);
        let waited = waits.join().unwrap();
        let kinds = [closed.err(), waited.err()].map(|error| error.map(|error| error.kind()));
        assert!(kinds.contains(&Some(ErrorKind::TimedOut)) || kinds.contains(&Some(ErrorKind::Deadlock)), "{kinds:?}");
    });
    let error = db.transaction().lock_range(own, "a".."b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}
