//! The last 112 bytes of a zip table: sizes of the parts, and bounds common to all entries.
//! Format: docs/format/zip.md

use base::SeqNo;

use super::builder::KEY_BYTES_MAX;
use super::group::GROUP_ENTRIES;
use super::keys::KeyBounds;
use crate::private::{self, FILTER, Field, Format, MetaSizes, Section, TOMBSTONES};

/// Sections of zip tables only.
pub(super) const INDEX: &str = "index";
pub(super) const SHARED: &str = "codes and dictionary";

/// Entries of a group, at most.
const GROUP_ENTRIES_MAX: u64 = 1 << 10;

/// Bytes of a group's decoded keys: the most a writer makes. Readers hold all of them, and zero-bit codes would let a
/// small file claim any amount (B2).
const GROUP_KEY_BYTES_MAX: u64 = GROUP_ENTRIES * KEY_BYTES_MAX as u64;

/// Sizes of the parts, and bounds over all entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) groups_bytes: u64,
    pub(super) index_bytes: u64,
    /// Of codes and dictionary.
    pub(super) shared_bytes: u64,
    pub(super) meta: MetaSizes,
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
    pub(super) fn groups(&self) -> u64 {
        self.entries.div_ceil(self.group_entries.max(1))
    }

    /// Entries of a group.
    #[inline]
    pub(super) fn entries_of(&self, group: usize) -> u64 {
        self.entries.saturating_sub(group as u64 * self.group_entries).min(self.group_entries)
    }
}

impl private::Footer for Footer {
    const FORMAT: Format = private::ZIP;

    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field::U64(&mut self.groups_bytes),
            Field::U64(&mut self.index_bytes),
            Field::U64(&mut self.shared_bytes),
            Field::U64(&mut self.meta.filter_bytes),
            Field::U64(&mut self.meta.tombstones_bytes),
            Field::U64(&mut self.meta.properties_bytes),
            Field::U64(&mut self.entries),
            Field::U64(&mut self.group_entries),
            Field::U64(&mut self.keys.smallest_seq.0),
            Field::U32(&mut self.keys.bytes_min),
            Field::U32(&mut self.keys.bytes_max),
            Field::U32(&mut self.value_bytes_max),
            Field::U8(&mut self.index_compression),
            Field::U8(&mut self.shared_compression),
            Field::Zeros(2),
        ]
    }

    fn sections(&self) -> Vec<Section> {
        vec![
            Section { name: "groups", bytes: self.groups_bytes },
            Section { name: INDEX, bytes: self.index_bytes },
            Section { name: SHARED, bytes: self.shared_bytes },
            Section { name: FILTER, bytes: self.meta.filter_bytes },
            Section { name: TOMBSTONES, bytes: self.meta.tombstones_bytes },
        ]
    }

    fn properties_bytes(&self) -> u64 {
        self.meta.properties_bytes
    }

    fn is_possible(&self) -> bool {
        (1..=GROUP_ENTRIES_MAX).contains(&self.group_entries)
            && self.keys.bytes_min <= self.keys.bytes_max
            && self.keys.bytes_max as usize <= KEY_BYTES_MAX
            && self.group_entries * u64::from(self.keys.bytes_max) <= GROUP_KEY_BYTES_MAX
            && self.keys.smallest_seq <= SeqNo::MAX
    }
}

#[cfg(test)]
mod tests {
    use base::{ErrorKind, Result};

    use super::*;
    use crate::private::Footer as _;

    fn decoded(footer: Footer) -> Result<Footer> {
        let mut bytes = footer.encode_covered();
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&private::ZIP.version.to_le_bytes());
        bytes.extend_from_slice(&private::ZIP.magic.to_le_bytes());
        assert_eq!(bytes.len(), private::ZIP.footer_bytes);
        Ok(Footer::decode(&bytes, footer.file_bytes())?.0)
    }

    #[test]
    fn keys_are_no_longer_than_writers_make_them() {
        let footer = |group_entries, bytes_max| {
            let keys = KeyBounds { bytes_min: 3, bytes_max, smallest_seq: SeqNo(5) };
            Footer { groups_bytes: 100 << 10, group_entries, entries: 1001, keys, ..Footer::default() }
        };
        for (group_entries, bytes_max) in [(16, 16 << 20), (1, 16 << 20), (1024, 256 << 10)] {
            let footer = footer(group_entries, bytes_max);
            assert_eq!(decoded(footer).expect("what a writer can make"), footer);
        }
        for (group_entries, bytes_max) in [(16, u32::MAX), (1, (16 << 20) + 1), (17, 16 << 20), (1024, 1 << 20)] {
            let error = decoded(footer(group_entries, bytes_max)).expect_err("more than a writer makes");
            assert_eq!(error.kind(), ErrorKind::Corruption);
        }
        let footer = footer(16, 9);
        let entries = [0, 62, 63].map(|group| footer.entries_of(group));
        assert_eq!((footer.groups(), entries), (63, [16, 9, 0]));
    }
}
