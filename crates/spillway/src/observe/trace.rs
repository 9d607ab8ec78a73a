//! The trace that a thread works for, so that what was slow can be found in the program's own tracing.

use std::cell::RefCell;
use std::marker::PhantomData;

use base::{Error, Result};

/// Longest id of a trace, in bytes.
pub const TRACE_ID_MAX: usize = 128;

thread_local! {
    static CURRENT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The thread works for a trace until this is dropped; then for the one before.
#[must_use = "it ends when it is dropped"]
#[derive(Debug)]
pub struct InTrace {
    before: Option<String>,
    /// Of this thread: neither `Send` nor `Sync`.
    _thread: PhantomData<*const ()>,
}

/// Says that this thread works for the trace `id`. Slow operations on it (`slow_operation_micros`) carry the id: their
/// event, their line in `LOG` and of `tracing`, and an exemplar in the metrics, if it has at most 120 bytes. Costs a copy of
/// the id here, and nothing where an operation is not slow.
///
/// # Errors
/// `InvalidArgument`: the id has not 1 to [`TRACE_ID_MAX`] characters, or others than ASCII letters, digits and `-`.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let options = spillway::Options::new().slow_operation_micros(10_000);
/// let db = spillway::Db::open_with(dir.path().join("db"), &options)?;
/// let _trace = spillway::observe::in_trace("4bf92f3577b34da6a3ce929d0e0e4736")?;
/// db.put("key", "value")?; // if it is slow, its event has the id
/// # Ok::<(), spillway::Error>(())
/// ```
pub fn in_trace(id: &str) -> Result<InTrace> {
    let is_id = (1..=TRACE_ID_MAX).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !is_id {
        let wanted = "1 to 128 ASCII letters, digits or hyphens";
        return Err(Error::invalid_argument(format!("not the id of a trace: {id:?} ({wanted})")));
    }
    Ok(InTrace { before: replace(Some(id.to_owned())), _thread: PhantomData })
}

/// The trace that this thread works for.
pub(crate) fn current() -> Option<String> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

fn replace(id: Option<String>) -> Option<String> {
    CURRENT.try_with(|current| current.replace(id)).ok().flatten()
}

impl Drop for InTrace {
    fn drop(&mut self) {
        replace(self.before.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_nest_and_ids_are_checked() {
        assert_eq!(current(), None);
        let outer = in_trace("outer-1").expect("an id");
        let inner = in_trace(&"a".repeat(TRACE_ID_MAX)).expect("an id");
        assert_eq!(current().map(|id| id.len()), Some(TRACE_ID_MAX));
        drop(inner);
        assert_eq!(current().as_deref(), Some("outer-1"));
        assert_eq!(std::thread::scope(|scope| scope.spawn(current).join().expect("ended")), None);
        drop(outer);
        assert_eq!(current(), None);
        for bad in ["", "a b", "a\"", "\u{e9}", "a\n", &"a".repeat(TRACE_ID_MAX + 1)] {
            in_trace(bad).expect_err("no id");
        }
    }
}
