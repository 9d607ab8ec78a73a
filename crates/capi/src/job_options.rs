//! Options of flushes, manual compactions, and waits for them.

use std::ffi::{c_int, c_uchar};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spillway::internal::{BottommostLevelCompaction, CompactRangeOptions};

use crate::boundary::settings::settings;
use crate::boundary::{export, handles};
use crate::kept::{Kept, keeps_numbers};

/// `rocksdb_flushoptions_t`.
pub struct FlushSettings {
    /// The call returns when the flush has ended.
    pub wait: bool,
    pub kept: Kept,
}

/// `rocksdb_compactoptions_t`.
pub struct CompactSettings {
    exclusive: bool,
    change_level: bool,
    /// Negative for the uppermost level with room for the tables.
    target_level: i32,
    /// RocksDB's number for the treatment of the last level's tables.
    bottommost: i32,
    max_subcompactions: i32,
    /// Set, it ends the compaction.
    pub canceled: Arc<AtomicBool>,
    pub kept: Kept,
}

/// `rocksdb_wait_for_compact_options_t`.
#[derive(Default)]
pub struct WaitSettings {
    pub flush: bool,
    pub close_db: bool,
    pub kept: Kept,
}

handles!(FlushSettings, CompactSettings, WaitSettings);

/// RocksDB's numbers, from 0 on, for the treatment of tables already in the deepest level.
const BOTTOMMOST: [BottommostLevelCompaction; 4] = [
    BottommostLevelCompaction::Skip,
    BottommostLevelCompaction::IfHaveCompactionFilter,
    BottommostLevelCompaction::Force,
    BottommostLevelCompaction::ForceOptimized,
];

impl Default for FlushSettings {
    fn default() -> Self {
        FlushSettings { wait: true, kept: Kept::default() }
    }
}

impl Default for CompactSettings {
    fn default() -> Self {
        const IF_HAVE_FILTER: i32 = 1;
        CompactSettings {
            exclusive: false,
            change_level: false,
            target_level: -1,
            bottommost: IF_HAVE_FILTER,
            max_subcompactions: 0,
            canceled: Arc::default(),
            kept: Kept::default(),
        }
    }
}

impl CompactSettings {
    pub fn to_compact(&self) -> CompactRangeOptions {
        let bottommost = usize::try_from(self.bottommost).ok().and_then(|number| BOTTOMMOST.get(number));
        CompactRangeOptions {
            exclusive_manual_compaction: self.exclusive,
            change_level: self.change_level,
            target_level: usize::try_from(self.target_level).ok(),
            bottommost_level_compaction: bottommost.copied().unwrap_or_default(),
            max_subcompactions: usize::try_from(self.max_subcompactions).unwrap_or(0),
            canceled: Some(self.canceled.clone()),
        }
    }
}

keeps_numbers!(FlushSettings, CompactSettings, WaitSettings);

settings! { FlushSettings as FLUSH_ROWS, "rocksdb_flushoptions_";
    wait: c_uchar => wait;

    allow_write_stall: c_uchar = 0;
}

settings! { CompactSettings as COMPACT_ROWS, "rocksdb_compactoptions_";
    exclusive_manual_compaction: c_uchar => exclusive;
    bottommost_level_compaction: c_uchar => bottommost;
    change_level: c_uchar => change_level;
    target_level: c_int => target_level;
    max_subcompactions: c_int => max_subcompactions;

    allow_write_stall: c_uchar = 0;
    target_path_id: c_int = 0;
}

settings! { WaitSettings as WAIT_ROWS, "rocksdb_wait_for_compact_options_";
    flush: c_uchar => flush;
    close_db: c_uchar => close_db;

    abort_on_pause: c_uchar = 0;
    timeout: u64 = 0;
}

export! {
    fn rocksdb_flushoptions_create() -> Box<FlushSettings> {
        Box::default()
    }

    fn rocksdb_flushoptions_destroy(options: Option<Box<FlushSettings>>) {
        drop(options);
    }

    fn rocksdb_compactoptions_create() -> Box<CompactSettings> {
        Box::default()
    }

    fn rocksdb_compactoptions_destroy(options: Option<Box<CompactSettings>>) {
        drop(options);
    }

    fn rocksdb_wait_for_compact_options_create() -> Box<WaitSettings> {
        Box::default()
    }

    fn rocksdb_wait_for_compact_options_destroy(options: Option<Box<WaitSettings>>) {
        drop(options);
    }
}
