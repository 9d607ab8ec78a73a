use spillway::extend::FilterDecision;
use spillway::{Db, ErrorKind, FamilyOptions, Options, merge};

use crate::in_memory;

fn longest() -> FamilyOptions {
    FamilyOptions::new().merge_fn("longest", |_key, value, operands| {
        value.into_iter().chain(operands.iter().copied()).max_by_key(|value| value.len()).map(<[u8]>::to_vec)
    })
}

#[test]
fn operands_are_merged_by_a_closure_or_an_operator() {
    let db = Db::open_with("/db", &Options::in_memory().merge_operator(merge::UInt64AddOperator)).unwrap();
    let words = db.family_with("words", &longest()).unwrap();
    for word in ["ox", "antelope", "cat"] {
        words.merge("animal", word).unwrap();
        db.merge("count", 1u64.to_le_bytes()).unwrap();
    }
    assert_eq!(words.get("animal").unwrap().as_deref(), Some(b"antelope".as_slice()));
    assert_eq!(db.get("count").unwrap().as_deref(), Some(3u64.to_le_bytes().as_slice()));
    let mut batch = db.batch();
    batch.merge(&words, "animal", "hippopotamus").merge(db.default_family(), "count", 4u64.to_le_bytes());
    batch.commit().unwrap();
    db.flush().unwrap();
    assert_eq!(words.get("animal").unwrap().as_deref(), Some(b"hippopotamus".as_slice()));
    assert_eq!(db.get("count").unwrap().as_deref(), Some(7u64.to_le_bytes().as_slice()));
    let plain = in_memory();
    assert_eq!(
        plain.merge("k", "v").and_then(|()| plain.get("k").map(drop)).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn compactions_filter_by_a_closure() {
    let options = FamilyOptions::new().compaction_filter_fn("without-empty", |_level, key, value| match value {
        [] => FilterDecision::Remove,
        b"?" => FilterDecision::ChangeValue(key.to_vec()),
        _ => FilterDecision::Keep,
    });
    let db = in_memory();
    let family = db.family_with("filtered", &options).unwrap();
    for (key, value) in [("a", ""), ("b", "?"), ("c", "3")] {
        family.put(key, value).unwrap();
    }
    family.compact(..).unwrap();
    let entries: Vec<_> =
        family.iter().map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect();
    assert_eq!(entries, [(b"b".to_vec(), b"b".to_vec()), (b"c".to_vec(), b"3".to_vec())]);
}

#[test]
fn objects_are_given_at_each_open_and_found_again_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let by_length = || FamilyOptions::new().comparator_fn("by-length", |a, b| a.len().cmp(&b.len()).then(a.cmp(b)));
    let options = || Options::new().family("words", longest()).family("sorted", by_length());
    let db = Db::open_with(dir.path(), &options()).unwrap();
    let (words, sorted) = (db.family("words").unwrap(), db.family("sorted").unwrap());
    words.merge("animal", "ox").unwrap();
    words.merge("animal", "antelope").unwrap();
    for key in ["bb", "a", "ccc"] {
        sorted.put(key, "").unwrap();
    }
    drop((words, sorted, db));

    let db = Db::open_with(dir.path(), &options()).unwrap();
    assert_eq!(crate::keys(db.family("sorted").unwrap().iter()), ["a", "bb", "ccc"]);
    assert_eq!(db.family("words").unwrap().get("animal").unwrap().as_deref(), Some(b"antelope".as_slice()));
    drop(db);
    let error = Db::open(dir.path()).unwrap_err();
    let told = error.to_string();
    assert!(told.contains("merge operator `longest`") && told.contains("Options::family(\"words\""), "{told}");
    let error = Db::open_with(dir.path(), &Options::new().family("words", longest())).unwrap_err();
    assert!(error.to_string().contains("by-length"), "what is missing is named: {error}");
}
