//! Objects of Java's that the engine calls.

pub mod comparator;
pub mod filter;
pub mod flink;
pub mod listener;
pub mod logger;
pub mod own_tests;
pub mod table_filter;

use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::object::{Global, Object};
use crate::boundary::thread;
use crate::fault::Fault;
use crate::held;

/// A Java object that threads of ours call. It lives until its last holder ends.
pub struct Callback(Global);

impl Callback {
    /// The object whose native is called.
    pub fn of_this(env: Env<'_>) -> Result<Callback, Fault> {
        Callback::of(env, env.this()?)
    }

    pub fn of(env: Env<'_>, object: Object<'_>) -> Result<Callback, Fault> {
        Global::new(env, object).map(Callback).ok_or(Fault::OutOfMemory)
    }

    /// A local reference to the object.
    pub fn local<'j>(&self, env: Env<'j>) -> Result<Option<Object<'j>>, Fault> {
        self.0.local(env).map(Some).ok_or(Fault::OutOfMemory)
    }

    /// Calls the object. An exception is printed and ended: there is nobody to throw to. `None` after one, and where the
    /// JVM takes no more threads.
    pub fn call<R>(&self, call: impl FnOnce(Env<'_>, Object<'_>) -> Result<R, Fault>) -> Option<R> {
        let result = thread::attached(|env| {
            let result = call(env, self.0.object());
            env.describe_pending();
            result.ok()
        });
        result.flatten()
    }
}

natives! { "RocksCallbackObject";
    "disposeInternal" => fn(_env, handle: i64) -> () {
        held::close_any(handle);
        Ok(())
    }
}
