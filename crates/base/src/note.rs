//! What the engine tells people: through `tracing`, and to the event log of the database that the thread works for.
//!
//! [`error!`](crate::note::error), `warn!` and `info!` take what `tracing`'s macros of the same names take: fields, then a
//! text. A thread works for a database within a [`Scope`].

use std::cell::RefCell;
use std::fmt::Write;
use std::sync::Arc;

use crate::options::InfoLogLevel;

pub use crate::{note_error as error, note_info as info, note_warn as warn};

/// Takes what is told: the event log of a database.
pub trait Sink: Send + Sync {
    fn takes(&self, level: InfoLogLevel) -> bool;

    /// May be called under any lock, and must not wait.
    fn take(&self, level: InfoLogLevel, line: String);
}

thread_local! {
    static SINK: RefCell<Option<Arc<dyn Sink>>> = const { RefCell::new(None) };
}

/// While it lives, the thread works for the database that it was made with.
#[must_use = "it ends when it is dropped"]
pub struct Scope {
    before: Option<Arc<dyn Sink>>,
}

/// Has the thread work for the database of that event log; `None` for none.
pub fn within(sink: Option<Arc<dyn Sink>>) -> Scope {
    Scope { before: SINK.try_with(|current| current.replace(sink)).ok().flatten() }
}

/// The event log of the database that the thread works for, to be handed to threads that help it.
pub fn current() -> Option<Arc<dyn Sink>> {
    SINK.try_with(|current| current.borrow().clone()).ok().flatten()
}

impl Drop for Scope {
    fn drop(&mut self) {
        let before = self.before.take();
        let _ = SINK.try_with(|current| current.replace(before)); // a thread that ends works for nobody
    }
}

/// Tells the event log that the thread works for. `write` adds fields to the first text and the message to the second.
#[doc(hidden)]
pub fn tell(level: InfoLogLevel, place: (&str, u32), write: impl FnOnce(&mut String, &mut String)) {
    let Some(sink) = current().filter(|sink| sink.takes(level)) else { return };
    let (mut fields, mut message) = (String::new(), String::new());
    write(&mut fields, &mut message);
    let (file, line) = place;
    let file = file.trim_start_matches("crates/");
    sink.take(level, format!("[{file}:{line}] {message}{fields}"));
}

/// Adds a field to a text.
#[doc(hidden)]
pub fn add_field(fields: &mut String, name: &str, value: std::fmt::Arguments<'_>) {
    let _ = write!(fields, " {name}={value}"); // texts take everything
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

#[macro_export]
macro_rules! note_error {
    ($($rest:tt)+) => {{
        tracing::error!($($rest)+);
        $crate::note::tell($crate::options::InfoLogLevel::Error, (file!(), line!()), |_fields, message| {
            $crate::note_parts!(_fields, message; $($rest)+);
        });
    }};
}

#[macro_export]
macro_rules! note_warn {
    ($($rest:tt)+) => {{
        tracing::warn!($($rest)+);
        $crate::note::tell($crate::options::InfoLogLevel::Warn, (file!(), line!()), |_fields, message| {
            $crate::note_parts!(_fields, message; $($rest)+);
        });
    }};
}

#[macro_export]
macro_rules! note_info {
    ($($rest:tt)+) => {{
        tracing::info!($($rest)+);
        $crate::note::tell($crate::options::InfoLogLevel::Info, (file!(), line!()), |_fields, message| {
            $crate::note_parts!(_fields, message; $($rest)+);
        });
    }};
}
