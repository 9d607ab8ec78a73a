//! Values, each compressed alone: literals, and copies from earlier in the value or from the table's dictionary.
//! Codes belong to the table, so a value needs no header: the shortest record has one byte.
//! Format: docs/format/zip.md, "Values".

mod decode;
mod encode;
mod matches;
mod parse;
mod train;

pub use self::decode::ValueDecoder;
pub use self::encode::ValueEncoder;
pub use self::train::{Trained, dictionary_bytes_for, train};

use super::classes::CLASSES;

/// Least bytes of a copy.
const COPY_MIN: usize = 3;

/// Tokens: a literal byte, or the class of a copy's length less [`COPY_MIN`].
const LITERALS: usize = 256;
const TOKENS: usize = LITERALS + CLASSES;

/// Sources of a copy: near the end of the last dictionary copy; a distance back in the value; or a region of the
/// dictionary, with plain bits for the place in the region.
const NEAR: usize = 128;
/// Bias of the signed distance from the end of the last dictionary copy.
const NEAR_BIAS: u32 = NEAR as u32 / 2;
const FIRST_REGION: usize = NEAR + CLASSES;
const REGIONS: usize = 512;
const SOURCES: usize = FIRST_REGION + REGIONS;

/// Bytes of the largest dictionary.
pub const DICTIONARY_BYTES_MAX: usize = 1 << 18;

/// Code lengths of all alphabets, in order: tokens at the start and after a literal, tokens after a copy, sources.
pub const CODE_LENGTHS: usize = 2 * TOKENS + SOURCES;

/// Plain bits of a place in a region, for a dictionary of `dictionary_bytes`.
fn region_bits(dictionary_bytes: usize) -> u32 {
    let bits = usize::BITS - dictionary_bytes.saturating_sub(1).leading_zeros();
    bits.saturating_sub(REGIONS.trailing_zeros())
}

/// The previous token's kind: selects the next token's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum After {
    #[default]
    Literal,
    Copy,
}

/// The source of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Distance in bytes before the copy; at least 1.
    Back(u32),
    Dictionary(u32),
}

#[cfg(test)]
mod tests;
