//! One change to the database's files, as one record of the MANIFEST has it. The bytes are [`super::edit_codec`]'s.

use base::{FamilyId, FileNumber, SeqNo};
use log::KnownEnd;

use super::table_file::FileMeta;

/// What a checkpoint's MANIFEST has for the directory of its logs: its own, and no other. Logs that lie elsewhere under its
/// id are those of the database that it was made of.
pub(crate) const LOG_DIR_OF_COPY: &str = ".";

/// Where a log ended when the database was recovered, written before recovery numbers anything: replay never reads past
/// it again, so that a second crash finds the same history (D2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    pub log: FileNumber,
    /// Bytes of the log that count.
    pub end_offset: u64,
    /// The last sequence number in those bytes.
    pub last_seq: SeqNo,
    /// The log was synced before this was written. Else its pages were there, on that boot of the machine and that mount.
    pub on_disk: bool,
}

impl LogEnd {
    /// What replay is to be told of it.
    pub fn known(&self) -> KnownEnd {
        KnownEnd { offset: self.end_offset, on_disk: self.on_disk }
    }
}

/// The logs of ours that recovery needs. Every log names the one before it, so that the ends of the row are enough to
/// notice any that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// Logs below it hold nothing that is not in tables; they may be gone.
    pub oldest: FileNumber,
    /// In use when this was written, so that it is there, and `oldest` too. Later ones may be. `None`: no log was needed, and
    /// there may be some from `oldest` on.
    pub newest: Option<FileNumber>,
}

impl LogRow {
    /// No log is needed; `last` is the last that was, 0 where there never was one.
    pub fn none_through(last: FileNumber) -> LogRow {
        LogRow { oldest: FileNumber(last.0.saturating_add(1)), newest: None }
    }

    /// The last log known to have been in use, 0 where there never was one.
    pub fn last(&self) -> FileNumber {
        self.newest.unwrap_or(FileNumber(self.oldest.0.saturating_sub(1)))
    }
}

/// One change. What is `None` or empty stays as it was. The fields that are not the family's (next file, last number,
/// largest family, log to keep, database id, fence, log ends, log row, log directory) hold for the database, whatever the family named.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionEdit {
    pub family: FamilyId,
    /// The name of the family's order of keys.
    pub comparator: Option<String>,
    /// RocksDB's logs below this number hold nothing of the family that is not in tables.
    pub log_number: Option<FileNumber>,
    /// LevelDB's second log; RocksDB always writes 0.
    pub prev_log: Option<FileNumber>,
    pub next_file: Option<FileNumber>,
    pub last_seq: Option<SeqNo>,
    pub min_log_to_keep: Option<FileNumber>,
    pub max_family: Option<u32>,
    /// Level and internal key at which a round-robin compaction goes on; read, never written by us.
    pub compact_cursors: Vec<(usize, Vec<u8>)>,
    pub deleted: Vec<(usize, FileNumber)>,
    pub added: Vec<(usize, FileMeta)>,
    /// Creates the family under this name.
    pub add_family: Option<String>,
    pub drop_family: bool,
    pub db_id: Option<String>,
    /// RocksDB: this edit belongs to a group that holds as a whole or not at all; so many edits of it follow. Ours that
    /// belong together are one record instead.
    pub atomic_group: Option<u32>,
    /// The version of our private formats; RocksDB refuses a MANIFEST that has it.
    pub fence: Option<u32>,
    /// T: every write to the family at or below this number is in tables (F2).
    pub flushed_through: Option<SeqNo>,
    pub log_ends: Vec<LogEnd>,
    pub log_row: Option<LogRow>,
    /// The option `wal_dir`: where the logs are, empty for the database's own directory; `LOG_DIR_OF_COPY` for a copy's.
    pub log_dir: Option<String>,
    /// Ingests above T whose tables are linked already: replay skips these numbers, and they are forgotten once T
    /// passes them (F2).
    pub linked_ingests: Vec<SeqNo>,
}

impl VersionEdit {
    pub fn new(family: FamilyId) -> Self {
        VersionEdit { family, ..VersionEdit::default() }
    }

    /// The first record of every MANIFEST that we write for our own use.
    pub fn fence() -> Self {
        VersionEdit { fence: Some(FENCE_VERSION), ..VersionEdit::default() }
    }

    /// True where some field needs a tag that RocksDB does not know.
    pub fn is_private(&self) -> bool {
        self.fence.is_some()
            || self.flushed_through.is_some()
            || !self.log_ends.is_empty()
            || self.log_row.is_some()
            || self.log_dir.is_some()
            || !self.linked_ingests.is_empty()
            || self.added.iter().any(|(_, meta)| meta.is_virtual())
    }
}

/// The version of the private formats that this code writes, and the newest it reads.
pub const FENCE_VERSION: u32 = 1;
