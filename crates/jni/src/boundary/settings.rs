//! Setters and getters from tables: one row for each option of a class.

use capi::boundary::settings::Row;
use capi::kept::number::{CNumber, Number};

use super::argument::FromJava;
use super::env::Env;
use super::reply::IntoJava;
use crate::fault::Fault;

/// A type of an option in Java.
pub trait JavaNumber: Copy {
    fn number(self) -> Number;
    fn of(number: Number) -> Self;
}

macro_rules! numbers {
    ($($type:ty as $c:ty),+) => {$(
        impl JavaNumber for $type {
            fn number(self) -> Number {
                CNumber::number(<$c>::from(self))
            }

            fn of(number: Number) -> $type {
                <$c as CNumber>::of(number).clamp(<$type>::MIN.into(), <$type>::MAX.into()) as $type
            }
        }
    )+};
}

numbers!(i8 as i32, i32 as i32);

/// RocksDB's sizes have no sign: a Java `long` below 0 is one of the largest.
impl JavaNumber for i64 {
    fn number(self) -> Number {
        CNumber::number(self as u64)
    }

    fn of(number: Number) -> i64 {
        <u64 as CNumber>::of(number) as i64
    }
}

impl JavaNumber for bool {
    fn number(self) -> Number {
        CNumber::number(u8::from(self))
    }

    fn of(number: Number) -> bool {
        <u8 as CNumber>::of(number) != 0
    }
}

impl JavaNumber for f64 {
    fn number(self) -> Number {
        CNumber::number(self)
    }

    fn of(number: Number) -> f64 {
        CNumber::of(number)
    }
}

/// A compression by Java's number: RocksDB's, but for "as the other levels".
#[derive(Clone, Copy)]
pub struct Compression(pub i8);

const AS_OTHERS_IN_JAVA: i8 = 0x7f;
const AS_OTHERS: i32 = 0xff;

impl JavaNumber for Compression {
    fn number(self) -> Number {
        CNumber::number(if self.0 == AS_OTHERS_IN_JAVA { AS_OTHERS } else { self.0.into() })
    }

    fn of(number: Number) -> Compression {
        let number = <i32 as CNumber>::of(number);
        Compression(i8::try_from(number).unwrap_or(AS_OTHERS_IN_JAVA))
    }
}

impl FromJava for Compression {
    type Parameter = i8;
    type Raw = i8;
    const DESCRIPTOR: &'static str = "B";

    unsafe fn from_java(raw: i8, _env: Env<'_>, _name: &'static str) -> Result<Compression, Fault> {
        Ok(Compression(raw))
    }
}

impl IntoJava for Compression {
    type Raw = i8;
    const DESCRIPTOR: &'static str = "B";

    fn into_java(self, _env: Env<'_>) -> Result<i8, Fault> {
        Ok(self.0)
    }
}

/// Rows of options that C's library has no setters for: kept for getters, with RocksDB's default.
macro_rules! kept {
    ($Handle:ty; $($name:literal: $type:ty = $default:expr;)+) => {
        &[$( capi::boundary::settings::Row {
            name: $name,
            set: |handle: &mut $Handle, number| {
                let default: $type = $default;
                let default = $crate::boundary::settings::JavaNumber::number(default);
                capi::kept::Keeps::keep(handle, $name, number, default);
            },
            get: |handle: &$Handle| {
                let default: $type = $default;
                let kept = capi::kept::Keeps::kept(handle, $name);
                kept.unwrap_or_else(|| $crate::boundary::settings::JavaNumber::number(default))
            },
        } ),+]
    };
}

/// Rows of options of ours that C's library has no setters for.
macro_rules! fields {
    ($Handle:ty; $($name:literal => $field:ident $(. $inner:ident)*;)+) => {
        &[$( capi::boundary::settings::Row {
            name: $name,
            set: |handle: &mut $Handle, number| {
                let taken = capi::kept::number::Field::take(&mut handle.$field$(.$inner)*, number);
                capi::kept::Keeps::keep_field(handle, $name, number, taken);
            },
            get: |handle: &$Handle| {
                let kept = capi::kept::Keeps::kept(handle, $name);
                kept.unwrap_or_else(|| capi::kept::number::Field::number(&handle.$field$(.$inner)*))
            },
        } ),+]
    };
}

/// A number with a sign: times, and limits that may be none.
#[derive(Clone, Copy)]
pub struct Signed(pub i64);

impl JavaNumber for Signed {
    fn number(self) -> Number {
        CNumber::number(self.0)
    }

    fn of(number: Number) -> Signed {
        Signed(CNumber::of(number))
    }
}

impl FromJava for Signed {
    type Parameter = i64;
    type Raw = i64;
    const DESCRIPTOR: &'static str = "J";

    unsafe fn from_java(raw: i64, _env: Env<'_>, _name: &'static str) -> Result<Signed, Fault> {
        Ok(Signed(raw))
    }
}

impl IntoJava for Signed {
    type Raw = i64;
    const DESCRIPTOR: &'static str = "J";

    fn into_java(self, _env: Env<'_>) -> Result<i64, Fault> {
        Ok(self.0)
    }
}

/// Sets an option by its name; false if no row has the name.
pub fn set_by_name<Handle>(rows: &[&[Row<Handle>]], handle: &mut Handle, name: &str, number: Number) -> bool {
    let row = rows.iter().copied().flatten().find(|row| row.name == name);
    row.map(|row| (row.set)(handle, number)).is_some()
}

/// The row of an option.
///
/// # Errors
/// None has the name: a test finds it first.
pub fn row<Handle>(rows: &'static [&'static [Row<Handle>]], name: &str) -> Result<&'static Row<Handle>, Fault> {
    let row = rows.iter().copied().flatten().find(|row| row.name == name);
    row.ok_or_else(|| Fault::not_implemented(name))
}

/// Exports setters and getters, of each row for each class; the list of them is `NATIVES`.
///
/// ```text
/// settings! { ["Options", "DBOptions"], Handle, [ROWS];
///     i32, set "setMaxOpenFiles", get "maxOpenFiles" => "max_open_files";
/// }
/// ```
macro_rules! settings {
    ($classes:tt, $Handle:ty, [$($rows:expr),+]; $(
        $type:ty $(, set $set:literal)? $(, get $get:literal)? => $name:literal;
    )+) => {
        pub const TABLES: &[&[capi::boundary::settings::Row<$Handle>]] = &[$($rows),+];

        /// The natives here, as Java declares them.
        #[cfg_attr(not(test), allow(dead_code, reason = "the test of natives reads it"))]
        pub const NATIVES: &[&[$crate::boundary::Native]] = &[$(
            $( $crate::boundary::settings::setter!($classes, $Handle, $type, $set, $name), )?
            $( $crate::boundary::settings::getter!($classes, $Handle, $type, $get, $name), )?
        )+];

        #[cfg(test)]
        #[test]
        fn every_option_has_a_row() {
            for name in [$($name),+] {
                assert!($crate::boundary::settings::row(TABLES, name).is_ok(), "{name}");
            }
        }
    };
}

macro_rules! setter {
    ([$($class:literal),+], $Handle:ty, $type:ty, $set:literal, $name:literal) => {{
        $( $crate::boundary::native!($class, $set, (_env, options: &mut $Handle, value: $type), (), {
            let row = $crate::boundary::settings::row(TABLES, $name)?;
            (row.set)(options, $crate::boundary::settings::JavaNumber::number(value));
            Ok(())
        }); )+
        &[$( $crate::boundary::describe!($class, $set, (_env, options: &mut $Handle, value: $type), ()) ),+]
    }};
}

macro_rules! getter {
    ([$($class:literal),+], $Handle:ty, $type:ty, $get:literal, $name:literal) => {{
        $( $crate::boundary::native!($class, $get, (_env, options: &$Handle), $type, {
            let row = $crate::boundary::settings::row(TABLES, $name)?;
            Ok(<$type as $crate::boundary::settings::JavaNumber>::of((row.get)(options)))
        }); )+
        &[$( $crate::boundary::describe!($class, $get, (_env, options: &$Handle), $type) ),+]
    }};
}

pub(crate) use {fields, getter, kept, setter, settings};
