//! How an ingest is done, under RocksDB's names.

use std::path::PathBuf;
use std::sync::Arc;

use base::{Error, Result};

use crate::commit::options::WriteOptions;
use crate::core::family::Family;

/// Which of the ways an ingest takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IngestMode {
    /// The tables join the family's queue: visible at once, given a level by a flush later. Nobody waits.
    #[default]
    Flushable,
    /// RocksDB's way: all writers are stopped while overlapping memtables are flushed and the tables are given a level.
    Blocking,
    /// TiKV's first way: writers are stopped as in `Blocking`, but memtables that overlap are flushed while writers go on,
    /// a few times if need be; only what overlaps after that is flushed while they are stopped.
    FlushFirst,
    /// TiKV's second way: a latch on the tables' range keeps overlapping writes out while overlapping memtables are
    /// flushed; the tables have a level when the call returns. Other writes go on.
    Direct,
}

/// The options of RocksDB's `IngestExternalFileOptions`, and the way.
#[derive(Clone, Debug)]
pub struct IngestOptions {
    pub mode: IngestMode,
    /// The files are linked, and their old names removed once the ingest is committed.
    pub move_files: bool,
    /// The files are linked, and keep their old names too. The caller must not change them any more.
    pub link_files: bool,
    /// Files that cannot be linked are copied.
    pub failed_move_fall_back_to_copy: bool,
    /// Snapshots taken before the ingest must not see it. They do not either way, as every ingest but one from behind
    /// takes a sequence number; this only says whether one is needed where `allow_global_seqno` forbids it.
    pub snapshot_consistency: bool,
    /// The tables may need a sequence number of their own. Without it, an ingest fails that overlaps anything in the
    /// database, or whose files overlap each other, or that happens while snapshots live that must not see it.
    pub allow_global_seqno: bool,
    /// Writers may be stopped for a flush: all by `Blocking` and `FlushFirst`, those of the same keys by `Direct`. Without it the
    /// ingest fails where that would be needed. `Flushable` never needs it, but where it is to find levels first.
    pub allow_blocking_flush: bool,
    /// The tables go under everything there is, into the last level: keys that exist stay as they are. They take no
    /// number, so that snapshots see them too, and count once the MANIFEST says so, whatever the mode. Needs the option
    /// `allow_ingest_behind` of the database, or `cf_allow_ingest_behind` of the family.
    pub ingest_behind: bool,
    /// The number is also written into the files (which are copied then), for readers older than RocksDB 5.16.
    pub write_global_seqno: bool,
    /// Every block is read, and checksums, order and counts are checked.
    pub verify_checksums_before_ingest: bool,
    /// The checksums of whole files that the requests state are compared with the files'. Without it they are only kept in
    /// the MANIFEST.
    pub verify_file_checksum: bool,
    /// Fails unless every table can be given the last level, with nothing of its range above it. `Flushable` goes the way
    /// of `Direct` then, as a level must be found before anything is done.
    pub fail_if_not_bottommost_level: bool,
    /// Tables that no `TableWriter` or `SstFileWriter` made are taken too; they are rewritten.
    pub allow_db_generated_files: bool,
    /// Blocks of the database's tables that an ingest reads to find levels stay in the block cache. Those that a flush reads
    /// to find levels never do: nobody asked for them.
    pub fill_cache: bool,
    /// Fails with `Busy` where the ingest would have to wait because flushes or compactions are behind, or for another
    /// ingest.
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
    /// How a write would be admitted that may wait for no more than the ingest.
    pub(crate) fn as_write(&self) -> WriteOptions {
        WriteOptions { no_slowdown: self.no_slowdown, ..WriteOptions::default() }
    }

    /// # Errors
    /// `InvalidArgument`: options that contradict each other, or what is asked for.
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
    pub family: Arc<Family>,
    /// Where the keys of two files overlap, the later file is newer.
    pub files: Vec<PathBuf>,
    /// What is in `[start, end)` is removed first, atomically with the rest.
    pub excise: Option<(Vec<u8>, Vec<u8>)>,
    /// The checksums of the whole files, in their order, where they are known; else empty.
    pub checksums: Vec<FileChecksum>,
}

/// The checksum of a whole file, as RocksDB's `files_checksums` and `files_checksum_func_names` state it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChecksum {
    /// `FileChecksumCrc32c`.
    pub function: String,
    /// Of that function: four bytes, the most significant one first.
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
        let what = "has no level for what is ingested from behind: open the database with allow_ingest_behind";
        Err(Error::invalid_argument(format!("column family \"{}\" {what}", self.family.name())))
    }
}
