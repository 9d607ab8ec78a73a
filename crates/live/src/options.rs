//! Options as people read them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Serialize;
use spillway::internal::options::{Documented, TableOptions, rows};
use spillway::internal::{DbOptions, FamilyOptions};
use spillway::observe::ObservedOption;

use crate::units::{Age, Bytes, Micros};

/// An option that differs from its default or is named by advice, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Shown {
    /// The family; `None` for an option of the database.
    pub family: Option<String>,
    /// The option's name.
    pub name: String,
    /// The option that has this one as a member: its value is changed as `{name=value}`.
    pub member_of: Option<String>,
    /// Its value, as an option string has it.
    pub value: String,
    /// Its value in units; of several settings those that differ.
    pub text: String,
    /// Its default, likewise.
    pub default: String,
    /// It can be changed while the database is open.
    pub is_mutable: bool,
    /// It can delete data: the page does not change it.
    pub deletes_data: bool,
    /// It changed while the page was served.
    pub is_changed: bool,
    /// The verdict or a piece of advice names it.
    pub is_named: bool,
    /// The value that advice has for it, in units.
    pub advised: Option<String>,
}

/// An option that words name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Named {
    /// The family that the words are of, if they are of one.
    pub family: Option<String>,
    /// The option's name.
    pub name: String,
    /// The value that is advised.
    pub to: Option<String>,
}

impl Named {
    /// The options that a text names: those of one word, such as `statistics`, are taken for words.
    pub fn in_text<'a>(family: Option<&'a str>, text: &'a str) -> impl Iterator<Item = Named> + 'a {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let names = words.filter(|word| word.contains('_') && KNOWN.contains_key(word));
        names.map(move |name| Named { family: family.map(str::to_owned), name: name.to_owned(), to: None })
    }
}

/// The options of an option that has members, as option strings call it.
const TABLES: &str = "block_based_table_factory";

/// What is known of an option by its name alone.
struct Known {
    row: Documented,
    of: Group,
}

#[derive(Clone, Copy, PartialEq)]
enum Group {
    Db,
    Family,
    /// Members of `block_based_table_factory`.
    Table,
}

static KNOWN: LazyLock<BTreeMap<&'static str, Known>> = LazyLock::new(|| {
    let groups = [(Group::Table, rows::<TableOptions>()), (Group::Family, rows::<FamilyOptions>())];
    let groups = groups.into_iter().chain([(Group::Db, rows::<DbOptions>())]);
    groups.flat_map(|(of, rows)| rows.into_iter().map(move |row| (row.name, Known { row, of }))).collect()
});

/// Options that change while the database is open and then delete data: tables that FIFO compaction no longer keeps,
/// archived logs, and, at the close, what only memtables hold.
const DELETING: [&str; 5] =
    ["compaction_options_fifo", "ttl", "WAL_ttl_seconds", "WAL_size_limit_MB", "avoid_flush_during_shutdown"];

/// Whether a change of an option, or of a member of it, can delete data.
pub fn deletes_data(name: &str) -> bool {
    name.split('.').next().is_some_and(|option| DELETING.contains(&option))
}

/// When a change of an option takes effect.
pub fn when(is_mutable: bool) -> &'static str {
    if is_mutable { "at run time" } else { "at the next open" }
}

/// Options in words: first the ones changed since `first`, then other differences from defaults. Options of `named` have a row
/// in any case; without a family, the row of `default_family`.
pub fn shown(now: &[ObservedOption], first: &[ObservedOption], named: &[Named], default_family: &str) -> Vec<Shown> {
    let earlier: Vec<_> = first.iter().flat_map(rows_of).collect();
    let is_same = |a: &Shown, b: &Shown| (&a.family, &a.name) == (&b.family, &b.name);
    let mut all: Vec<_> = now.iter().flat_map(rows_of).collect();
    for row in &mut all {
        row.is_changed = !earlier.iter().any(|old| is_same(old, row) && old.value == row.value);
    }
    for one in named {
        mark(&mut all, one, default_family);
    }
    all.sort_by_key(|option| !option.is_changed);
    all
}

/// Marks the row of an option; makes one if it has its default.
fn mark(all: &mut Vec<Shown>, named: &Named, default_family: &str) {
    let is_it = |row: &Shown| row.name == named.name && (named.family.is_none() || row.family == named.family);
    let of_db = |row: &Shown| row.name == named.name && row.family.is_none();
    let advised = named.to.as_ref().map(|to| text(&named.name, to));
    if let Some(row) = all.iter_mut().find(|row| is_it(row) || of_db(row)) {
        row.is_named = true;
        row.advised = advised.or(row.advised.take());
        return;
    }
    let Some(known) = KNOWN.get(named.name.as_str()) else { return };
    let family = (known.of != Group::Db).then(|| named.family.clone().unwrap_or_else(|| default_family.to_owned()));
    let mut row = row_of(family, &named.name, &known.row.default, &known.row.default, known.row.mutable);
    row.member_of = (known.of == Group::Table).then(|| TABLES.to_owned());
    (row.is_named, row.advised) = (true, advised);
    all.push(row);
}

/// The row of an option; of an option with members, a row for each member that differs.
fn rows_of(option: &ObservedOption) -> Vec<Shown> {
    let row = |name: &str, value: &str, default: &str, is_mutable| {
        row_of(option.family.clone(), name, value, default, is_mutable)
    };
    match (settings(&option.value), settings(&option.default)) {
        (Some(value), Some(default)) if option.name == TABLES => {
            let differing = value.into_iter().filter(|member| !default.contains(member));
            let member = |(name, value): (&str, &str)| {
                let usual = default.iter().find(|(other, _)| *other == name).map_or("", |(_, usual)| usual);
                let is_mutable = KNOWN.get(name).is_some_and(|known| known.row.mutable);
                Shown { member_of: Some(TABLES.to_owned()), ..row(name, value, usual, is_mutable) }
            };
            differing.map(member).collect()
        }
        (Some(value), Some(default)) => {
            let (text, default) = differing(&value, &default);
            vec![Shown { text, default, ..row(&option.name, &option.value, "", option.is_mutable) }]
        }
        _ => vec![row(&option.name, &option.value, &option.default, option.is_mutable)],
    }
}

fn row_of(family: Option<String>, name: &str, value: &str, default: &str, is_mutable: bool) -> Shown {
    Shown {
        family,
        name: name.to_owned(),
        member_of: None,
        value: value.to_owned(),
        text: text(name, value),
        default: text(name, default),
        is_mutable,
        deletes_data: deletes_data(name),
        is_changed: false,
        is_named: false,
        advised: None,
    }
}

/// A value with its unit: `67108864` of `write_buffer_size` is `64 MiB`. What has no unit stays as it is.
pub fn text(name: &str, value: &str) -> String {
    let Ok(number) = value.parse::<u64>() else { return value.to_string() };
    let is_bytes = ["bytes", "size"].iter().any(|part| name.contains(part))
        || ["rate", "cache"].iter().any(|end| name.ends_with(end));
    match number {
        u64::MAX => "no limit".to_string(),
        1024.. if is_bytes => exact(number),
        1000.. if name.ends_with("micros") => Micros(number).to_string(),
        120.. if name.ends_with("sec") || name.ends_with("seconds") => Age(number).to_string(),
        _ => value.to_string(),
    }
}

/// Whole units only: a value that is none must not look like one.
fn exact(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = units.into_iter().find(|(shift, _)| bytes.trailing_zeros() >= *shift);
    match whole {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} (about {})", Bytes(bytes)),
    }
}

/// The settings of `{a=1;b={c=2;};}`; `None` for a plain value.
fn settings(value: &str) -> Option<Vec<(&str, &str)>> {
    let inner = value.strip_prefix('{')?.strip_suffix('}')?;
    let (mut depth, mut from, mut all) = (0usize, 0, Vec::new());
    for (at, letter) in inner.char_indices().chain([(inner.len(), ';')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => {
                all.extend(inner.get(from..at).and_then(|setting| setting.split_once('=')));
                from = at + 1;
            }
            _ => {}
        }
    }
    Some(all)
}

/// The settings that differ, in both.
fn differing(value: &[(&str, &str)], default: &[(&str, &str)]) -> (String, String) {
    let of = |all: &[(&str, &str)], others: &[(&str, &str)]| {
        let other = |setting: &&(&str, &str)| !others.contains(setting);
        let words = |(name, value): &(&str, &str)| format!("{name}={}", text(name, value));
        all.iter().filter(other).map(words).collect::<Vec<_>>().join("; ")
    };
    (of(value, default), of(default, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_say_that_they_delete_are_deleting_ones() {
        let mutable: Vec<_> = KNOWN.values().filter(|known| known.row.mutable).map(|known| &known.row).collect();
        let listed = mutable.iter().filter(|row| deletes_data(row.name)).count();
        assert_eq!(listed, DELETING.len(), "each is an option, and changes at run time");
        let harmless = "wal_bytes_per_sync"; // its text tells of logs that are deleted in any case
        for row in
            mutable.iter().filter(|row| ["delete", "What is kept", "lost"].iter().any(|word| row.doc.contains(word)))
        {
            assert!(deletes_data(row.name) || row.name == harmless, "{}: {}", row.name, row.doc);
        }
    }

    #[test]
    fn values_have_their_units() {
        for (name, value, shown) in [
            ("write_buffer_size", "67108864", "64 MiB"),
            ("max_bytes_for_level_base", "1099511627776", "1 TiB"),
            ("rate_limiter_bytes_per_sec", "5000000", "5000000 (about 4.8 MiB)"),
            ("delayed_write_rate", "16777216", "16 MiB"),
            ("slow_operation_micros", "10000", "10.0 ms"),
            ("ttl_seconds", "7200", "2 h 0 min"),
            ("max_background_jobs", "2048", "2048"),
            ("max_open_files", "-1", "-1"),
            ("max_compaction_bytes", "18446744073709551615", "no limit"),
            ("compression", "kLZ4Compression", "kLZ4Compression"),
        ] {
            assert_eq!(text(name, value), shown, "{name}");
        }
    }

    #[test]
    fn of_settings_those_that_differ_are_shown_and_changes_come_first() {
        let option = |name: &str, value: &str, default: &str| {
            let mut option = ObservedOption::default();
            (option.name, option.value, option.default) = (name.into(), value.into(), default.into());
            option
        };
        let table = option(
            "block_based_table_factory",
            "{block_size=16384;filter={a=1;b=2;};block_cache=268435456;}",
            "{block_size=4096;filter={a=1;b=2;};block_cache=33554432;}",
        );
        let first = [table.clone(), option("write_buffer_size", "1048576", "67108864")];
        let now =
            [table, option("write_buffer_size", "2097152", "67108864"), option("rate", "{a=1;b=2;}", "{a=1;b=3;}")];
        let all = shown(&now, &first, &[], "default");
        let texts: Vec<_> =
            all.iter().map(|row| (row.name.as_str(), row.text.as_str(), row.default.as_str())).collect();
        let members = [("block_size", "16 KiB", "4 KiB"), ("block_cache", "256 MiB", "32 MiB")];
        assert_eq!(texts[..2], [("write_buffer_size", "2 MiB", "64 MiB"), ("rate", "b=2", "b=3")]);
        assert_eq!(texts[2..], members);
        assert!(all[..2].iter().all(|row| row.is_changed) && all[2..].iter().all(|row| !row.is_changed), "{all:?}");
        let times: Vec<_> = all[2..].iter().map(|row| (row.is_mutable, row.member_of.as_deref())).collect();
        assert_eq!(times, [(true, Some(TABLES)), (false, Some(TABLES))], "a member has its own time of change");
        assert_eq!(settings("{}"), Some(vec![]));
        assert_eq!(settings("{a={b=1};c"), None);
    }

    #[test]
    fn an_option_that_words_name_has_a_row() {
        let named = |family: Option<&str>, name: &str, to: Option<&str>| Named {
            family: family.map(str::to_owned),
            name: name.to_owned(),
            to: to.map(str::to_owned),
        };
        let mut wal = ObservedOption::default();
        (wal.name, wal.value, wal.is_mutable) = ("max_background_jobs".into(), "4".into(), true);
        let wanted = [
            named(Some("f"), "block_cache", Some("67108864")),
            named(Some("f"), "max_background_jobs", None),
            named(None, "write_buffer_size", None),
            named(None, "no_such_option", None),
        ];
        let all = shown(&[wal.clone()], &[wal], &wanted, "default");
        assert!(all.iter().all(|row| row.is_named), "{all:?}");
        let told: Vec<_> =
            all.iter().map(|row| (row.family.as_deref(), row.name.as_str(), row.text.as_str())).collect();
        let in_time = [(None, "max_background_jobs", "4")];
        assert_eq!(told[..1], in_time, "an option of the database has no row for a family");
        assert_eq!(told[1..], [(Some("f"), "block_cache", "32 MiB"), (Some("default"), "write_buffer_size", "64 MiB")]);
        let cache = &all[1];
        assert_eq!((cache.advised.as_deref(), cache.is_mutable), (Some("64 MiB"), false));
        let names: Vec<_> = Named::in_text(None, "More max_subcompactions, wal_dir or statistics.").collect();
        assert_eq!(names, [named(None, "max_subcompactions", None), named(None, "wal_dir", None)]);
    }
}
