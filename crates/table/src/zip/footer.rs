//! The last 112 bytes of a zip table: sizes of the parts, and bounds common to all entries.
//! Format: docs/format/zip.md

use base::checksum::{crc32c, crc32c_append, mask};
use base::coding::{Reader, put_u32, put_u64};
use base::{Error, Result, SeqNo};

use super::builder::KEY_BYTES_MAX;
use super::group::GROUP_ENTRIES;
use super::keys::KeyBounds;
use crate::extents;

/// The last eight bytes, where RocksDB expects its own magic number: RocksDB rejects the file.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"SPILWZIP");
pub(super) const FORMAT_VERSION: u32 = 1;

pub(super) const FOOTER_BYTES: usize = 112;

/// Bytes per checksum.
pub(super) const EXTENT_BYTES: usize = 32 << 10;

/// Properties are some forty short lines.
const PROPERTIES_MAX_BYTES: u64 = 1 << 20;

/// Entries of a group, at most.
const GROUP_ENTRIES_MAX: u64 = 1 << 10;

/// Bytes of a group's decoded keys: the most a writer makes. Readers hold all of them, and zero-bit codes would let a
/// small file claim any amount (B2).
const GROUP_KEY_BYTES_MAX: u64 = GROUP_ENTRIES * KEY_BYTES_MAX as u64;

/// Footer bytes under the tail's checksum, which also covers extent checksums and properties.
const COVERED_BYTES: usize = 96;

/// Sizes of the parts, which lie back to back in this order, and bounds over all entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) groups_bytes: u64,
    pub(super) index_bytes: u64,
    /// Of codes and dictionary.
    pub(super) shared_bytes: u64,
    pub(super) filter_bytes: u64,
    pub(super) tombstones_bytes: u64,
    pub(super) properties_bytes: u64,
    /// Point entries.
    pub(super) entries: u64,
    pub(super) group_entries: u64,
    pub(super) keys: KeyBounds,
    /// Of the longest value.
    pub(super) value_bytes_max: u32,
    /// Compression kinds of index and shared part, as numbers.
    pub(super) index_compression: u8,
    pub(super) shared_compression: u8,
}

impl Footer {
    pub(super) fn index_at(&self) -> u64 {
        self.groups_bytes
    }

    pub(super) fn shared_at(&self) -> u64 {
        self.index_at() + self.index_bytes
    }

    pub(super) fn filter_at(&self) -> u64 {
        self.shared_at() + self.shared_bytes
    }

    pub(super) fn tombstones_at(&self) -> u64 {
        self.filter_at() + self.filter_bytes
    }

    /// End of the extents, start of their checksums: four bytes each.
    pub(super) fn checksums_at(&self) -> u64 {
        self.tombstones_at() + self.tombstones_bytes
    }

    pub(super) fn properties_at(&self) -> u64 {
        self.checksums_at() + 4 * self.checksums_at().div_ceil(EXTENT_BYTES as u64)
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.properties_at() + self.properties_bytes + FOOTER_BYTES as u64
    }

    pub(super) fn groups(&self) -> u64 {
        self.entries.div_ceil(self.group_entries.max(1))
    }

    /// Entries of a group.
    #[inline]
    pub(super) fn entries_of(&self, group: usize) -> u64 {
        self.entries.saturating_sub(group as u64 * self.group_entries).min(self.group_entries)
    }

    /// `tail`: checksums and properties.
    pub(super) fn encode(&self, tail: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        put_u64(&mut out, self.groups_bytes);
        put_u64(&mut out, self.index_bytes);
        put_u64(&mut out, self.shared_bytes);
        put_u64(&mut out, self.filter_bytes);
        put_u64(&mut out, self.tombstones_bytes);
        put_u64(&mut out, self.properties_bytes);
        put_u64(&mut out, self.entries);
        put_u64(&mut out, self.group_entries);
        put_u64(&mut out, self.keys.smallest_seq.0);
        put_u32(&mut out, self.keys.bytes_min);
        put_u32(&mut out, self.keys.bytes_max);
        put_u32(&mut out, self.value_bytes_max);
        out.extend_from_slice(&[self.index_compression, self.shared_compression, 0, 0]);
        put_u32(&mut out, EXTENT_BYTES as u32);
        put_u32(&mut out, 0);
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
        let mut footer = Footer {
            groups_bytes: number()?,
            index_bytes: number()?,
            shared_bytes: number()?,
            filter_bytes: number()?,
            tombstones_bytes: number()?,
            properties_bytes: number()?,
            entries: number()?,
            group_entries: number()?,
            keys: KeyBounds { smallest_seq: SeqNo(number()?), ..KeyBounds::default() },
            ..Footer::default()
        };
        (footer.keys.bytes_min, footer.keys.bytes_max) = (reader.u32("footer")?, reader.u32("footer")?);
        footer.value_bytes_max = reader.u32("footer")?;
        (footer.index_compression, footer.shared_compression) = (reader.u8("footer")?, reader.u8("footer")?);
        let zeros = reader.bytes(2, "footer")? == [0, 0];
        let (extent_bytes, reserved) = (reader.u32("footer")?, reader.u32("footer")?);
        let (crc, version, magic) = (reader.u32("footer")?, reader.u32("footer")?, reader.u64("footer")?);
        if magic != MAGIC {
            return Err(Error::corruption(format!("{magic:#018x} is not the magic number of a zip table")));
        }
        if version != FORMAT_VERSION {
            return Err(Error::unsupported(format!("a zip table of format {version}; {FORMAT_VERSION} is known")));
        }
        if !footer.fits(file_bytes) || extent_bytes as usize != EXTENT_BYTES || reserved != 0 || !zeros {
            return Err(Error::corruption(format!("a footer that no file of {file_bytes} bytes has: {footer:?}")));
        }
        Ok((footer, crc))
    }

    fn fits(&self, file_bytes: u64) -> bool {
        let parts = [self.groups_bytes, self.index_bytes, self.shared_bytes, self.filter_bytes, self.tombstones_bytes];
        parts.iter().all(|part| *part <= file_bytes)
            && file_bytes <= u64::MAX >> 4
            && self.properties_bytes <= PROPERTIES_MAX_BYTES
            && (1..=GROUP_ENTRIES_MAX).contains(&self.group_entries)
            && self.keys.bytes_min <= self.keys.bytes_max
            && self.keys.bytes_max as usize <= KEY_BYTES_MAX
            && self.group_entries * u64::from(self.keys.bytes_max) <= GROUP_KEY_BYTES_MAX
            && self.keys.smallest_seq <= SeqNo::MAX
            && self.file_bytes() == file_bytes
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
    let bytes = bytes as u64;
    if bytes > PROPERTIES_MAX_BYTES {
        return Err(Error::invalid_argument(format!("properties of {bytes} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use base::ErrorKind;

    use super::*;

    fn footer() -> Footer {
        Footer {
            groups_bytes: 100 << 10,
            index_bytes: 300,
            shared_bytes: 2000,
            filter_bytes: 69,
            properties_bytes: 700,
            entries: 1001,
            group_entries: 16,
            keys: KeyBounds { bytes_min: 3, bytes_max: 9, smallest_seq: SeqNo(5) },
            value_bytes_max: 100,
            index_compression: 7,
            ..Footer::default()
        }
    }

    fn decode(bytes: &[u8], file_bytes: u64) -> Result<(Footer, u32)> {
        Footer::decode(bytes.first_chunk().expect("112 bytes"), file_bytes)
    }

    #[test]
    fn a_footer_round_trips_and_no_other_size_will_do() {
        let footer = footer();
        let tail = [7; 716];
        let bytes = footer.encode(&tail);
        let (decoded, crc) = decode(&bytes, footer.file_bytes()).expect("whole");
        assert_eq!((decoded, bytes.len()), (footer, FOOTER_BYTES));
        Footer::check_tail(&[&tail[..], &bytes].concat(), crc).expect("whole");
        for other in [0, footer.file_bytes() - 1, footer.file_bytes() + 1, u64::MAX] {
            assert_eq!(decode(&bytes, other).expect_err("another size").kind(), ErrorKind::Corruption);
        }
        assert_eq!(
            (footer.groups(), footer.entries_of(0), footer.entries_of(62), footer.entries_of(63)),
            (63, 16, 9, 0)
        );
    }

    #[test]
    fn keys_are_no_longer_than_writers_make_them() {
        let tail = [7; 716];
        let decoded = |group_entries, bytes_max| {
            let keys = KeyBounds { bytes_max, ..footer().keys };
            let footer = Footer { group_entries, entries: 2, keys, ..footer() };
            let bytes = footer.encode(&tail);
            let (_, crc) = decode(&bytes, footer.file_bytes())?;
            Footer::check_tail(&[&tail[..], &bytes].concat(), crc)
        };
        for (group_entries, bytes_max) in [(16, 16 << 20), (1, 16 << 20), (1024, 256 << 10)] {
            decoded(group_entries, bytes_max).expect("what a writer can make");
        }
        for (group_entries, bytes_max) in [(16, u32::MAX), (1, (16 << 20) + 1), (17, 16 << 20), (1024, 1 << 20)] {
            let error = decoded(group_entries, bytes_max).expect_err("more than a writer makes");
            assert_eq!(error.kind(), ErrorKind::Corruption);
        }
    }

    #[test]
    fn every_number_is_bounded() {
        let footer = footer();
        let places = [(0, 1 << 40), (8, u64::MAX), (16, 1), (24, 1 << 62), (32, 9), (40, 1 << 40), (56, 0), (56, 5000)];
        for (at, value) in places.into_iter().chain([(64, u64::MAX), (72, 20), (86, 1), (88, 7), (92, 1)]) {
            let mut bytes = footer.encode(&[]);
            bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
            let error = decode(&bytes, footer.file_bytes()).expect_err("no such file");
            assert!([ErrorKind::Corruption, ErrorKind::Unsupported].contains(&error.kind()), "{at}: {error}");
        }
    }
}
