//! The last 64 bytes of a converted table. Format: docs/format/converted.md

use crate::private::{self, Field, Format, Section};

pub(crate) const FORMAT: Format = Format {
    name: "a converted memtable",
    magic: u64::from_le_bytes(*b"SPILWIMG"),
    version: 1,
    footer_bytes: 64,
    extent_bytes: 256 << 10,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) image_bytes: u64,
    /// Start of the tail, after zeros up to a page boundary.
    pub(super) checksums_at: u64,
    pub(super) properties_bytes: u64,
}

impl private::Footer for Footer {
    const FORMAT: Format = FORMAT;

    fn fields(&mut self) -> Vec<Field<'_>> {
        let (properties_at, file_bytes) = (self.properties_at(), self.file_bytes());
        vec![
            Field::U64(&mut self.image_bytes),
            Field::U64(&mut self.checksums_at),
            Field::Follows(properties_at),
            Field::U64(&mut self.properties_bytes),
            Field::Follows(file_bytes),
        ]
    }

    fn sections(&self) -> Vec<Section> {
        vec![Section { name: "image", bytes: self.image_bytes }]
    }

    fn properties_bytes(&self) -> u64 {
        self.properties_bytes
    }

    fn is_possible(&self) -> bool {
        self.image_bytes <= self.checksums_at
    }

    fn checksums_at(&self) -> u64 {
        self.checksums_at
    }
}
