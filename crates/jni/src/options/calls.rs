//! Options of writes, flushes, compactions, ingests and imports.

use std::sync::atomic::Ordering;

use capi::boundary::settings::Row;
use capi::compact_files::{self, CompactFilesSettings};
use capi::ingest::{self, IngestSettings};
use capi::job_options::{COMPACT_ROWS, CompactSettings, FLUSH_ROWS, FlushSettings};
use capi::metadata::exported::{self, ImportSettings};
use capi::write_options::{self, WriteSettings};

use crate::boundary::natives;
use crate::boundary::settings::{Compression, fields, kept, settings};

pub mod write {
    use super::*;

    const OWN: &[Row<WriteSettings>] = fields! { WriteSettings;
        "disable_wal" => options.disable_wal;
    };

    settings! { ["WriteOptions"], WriteSettings, [write_options::ROWS, OWN];
        bool, set "setSync", get "sync" => "sync";
        bool, set "setDisableWAL", get "disableWAL" => "disable_wal";
        bool, set "setIgnoreMissingColumnFamilies", get "ignoreMissingColumnFamilies"
            => "ignore_missing_column_families";
        bool, set "setNoSlowdown", get "noSlowdown" => "no_slowdown";
        bool, set "setLowPri", get "lowPri" => "low_pri";
        bool, set "setMemtableInsertHintPerBatch", get "memtableInsertHintPerBatch" => "memtable_insert_hint_per_batch";
    }
}

pub mod write_copy {
    use super::*;

    natives! { "WriteOptions";
        "copyWriteOptions" => fn(_env, options: &WriteSettings) -> Box<WriteSettings> {
            Ok(Box::new(options.clone()))
        }
    }
}

pub mod flush {
    use super::*;

    /// Listeners are told before a flush's caller.
    const WITHOUT_EFFECT: &[Row<FlushSettings>] = kept! { FlushSettings;
        "listener_wait": bool = true;
    };

    settings! { ["FlushOptions"], FlushSettings, [FLUSH_ROWS, WITHOUT_EFFECT];
        bool, set "setWaitForFlush", get "waitForFlush" => "wait";
        bool, set "setAllowWriteStall", get "allowWriteStall" => "allow_write_stall";
        bool, set "setListenerWait", get "listenerWait" => "listener_wait";
    }
}

pub mod compact_range {
    use super::*;

    settings! { ["CompactRangeOptions"], CompactSettings, [COMPACT_ROWS];
        bool, set "setExclusiveManualCompaction", get "exclusiveManualCompaction" => "exclusive_manual_compaction";
        i32, set "setBottommostLevelCompaction", get "bottommostLevelCompaction" => "bottommost_level_compaction";
        bool, set "setChangeLevel", get "changeLevel" => "change_level";
        i32, set "setTargetLevel", get "targetLevel" => "target_level";
        i32, set "setTargetPathId", get "targetPathId" => "target_path_id";
        bool, set "setAllowWriteStall", get "allowWriteStall" => "allow_write_stall";
        i32, set "setMaxSubcompactions", get "maxSubcompactions" => "max_subcompactions";
    }
}

pub mod cancel {
    use super::*;

    natives! { "CompactRangeOptions";
        /// Another thread's call, to end the compaction.
        "setCanceled" => fn(_env, options: &CompactSettings, canceled: bool) -> () {
            options.canceled.store(canceled, Ordering::Release);
            Ok(())
        }

        "canceled" => fn(_env, options: &CompactSettings) -> bool {
            Ok(options.canceled.load(Ordering::Acquire))
        }
    }
}

pub mod compact_tables {
    use super::*;

    settings! { ["CompactionOptions"], CompactFilesSettings, [compact_files::ROWS];
        Compression, set "setCompression", get "compression" => "compression";
        i64, set "setOutputFileSizeLimit", get "outputFileSizeLimit" => "output_file_size_limit";
        i32, set "setMaxSubcompactions", get "maxSubcompactions" => "max_subcompactions";
    }
}

pub mod ingest_files {
    use super::*;

    settings! { ["IngestExternalFileOptions"], IngestSettings, [ingest::ROWS];
        bool, set "setMoveFiles", get "moveFiles" => "move_files";
        bool, set "setSnapshotConsistency", get "snapshotConsistency" => "snapshot_consistency";
        bool, set "setAllowGlobalSeqNo", get "allowGlobalSeqNo" => "allow_global_seqno";
        bool, set "setAllowBlockingFlush", get "allowBlockingFlush" => "allow_blocking_flush";
        bool, set "setIngestBehind", get "ingestBehind" => "ingest_behind";
        bool, set "setWriteGlobalSeqno", get "writeGlobalSeqno" => "write_global_seqno";
    }
}

pub mod ingest_made {
    use super::*;

    natives! { "IngestExternalFileOptions";
        "newIngestExternalFileOptions__ZZZZ" => fn(
            _env,
            move_files: bool,
            snapshot_consistency: bool,
            allow_global_seqno: bool,
            allow_blocking_flush: bool,
        ) -> Box<IngestSettings> {
            let mut settings = Box::<IngestSettings>::default();
            settings.options.move_files = move_files;
            settings.options.snapshot_consistency = snapshot_consistency;
            settings.options.allow_global_seqno = allow_global_seqno;
            settings.options.allow_blocking_flush = allow_blocking_flush;
            Ok(settings)
        }
    }
}

pub mod import {
    use super::*;

    settings! { ["ImportColumnFamilyOptions"], ImportSettings, [exported::ROWS];
        bool, set "setMoveFiles", get "moveFiles" => "move_files";
    }
}
