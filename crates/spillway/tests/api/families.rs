use spillway::{Db, ErrorKind, FamilyOptions, Options, ReadOptions};

use crate::in_memory;

#[test]
fn families_are_created_found_and_dropped() {
    let db = in_memory();
    assert_eq!(db.default_family().name(), "default");
    assert!(db.find_family("users").is_none());
    let users = db.family("users").unwrap();
    assert_eq!(users, db.family(String::from("users")).unwrap(), "one family");
    users.put("k", "of users").unwrap();
    assert!(db.get("k").unwrap().is_none());
    let names: Vec<_> = db.families().iter().map(|family| family.name().to_owned()).collect();
    assert_eq!(names, ["default", "users"]);
    assert_eq!(db.family("").unwrap_err().kind(), ErrorKind::InvalidArgument);

    let mut open = users.iter();
    db.drop_family(&users).unwrap();
    assert!(open.next().unwrap().is_ok(), "open iterators go on");
    assert_eq!(users.put("k", "").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.drop_family(&users).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.drop_family(db.default_family()).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(!db.family("users").unwrap().contains_key("k").unwrap(), "another family of that name");
}

#[test]
fn concurrent_calls_make_one_family() {
    let db = in_memory();
    let made = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| db.family("users").unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(made.iter().all(|family| family == &made[0]));
}

#[test]
fn families_that_exist_are_opened_with_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let reversed = FamilyOptions::new().reverse_order().write_buffer_size(1 << 20);
    let users = db.family_with("users", &reversed).unwrap();
    users.put("a", "").unwrap();
    users.put("b", "").unwrap();
    drop((users, db));

    let db = Db::open(dir.path()).unwrap();
    let users = db.find_family("users").expect("opened unasked");
    assert_eq!(crate::keys(users.iter()), ["b", "a"]);
    assert!(users.options_text().contains("write_buffer_size=1048576"), "{}", users.options_text());
    assert_eq!(Db::family_names(dir.path(), &Options::new()).unwrap(), ["default", "users"]);
}

#[test]
fn handles_of_another_database_are_refused() {
    let (db, other) = (in_memory(), in_memory());
    let strange = other.default_family();
    let invalid = |error: spillway::Error| assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    invalid(db.snapshot().get(strange, "k").unwrap_err());
    invalid(db.snapshot().iter(strange).next().unwrap().unwrap_err());
    invalid(db.multi_get_across([(strange, "k")]).unwrap_err());
    invalid(db.drop_family(strange).unwrap_err());
    invalid(db.get_with("k", &ReadOptions::new().snapshot(&other.snapshot())).unwrap_err());
}

#[test]
fn many_keys_are_read_at_one_instant_over_families() {
    let db = in_memory();
    let users = db.family("users").unwrap();
    for n in 0u8..10 {
        db.put([n], [n]).unwrap();
        users.put([n], [n + 100]).unwrap();
    }
    let found = db.multi_get((0u8..12).rev().map(|n| [n])).unwrap();
    let values: Vec<_> = found.iter().map(|value| value.as_deref().map(|bytes| bytes[0])).collect();
    assert_eq!(values[..3], [None, None, Some(9)]);
    let default = db.default_family();
    let found = db.multi_get_across([(&users, [1]), (default, [2]), (&users, [99]), (default, [1]), (&users, [2])]);
    let values: Vec<_> = found.unwrap().iter().map(|value| value.as_deref().map(|bytes| bytes[0])).collect();
    assert_eq!(values, [Some(101), Some(2), None, Some(1), Some(102)]);
    assert!(db.multi_get(std::iter::empty::<&str>()).unwrap().is_empty());
}

/// A batch writes one number to all families. Memtables are replaced all the time, in one family after the other.
#[test]
fn one_instant_holds_beside_a_writer_and_flushes() {
    const ROUNDS: usize = 1500;
    let db = in_memory();
    let families: Vec<_> = (0..12).map(|i| db.family(format!("family {i}")).unwrap()).collect();
    let write = |number: usize| {
        let mut batch = db.batch();
        for family in &families {
            batch.put(family, "k", number.to_le_bytes());
        }
        batch.commit().unwrap();
    };
    write(0);
    let done = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..ROUNDS {
                families[number % families.len()].flush().unwrap();
                write(number);
            }
            done.store(true, relaxed);
        });
        while !done.load(relaxed) {
            let found = db.multi_get_across(families.iter().map(|family| (family, "k"))).unwrap();
            let differs = found.iter().any(|value| value.is_none() || value != &found[0]);
            if differs {
                done.store(true, relaxed);
            }
            assert!(!differs, "{found:?}");
        }
    });
}
