//! Spillway's vocabulary, without I/O: keys and sequence numbers, comparators, cursors, extension traits, byte coding
//! and checksums, errors, the options table and metrics.
//!
//! Every other crate may import this one; it imports none of them.
//!
//! An internal part of the package `spillway-db`, published because that needs it. It may change in any release.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod bytes;
pub mod checksum;
pub mod coding;
pub mod comparator;
pub mod cursor;
pub mod error;
pub mod extend;
pub mod features;
pub mod key;
pub mod limits;
pub mod merge;
pub mod metrics;
pub mod name;
pub mod note;
pub mod options;
pub mod pinned;
pub mod shell;
pub mod tombstone;
pub mod value_source;

pub use comparator::{Comparator, InternalOrder, UserOrder};
pub use cursor::Cursor;
pub use error::{Error, ErrorKind, Result};
pub use key::{FamilyId, FileNumber, LookupKey, ParsedKey, SeqNo, ValueKind};
pub use pinned::Pinned;
