//! `rocksdb_env_t`: the source of files and threads, and RocksDB's objects beside it.

use std::ffi::{CStr, c_int};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use spillway::internal::Error;
use spillway::internal::options::CpuPriority;
use spillway::internal::vfs::{MemoryVfs, RealVfs, Vfs};

use crate::boundary::{export, fallible, handles};
use crate::text;

/// State shared by databases opened with an env.
#[derive(Clone)]
pub struct Env {
    vfs: Arc<dyn Vfs>,
    pools: spillway::internal::Env,
    threads: Arc<Mutex<Threads>>,
}

/// RocksDB's pools: compactions, flushes, compactions into the last level.
#[derive(Clone, Copy)]
pub enum Pool {
    Low,
    High,
    Bottom,
}

/// Requested numbers of threads. A pool starts threads on demand, and may be larger: opening a database with a large
/// `max_background_jobs` raises it.
struct Threads {
    low: c_int,
    high: c_int,
    bottom: c_int,
    /// CPU priority of compactions.
    priority: CpuPriority,
}

/// Seed of the memory file system: nothing outliving the process depends on it.
const SEED: u64 = 1;

/// A handle of an env.
pub struct EnvHandle(pub Env);

/// `rocksdb_ratelimiter_t`: databases opened with it share its limit.
pub struct RateLimiter(spillway::internal::RateLimiter);

/// `rocksdb_envoptions_t`: without effect on writes here.
pub struct EnvOptions;

handles!(EnvHandle, RateLimiter, EnvOptions);

impl Env {
    fn new(vfs: Arc<dyn Vfs>, pools: spillway::internal::Env) -> Env {
        let threads = Threads { low: 1, high: 0, bottom: 0, priority: CpuPriority::Normal };
        Env { vfs, pools, threads: Arc::new(Mutex::new(threads)) }
    }

    /// The process's.
    pub fn of_process() -> Env {
        static PROCESS: LazyLock<Env> = LazyLock::new(|| Env::new(RealVfs::new(), spillway::internal::Env::default()));
        PROCESS.clone()
    }

    /// Files in memory, gone with the env; threads of `base`.
    pub fn in_memory(base: &Env) -> Env {
        let memory = MemoryVfs::new(SEED);
        memory.set_runs_inline(false);
        Env { vfs: memory, ..base.clone() }
    }

    /// Whether both are the same env.
    pub fn is(&self, other: &Env) -> bool {
        Arc::ptr_eq(&self.vfs, &other.vfs)
    }

    pub fn threads(&self, pool: Pool) -> c_int {
        let threads = self.threads.lock();
        match pool {
            Pool::Low => threads.low,
            Pool::High => threads.high,
            Pool::Bottom => threads.bottom,
        }
    }

    pub fn set_threads(&self, pool: Pool, threads: c_int) {
        match pool {
            Pool::Low => self.set_low(threads),
            Pool::High => self.set_high(threads),
            Pool::Bottom => self.threads.lock().bottom = threads,
        }
    }

    /// Compactions give way to other threads, in databases opened from now on.
    pub fn lower_compactions(&self) {
        self.threads.lock().priority = CpuPriority::Low;
    }

    /// Threads shared by databases opened with it.
    pub fn pools(&self) -> spillway::internal::Env {
        self.pools.clone()
    }

    /// RocksDB's low priority pool: compactions. Less than one thread means no change.
    fn set_low(&self, threads: c_int) {
        self.threads.lock().low = threads;
        if let Ok(threads @ 1..) = usize::try_from(threads) {
            self.pools.set_compaction_threads(threads);
        }
    }

    /// RocksDB's high priority pool: flushes. Less than one thread means no change.
    fn set_high(&self, threads: c_int) {
        self.threads.lock().high = threads;
        if let Ok(threads @ 1..) = usize::try_from(threads) {
            self.pools.set_flush_threads(threads);
        }
    }

    /// CPU priority of compactions, for databases opened from now on.
    pub fn compaction_cpu_priority(&self) -> CpuPriority {
        self.threads.lock().priority
    }

    pub fn vfs(&self) -> Arc<dyn Vfs> {
        self.vfs.clone()
    }
}

impl EnvHandle {
    pub fn env(&self) -> Env {
        self.0.clone()
    }
}

impl RateLimiter {
    /// Auto-tuned, the rate is an upper bound. A rate below 1 limits nothing.
    pub fn boxed(bytes_per_second: i64, auto_tuned: bool) -> Box<RateLimiter> {
        let bytes_per_second = u64::try_from(bytes_per_second).unwrap_or(0);
        let make =
            if auto_tuned { spillway::internal::RateLimiter::automatic } else { spillway::internal::RateLimiter::new };
        Box::new(RateLimiter(make(bytes_per_second)))
    }

    pub fn limiter(&self) -> spillway::internal::RateLimiter {
        self.0.clone()
    }
}

fallible! {
    /// One directory; its parent must exist.
    fn rocksdb_create_dir_if_missing(env: &EnvHandle, path: &CStr) {
        let (vfs, dir) = (env.0.vfs(), text::path(path));
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        let is_parent_there = parent.map_or(Ok(true), |parent| vfs.exists(parent))?;
        if !is_parent_there || dir.as_os_str().is_empty() {
            return Err(Error::io("create directory", dir, std::io::Error::from_raw_os_error(libc::ENOENT)).into());
        }
        Ok(vfs.create_dir_all(dir)?)
    }
}

export! {
    fn rocksdb_create_default_env() -> Box<EnvHandle> {
        Box::new(EnvHandle(Env::of_process()))
    }

    fn rocksdb_create_mem_env() -> Box<EnvHandle> {
        Box::new(EnvHandle(Env::in_memory(&Env::of_process())))
    }

    fn rocksdb_env_destroy(env: Option<Box<EnvHandle>>) {
        drop(env);
    }

    fn rocksdb_env_set_background_threads(env: &EnvHandle, threads: c_int) {
        env.0.set_threads(Pool::Low, threads);
    }

    fn rocksdb_env_get_background_threads(env: &EnvHandle) -> c_int {
        env.0.threads(Pool::Low)
    }

    fn rocksdb_env_set_low_priority_background_threads(env: &EnvHandle, threads: c_int) {
        env.0.set_threads(Pool::Low, threads);
    }

    fn rocksdb_env_get_low_priority_background_threads(env: &EnvHandle) -> c_int {
        env.0.threads(Pool::Low)
    }

    fn rocksdb_env_set_high_priority_background_threads(env: &EnvHandle, threads: c_int) {
        env.0.set_threads(Pool::High, threads);
    }

    fn rocksdb_env_get_high_priority_background_threads(env: &EnvHandle) -> c_int {
        env.0.threads(Pool::High)
    }

    fn rocksdb_env_set_bottom_priority_background_threads(env: &EnvHandle, threads: c_int) {
        env.0.set_threads(Pool::Bottom, threads);
    }

    fn rocksdb_env_get_bottom_priority_background_threads(env: &EnvHandle) -> c_int {
        env.0.threads(Pool::Bottom)
    }

    /// Priorities of I/O are the system's.
    fn rocksdb_env_lower_thread_pool_io_priority(_env: &EnvHandle) {}

    fn rocksdb_env_lower_high_priority_thread_pool_io_priority(_env: &EnvHandle) {}

    /// RocksDB's low priority pool: compactions.
    fn rocksdb_env_lower_thread_pool_cpu_priority(env: &EnvHandle) {
        env.0.lower_compactions();
    }

    fn rocksdb_env_lower_high_priority_thread_pool_cpu_priority(_env: &EnvHandle) {}

    /// Idle threads end by themselves. A closed database has none.
    fn rocksdb_env_join_all_threads(_env: &EnvHandle) {}

    fn rocksdb_envoptions_create() -> Box<EnvOptions> {
        Box::new(EnvOptions)
    }

    fn rocksdb_envoptions_destroy(options: Option<Box<EnvOptions>>) {
        drop(options);
    }

    fn rocksdb_ratelimiter_create(bytes_per_second: i64, _refill_period_us: i64, _fairness: c_int) -> Box<RateLimiter> {
        RateLimiter::boxed(bytes_per_second, false)
    }

    fn rocksdb_ratelimiter_create_auto_tuned(
        bytes_per_second: i64,
        _refill_period_us: i64,
        _fairness: c_int,
    ) -> Box<RateLimiter> {
        RateLimiter::boxed(bytes_per_second, true)
    }

    /// Mode 0 limits reads only. Reads are not limited here.
    fn rocksdb_ratelimiter_create_with_mode(
        bytes_per_second: i64,
        _refill_period_us: i64,
        _fairness: c_int,
        mode: c_int,
        auto_tuned: bool,
    ) -> Box<RateLimiter> {
        RateLimiter::boxed(if mode == 0 { 0 } else { bytes_per_second }, auto_tuned)
    }

    fn rocksdb_ratelimiter_destroy(limiter: Option<Box<RateLimiter>>) {
        drop(limiter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_env_in_memory_has_the_threads_of_its_base() {
        let base = Env::new(RealVfs::new(), spillway::internal::Env::default());
        let memory = Env::in_memory(&base);
        memory.set_threads(Pool::Low, 4);
        base.set_threads(Pool::High, 2);
        assert_eq!((base.threads(Pool::Low), memory.threads(Pool::High)), (4, 2));
        assert!(!memory.is(&base) && memory.is(&memory.clone()));
    }
}
