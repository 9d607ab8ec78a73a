//! The last 64 bytes of a converted table: places and sizes of its parts. Format: docs/format/converted.md

use base::checksum::{crc32c, crc32c_append, mask};
use base::coding::{Reader, put_u32, put_u64};
use base::{Error, Result};

use crate::extents;

/// The last eight bytes, where RocksDB expects its own magic number: RocksDB rejects the file.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"SPILWIMG");
pub(crate) const FORMAT_VERSION: u32 = 1;

pub(super) const FOOTER_BYTES: usize = 64;

/// Bytes of the image per checksum.
pub(super) const EXTENT_BYTES: usize = 256 << 10;

/// Properties are some forty short lines.
pub(super) const PROPERTIES_MAX_BYTES: u64 = 1 << 20;

/// Footer bytes under the tail's checksum, which also covers extent checksums and properties.
const COVERED_BYTES: usize = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) image_bytes: u64,
    /// Start of the checksums, one per extent of the image.
    pub(super) checksums_at: u64,
    pub(super) properties_at: u64,
    pub(super) properties_bytes: u64,
    pub(super) file_bytes: u64,
}

impl Footer {
    /// The footer of a table with its tail at `checksums_at`.
    pub(super) fn new(image_bytes: u64, checksums_at: u64, properties_bytes: u64) -> Footer {
        let properties_at = checksums_at + 4 * extents(image_bytes);
        let file_bytes = properties_at + properties_bytes + FOOTER_BYTES as u64;
        Footer { image_bytes, checksums_at, properties_at, properties_bytes, file_bytes }
    }

    /// `tail`: checksums and properties.
    pub(super) fn encode(&self, tail: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        put_u64(&mut out, self.image_bytes);
        put_u64(&mut out, self.checksums_at);
        put_u64(&mut out, self.properties_at);
        put_u64(&mut out, self.properties_bytes);
        put_u64(&mut out, self.file_bytes);
        put_u32(&mut out, EXTENT_BYTES as u32);
        put_u32(&mut out, 0);
        let crc = mask(crc32c_append(crc32c(tail), &out));
        put_u32(&mut out, crc);
        put_u32(&mut out, FORMAT_VERSION);
        put_u64(&mut out, MAGIC);
        out
    }

    /// The footer of a file of `file_bytes`, and the checksum of the tail. The image lies before the tail, and the tail
    /// ends exactly at `file_bytes` (B2).
    ///
    /// # Errors
    /// `Corruption`, `Unsupported`.
    pub(super) fn decode(bytes: &[u8; FOOTER_BYTES], file_bytes: u64) -> Result<(Footer, u32)> {
        let mut reader = Reader::new(bytes);
        let mut number = || reader.u64("footer");
        let (image_bytes, checksums_at, properties_at) = (number()?, number()?, number()?);
        let (properties_bytes, stored_file_bytes) = (number()?, number()?);
        let (extent_bytes, reserved) = (reader.u32("footer")?, reader.u32("footer")?);
        let (crc, version, magic) = (reader.u32("footer")?, reader.u32("footer")?, reader.u64("footer")?);
        if magic != MAGIC {
            return Err(Error::corruption(format!("{magic:#018x} is not the magic number of a converted table")));
        }
        if version != FORMAT_VERSION {
            let message = format!("a converted table of format {version}; {FORMAT_VERSION} is known");
            return Err(Error::unsupported(message));
        }
        let footer = Footer { image_bytes, checksums_at, properties_at, properties_bytes, file_bytes };
        let fits = image_bytes <= checksums_at
            && checksums_at <= file_bytes
            && properties_bytes <= PROPERTIES_MAX_BYTES
            && footer == Footer::new(image_bytes, checksums_at, properties_bytes);
        if !fits || stored_file_bytes != file_bytes || extent_bytes as usize != EXTENT_BYTES || reserved != 0 {
            return Err(Error::corruption(format!("a footer that no file of {file_bytes} bytes has: {footer:?}")));
        }
        Ok((footer, crc))
    }

    /// # Errors
    /// `Corruption`: the checksum of the tail, footer included, is not `crc`.
    pub(super) fn check_tail(tail_with_footer: &[u8], crc: u32) -> Result<()> {
        let covered = tail_with_footer.len().saturating_sub(FOOTER_BYTES - COVERED_BYTES);
        extents::check_tail(tail_with_footer.get(..covered).unwrap_or_default(), crc)
    }
}

/// Number of extents of an image.
pub(super) fn extents(image_bytes: u64) -> u64 {
    image_bytes.div_ceil(EXTENT_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use base::ErrorKind;

    use super::*;

    fn decode(bytes: &[u8], file_bytes: u64) -> Result<(Footer, u32)> {
        Footer::decode(bytes.first_chunk().expect("64 bytes"), file_bytes)
    }

    #[test]
    fn a_footer_round_trips_and_no_other_size_will_do() {
        let footer = Footer::new(300 << 10, 304 << 10, 700);
        let tail = [7; 708];
        let bytes = footer.encode(&tail);
        let (decoded, crc) = decode(&bytes, footer.file_bytes).expect("whole");
        assert_eq!((decoded, bytes.len()), (footer, FOOTER_BYTES));
        Footer::check_tail(&[&tail[..], &bytes].concat(), crc).expect("whole");
        for other in [0, footer.file_bytes - 1, footer.file_bytes + 1, u64::MAX] {
            assert_eq!(decode(&bytes, other).expect_err("another size").kind(), ErrorKind::Corruption);
        }
    }

    #[test]
    fn every_number_is_bounded() {
        let footer = Footer::new(300 << 10, 304 << 10, 700);
        for (at, value) in [(0, 1 << 40), (8, 0), (8, u64::MAX), (16, 1), (24, 1 << 40), (24, 699), (32, 1), (40, 4096)]
        {
            let mut bytes = footer.encode(&[]);
            bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
            let error = decode(&bytes, footer.file_bytes).expect_err("no such file");
            assert_eq!(error.kind(), ErrorKind::Corruption, "{at}: {error}");
        }
    }
}
