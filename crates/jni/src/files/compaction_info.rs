//! `CompactionJobInfo` and `CompactionJobStats`: reports of compactions of named files.

use spillway::internal::name;
use std::ops::AddAssign;

use crate::boundary::argument::Closed;
use crate::boundary::natives;
use crate::boundary::reply::Made;
use crate::collections::map;
use crate::fault::Outcome;
use crate::files::properties::Facts;

/// `CompactionReason`, by number.
const UNKNOWN: i8 = 0;
pub const MANUAL: i8 = 9;

/// The number of a reason of the engine's.
pub fn reason_number(name: &str) -> i8 {
    match name {
        "level0" | "intra-level0" | "sink" => 1,
        "level-size" => 2,
        "size-amplification" => 3,
        "size-ratio" => 4,
        "sorted-runs" => 5,
        "too-many-bytes" => 6,
        "expired" => 8,
        "manual" => MANUAL,
        "ttl" => 11,
        "periodic" => 14,
        "marked" | "deletions" => 16,
        _ => UNKNOWN,
    }
}

/// A report. Family, files, output level and counts of files are filled. What is not told is 0 or empty: job, thread,
/// properties of tables, records and bytes.
#[derive(Default)]
pub struct JobInfo {
    pub family: String,
    pub outcome: Outcome,
    pub thread: i64,
    pub job: i32,
    pub base_input_level: i32,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    /// By path.
    pub tables: Vec<(String, Facts)>,
    pub output_level: i32,
    pub reason: i8,
    pub compression: i8,
    pub stats: JobStats,
}

/// Numbers of a compaction.
#[derive(Clone, Copy, Default)]
pub struct JobStats {
    pub elapsed_us: i64,
    pub input_files: i64,
    pub output_files: i64,
    pub is_manual: bool,
}

impl AddAssign for JobStats {
    fn add_assign(&mut self, other: JobStats) {
        self.elapsed_us += other.elapsed_us;
        self.input_files += other.input_files;
        self.output_files += other.output_files;
        self.is_manual |= other.is_manual;
    }
}

natives! { "CompactionJobInfo";
    "newCompactionJobInfo" => fn(_env) -> Box<JobInfo> {
        Ok(Box::default())
    }

    "disposeInternal" | "disposeInternalJni" => fn(_env, info: Closed<JobInfo>) -> () {
        drop(info.0);
        Ok(())
    }

    "columnFamilyName" => fn(_env, info: &JobInfo) -> Vec<u8> {
        Ok(name::bytes(&info.family).into_owned())
    }

    /// A compaction that failed throws, and has no report.
    "status" => fn(env, info: &JobInfo) -> Made {
        Ok(info.outcome.object(env)?.into())
    }

    "threadId" => fn(_env, info: &JobInfo) -> i64 {
        Ok(info.thread)
    }

    "jobId" => fn(_env, info: &JobInfo) -> i32 {
        Ok(info.job)
    }

    "baseInputLevel" => fn(_env, info: &JobInfo) -> i32 {
        Ok(info.base_input_level)
    }

    "outputLevel" => fn(_env, info: &JobInfo) -> i32 {
        Ok(info.output_level)
    }

    "inputFiles" => fn(_env, info: &JobInfo) -> Vec<String> {
        Ok(info.inputs.clone())
    }

    "outputFiles" => fn(_env, info: &JobInfo) -> Vec<String> {
        Ok(info.outputs.clone())
    }

    "tableProperties" => fn(env, info: &JobInfo) -> Made {
        Ok(map(env, info.tables.iter(), |(path, table)| Ok((env.new_text(path)?, table.object(env)?)))?.into())
    }

    "compactionReason" => fn(_env, info: &JobInfo) -> i8 {
        Ok(info.reason)
    }

    "compression" => fn(_env, info: &JobInfo) -> i8 {
        Ok(info.compression)
    }

    /// A copy, which Java closes.
    "stats" => fn(_env, info: &JobInfo) -> Box<JobStats> {
        Ok(Box::new(info.stats))
    }
}

/// Getters of numbers that are not told: 0, as in a new object.
macro_rules! untold {
    ($($name:literal),+) => {
        natives! { "CompactionJobStats"; $( $name => fn(_env, _stats: &JobStats) -> i64 { Ok(0) } )+ }
    };
}

pub mod untold {
    use super::*;

    untold!(
        "fileFsyncNanos",
        "filePrepareWriteNanos",
        "fileRangeSyncNanos",
        "fileWriteNanos",
        "numCorruptKeys",
        "numExpiredDeletionRecords",
        "numInputDeletionRecords",
        "numInputFilesAtOutputLevel",
        "numInputRecords",
        "numOutputRecords",
        "numRecordsReplaced",
        "numSingleDelFallthru",
        "numSingleDelMismatch",
        "totalInputBytes",
        "totalInputRawKeyBytes",
        "totalInputRawValueBytes",
        "totalOutputBytes"
    );
}

pub mod stats {
    use super::*;

    natives! { "CompactionJobStats";
        "newCompactionJobStats" => fn(_env) -> Box<JobStats> {
            Ok(Box::default())
        }

        "disposeInternal" | "disposeInternalJni" => fn(_env, stats: Closed<JobStats>) -> () {
            drop(stats.0);
            Ok(())
        }

        "reset" => fn(_env, stats: &mut JobStats) -> () {
            *stats = JobStats::default();
            Ok(())
        }

        "add" => fn(_env, stats: &mut JobStats, other: &JobStats) -> () {
            *stats += *other;
            Ok(())
        }

        "elapsedMicros" => fn(_env, stats: &JobStats) -> i64 {
            Ok(stats.elapsed_us)
        }

        "numInputFiles" => fn(_env, stats: &JobStats) -> i64 {
            Ok(stats.input_files)
        }

        "numOutputFiles" => fn(_env, stats: &JobStats) -> i64 {
            Ok(stats.output_files)
        }

        "isManualCompaction" => fn(_env, stats: &JobStats) -> bool {
            Ok(stats.is_manual)
        }

        "smallestOutputKeyPrefix" => fn(_env, _stats: &JobStats) -> Vec<u8> {
            Ok(Vec::new())
        }

        "largestOutputKeyPrefix" => fn(_env, _stats: &JobStats) -> Vec<u8> {
            Ok(Vec::new())
        }
    }
}
