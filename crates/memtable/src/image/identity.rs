//! Identity of an image's memtable, written before the first insert. Recovery uses it to tell whether a file it finds
//! is the one it expects, in place. Format: docs/format/image.md

use base::{FamilyId, Result, SeqNo};
use vfs::FileIdentity;
use xxhash_rust::xxh3::xxh3_128;

use super::view::View;

/// Bytes of an identity in the header; all zero if none was written.
pub(super) const IDENTITY_BYTES: usize = 72;

/// The engine's identity for a memtable made in a file. All zero for a memtable in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageIdentity {
    /// Page cache over the file: the machine's boot and the mount. 0 if unknown, which equals no other.
    pub page_cache: u128,
    /// The database.
    pub database: u128,
    /// The family.
    pub family: FamilyId,
    /// No write at or below this number is in the memtable.
    pub created_at: SeqNo,
    /// Opaque to this crate; the engine's own.
    pub extra: u64,
}

impl ImageIdentity {
    /// The 128-bit number of a name, such as the page cache's or the database's; 0 for an empty name.
    pub fn number_of(name: &str) -> u128 {
        if name.is_empty() { 0 } else { xxh3_128(name.as_bytes()).max(1) }
    }
}

pub(super) fn encode(identity: &ImageIdentity, file: FileIdentity) -> [u8; IDENTITY_BYTES] {
    let mut bytes = [0; IDENTITY_BYTES];
    let family = u64::from(identity.family.0);
    let halves = |number: u128| [number as u64, (number >> 64) as u64];
    let ([cache, cache_high], [database, database_high]) = (halves(identity.page_cache), halves(identity.database));
    let numbers = [cache, cache_high, database, database_high, identity.created_at.0, identity.extra, family];
    let words = bytes.as_chunks_mut().0;
    for (word, number) in words.iter_mut().zip(numbers.into_iter().chain([file.device, file.number])) {
        *word = number.to_le_bytes();
    }
    bytes
}

/// The memtable's identity at `at`, and the identity of the file it was written to.
///
/// # Errors
/// `Corruption`: it lies outside the image.
pub(super) fn decode(view: &View<'_>, at: u64) -> Result<(ImageIdentity, FileIdentity)> {
    let word = |n: u64| view.u64(at + 8 * n);
    let wide = |n: u64| Ok(u128::from(word(n)?) | u128::from(word(n + 1)?) << 64);
    let identity = ImageIdentity {
        page_cache: wide(0)?,
        database: wide(2)?,
        created_at: SeqNo(word(4)?),
        extra: word(5)?,
        family: FamilyId(word(6)? as u32),
    };
    Ok((identity, FileIdentity { device: word(7)?, number: word(8)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_round_trips() {
        let identity = ImageIdentity {
            page_cache: u128::MAX - 1,
            database: 3 << 100 | 7,
            family: FamilyId(u32::MAX),
            created_at: SeqNo::MAX,
            extra: 1 << 63,
        };
        let file = FileIdentity { device: 5, number: u64::MAX };
        let bytes = encode(&identity, file);
        assert_eq!(decode(&View::new(&bytes), 0).expect("whole"), (identity, file));
        assert!(decode(&View::new(&bytes[1..]), 0).is_err());
        assert_eq!(ImageIdentity::number_of(""), 0);
        assert_ne!(ImageIdentity::number_of("a"), ImageIdentity::number_of("b"));
    }
}
