//! What a program gives again, to a database and families that exist, takes effect or is an error that says what to do.

use base::options::row::{Documented, Home, rows};
use base::options::{DbOptions, FamilyOptions as EngineFamilyOptions};
use spillway::extend::FilterDecision;
use spillway::{Db, ErrorKind, FamilyOptions, Options};

/// Options whose values are the caller's objects or other options' business: tests of their own.
const OBJECTS: [&str; 3] = ["comparator", "merge_operator", "wal_dir"];

/// Options that other options bound; the event log tells the value that is used.
const BOUND_BY_OTHERS: [&str; 2] = ["memtable_prefix_bloom_size_ratio", "min_write_buffer_number_to_merge"];

/// Another value than the default, as text; none where the row's type is not a number, a switch or a choice.
fn another(row: &Documented) -> Option<String> {
    let choices: Vec<&str> = row.kind.split([',', '|']).map(str::trim).collect();
    match row.default.as_str() {
        _ if OBJECTS.contains(&row.name) => None,
        "true" => Some("false".to_owned()),
        "false" => Some("true".to_owned()),
        number if number.parse::<f64>().is_ok() => {
            let number: f64 = number.parse().unwrap();
            let bound = |at: usize| row.bounds.split(" to ").nth(at).and_then(|bound| bound.parse::<f64>().ok());
            let larger = bound(1).map_or(number + 1.0, |max| max.min(number + 1.0));
            Some(if larger > number { larger } else { bound(0).unwrap_or(0.0) }.to_string())
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

/// Opens with the default value and with another one, and adds what is wrong. `in_force` tells the values.
fn reopen(
    row: &Documented,
    given: impl Fn(Options, &str, &str) -> Options,
    in_force: impl Fn(&Db) -> String,
    wrong: &mut Vec<String>,
) -> bool {
    let Some(other) = another(row) else { return false };
    let options = Options::in_memory();
    drop(Db::open_with("/db", &options).unwrap());
    match Db::open_with("/db", &given(options, row.name, &other)) {
        Ok(db) if row.home == Home::Unwritten || BOUND_BY_OTHERS.contains(&row.name) => drop(db),
        Ok(db) => {
            let now = in_force(&db);
            let now = value(&now, row.name).unwrap_or_default();
            let is_taken = now == other || now.parse::<f64>().ok().is_some_and(|now| Ok(now) == other.parse::<f64>());
            wrong.extend((!is_taken).then(|| format!("{} was given as {other}, and is {now}", row.name)));
        }
        Err(error) => {
            let is_refusal = matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::Unsupported);
            let is_told = is_refusal && error.to_string().contains(row.name);
            wrong.extend((!is_told).then(|| format!("{}={other}: {error}", row.name)));
        }
    }
    true
}

#[test]
fn options_of_the_second_open_take_effect_or_are_refused_by_name() {
    let mut wrong = Vec::new();
    let database = rows::<DbOptions>();
    let given = |all: Options, name: &str, value: &str| all.option(name, value);
    let tried = database.iter().filter(|row| reopen(row, given, Db::options_text, &mut wrong)).count();
    assert!(tried > 40, "{tried} of {}", database.len());
    let family = rows::<EngineFamilyOptions>();
    let given = |all: Options, name: &str, value: &str| all.default_family(FamilyOptions::new().option(name, value));
    let in_force = |db: &Db| db.default_family().options_text();
    let tried = family.iter().filter(|row| reopen(row, given, in_force, &mut wrong)).count();
    assert!(tried > 30, "{tried} of {}", family.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_family_that_exists_takes_what_can_change_and_refuses_the_rest_with_the_remedy() {
    let db = super::in_memory();
    db.family("there").unwrap();
    let mut wrong = Vec::new();
    for row in rows::<EngineFamilyOptions>() {
        let Some(other) = another(&row) else { continue };
        let given = FamilyOptions::new().option(row.name, &other);
        let text = match db.family_with("there", &given) {
            Ok(_) if row.mutable && db.family_with("there", &given).is_ok() => continue,
            Ok(_) => "taken once".to_owned(),
            Err(error) => error.to_string(),
        };
        let is_told = [row.name, "\"there\" exists already", "Options::family(\"there\", ...)"];
        if row.mutable || !is_told.iter().all(|part| text.contains(part)) {
            wrong.push(format!("{}={other}: {text}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let filtered = FamilyOptions::new().compaction_filter_fn("none", |_, _, _| FilterDecision::Keep);
    let error = db.family_with("there", &filtered).unwrap_err().to_string();
    assert!(error.contains("a compaction filter cannot change") && error.contains("Options::family"), "{error}");
    let filtered = db.family_with("filtered", &filtered).and_then(|_| db.family_with("filtered", &filtered));
    assert!(filtered.is_ok(), "the same filter by name");
}
