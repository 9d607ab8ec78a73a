//! Limits shared by databases: of memtables, of writes, of compaction threads.

use std::sync::atomic::{AtomicI32, Ordering};

use capi::cache::Cache;
use capi::env::RateLimiter;
use capi::write_buffer_manager::WriteBufferManager;

use super::cache::as_size;
use crate::boundary::natives;

/// `ConcurrentTaskLimiterImpl`: a name and a number. Compactions have threads by the database's options here.
pub struct TaskLimiter {
    name: String,
    most: AtomicI32,
}

/// `RateLimiter`: databases opened with it share its limit.
pub struct RateLimit {
    pub limiter: spillway::internal::RateLimiter,
    refill_period_us: i64,
}

pub mod write_buffers {
    use super::*;

    natives! { "WriteBufferManager";
        "newWriteBufferManager" =>
        fn(_env, buffer_bytes: i64, cache: Option<&Cache>, allow_stall: bool) -> Box<WriteBufferManager> {
            Ok(WriteBufferManager::new(as_size(buffer_bytes), allow_stall, cache))
        }
    }
}

pub mod rate {
    use super::*;

    /// Java's mode for a limit on reads alone. Reads are not limited here.
    const READS_ONLY: i8 = 0;

    natives! { "RateLimiter";
        "newRateLimiterHandle" => fn(
            _env,
            bytes_per_second: i64,
            refill_period_us: i64,
            _fairness: i32,
            mode: i8,
            auto_tuned: bool,
        ) -> Box<RateLimit> {
            let limiter = RateLimiter::boxed(if mode == READS_ONLY { 0 } else { bytes_per_second }, auto_tuned);
            Ok(Box::new(RateLimit { limiter: limiter.limiter(), refill_period_us }))
        }

        "setBytesPerSecond" => fn(_env, limit: &RateLimit, bytes_per_second: i64) -> () {
            limit.limiter.set_bytes_per_second(u64::try_from(bytes_per_second).unwrap_or(0));
            Ok(())
        }

        "getBytesPerSecond" => fn(_env, limit: &RateLimit) -> i64 {
            Ok(limit.limiter.bytes_per_second() as i64)
        }

        "getTotalBytesThrough" => fn(_env, limit: &RateLimit) -> i64 {
            Ok(limit.limiter.total_bytes() as i64)
        }

        "getTotalRequests" => fn(_env, limit: &RateLimit) -> i64 {
            Ok(limit.limiter.total_requests() as i64)
        }

        "request" => fn(_env, limit: &RateLimit, bytes: i64) -> () {
            limit.limiter.request(u64::try_from(bytes).unwrap_or(0));
            Ok(())
        }

        /// What RocksDB's limiter gives at once: the bytes of one refill.
        "getSingleBurstBytes" => fn(_env, limit: &RateLimit) -> i64 {
            const US: i128 = 1_000_000;
            let bytes = i128::from(limit.limiter.bytes_per_second()) * i128::from(limit.refill_period_us) / US;
            Ok(i64::try_from(bytes).unwrap_or(i64::MAX))
        }
    }
}

pub mod tasks {
    use super::*;

    natives! { "ConcurrentTaskLimiterImpl";
        "newConcurrentTaskLimiterImpl0" => fn(_env, name: String, most: i32) -> Box<TaskLimiter> {
            Ok(Box::new(TaskLimiter { name, most: AtomicI32::new(most) }))
        }

        "name" => fn(_env, limiter: &TaskLimiter) -> String {
            Ok(limiter.name.clone())
        }

        "setMaxOutstandingTask" => fn(_env, limiter: &TaskLimiter, most: i32) -> () {
            limiter.most.store(most, Ordering::Relaxed);
            Ok(())
        }

        "resetMaxOutstandingTask" => fn(_env, limiter: &TaskLimiter) -> () {
            limiter.most.store(-1, Ordering::Relaxed);
            Ok(())
        }

        /// No task goes through it.
        "outstandingTask" => fn(_env, _limiter: &TaskLimiter) -> i32 {
            Ok(0)
        }
    }
}
