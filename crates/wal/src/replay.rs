//! Recovery: visits a WAL's records, and distinguishes a torn tail from corruption. The file is never modified, so a
//! second crash changes nothing.
//!
//! A crash can leave holes: whole records may follow an incomplete one. Every record carries frontiers, and later WALs
//! know more of them. Below the synced frontier (in the same page cache: the published frontier) every record was
//! whole, so damage there is corruption (D1). Beyond it, the hole is the WAL's end (D2).

use std::path::{Path, PathBuf};

use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, FileNumber, Result};
use vfs::Vfs;

use crate::database_id::DatabaseId;
use crate::format::{
    BadHeader, FILE_HEADER_BYTES, FileHeader, Frontiers, NotedManifest, Position, RecordHeader, RecordKind,
    page_cache_hash,
};
use crate::log_bytes::{Header, LogBytes};

/// Told of a log that another session than the expected one made.
pub const OF_A_COPY: &str =
    "this log is of a copy of this database that went its own way: bring back this one's own log";

/// Input to [`replay`] about the WAL.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplayOptions {
    /// The number in the file's name.
    pub number: FileNumber,
    /// What is made of damage.
    pub mode: WalRecoveryMode,
    /// What is known of the log's end.
    pub known_end: Option<KnownEnd>,
    /// Offset to start from: the start of a record, or the WAL's end. Bytes before it are not read.
    pub from: Option<u64>,
    /// Frontiers from later WALs ([`read_head`]); zero if there are none. A frontier in a later WAL means this WAL must
    /// be whole, up to its [`End`](RecordKind::End) record.
    pub later: Frontiers,
    /// The expected database. Not checked if unknown here or in the WAL.
    pub database: DatabaseId,
    /// The expected session. Not checked if 0.
    pub session: u32,
}

/// The end of a WAL after an earlier recovery, from the MANIFEST. Everything before it was whole, and bytes after it
/// are not part of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownEnd {
    /// Byte offset of the end.
    pub offset: u64,
    /// The WAL was synced before the MANIFEST edit. If false, a power loss may have damaged whole records.
    pub on_disk: bool,
}

/// A record passed to `visit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayRecord<'a> {
    /// The kind of record.
    pub kind: RecordKind,
    /// Where the record starts.
    pub offset: u64,
    /// Start of the payload, for value references.
    pub payload_offset: u64,
    /// The record's bytes.
    pub payload: &'a [u8],
    /// Bytes of damage skipped right before it, in modes allowing it.
    pub skipped_bytes: u64,
}

/// Why replay of a WAL ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// At its `End` record.
    Sealed,
    /// At the end given by the MANIFEST.
    KnownEnd,
    /// At the file's end, or at zeros up to the file's end.
    Clean,
    /// The file has no header, so nothing was written to it.
    Blank,
    /// At an unfinished or unsynced record. `next` is the start of the next whole record, if any.
    Unfinished {
        /// Byte offset of the next whole record.
        next: Option<u64>,
    },
    /// Salvage only: before the WAL's known end. Records are lost, or the [`End`](RecordKind::End) record alone.
    Lost,
}

impl EndReason {
    /// Whether the next WAL goes on where this one ends. Without its `End` record, a power loss may have taken its last writes.
    pub fn is_continued(self) -> bool {
        matches!(self, EndReason::Sealed | EndReason::KnownEnd)
    }
}

/// How a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayEnd {
    /// End of the last visited record. Recorded in the MANIFEST, it is the WAL's final end.
    pub end_offset: u64,
    /// Why it ended there.
    pub reason: EndReason,
    /// Bytes of damage skipped, in modes allowing it.
    pub skipped_bytes: u64,
    /// Salvage only: where damage begins behind the last visited record.
    pub lost_from: Option<u64>,
}

/// Visits the records of the WAL at `path` in order, except the [`End`](RecordKind::End) record.
///
/// # Errors
/// Errors of `visit`. `Corruption`, with its offset: damage not tolerated by the mode. The caller must fail the whole
/// recovery, including records already visited. `Unsupported`: the WAL or a record has a kind unknown to this version.
pub fn replay(
    vfs: &dyn Vfs,
    path: &Path,
    options: &ReplayOptions,
    visit: &mut dyn FnMut(ReplayRecord<'_>) -> Result<()>,
) -> Result<ReplayEnd> {
    let mut replay = Replay::open(vfs, path, *options)?;
    if let Some(end) = options.known_end {
        replay.bytes.cut_at(end.offset);
        if end.offset <= FILE_HEADER_BYTES {
            return Ok(replay.end(end.offset, EndReason::KnownEnd));
        }
    }
    match replay.read_header() {
        Ok(Some(header)) => replay.is_same_cache = is_of_this_cache(vfs, path, &header),
        Ok(None) => return replay.end_blank(),
        // Without the salt no record can be verified, so nothing of the WAL can be salvaged.
        Err(error) if replay.salvages() && error.kind() == ErrorKind::Corruption => {
            replay.skipped_bytes = replay.bytes.len();
            return Ok(replay.end(0, EndReason::Lost));
        }
        Err(error) => return Err(error),
    }
    replay.run(visit)
}

/// What a WAL knows of itself and of earlier WALs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogHead {
    /// For the recovery of earlier logs: [`ReplayOptions::later`].
    pub frontiers: Frontiers,
    /// The previous WAL. It exists, unless it is no longer needed.
    pub predecessor: Option<FileNumber>,
    /// The database that the log belongs to.
    pub database: DatabaseId,
    /// How far the MANIFEST had come when the log was made.
    pub manifest: Option<NotedManifest>,
    /// The open that made the log ([`LogConfig::session`](crate::LogConfig::session)).
    pub session: u32,
}

/// Reads the head of the WAL at `path`. All defaults for an unused WAL.
///
/// # Errors
/// As [`replay`], for the file's header.
pub fn read_head(vfs: &dyn Vfs, path: &Path, number: FileNumber) -> Result<LogHead> {
    let mut replay = Replay::open(vfs, path, ReplayOptions { number, ..ReplayOptions::default() })?;
    let Some(header) = replay.read_header()? else { return Ok(LogHead::default()) };
    replay.is_same_cache = is_of_this_cache(vfs, path, &header);
    let is_same_cache = replay.is_same_cache;
    // Earlier WALs only need to know if anything was synced here. In the same page cache, published suffices.
    replay.gather_frontiers(FILE_HEADER_BYTES, |within| {
        within.published.offset > 0 && (is_same_cache || within.synced.offset > 0)
    })?;
    let mut known = header.earlier.max(replay.within);
    if is_same_cache {
        // Published bytes are still in the page cache, even if the header of their WAL is damaged.
        known.synced = known.synced.max(known.published);
    }
    let predecessor = Some(FileNumber(header.predecessor)).filter(|number| number.0 != 0);
    let (database, manifest, session) = (header.database, header.manifest, header.session());
    Ok(LogHead { frontiers: known, predecessor, database, manifest, session })
}

/// The database of the WAL at `path`, from its header alone. Unknown for an unused WAL.
///
/// # Errors
/// As [`replay`], for the file's header.
pub fn database_of(vfs: &dyn Vfs, path: &Path, number: FileNumber) -> Result<DatabaseId> {
    let mut replay = Replay::open(vfs, path, ReplayOptions { number, ..ReplayOptions::default() })?;
    Ok(replay.read_header()?.map_or(DatabaseId::UNKNOWN, |header| header.database))
}

/// True if `offset` is valid for [`ReplayOptions::from`]: a record starts or ends there.
///
/// # Errors
/// As [`replay`], for the file's header.
pub fn reaches(vfs: &dyn Vfs, path: &Path, number: FileNumber, offset: u64) -> Result<bool> {
    let mut replay = Replay::open(vfs, path, ReplayOptions { number, ..ReplayOptions::default() })?;
    if replay.read_header()?.is_none() {
        return Ok(offset <= FILE_HEADER_BYTES);
    }
    Ok(replay.bytes.record_at(offset)?.is_some() || replay.bytes.ends_at(offset)?)
}

/// True if the machine and the mount have stayed up since the WAL was created: dirtied pages are then still in the page
/// cache. False if unknown.
fn is_of_this_cache(vfs: &dyn Vfs, path: &Path, header: &FileHeader) -> bool {
    header.page_cache != 0 && header.page_cache == page_cache_hash(vfs, path)
}

struct Replay {
    bytes: LogBytes,
    path: PathBuf,
    options: ReplayOptions,
    is_same_cache: bool,
    /// The farthest frontiers carried by records of this WAL.
    within: Frontiers,
    skipped_bytes: u64,
    /// As far as `skipped_bytes` was passed on with a record.
    told_bytes: u64,
    /// Where the damage begins that was skipped last.
    damaged_from: u64,
}

/// How replay continues at an offset without a record.
enum After {
    Resume(u64),
    End(ReplayEnd),
}

impl Replay {
    fn open(vfs: &dyn Vfs, path: &Path, options: ReplayOptions) -> Result<Replay> {
        let (bytes, within) = (LogBytes::open(vfs, path)?, Frontiers::default());
        let path = path.to_owned();
        let (is_same_cache, skipped_bytes, told_bytes, damaged_from) = (false, 0, 0, 0);
        Ok(Replay { bytes, path, options, is_same_cache, within, skipped_bytes, told_bytes, damaged_from })
    }

    /// `None` if the WAL was never used.
    fn read_header(&mut self) -> Result<Option<FileHeader>> {
        let checked = match self.bytes.header()? {
            Header::Bad(BadHeader::Blank) => return Ok(None),
            Header::Bad(bad) => Err(bad.error()),
            Header::Valid(header) => {
                let checked = header.check_number(self.options.number);
                checked.and_then(|()| self.check_owner(&header)).map(|()| Some(header))
            }
        };
        checked.map_err(|e| e.at_path(&self.path).at_offset(0))
    }

    fn check_owner(&self, header: &FileHeader) -> Result<()> {
        let (found, own, session) = (header.database, self.options.database, self.options.session);
        if !found.is_another_than(own) && (session == 0 || session == header.session()) {
            return Ok(());
        }
        if !found.is_another_than(own) {
            return Err(Error::invalid_argument(OF_A_COPY));
        }
        let what = format!(
            "this log is of the database {found}, not of {own}; give each database a directory for its logs (wal_dir), and \
             restore the file that was here"
        );
        Err(Error::invalid_argument(what))
    }

    fn run(mut self, visit: &mut dyn FnMut(ReplayRecord<'_>) -> Result<()>) -> Result<ReplayEnd> {
        let mut offset = self.options.from.unwrap_or(FILE_HEADER_BYTES).max(FILE_HEADER_BYTES);
        loop {
            if self.options.known_end.is_some_and(|end| offset >= end.offset) {
                return Ok(self.end(offset, EndReason::KnownEnd));
            }
            let Some(found) = self.bytes.record_at(offset)? else {
                match self.without_record(offset)? {
                    After::Resume(next) => offset = next,
                    After::End(end) => return Ok(end),
                }
                continue;
            };
            self.note(&found.header);
            let Some(kind) = RecordKind::from_u8(found.header.kind) else {
                let message = format!("a log record of the unknown type {}", found.header.kind);
                return Err(Error::unsupported(message).at_path(&self.path).at_offset(offset));
            };
            if kind == RecordKind::End {
                return Ok(self.end(found.end, EndReason::Sealed));
            }
            let payload_offset = self.bytes.payload_offset(offset);
            let payload = self.bytes.payload(offset, found.header.len)?.unwrap_or_default();
            let skipped_bytes = self.skipped_bytes - std::mem::replace(&mut self.told_bytes, self.skipped_bytes);
            visit(ReplayRecord { kind, offset, payload_offset, payload, skipped_bytes })?;
            offset = found.end;
        }
    }

    /// Classifies an offset without a record: the end, or damage.
    fn without_record(&mut self, offset: u64) -> Result<After> {
        let gap = self.bytes.gap_at(offset)?;
        if let Some(next) = gap.next {
            if self.salvages() {
                self.skipped_bytes += next - offset;
                self.damaged_from = offset;
                return Ok(After::Resume(next));
            }
            self.gather_frontiers(next, |_| false)?;
        }
        let whole_to = self.whole_to();
        if offset < whole_to {
            // The frontier was written after the record became whole. A live writer may have continued between the two
            // reads.
            self.bytes.refresh()?;
            if self.bytes.record_at(offset)?.is_some() {
                return Ok(After::Resume(offset));
            }
            if self.salvages() {
                return Ok(After::End(self.end(offset, EndReason::Lost)));
            }
            return Err(self.corruption(offset, gap.next, Some(whole_to)));
        }
        let is_clean = gap.next.is_none() && !gap.has_data;
        if !is_clean && self.options.mode == WalRecoveryMode::AbsoluteConsistency {
            return Err(self.corruption(offset, gap.next, None));
        }
        let reason = if is_clean { EndReason::Clean } else { EndReason::Unfinished { next: gap.next } };
        Ok(After::End(self.end(offset, reason)))
    }

    fn salvages(&self) -> bool {
        self.options.mode == WalRecoveryMode::SkipAnyCorruptedRecords
    }

    fn end(&self, end_offset: u64, reason: EndReason) -> ReplayEnd {
        let lost_from = match reason {
            EndReason::Lost => Some(end_offset),
            _ => (self.skipped_bytes > self.told_bytes).then_some(self.damaged_from),
        };
        ReplayEnd { end_offset, reason, skipped_bytes: self.skipped_bytes, lost_from }
    }

    /// The header is durable before the first record. So a log that is known to be used has it, synced or not.
    fn end_blank(&self) -> Result<ReplayEnd> {
        let used = self.options.later.published.max(self.options.later.synced);
        let used_to = match used.log.cmp(&self.options.number) {
            std::cmp::Ordering::Equal if used.offset > FILE_HEADER_BYTES => used.offset,
            std::cmp::Ordering::Greater => u64::MAX,
            _ => self.options.known_end.map_or(0, |end| end.offset),
        };
        let whole_to = self.whole_to().max(used_to);
        match (whole_to > 0, self.salvages()) {
            (true, false) => Err(self.corruption(0, None, Some(whole_to))),
            (true, true) => Ok(self.end(0, EndReason::Lost)),
            (false, _) => Ok(self.end(0, EndReason::Blank)),
        }
    }

    /// Everything below this offset must be whole.
    fn whole_to(&self) -> u64 {
        if let Some(end) = self.whole_known_end() {
            return end;
        }
        let known = self.within.max(self.options.later);
        let frontier = if self.is_same_cache { known.published.max(known.synced) } else { known.synced };
        match frontier.log.cmp(&self.options.number) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => frontier.offset,
            std::cmp::Ordering::Greater => u64::MAX,
        }
    }

    /// The known end, if the bytes before it were synced or are still in the page cache.
    fn whole_known_end(&self) -> Option<u64> {
        self.options.known_end.filter(|end| end.on_disk || self.is_same_cache).map(|end| end.offset)
    }

    fn note(&mut self, header: &RecordHeader) {
        let log = self.options.number;
        let position = |offset| if offset == 0 { Position::default() } else { Position { log, offset } };
        let seen = Frontiers { synced: position(header.synced), published: position(header.published) };
        self.within = self.within.max(seen);
    }

    /// Notes the frontiers of all records from `offset` on, across gaps, until `enough` is true.
    fn gather_frontiers(&mut self, mut offset: u64, enough: impl Fn(&Frontiers) -> bool) -> Result<()> {
        while !enough(&self.within) {
            if let Some(found) = self.bytes.record_at(offset)? {
                self.note(&found.header);
                offset = found.end;
            } else if let Some(next) = self.bytes.gap_at(offset)?.next {
                offset = next;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn corruption(&self, offset: u64, next: Option<u64>, whole_to: Option<u64>) -> Error {
        let extent = match next {
            Some(next) => format!("{} bytes of the log, up to its next whole record, are damaged", next - offset),
            None => {
                format!("{} bytes of the log, up to its end, hold no record", self.bytes.len().saturating_sub(offset))
            }
        };
        let why = match (whole_to, self.is_same_cache) {
            (None, _) => "and the recovery mode accepts no unfinished record".to_owned(),
            (Some(u64::MAX), _) => "though a later log shows that this one was complete".to_owned(),
            (Some(end), _) if self.whole_known_end().is_some() => format!("though it was whole up to {end}"),
            (Some(end), true) => {
                format!("though it was published up to {end}, and neither machine nor mount has ended since")
            }
            (Some(end), false) => format!("though it was synced up to {end}"),
        };
        Error::corruption(format!("{extent}, {why}")).at_path(&self.path).at_offset(offset)
    }
}

#[cfg(test)]
mod tests {
    use base::checksum::crc32c_append;
    use vfs::memory::MemoryVfs;

    use super::*;
    use crate::format::{SmallRecord, Version};

    fn header_of(version: Version) -> FileHeader {
        FileHeader {
            version,
            number: 7,
            page_cache: 1,
            salt: 2,
            earlier: Frontiers::default(),
            predecessor: 0,
            database: DatabaseId::UNKNOWN,
            manifest: None,
        }
    }

    /// A log of one record of the kind numbered `kind`.
    fn log_with(kind: u8) -> std::sync::Arc<MemoryVfs> {
        let header = header_of(Version::V2);
        let record = RecordHeader { len: 2, kind, synced: 0, published: 0 }.encode(header.seed(), FILE_HEADER_BYTES);
        let mut bytes = header.encode().to_vec();
        bytes.extend(SmallRecord::new(&record, &[b"??"]).unwrap().bytes());
        bytes.resize(4096, 0);
        let vfs = MemoryVfs::new(1);
        vfs.write_file(Path::new("/7"), &bytes).unwrap();
        vfs
    }

    #[test]
    fn log_reaches_the_places_where_records_start_and_end() {
        let vfs = log_with(RecordKind::Noop as u8);
        let reaches = |offset| reaches(&*vfs, Path::new("/7"), FileNumber(7), offset).unwrap();
        let end = FILE_HEADER_BYTES + crate::format::record_bytes(2);
        assert!(reaches(FILE_HEADER_BYTES) && reaches(end));
        for offset in [0, FILE_HEADER_BYTES - 8, FILE_HEADER_BYTES + 8, end - 8, end - 1, end + 8, 4096, 4097, u64::MAX]
        {
            assert!(!reaches(offset), "{offset}");
        }
        let mut zeroed = vfs.read_file(Path::new("/7")).unwrap();
        zeroed[end as usize - 8..].fill(0);
        vfs.write_file(Path::new("/7"), &zeroed).unwrap();
        assert!(!reaches(end));
        vfs.write_file(Path::new("/7"), &[]).unwrap();
        assert!(reaches(0) && !reaches(4096));
    }

    /// Records longer than the part searched at once, and zeros between.
    #[test]
    fn end_of_a_record_is_found_however_far_its_start_is() {
        let header = header_of(Version::V2);
        let mut bytes = header.encode().to_vec();
        let mut ends = Vec::new();
        for len in [10usize, 300 << 10, 1 << 20] {
            let offset = bytes.len() as u64;
            let record = RecordHeader { len: len as u32, kind: RecordKind::Noop as u8, synced: 0, published: 0 };
            let payload = vec![7; len];
            bytes.extend(record.encode(header.seed(), offset).with_payload(&[&payload]).as_flattened());
            bytes.extend(&payload);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            ends.push(bytes.len() as u64);
        }
        bytes.resize(bytes.len() + (2 << 20), 0);
        let vfs = MemoryVfs::new(1);
        vfs.write_file(Path::new("/7"), &bytes).unwrap();
        let reaches = |offset| reaches(&*vfs, Path::new("/7"), FileNumber(7), offset).unwrap();
        assert!(ends.iter().all(|end| reaches(*end) && !reaches(end + 8) && !reaches(end - 8)));
    }

    /// A record of version 1: 24 bytes of header, both distances as u32, three zeros.
    fn record_of_version_1(seed: u32, offset: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
        bytes.extend([RecordKind::Noop as u8, 0, 0, 0]);
        bytes.extend([1u32.to_le_bytes(), u32::MAX.to_le_bytes()].as_flattened());
        let crc = crc32c_append(crc32c_append(seed, &offset.to_le_bytes()), &bytes);
        bytes.extend([crc.to_le_bytes(), crc32c_append(crc, payload).to_le_bytes()].as_flattened());
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn a_log_of_version_1_is_read() {
        let header = header_of(Version::V1);
        let mut bytes = header.encode().to_vec();
        for payload in [&b"first"[..], b"the second"] {
            bytes.extend(record_of_version_1(header.seed(), bytes.len() as u64, payload));
        }
        let end_offset = bytes.len() as u64;
        bytes.resize(4096, 0);
        let vfs = MemoryVfs::new(1);
        vfs.write_file(Path::new("/7"), &bytes).unwrap();
        let options = ReplayOptions { number: FileNumber(7), ..ReplayOptions::default() };
        let mut found = Vec::new();
        let end = replay(&*vfs, Path::new("/7"), &options, &mut |record| {
            found.push((record.offset, record.payload_offset, record.payload.to_vec()));
            Ok(())
        });
        assert_eq!(found, [(128, 152, b"first".to_vec()), (160, 184, b"the second".to_vec())]);
        assert_eq!(end.unwrap(), ReplayEnd { end_offset, reason: EndReason::Clean, skipped_bytes: 0, lost_from: None });
        assert!(!reaches(&*vfs, Path::new("/7"), FileNumber(7), 168).unwrap());
        assert!(reaches(&*vfs, Path::new("/7"), FileNumber(7), 160).unwrap());
    }

    #[test]
    fn a_record_of_an_unknown_type_stops_replay_in_every_mode() {
        for mode in [WalRecoveryMode::PointInTime, WalRecoveryMode::SkipAnyCorruptedRecords] {
            let options = ReplayOptions { number: FileNumber(7), mode, ..ReplayOptions::default() };
            let run = |kind| replay(&*log_with(kind), Path::new("/7"), &options, &mut |_| Ok(()));
            let error = run(99).unwrap_err();
            assert_eq!((error.kind(), error.offset()), (base::ErrorKind::Unsupported, Some(FILE_HEADER_BYTES)));
            assert_eq!(error.message(), "a log record of the unknown type 99");
            assert_eq!(run(RecordKind::Rollback as u8).unwrap().reason, EndReason::Clean);
        }
    }
}
