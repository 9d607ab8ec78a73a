//! `PerfContext`: costs of the calling thread's calls.

use std::sync::OnceLock;

use capi::perf::PerfContext;
use spillway::internal::vfs::perf::{self, Metric};

use crate::boundary::{handle, natives};

pub mod level {
    use super::*;

    natives! { "RocksDB";
        "setPerfLevel" => fn(_env, level: i8) -> () {
            capi::perf::set_level(level.into());
            Ok(())
        }

        "getPerfLevelNative" => fn(_env) -> i8 {
            Ok(perf::level() as i8)
        }

        /// One for all threads, each of which sees its own counts: Java does not close it.
        "getPerfContextNative" => fn(_env) -> i64 {
            static CONTEXT: OnceLock<i64> = OnceLock::new();
            Ok(*CONTEXT.get_or_init(|| handle::open(Box::new(PerfContext))))
        }
    }
}

/// Natives that return a metric of the thread.
macro_rules! counted {
    ($($name:literal => $metric:ident;)+) => {
        natives! { "PerfContext";
            $( $name => fn(_env, _context: &PerfContext) -> i64 {
                Ok(perf::total(Metric::$metric) as i64)
            } )+
        }
    };
}

pub mod counts {
    use super::*;

    counted! {
        "getBlockCacheHitCount" => BlockCacheHitCount;
        "getBlockCacheIndexHitCount" => BlockCacheIndexHitCount;
        "getBlockCacheFilterHitCount" => BlockCacheFilterHitCount;
        "getBlockReadCount" => BlockReadCount;
        "getBlockReadByte" => BlockReadByte;
        "getBlockReadTime" => BlockReadTime;
        "getBlockReadCpuTime" => BlockReadCpuTime;
        "getBlockChecksumTime" => BlockChecksumTime;
        "getBlockDecompressTime" => BlockDecompressTime;
        "getReadBytes" => GetReadBytes;
        "getInternalKeySkippedCount" => InternalKeySkippedCount;
        "getInternalDeleteSkippedCount" => InternalDeleteSkippedCount;
        "getFromMemtableTime" => GetFromMemtableTime;
        "getFromMemtableCount" => GetFromMemtableCount;
        "getPostProcessTime" => GetPostProcessTime;
        "getFromOutputFilesTime" => GetFromOutputFilesTime;
        "getWriteWalTime" => WriteWalTime;
        "getWriteMemtableTime" => WriteMemtableTime;
        "getBloomSstHitCount" => BloomSstHitCount;
        "getBloomSstMissCount" => BloomSstMissCount;
        "getGetCpuNanos" => GetCpuNanos;
    }
}

natives! { "PerfContext";
    "reset" => fn(_env, _context: &PerfContext) -> () {
        perf::reset();
        Ok(())
    }

    "toString" => fn(_env, context: &PerfContext, exclude_zero: bool) -> String {
        Ok(context.report(exclude_zero))
    }

    /// Not counted.
    "getBlobCacheHitCount" | "getBlobCacheReadByte" | "getBlobChecksumTime" | "getBlobDecompressTime" |
    "getBlobReadByte" | "getBlobReadCount" | "getBlobReadTime" | "getBlockCacheRealHandleCount" |
    "getBlockCacheStandaloneHandleCount" | "getBlockSeekNanos" | "getBloomMemtableHitCount" |
    "getBloomMemtableMissCount" | "getCompressedSecCacheCompressedBytes" | "getCompressedSecCacheInsertDummyCount" |
    "getCompressedSecCacheInsertRealCount" | "getCompressedSecCacheUncompressedBytes" |
    "getCompressionDictBlockReadCount" | "getDbConditionWaitNanos" | "getDbMutexLockNanos" | "getDecryptDataNanos" |
    "getEncryptDataNanos" | "getEnvCreateDirIfMissingNanos" | "getEnvCreateDirNanos" | "getEnvDeleteDirNanos" |
    "getEnvDeleteFileNanos" | "getEnvFileExistsNanos" | "getEnvGetChildrenFileAttributesNanos" |
    "getEnvGetChildrenNanos" | "getEnvGetFileModificationTimeNanos" | "getEnvGetFileSizeNanos" |
    "getEnvLinkFileNanos" | "getEnvLockFileNanos" | "getEnvNewDirectoryNanos" | "getEnvNewLoggerNanos" |
    "getEnvNewRandomAccessFileNanos" | "getEnvNewRandomRwFileNanos" | "getEnvNewSequentialFileNanos" |
    "getEnvNewWritableFileNanos" | "getEnvRenameFileNanos" | "getEnvReuseWritableFileNanos" | "getEnvUnlockFileNanos" |
    "getFilterBlockReadCount" | "getFindNextUserEntryTime" | "getFindTableNanos" | "getIndexBlockReadCount" |
    "getInternalMergeCount" | "getInternalMergePointLookupCount" | "getInternalRangeDelReseekCount" |
    "getInternalRecentSkippedCount" | "getIterNextCpuNanos" | "getIterPrevCpuNanos" | "getIterReadBytes" |
    "getIterSeekCpuNanos" | "getKeyLockWaitCount" | "getKeyLockWaitTime" | "getMergeOperatorTimeNanos" |
    "getMultigetReadBytes" | "getNewTableBlockIterNanos" | "getNewTableIteratorNanos" | "getNextOnMemtableCount" |
    "getNumberAsyncSeek" | "getPrevOnMemtableCount" | "getReadFilterBlockNanos" | "getReadIndexBlockNanos" |
    "getSecondaryCacheHitCount" | "getSeekChildSeekCount" | "getSeekChildSeekTime" | "getSeekInternalSeekTime" |
    "getSeekMaxHeapTime" | "getSeekMinHeapTime" | "getSeekOnMemtableCount" | "getSeekOnMemtableTime" |
    "getSnapshotTime" | "getUserKeyComparisonCount" | "getWriteDelayTime" | "getWritePreAndPostProcessTime" |
    "getWriteSchedulingFlushesCompactionsTime" | "getWriteThreadWaitNanos"
    => fn(_env, _context: &PerfContext) -> i64 {
        Ok(0)
    }
}
