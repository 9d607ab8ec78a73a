//! Images: the bytes of a memtable's arena, as its file holds them at any instant. Checking and reading them.
//!
//! File bytes are untrusted (B1). [`Image::open`] follows every reference once, with bounds checks, before any is
//! trusted: blocks lie inside the allocated part and do not overlap, so there is no cycle; kinds and lengths are valid;
//! keys agree with the path to them and are in order. A checked image can be walked without a further error. Time and
//! memory are proportional to the image, whatever its bytes are (B2): each byte is read a bounded number of times, and
//! marks take a thirty-second of its size.
//!
//! Damage detectable only by checksums is not detected: a changed byte inside a value, or inside a key still in order.
//! Format: docs/format/image.md. The code is safe and shares only the layout with the writers.

mod check;
mod header;
mod identity;
mod lazy;
mod marks;
mod read;
mod reopen;
mod sealed;
mod skiplist;
#[cfg(test)]
pub(crate) mod tests;
mod tombstones;
mod trie;
mod trie_check;
mod view;
mod walk;
mod watermark;

use std::fmt;

use base::{Result, SeqNo, UserOrder};
use vfs::FileIdentity;

use crate::arena::Arena;
use crate::stripe::Counts;

pub use self::header::{HEADER_BYTES, Header, Representation, Seal};
pub use self::identity::ImageIdentity;
pub use self::lazy::LazyImage;
pub use self::read::{Entries, Image, RangeDeletions};
pub use self::reopen::{Reopened, reopen};
pub use self::sealed::{SealedImage, Totals};
pub use self::watermark::Watermark;
pub(crate) use self::watermark::{begin_after, mark, mark_foreign};

/// Expected properties of an image.
#[derive(Clone, Default)]
pub struct Expected {
    /// `None`: any.
    pub representation: Option<Representation>,
    pub order: UserOrder,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub header: Header,
    /// Bytes checked: the allocated part if the image is sealed, else the whole file.
    pub image_bytes: u64,
    /// Bytes of the header, of nodes and of entries, rounded as allocated. The rest is slack: replaced nodes and unused
    /// reservations.
    pub used_bytes: u64,
    /// Point entries, deletions included, and range deletions.
    pub entries: u64,
    pub deletions: u64,
    pub range_deletions: u64,
    pub merge_operands: u64,
    /// Distinct keys of point entries.
    pub keys: u64,
    /// Of keys and values.
    pub payload_bytes: u64,
    pub key_bytes: u64,
    pub largest_seq: SeqNo,
    /// Nodes of the trie or the skiplist.
    pub nodes: u64,
    /// Nodes locked by writers. No meaning for readers.
    pub locked_nodes: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sealed = if self.header.sealed.is_some() { "sealed" } else { "not sealed" };
        writeln!(f, "{}, order {}, {sealed}", self.header.representation, self.header.order)?;
        writeln!(f, "{} bytes, {} used", self.image_bytes, self.used_bytes)?;
        writeln!(
            f,
            "{} entries, {} of them deletions and {} range deletions; {} keys; {} bytes of keys and values",
            self.entries, self.deletions, self.range_deletions, self.keys, self.payload_bytes
        )?;
        write!(f, "largest sequence number {}; {} nodes, {} locked", self.largest_seq.0, self.nodes, self.locked_nodes)
    }
}

/// Checks a whole image, which must not change meanwhile.
///
/// # Errors
/// `Corruption`, with the offset in the image; `InvalidArgument` if it is another image than expected; `Unsupported`
/// for a newer format.
pub fn check(bytes: &[u8], expected: &Expected) -> Result<Report> {
    Ok(Image::open(bytes, expected)?.report().clone())
}

/// Writes the header, without seal and watermark, when the memtable is made, before the first insert. No effect without
/// a header.
///
/// # Errors
/// `InvalidArgument`: the order's name is too long.
pub(crate) fn begin(arena: &Arena, representation: Representation, head: u64, order: &UserOrder) -> Result<()> {
    const NO_FILE: FileIdentity = FileIdentity { device: 0, number: 0 };
    let file = arena.file();
    let whose = file.as_ref().map_or(ImageIdentity::default(), |file| file.place().identity);
    let identity = identity::encode(&whose, file.as_ref().map_or(NO_FILE, |file| file.identity()));
    arena.store_header(0, &header::encode(representation, head, &identity, order.name())?);
    Ok(())
}

/// Writes the seal, after the last insert. No effect without a header.
pub(crate) fn seal<const IMAGE: bool>(arena: &Arena<IMAGE>, totals: Counts) {
    header::seal(arena, arena.allocated() as u64, totals);
}
