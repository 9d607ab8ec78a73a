//! Result of a repair.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use base::{FamilyId, FileNumber, Result, SeqNo, UserOrder, name};
use vfs::UnreadableVfs;

use crate::core::doubt::{Doubt, is_within};
use crate::core::lost::{Lost, REPORT};
use crate::version::file_name::{self, FileType};

/// Result of a repair.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Damage to CURRENT or the MANIFEST; `None` if both were whole.
    pub manifest: Option<String>,
    /// The database's families after the repair, ascending by id.
    pub families: Vec<RepairedFamily>,
    /// Tables lost in whole or in part, or missing.
    pub lost: Vec<LostTable>,
    /// Damage to logs. Their readable part is in the database.
    pub logs: Vec<String>,
    /// Undamaged, unreferenced files, in `lost/` too: leftovers of a crash. Tables among them may be of an ingest in the lost part
    /// of damaged logs.
    pub superfluous: Vec<PathBuf>,
    /// What is lost of the stored options: the last OPTIONS file is damaged or missing, or lacks a family. What is there of them is
    /// in `lost/`. A program that gives its options itself may have lost nothing by it.
    pub lost_options: Vec<String>,
    /// What was amiss and cost nothing, or is not known to have cost anything.
    pub notes: Vec<String>,
    /// Keys whose values the remaining files do not prove.
    pub doubts: Vec<Doubt>,
    /// Files of which the device cannot read a part, each with the first error. The part counts as damaged.
    pub unreadable: Vec<String>,
    /// The last sequence number in the database.
    pub last_seq: SeqNo,
    /// [`last_seq`](Self::last_seq) of a RocksDB database is its MANIFEST's, and no table and no log has it. A compaction made the
    /// numbers zero, or what had them is not there.
    pub is_last_seq_unseen: bool,
    /// The directory was RocksDB's: a log, or its end, can be lost without a trace.
    pub may_lack_an_end: bool,
    /// The report of an earlier repair that lost or doubted something, in `lost/`: none of it is known better since. Who has
    /// dealt with it moves the file away.
    pub earlier: Option<PathBuf>,
    /// As [`earlier`](Self::earlier), of an earlier repair's [`lost_options`](Self::lost_options). Who has given the options
    /// again moves it away.
    pub earlier_options: Option<PathBuf>,
}

/// A family after a repair.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RepairedFamily {
    /// The family's number.
    pub id: FamilyId,
    /// The family's name.
    pub name: String,
    /// Number of tables before log replay.
    pub tables: usize,
    /// Bytes of the tables.
    pub bytes: u64,
    /// The first and the last user key in its tables.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
}

/// A table removed from the database.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LostTable {
    /// The file's path now; `None` if it was missing.
    pub path: Option<PathBuf>,
    /// Its name in the database.
    pub name: String,
    /// The family's name; `None` if unknown.
    pub family: Option<String>,
    /// User key range of lost writes, if known. Within it an older value may replace a lost one, or a deleted key may
    /// reappear.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    /// Why it is lost.
    pub why: String,
}

impl RepairReport {
    /// Whether every key has its last durable value, and the stored options are there: nothing is lost, damaged or in doubt, by
    /// an [`earlier`](Self::earlier) repair neither. But for what RocksDB's directories [may lack](Self::may_lack_an_end).
    pub fn lost_nothing(&self) -> bool {
        self.lost_no_key() && self.lost_options.is_empty() && self.earlier_options.is_none()
    }

    /// What may be said of a database that [lost nothing](Self::lost_nothing).
    pub fn claim(&self) -> &'static str {
        claim("nothing of it is lost", self.may_lack_an_end)
    }

    /// As [`lost_nothing`](Self::lost_nothing), whatever became of the stored options.
    pub fn lost_no_key(&self) -> bool {
        self.found_every_key() && self.earlier.is_none()
    }

    /// As [`lost_nothing`](Self::lost_nothing), of this repair alone.
    pub fn found_nothing(&self) -> bool {
        self.found_every_key() && self.lost_options.is_empty()
    }

    /// As [`lost_no_key`](Self::lost_no_key), of this repair alone.
    pub(super) fn found_every_key(&self) -> bool {
        self.lost.is_empty() && self.logs.is_empty() && self.doubts.is_empty()
    }

    /// Lists what could not be read. Records in such a part of a replayed log leave no trace: of RocksDB's, and of ours if it is
    /// in `replayed`. Values and large batches are listed one by one.
    pub(super) fn report_unreadable(&mut self, vfs: &UnreadableVfs, replayed: &BTreeSet<FileNumber>) {
        for (path, error) in vfs.unreadable() {
            let what = error.to_string();
            if self.unreadable.contains(&what) {
                continue;
            }
            let name = path.file_name().and_then(|name| name.to_str());
            let is_replayed = |(kind, number): (FileType, FileNumber)| match kind {
                FileType::Log => replayed.contains(&number),
                kind => kind == FileType::RocksLog,
            };
            if name.and_then(file_name::parse).is_some_and(is_replayed) {
                self.doubts.push(Doubt::of_all(format!("a part of a log is lost: {what}")));
            }
            self.unreadable.push(what);
        }
    }

    pub(super) fn write_to(&self, lost: &Lost<'_>) -> Result<PathBuf> {
        lost.write(REPORT, self.to_string().as_bytes())
    }

    /// Whether `key` of `family`, whose order is `order`, may not have its last durable value. Damage to logs is in the
    /// doubts too. After an [`earlier`](Self::earlier) repair it may be any key.
    pub fn is_in_doubt(&self, family: &str, key: &[u8], order: &UserOrder) -> bool {
        let is_of_lost = |lost: &LostTable| {
            let of_family = lost.family.as_ref().is_none_or(|name| name == family);
            of_family && lost.keys.as_ref().is_none_or(|keys| is_within(keys, key, order))
        };
        self.earlier.is_some()
            || self.lost.iter().any(is_of_lost)
            || self.doubts.iter().any(|doubt| doubt.covers(family, key, order))
    }
}

/// As text, one line for each item.
impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(what) = &self.manifest {
            writeln!(f, "MANIFEST: {what}; a new one is written")?;
        }
        self.unreadable.iter().try_for_each(|what| writeln!(f, "unreadable: {what}"))?;
        for family in &self.families {
            if family.tables == 0 {
                writeln!(f, "family {}: no tables; all that it holds is in logs", name::quoted(&family.name))?;
                continue;
            }
            let tables = if family.tables == 1 { "table" } else { "tables" };
            write!(f, "family {}: {} {tables}, {}", name::quoted(&family.name), family.tables, sized(family.bytes))?;
            match &family.keys {
                Some((first, last)) => writeln!(f, ", keys '{}' to '{}'", first.escape_ascii(), last.escape_ascii())?,
                None => writeln!(f)?,
            }
        }
        for lost in &self.lost {
            write!(f, "lost: {}", lost.name)?;
            if let Some(family) = &lost.family {
                write!(f, " of family {}", name::quoted(family))?;
            }
            if let Some((from, through)) = &lost.keys {
                write!(f, ", keys '{}' to '{}'", from.escape_ascii(), through.escape_ascii())?;
            }
            write!(f, ": {}", lost.why)?;
            match &lost.path {
                Some(path) => writeln!(f, "; the file is kept: {}", path.display())?,
                None => writeln!(f)?,
            }
        }
        self.logs.iter().try_for_each(|log| writeln!(f, "log: {log}"))?;
        self.lost_options.iter().try_for_each(|what| writeln!(f, "options: {what}"))?;
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))?;
        self.doubts.iter().try_for_each(|doubt| writeln!(f, "in doubt: {doubt}"))?;
        if let Some(earlier) = &self.earlier {
            writeln!(f, "an earlier repair lost or doubted something: {}", earlier.display())?;
        }
        if let Some(earlier) = &self.earlier_options {
            writeln!(f, "an earlier repair found stored options lost: {}", earlier.display())?;
        }
        let is_table = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "sst");
        let unnamed = self.superfluous.iter().filter(|path| !self.logs.is_empty() && is_table(path)).count();
        if unnamed > 0 {
            let remedy = "they are in lost/ now, and `spillway ingest` takes them again, as the newest data";
            writeln!(f, "{}; {remedy}", report_on_unnamed(unnamed))?;
        }
        match self.superfluous.len() - unnamed {
            0 => Ok(()),
            1 => writeln!(f, "1 file that belonged to nothing is in lost/ now"),
            count => writeln!(f, "{count} files that belonged to nothing are in lost/ now"),
        }
    }
}

/// What a report claims that found nothing lost: `whole`, if all logs and their ends are proven. RocksDB's logs have no end records, and
/// an end that is lost at a record's boundary leaves no trace.
pub(crate) fn claim(whole: &'static str, may_lack_an_end: bool) -> &'static str {
    match may_lack_an_end {
        false => whole,
        true => {
            "nothing is seen to be lost; RocksDB's logs do not tell how many they are and where they end: one that is gone, or its end, can go unseen"
        }
    }
}

/// What to tell of tables that nothing names, where logs are damaged or missing.
pub(crate) fn report_on_unnamed(count: usize) -> String {
    let tables = if count == 1 { "table" } else { "tables" };
    format!("{count} {tables} that nothing readable names: the lost part of the logs may have named them (an ingest)")
}

/// Bytes for people: `512 B`, `1.83 MiB`.
fn sized(bytes: u64) -> String {
    let (mut size, mut unit) = (bytes as f64, "B");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, next);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{size:.2} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_numbers_read_easily() {
        let family =
            |tables, bytes| RepairedFamily { id: FamilyId::DEFAULT, name: "f".to_owned(), tables, bytes, keys: None };
        let families = vec![family(1, 25_260), family(2, 512)];
        let superfluous = vec![PathBuf::from("lost/000007.sst")];
        let report = RepairReport { families, superfluous, ..RepairReport::default() };
        let expected = "family \"f\": 1 table, 24.67 KiB\nfamily \"f\": 2 tables, 512 B\n\
                        1 file that belonged to nothing is in lost/ now\n";
        assert_eq!(report.to_string(), expected);
    }
}
