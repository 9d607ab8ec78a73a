//! The threads of an env, as Java lists them.
//!
//! Threads start here with their work, and end. The list has one for each running job, and the idle ones that RocksDB
//! would have started.

use std::sync::{Arc, Weak};

use capi::database::Database;
use capi::env::{Env, EnvHandle, Pool};
use parking_lot::Mutex;

use crate::boundary::class::{Class, Method};
use crate::boundary::natives;
use crate::boundary::object::{Object, Value};
use crate::boundary::reply::ArrayOf;
use crate::files::lists::text;

static STATUS: Class = Class::new(c"org/rocksdb/ThreadStatus");
static NEW_STATUS: Method = Method::constructor(&STATUS, c"(JBLjava/lang/String;Ljava/lang/String;BJB[JB)V");

/// Open databases, with their envs.
static OPENED: Mutex<Vec<(Env, Weak<Database>)>> = Mutex::new(Vec::new());

pub fn log_opened(env: Env, database: &Arc<Database>) {
    let mut opened = OPENED.lock();
    opened.retain(|(_, database)| database.strong_count() > 0);
    opened.push((env, Arc::downgrade(database)));
}

/// A kind of job with its threads: numbers are those of Java's enums.
struct Jobs {
    pool: Pool,
    thread_type: i8,
    operation: i8,
    stage: i8,
    running: &'static str,
}

const COMPACTION: i8 = 1;
const FLUSH: i8 = 2;

static JOBS: [Jobs; 2] = [
    Jobs { pool: Pool::High, thread_type: 0, operation: FLUSH, stage: 1, running: "rocksdb.num-running-flushes" },
    Jobs {
        pool: Pool::Low,
        thread_type: 1,
        operation: COMPACTION,
        stage: 4,
        running: "rocksdb.num-running-compactions",
    },
];

/// A thread: the database of its job, or idle.
struct Thread {
    jobs: &'static Jobs,
    database: Option<String>,
}

fn threads_of(env: &Env) -> Vec<Thread> {
    let opened: Vec<Arc<Database>> =
        OPENED.lock().iter().filter(|(of, _)| of.is(env)).filter_map(|(_, database)| database.upgrade()).collect();
    let mut threads = Vec::new();
    for jobs in &JOBS {
        let before = threads.len();
        for database in &opened {
            let running = database.db.int_property(database.default_family(), jobs.running).unwrap_or(0);
            let name = text(database.db.path());
            threads.extend((0..running).map(|_| Thread { jobs, database: Some(name.clone()) }));
        }
        let idle = usize::try_from(env.threads(jobs.pool)).unwrap_or(0).saturating_sub(threads.len() - before);
        threads.extend((0..idle).map(|_| Thread { jobs, database: None }));
    }
    threads
}

/// Properties of an operation, none of them told.
fn no_properties(operation: i8) -> Vec<i64> {
    vec![0; names::properties(operation).len()]
}

natives! { "Env";
    "getThreadList" => fn(env, of: &EnvHandle) -> ArrayOf {
        let threads = threads_of(&of.0).into_iter().zip(1..);
        let threads: Vec<(Thread, i64)> = threads.collect();
        let made = env.new_array(&STATUS, threads.into_iter(), |(thread, id)| {
            let (is_idle, jobs) = (thread.database.is_none(), thread.jobs);
            let [operation, stage] = [jobs.operation, jobs.stage].map(|number| if is_idle { 0 } else { number });
            let name: Option<Object<'_>> = thread.database.map(|name| env.new_text(&name)).transpose()?;
            let properties = env.new_longs(&no_properties(operation))?;
            let values = [
                Value::Long(id),
                Value::Byte(jobs.thread_type),
                name.into(),
                Value::Null,
                Value::Byte(operation),
                Value::Long(0),
                Value::Byte(stage),
                Value::Object(properties),
                Value::Byte(0),
            ];
            let made = NEW_STATUS.make(env, &values)?;
            name.into_iter().for_each(|name| env.delete(name));
            env.delete(properties);
            Ok(Some(made))
        })?;
        Ok(made.into())
    }
}

/// Names of what a thread does, as RocksDB has them.
pub mod names {
    use super::*;
    use crate::boundary::argument::Longs;
    use crate::boundary::reply::Made;
    use crate::collections::{boxed_long, map};

    const TYPES: [&str; 4] = ["High Pri", "Low Pri", "User", "Bottom Pri"];
    const OPERATIONS: [&str; 4] = ["", "Compaction", "Flush", "DBOpen"];
    const STAGES: [&str; 11] = [
        "",
        "FlushJob::Run",
        "FlushJob::WriteLevel0Table",
        "CompactionJob::Prepare",
        "CompactionJob::Run",
        "CompactionJob::ProcessKeyValueCompaction",
        "CompactionJob::Install",
        "CompactionJob::FinishCompactionOutputFile",
        "MemTableList::PickMemtablesToFlush",
        "MemTableList::RollbackMemtableFlush",
        "MemTableList::TryInstallMemtableFlushResults",
    ];
    const STATES: [&str; 2] = ["", "Mutex Wait"];

    /// Properties of an operation.
    pub fn properties(operation: i8) -> &'static [&'static str] {
        match operation {
            COMPACTION => &[
                "JobID",
                "InputOutputLevel",
                "Manual/Deletion/Trivial",
                "TotalInputBytes",
                "BytesRead",
                "BytesWritten",
            ],
            FLUSH => &["JobID", "BytesMemtables", "BytesWritten"],
            _ => &[],
        }
    }

    fn named(names: &[&str], number: impl TryInto<usize>) -> String {
        let name = number.try_into().ok().and_then(|number| names.get(number));
        name.copied().unwrap_or_default().to_owned()
    }

    /// Numbers of properties, by name. Two of a compaction have several in one.
    fn interpreted(operation: i8, numbers: &[i64]) -> Vec<(&'static str, i64)> {
        let mut all = Vec::new();
        for (name, &number) in properties(operation).iter().copied().zip(numbers) {
            match name {
                "InputOutputLevel" => {
                    all.push(("BaseInputLevel", number >> 32 & 0xffff_ffff));
                    all.push(("OutputLevel", number & 0xffff_ffff));
                }
                "Manual/Deletion/Trivial" => {
                    let flags = [("IsManual", 1), ("IsDeletion", 2), ("IsTrivialMove", 3)];
                    all.extend(flags.map(|(name, bit)| (name, number >> bit & 1)));
                }
                name => all.push((name, number)),
            }
        }
        all
    }

    /// A time for people; empty for none.
    pub fn shown_micros(micros: u64) -> String {
        let seconds = micros as f64 / 1e6;
        let minutes = micros / 60_000_000;
        match micros {
            0 => String::new(),
            1..10_000 => format!("{micros} us"),
            10_000..10_000_000 => format!("{:.3} ms", micros as f64 / 1e3),
            10_000_000..60_000_000 => format!("{seconds:.3} sec"),
            60_000_000..3_600_000_000 => format!("{minutes:02}:{:06.3} M:S", seconds - (minutes * 60) as f64),
            _ => {
                let (hours, left) = (minutes / 60, minutes % 60);
                format!("{hours:02}:{left:02}:{:06.3} H:M:S", seconds - (minutes * 60) as f64)
            }
        }
    }

    natives! { "ThreadStatus";
        "getThreadTypeName" => fn(_env, number: i8) -> String {
            Ok(TYPES.get(usize::try_from(number).unwrap_or(usize::MAX)).copied().unwrap_or("Unknown").to_owned())
        }

        "getOperationName" => fn(_env, number: i8) -> String {
            Ok(named(&OPERATIONS, number))
        }

        "getOperationStageName" => fn(_env, number: i8) -> String {
            Ok(named(&STAGES, number))
        }

        "getOperationPropertyName" => fn(_env, operation: i8, number: i32) -> String {
            Ok(named(properties(operation), number))
        }

        "interpretOperationProperties" => fn(env, operation: i8, numbers: Longs<'_>) -> Made {
            let all = interpreted(operation, &env.longs(numbers.0)?);
            Ok(map(env, all.into_iter(), |(name, number)| Ok((env.new_text(name)?, boxed_long(env, number)?)))?.into())
        }

        "getStateName" => fn(_env, number: i8) -> String {
            Ok(named(&STATES, number))
        }

        "microsToStringNative" => fn(_env, micros: i64) -> String {
            Ok(shown_micros(micros as u64))
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn times_and_properties_are_shown_as_by_rocksdb() {
            let shown = [0, 999, 10_000, 10_000_000, 61_500_000, 3_661_250_000].map(shown_micros);
            assert_eq!(shown, ["", "999 us", "10.000 ms", "10.000 sec", "01:01.500 M:S", "01:01:01.250 H:M:S"]);
            let levels = interpreted(COMPACTION, &[7, (1 << 32) | 2, 0b1010]);
            let expected =
                [("JobID", 7), ("BaseInputLevel", 1), ("OutputLevel", 2), ("IsManual", 1), ("IsDeletion", 0)];
            assert_eq!(levels[..5], expected);
            assert_eq!(levels[5], ("IsTrivialMove", 1));
        }
    }
}
