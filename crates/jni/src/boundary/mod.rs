//! The boundary to Java: everything unsafe in this crate.
//!
//! Natives are written in [`natives!`] with Rust's types. The macro converts Java's parameters, catches panics, turns
//! errors into exceptions, and converts results. The compiler cannot check the promises of Java's side:
//!
//! - **J1** A native is called by the JVM, with the parameters of its descriptor in RocksDB's jar. A reference is null,
//!   or a live local reference to an object of the declared class.
//! - **J2** While a call changes or closes an object (setters, iterators, batches, `disposeInternal`), no other thread
//!   uses it: RocksDB's own contract. A handle that was closed before a call is found out, and throws.
//! - **J3** A direct buffer's memory is unchanged during the call it is passed to.
//! - **J4** No JNI function but those allowed is called with an exception pending: a pending exception is
//!   [`Fault::Pending`], and a native returns at once with it.
//! - **J5** Class and method ids belong to the class loader of the library: they are looked up in a native's call, or
//!   in the constructor of an object with callbacks, never on a thread of ours.
//!
//! [`Fault::Pending`]: crate::fault::Fault::Pending

pub mod argument;
pub mod call;
pub mod class;
pub mod env;
pub mod handle;
pub mod lent;
pub mod object;
pub mod reply;
pub mod settings;
pub mod thread;

/// A native, as Java declares it.
#[cfg_attr(not(test), allow(dead_code, reason = "compared with the jars' lists by a test"))]
pub struct Native {
    pub class: &'static str,
    /// With the mangled parameters if the symbol has them.
    pub method: &'static str,
    /// Types of the parameters and of the result. `L*` is an object of any class, `[*` an array of any
    /// objects.
    pub parameters: &'static [&'static str],
    pub result: &'static str,
}

/// Exports natives of a class; the list of them is `NATIVES`.
///
/// ```text
/// natives! { "RocksIterator";
///     "next0" | "next0Jni" => fn(_env, iterator: &mut Walk) -> () { ... }
/// }
/// ```
///
/// A native has one symbol for each name. The body returns `Result<_, Fault>`. Arguments of several parameters name the
/// others in brackets: `key[offset, len]: Key`. Classes that share their natives stand in brackets:
/// `natives! { ["DBOptions", "Options"]; ... }`.
macro_rules! natives {
    ($class:literal; $(
        $(#[$doc:meta])*
        $($name:literal)|+ => fn $arguments:tt -> $result:ty $body:block
    )+) => {
        /// The natives here, as Java declares them.
        #[cfg_attr(not(test), allow(dead_code, reason = "the test of natives reads it"))]
        pub const NATIVES: &[$crate::boundary::Native] = &[$( $(
            $crate::boundary::describe!($class, $name, $arguments, $result),
        )+ )+];

        $( $( $crate::boundary::native!($class, $name, $arguments, $result, $body); )+ )+
    };
    ($classes:tt; $(
        $(#[$doc:meta])*
        $($name:literal)|+ => fn $arguments:tt -> $result:ty $body:block
    )+) => {
        /// The natives here, as Java declares them: of several classes.
        #[cfg_attr(not(test), allow(dead_code, reason = "the test of natives reads it"))]
        pub const NATIVES: &[&[$crate::boundary::Native]] = &[$( $(
            $crate::boundary::describe_each!($classes, $name, $arguments, $result),
        )+ )+];

        $( $( $crate::boundary::native_each!($classes, $name, $arguments, $result, $body); )+ )+
    };
}

/// The function in each class.
macro_rules! native_each {
    ([$($class:literal),+], $name:literal, $arguments:tt, $result:ty, $body:block) => {
        $( $crate::boundary::native!($class, $name, $arguments, $result, $body); )+
    };
}

macro_rules! describe_each {
    ([$($class:literal),+], $name:literal, $arguments:tt, $result:ty) => {
        &[$( $crate::boundary::describe!($class, $name, $arguments, $result) ),+]
    };
}

/// The function with Java's types.
macro_rules! native {
    (
        $class:literal, $name:literal,
        ($env:ident $(, $argument:ident $([$($more:ident),+])? : $type:ty)* $(,)?), $result:ty, $body:block
    ) => {
        const _: () = {
            #[unsafe(export_name = concat!("Java_org_rocksdb_", $class, "_", $name))]
            unsafe extern "system" fn native(
                env: $crate::boundary::env::RawEnv<'_>,
                this: jni_sys::jobject,
                $($argument: <$type as $crate::boundary::argument::FromJava>::Parameter $(, $($more: jni_sys::jint),+)?),*
            ) -> <$result as $crate::boundary::reply::IntoJava>::Raw {
                $crate::boundary::call::native(concat!($class, ".", $name), env, this, |env| {
                    // SAFETY: J1 to J3, kept by the caller of a native.
                    $( let $argument: $type = unsafe {
                        $crate::boundary::argument::FromJava::from_java(($argument $(, $($more),+)?), env, stringify!($argument))?
                    }; )*
                    let $env = env;
                    #[allow(clippy::redundant_closure_call, reason = "the body may return")]
                    let result = (move || -> Result<$result, $crate::fault::Fault> { $body })()?;
                    $crate::boundary::reply::IntoJava::into_java(result, env)
                })
            }
        };
    };
}

/// Exports natives that are not there: each throws, but for those that close an object never made.
#[cfg(not(test))]
macro_rules! absent {
    ($($kind:ident $name:literal)+) => {$(
        $crate::boundary::absent_one!($kind $name);
    )+};
}

/// The parameters are not looked at: callers remove their own from the stack.
#[cfg(not(test))]
macro_rules! absent_one {
    (closing $name:literal) => {
        const _: () = {
            #[unsafe(export_name = concat!("Java_org_rocksdb_", $name))]
            extern "system" fn native(_env: $crate::boundary::env::RawEnv<'_>, _class: jni_sys::jobject) {}
        };
    };
    (double $name:literal) => {
        $crate::boundary::absent_one!(0.0, f64, $name);
    };
    (plain $name:literal) => {
        $crate::boundary::absent_one!(0, i64, $name);
    };
    ($zero:expr, $result:ty, $name:literal) => {
        const _: () = {
            #[unsafe(export_name = concat!("Java_org_rocksdb_", $name))]
            extern "system" fn native(env: $crate::boundary::env::RawEnv<'_>, _class: jni_sys::jobject) -> $result {
                $crate::boundary::call::absent($name, env);
                $zero
            }
        };
    };
}

macro_rules! describe {
    ($class:literal, $name:literal, ($env:ident $(, $argument:ident $([$($more:ident),+])? : $type:ty)* $(,)?), $result:ty) => {
        $crate::boundary::Native {
            class: $class,
            method: $name,
            parameters: &[$(
                <$type as $crate::boundary::argument::FromJava>::DESCRIPTOR
                $(, $($crate::boundary::int!($more)),+)?
            ),*],
            result: <$result as $crate::boundary::reply::IntoJava>::DESCRIPTOR,
        }
    };
}

macro_rules! int {
    ($more:ident) => {
        "I"
    };
}

#[cfg(not(test))]
pub(crate) use {absent, absent_one};
pub(crate) use {describe, describe_each, int, native, native_each, natives};
