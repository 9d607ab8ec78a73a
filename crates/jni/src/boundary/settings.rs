//! Setters and getters from tables: one row for each option of a class.

use capi::boundary::settings::Row;
use capi::kept::number::{CNumber, Number};

use super::argument::FromJava;
use super::env::Env;
use super::reply::IntoJava;
use crate::fault::Fault;

/// A type of an option in Java.
pub trait JavaNumber: Copy + PartialEq + std::fmt::Debug + 'static {
    /// Values that every option of the type gives back.
    #[cfg(test)]
    const SAMPLES: &'static [Self];

    fn number(self) -> Number;
    fn of(number: Number) -> Self;
}

macro_rules! numbers {
    ($($type:ty as $c:ty: $samples:expr),+) => {$(
        impl JavaNumber for $type {
            #[cfg(test)]
            const SAMPLES: &'static [$type] = $samples;

            fn number(self) -> Number {
                CNumber::number(<$c>::from(self))
            }

            fn of(number: Number) -> $type {
                <$c as CNumber>::of(number).clamp(<$type>::MIN.into(), <$type>::MAX.into()) as $type
            }
        }
    )+};
}

numbers!(i8 as i32: &[0, 1, 3], i32 as i32: &[0, 1, 112, i32::MAX, -5]);

/// RocksDB's sizes have no sign: a Java `long` below 0 is one of the largest.
impl JavaNumber for i64 {
    #[cfg(test)]
    const SAMPLES: &'static [i64] = &[0, 1, 112, i64::MAX, -1, i64::MIN];

    fn number(self) -> Number {
        CNumber::number(self as u64)
    }

    fn of(number: Number) -> i64 {
        <u64 as CNumber>::of(number) as i64
    }
}

impl JavaNumber for bool {
    #[cfg(test)]
    const SAMPLES: &'static [bool] = &[true, false];

    fn number(self) -> Number {
        CNumber::number(u8::from(self))
    }

    fn of(number: Number) -> bool {
        <u8 as CNumber>::of(number) != 0
    }
}

impl JavaNumber for f64 {
    #[cfg(test)]
    const SAMPLES: &'static [f64] = &[0.0, 0.125, 1.5, 99.0, 0.8619385989502999];

    fn number(self) -> Number {
        CNumber::number(self)
    }

    fn of(number: Number) -> f64 {
        CNumber::of(number)
    }
}

/// A compression by Java's number: RocksDB's, but for "as the other levels".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compression(pub i8);

const AS_OTHERS_IN_JAVA: i8 = 0x7f;
const AS_OTHERS: i32 = 0xff;

impl JavaNumber for Compression {
    #[cfg(test)]
    const SAMPLES: &'static [Compression] =
        &[Compression(0), Compression(1), Compression(3), Compression(6), Compression(7), Compression(0x7f)];

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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signed(pub i64);

impl JavaNumber for Signed {
    #[cfg(test)]
    const SAMPLES: &'static [Signed] = &[Signed(0), Signed(1), Signed(-1), Signed(i64::MAX), Signed(i64::MIN)];

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
    ($classes:tt, $Handle:ty $(= $made:expr)?, [$($rows:expr),+]; $(
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
        fn every_option_has_a_row_that_gives_back_what_was_set() {
            let made = || -> $Handle { $crate::boundary::settings::made!($($made)?) };
            $( $crate::boundary::settings::check_round_trips::<$Handle, $type>(&made, TABLES, $name); )+
        }
    };
}

/// Sets an option to values of its type, each after the default and after one another.
#[cfg(test)]
pub fn check_round_trips<Handle, T: JavaNumber>(
    made: &dyn Fn() -> Handle,
    rows: &'static [&'static [Row<Handle>]],
    name: &str,
) {
    let row = row(rows, name).unwrap_or_else(|_| panic!("no row `{name}`"));
    let mut handle = made();
    for &sample in T::SAMPLES {
        for handle in [&mut made(), &mut handle] {
            (row.set)(handle, sample.number());
            assert_eq!(T::of((row.get)(handle)), sample, "{name}");
        }
    }
}

#[cfg(test)]
macro_rules! made {
    () => {
        Default::default()
    };
    ($made:expr) => {
        $made
    };
}

#[cfg(test)]
pub(crate) use made;

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
