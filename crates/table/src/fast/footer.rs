//! The last 88 bytes of a fast table: sizes of the parts. Format: docs/format/fast.md, "Footer".

use base::checksum::{crc32c, crc32c_append, mask};
use base::coding::{Reader, put_u32, put_u64};
use base::{Error, Result};

use super::node::LEVELS_MAX;
use crate::extents;

/// The last eight bytes, where RocksDB expects its own magic number: RocksDB rejects the file.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"SPILWFST");
pub(super) const FORMAT_VERSION: u32 = 1;

pub(super) const FOOTER_BYTES: usize = 88;

/// Bytes per checksum. The first checked lookup in an extent reads all of it.
pub(super) const EXTENT_BYTES: usize = 32 << 10;

/// Properties are some forty short lines.
const PROPERTIES_BYTES_MAX: u64 = 1 << 20;

/// Footer bytes under the tail's checksum, which also covers extent checksums and properties.
const COVERED_BYTES: usize = 72;

/// The parts lie back to back in this order; the checksums are between tombstones and properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Footer {
    /// The groups.
    pub(super) data_bytes: u64,
    pub(super) nodes_bytes: u64,
    pub(super) filter_bytes: u64,
    pub(super) tombstones_bytes: u64,
    pub(super) properties_bytes: u64,
    /// Offset of the topmost node among the nodes; 0 without nodes.
    pub(super) root: u64,
    /// Levels of nodes.
    pub(super) levels: u32,
    /// The number of the table's `Heads`.
    pub(super) heads: u32,
}

impl Footer {
    pub(super) fn nodes_at(&self) -> u64 {
        self.data_bytes
    }

    pub(super) fn filter_at(&self) -> u64 {
        self.nodes_at() + self.nodes_bytes
    }

    pub(super) fn tombstones_at(&self) -> u64 {
        self.filter_at() + self.filter_bytes
    }

    /// End of the extents, start of their checksums.
    pub(super) fn checksums_at(&self) -> u64 {
        self.tombstones_at() + self.tombstones_bytes
    }

    pub(super) fn properties_at(&self) -> u64 {
        self.checksums_at() + 4 * self.checksums_at().div_ceil(EXTENT_BYTES as u64)
    }

    fn file_bytes(&self) -> u64 {
        self.properties_at() + self.properties_bytes + FOOTER_BYTES as u64
    }

    /// `tail`: checksums and properties.
    pub(super) fn encode(&self, tail: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        let parts = [self.data_bytes, self.nodes_bytes, self.filter_bytes, self.tombstones_bytes];
        parts.into_iter().for_each(|bytes| put_u64(&mut out, bytes));
        put_u64(&mut out, self.properties_bytes);
        put_u64(&mut out, self.file_bytes());
        put_u64(&mut out, self.root);
        put_u32(&mut out, self.levels);
        put_u32(&mut out, self.heads);
        put_u32(&mut out, EXTENT_BYTES as u32);
        out.resize(COVERED_BYTES, 0);
        let crc = mask(crc32c_append(crc32c(tail), &out));
        put_u32(&mut out, crc);
        put_u32(&mut out, FORMAT_VERSION);
        put_u64(&mut out, MAGIC);
        out
    }

    /// The footer of a file of `file_bytes`, and the checksum of the tail. The parts add up to exactly `file_bytes`
    /// (B2).
    ///
    /// # Errors
    /// `Corruption`, `Unsupported`.
    pub(super) fn decode(bytes: &[u8; FOOTER_BYTES], file_bytes: u64) -> Result<(Footer, u32)> {
        let mut reader = Reader::new(bytes);
        let mut number = || reader.u64("footer");
        let (data_bytes, nodes_bytes, filter_bytes) = (number()?, number()?, number()?);
        let (tombstones_bytes, properties_bytes) = (number()?, number()?);
        let (stored_file_bytes, root) = (number()?, number()?);
        let mut number = || reader.u32("footer");
        let (levels, heads, extent_bytes) = (number()?, number()?, number()?);
        let (reserved, crc, version) = (number()?, number()?, number()?);
        let magic = reader.u64("footer")?;
        if magic != MAGIC {
            return Err(Error::corruption(format!("{magic:#018x} is not the magic number of a fast table")));
        }
        if version != FORMAT_VERSION {
            let message = format!("a fast table of format {version}; {FORMAT_VERSION} is known");
            return Err(Error::unsupported(message));
        }
        let footer =
            Footer { data_bytes, nodes_bytes, filter_bytes, tombstones_bytes, properties_bytes, root, levels, heads };
        let parts = [data_bytes, nodes_bytes, filter_bytes, tombstones_bytes, properties_bytes];
        let fits = parts.iter().all(|part| *part <= file_bytes.min(1 << 60))
            && properties_bytes <= PROPERTIES_BYTES_MAX
            && footer.file_bytes() == file_bytes
            && stored_file_bytes == file_bytes
            && footer.has_root();
        if !fits || extent_bytes as usize != EXTENT_BYTES || reserved != 0 {
            return Err(Error::corruption(format!("a footer that no file of {file_bytes} bytes has: {footer:?}")));
        }
        Ok((footer, crc))
    }

    fn has_root(&self) -> bool {
        match self.levels {
            0 => self.nodes_bytes == 0 && self.root == 0,
            _ => self.levels <= LEVELS_MAX && self.root < self.nodes_bytes,
        }
    }

    /// # Errors
    /// `Corruption`: the checksum of the tail, footer included, is not `crc`.
    pub(super) fn check_tail(tail_with_footer: &[u8], crc: u32) -> Result<()> {
        let covered = tail_with_footer.len().saturating_sub(FOOTER_BYTES - COVERED_BYTES);
        extents::check_tail(tail_with_footer.get(..covered).unwrap_or_default(), crc)
    }
}

/// # Errors
/// `InvalidArgument`: above the readers' limit.
pub(super) fn check_properties_bytes(bytes: usize) -> Result<u64> {
    match bytes as u64 {
        bytes @ 0..=PROPERTIES_BYTES_MAX => Ok(bytes),
        bytes => Err(Error::invalid_argument(format!("properties of {bytes} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use base::ErrorKind;

    use super::*;

    fn footer() -> Footer {
        Footer {
            data_bytes: 300 << 10,
            nodes_bytes: 900,
            filter_bytes: 69,
            tombstones_bytes: 0,
            properties_bytes: 700,
            root: 400,
            levels: 2,
            heads: 1,
        }
    }

    fn decode(bytes: &[u8], file_bytes: u64) -> Result<(Footer, u32)> {
        Footer::decode(bytes.first_chunk().expect("88 bytes"), file_bytes)
    }

    #[test]
    fn a_footer_round_trips_and_no_other_size_will_do() {
        let (footer, tail) = (footer(), [7; 740]);
        let bytes = footer.encode(&tail);
        let (decoded, crc) = decode(&bytes, footer.file_bytes()).expect("whole");
        assert_eq!((decoded, bytes.len()), (footer, FOOTER_BYTES));
        Footer::check_tail(&[&tail[..], &bytes].concat(), crc).expect("whole");
        for other in [0, footer.file_bytes() - 1, footer.file_bytes() + 1, u64::MAX] {
            assert_eq!(decode(&bytes, other).expect_err("another size").kind(), ErrorKind::Corruption);
        }
    }

    #[test]
    fn every_number_is_bounded() {
        for at in (0..COVERED_BYTES).step_by(8).filter(|at| *at != 56) {
            for value in [u64::MAX, 1 << 60, 1 << 40, 3] {
                let mut bytes = footer().encode(&[]);
                bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
                let decoded = decode(&bytes, footer().file_bytes());
                // Any place among the nodes can be the root's, as far as the footer knows.
                assert_eq!(decoded.is_ok(), at == 48 && value == 3, "{at}: {value}");
            }
        }
        for levels in [0, LEVELS_MAX + 1] {
            let bytes = Footer { levels, ..footer() }.encode(&[]);
            assert_eq!(decode(&bytes, footer().file_bytes()).expect_err("no such").kind(), ErrorKind::Corruption);
        }
    }
}
