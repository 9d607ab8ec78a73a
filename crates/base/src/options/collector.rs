//! `table_properties_collectors`: tables with many deletions are marked for compaction as they are written.

use std::fmt::Write as _;

use crate::error::{Error, Result};
use crate::options::row::{Load, Setting};
use crate::options::string;

/// RocksDB's name of the collector.
const COMPACT_ON_DELETION: &str = "CompactOnDeletionCollector";

/// Marks a new table for compaction if deletions stand close together in it, or are a large part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompactOnDeletion {
    /// Entries in a row, of which `deletion_trigger` are deletions. 0: not looked at.
    pub window_size: usize,
    /// Deletions among `window_size` entries in a row that mark the table.
    pub deletion_trigger: usize,
    /// Part of a table's entries that mark it if they are deletions. 0 or above 1: not looked at.
    pub deletion_ratio: f64,
    /// Smaller tables, in bytes, are not marked.
    pub min_file_size: u64,
}

impl CompactOnDeletion {
    /// By the names in RocksDB's option files, or `ID:WINDOW:TRIGGER[:RATIO[:BYTES]]`.
    fn parse(text: &str) -> Result<Self> {
        let (id, members) = string::object_id(text)?;
        let (id, short) = id.split_once(':').unwrap_or((id, ""));
        if id != COMPACT_ON_DELETION {
            return Err(Error::unsupported(format!("collector `{id}` is unknown; {COMPACT_ON_DELETION} is there")));
        }
        let mut collector = CompactOnDeletion::default();
        let places = ["window_size", "deletion_trigger", "deletion_ratio", "min_file_size"];
        let by_place = places.into_iter().zip(short.split(':').filter(|number| !number.is_empty()));
        for (name, number) in members.into_iter().filter(|(name, _)| *name != "id").chain(by_place) {
            collector.put(name, number)?;
        }
        Ok(collector)
    }

    fn put(&mut self, name: &str, number: &str) -> Result<()> {
        let wrong = || Error::invalid_argument(format!("`{number}` is no value of `{name}` of {COMPACT_ON_DELETION}"));
        match name {
            "window_size" => self.window_size = number.parse().map_err(|_| wrong())?,
            "deletion_trigger" => self.deletion_trigger = number.parse().map_err(|_| wrong())?,
            "deletion_ratio" => self.deletion_ratio = number.parse().map_err(|_| wrong())?,
            "min_file_size" => self.min_file_size = number.parse().map_err(|_| wrong())?,
            _ => return Err(Error::invalid_argument(format!("{COMPACT_ON_DELETION} has no option `{name}`"))),
        }
        Ok(())
    }
}

/// The collectors of a family; each can mark a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collectors(pub Vec<CompactOnDeletion>);

impl Setting for Collectors {
    fn kind(&self) -> String {
        "collectors".to_string()
    }

    fn text(&self) -> String {
        let mut text = String::from("{");
        for (nth, of) in self.0.iter().enumerate() {
            let CompactOnDeletion { window_size, deletion_trigger, deletion_ratio, min_file_size } = of;
            let deletion_ratio = deletion_ratio.text();
            let between = if nth > 0 { ":" } else { "" };
            let _ = write!(
                text,
                "{between}{{id={COMPACT_ON_DELETION};min_file_size={min_file_size};deletion_ratio={deletion_ratio};\
                 deletion_trigger={deletion_trigger};window_size={window_size};}}"
            );
        }
        if self.0.is_empty() { String::new() } else { text + "}" }
    }

    fn logged(&self) -> String {
        let words = |of: &CompactOnDeletion| {
            let CompactOnDeletion { window_size, deletion_trigger, deletion_ratio, .. } = of;
            format!(
                "{COMPACT_ON_DELETION} (Sliding window size = {window_size} Deletion trigger = {deletion_trigger} Deletion \
                 ratio = {deletion_ratio});"
            )
        };
        self.0.iter().map(words).collect()
    }

    fn set(&mut self, text: &str, _load: &mut Load) -> Result<()> {
        let text = text.trim();
        let list = if text.starts_with("{{") { string::strip_braces(text)? } else { text };
        let ends = list.match_indices("}:{").map(|(at, _)| at + 1);
        let mut from = 0;
        let mut parts = Vec::new();
        for end in ends.chain([list.len()]) {
            parts.extend(list.get(from..end).filter(|part| !part.is_empty() && *part != "nullptr"));
            from = end + 1;
        }
        self.0 = parts.into_iter().map(CompactOnDeletion::parse).collect::<Result<_>>()?;
        Ok(())
    }
}
