//! Values of options that have no effect here, or another one than they say: kept for getters, told once when a database
//! is opened, and refused then where an option changes what is stored, kept or found.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::options::known::{Changes, IGNORE_UNSUPPORTED};
use crate::options::row::{Load, OptionGroup};
use crate::options::string;

/// Texts by option, as option strings have them: names that have no effect here, and options of ours that were given a
/// value which has another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept(BTreeMap<String, String>);

impl Kept {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn set(&mut self, name: &str, text: &str) {
        self.0.insert(name.to_owned(), text.to_owned());
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

/// What an OPTIONS file and option strings say beside the rows: options that only change how something is done. Others
/// describe nothing that is there.
pub(super) fn written(group: &dyn OptionGroup) -> Vec<(&str, String)> {
    let only_how = |name: &str| {
        let row = group.unhonoured().iter().find(|row| row.name == name);
        row.is_some_and(|row| row.changes == Changes::How)
    };
    let braced = |text: &str| if text.contains([';', '=']) { format!("{{{text}}}") } else { text.to_owned() };
    group.kept().iter().filter(|(name, _)| only_how(name)).map(|(name, text)| (name, braced(text))).collect()
}

/// Looks at what a group keeps, and at options that are taken for others. Returns what is to be told of it, nested groups
/// included.
///
/// # Errors
/// `Unsupported` or `InvalidArgument`, naming the option: it changes what is stored, kept or found, and
/// `ignore_unsupported` is false.
pub fn review<G: OptionGroup + Clone>(group: &G, ignore_unsupported: bool) -> Result<Vec<String>> {
    // Numbers out of bounds were set by those who cannot be refused them.
    let mut load = Load { ignore_unsupported, adopting: true, ..Load::default() };
    review_into(&mut group.clone(), &mut load)?;
    Ok(load.warnings)
}

fn review_into(scratch: &mut dyn OptionGroup, load: &mut Load) -> Result<()> {
    let kept: Vec<(String, String)> =
        scratch.kept().iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    let is_kept = |name: &str| kept.iter().any(|(kept, _)| kept == name);
    for (row, setting) in scratch.settings().into_iter().filter(|(row, _)| !is_kept(row.name)) {
        load.warnings.extend(setting.remark().map(|remark| format!("option `{}`: {remark}", row.name)));
    }
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

/// Takes the word of the caller that unsupported options may have no effect, wherever it stands among others.
pub(super) fn note_ignore<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>, load: &mut Load) -> Result<()> {
    for (_, text) in pairs.into_iter().filter(|(name, _)| *name == IGNORE_UNSUPPORTED) {
        string::set_flag(&mut load.ignore_unsupported, text)?;
    }
    Ok(())
}
