//! What converted, fast and zip tables have in common. A file has sections, then their checksums, properties, and a
//! footer of sizes: the *tail*. A kind describes itself by its [`Footer`]. RocksDB refuses these files by their magic.
//!
//! Opening checks that the sizes take exactly the whole file (B2), then the tail's checksum. Sections are checked
//! extent by extent (B1). Formats: docs/format/converted.md, fast.md, zip.md

mod extents;
mod footer;
mod formats;
mod mapped;
mod output;
mod tail;

use self::extents::CheckedExtents;
pub(crate) use self::extents::ExtentSums;
pub(crate) use self::footer::{Field, Footer, Format, Section};
pub(crate) use self::formats::{FAST, ZIP};
pub(crate) use self::mapped::{MappedTable, check_size};
pub(crate) use self::output::{MetaSizes, Output};
pub(crate) use self::tail::{Tail, encode_tail, part_of};

/// Sections of mapped tables.
pub(crate) const FILTER: &str = "filter";
pub(crate) const TOMBSTONES: &str = "range tombstones";
