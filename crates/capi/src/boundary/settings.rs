//! Setters and getters from tables: one row for each option.

use crate::kept::number::Number;

/// An option of a handle, by C's name.
pub struct Row<Handle> {
    pub name: &'static str,
    pub set: fn(&mut Handle, Number),
    pub get: fn(&Handle) -> Number,
}

/// Exports `PREFIXset_NAME` and `PREFIXget_NAME` for every row, and collects the rows in a constant, `ROWS` unless named.
///
/// ```text
/// NAME: type in C [| the getter's type, where it differs] => path of the field;      an option of ours
/// NAME: type in C [| ...] = RocksDB's default;                                       one that is only kept
/// ```
///
/// The handle implements `Keeps`.
macro_rules! settings {
    ($Handle:ty, $prefix:literal; $($rest:tt)+) => {
        $crate::boundary::settings::settings! { $Handle as ROWS, $prefix; $($rest)+ }
    };
    ($Handle:ty as $rows:ident, $prefix:literal; $($rest:tt)+) => {
        /// The options by name.
        pub const $rows: &[$crate::boundary::settings::Row<$Handle>] =
            $crate::boundary::settings::rows!($Handle, $prefix, []; $($rest)+);
    };
}

/// Exports the functions of each row, and gives the list of rows.
macro_rules! rows {
    ($Handle:ty, $prefix:literal, [$($row:expr,)*];) => {
        &[$($row,)*]
    };
    ($Handle:ty, $prefix:literal, [$($row:expr,)*]; $name:ident: $set:ty $(| $get:ty)? => $field:ident $(. $inner:ident)*; $($rest:tt)*) => {
        $crate::boundary::settings::rows!($Handle, $prefix, [$($row,)* {
            const ROW: $crate::boundary::settings::Row<$Handle> = $crate::boundary::settings::Row {
                name: stringify!($name),
                set: |handle, number| {
                    let taken = $crate::kept::number::Field::take(&mut handle.$field$(.$inner)*, number);
                    $crate::kept::Keeps::keep_field(handle, stringify!($name), number, taken);
                },
                get: |handle| {
                    let kept = $crate::kept::Keeps::kept(handle, stringify!($name));
                    kept.unwrap_or_else(|| $crate::kept::number::Field::number(&handle.$field$(.$inner)*))
                },
            };
            $crate::boundary::settings::accessors!($Handle, $prefix, $name, $set, $crate::boundary::settings::first!($($get,)? $set));
            ROW
        },]; $($rest)*)
    };
    ($Handle:ty, $prefix:literal, [$($row:expr,)*]; $name:ident: $set:ty $(| $get:ty)? = $default:expr; $($rest:tt)*) => {
        $crate::boundary::settings::rows!($Handle, $prefix, [$($row,)* {
            const ROW: $crate::boundary::settings::Row<$Handle> = $crate::boundary::settings::Row {
                name: stringify!($name),
                set: |handle, number| {
                    let default: $set = $default;
                    let default = $crate::kept::number::CNumber::number(default);
                    $crate::kept::Keeps::keep(handle, stringify!($name), number, default);
                },
                get: |handle| {
                    let kept = $crate::kept::Keeps::kept(handle, stringify!($name));
                    let default: $set = $default;
                    kept.unwrap_or_else(|| $crate::kept::number::CNumber::number(default))
                },
            };
            $crate::boundary::settings::accessors!($Handle, $prefix, $name, $set, $crate::boundary::settings::first!($($get,)? $set));
            ROW
        },]; $($rest)*)
    };
}

/// The two functions of `ROW`.
macro_rules! accessors {
    ($Handle:ty, $prefix:literal, $name:ident, $set:ty, $get:ty) => {
        const SETTER: $crate::boundary::argument::Place = $crate::boundary::argument::Place {
            function: concat!($prefix, "set_", stringify!($name)),
            argument: "options",
        };
        const GETTER: $crate::boundary::argument::Place = $crate::boundary::argument::Place {
            function: concat!($prefix, "get_", stringify!($name)),
            argument: "options",
        };

        #[unsafe(export_name = concat!($prefix, "set_", stringify!($name)))]
        unsafe extern "C" fn set(options: *mut $Handle, value: $set) {
            $crate::boundary::call::infallible(SETTER.function, || {
                // SAFETY: K1, K5, kept by the caller of an exported function.
                let options = unsafe { $crate::boundary::argument::FromC::from_c(options, SETTER) };
                (ROW.set)(options, $crate::kept::number::CNumber::number(value));
            });
        }

        #[unsafe(export_name = concat!($prefix, "get_", stringify!($name)))]
        unsafe extern "C" fn get(options: *mut $Handle) -> $get {
            $crate::boundary::call::infallible(GETTER.function, || -> $get {
                // SAFETY: K1, K5, kept by the caller of an exported function.
                let options = unsafe { $crate::boundary::argument::FromC::from_c(options.cast_const(), GETTER) };
                $crate::kept::number::CNumber::of((ROW.get)(options))
            })
        }
    };
}

macro_rules! first {
    ($first:ty $(, $rest:ty)*) => {
        $first
    };
}

pub(crate) use {accessors, first, rows, settings};
