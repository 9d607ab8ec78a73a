//! Values, each compressed by itself: literal bytes, and copies out of what precedes in the value or out of a
//! dictionary that the whole table shares. Codes are the table's too, so that a value has no header: the shortest that
//! is worth it has a byte. Format: docs/format/zip.md, "Values".

mod decode;
mod encode;
mod matches;
mod parse;
mod train;

pub use self::decode::ValueDecoder;
pub use self::encode::ValueEncoder;
pub use self::train::{Trained, dictionary_bytes_for, train};

use super::classes::CLASSES;

/// A copy's bytes, at least.
const COPY_MIN: usize = 3;

/// What a token is: a literal byte, or the class of a copy's length less [`COPY_MIN`].
const LITERALS: usize = 256;
const TOKENS: usize = LITERALS + CLASSES;

/// Where a copy begins: near where the last copy out of the dictionary ended, so many bytes back in the value, or in a
/// region of the dictionary, with plain bits for the place in it.
const NEAR: usize = 128;
/// What is added to the distance from that end.
const NEAR_BIAS: u32 = NEAR as u32 / 2;
const FIRST_REGION: usize = NEAR + CLASSES;
const REGIONS: usize = 512;
const SOURCES: usize = FIRST_REGION + REGIONS;

/// Bytes of the largest dictionary.
pub const DICTIONARY_BYTES_MAX: usize = 1 << 18;

/// Lengths of the codes of all alphabets, in their order: tokens behind a literal and at the start, tokens behind a
/// copy, sources.
pub const CODE_LENGTHS: usize = 2 * TOKENS + SOURCES;

/// Plain bits that tell a place in a region of a dictionary of so many bytes.
fn region_bits(dictionary_bytes: usize) -> u32 {
    let bits = usize::BITS - dictionary_bytes.saturating_sub(1).leading_zeros();
    bits.saturating_sub(REGIONS.trailing_zeros())
}

/// Which code the next token has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum After {
    #[default]
    Literal,
    Copy,
}

/// Where a copy's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// So many bytes before the copy; 1 at least.
    Back(u32),
    Dictionary(u32),
}

#[cfg(test)]
mod tests;
