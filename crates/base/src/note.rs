//! Diagnostics, sent to `tracing` and to the event log of the current thread's database.
//!
//! [`error!`](crate::note::error), `warn!` and `info!` take the arguments of `tracing`'s macros: fields, then a text. A
//! [`Scope`] binds the thread to a database's event log.

use std::cell::RefCell;
use std::fmt::Write;
use std::sync::Arc;

use crate::options::InfoLogLevel;

pub use crate::{note_info as info, note_warn as warn, record_error as error};

/// Receives lines for the event log of a database.
pub trait Sink: Send + Sync {
    /// True if lines of this level are wanted.
    fn takes(&self, level: InfoLogLevel) -> bool;

    /// May be called under any lock, and must not wait.
    fn take(&self, level: InfoLogLevel, line: String);
}

thread_local! {
    static SINK: RefCell<Option<Arc<dyn Sink>>> = const { RefCell::new(None) };
}

/// Binds the thread to an event log until dropped.
#[must_use = "it ends when it is dropped"]
pub struct Scope {
    before: Option<Arc<dyn Sink>>,
}

/// Binds the thread to `sink` until the [`Scope`] drops; `None` unbinds it.
pub fn within(sink: Option<Arc<dyn Sink>>) -> Scope {
    Scope { before: SINK.try_with(|current| current.replace(sink)).ok().flatten() }
}

/// The thread's event log, for passing on to its helper threads.
pub fn current() -> Option<Arc<dyn Sink>> {
    SINK.try_with(|current| current.borrow().clone()).ok().flatten()
}

impl Drop for Scope {
    fn drop(&mut self) {
        let before = self.before.take();
        let _ = SINK.try_with(|current| current.replace(before)); // fails only in thread teardown
    }
}

/// Writes a line to the thread's event log. `write` adds fields to the first text and the message to the second.
#[doc(hidden)]
pub fn tell(level: InfoLogLevel, file: &str, line: u32, write: impl FnOnce(&mut String, &mut String)) {
    let Some(sink) = current().filter(|sink| sink.takes(level)) else { return };
    let (mut fields, mut message) = (String::new(), String::new());
    write(&mut fields, &mut message);
    let file = file.trim_start_matches("crates/");
    sink.take(level, format!("[{file}:{line}] {message}{fields}"));
}

/// Adds a field to a text.
#[doc(hidden)]
pub fn add_field(fields: &mut String, name: &str, value: std::fmt::Arguments<'_>) {
    let _ = write!(fields, " {name}={value}"); // writing to a `String` cannot fail
}

#[doc(hidden)]
#[macro_export]
macro_rules! note_parts {
    ($fields:ident, $message:ident;) => {};
    ($fields:ident, $message:ident; % $name:ident $(, $($rest:tt)*)?) => {
        $crate::note::add_field($fields, stringify!($name), format_args!("{}", $name));
        $crate::note_parts!($fields, $message; $($($rest)*)?);
    };
    ($fields:ident, $message:ident; ? $name:ident $(, $($rest:tt)*)?) => {
        $crate::note::add_field($fields, stringify!($name), format_args!("{:?}", $name));
        $crate::note_parts!($fields, $message; $($($rest)*)?);
    };
    ($fields:ident, $message:ident; $name:ident = % $value:expr $(, $($rest:tt)*)?) => {
        $crate::note::add_field($fields, stringify!($name), format_args!("{}", $value));
        $crate::note_parts!($fields, $message; $($($rest)*)?);
    };
    ($fields:ident, $message:ident; $name:ident = ? $value:expr $(, $($rest:tt)*)?) => {
        $crate::note::add_field($fields, stringify!($name), format_args!("{:?}", $value));
        $crate::note_parts!($fields, $message; $($($rest)*)?);
    };
    ($fields:ident, $message:ident; $name:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::note::add_field($fields, stringify!($name), format_args!("{}", $value));
        $crate::note_parts!($fields, $message; $($($rest)*)?);
    };
    ($fields:ident, $message:ident; $name:ident, $($rest:tt)*) => {
        $crate::note::add_field($fields, stringify!($name), format_args!("{}", $name));
        $crate::note_parts!($fields, $message; $($rest)*);
    };
    ($fields:ident, $message:ident; $text:literal $(, $argument:expr)* $(,)?) => {
        $message.push_str(&format!($text $(, $argument)*));
    };
}

/// Logs an error.
#[macro_export]
macro_rules! record_error {
    ($($rest:tt)+) => {{
        tracing::error!($($rest)+);
        $crate::note::tell($crate::options::InfoLogLevel::Error, file!(), line!(), |_fields, message| {
            $crate::note_parts!(_fields, message; $($rest)+);
        });
    }};
}

/// Logs a warning.
#[macro_export]
macro_rules! note_warn {
    ($($rest:tt)+) => {{
        tracing::warn!($($rest)+);
        $crate::note::tell($crate::options::InfoLogLevel::Warn, file!(), line!(), |_fields, message| {
            $crate::note_parts!(_fields, message; $($rest)+);
        });
    }};
}

/// Logs an event.
#[macro_export]
macro_rules! note_info {
    ($($rest:tt)+) => {{
        tracing::info!($($rest)+);
        $crate::note::tell($crate::options::InfoLogLevel::Info, file!(), line!(), |_fields, message| {
            $crate::note_parts!(_fields, message; $($rest)+);
        });
    }};
}
