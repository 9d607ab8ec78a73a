//! Options as people read them.

use serde::Serialize;
use spillway::observe::ObservedOption;

use crate::units::{Age, Bytes, Micros};

/// An option that differs from its default, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Shown {
    /// The family; `None` for an option of the database.
    pub family: Option<String>,
    /// The option's name.
    pub name: String,
    /// Its value, as an option string has it.
    pub value: String,
    /// Its value in units; of several settings those that differ.
    pub text: String,
    /// Its default, likewise.
    pub default: String,
    /// It can be changed while the database is open.
    pub is_mutable: bool,
    /// It changed while the page was served.
    pub is_changed: bool,
}

/// Options in words, those first that changed since `first`.
pub fn shown(now: &[ObservedOption], first: &[ObservedOption]) -> Vec<Shown> {
    let mut all: Vec<_> = now.iter().map(|option| shown_of(option, first)).collect();
    all.sort_by_key(|option| !option.is_changed);
    all
}

fn shown_of(option: &ObservedOption, first: &[ObservedOption]) -> Shown {
    let is_same = |old: &&ObservedOption| old.family == option.family && old.name == option.name;
    let earlier = first.iter().find(is_same).map(|old| &old.value);
    let (value, default) = match (settings(&option.value), settings(&option.default)) {
        (Some(value), Some(default)) => differing(&value, &default),
        _ => (text(&option.name, &option.value), text(&option.name, &option.default)),
    };
    Shown {
        family: option.family.clone(),
        name: option.name.clone(),
        value: option.value.clone(),
        text: value,
        default,
        is_mutable: option.is_mutable,
        is_changed: earlier != Some(&option.value),
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
        let now = [table, option("write_buffer_size", "2097152", "67108864")];
        let all = shown(&now, &first);
        let texts: Vec<_> = all.iter().map(|option| (option.text.as_str(), option.is_changed)).collect();
        assert_eq!(texts, [("2 MiB", true), ("block_size=16 KiB; block_cache=256 MiB", false)]);
        assert_eq!(all[1].default, "block_size=4 KiB; block_cache=32 MiB");
        assert_eq!(settings("{}"), Some(vec![]));
        assert_eq!(settings("{a={b=1};c"), None);
    }
}
