//! Classes whose objects are made with their defaults, and closed.

use capi::backup::RestoreSettings;
use capi::cache::Cache;
use capi::compact_files::CompactFilesSettings;
use capi::env::EnvHandle;
use capi::file_manager::FileManager;
use capi::ingest::IngestSettings;
use capi::job_options::{CompactSettings, FlushSettings};
use capi::metadata::exported::ImportSettings;
use capi::options::Options;
use capi::options::styles::{Fifo, Universal};
use capi::options::table::Filter;
use capi::read_options::ReadSettings;
use capi::transactions::OptimisticSettings;
use capi::transactions::locking::{DbSettings, TransactionSettings};
use capi::write_buffer_manager::WriteBufferManager;
use capi::write_options::WriteSettings;

use crate::callbacks::comparator::ComparatorOptions;
use crate::extend::{Merge, Partitioner};
use crate::objects::limiter::{RateLimit, TaskLimiter};
use crate::objects::slice::Slice;
use crate::options::compression::CompressionSettings;
use crate::options::config::ConfigSettings;
use crate::options::env::EnvSettings;

/// Exports natives that make an object with its defaults, and those that close one.
macro_rules! lives {
    ($($class:literal: $type:ty $(, new $new:literal)? $(, close $close:literal)*;)+) => {
        #[cfg_attr(not(test), allow(dead_code, reason = "the test of natives reads it"))]
        pub const NATIVES: &[&[crate::boundary::Native]] = &[$(
            $( &[crate::boundary::describe!($class, $new, (_env), Box<$type>)], )?
            &[$( crate::boundary::describe!(
                $class, $close, (_env, _object: crate::boundary::argument::Closed<$type>), ()
            ) ),*],
        )+];

        $(
            $( crate::boundary::native!($class, $new, (_env), Box<$type>, { Ok(Box::default()) }); )?
            $( crate::boundary::native!(
                $class, $close, (_env, _object: crate::boundary::argument::Closed<$type>), (), { Ok(()) }
            ); )*
        )+
    };
}

lives! {
    "AbstractSlice": Slice, close "disposeInternal", close "disposeInternalJni";
    "BackupEngineOptions": capi::backup::BackupSettings, close "disposeInternal", close "disposeInternalJni";
    "ClockCache": Cache, close "disposeInternal", close "disposeInternalJni";
    "ColumnFamilyOptions": Options, close "disposeInternal", close "disposeInternalJni";
    "CompactRangeOptions": CompactSettings,
        new "newCompactRangeOptions", close "disposeInternal", close "disposeInternalJni";
    "CompactionOptions": CompactFilesSettings,
        new "newCompactionOptions", close "disposeInternal", close "disposeInternalJni";
    "CompactionOptionsFIFO": Fifo, new "newCompactionOptionsFIFO", close "disposeInternal", close "disposeInternalJni";
    "CompactionOptionsUniversal": Universal,
        new "newCompactionOptionsUniversal", close "disposeInternal", close "disposeInternalJni";
    "ComparatorOptions": ComparatorOptions,
        new "newComparatorOptions", close "disposeInternal", close "disposeInternalJni";
    "CompressionOptions": CompressionSettings,
        new "newCompressionOptions", close "disposeInternal", close "disposeInternalJni";
    "ConcurrentTaskLimiterImpl": TaskLimiter, close "disposeInternal", close "disposeInternalJni";
    "ConfigOptions": ConfigSettings, new "newConfigOptions", close "disposeInternal", close "disposeInternalJni";
    "DBOptions": Options, new "newDBOptions", close "disposeInternal", close "disposeInternalJni";
    "EnvOptions": EnvSettings, new "newEnvOptions__", close "disposeInternal", close "disposeInternalJni";
    "Filter": Filter, close "disposeInternal", close "disposeInternalJni";
    "FlushOptions": FlushSettings, new "newFlushOptions", close "disposeInternal", close "disposeInternalJni";
    "HyperClockCache": Cache, close "disposeInternalJni";
    "ImportColumnFamilyOptions": ImportSettings, new "newImportColumnFamilyOptions", close "disposeInternal";
    "IngestExternalFileOptions": IngestSettings,
        new "newIngestExternalFileOptions__", close "disposeInternal", close "disposeInternalJni";
    "LRUCache": Cache, close "disposeInternal", close "disposeInternalJni";
    "OptimisticTransactionOptions": OptimisticSettings,
        new "newOptimisticTransactionOptions", close "disposeInternal", close "disposeInternalJni";
    "Options": Options, close "disposeInternal", close "disposeInternalJni";
    "RateLimiter": RateLimit, close "disposeInternal", close "disposeInternalJni";
    "ReadOptions": ReadSettings, new "newReadOptions__", close "disposeInternal", close "disposeInternalJni";
    "RestoreOptions": RestoreSettings, close "disposeInternal", close "disposeInternalJni";
    "RocksEnv": EnvHandle, close "disposeInternal";
    "RocksMemEnv": EnvHandle, close "disposeInternal", close "disposeInternalJni";
    "SstFileManager": FileManager, close "disposeInternal", close "disposeInternalJni";
    "SstPartitionerFixedPrefixFactory": Partitioner, close "disposeInternal", close "disposeInternalJni";
    "StringAppendOperator": Merge, close "disposeInternal", close "disposeInternalJni";
    "TimedEnv": EnvHandle, close "disposeInternal", close "disposeInternalJni";
    "TransactionDBOptions": DbSettings,
        new "newTransactionDBOptions", close "disposeInternal", close "disposeInternalJni";
    "TransactionOptions": TransactionSettings,
        new "newTransactionOptions", close "disposeInternal", close "disposeInternalJni";
    "UInt64AddOperator": Merge, close "disposeInternal", close "disposeInternalJni";
    "WriteBufferManager": WriteBufferManager, close "disposeInternal", close "disposeInternalJni";
    "WriteOptions": WriteSettings, new "newWriteOptions", close "disposeInternal", close "disposeInternalJni";
}
