//! `CompactionJobInfo` and `CompactionJobStats`: reports of compactions of named files.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::boundary::argument::Closed;
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::reply::Made;
use crate::collections::string_map;
use crate::fault::{self, Fault};

/// `CompactionReason`, by number.
const UNKNOWN: i8 = 0;
pub const MANUAL: i8 = 9;

/// A report. Family, files, output level and counts of files are filled. What is not told is 0 or empty: job, thread,
/// properties of tables, records and bytes.
pub struct JobInfo {
    pub family: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub output_level: i32,
    pub reason: i8,
    pub compression: i8,
    pub stats: JobStats,
}

impl Default for JobInfo {
    fn default() -> Self {
        JobInfo {
            family: String::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            output_level: 0,
            reason: UNKNOWN,
            compression: 0,
            stats: JobStats::default(),
        }
    }
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

fn no_properties(env: Env<'_>) -> Result<Made, Fault> {
    Ok(string_map(env, &BTreeMap::new())?.into())
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
        Ok(info.family.clone().into_bytes())
    }

    /// A compaction that failed throws, and has no report.
    "status" => fn(env, _info: &JobInfo) -> Made {
        Ok(fault::status(env, None)?.into())
    }

    "threadId" => fn(_env, _info: &JobInfo) -> i64 {
        Ok(0)
    }

    "jobId" => fn(_env, _info: &JobInfo) -> i32 {
        Ok(0)
    }

    "baseInputLevel" => fn(_env, _info: &JobInfo) -> i32 {
        Ok(0)
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

    "tableProperties" => fn(env, _info: &JobInfo) -> Made {
        no_properties(env)
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
