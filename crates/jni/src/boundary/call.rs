//! The wrapper of every native: no panic and no error crosses the boundary but as an exception.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jni_sys::jobject;

use super::env::{Env, RawEnv};
use super::reply::Raw;
use crate::fault::Fault;

/// Runs a native.
#[inline]
pub fn native<R: Raw>(
    name: &'static str,
    env: RawEnv<'_>,
    this: jobject,
    body: impl FnOnce(Env<'_>) -> Result<R, Fault>,
) -> R {
    // SAFETY: J1: the environment of this call.
    let env = unsafe { Env::new(env, this) };
    match catch_unwind(AssertUnwindSafe(|| body(env))) {
        Ok(Ok(result)) => result,
        Ok(Err(fault)) => failed(env, &fault),
        Err(panic) => {
            let what = format!("an internal error in {name}: {}", message(&*panic));
            failed(env, &Fault::Status(capi::failure::Failure::aborted(what)))
        }
    }
}

#[cold]
fn failed<R: Raw>(env: Env<'_>, fault: &Fault) -> R {
    fault.throw(env);
    R::ABSENT
}

/// The text of a panic.
pub fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}

/// An absent function: always an exception, and a result of zero.
#[cfg(not(test))]
#[cold]
pub fn absent(name: &'static str, env: RawEnv<'_>) {
    // SAFETY: J1: the environment of this call.
    let env = unsafe { Env::new(env, std::ptr::null_mut()) };
    Fault::not_implemented(name).throw(env);
}
