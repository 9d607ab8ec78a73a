//! Values of options without effect here, or with another meaning. Kept for getters. Opening a database warns once, or
//! refuses an option if it changes the data stored, kept or found.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::options::known::{Changes, IGNORE_UNSUPPORTED};
use crate::options::row::{Load, OptionGroup};
use crate::options::string;

/// Texts by option, in option string syntax: names without effect here, and our own options set to a value with another
/// meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept(BTreeMap<String, String>);

impl Kept {
    /// The text of an option.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Keeps the text of an option.
    pub fn set(&mut self, name: &str, text: &str) {
        self.0.insert(name.to_owned(), text.to_owned());
    }

    /// Forgets an option.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Forgets all options.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Names and texts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

/// Kept options to write to OPTIONS files and option strings, beside the rows. [`Changes::How`] only: the rest describe
/// nothing in the database.
pub(super) fn written(group: &dyn OptionGroup) -> Vec<(&str, String)> {
    let only_how = |name: &str| {
        let row = group.unhonoured().iter().find(|row| row.name == name);
        row.is_some_and(|row| row.changes == Changes::How)
    };
    let braced = |text: &str| if text.contains([';', '=']) { format!("{{{text}}}") } else { text.to_owned() };
    group.kept().iter().filter(|(name, _)| only_how(name)).map(|(name, text)| (name, braced(text))).collect()
}

/// Checks a group's kept options, and options taken with another meaning. Returns warnings, nested groups included.
///
/// # Errors
/// `Unsupported` or `InvalidArgument`, naming the option: it changes the data stored, kept or found, and
/// `ignore_unsupported` is false.
pub fn review<G: OptionGroup + Clone>(group: &G, ignore_unsupported: bool) -> Result<Vec<String>> {
    // Out-of-bounds numbers were already accepted, from files RocksDB may have written.
    let mut load = Load { ignore_unsupported, adopting: true, ..Load::default() };
    review_into(&mut group.clone(), &mut load)?;
    Ok(load.warnings)
}

fn review_into(scratch: &mut dyn OptionGroup, load: &mut Load) -> Result<()> {
    let kept: Vec<(String, String)> =
        scratch.kept().iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    for (name, text) in &kept {
        string::set(scratch, name, text, load)?;
    }
    let nested: Vec<&'static str> =
        scratch.settings().iter().filter(|(_, setting)| setting.group().is_some()).map(|(row, _)| row.name).collect();
    for name in nested {
        let group = scratch.find_mut(name).and_then(|(_, setting)| setting.group_mut());
        group.map_or(Ok(()), |group| review_into(group, load))?;
    }
    Ok(())
}

/// Reads `ignore_unsupported_options` ahead of all pairs: its position does not matter.
pub(super) fn read_ignore<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>, load: &mut Load) -> Result<()> {
    for (_, text) in pairs.into_iter().filter(|(name, _)| *name == IGNORE_UNSUPPORTED) {
        string::set_flag(&mut load.ignore_unsupported, text)?;
    }
    Ok(())
}
