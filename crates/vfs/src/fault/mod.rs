//! Scripted faults: a wrapper around a file system that fails selected calls.
//!
//! A test first counts the calls of a kind, then fails each one in turn. Calls without a matching rule pass through
//! unchanged, as do the clock and the random numbers. Stores to a mapping cannot fail and are not counted.

mod handle;
mod rule;
#[cfg(test)]
mod tests;
mod world;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::Result;
use parking_lot::Mutex;

use crate::{IoClass, Vfs};
use rule::{Script, Verdict};

pub use rule::{Fault, FaultCode, Operation, Rule, RuleId};

/// See the module's description.
pub struct FaultVfs {
    inner: Arc<dyn Vfs>,
    faults: Arc<Faults>,
}

impl FaultVfs {
    /// Without rules.
    pub fn new(inner: Arc<dyn Vfs>) -> Arc<FaultVfs> {
        let script = Mutex::new(Script::default());
        let faults = Faults { script, bytes_read: AtomicU64::new(0), inner: Arc::clone(&inner) };
        Arc::new(FaultVfs { inner, faults: Arc::new(faults) })
    }

    /// Adds a rule; it counts calls from now on. If several rules fire on one call, the first added decides.
    pub fn inject(&self, rule: Rule) -> RuleId {
        self.faults.script.lock().add(rule)
    }

    /// Removes all rules and keeps the counts of calls.
    pub fn clear(&self) {
        self.faults.script.lock().clear();
    }

    /// Calls of a kind so far, including failed calls.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.faults.script.lock().calls(operation)
    }

    /// Calls with the rule's operation, class and path since it was added; 0 if the rule was cleared.
    pub fn matched(&self, rule: RuleId) -> u64 {
        self.faults.script.lock().matched(rule)
    }

    /// Bytes read from files so far. Mappings are not counted.
    pub fn bytes_read(&self) -> u64 {
        self.faults.bytes_read.load(Ordering::Relaxed)
    }

    /// Faults injected so far, latencies included.
    pub fn fired(&self) -> u64 {
        self.faults.script.lock().fired()
    }
}

/// The script and the wrapped file system, shared by all handles.
struct Faults {
    script: Mutex<Script>,
    bytes_read: AtomicU64,
    inner: Arc<dyn Vfs>,
}

impl Faults {
    /// Counts a call and returns its verdict. Sleeps through an injected latency.
    fn consult(&self, operation: Operation, class: Option<IoClass>, path: &Path) -> Verdict {
        self.consult_of(operation, class, path, &(0..0))
    }

    /// As [`consult`](Self::consult), for a read of these bytes.
    fn consult_of(&self, operation: Operation, class: Option<IoClass>, path: &Path, read: &Range<u64>) -> Verdict {
        let fault = self.script.lock().next(operation, class, path, read);
        match fault {
            None => Verdict::Pass,
            Some(Fault::Latency(time)) => {
                self.inner.sleep(time);
                Verdict::Pass
            }
            Some(Fault::Error(code)) => Verdict::Fail(code.error(operation, path)),
            Some(Fault::ErrorAfter(code)) => Verdict::FailAfter(code.error(operation, path)),
            Some(Fault::ShortRead) => Verdict::Short(None),
            Some(Fault::ShortWrite(code)) => Verdict::Short(Some(code.error(operation, path))),
        }
    }

    /// Makes a call without a partial outcome.
    fn call<T>(
        &self,
        operation: Operation,
        class: Option<IoClass>,
        path: &Path,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        match self.consult(operation, class, path) {
            Verdict::Fail(error) => Err(error),
            Verdict::FailAfter(error) => call().and(Err(error)),
            Verdict::Pass | Verdict::Short(_) => call(),
        }
    }

    /// Makes a read. A short read fills half of the buffer and returns its count.
    fn read(
        &self,
        class: IoClass,
        path: &Path,
        offset: u64,
        buf: &mut [u8],
        read: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result<usize> {
        let bytes = offset..offset.saturating_add(buf.len() as u64);
        let read = match self.consult_of(Operation::Read, Some(class), path, &bytes) {
            Verdict::Fail(error) => Err(error),
            Verdict::FailAfter(error) => read(buf).and(Err(error)),
            Verdict::Pass | Verdict::Short(Some(_)) => read(buf),
            Verdict::Short(None) => {
                let half = buf.len() / 2;
                read(buf.split_at_mut(half).0)
            }
        };
        if let Ok(bytes) = &read {
            self.bytes_read.fetch_add(*bytes as u64, Ordering::Relaxed);
        }
        read
    }

    /// Makes a write. A short write writes the first half, then returns the error.
    fn write(&self, class: IoClass, path: &Path, bytes: &[u8], write: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
        match self.consult(Operation::Write, Some(class), path) {
            Verdict::Fail(error) => Err(error),
            Verdict::FailAfter(error) => write(bytes).and(Err(error)),
            Verdict::Short(Some(error)) => write(bytes.split_at(bytes.len() / 2).0).and(Err(error)),
            Verdict::Pass | Verdict::Short(None) => write(bytes),
        }
    }

    /// Makes a sync. After a failed sync, later syncs through the same handle report success and do nothing. The kernel
    /// has marked the pages clean, so it deceives a retry the same way (D4).
    fn sync(&self, class: IoClass, path: &Path, lost: &AtomicBool, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let sync = || if lost.load(Ordering::Relaxed) { Ok(()) } else { sync() };
        let outcome = self.call(Operation::Sync, Some(class), path, sync);
        if outcome.is_err() {
            lost.store(true, Ordering::Relaxed);
        }
        outcome
    }
}
