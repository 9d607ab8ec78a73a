//! The bytes of Spillway's log: the file header and the record header. Format: docs/format/log.md.
//!
//! A record's header checksum is seeded with the WAL's number, a random salt and the record's offset. Bytes of an older
//! WAL, copied bytes and bytes crafted in values therefore never pass for a record here. The payload's checksum
//! continues from the header's, so one pass yields both. Keeps B1: bytes are checked before use.

use std::path::Path;

use base::checksum::{crc32c, crc32c_append};
use base::coding::Reader;
use base::{Error, FileNumber, Result};
use vfs::Vfs;

use crate::database_id::{DATABASE_ID_BYTES, DatabaseId};

/// First bytes of every WAL.
const MAGIC: [u8; 8] = *b"SPILWLOG";

/// Layout of a log's record headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Version {
    /// Only read.
    V1 = 1,
    /// All new logs.
    V2 = 2,
}

impl Version {
    fn from_u32(version: u32) -> Option<Self> {
        match version {
            1 => Some(Version::V1),
            2 => Some(Version::V2),
            _ => None,
        }
    }

    /// Bytes before a record's payload.
    pub fn header_bytes(self) -> usize {
        match self {
            Version::V1 => 24,
            Version::V2 => RECORD_HEADER_BYTES,
        }
    }

    /// Bytes of a record with `payload_len` bytes of payload, header and padding included.
    pub fn record_bytes(self, payload_len: u64) -> u64 {
        (self.header_bytes() as u64 + payload_len).next_multiple_of(ALIGNMENT)
    }
}

/// Bytes before the first record.
pub const FILE_HEADER_BYTES: u64 = 128;

/// Bytes before a new record's payload.
pub const RECORD_HEADER_BYTES: usize = 20;

/// Every record starts at a multiple of this. Zeros pad the payload.
pub const ALIGNMENT: u64 = 8;

/// Longest payload of a record: the limit of its length field.
pub const PAYLOAD_BYTES_MAX: u64 = u32::MAX as u64;

/// Record type. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// A write batch in RocksDB's layout, sequence number and count included.
    Batch = 1,
    /// Tables added to the database at this point, and a batch above them.
    Ingest = 2,
    /// Names the file of a large batch.
    LargeBatch = 3,
    /// A transaction's batch. A later record commits or rolls it back.
    Prepare = 4,
    /// Commits a prepared batch.
    Commit = 5,
    /// Rolls a prepared batch back.
    Rollback = 6,
    /// Nothing to replay.
    Noop = 7,
    /// The last record of a sealed WAL. No record follows it.
    End = 8,
    /// As `Ingest`, but names the file of a large batch.
    IngestAndLargeBatch = 9,
}

impl RecordKind {
    /// The kind of a stored byte. `None`: unknown.
    pub fn from_u8(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => RecordKind::Batch,
            2 => RecordKind::Ingest,
            3 => RecordKind::LargeBatch,
            4 => RecordKind::Prepare,
            5 => RecordKind::Commit,
            6 => RecordKind::Rollback,
            7 => RecordKind::Noop,
            8 => RecordKind::End,
            9 => RecordKind::IngestAndLargeBatch,
            _ => return None,
        })
    }
}

/// A position in the live WAL range. It covers everything before it, earlier WALs included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The log.
    pub log: FileNumber,
    /// Byte offset in the log.
    pub offset: u64,
}

/// Known frontiers of the history. Both only grow, and `synced <= published`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frontiers {
    /// Survives a power loss.
    pub synced: Position,
    /// Complete in the page cache: survives a process crash, as long as the machine stays up.
    pub published: Position,
}

impl Frontiers {
    /// The farther of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Frontiers { synced: self.synced.max(other.synced), published: self.published.max(other.published) }
    }
}

/// A MANIFEST's number and length, as a log's header has them: both in one word, the number by its low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotedManifest {
    number_low: u64,
    bytes: u64,
}

/// Bits of a MANIFEST's length in the word; its number has the rest.
const MANIFEST_LENGTH_BITS: u32 = 40;

const MANIFEST_NUMBER_MASK: u64 = (1 << (64 - MANIFEST_LENGTH_BITS)) - 1;

impl NotedManifest {
    /// A MANIFEST of `bytes`. A length beyond 1 TiB is noted as less, and so claims too little.
    pub fn new(number: FileNumber, bytes: u64) -> NotedManifest {
        let bytes = bytes.min((1 << MANIFEST_LENGTH_BITS) - 1);
        NotedManifest { number_low: number.0 & MANIFEST_NUMBER_MASK, bytes }
    }

    /// One word; never 0, since a MANIFEST has bytes.
    pub fn to_word(self) -> u64 {
        self.number_low << MANIFEST_LENGTH_BITS | self.bytes
    }

    /// `None` for 0: logs of earlier versions note nothing.
    pub fn from_word(word: u64) -> Option<NotedManifest> {
        let bytes = word & ((1 << MANIFEST_LENGTH_BITS) - 1);
        (bytes > 0).then_some(NotedManifest { number_low: word >> MANIFEST_LENGTH_BITS, bytes })
    }

    /// The length that the log noted of the MANIFEST `number`; `None` if it noted one of another number.
    pub fn bytes_of(self, number: FileNumber) -> Option<u64> {
        (self.number_low == number.0 & MANIFEST_NUMBER_MASK).then_some(self.bytes)
    }

    /// Whether the log noted a MANIFEST that came after `number`.
    pub fn is_after(self, number: FileNumber) -> bool {
        let ahead = self.number_low.wrapping_sub(number.0) & MANIFEST_NUMBER_MASK;
        ahead > 0 && ahead <= MANIFEST_NUMBER_MASK / 2
    }
}

/// The fields of a WAL's file header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub version: Version,
    pub number: u64,
    /// Hash of the page cache under the WAL (boot and mount), from `page_cache_hash`; 0 if unknown.
    pub page_cache: u64,
    /// A random number. Its upper half is one for all logs of an open, in logs made since 2026-12.
    pub salt: u64,
    /// The frontiers at creation. They lie in earlier WALs.
    pub earlier: Frontiers,
    /// The previous WAL's number; 0 if recovery needs no earlier WAL.
    pub predecessor: u64,
    pub database: DatabaseId,
    /// How far the MANIFEST had come at creation.
    pub manifest: Option<NotedManifest>,
}

/// Why a file header is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// Zeros only, or an empty file.
    Blank,
    Damaged,
    Version(u32),
}

impl BadHeader {
    pub fn error(self) -> Error {
        match self {
            BadHeader::Blank | BadHeader::Damaged => Error::corruption("the header of a log is damaged"),
            BadHeader::Version(version) => Error::unsupported(format!("a log of format version {version}")),
        }
    }
}

/// A header that ends early is damaged.
impl From<base::Error> for BadHeader {
    fn from(_: base::Error) -> Self {
        BadHeader::Damaged
    }
}

impl FileHeader {
    pub fn encode(&self) -> [u8; FILE_HEADER_BYTES as usize] {
        let mut bytes = [0; FILE_HEADER_BYTES as usize];
        let words = [
            self.number,
            self.page_cache,
            self.salt,
            self.earlier.synced.log.0,
            self.earlier.synced.offset,
            self.earlier.published.log.0,
            self.earlier.published.offset,
            self.predecessor,
        ];
        let body = MAGIC.into_iter().chain((self.version as u32).to_le_bytes()).chain([0; 4]);
        let words = words.into_iter().flat_map(u64::to_le_bytes);
        let manifest = self.manifest.map_or(0, NotedManifest::to_word).to_le_bytes();
        for (to, from) in bytes.iter_mut().zip(body.chain(words).chain(self.database.0).chain(manifest)) {
            *to = from;
        }
        let crc = crc32c(&bytes);
        for (to, from) in bytes.iter_mut().skip(12).zip(crc.to_le_bytes()) {
            *to = from;
        }
        bytes
    }

    /// The open that made the log.
    pub fn session(&self) -> u32 {
        (self.salt >> 32) as u32
    }

    /// `bytes`: the file's first [`FILE_HEADER_BYTES`], or the whole file if it is shorter.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadHeader> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Err(BadHeader::Blank);
        }
        let mut reader = Reader::new(bytes);
        let magic = reader.bytes(8, "magic")?;
        let version = reader.u32("version")?;
        let crc = reader.u32("checksum")?;
        let rest = reader.rest();
        let covered = crc32c_append(crc32c(&MAGIC), &version.to_le_bytes());
        let covered = crc32c_append(crc32c_append(covered, &[0; 4]), rest);
        if magic != MAGIC || covered != crc || bytes.len() as u64 != FILE_HEADER_BYTES {
            return Err(BadHeader::Damaged);
        }
        let Some(version) = Version::from_u32(version) else { return Err(BadHeader::Version(version)) };
        let mut word = || reader.u64("header");
        let (number, page_cache, salt) = (word()?, word()?, word()?);
        let synced = Position { log: FileNumber(word()?), offset: word()? };
        let published = Position { log: FileNumber(word()?), offset: word()? };
        let predecessor = word()?;
        let database = DatabaseId::from_bytes(reader.bytes(DATABASE_ID_BYTES, "database id")?);
        let manifest = NotedManifest::from_word(reader.u64("MANIFEST")?);
        let earlier = Frontiers { synced, published };
        Ok(FileHeader { version, number, page_cache, salt, earlier, predecessor, database, manifest })
    }

    /// # Errors
    /// `Corruption`: the header is of another log than `number`.
    pub fn check_number(&self, number: FileNumber) -> Result<()> {
        if self.number == number.0 {
            return Ok(());
        }
        let found = FileNumber(self.number);
        Err(Error::corruption(format!("the file of log {number} holds log {found}")))
    }

    /// The seed of this log's record checksums.
    pub fn seed(&self) -> u32 {
        crc32c_append(crc32c(&self.number.to_le_bytes()), &self.salt.to_le_bytes())
    }
}

/// A log's first bytes with another database's id. The checksums of records do not cover the id. `None`: a damaged header, or one
/// of an unknown version.
pub fn header_of(
    owner: DatabaseId,
    header: &[u8; FILE_HEADER_BYTES as usize],
) -> Option<[u8; FILE_HEADER_BYTES as usize]> {
    let header = FileHeader::decode(header).ok()?;
    Some(FileHeader { database: owner, ..header }.encode())
}

/// Hash of the page cache identity of the file system at `path`; 0 if unknown. An unknown cache equals no cache.
pub(crate) fn page_cache_hash(vfs: &dyn Vfs, path: &Path) -> u64 {
    let Some(id) = vfs.page_cache_id(path) else { return 0 };
    // FNV-1a: only equality matters, between boots and mounts of one machine.
    let hash =
        id.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    hash.max(1)
}

/// A distance of a frontier in an earlier WAL, or too far back. In every width the largest value.
const SYNCED_UNKNOWN: u64 = u32::MAX as u64;
const PUBLISHED_UNKNOWN: u64 = (1 << 24) - 1;

/// Distance from a record's start back to a frontier in the same WAL, in units of [`ALIGNMENT`]; `unknown` at most.
fn distance(start: u64, frontier: u64, unknown: u64) -> u64 {
    if frontier <= FILE_HEADER_BYTES {
        return unknown;
    }
    (start.saturating_sub(frontier) / ALIGNMENT).min(unknown)
}

fn frontier(start: u64, distance: u64, unknown: u64) -> u64 {
    if distance == unknown {
        return 0;
    }
    start.saturating_sub(distance * ALIGNMENT)
}

/// A record's header, decoded or about to be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    /// Bytes of payload.
    pub len: u32,
    /// A [`RecordKind`], unless a later version wrote it.
    pub kind: u8,
    /// Offsets in this WAL; 0 if unknown.
    pub synced: u64,
    pub published: u64,
}

impl RecordHeader {
    #[inline]
    pub fn encode(&self, seed: u32, offset: u64) -> EncodedHeader {
        let published = distance(offset, self.published, PUBLISHED_UNKNOWN) as u32;
        let words =
            [self.len, u32::from(self.kind) | published << 8, distance(offset, self.synced, SYNCED_UNKNOWN) as u32];
        let [len, kind, synced] = words;
        // One checksum over contiguous bytes.
        let covered = le_bytes([offset as u32, (offset >> 32) as u32, len, kind, synced]);
        EncodedHeader { words, crc: crc32c_append(seed, covered.as_flattened()) }
    }

    /// Decodes the record header at `offset`, and returns the header, its checksum and its payload's checksum. `None`
    /// unless the bytes are a header of this WAL at this offset.
    pub fn decode(bytes: &[u8], version: Version, seed: u32, offset: u64) -> Option<(Self, u32, u32)> {
        let bytes = bytes.get(..version.header_bytes())?;
        let (covered, crcs) = bytes.split_last_chunk::<8>()?;
        let (crc, payload_crc) = (*crcs.first_chunk()?, *crcs.last_chunk()?);
        let (crc, payload_crc) = (u32::from_le_bytes(crc), u32::from_le_bytes(payload_crc));
        let (low, high) = covered.split_first_chunk::<8>()?;
        let low = u64::from_le_bytes(*low);
        // A record's kind is never 0, so zeros need no checksum.
        if low == 0 || crc32c_append(crc32c_append(seed, &offset.to_le_bytes()), covered) != crc {
            return None;
        }
        let synced = u64::from(u32::from_le_bytes(*high.first_chunk()?));
        let (kind, published, unknown) = match version {
            // A set reserved bit yields an unknown kind.
            Version::V1 => {
                let published = u64::from(u32::from_le_bytes(*high.last_chunk()?));
                (if low >> 40 == 0 { (low >> 32) as u8 } else { u8::MAX }, published, SYNCED_UNKNOWN)
            }
            Version::V2 => ((low >> 32) as u8, low >> 40, PUBLISHED_UNKNOWN),
        };
        let synced = frontier(offset, synced, SYNCED_UNKNOWN);
        let header = RecordHeader { len: low as u32, kind, synced, published: frontier(offset, published, unknown) };
        Some((header, crc, payload_crc))
    }
}

/// A record header's bytes, as words.
type HeaderBytes = [[u8; 4]; RECORD_HEADER_BYTES / 4];

#[inline]
fn le_bytes(words: [u32; RECORD_HEADER_BYTES / 4]) -> HeaderBytes {
    words.map(u32::to_le_bytes)
}

/// A header without its payload's checksum. `crc` seeds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodedHeader {
    /// Length, kind with the published frontier, synced frontier.
    words: [u32; 3],
    crc: u32,
}

impl EncodedHeader {
    #[inline]
    fn with_crc(&self, payload_crc: u32) -> HeaderBytes {
        let [len, kind, synced] = self.words;
        le_bytes([len, kind, synced, self.crc, payload_crc])
    }

    pub fn with_payload(&self, parts: &[&[u8]]) -> HeaderBytes {
        self.with_crc(parts.iter().fold(self.crc, |crc, part| crc32c_append(crc, part)))
    }
}

/// Longest record built on the stack. Clearing the buffer is part of an append's cost.
const SMALL_RECORD_BYTES: usize = 256;

/// Where a record begins in the buffer: its payload is aligned.
const SMALL_RECORD_START: usize = PAYLOAD_START - RECORD_HEADER_BYTES;
const PAYLOAD_START: usize = RECORD_HEADER_BYTES.next_multiple_of(8);

/// A whole record on the stack. One checksum over contiguous aligned bytes is several times faster than one for each
/// short part.
#[repr(align(8))]
pub(crate) struct SmallRecord {
    bytes: [u8; SMALL_RECORD_BYTES],
    /// Of the record's last byte.
    end: usize,
}

impl SmallRecord {
    /// `None` if the parts are too long.
    #[inline]
    pub fn new(header: &EncodedHeader, parts: &[&[u8]]) -> Option<Self> {
        let mut bytes = [0; SMALL_RECORD_BYTES];
        let mut end = PAYLOAD_START;
        for part in parts {
            bytes.get_mut(end..)?.get_mut(..part.len())?.copy_from_slice(part);
            end += part.len();
        }
        let payload_crc = crc32c_append(header.crc, bytes.get(PAYLOAD_START..end)?);
        bytes.get_mut(SMALL_RECORD_START..PAYLOAD_START)?.copy_from_slice(header.with_crc(payload_crc).as_flattened());
        Some(SmallRecord { bytes, end })
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(SMALL_RECORD_START..self.end).unwrap_or_default()
    }
}

/// Bytes of a new record with `payload_len` bytes of payload, header and padding included.
#[inline]
pub(crate) fn record_bytes(payload_len: u64) -> u64 {
    Version::V2.record_bytes(payload_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(header: RecordHeader, seed: u32, offset: u64, payload: &[u8]) -> Vec<u8> {
        SmallRecord::new(&header.encode(seed, offset), &[payload]).unwrap().bytes().to_vec()
    }

    #[test]
    fn a_record_header_is_bound_to_its_log_and_place() {
        let header = RecordHeader { len: 3, kind: 1, synced: 128 + 8, published: 4096 };
        let bytes = encoded(header, 77, 4096, b"abc");
        let (decoded, crc, payload_crc) = RecordHeader::decode(&bytes, Version::V2, 77, 4096).unwrap();
        assert_eq!(decoded, header);
        assert_eq!(crc32c_append(crc, b"abc"), payload_crc);
        assert!(RecordHeader::decode(&bytes, Version::V2, 78, 4096).is_none());
        assert!(RecordHeader::decode(&bytes, Version::V2, 77, 4104).is_none());
        assert!(RecordHeader::decode(&bytes[..19], Version::V2, 77, 4096).is_none());
    }

    #[test]
    fn frontiers_in_earlier_logs_or_too_far_back_are_unknown() {
        let far = 64 << 30;
        for (start, given, read) in [(4096, 128, 0), (4096, 0, 0), (4096, 136, 136), (4096, 4096, 4096), (far, 136, 0)]
        {
            let header = RecordHeader { len: 0, kind: 7, synced: given, published: given };
            let (decoded, ..) = RecordHeader::decode(&encoded(header, 1, start, b""), Version::V2, 1, start).unwrap();
            assert_eq!((decoded.synced, decoded.published), (read, read), "{given} seen from {start}");
        }
        // A frontier is never claimed beyond the record that tells of it.
        let header = RecordHeader { len: 0, kind: 7, synced: 8192, published: 8192 };
        let (decoded, ..) = RecordHeader::decode(&encoded(header, 1, 4096, b""), Version::V2, 1, 4096).unwrap();
        assert_eq!(decoded.published, 4096);
    }

    #[test]
    fn both_ways_of_encoding_yield_the_same_bytes() {
        let header = RecordHeader { len: 9, kind: 1, synced: 0, published: 128 }.encode(5, 256);
        let parts: [&[u8]; 3] = [b"abc", b"", b"defghi"];
        let small = SmallRecord::new(&header, &parts).unwrap();
        assert_eq!(small.bytes(), [header.with_payload(&parts).as_flattened(), b"abcdefghi"].concat());
        assert!(SmallRecord::new(&header, &[&[0; 300]]).is_none());
    }

    #[test]
    fn a_header_of_another_database_differs_in_nothing_else() {
        let earlier = Frontiers::default();
        let manifest = Some(NotedManifest::new(FileNumber(6), 700));
        for version in [Version::V1, Version::V2] {
            let database = DatabaseId::new("one");
            let header =
                FileHeader { version, number: 3, page_cache: 4, salt: 5, earlier, predecessor: 2, database, manifest };
            let other = header_of(DatabaseId::new("other"), &header.encode()).unwrap();
            assert_eq!(FileHeader::decode(&other), Ok(FileHeader { database: DatabaseId::new("other"), ..header }));
        }
        assert_eq!(header_of(DatabaseId::new("other"), &[0; 128]), None);
        assert_eq!(header_of(DatabaseId::new("other"), &[7; 128]), None);
    }

    #[test]
    fn noted_manifest_is_compared_by_the_low_bits_of_its_number() {
        let number = FileNumber((1 << 24) + 5);
        let noted = NotedManifest::new(number, 1 << 50);
        assert_eq!(NotedManifest::from_word(noted.to_word()), Some(noted));
        assert_eq!(NotedManifest::from_word(0), None);
        assert_eq!(noted.bytes_of(number), Some((1 << 40) - 1));
        assert_eq!(noted.bytes_of(FileNumber(number.0 + 1)), None);
        assert!(noted.is_after(FileNumber(number.0 - 1)) && noted.is_after(FileNumber((1 << 24) - 1)));
        assert!(!noted.is_after(number) && !noted.is_after(FileNumber(number.0 + 1)));
    }

    #[test]
    fn a_file_header_of_another_version_is_told_from_damage() {
        let position = |log, offset| Position { log: FileNumber(log), offset };
        let earlier = Frontiers { synced: position(1, 200), published: position(2, 300) };
        let version = Version::V2;
        let header = FileHeader {
            version,
            number: 3,
            page_cache: 4,
            salt: 5,
            earlier,
            predecessor: 2,
            database: DatabaseId::new("id"),
            manifest: Some(NotedManifest::new(FileNumber(6), 700)),
        };
        let mut bytes = header.encode();
        assert_eq!(FileHeader::decode(&bytes), Ok(header));
        assert_eq!(FileHeader::decode(&[0; 128]), Err(BadHeader::Blank));
        bytes[8] = 3;
        assert_eq!(FileHeader::decode(&bytes), Err(BadHeader::Damaged));
        bytes[12..16].fill(0);
        let crc = crc32c(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(FileHeader::decode(&bytes), Err(BadHeader::Version(3)));
    }
}
