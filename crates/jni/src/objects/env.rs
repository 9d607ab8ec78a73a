//! Envs: where files are, and threads of jobs.

use std::sync::OnceLock;

use capi::env::{Env, EnvHandle, Pool};

use crate::boundary::{handle, natives};
use crate::fault::Fault;

/// A pool by Java's number of a priority. RocksDB's user threads are no pool here.
fn pool(priority: i8) -> Result<Pool, Fault> {
    match priority {
        0 => Ok(Pool::Bottom),
        1 => Ok(Pool::Low),
        2 => Ok(Pool::High),
        _ => Err(Fault::illegal(format!("no priority of threads has the number {priority}"))),
    }
}

/// The handle of the process's env: one, for `Env.getDefault()` to be known again. Java does not close it.
fn default_handle() -> i64 {
    static DEFAULT: OnceLock<i64> = OnceLock::new();
    *DEFAULT.get_or_init(|| handle::open(Box::new(EnvHandle(Env::of_process()))))
}

pub mod of_database {
    use super::*;
    use crate::database::Db;

    natives! { "RocksDB";
        /// The database's own: Java does not close it.
        "getEnv" => fn(_env, database: &Db) -> i64 {
            Ok(database.env_handle().unwrap_or_else(default_handle))
        }
    }
}

pub mod any {
    use super::*;

    natives! { "Env";
        "getDefaultEnvInternal" => fn(_env) -> i64 {
            Ok(default_handle())
        }

        "setBackgroundThreads" => fn(_env, env: &EnvHandle, threads: i32, priority: i8) -> () {
            env.0.set_threads(pool(priority)?, threads);
            Ok(())
        }

        "getBackgroundThreads" => fn(_env, env: &EnvHandle, priority: i8) -> i32 {
            Ok(env.0.threads(pool(priority)?))
        }

        "incBackgroundThreadsIfNeeded" => fn(_env, env: &EnvHandle, threads: i32, priority: i8) -> () {
            let pool = pool(priority)?;
            if threads > env.0.threads(pool) {
                env.0.set_threads(pool, threads);
            }
            Ok(())
        }

        /// Jobs wait in their databases, not here.
        "getThreadPoolQueueLen" => fn(_env, _of: &EnvHandle, priority: i8) -> i32 {
            pool(priority).map(|_| 0)
        }

        /// Priorities of I/O are the system's.
        "lowerThreadPoolIOPriority" => fn(_env, _of: &EnvHandle, priority: i8) -> () {
            pool(priority).map(drop)
        }

        "lowerThreadPoolCPUPriority" => fn(_env, env: &EnvHandle, priority: i8) -> () {
            if matches!(pool(priority)?, Pool::Low) {
                env.0.lower_compactions();
            }
            Ok(())
        }
    }
}

pub mod memory {
    use super::*;

    natives! { "RocksMemEnv";
        "createMemEnv" => fn(_env, base: &EnvHandle) -> Box<EnvHandle> {
            Ok(Box::new(EnvHandle(Env::in_memory(&base.env()))))
        }
    }
}

pub mod timed {
    use super::*;

    natives! { "TimedEnv";
        /// The same env: its times are counted for no one.
        "createTimedEnv" => fn(_env, base: &EnvHandle) -> Box<EnvHandle> {
            Ok(Box::new(EnvHandle(base.env())))
        }
    }
}
