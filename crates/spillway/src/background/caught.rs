//! Turns panics of background work into errors. User code may panic: merge operators, filters, comparators and
//! listeners. As errors, panics are reported, and the work's resources are released.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use base::{Error, Result};

/// Runs `work` and catches panics. `work` must leave no shared state half changed.
///
/// # Errors
/// Errors of `work`; `Corruption` with the panic's message if it panics.
pub(crate) fn caught<R>(what: &str, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let panicked =
        |panic: Box<dyn Any + Send>| Err(Error::corruption(format!("{what} panicked: {}", message_of(&*panic))));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(panicked)
}

/// As [`caught`], for work without errors of its own.
///
/// # Errors
/// `Corruption` if `work` panics.
pub(crate) fn caught_panic(what: &str, work: impl FnOnce()) -> Result<()> {
    caught(what, || {
        work();
        Ok(())
    })
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let formatted = || panic.downcast_ref::<String>().map(String::as_str);
    panic.downcast_ref::<&str>().copied().or_else(formatted).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        let text = |work: fn() -> Result<()>| caught("a job", work).expect_err("it fails").to_string();
        assert!(text(|| panic!("as it stands")).contains("a job panicked: as it stands"));
        assert!(text(|| panic!("of {}", 2)).contains("a job panicked: of 2"));
        assert!(text(|| std::panic::panic_any(3)).contains("without a message"));
        assert!(text(|| Err(Error::closed("its own"))).contains("its own"));
        assert_eq!(caught("a job", || Ok(4)).expect("no panic"), 4);
    }
}
