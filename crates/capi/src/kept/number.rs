//! Values of options in C: numbers of any of its types.

use std::ffi::{c_char, c_double, c_int, c_uchar};

use spillway::internal::ReadTier;
use spillway::internal::options::row::{Load, Setting};
use spillway::internal::options::{
    ChecksumKind, CompactionPri, CompactionStopStyle, CompactionStyle, CompressionKind, DataBlockIndexType, IndexType,
    InfoLogLevel, LevelBase, WalRecoveryMode,
};

/// A value between C's type and the option's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Integer(i128),
    Real(f64),
}

impl Number {
    fn integer(self) -> i128 {
        match self {
            Number::Integer(number) => number,
            Number::Real(number) => number as i128,
        }
    }

    fn real(self) -> f64 {
        match self {
            Number::Integer(number) => number as f64,
            Number::Real(number) => number,
        }
    }

    /// A number in option string form; a suffix multiplies.
    pub fn parse(text: &str) -> Option<Number> {
        match text {
            "true" => return Some(Number::Integer(1)),
            "false" => return Some(Number::Integer(0)),
            _ => {}
        }
        let mut integer = 0u64;
        if text.starts_with('-') {
            return text.parse().ok().map(Number::Integer).or_else(|| text.parse().ok().map(Number::Real));
        }
        let parsed = integer.set(text, &mut Load::default());
        parsed.ok().map(|()| Number::Integer(integer.into())).or_else(|| text.parse().ok().map(Number::Real))
    }

    /// In option string form, with words for truth values.
    pub fn text(self, is_flag: bool) -> String {
        match self {
            Number::Integer(number) if is_flag => (number != 0).to_string(),
            Number::Integer(number) => number.to_string(),
            Number::Real(number) => {
                let as_rocksdb_writes_it = format!("{number:.6}");
                let is_exact = as_rocksdb_writes_it.parse() == Ok(number);
                if is_exact { as_rocksdb_writes_it } else { number.to_string() }
            }
        }
    }
}

/// A number's type in C. Clamps to the type's range.
pub trait CNumber: Copy {
    fn number(self) -> Number;
    fn of(number: Number) -> Self;
}

macro_rules! integers {
    ($($type:ty),+) => {$(
        impl CNumber for $type {
            fn number(self) -> Number {
                Number::Integer(self.into())
            }

            fn of(number: Number) -> $type {
                number.integer().clamp(<$type>::MIN.into(), <$type>::MAX.into()) as $type
            }
        }
    )+};
}

integers!(c_uchar, c_char, c_int, u32, i64, u64);

impl CNumber for usize {
    fn number(self) -> Number {
        Number::Integer(self as i128)
    }

    fn of(number: Number) -> usize {
        number.integer().clamp(0, usize::MAX as i128) as usize
    }
}

impl CNumber for c_double {
    fn number(self) -> Number {
        Number::Real(self)
    }

    fn of(number: Number) -> c_double {
        number.real()
    }
}

/// An option set by a number in C.
pub trait Field {
    fn number(&self) -> Number;

    /// False if the value is invalid: a number becomes the nearest valid one, any other option stays as it was.
    #[must_use]
    fn take(&mut self, number: Number) -> bool;
}

impl Field for bool {
    fn number(&self) -> Number {
        Number::Integer((*self).into())
    }

    fn take(&mut self, number: Number) -> bool {
        *self = number.integer() != 0;
        true
    }
}

macro_rules! integer_fields {
    ($($type:ty),+) => {$(
        impl Field for $type {
            fn number(&self) -> Number {
                Number::Integer(*self as i128)
            }

            fn take(&mut self, number: Number) -> bool {
                let whole = number.integer();
                *self = whole.clamp(<$type>::MIN as i128, <$type>::MAX as i128) as $type;
                *self as i128 == whole
            }
        }
    )+};
}

integer_fields!(i32, i64, u32, u64, usize);

impl Field for LevelBase {
    fn number(&self) -> Number {
        Field::number(&**self)
    }

    fn take(&mut self, number: Number) -> bool {
        let mut bytes = **self;
        let taken = bytes.take(number);
        *self = bytes.into();
        taken
    }
}

impl Field for f64 {
    fn number(&self) -> Number {
        Number::Real(*self)
    }

    fn take(&mut self, number: Number) -> bool {
        *self = number.real();
        true
    }
}

/// Tiers that leave out part of the writes are refused.
impl Field for ReadTier {
    fn number(&self) -> Number {
        Number::Integer(*self as i128)
    }

    fn take(&mut self, number: Number) -> bool {
        *self = match number.integer() {
            1 => ReadTier::BlockCache,
            _ => ReadTier::ReadAll,
        };
        matches!(number.integer(), 0 | 1)
    }
}

/// Enums numbered as in RocksDB. Unknown and read-only values are refused.
macro_rules! named {
    ($($type:ty),+) => {$(
        impl Field for $type {
            fn number(&self) -> Number {
                Number::Integer(<$type>::number(*self).into())
            }

            fn take(&mut self, number: Number) -> bool {
                let known = u8::try_from(number.integer()).ok().and_then(<$type>::from_number);
                let usable = known.filter(|choice| <$type>::by_name(choice.name()).is_ok());
                usable.is_some_and(|choice| {
                    *self = choice;
                    true
                })
            }
        }
    )+};
}

named!(
    ChecksumKind,
    CompactionPri,
    CompactionStopStyle,
    CompactionStyle,
    CompressionKind,
    DataBlockIndexType,
    IndexType,
    InfoLogLevel,
    WalRecoveryMode
);
