//! `PerfContext`: costs of one thread's calls. Nothing is counted by thread here; statistics have a database's counts.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI8, Ordering};

use capi::perf::PerfContext;

use crate::boundary::{handle, natives};

/// What was asked for. RocksDB's level of a thread.
static LEVEL: AtomicI8 = AtomicI8::new(DISABLED);

/// RocksDB's `kDisable`.
const DISABLED: i8 = 1;

pub mod level {
    use super::*;

    natives! { "RocksDB";
        "setPerfLevel" => fn(_env, level: i8) -> () {
            if level > DISABLED {
                capi::kept::warn("perf_level", &level.to_string());
            }
            LEVEL.store(level, Ordering::Relaxed);
            Ok(())
        }

        "getPerfLevelNative" => fn(_env) -> i8 {
            Ok(LEVEL.load(Ordering::Relaxed))
        }

        /// One for all threads: Java does not close it.
        "getPerfContextNative" => fn(_env) -> i64 {
            static CONTEXT: OnceLock<i64> = OnceLock::new();
            Ok(*CONTEXT.get_or_init(|| handle::open(Box::new(PerfContext))))
        }
    }
}

natives! { "PerfContext";
    "reset" => fn(_env, _context: &PerfContext) -> () {
        Ok(())
    }

    "toString" => fn(_env, _context: &PerfContext, _exclude_zero: bool) -> String {
        Ok(String::new())
    }

    /// All counts of a thread: 0.
    "getBlobCacheHitCount" | "getBlobCacheReadByte" | "getBlobChecksumTime" | "getBlobDecompressTime" |
    "getBlobReadByte" | "getBlobReadCount" | "getBlobReadTime" | "getBlockCacheFilterHitCount" |
    "getBlockCacheHitCount" | "getBlockCacheIndexHitCount" | "getBlockCacheRealHandleCount" |
    "getBlockCacheStandaloneHandleCount" | "getBlockChecksumTime" | "getBlockDecompressTime" | "getBlockReadByte" |
    "getBlockReadCount" | "getBlockReadCpuTime" | "getBlockReadTime" | "getBlockSeekNanos" |
    "getBloomMemtableHitCount" | "getBloomMemtableMissCount" | "getBloomSstHitCount" | "getBloomSstMissCount" |
    "getCompressedSecCacheCompressedBytes" | "getCompressedSecCacheInsertDummyCount" |
    "getCompressedSecCacheInsertRealCount" | "getCompressedSecCacheUncompressedBytes" |
    "getCompressionDictBlockReadCount" | "getDbConditionWaitNanos" | "getDbMutexLockNanos" | "getDecryptDataNanos" |
    "getEncryptDataNanos" | "getEnvCreateDirIfMissingNanos" | "getEnvCreateDirNanos" | "getEnvDeleteDirNanos" |
    "getEnvDeleteFileNanos" | "getEnvFileExistsNanos" | "getEnvGetChildrenFileAttributesNanos" |
    "getEnvGetChildrenNanos" | "getEnvGetFileModificationTimeNanos" | "getEnvGetFileSizeNanos" |
    "getEnvLinkFileNanos" | "getEnvLockFileNanos" | "getEnvNewDirectoryNanos" | "getEnvNewLoggerNanos" |
    "getEnvNewRandomAccessFileNanos" | "getEnvNewRandomRwFileNanos" | "getEnvNewSequentialFileNanos" |
    "getEnvNewWritableFileNanos" | "getEnvRenameFileNanos" | "getEnvReuseWritableFileNanos" |
    "getEnvUnlockFileNanos" | "getFilterBlockReadCount" | "getFindNextUserEntryTime" | "getFindTableNanos" |
    "getFromMemtableCount" | "getFromMemtableTime" | "getFromOutputFilesTime" | "getGetCpuNanos" |
    "getIndexBlockReadCount" | "getInternalDeleteSkippedCount" | "getInternalKeySkippedCount" |
    "getInternalMergeCount" | "getInternalMergePointLookupCount" | "getInternalRangeDelReseekCount" |
    "getInternalRecentSkippedCount" | "getIterNextCpuNanos" | "getIterPrevCpuNanos" | "getIterReadBytes" |
    "getIterSeekCpuNanos" | "getKeyLockWaitCount" | "getKeyLockWaitTime" | "getMergeOperatorTimeNanos" |
    "getMultigetReadBytes" | "getNewTableBlockIterNanos" | "getNewTableIteratorNanos" | "getNextOnMemtableCount" |
    "getNumberAsyncSeek" | "getPostProcessTime" | "getPrevOnMemtableCount" | "getReadBytes" |
    "getReadFilterBlockNanos" | "getReadIndexBlockNanos" | "getSecondaryCacheHitCount" | "getSeekChildSeekCount" |
    "getSeekChildSeekTime" | "getSeekInternalSeekTime" | "getSeekMaxHeapTime" | "getSeekMinHeapTime" |
    "getSeekOnMemtableCount" | "getSeekOnMemtableTime" | "getSnapshotTime" | "getUserKeyComparisonCount" |
    "getWriteDelayTime" | "getWriteMemtableTime" | "getWritePreAndPostProcessTime" |
    "getWriteSchedulingFlushesCompactionsTime" | "getWriteThreadWaitNanos" | "getWriteWalTime"
    => fn(_env, _context: &PerfContext) -> i64 {
        Ok(0)
    }
}
