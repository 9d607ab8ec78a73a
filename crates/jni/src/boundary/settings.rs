//! Setters and getters from tables: one row for each option of a class.

use capi::boundary::settings::Row;
use capi::kept::number::{CNumber, Number};

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
        CNumber::number(self)
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
        const TABLES: &[&[capi::boundary::settings::Row<$Handle>]] = &[$($rows),+];

        /// The natives here, as Java declares them.
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

pub(crate) use {getter, setter, settings};
