//! The footer: numbers of the kind, then 24 bytes as in every kind. All numbers are checked before one is used.

use std::fmt::Debug;
use std::ops::Range;

use base::coding::{Reader, put_u32, put_u64};
use base::{Error, Result};

/// A larger version is damage: every kind of private table is at its first versions.
const VERSION_PLAUSIBLE_MAX: u32 = 15;

/// Checksum, version and magic, at the end of a footer. The tail's checksum covers all before.
pub(super) const END_BYTES: usize = 16;

/// Properties are some forty short lines.
pub(super) const PROPERTIES_BYTES_MAX: u64 = 1 << 20;

/// Far above any file, so sums of sizes do not overflow.
const FILE_BYTES_MAX: u64 = u64::MAX >> 8;

/// Constants of a kind of table.
pub(crate) struct Format {
    /// With its article, for messages.
    pub(crate) name: &'static str,
    /// The file's last eight bytes, where RocksDB expects its own magic number.
    pub(crate) magic: u64,
    pub(crate) version: u32,
    pub(crate) footer_bytes: usize,
    /// Bytes per checksum, a power of two.
    pub(crate) extent_bytes: usize,
}

/// A number of a footer.
pub(crate) enum Field<'a> {
    U64(&'a mut u64),
    U32(&'a mut u32),
    U8(&'a mut u8),
    /// Eight bytes that follow from other numbers.
    Follows(u64),
    Zeros(usize),
}

impl Field<'_> {
    fn put(self, out: &mut Vec<u8>) {
        match self {
            Field::U64(number) => put_u64(out, *number),
            Field::U32(number) => put_u32(out, *number),
            Field::U8(number) => out.push(*number),
            Field::Follows(number) => put_u64(out, number),
            Field::Zeros(bytes) => out.resize(out.len() + bytes, 0),
        }
    }

    fn read(self, reader: &mut Reader<'_>) -> Result<()> {
        match self {
            Field::U64(number) => *number = reader.u64("footer")?,
            Field::U32(number) => *number = reader.u32("footer")?,
            Field::U8(number) => *number = reader.u8("footer")?,
            Field::Follows(_) => drop(reader.u64("footer")?),
            Field::Zeros(bytes) => drop(reader.bytes(bytes, "footer")?),
        }
        Ok(())
    }
}

/// A part of the file under extent checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) bytes: u64,
}

/// The numbers of a kind of table.
pub(crate) trait Footer: Copy + Debug + Default + PartialEq {
    const FORMAT: Format;

    /// The kind's own numbers, as they lie in the file.
    fn fields(&mut self) -> Vec<Field<'_>>;

    /// Back to back from the file's start.
    fn sections(&self) -> Vec<Section>;

    fn properties_bytes(&self) -> u64;

    /// Whether a table can have the numbers other than sizes.
    fn is_possible(&self) -> bool;

    /// Start of the checksums.
    fn checksums_at(&self) -> u64 {
        self.covered_bytes()
    }

    /// Bytes of all sections.
    fn covered_bytes(&self) -> u64 {
        self.sections().iter().map(|section| section.bytes).sum()
    }

    fn properties_at(&self) -> u64 {
        self.checksums_at() + 4 * self.covered_bytes().div_ceil(Self::FORMAT.extent_bytes as u64)
    }

    fn footer_at(&self) -> u64 {
        self.properties_at() + self.properties_bytes()
    }

    fn file_bytes(&self) -> u64 {
        self.footer_at() + Self::FORMAT.footer_bytes as u64
    }

    /// Place of the section `name` in the file.
    fn section(&self, name: &str) -> Range<u64> {
        let sections = self.sections();
        let at: u64 = sections.iter().take_while(|section| section.name != name).map(|section| section.bytes).sum();
        let bytes = sections.iter().find(|section| section.name == name).map_or(0, |section| section.bytes);
        at..at + bytes
    }

    /// All but the last 16 bytes.
    fn encode_covered(mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::FORMAT.footer_bytes);
        self.fields().into_iter().for_each(|field| field.put(&mut out));
        put_u32(&mut out, Self::FORMAT.extent_bytes as u32);
        put_u32(&mut out, 0);
        out
    }

    /// The footer of a file of `file_bytes` from its bytes, and the checksum of the tail.
    ///
    /// # Errors
    /// `Corruption`: not a footer of this kind, or not one of such a file. `Unsupported`: a newer version.
    fn decode(bytes: &[u8], file_bytes: u64) -> Result<(Self, u32)> {
        let Format { name, magic, version, .. } = Self::FORMAT;
        let mut footer = Self::default();
        let mut reader = Reader::new(bytes);
        for field in footer.fields() {
            field.read(&mut reader)?;
        }
        let _extent_and_zeros = reader.u64("footer")?;
        let (crc, stored_version, stored_magic) = (reader.u32("footer")?, reader.u32("footer")?, reader.u64("footer")?);
        if stored_magic != magic {
            return Err(Error::corruption(format!("{stored_magic:#018x} is not the magic number of {name}")));
        }
        if stored_version == 0 || stored_version > VERSION_PLAUSIBLE_MAX {
            return Err(Error::corruption(format!("the footer is damaged: {name} of format {stored_version}")));
        }
        if stored_version != version {
            return Err(Error::unsupported(format!("{name} of format {stored_version}; {version} is known")));
        }
        // Bytes that follow from others are compared by encoding them again.
        if !footer.is_of_file(file_bytes) || !bytes.starts_with(&footer.encode_covered()) {
            return Err(Error::corruption(format!("a footer that no file of {file_bytes} bytes has: {footer:?}")));
        }
        Ok((footer, crc))
    }

    /// Whether the parts take all of `file_bytes`. Bounds each before the sum.
    fn is_of_file(&self, file_bytes: u64) -> bool {
        file_bytes <= FILE_BYTES_MAX
            && self.sections().iter().all(|section| section.bytes <= file_bytes)
            && self.checksums_at() <= file_bytes
            && self.properties_bytes() <= PROPERTIES_BYTES_MAX
            && self.file_bytes() == file_bytes
            && self.is_possible()
    }
}
