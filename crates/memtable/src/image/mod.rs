//! Images: the bytes of a memtable's arena, as its file holds them at any instant. Checking and reading them.
//!
//! File bytes are untrusted (B1). [`check`] follows every reference once, with bounds checks, before any is
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
mod parts;
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

use base::{Result, SeqNo, UserOrder};
use vfs::FileIdentity;

use crate::arena::Arena;
use crate::stripe::Counts;

pub use self::check::check;
pub use self::header::{HEADER_BYTES, Header, Representation, Seal};
pub use self::identity::ImageIdentity;
pub use self::lazy::LazyImage;
pub use self::reopen::{Reopened, reopen};
pub use self::sealed::SealedImage;
pub use self::watermark::Watermark;
pub(crate) use self::watermark::{advance_empty_to, begin_after, mark, mark_foreign};

/// Result of a check.
#[derive(Debug)]
pub struct Report {
    /// The header.
    pub header: Header,
    /// Counts of the entries.
    pub counts: Counts,
    /// The largest sequence number.
    pub largest_seq: SeqNo,
    /// Nodes locked by writers. No meaning for readers.
    pub locked_nodes: u64,
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
