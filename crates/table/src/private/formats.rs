//! The kinds of tables that are known without their readers.

use super::Format;

pub(crate) const FAST: Format = Format {
    name: "a fast table",
    magic: u64::from_le_bytes(*b"SPILWFST"),
    version: 1,
    footer_bytes: 88,
    // The first checked lookup in an extent reads all of it.
    extent_bytes: 32 << 10,
};

pub(crate) const ZIP: Format = Format {
    name: "a zip table",
    magic: u64::from_le_bytes(*b"SPILWZIP"),
    version: 1,
    footer_bytes: 112,
    extent_bytes: 32 << 10,
};
