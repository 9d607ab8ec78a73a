//! What a program gives again, to a database and families that exist, takes effect or is an error that says what to do.

use base::options::row::{Documented, rows};
use base::options::{DbOptions, FamilyOptions as EngineFamilyOptions};
use spillway::extend::FilterDecision;
use spillway::{Db, ErrorKind, FamilyOptions, Options};

/// Options whose values are the caller's objects or other options' business: tests of their own.
const OBJECTS: [&str; 3] = ["comparator", "merge_operator", "wal_dir"];

/// Another value than the default, as text; none where the row's type is not a number, a switch or a choice.
fn another(row: &Documented) -> Option<String> {
    let choices: Vec<&str> = row.kind.split([',', '|']).map(str::trim).collect();
    match row.default.as_str() {
        _ if OBJECTS.contains(&row.name) => None,
        "true" => Some("false".to_owned()),
        "false" => Some("true".to_owned()),
        number if number.parse::<f64>().is_ok() => {
            let number: f64 = number.parse().unwrap();
            let max = row.bounds.rsplit_once(" to ").and_then(|(_, max)| max.parse().ok()).unwrap_or(f64::MAX);
            Some(if number + 1.0 <= max { number + 1.0 } else { number - 1.0 }.to_string())
        }
        choice if choices.contains(&choice) => {
            choices.iter().find(|other| **other != choice).map(|one| (*one).to_owned())
        }
        _ => None,
    }
}

/// The text of an option in a list of options.
fn value<'t>(options: &'t str, name: &str) -> Option<&'t str> {
    options.split(';').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// Opens with the default value and with another one. `in_force` tells the value of the option.
fn reopened(
    row: &Documented,
    given: impl Fn(Options, &str, &str) -> Options,
    in_force: impl Fn(&Db) -> String,
) -> bool {
    let Some(other) = another(row) else { return false };
    let options = Options::in_memory();
    drop(Db::open_with("/db", &options).unwrap());
    match Db::open_with("/db", &given(options, row.name, &other)) {
        Ok(db) if row.home == base::options::row::Home::Unwritten => drop(db),
        Ok(db) => {
            let now = in_force(&db);
            let now = value(&now, row.name).unwrap_or_default();
            let same = now == other || now.parse::<f64>().ok().is_some_and(|now| Ok(now) == other.parse::<f64>());
            assert!(same, "{} was given as {other}, and is {now}", row.name);
        }
        Err(error) => {
            assert!(
                matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::Unsupported),
                "{}: {error}",
                row.name
            );
            assert!(error.to_string().contains(row.name), "{}={other}: {error}", row.name);
        }
    }
    true
}

#[test]
fn options_of_the_second_open_take_effect_or_are_refused_by_name() {
    let database = rows::<DbOptions>();
    let tried =
        database.iter().filter(|row| reopened(row, |all, name, value| all.option(name, value), Db::options_text));
    assert!(tried.count() > 40, "of {}", database.len());
    let family = rows::<EngineFamilyOptions>();
    let given = |all: Options, name: &str, value: &str| all.default_family(FamilyOptions::new().option(name, value));
    let tried = family.iter().filter(|row| reopened(row, given, |db| db.default_family().options_text()));
    assert!(tried.count() > 30, "of {}", family.len());
}

#[test]
fn a_family_that_exists_takes_what_can_change_and_refuses_the_rest_with_the_remedy() {
    let db = super::in_memory();
    db.family("there").unwrap();
    for row in rows::<EngineFamilyOptions>() {
        let Some(other) = another(&row) else { continue };
        let mutable = row.mutable;
        match db.family_with("there", &FamilyOptions::new().option(row.name, &other)) {
            Ok(family) => {
                let now = family.options_text();
                assert!(mutable && value(&now, row.name).is_some(), "{}: {now}", row.name);
                assert!(db.family_with("there", &FamilyOptions::new().option(row.name, &other)).is_ok(), "again");
            }
            Err(error) => {
                let text = error.to_string();
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
                assert!(text.contains(row.name) && text.contains("\"there\" exists already"), "{text}");
                assert!(!mutable || text.contains("bounds") || text.contains("must"), "{text}");
                assert!(text.contains("Options::family(\"there\", ...)"), "{text}");
            }
        }
    }
    let filtered = FamilyOptions::new().compaction_filter_fn("none", |_, _, _| FilterDecision::Keep);
    let error = db.family_with("there", &filtered).unwrap_err().to_string();
    assert!(error.contains("a compaction filter cannot change") && error.contains("Options::family"), "{error}");
    let filtered = db.family_with("filtered", &filtered).and_then(|_| db.family_with("filtered", &filtered));
    assert!(filtered.is_ok(), "the same filter by name");
}
