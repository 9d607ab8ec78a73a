//! The outcome of a configured database, as option strings.

use std::fmt::Write;

use base::options::row::OptionGroup;
use base::options::{DbOptions, FamilyOptions};

use crate::config::databases::ConfiguredDb;

impl ConfiguredDb {
    /// One option a line, as in option strings: changed ones only, or all.
    pub fn describe(&self, all: bool) -> String {
        let mut text = format!("database {} in {}", self.name, self.path.display());
        text += if self.read_only { ", for reading only\n" } else { "\n" };
        section(&mut text, "DBOptions", &self.db, &DbOptions::default(), all);
        let families = self.families.iter().map(|(name, options)| (format!("CFOptions \"{name}\""), options));
        let others = self.other_families.iter().map(|options| ("CFOptions of all other families".to_owned(), options));
        for (title, options) in families.chain(others) {
            section(&mut text, &title, options, &FamilyOptions::default(), all);
        }
        text
    }
}

fn section(text: &mut String, title: &str, group: &dyn OptionGroup, defaults: &dyn OptionGroup, all: bool) {
    let _ = writeln!(text, "  {title}");
    for line in differing(group, defaults, all) {
        let _ = writeln!(text, "    {line}");
    }
}

/// `name=value` of each changed option; of a nested group, its changed options.
pub(super) fn differing(group: &dyn OptionGroup, defaults: &dyn OptionGroup, all: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for ((row, setting), (_, default)) in group.settings().into_iter().zip(defaults.settings()) {
        let value = setting.text();
        if !all && value == default.text() {
            continue;
        }
        let value = match (setting.group(), default.group()) {
            (Some(nested), Some(defaults)) => format!("{{{}}}", differing(nested, defaults, all).join(";")),
            _ => value,
        };
        lines.push(format!("{}={value}", row.name));
    }
    lines
}
