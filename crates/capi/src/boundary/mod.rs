//! The boundary to C: everything unsafe in this crate.
//!
//! Exported functions are written in [`export!`] and [`fallible!`] with Rust's types. The macros convert C's
//! parameters, catch panics, and convert results. The compiler cannot check the caller's promises, given in RocksDB's
//! header:
//!
//! - **K1** A handle is NULL, or was returned by a function of this library for its type and is not yet destroyed. A
//!   NULL in place of a required handle ends the process with a message that names function and argument.
//! - **K2** A pointer with a length leads to as many bytes (or elements), unchanged during the call. NULL stands for
//!   none.
//! - **K3** A pointer to text without a length leads to text ending with a zero byte.
//! - **K4** A pointer to a result's destination is NULL, which drops the result, or leads to room for it.
//! - **K5** While a function changes a handle (setters, iterators, batches, destroying), no other thread uses it.
//! - **K6** A callback has the type that the header gives it, can be called by any thread, also by several at once, with
//!   its state, until its destructor was called, and does not unwind.

pub mod allocator;
pub mod argument;
pub mod array;
pub mod call;
pub mod callback;

pub mod reply;
pub mod settings;

/// A type known to C by a pointer to it.
pub trait Handle {}

/// Marks types as handles.
macro_rules! handles {
    ($($type:ty),+ $(,)?) => { $( impl $crate::boundary::Handle for $type {} )+ };
}

/// Exports functions without an error parameter. An argument `key[key_len]` is two parameters in C: pointer and length.
macro_rules! export {
    ($(
        $(#[doc = $doc:literal])*
        fn $name:ident($($arg:ident $([$len:ident])? : $type:ty),* $(,)?) $(-> $ret:ty)? $body:block
    )+) => {$(
        $(#[doc = $doc])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            $( $arg: <$type as $crate::boundary::argument::FromC>::Parameter $(, $len: usize)? ),*
        ) -> <$crate::boundary::or_unit!($($ret)?) as $crate::boundary::reply::IntoC>::C {
            $crate::boundary::call::infallible(stringify!($name), || -> $crate::boundary::or_unit!($($ret)?) {
                $( let $arg: $type = $crate::boundary::take!($name, $arg $([$len])?); )*
                $body
            })
        }
    )+};
}

/// Exports functions with an error parameter: `char** errptr`, the last one in C. Bodies return a `Result`.
macro_rules! fallible {
    ($(
        $(#[doc = $doc:literal])*
        fn $name:ident($($arg:ident $([$len:ident])? : $type:ty),* $(,)?) $(-> $ret:ty)? $body:block
    )+) => {$(
        $(#[doc = $doc])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            $( $arg: <$type as $crate::boundary::argument::FromC>::Parameter, $( $len: usize, )? )*
            errptr: *mut *mut std::ffi::c_char,
        ) -> <$crate::boundary::or_unit!($($ret)?) as $crate::boundary::reply::IntoC>::C {
            // SAFETY: K4.
            let errors = unsafe { $crate::boundary::reply::ErrorSlot::new(errptr) };
            $crate::boundary::call::fallible(
                stringify!($name),
                errors,
                || -> Result<$crate::boundary::or_unit!($($ret)?), $crate::failure::Failure> {
                    $( let $arg: $type = $crate::boundary::take!($name, $arg $([$len])?); )*
                    $body
                },
            )
        }
    )+};
}

/// Exports functions that destroy handles of a type never made, so the handle is NULL (K1).
macro_rules! of_nothing {
    ($what:literal; destroy { $($destroyer:ident)* }) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $destroyer(handle: *const std::ffi::c_void) {
                if !handle.is_null() {
                    $crate::boundary::call::die(concat!(stringify!($destroyer), ": ", $what, " are not there"));
                }
            }
        )*
    };
}

macro_rules! or_unit {
    () => {
        ()
    };
    ($type:ty) => {
        $type
    };
}

/// One argument, from its parameters in C.
macro_rules! take {
    ($function:ident, $arg:ident $([$len:ident])?) => {{
        const PLACE: $crate::boundary::argument::Place =
            $crate::boundary::argument::Place { function: stringify!($function), argument: stringify!($arg) };
        // SAFETY: K1 to K5, kept by the caller of an exported function.
        unsafe { $crate::boundary::argument::FromC::from_c(($arg $(, $len)?), PLACE) }
    }};
}

pub(crate) use {export, fallible, handles, of_nothing, or_unit, take};
