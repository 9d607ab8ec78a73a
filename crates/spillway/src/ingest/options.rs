//! How an ingest is done, under RocksDB's names.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use base::options::DbOptions;
use base::{Error, Result};

use crate::batch::options::WriteOptions;
use crate::core::family::Family;

/// How an ingest is ordered against concurrent writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IngestMode {
    /// The tables join the family's queue: visible at once, given a level by a later flush. Writers do not wait. With
    /// `atomic_flush` it is as `Direct`.
    #[default]
    Flushable,
    /// RocksDB's way: all writers are stopped while overlapping memtables are flushed and the tables are given a level.
    Blocking,
    /// TiKV's first way: overlapping memtables are flushed while writers go on, a few times if needed. Then writers are
    /// stopped as in `Blocking`, and only the remaining overlap is flushed.
    FlushFirst,
    /// TiKV's second way: overlapping memtables are flushed once while writers go on. Then a latch on the tables' range
    /// keeps overlapping writes out while the rest is flushed; other writes go on. The tables have a level when the
    /// call returns.
    Direct,
}

/// The names of the modes, as the command and C programs write them. The last is TiKV's.
const MODES: [(&str, IngestMode); 5] = [
    ("flushable", IngestMode::Flushable),
    ("blocking", IngestMode::Blocking),
    ("flush-first", IngestMode::FlushFirst),
    ("direct", IngestMode::Direct),
    ("allow_write", IngestMode::Direct),
];

impl FromStr for IngestMode {
    type Err = Error;

    /// # Errors
    /// `InvalidArgument`: no mode has this name; the message lists the names.
    fn from_str(name: &str) -> Result<Self> {
        let known = || MODES.map(|(known, _)| known).join(", ");
        let found = MODES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode);
        found.ok_or_else(|| {
            Error::invalid_argument(format!("no mode of an ingest is called {name:?}; known are {}", known()))
        })
    }
}

/// The options of RocksDB's `IngestExternalFileOptions`, and the mode.
#[derive(Clone, Debug)]
pub struct IngestOptions {
    /// How the ingest is ordered against writes beside it.
    pub mode: IngestMode,
    /// Links the files, and removes their old names once the ingest is committed.
    pub move_files: bool,
    /// Links the files and keeps their old names. The caller must not change them any more.
    pub link_files: bool,
    /// Copies the files if they cannot be linked.
    pub failed_move_fall_back_to_copy: bool,
    /// Snapshots taken before the ingest must not see it. They never do, unless it is from behind: any other ingest
    /// takes a sequence number. This only fails an ingest if snapshots live and `allow_global_seqno` is off.
    pub snapshot_consistency: bool,
    /// Allows tables to need a sequence number. If off, an ingest fails if it overlaps anything in the database, if its
    /// files overlap each other, or if snapshots live and `snapshot_consistency` is on.
    pub allow_global_seqno: bool,
    /// Allows stopping writers for a flush: all in `Blocking` and `FlushFirst`, writers of the same keys in `Direct`.
    /// If off, an ingest fails if it needs to. `Flushable` needs it only with `fail_if_not_bottommost_level`.
    pub allow_blocking_flush: bool,
    /// Puts the tables under all existing data, into the last level: existing keys stay as they are. The tables take no
    /// sequence number, so snapshots see them too. The MANIFEST edit commits them, in every mode. Needs the option
    /// `allow_ingest_behind` of the database, or `cf_allow_ingest_behind` of the family.
    pub ingest_behind: bool,
    /// Also writes the number into the files (copied then), for readers older than RocksDB 5.16.
    pub write_global_seqno: bool,
    /// Reads every block and checks checksums, order and counts.
    pub verify_checksums_before_ingest: bool,
    /// Verifies the whole-file checksums stated in the requests. If off, they are only kept in the MANIFEST.
    pub verify_file_checksum: bool,
    /// Fails unless every table can be given the last level, with no data of its range above it. `Flushable` then works
    /// like `Direct`: the level must be found before the commit.
    pub fail_if_not_bottommost_level: bool,
    /// Accepts tables not made by `TableWriter` or `SstFileWriter`, and rewrites them.
    pub allow_db_generated_files: bool,
    /// Values of the tables end with their times, whether the tables say so or not. Else tables that do not say so are rewritten
    /// for a family whose values have times, with the time of the ingest, unless the open has `raw_values`.
    pub value_times: bool,
    /// Keeps blocks in the block cache if the ingest call reads them to find levels. Flushes finding levels never fill
    /// the cache.
    pub fill_cache: bool,
    /// Fails with `Busy` if the ingest would wait for flushes, compactions or an ingest in progress.
    pub no_slowdown: bool,
}

impl Default for IngestOptions {
    fn default() -> Self {
        IngestOptions {
            mode: IngestMode::default(),
            move_files: false,
            link_files: false,
            failed_move_fall_back_to_copy: true,
            snapshot_consistency: true,
            allow_global_seqno: true,
            allow_blocking_flush: true,
            ingest_behind: false,
            value_times: false,
            write_global_seqno: false,
            verify_checksums_before_ingest: false,
            verify_file_checksum: true,
            fail_if_not_bottommost_level: false,
            allow_db_generated_files: false,
            fill_cache: true,
            no_slowdown: false,
        }
    }
}

impl IngestOptions {
    /// Write options to admit a write under the ingest's `no_slowdown`.
    pub(crate) fn as_write(&self) -> WriteOptions {
        WriteOptions { no_slowdown: self.no_slowdown, ..WriteOptions::default() }
    }

    /// The options as far as those of the database permit: an atomic flush has one edit, links have their own. So no ingest
    /// is left to a flush.
    pub(super) fn beside(&self, options: &DbOptions) -> Self {
        let is_left = options.atomic_flush && self.mode == IngestMode::Flushable;
        IngestOptions { mode: if is_left { IngestMode::Direct } else { self.mode }, ..self.clone() }
    }

    /// # Errors
    /// `InvalidArgument`: the options contradict each other or the requests.
    pub(super) fn check(&self, requests: &[IngestRequest]) -> Result<()> {
        let excises = requests.iter().any(|request| request.excise.is_some());
        if self.ingest_behind {
            requests.iter().try_for_each(IngestRequest::check_behind)?;
        }
        let contradiction = if self.move_files && self.link_files {
            "move_files and link_files exclude each other"
        } else if self.write_global_seqno && (self.link_files || self.move_files) {
            "write_global_seqno changes the files: they must be copied, not linked or moved"
        } else if self.write_global_seqno && !self.allow_global_seqno {
            "write_global_seqno writes what allow_global_seqno forbids"
        } else if self.write_global_seqno && self.ingest_behind {
            "write_global_seqno has no number to write: what is ingested from behind has none (ingest_behind)"
        } else if self.ingest_behind && excises {
            "an excise removes what is older, and nothing is older than what is ingested from behind (ingest_behind)"
        } else if self.fail_if_not_bottommost_level && excises {
            "with an excise it is not known beforehand which level tables can have (fail_if_not_bottommost_level)"
        } else if !self.allow_global_seqno && excises {
            "an excise needs the sequence number that allow_global_seqno forbids"
        } else {
            return Ok(());
        };
        Err(Error::invalid_argument(contradiction))
    }

    /// Whether the call itself gives the tables levels, rather than a flush.
    pub(super) fn gives_levels(&self) -> bool {
        self.mode != IngestMode::Flushable || self.fail_if_not_bottommost_level || !self.allow_global_seqno
    }

    pub(super) fn links(&self) -> bool {
        self.move_files || self.link_files
    }
}

/// Tables for one family.
#[derive(Clone)]
pub struct IngestRequest {
    /// The family.
    pub family: Arc<Family>,
    /// If the keys of two files overlap, the later file is newer.
    pub files: Vec<PathBuf>,
    /// Keys in `[start, end)` are removed first, atomically with the ingest.
    pub excise: Option<(Vec<u8>, Vec<u8>)>,
    /// Whole-file checksums in the order of the files; empty if unknown.
    pub checksums: Vec<FileChecksum>,
}

/// The checksum of a whole file, as RocksDB's `files_checksums` and `files_checksum_func_names` state it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChecksum {
    /// `FileChecksumCrc32c`.
    pub function: String,
    /// The checksum: four bytes, the most significant one first.
    pub value: Vec<u8>,
}

impl IngestRequest {
    /// Files for a family, without an excise or checksums.
    pub fn new(family: Arc<Family>, files: Vec<PathBuf>) -> Self {
        IngestRequest { family, files, excise: None, checksums: Vec::new() }
    }

    fn check_behind(&self) -> Result<()> {
        if self.family.options().cf_allow_ingest_behind {
            return Ok(());
        }
        // RocksDB does not fill in the family's name.
        let what = "Can't ingest_behind file in ColumnFamily %s with cf_allow_ingest_behind=false";
        let name = self.family.name();
        Err(Error::invalid_argument(format!("{what}: \"{name}\"; open the database with allow_ingest_behind")))
    }
}
