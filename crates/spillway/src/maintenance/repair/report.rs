//! What a repair found, kept and lost.

use std::fmt;
use std::path::PathBuf;

use base::{FamilyId, SeqNo};

/// What a repair did.
#[derive(Clone, Debug, Default)]
pub struct RepairReport {
    /// What was wrong with CURRENT or the MANIFEST; `None` where it was whole, and went on counting.
    pub manifest: Option<String>,
    /// The families that the database has now, ascending by id.
    pub families: Vec<RepairedFamily>,
    /// Tables that are lost, in whole or in part, or were not there.
    pub lost: Vec<LostTable>,
    /// What is wrong with logs. What could be read of them is in the database.
    pub logs: Vec<String>,
    /// Files that were whole and belonged to nothing: leftovers of a crash. They lie in `lost/` too.
    pub superfluous: Vec<PathBuf>,
    /// What could not be known, and what was supposed in its place.
    pub doubts: Vec<String>,
    /// The last number in the database.
    pub last_seq: SeqNo,
}

/// A family after a repair.
#[derive(Clone, Debug)]
pub struct RepairedFamily {
    pub id: FamilyId,
    pub name: String,
    /// Its tables before the logs were replayed.
    pub tables: usize,
    pub bytes: u64,
    /// The first and the last user key in its tables.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
}

/// A table that is no more in the database.
#[derive(Clone, Debug)]
pub struct LostTable {
    /// Where the file is now; `None` where it was missing.
    pub path: Option<PathBuf>,
    /// Its name in the database.
    pub name: String,
    /// The family's name; `None` where nothing tells.
    pub family: Option<String>,
    /// The user keys between which writes are lost, where they are known. An older value may be there in place of a lost one,
    /// or a key that was deleted.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    pub why: String,
}

impl RepairReport {
    /// Whether nothing was lost that is known of.
    pub fn lost_nothing(&self) -> bool {
        self.lost.is_empty() && self.logs.is_empty() && self.doubts.is_empty()
    }
}

/// As text: a line for each thing. The last number is told where it is known.
impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(what) = &self.manifest {
            writeln!(f, "MANIFEST: {what}; a new one is made of what the tables and logs say")?;
        }
        for family in &self.families {
            write!(f, "family {:?}: {} tables, {} bytes", family.name, family.tables, family.bytes)?;
            match &family.keys {
                Some((first, last)) => writeln!(f, ", keys '{}' to '{}'", first.escape_ascii(), last.escape_ascii())?,
                None => writeln!(f)?,
            }
        }
        for lost in &self.lost {
            write!(f, "lost: {}", lost.name)?;
            if let Some(family) = &lost.family {
                write!(f, " of family {family:?}")?;
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
        self.doubts.iter().try_for_each(|doubt| writeln!(f, "in doubt: {doubt}"))?;
        match self.superfluous.len() {
            0 => Ok(()),
            count => writeln!(f, "{count} files that belonged to nothing are in lost/ now"),
        }
    }
}
