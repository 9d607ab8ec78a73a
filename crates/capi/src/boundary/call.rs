//! The wrapper of every exported function: no panic crosses the boundary.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::reply::{ErrorSlot, IntoC};
use crate::failure::Failure;

/// Runs a function without an error parameter: a panic ends the process.
#[inline]
pub fn infallible<R: IntoC>(function: &'static str, body: impl FnOnce() -> R) -> R::C {
    match catch_unwind(AssertUnwindSafe(|| body().into_c())) {
        Ok(reply) => reply,
        Err(panic) => die(&format!("{function}: {}", message(&*panic))),
    }
}

/// Runs a function with an error parameter; a panic is an error.
#[inline]
pub fn fallible<R: IntoC>(
    function: &'static str,
    errors: ErrorSlot,
    body: impl FnOnce() -> Result<R, Failure>,
) -> R::C {
    match catch_unwind(AssertUnwindSafe(|| body().map(IntoC::into_c))) {
        Ok(Ok(reply)) => reply,
        Ok(Err(failure)) => failed::<R>(errors, &failure),
        Err(panic) => {
            let what = format!("an internal error in {function}: {}", message(&*panic));
            failed::<R>(errors, &Failure::aborted(what))
        }
    }
}

#[cold]
fn failed<R: IntoC>(errors: ErrorSlot, failure: &Failure) -> R::C {
    errors.save(failure);
    R::ABSENT
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}

/// Ends the process: the caller or this library broke the interface's rules, and no other report is possible.
#[cold]
pub fn die(what: &str) -> ! {
    eprintln!("librocksdb (Spillway): {what}");
    std::process::abort()
}
