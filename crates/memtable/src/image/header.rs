//! The first page of an image: kind, identity, watermark, and once sealed, the totals. Format: docs/format/image.md
//!
//! Everything but seal and watermark is written before the first insert. The seal's first word is written last and
//! marks it present, so a crash leaves the seal whole or absent.

use std::fmt;

use base::checksum::{crc32c, mask};
use base::{Error, Result};
use vfs::FileIdentity;

use crate::arena::{Arena, GRANULE_BYTES, IMAGE_HEADER_BYTES, Ref};
use crate::stripe::Counts;
use crate::trie::layout::{FAR_SHIFT, NEAR_SHIFT};

use super::identity::{self, IDENTITY_BYTES, ImageIdentity};
use super::view::{View, wrong};
use super::watermark::{WATERMARK_AT, Watermark};

const MAGIC: &[u8; 8] = b"SpillMem";
const FORMAT_VERSION: u32 = 1;

const VERSION_AT: usize = 8;
const CRC_AT: usize = 12;
const REPRESENTATION_AT: usize = 16;
const SHIFT_AT: usize = 20;
const GRANULE_AT: usize = 24;
const NAME_LEN_AT: usize = 28;
const HEAD_AT: usize = 32;
const IDENTITY_AT: usize = 64;
const NAME_AT: usize = 192;

/// Longer names of orders are refused: the page has room for more, but no comparator needs it.
pub(super) const NAME_MAX_BYTES: usize = 1024;

/// The seal: a presence word, four numbers, a checksum.
pub(super) const SEAL_AT: usize = 2048;
const SEAL_NUMBERS: usize = 4;
const SEAL_CRC_AT: usize = SEAL_AT + GRANULE_BYTES * (1 + SEAL_NUMBERS);
const SEALED: u64 = 1;

const _: () = assert!(IDENTITY_AT + IDENTITY_BYTES <= NAME_AT && NAME_AT + NAME_MAX_BYTES <= SEAL_AT);
const _: () = assert!(SEAL_CRC_AT + GRANULE_BYTES <= WATERMARK_AT && WATERMARK_AT < IMAGE_HEADER_BYTES);

/// Bytes from an image's start required by [`Header::read`].
pub const HEADER_BYTES: usize = IMAGE_HEADER_BYTES;

/// How entries are arranged in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Representation {
    /// A trie.
    Trie {
        /// Shift from references to offsets, in bits.
        shift: u32,
    },
    /// A skip list.
    SkipList,
}

impl Representation {
    fn numbers(self) -> (u32, u32) {
        match self {
            Representation::Trie { shift } => (1, shift),
            Representation::SkipList => (2, 0),
        }
    }

    fn from_numbers(number: u32, shift: u32) -> Option<Self> {
        match (number, shift) {
            (1, NEAR_SHIFT | FAR_SHIFT) => Some(Representation::Trie { shift }),
            (2, 0) => Some(Representation::SkipList),
            _ => None,
        }
    }
}

impl fmt::Display for Representation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Representation::Trie { shift } => write!(f, "trie (references shifted by {shift})"),
            Representation::SkipList => f.write_str("skip_list"),
        }
    }
}

/// An image's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The data structure.
    pub representation: Representation,
    /// The name of the order of user keys.
    pub order: String,
    /// Offset of the representation's head.
    pub head: u64,
    /// Identity set by the engine when the memtable was made.
    pub identity: ImageIdentity,
    /// File the image was made in; zeros if made in memory. A copy keeps the original's.
    pub file: FileIdentity,
    /// As of the read of the bytes.
    pub watermark: Watermark,
    /// `None` if its writer was stopped before the seal.
    pub sealed: Option<Seal>,
}

/// A memtable's totals at the seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Allocated bytes, from the file's start.
    pub allocated_bytes: u64,
    /// Number of entries.
    pub entries: u64,
    /// Deletions among them.
    pub deletions: u64,
    /// Bytes of keys and values.
    pub payload_bytes: u64,
}

impl Header {
    /// Reads the header of an image from its first [`HEADER_BYTES`] or more. Checks only the header.
    ///
    /// # Errors
    /// `Corruption`: no image, or a damaged header; `Unsupported`: a newer format.
    pub fn read(bytes: &[u8]) -> Result<Header> {
        let view = View::new(bytes);
        let at = |offset: usize| offset as u64;
        let fixed = view.bytes(0, at(IMAGE_HEADER_BYTES), "the header")?;
        if !fixed.starts_with(MAGIC) {
            return Err(wrong(0, "not the image of a memtable"));
        }
        let version = view.u32(at(VERSION_AT))?;
        if version != FORMAT_VERSION {
            return Err(Error::unsupported(format!("an image of format {version}; {FORMAT_VERSION} is known")));
        }
        let name_len = view.u32(at(NAME_LEN_AT))?;
        if name_len as usize > NAME_MAX_BYTES {
            return Err(wrong(at(NAME_LEN_AT), format!("the name of an order of {name_len} bytes")));
        }
        let covered = view.bytes(
            at(REPRESENTATION_AT),
            at(NAME_AT - REPRESENTATION_AT) + u64::from(name_len),
            "what the header's checksum covers",
        )?;
        if view.u32(at(CRC_AT))? != mask(crc32c(covered)) {
            return Err(wrong(at(CRC_AT), "the header does not match its checksum"));
        }
        let numbers = (view.u32(at(REPRESENTATION_AT))?, view.u32(at(SHIFT_AT))?);
        let representation = Representation::from_numbers(numbers.0, numbers.1)
            .ok_or_else(|| Error::unsupported(format!("an image of representation {numbers:?}")))?;
        if view.u32(at(GRANULE_AT))? as usize != GRANULE_BYTES {
            return Err(wrong(at(GRANULE_AT), "granules of another size"));
        }
        let name = view.bytes(at(NAME_AT), name_len.into(), "the order's name")?;
        let order = str::from_utf8(name).map_err(|_| wrong(at(NAME_AT), "the order's name is not UTF-8"))?.to_owned();
        let head = view.u64(at(HEAD_AT))?;
        let (identity, file) = identity::decode(&view, at(IDENTITY_AT))?;
        let (watermark, sealed) = (Watermark::read(&view)?, read_seal(&view)?);
        Ok(Header { representation, order, head, identity, file, watermark, sealed })
    }
}

fn read_seal(view: &View<'_>) -> Result<Option<Seal>> {
    match view.u64(SEAL_AT as u64)? {
        0 => return Ok(None),
        SEALED => {}
        other => return Err(wrong(SEAL_AT as u64, format!("{other} is no seal"))),
    }
    let numbers_at = (SEAL_AT + GRANULE_BYTES) as u64;
    let covered = view.bytes(numbers_at, (SEAL_NUMBERS * GRANULE_BYTES) as u64, "the seal")?;
    if view.u64(SEAL_CRC_AT as u64)? != u64::from(mask(crc32c(covered))) {
        return Err(wrong(SEAL_CRC_AT as u64, "the seal does not match its checksum"));
    }
    let number = |n: usize| view.u64(numbers_at + (n * GRANULE_BYTES) as u64);
    Ok(Some(Seal {
        allocated_bytes: number(0)?,
        entries: number(1)?,
        deletions: number(2)?,
        payload_bytes: number(3)?,
    }))
}

/// The header without seal and watermark, in whole granules; `identity` is [`identity::encode`]d.
///
/// # Errors
/// `InvalidArgument`: the name is too long.
pub(super) fn encode(
    representation: Representation,
    head: u64,
    identity: &[u8; IDENTITY_BYTES],
    order: &str,
) -> Result<Vec<u8>> {
    if order.len() > NAME_MAX_BYTES {
        return Err(Error::invalid_argument(format!(
            "the name of an order has {} bytes; an image has room for {NAME_MAX_BYTES}",
            order.len()
        )));
    }
    let (number, shift) = representation.numbers();
    let mut covered = Vec::with_capacity(NAME_AT + order.len());
    for word in [number, shift, GRANULE_BYTES as u32, order.len() as u32] {
        covered.extend_from_slice(&word.to_le_bytes());
    }
    covered.extend_from_slice(&head.to_le_bytes());
    covered.resize(IDENTITY_AT - REPRESENTATION_AT, 0);
    covered.extend_from_slice(identity);
    covered.resize(NAME_AT - REPRESENTATION_AT, 0);
    covered.extend_from_slice(order.as_bytes());
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&mask(crc32c(&covered)).to_le_bytes());
    bytes.append(&mut covered);
    bytes.resize(bytes.len().next_multiple_of(GRANULE_BYTES), 0);
    Ok(bytes)
}

/// Writes the seal: numbers and checksum first, the presence word last.
pub(super) fn seal<const IMAGE: bool>(arena: &Arena<IMAGE>, allocated_bytes: u64, totals: Counts) {
    let numbers = [allocated_bytes, totals.entries, totals.deletions, totals.payload_bytes].map(u64::to_le_bytes);
    let crc = u64::from(mask(crc32c(numbers.as_flattened())));
    arena.store_header(SEAL_AT + GRANULE_BYTES, numbers.as_flattened());
    arena.store_header(SEAL_CRC_AT, &crc.to_le_bytes());
    arena.store_header(SEAL_AT, &SEALED.to_le_bytes());
}

/// True if the seal is present, and with it everything written before it.
pub(super) fn is_sealed<const IMAGE: bool>(arena: &Arena<IMAGE>) -> bool {
    const SEAL: Ref = Ref::from_raw((SEAL_AT / GRANULE_BYTES) as u32);
    // SAFETY: the word lies in the header, which comes before all that is handed out, and is an atomic word to
    // everyone.
    arena.has_header() && unsafe { arena.load(SEAL) } == SEALED
}
