//! Version edit: one change to the database's files, as in a MANIFEST record. Encoding: [`super::edit_codec`].

use base::{FamilyId, FileNumber, SeqNo};
use wal::{FILE_HEADER_BYTES, Frontiers, KnownEnd};

use super::session::Session;
use super::table_file::FileMeta;

/// WAL directory of a checkpoint: its logs lie beside its tables. It has its original's id, and logs elsewhere with this id are the
/// original's. The first open for writing gives it an id of its own.
pub const LOG_DIR_OF_COPY: &str = ".";

/// End of a WAL at recovery, written before recovery assigns any number. Replay never reads past it again, so a second
/// crash finds the same history (D2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// The log.
    pub log: FileNumber,
    /// Valid bytes of the WAL.
    pub end_offset: u64,
    /// The last sequence number in these bytes.
    pub last_seq: SeqNo,
    /// The WAL was synced before this was written. If false, the bytes are certain only for that boot and mount.
    pub on_disk: bool,
}

impl LogEnd {
    /// The end of a log whose records are all in tables. It is not read again.
    pub fn of_log_in_tables(log: FileNumber) -> Self {
        LogEnd { log, end_offset: FILE_HEADER_BYTES, last_seq: SeqNo::ZERO, on_disk: true }
    }

    /// True of [`of_log_in_tables`](Self::of_log_in_tables), and of a log without records.
    pub fn is_all_in_tables(&self) -> bool {
        self.end_offset <= FILE_HEADER_BYTES
    }

    /// This end, as input to replay.
    pub fn known(&self) -> KnownEnd {
        KnownEnd { offset: self.end_offset, on_disk: self.on_disk }
    }
}

/// Live WAL range: the WALs of our own format needed by recovery. Every WAL names its predecessor, so the two ends of
/// the range suffice to notice a missing WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalRange {
    /// WALs below hold only data already in tables; they may be gone.
    pub oldest: FileNumber,
    /// In use when this was written, so it and `oldest` exist; later WALs may. `None`: no WAL was needed, and there may
    /// be some from `oldest` on.
    pub newest: Option<FileNumber>,
}

impl WalRange {
    /// No WAL is needed; `last` is the last needed one, 0 if there never was one.
    pub fn none_through(last: FileNumber) -> WalRange {
        WalRange { oldest: FileNumber(last.0.saturating_add(1)), newest: None }
    }

    /// The last WAL known to have been in use, 0 if there never was one.
    pub fn last(&self) -> FileNumber {
        self.newest.unwrap_or(FileNumber(self.oldest.0.saturating_sub(1)))
    }
}

/// Knowledge of the logs in a MANIFEST: recovery notices a missing log, and a log that lost its end.
#[derive(Clone, Debug, Default)]
pub struct NotedLogs {
    /// The live WAL range.
    pub range: Option<WalRange>,
    /// How far the logs were synced and published.
    pub frontiers: Frontiers,
    /// The opens for writing that made them.
    pub sessions: Vec<Session>,
    /// The MANIFEST's number, as its logs note it; `None`: a backup's.
    pub manifest: Option<FileNumber>,
    /// Ends of logs that a recovery found. One of which all is in tables is missed by nobody; the others were there.
    pub ends: Vec<LogEnd>,
}

impl NotedLogs {
    /// Logs of which all is in tables, or which have no records.
    pub fn in_tables(&self) -> impl Iterator<Item = &LogEnd> {
        self.ends.iter().filter(|end| end.is_all_in_tables())
    }
}

/// One change. A field that is `None` or empty leaves the state as it is. Some fields hold for the whole database,
/// whatever `family` says: next file, last number, largest family, log to keep, database id, fence, log ends, WAL range,
/// log frontiers, log directory, sessions, OPTIONS file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionEdit {
    /// The family that the edit is about.
    pub family: FamilyId,
    /// The name of the family's comparator.
    pub comparator: Option<String>,
    /// RocksDB's WALs below this number hold only entries of the family already in tables.
    pub log_number: Option<FileNumber>,
    /// LevelDB's second WAL; RocksDB always writes 0.
    pub prev_log: Option<FileNumber>,
    /// The next number of a file.
    pub next_file: Option<FileNumber>,
    /// The last sequence number.
    pub last_seq: Option<SeqNo>,
    /// The oldest log still needed.
    pub min_log_to_keep: Option<FileNumber>,
    /// RocksDB's logs that were synced to this size in bytes: with `track_and_verify_wals_in_manifest`, or by an export.
    pub tracked_logs: Vec<(FileNumber, u64)>,
    /// Smaller numbers of such logs are forgotten.
    pub tracked_from: Option<FileNumber>,
    /// The largest number of a family.
    pub max_family: Option<u32>,
    /// Level and internal key of the next round-robin compaction; read, never written by us.
    pub compact_cursors: Vec<(usize, Vec<u8>)>,
    /// Tables that go: level and number.
    pub deleted: Vec<(usize, FileNumber)>,
    /// Tables that come, with their levels.
    pub added: Vec<(usize, FileMeta)>,
    /// Creates the family under this name.
    pub add_family: Option<String>,
    /// The family is dropped.
    pub drop_family: bool,
    /// The family's values end with their times, from here on and for good.
    pub value_times: bool,
    /// The database's id.
    pub db_id: Option<String>,
    /// RocksDB: number of later edits in the same atomic group. A group holds as a whole or not at all. Our own groups
    /// are one record instead.
    pub atomic_group: Option<u32>,
    /// The version of our private formats. RocksDB refuses a MANIFEST with a fence.
    pub fence: Option<u32>,
    /// T: every write to the family at or below this number is in tables (F2).
    pub flushed_through: Option<SeqNo>,
    /// Ends of logs.
    pub log_ends: Vec<LogEnd>,
    /// The logs still needed.
    pub wal_range: Option<WalRange>,
    /// How far the logs are synced and published; of a restore, how far those reach that it keeps. A log that ends earlier
    /// lost its end.
    pub log_frontiers: Option<Frontiers>,
    /// The option `wal_dir`, empty for the database's own directory; [`LOG_DIR_OF_COPY`] in a checkpoint.
    pub log_dir: Option<String>,
    /// Beside a `log_dir` of its own: the database's directory. Another one with this MANIFEST is a copy of its files.
    pub home: Option<String>,
    /// The database's opens for writing, oldest first, in place of those noted before.
    pub sessions: Option<Vec<Session>>,
    /// The last OPTIONS file: one with this or a larger number is there, or it is lost.
    pub options_file: Option<FileNumber>,
    /// Ingests above T with tables already linked. Replay skips these numbers; they are forgotten once T passes them
    /// (F2).
    pub linked_ingests: Vec<SeqNo>,
}

impl VersionEdit {
    /// An edit without changes.
    pub fn new(family: FamilyId) -> Self {
        VersionEdit { family, ..VersionEdit::default() }
    }

    /// The first record of every MANIFEST written for our own use.
    pub fn fence() -> Self {
        VersionEdit { fence: Some(FENCE_VERSION), ..VersionEdit::default() }
    }

    /// True if some field needs a tag unknown to RocksDB.
    pub fn is_private(&self) -> bool {
        self.fence.is_some()
            || self.flushed_through.is_some()
            || !self.log_ends.is_empty()
            || self.wal_range.is_some()
            || self.log_frontiers.is_some()
            || self.log_dir.is_some()
            || self.home.is_some()
            || self.sessions.is_some()
            || self.options_file.is_some()
            || !self.linked_ingests.is_empty()
            || self.added.iter().any(|(_, meta)| meta.is_virtual())
    }
}

/// The version of the private formats written by this code, and the newest it reads.
pub const FENCE_VERSION: u32 = 1;
