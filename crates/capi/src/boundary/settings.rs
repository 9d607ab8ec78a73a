//! Setters and getters from tables: one row for each option.

/// Exports `PREFIXset_NAME` and `PREFIXget_NAME` for every row.
///
/// ```text
/// NAME: type in C [| the getter's type, where it differs] => path of the field;      an option of ours
/// NAME: type in C [| ...] = RocksDB's default;                                       one that is only kept
/// ```
///
/// The handle implements `Keeps`.
macro_rules! settings {
    ($Handle:ty, $prefix:literal; $($rest:tt)+) => {
        $crate::boundary::settings::rows!($Handle, $prefix; $($rest)+);
    };
}

macro_rules! rows {
    ($Handle:ty, $prefix:literal;) => {};
    ($Handle:ty, $prefix:literal; $name:ident: $set:ty $(| $get:ty)? => $field:ident $(. $inner:ident)*; $($rest:tt)*) => {
        $crate::boundary::settings::accessors!($Handle, $prefix, $name, $set, $crate::boundary::settings::first!($($get,)? $set),
            |handle, value| {
                let number = $crate::kept::number::CNumber::number(value);
                let taken = $crate::kept::number::Field::take(&mut handle.$field$(.$inner)*, number);
                $crate::kept::Keeps::keep_field(handle, stringify!($name), number, taken);
            },
            |handle| {
                let kept = $crate::kept::Keeps::kept(handle, stringify!($name));
                let number = kept.unwrap_or_else(|| $crate::kept::number::Field::number(&handle.$field$(.$inner)*));
                $crate::kept::number::CNumber::of(number)
            });
        $crate::boundary::settings::rows!($Handle, $prefix; $($rest)*);
    };
    ($Handle:ty, $prefix:literal; $name:ident: $set:ty $(| $get:ty)? = $default:expr; $($rest:tt)*) => {
        $crate::boundary::settings::accessors!($Handle, $prefix, $name, $set, $crate::boundary::settings::first!($($get,)? $set),
            |handle, value| {
                let default: $set = $default;
                let numbers = [value, default].map($crate::kept::number::CNumber::number);
                $crate::kept::Keeps::keep(handle, stringify!($name), numbers[0], numbers[1]);
            },
            |handle| {
                let kept = $crate::kept::Keeps::kept(handle, stringify!($name));
                kept.map_or(
                    $default as $crate::boundary::settings::first!($($get,)? $set),
                    $crate::kept::number::CNumber::of,
                )
            });
        $crate::boundary::settings::rows!($Handle, $prefix; $($rest)*);
    };
}

/// The two functions of one row.
macro_rules! accessors {
    ($Handle:ty, $prefix:literal, $name:ident, $set:ty, $get:ty, $setter:expr, $getter:expr) => {
        const _: () = {
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
                    let apply: fn(&mut $Handle, $set) = $setter;
                    // SAFETY: K1, K5, kept by the caller of an exported function.
                    apply(unsafe { $crate::boundary::argument::FromC::from_c(options, SETTER) }, value);
                });
            }

            #[unsafe(export_name = concat!($prefix, "get_", stringify!($name)))]
            unsafe extern "C" fn get(options: *mut $Handle) -> $get {
                $crate::boundary::call::infallible(GETTER.function, || -> $get {
                    let read: fn(&$Handle) -> $get = $getter;
                    // SAFETY: K1, K5, kept by the caller of an exported function.
                    read(unsafe { $crate::boundary::argument::FromC::from_c(options.cast_const(), GETTER) })
                })
            }
        };
    };
}

macro_rules! first {
    ($first:ty $(, $rest:ty)*) => {
        $first
    };
}

pub(crate) use {accessors, first, rows, settings};
