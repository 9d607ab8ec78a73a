//! Setting a group's options all at once: after an error the group is as it was.

use serde_json::Value;

use crate::error::Result;
use crate::options::document::{self, Syntax};
use crate::options::row::{Load, OptionGroup};
use crate::options::{DbOptions, FamilyOptions, kept, string};

/// Sets what an option string names (`write_buffer_size=64M;block_based_table_factory={block_size=8K}`).
///
/// Returns warnings: options that have no effect here, or another than they say.
///
/// # Errors
/// `InvalidArgument` or `Unsupported`: a value that cannot be honoured, or an unknown name, with the nearest known one.
pub fn apply_string<G: OptionGroup + Clone>(group: &mut G, text: &str) -> Result<Vec<String>> {
    all_or_nothing(group, Load::default(), |copy, load| string::apply(copy, text, load))
}

/// As [`apply_string`], of a database and a family at once: each name goes to the one that has it.
///
/// # Errors
/// As [`apply_string`]; both are as they were then.
pub fn apply_both(db: &mut DbOptions, family: &mut FamilyOptions, text: &str) -> Result<Vec<String>> {
    apply_both_by(db, family, text, Load::default())
}

/// As [`apply_both`]; what [`review`](super::kept::review) refuses is kept.
///
/// # Errors
/// As [`apply_both`].
pub fn keep_both(db: &mut DbOptions, family: &mut FamilyOptions, text: &str) -> Result<Vec<String>> {
    apply_both_by(db, family, text, Load { defers_refusal: true, ..Load::default() })
}

fn apply_both_by(db: &mut DbOptions, family: &mut FamilyOptions, text: &str, mut load: Load) -> Result<Vec<String>> {
    let mut copy = (db.clone(), family.clone());
    let pairs = string::pairs(text)?;
    kept::note_ignore(pairs.iter().copied(), &mut load)?;
    for (name, value) in pairs {
        let is_of_db = copy.0.find_mut(name).is_some() || copy.0.unhonoured().iter().any(|row| row.name == name);
        let group: &mut dyn OptionGroup = if is_of_db { &mut copy.0 } else { &mut copy.1 };
        string::set(group, name, value, &mut load)?;
    }
    (*db, *family) = copy;
    Ok(load.warnings)
}

/// Sets what a JSON object or YAML mapping names, RocksDB's names being the keys.
///
/// # Errors
/// As [`apply_string`], with line and column.
pub fn apply_document<G: OptionGroup + Clone>(group: &mut G, text: &str, syntax: Syntax) -> Result<Vec<String>> {
    all_or_nothing(group, Load::default(), |copy, load| document::apply(copy, text, syntax, load))
}

/// The same for JSON that was parsed already.
///
/// # Errors
/// As [`apply_string`].
pub fn apply_value<G: OptionGroup + Clone>(group: &mut G, value: &Value) -> Result<Vec<String>> {
    all_or_nothing(group, Load::default(), |copy, load| document::apply_value(copy, value, load))
}

/// Changes options of an open database.
///
/// # Errors
/// As [`apply_string`]; `InvalidArgument` for an option that is fixed when the database is opened.
pub fn set_at_runtime<G: OptionGroup + Clone>(group: &mut G, changes: &[(&str, &str)]) -> Result<Vec<String>> {
    let load = Load { running: true, ..Load::default() };
    all_or_nothing(group, load, |copy, load| {
        kept::note_ignore(changes.iter().copied(), load)?;
        changes.iter().try_for_each(|(name, value)| string::set(copy, name, value, load))
    })
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
