//! The shared part of a table's file: codes of values, codes of keys, then the dictionary.

use base::options::{CompressionKind, CompressionOptions};
use base::{Error, Result};

use super::footer::Footer;
use super::keys::{self, KeyDecoder};
use super::value::{self, DICTIONARY_BYTES_MAX, Trained, ValueDecoder};
use crate::compress::Compressor;
use crate::decompress::decompress;

/// High: the part is small and written once per table.
const ZSTD_LEVEL: i32 = 19;

const CODE_LENGTHS: usize = value::CODE_LENGTHS + keys::CODE_LENGTHS;

/// A stored part of a table, and the number of its compression kind.
pub(super) struct Stored {
    pub(super) bytes: Vec<u8>,
    pub(super) compression: u8,
}

/// # Errors
/// Errors of ZSTD.
pub(super) fn store(part: &[u8]) -> Result<Stored> {
    let options = CompressionOptions { level: ZSTD_LEVEL, ..CompressionOptions::default() };
    let mut compressor = Compressor::new(CompressionKind::Zstd, &options)?;
    let (bytes, kind) = compressor.compress(part)?;
    Ok(Stored { bytes: bytes.to_vec(), compression: kind.number() })
}

/// # Errors
/// `Corruption`.
pub(super) fn load(stored: &[u8], compression: u8) -> Result<Vec<u8>> {
    let known = [CompressionKind::None, CompressionKind::Zstd].map(|kind| kind.number());
    if !known.contains(&compression) {
        return Err(Error::corruption(format!("a part of a zip table with compression {compression}")));
    }
    Ok(decompress(compression, stored, None)?.unwrap_or_else(|| stored.to_vec()))
}

pub(super) fn encode(values: &Trained, key_codes: &[u8]) -> Vec<u8> {
    [&values.code_lengths, key_codes, &values.dictionary].concat()
}

/// # Errors
/// `Corruption`.
pub(super) fn decode(bytes: &[u8], footer: &Footer) -> Result<(ValueDecoder, KeyDecoder)> {
    let malformed = || Error::corruption("codes and dictionary are malformed");
    let (codes, dictionary) = bytes.split_at_checked(CODE_LENGTHS).ok_or_else(malformed)?;
    let (values, keys) = codes.split_at_checked(value::CODE_LENGTHS).ok_or_else(malformed)?;
    if dictionary.len() > DICTIONARY_BYTES_MAX {
        return Err(malformed());
    }
    let values = ValueDecoder::new(dictionary.to_vec(), values, footer.value_bytes_max as usize)?;
    Ok((values, KeyDecoder::new(footer.keys, keys)?))
}
