//! Recovery: runs through a log's records, and tells a torn tail from corruption. The file is never modified, so that
//! a second crash changes nothing.
//!
//! A writer that dies leaves a hole: later records may be whole where an earlier one is not. Whether a hole is normal is
//! decided by the frontiers that the records behind it carry, and by what later logs know of this one: below the synced
//! frontier (on the same boot of the machine: the published one) everything was whole, so damage there is corruption
//! (D1); beyond it, the hole is the log's end (D2).

use std::path::{Path, PathBuf};

use base::{Error, ErrorKind, FileNumber, Result};
use vfs::Vfs;

use crate::RecoveryMode;
use crate::database_id::DatabaseId;
use crate::format::{
    BadHeader, FILE_HEADER_BYTES, FileHeader, Frontiers, Position, RECORD_HEADER_BYTES, RecordHeader, RecordKind,
    page_cache_hash,
};
use crate::log_bytes::LogBytes;

/// More than writers have under way at once.
const ZEROS_MAX_BYTES: u64 = 1 << 20;

/// What replay is told about the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplayOptions {
    /// The number in the file's name.
    pub number: FileNumber,
    pub mode: RecoveryMode,
    pub known_end: Option<KnownEnd>,
    /// Where a record begins before which none is wanted, or where the log ends. What lies before it is not looked at.
    pub from: Option<u64>,
    /// What later logs know ([`read_head`]); zero where there are none. One that lies in a later log demands the
    /// whole of this one, up to its [`End`](RecordKind::End) record.
    pub later: Frontiers,
    /// Whose log it has to be; any database's where that is not known, here or in the log.
    pub database: DatabaseId,
}

/// Where an earlier recovery ended a log, as it noted in the MANIFEST. All before it was whole then, and what lies behind
/// is not part of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownEnd {
    pub offset: u64,
    /// The log was synced before this was noted. Else a power loss may have taken some of what was whole.
    pub on_disk: bool,
}

/// A record, as it is visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayRecord<'a> {
    pub kind: RecordKind,
    /// Where the record starts.
    pub offset: u64,
    pub payload: &'a [u8],
}

impl ReplayRecord<'_> {
    /// Where the payload starts, for references to values in it.
    pub fn payload_offset(&self) -> u64 {
        self.offset + RECORD_HEADER_BYTES as u64
    }
}

/// Why a log ended where it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// With its `End` record.
    Sealed,
    /// Where the MANIFEST said.
    KnownEnd,
    /// With the file, or with zeros up to the file's end.
    Clean,
    /// The file holds no header: nothing was ever written to it. In salvage also where what was written is lost with a
    /// damaged header, and passed over.
    Blank,
    /// With a record that its writer did not finish, or that was not synced. `next` is where a whole one follows.
    Unfinished { next: Option<u64> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayEnd {
    /// Behind the last record visited; noted in the MANIFEST, it ends the log for good.
    pub end_offset: u64,
    pub reason: EndReason,
    /// Damage that was passed over, where the mode allows it.
    pub skipped_bytes: u64,
}

/// Visits the records of the log at `path` in order; the [`End`](RecordKind::End) record is not visited.
///
/// # Errors
/// What `visit` returns. `Corruption`, with its offset: damage that the mode does not bear, which a caller must take
/// as the failure of the whole recovery, records visited before it included. `Unsupported`: the log, or a record in it,
/// is of a kind that this version does not know.
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
            return Ok(ReplayEnd { end_offset: end.offset, reason: EndReason::KnownEnd, skipped_bytes: 0 });
        }
    }
    match replay.read_header() {
        Ok(Some(header)) => replay.is_same_cache = is_of_this_cache(vfs, path, &header),
        Ok(None) => return replay.end_blank(),
        // Without the salt no record can be told from chance, so that nothing of the log can be salvaged.
        Err(error) if replay.salvages() && error.kind() == ErrorKind::Corruption => {
            replay.skipped_bytes = replay.bytes.len();
            return Ok(replay.end(0, EndReason::Blank));
        }
        Err(error) => return Err(error),
    }
    replay.run(visit)
}

/// What a log knows of itself and of those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogHead {
    /// For the recovery of earlier logs: [`ReplayOptions::later`].
    pub frontiers: Frontiers,
    /// The log before this one. It is there, unless nobody needs it any more.
    pub predecessor: Option<FileNumber>,
    pub database: DatabaseId,
}

/// What the log at `path` knows. A log that was never used knows nothing.
///
/// # Errors
/// As [`replay`], for the file's header.
pub fn read_head(vfs: &dyn Vfs, path: &Path, number: FileNumber) -> Result<LogHead> {
    let mut replay = Replay::open(vfs, path, ReplayOptions { number, ..ReplayOptions::default() })?;
    let Some(header) = replay.read_header()? else { return Ok(LogHead::default()) };
    replay.is_same_cache = is_of_this_cache(vfs, path, &header);
    let is_same_cache = replay.is_same_cache;
    // Earlier logs need to know only that something was synced here: in the same page cache, published will do.
    replay.gather_frontiers(FILE_HEADER_BYTES, |within| {
        within.published.offset > 0 && (is_same_cache || within.synced.offset > 0)
    })?;
    let mut known = header.earlier.max(replay.within);
    if is_same_cache {
        // What it saw published is in the page cache still, whatever became of the other log's own header.
        known.synced = known.synced.max(known.published);
    }
    let predecessor = Some(FileNumber(header.predecessor)).filter(|number| number.0 != 0);
    Ok(LogHead { frontiers: known, predecessor, database: header.database })
}

/// Whose the log at `path` is, by its header alone. It is unknown of one that was never used.
///
/// # Errors
/// As [`replay`], for the file's header.
pub fn database_of(vfs: &dyn Vfs, path: &Path, number: FileNumber) -> Result<DatabaseId> {
    let mut replay = Replay::open(vfs, path, ReplayOptions { number, ..ReplayOptions::default() })?;
    Ok(replay.read_header()?.map_or(DatabaseId::UNKNOWN, |header| header.database))
}

/// Whether [`ReplayOptions::from`] may be `offset`, as far as its place tells: a record begins there, or nothing was
/// written there.
///
/// # Errors
/// As [`replay`], for the file's header.
pub fn may_begin_at(vfs: &dyn Vfs, path: &Path, number: FileNumber, offset: u64) -> Result<bool> {
    let mut replay = Replay::open(vfs, path, ReplayOptions { number, ..ReplayOptions::default() })?;
    if replay.read_header()?.is_none() {
        return Ok(offset <= FILE_HEADER_BYTES);
    }
    Ok(replay.bytes.record_at(offset)?.is_some() || replay.bytes.is_unused_at(offset)?)
}

/// True where the machine has been up and the file system mounted since the log was created: pages that its writers dirtied
/// are still there. False where that cannot be told.
fn is_of_this_cache(vfs: &dyn Vfs, path: &Path, header: &FileHeader) -> bool {
    header.page_cache != 0 && header.page_cache == page_cache_hash(vfs, path)
}

struct Replay {
    bytes: LogBytes,
    path: PathBuf,
    options: ReplayOptions,
    is_same_cache: bool,
    /// The farthest frontiers that records of this log carry.
    within: Frontiers,
    skipped_bytes: u64,
}

/// How replay goes on after a place without a record.
enum After {
    Resume(u64),
    End(ReplayEnd),
}

impl Replay {
    fn open(vfs: &dyn Vfs, path: &Path, options: ReplayOptions) -> Result<Replay> {
        let (bytes, within) = (LogBytes::open(vfs, path)?, Frontiers::default());
        Ok(Replay { bytes, path: path.to_owned(), options, is_same_cache: false, within, skipped_bytes: 0 })
    }

    /// `None`: the log was never used.
    fn read_header(&mut self) -> Result<Option<FileHeader>> {
        let number = self.options.number;
        let error = match self.bytes.header()? {
            Ok(header) if header.number == number.0 => match self.check_database(header.database) {
                Ok(()) => return Ok(Some(header)),
                Err(error) => error,
            },
            Ok(header) => {
                Error::corruption(format!("the file of log {number} holds log {}", FileNumber(header.number)))
            }
            Err(BadHeader::Blank) => return Ok(None),
            Err(BadHeader::Damaged) => Error::corruption("the header of a log is damaged"),
            Err(BadHeader::Version(version)) => Error::unsupported(format!("a log of format version {version}")),
        };
        Err(error.at_path(&self.path).at_offset(0))
    }

    fn check_database(&self, found: DatabaseId) -> Result<()> {
        let own = self.options.database;
        if !found.is_another_than(own) {
            return Ok(());
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
            let payload = self.bytes.payload(offset, found.header.len)?.unwrap_or_default();
            visit(ReplayRecord { kind, offset, payload })?;
            offset = found.end;
        }
    }

    /// Decides what a place without a record is: the end, or damage.
    fn without_record(&mut self, offset: u64) -> Result<After> {
        let gap = self.bytes.gap_at(offset, self.zeros_max())?;
        if self.salvages() {
            if let Some(next) = gap.next {
                self.skipped_bytes += next - offset;
                return Ok(After::Resume(next));
            }
        } else {
            if let Some(next) = gap.next {
                self.gather_frontiers(next, |_| false)?;
            }
            let whole_to = self.whole_to();
            if offset < whole_to {
                // What says so was written after the record was whole: a writer may have gone on between the two reads.
                self.bytes.refresh()?;
                if self.bytes.record_at(offset)?.is_some() {
                    return Ok(After::Resume(offset));
                }
                return Err(self.corruption(offset, gap.next, Some(whole_to)));
            }
        }
        let is_clean = gap.next.is_none() && !gap.has_data;
        if !is_clean && self.options.mode == RecoveryMode::AbsoluteConsistency {
            return Err(self.corruption(offset, gap.next, None));
        }
        let reason = if is_clean { EndReason::Clean } else { EndReason::Unfinished { next: gap.next } };
        Ok(After::End(self.end(offset, reason)))
    }

    /// How many zeros in a row end the log. After a power loss any page may be missing; in the same page cache what was written
    /// is there, and behind so many there is nothing but room that was made ahead.
    fn zeros_max(&self) -> u64 {
        if self.is_same_cache && !self.salvages() { ZEROS_MAX_BYTES } else { u64::MAX }
    }

    fn salvages(&self) -> bool {
        self.options.mode == RecoveryMode::SkipAnyCorruptedRecords
    }

    fn end(&self, end_offset: u64, reason: EndReason) -> ReplayEnd {
        ReplayEnd { end_offset, reason, skipped_bytes: self.skipped_bytes }
    }

    fn end_blank(&self) -> Result<ReplayEnd> {
        let whole_to = self.whole_to();
        if whole_to > 0 && !self.salvages() {
            return Err(self.corruption(0, None, Some(whole_to)));
        }
        Ok(self.end(0, EndReason::Blank))
    }

    /// The offset below which everything must be whole.
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

    /// The known end, where nothing can have come between and all before it must be there still.
    fn whole_known_end(&self) -> Option<u64> {
        self.options.known_end.filter(|end| end.on_disk || self.is_same_cache).map(|end| end.offset)
    }

    fn note(&mut self, header: &RecordHeader) {
        let log = self.options.number;
        let position = |offset| if offset == 0 { Position::default() } else { Position { log, offset } };
        let seen = Frontiers { synced: position(header.synced), published: position(header.published) };
        self.within = self.within.max(seen);
    }

    /// Notes the frontiers of every record from `offset` on, whether others are missing between them or not, until they
    /// are `enough`.
    fn gather_frontiers(&mut self, mut offset: u64, enough: impl Fn(&Frontiers) -> bool) -> Result<()> {
        while !enough(&self.within) {
            if let Some(found) = self.bytes.record_at(offset)? {
                self.note(&found.header);
                offset = found.end;
            } else if let Some(next) = self.bytes.gap_at(offset, self.zeros_max())?.next {
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
        let way_out = "the mode SkipAnyCorruptedRecords salvages the rest";
        Error::corruption(format!("{extent}, {why}; {way_out}")).at_path(&self.path).at_offset(offset)
    }
}

#[cfg(test)]
mod tests {
    use vfs::memory::MemoryVfs;

    use super::*;
    use crate::format::SmallRecord;

    /// A log of one record of the kind numbered `kind`.
    fn log_with(kind: u8) -> std::sync::Arc<MemoryVfs> {
        let header = FileHeader {
            number: 7,
            page_cache: 1,
            salt: 2,
            earlier: Frontiers::default(),
            predecessor: 0,
            database: DatabaseId::UNKNOWN,
        };
        let record = RecordHeader { len: 2, kind, synced: 0, published: 0 }.encode(header.seed(), FILE_HEADER_BYTES);
        let mut bytes = header.encode().to_vec();
        bytes.extend(SmallRecord::new(&record, &[b"??"]).unwrap().bytes());
        bytes.resize(4096, 0);
        let vfs = MemoryVfs::new(1);
        vfs.write_file(Path::new("/7"), &bytes).unwrap();
        vfs
    }

    #[test]
    fn replay_may_begin_at_a_record_and_where_nothing_was_written() {
        let vfs = log_with(RecordKind::Noop as u8);
        let may = |offset| may_begin_at(&*vfs, Path::new("/7"), FileNumber(7), offset).unwrap();
        let end = FILE_HEADER_BYTES + crate::format::record_bytes(2);
        assert!(may(FILE_HEADER_BYTES) && may(end) && may(4096));
        for offset in [0, FILE_HEADER_BYTES - 8, FILE_HEADER_BYTES + 8, end - 8, end - 1, 4097, u64::MAX] {
            assert!(!may(offset), "{offset}");
        }
        vfs.write_file(Path::new("/7"), &[]).unwrap();
        assert!(may(0) && !may(4096));
    }

    #[test]
    fn a_record_of_an_unknown_type_stops_replay_in_every_mode() {
        for mode in [RecoveryMode::PointInTime, RecoveryMode::SkipAnyCorruptedRecords] {
            let options = ReplayOptions { number: FileNumber(7), mode, ..ReplayOptions::default() };
            let run = |kind| replay(&*log_with(kind), Path::new("/7"), &options, &mut |_| Ok(()));
            let error = run(99).unwrap_err();
            assert_eq!((error.kind(), error.offset()), (base::ErrorKind::Unsupported, Some(FILE_HEADER_BYTES)));
            assert_eq!(error.message(), "a log record of the unknown type 99");
            assert_eq!(run(RecordKind::Rollback as u8).unwrap().reason, EndReason::Clean);
        }
    }
}
