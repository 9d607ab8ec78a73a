//! How an ingest is done, under RocksDB's names.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Error, Result};

use crate::family::Family;

/// Which of the ways an ingest takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IngestMode {
    /// The tables join the family's queue: visible at once, given a level by a flush later. Nobody waits.
    #[default]
    Flushable,
    /// RocksDB's way: writers are stopped while overlapping memtables are flushed and the tables are given a level.
    Blocking,
    /// TiKV's first way: memtables that overlap are flushed while writers go on, a few times if need be; what overlaps
    /// after that is flushed as in `Blocking`.
    FlushFirst,
    /// TiKV's second way: the tables are given a level at once, without a log record, while a latch on their range keeps
    /// overlapping writes out. Other writes go on.
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
    /// Snapshots taken before the ingest do not see it.
    pub snapshot_consistency: bool,
    /// The tables may be given a sequence number. Without it, an ingest that overlaps anything in the database, or
    /// happens while snapshots live that must not see it, fails.
    pub allow_global_seqno: bool,
    /// `Blocking` and `FlushFirst` may stop writers for a flush; without it they fail where one would be needed.
    pub allow_blocking_flush: bool,
    /// The tables go under everything there is: keys that exist stay as they are. Needs the database's option
    /// `allow_ingest_behind`.
    pub ingest_behind: bool,
    /// The number is also written into the files (which are copied then), for readers older than RocksDB 5.16.
    pub write_global_seqno: bool,
    /// Every block is read, and checksums, order and counts are checked.
    pub verify_checksums_before_ingest: bool,
    /// Fails unless every table gets the last level, with nothing of its range above it.
    pub fail_if_not_bottommost_level: bool,
    /// Tables that no `TableWriter` or `SstFileWriter` made are taken too; they are rewritten.
    pub allow_db_generated_files: bool,
    /// Blocks that the ingest reads stay in the block cache.
    pub fill_cache: bool,
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
            fail_if_not_bottommost_level: false,
            allow_db_generated_files: false,
            fill_cache: true,
        }
    }
}

impl IngestOptions {
    /// # Errors
    /// `InvalidArgument`: options that contradict each other.
    pub(super) fn check(&self) -> Result<()> {
        let contradiction = if self.move_files && self.link_files {
            "move_files and link_files exclude each other"
        } else if self.write_global_seqno && (self.link_files || self.move_files) {
            "write_global_seqno changes the files: they must be copied, not linked or moved"
        } else if self.ingest_behind && !self.allow_global_seqno {
            "ingest_behind needs allow_global_seqno"
        } else {
            return Ok(());
        };
        Err(Error::invalid_argument(contradiction))
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
}

/// How far a prepare has come, to be read by another thread, which may also end it.
#[derive(Debug, Default)]
pub struct IngestProgress {
    files: AtomicU64,
    files_done: AtomicU64,
    bytes: AtomicU64,
    bytes_done: AtomicU64,
    cancelled: AtomicBool,
}

impl IngestProgress {
    /// Files in all, and those that are prepared.
    pub fn files(&self) -> (u64, u64) {
        (self.files.load(Ordering::Relaxed), self.files_done.load(Ordering::Relaxed))
    }

    /// Bytes of all files, and of those that are prepared.
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::Relaxed), self.bytes_done.load(Ordering::Relaxed))
    }

    /// Has the prepare end with an error of kind `Closed`, soon.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::closed("the ingest was cancelled"));
        }
        Ok(())
    }

    pub(super) fn expect(&self, files: u64, bytes: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn done(&self, bytes: u64) {
        self.files_done.fetch_add(1, Ordering::Relaxed);
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }
}
