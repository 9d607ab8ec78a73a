//! Sets a group's options atomically: after an error the group is unchanged.

use serde_json::Value;

use crate::error::Result;
use crate::options::document::{self, Syntax};
use crate::options::row::{Load, OptionGroup, Setting};
use crate::options::{DbOptions, FamilyOptions, kept, string};

/// Sets the options of an option string (`write_buffer_size=64M;block_based_table_factory={block_size=8K}`).
///
/// Returns warnings: options without effect here, or with another meaning.
///
/// # Errors
/// `InvalidArgument` or `Unsupported`: a bad or unsupported value, or an unknown name, with the nearest known one.
pub fn apply_string<G: OptionGroup + Clone>(group: &mut G, text: &str) -> Result<Vec<String>> {
    all_or_nothing(group, Load::default(), |copy, load| string::apply(copy, text, load))
}

/// As [`apply_string`], for a database and a family at once. Names unknown to `db` go to `family`.
///
/// # Errors
/// As [`apply_string`]; both are unchanged then.
pub fn apply_both(db: &mut DbOptions, family: &mut FamilyOptions, text: &str) -> Result<Vec<String>> {
    apply_both_by(db, family, text, Load::default())
}

/// As [`apply_both`], for a caller of RocksDB's: keeps unsupported options for [`review`](super::kept::review) to refuse, and reads
/// numbers as RocksDB does.
///
/// # Errors
/// As [`apply_both`].
pub fn keep_both(db: &mut DbOptions, family: &mut FamilyOptions, text: &str) -> Result<Vec<String>> {
    apply_both_by(db, family, text, Load { defers_refusal: true, adopting: true, ..Load::default() })
}

fn apply_both_by(db: &mut DbOptions, family: &mut FamilyOptions, text: &str, mut load: Load) -> Result<Vec<String>> {
    let mut copy = (db.clone(), family.clone());
    let pairs = string::pairs(text)?;
    kept::read_ignore(pairs.iter().copied(), &mut load)?;
    for (name, value) in pairs {
        let is_of_db = copy.0.find_mut(name).is_some() || copy.0.unhonoured().iter().any(|row| row.name == name);
        let group: &mut dyn OptionGroup = if is_of_db { &mut copy.0 } else { &mut copy.1 };
        string::set(group, name, value, &mut load)?;
    }
    (*db, *family) = copy;
    Ok(load.warnings)
}

/// Sets the options of a JSON object or YAML mapping, with RocksDB's names as keys.
///
/// # Errors
/// As [`apply_string`], with line and column.
pub fn apply_document<G: OptionGroup + Clone>(group: &mut G, text: &str, syntax: Syntax) -> Result<Vec<String>> {
    all_or_nothing(group, Load::default(), |copy, load| document::apply(copy, text, syntax, load))
}

/// As [`apply_document`], for parsed JSON.
///
/// # Errors
/// As [`apply_string`].
pub fn apply_value<G: OptionGroup + Clone>(group: &mut G, value: &Value) -> Result<Vec<String>> {
    all_or_nothing(group, Load::default(), |copy, load| document::apply_value(copy, value, load))
}

/// Changes options of an open database.
///
/// # Errors
/// As [`apply_string`]; `InvalidArgument` for an option fixed at open.
pub fn set_at_runtime<G: OptionGroup + Clone>(group: &mut G, changes: &[(&str, &str)]) -> Result<Vec<String>> {
    let load = Load { running: true, ..Load::default() };
    all_or_nothing(group, load, |copy, load| {
        kept::read_ignore(changes.iter().copied(), load)?;
        changes.iter().try_for_each(|(name, value)| string::set(copy, name, value, load))
    })
}

/// The options that differ, as [`set_at_runtime`] takes them: names, and the texts in `wanted`. Of a group that differs the
/// members that do.
pub fn differences(now: &dyn OptionGroup, wanted: &dyn OptionGroup) -> Vec<(&'static str, String)> {
    let pairs = now.settings().into_iter().zip(wanted.settings());
    let changed = pairs.filter(|((_, now), (_, wanted))| now.text() != wanted.text());
    let text = |now: &dyn Setting, wanted: &dyn Setting| match (now.group(), wanted.group()) {
        (Some(now), Some(wanted)) => {
            let members = differences(now, wanted).into_iter();
            members.map(|(name, text)| format!("{name}={text};")).collect()
        }
        _ => wanted.text(),
    };
    changed.map(|((row, now), (_, wanted))| (row.name, text(now, wanted))).collect()
}

fn all_or_nothing<G: OptionGroup + Clone>(
    group: &mut G,
    mut load: Load,
    apply: impl FnOnce(&mut G, &mut Load) -> Result<()>,
) -> Result<Vec<String>> {
    let mut copy = group.clone();
    apply(&mut copy, &mut load)?;
    *group = copy;
    Ok(load.warnings)
}
