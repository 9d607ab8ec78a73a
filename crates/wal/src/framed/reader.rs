//! Reads records in RocksDB's framing, and reports how and where they end.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::checksum::{crc32c, crc32c_append, unmask};
use base::coding::Reader;
use base::{Error, ErrorKind, Result};
use vfs::{IoClass, RandomFile, Vfs};

use super::{BLOCK_BYTES, FramedEnd, FramedRecord, HEADER_BYTES, Part, RECYCLABLE_HEADER_BYTES, special};

/// Yields the records of one file in order. The file is not changed. Bytes appended after [`open`](FramedReader::open)
/// are not read.
pub struct FramedReader {
    file: Arc<dyn RandomFile>,
    path: PathBuf,
    class: IoClass,
    /// The low half of the log's number, as in recyclable headers.
    log_number: Option<u32>,
    file_len: u64,
    /// The current block's bytes, as far as the file has them.
    block: Vec<u8>,
    block_start: u64,
    /// Offset of the next header in `block`.
    at: usize,
    state: State,
    /// Set after damage: fragments without a first fragment are skipped.
    resyncing: bool,
    /// A recyclable record with a valid checksum was read. Invalid bytes may then be remains of an earlier log.
    recycled: bool,
    good_end: u64,
    predecessor: Option<Predecessor>,
}

/// What a log of RocksDB's tells of the one before it, with `track_and_verify_wals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Its number.
    pub log: u64,
    /// Its file's size.
    pub bytes: u64,
    /// The number with which its last record begins.
    pub last: u64,
}

enum State {
    Reading,
    Ended(FramedEnd),
    /// `error` is repeated until the damage is skipped. `resume` is the offset to continue at; `None` if reading cannot
    /// continue.
    Stopped {
        error: Error,
        resume: Option<u64>,
    },
}

/// The result of reading at one position.
enum Step {
    Fragment(Fragment),
    End(FramedEnd),
    Damage(Damage),
    Unsupported { offset: u64, what: String },
}

struct Fragment {
    offset: u64,
    part: Part,
    /// In the current block.
    payload: Range<usize>,
}

struct Damage {
    offset: u64,
    what: &'static str,
    resume: u64,
}

/// A header whose fields and payload fit the block.
struct Header {
    kind: u8,
    crc: u32,
    log_number: Option<u32>,
    payload: Range<usize>,
}

impl FramedReader {
    /// `log_number`: the number in the WAL's file name, checked against recyclable records; `None` for a MANIFEST.
    pub fn open(vfs: &dyn Vfs, path: &Path, log_number: Option<u64>, class: IoClass) -> Result<Self> {
        let file = vfs.open(path)?;
        let file_len = file.len()?;
        let mut reader = FramedReader {
            file,
            path: path.to_owned(),
            class,
            log_number: log_number.map(|number| number as u32),
            file_len,
            block: Vec::new(),
            block_start: 0,
            at: 0,
            state: State::Reading,
            resyncing: false,
            recycled: false,
            good_end: 0,
            predecessor: None,
        };
        reader.load(0)?;
        Ok(reader)
    }

    /// Goes on at `offset`, the start of a record or the file's end.
    ///
    /// # Errors
    /// `Io`.
    pub fn go_on_at(&mut self, offset: u64) -> Result<()> {
        self.good_end = offset;
        self.load(offset)
    }

    /// The next whole record. `None` at the end; [`end`](FramedReader::end) gives the reason.
    ///
    /// # Errors
    /// `Corruption` with its offset: damage, and the file may continue after it. Repeated until
    /// [`skip_damage`](FramedReader::skip_damage). `Unsupported`: a feature not supported by this version.
    #[expect(clippy::should_implement_trait, reason = "an iterator of results would be read past its first error")]
    pub fn next(&mut self) -> Result<Option<FramedRecord>> {
        match &self.state {
            State::Reading => {}
            State::Ended(_) => return Ok(None),
            State::Stopped { error, .. } => return Err(error.clone()),
        }
        let mut partial: Option<FramedRecord> = None;
        loop {
            let fragment = match self.step()? {
                Step::Fragment(fragment) => fragment,
                Step::End(end) => {
                    let torn = partial.map(|record| FramedEnd::Torn { offset: record.offset });
                    self.state = State::Ended(torn.unwrap_or(end));
                    return Ok(None);
                }
                Step::Damage(damage) => return Err(self.stop(damage)),
                Step::Unsupported { offset, what } => {
                    let error = Error::unsupported(what).at_path(&self.path).at_offset(offset);
                    self.state = State::Stopped { error: error.clone(), resume: None };
                    return Err(error);
                }
            };
            match self.assemble(fragment, &mut partial) {
                Ok(Some(record)) => {
                    self.good_end = self.position();
                    return Ok(Some(record));
                }
                Ok(None) => {}
                Err(damage) => return Err(self.stop(damage)),
            }
        }
    }

    /// Why `next` returned `None`; `None` until then.
    pub fn end(&self) -> Option<FramedEnd> {
        match self.state {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Skips the damage reported by `next`. Whole records may follow.
    ///
    /// # Errors
    /// The error of `next`, if reading cannot continue behind it.
    pub fn skip_damage(&mut self) -> Result<()> {
        if let State::Stopped { error, resume } = &self.state {
            let resume = resume.ok_or_else(|| error.clone())?;
            self.state = State::Reading;
            self.resyncing = true;
            self.load(resume)?;
        }
        Ok(())
    }

    /// End of the last whole record.
    pub fn good_end(&self) -> u64 {
        self.good_end
    }

    /// The offset of an end.
    pub fn offset_of(&self, end: FramedEnd) -> u64 {
        match end {
            FramedEnd::Clean => self.file_len,
            FramedEnd::Torn { offset }
            | FramedEnd::Zeros { offset }
            | FramedEnd::OtherLog { offset }
            | FramedEnd::Damaged { offset } => offset,
        }
    }

    /// What the log tells of the one before it, as far as it was read.
    pub fn predecessor(&self) -> Option<Predecessor> {
        self.predecessor
    }

    /// The log's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn position(&self) -> u64 {
        self.block_start + self.at as u64
    }

    fn stop(&mut self, damage: Damage) -> Error {
        let error = Error::corruption(damage.what).at_path(&self.path).at_offset(damage.offset);
        self.state = State::Stopped { error: error.clone(), resume: Some(damage.resume) };
        error
    }

    /// Adds a fragment to the partial record, and returns the record if complete.
    fn assemble(
        &mut self,
        fragment: Fragment,
        partial: &mut Option<FramedRecord>,
    ) -> Result<Option<FramedRecord>, Damage> {
        let Fragment { offset, part, payload } = fragment;
        let bytes = self.block.get(payload).unwrap_or_default();
        match (part, partial.take()) {
            (Part::Full | Part::First, Some(cut)) => {
                Err(Damage { offset: cut.offset, what: "a record lacks its last fragment", resume: offset })
            }
            (Part::Full, None) => {
                self.resyncing = false;
                Ok(Some(FramedRecord { offset, payload: bytes.to_vec(), follows_damage: false }))
            }
            (Part::First, None) => {
                self.resyncing = false;
                *partial = Some(FramedRecord { offset, payload: bytes.to_vec(), follows_damage: false });
                Ok(None)
            }
            (Part::Middle | Part::Last, None) if self.resyncing => Ok(None),
            (Part::Middle | Part::Last, None) => {
                Err(Damage { offset, what: "a fragment lacks the start of its record", resume: self.position() })
            }
            (_, Some(mut record)) => {
                if record.payload.len() + bytes.len() > u32::MAX as usize {
                    let what = "a record is longer than any that can be written";
                    return Err(Damage { offset: record.offset, what, resume: self.position() });
                }
                record.payload.extend_from_slice(bytes);
                if part == Part::Last {
                    return Ok(Some(record));
                }
                *partial = Some(record);
                Ok(None)
            }
        }
    }

    /// Reads up to the next fragment. What ends a log is damage where a later record of the log follows: remains of an earlier
    /// log, and a write that was cut off, are behind all its records. Reading goes on at that record. Where none follows in a
    /// recycled file, the log ends: with a write that was cut off, if the header has the log's number.
    fn step(&mut self) -> Result<Step> {
        let step = self.read_step()?;
        let (offset, what) = match &step {
            Step::End(FramedEnd::Torn { offset }) => (*offset, "a length reaches past the end of the file"),
            Step::End(FramedEnd::OtherLog { offset }) => (*offset, "another log's record stands among the log's own"),
            Step::Damage(damage) if self.recycled => (damage.offset, damage.what),
            _ => return Ok(step),
        };
        let own = self.log_number.map(u32::to_le_bytes);
        let is_own = own
            .as_ref()
            .is_some_and(|own| self.block.get(self.at + HEADER_BYTES..).is_some_and(|at| at.starts_with(own)));
        Ok(match self.find_record(offset + 1)? {
            Some(resume) => Step::Damage(Damage { offset, what, resume }),
            None if !self.recycled => step,
            None if is_own => Step::End(FramedEnd::Torn { offset }),
            None => Step::End(FramedEnd::OtherLog { offset }),
        })
    }

    /// Where the first whole fragment from `from` on starts that begins a record of this log. Lengths are not trusted, so every
    /// offset is tried. Moves the reader.
    fn find_record(&mut self, from: u64) -> Result<Option<u64>> {
        let mut start = from;
        while start < self.file_len {
            self.load(start)?;
            while self.at < self.block.len() {
                if self.begins_record() {
                    return Ok(Some(self.position()));
                }
                self.at += 1;
            }
            start = self.next_block();
        }
        Ok(None)
    }

    /// Whether a whole fragment that begins a record of this log is at the current position.
    fn begins_record(&self) -> bool {
        let kinds = if self.recycled { [5, 6] } else { [1, 2] };
        let kind = self.block.get(self.at + HEADER_BYTES - 1);
        if !kind.is_some_and(|kind| kinds.contains(kind)) {
            return false;
        }
        let Ok(Some(header)) = self.parse_header() else { return false };
        let payload = self.block.get(header.payload.clone()).unwrap_or_default();
        (!self.recycled || header.log_number == self.log_number) && header.crc == checksum(&header, payload)
    }

    /// Reads up to the next fragment, as if only the bytes before it were known.
    fn read_step(&mut self) -> Result<Step> {
        loop {
            if BLOCK_BYTES - self.at < HEADER_BYTES {
                self.load(self.next_block())?;
            }
            let offset = self.position();
            if offset >= self.file_len {
                return Ok(Step::End(FramedEnd::Clean));
            }
            let header = match self.parse_header() {
                Ok(Some(header)) => header,
                Ok(None) => match self.pass_zeros()? {
                    Some(Step::Damage(_)) if self.ends_in_lost_pages(offset, offset + HEADER_BYTES as u64)? => {
                        return Ok(Step::End(FramedEnd::Torn { offset }));
                    }
                    Some(step) => return Ok(step),
                    None => continue,
                },
                Err(step) => return Ok(step),
            };
            let payload = self.block.get(header.payload.clone()).unwrap_or_default();
            let is_whole = header.crc == checksum(&header, payload);
            let is_other = header.log_number.is_some_and(|number| self.log_number.is_some_and(|own| own != number));
            if is_other && (is_whole || self.recycled) {
                return Ok(Step::End(FramedEnd::OtherLog { offset }));
            }
            if !is_whole {
                let damage = self.damage("a checksum does not match");
                let end = self.block_start + header.payload.end as u64;
                return Ok(match self.ends_in_lost_pages(offset, end)? {
                    true => Step::End(FramedEnd::Torn { offset }),
                    false => damage,
                });
            }
            self.recycled |= header.log_number.is_some();
            self.at = header.payload.end;
            let part = match header.kind {
                1 | 5 => Part::Full,
                2 | 6 => Part::First,
                3 | 7 => Part::Middle,
                4 | 8 => Part::Last,
                special::PREDECESSOR | special::PREDECESSOR_RECYCLABLE => {
                    let mut fields = Reader::new(payload);
                    let mut field = || fields.u64("a log's predecessor").ok();
                    let read = field().zip(field()).zip(field());
                    self.predecessor = read.map(|((log, bytes), last)| Predecessor { log, bytes, last });
                    continue;
                }
                kind => match refusal(kind, payload) {
                    Some(what) => return Ok(Step::Unsupported { offset, what }),
                    None => continue,
                },
            };
            return Ok(Step::Fragment(Fragment { offset, part, payload: header.payload }));
        }
    }

    /// Decodes the header at the current position. `None` if it is zeros.
    fn parse_header(&self) -> Result<Option<Header>, Step> {
        let torn = || Step::End(FramedEnd::Torn { offset: self.position() });
        let rest = self.block.get(self.at..).unwrap_or_default();
        let Some((fixed, after)) = rest.split_first_chunk::<HEADER_BYTES>() else {
            return if rest.iter().all(|&byte| byte == 0) { Ok(None) } else { Err(torn()) };
        };
        let [c0, c1, c2, c3, l0, l1, kind] = *fixed;
        let len = usize::from(u16::from_le_bytes([l0, l1]));
        if kind == special::ZERO && len == 0 {
            return Ok(None);
        }
        let recyclable = matches!(kind, 5..=8 | special::TIMESTAMP_SIZES_RECYCLABLE | special::PREDECESSOR_RECYCLABLE);
        let header_len = if recyclable { RECYCLABLE_HEADER_BYTES } else { HEADER_BYTES };
        let start = self.at + header_len;
        if start + len > self.block.len() {
            // In the last block, a cut-off write looks the same as a damaged length.
            let is_last_block = self.next_block() >= self.file_len;
            return Err(if is_last_block { torn() } else { self.damage("a length reaches past its block") });
        }
        let log_number = after.first_chunk().filter(|_| recyclable).map(|bytes| u32::from_le_bytes(*bytes));
        let crc = unmask(u32::from_le_bytes([c0, c1, c2, c3]));
        Ok(Some(Header { kind, crc, log_number, payload: start..start + len }))
    }

    /// Classifies a header of zeros: unused space at the file's end, a recyclable writer's padding at a block's end, or
    /// a gap with data behind it. `None` if padding was skipped.
    fn pass_zeros(&mut self) -> Result<Option<Step>> {
        let offset = self.position();
        let is_padding = BLOCK_BYTES - self.at < RECYCLABLE_HEADER_BYTES;
        let next_block = self.next_block();
        loop {
            let rest = self.block.get(self.at..).unwrap_or_default();
            if rest.iter().any(|&byte| byte != 0) {
                let what = "zeros where a record should start";
                return Ok(Some(Step::Damage(Damage { offset, what, resume: next_block.max(self.block_start) })));
            }
            self.load(self.next_block())?;
            if self.block.is_empty() {
                return Ok(Some(Step::End(FramedEnd::Zeros { offset })));
            }
            if is_padding {
                return Ok(None);
            }
        }
    }

    /// Whether a log's bytes are zeros up to the file's end, from a page boundary on that lies behind `offset` and before `end`: a power
    /// loss took pages of a record that was not synced, and left the file's size. Moves the reader to `offset`.
    fn ends_in_lost_pages(&mut self, offset: u64, end: u64) -> Result<bool> {
        const PAGE_BYTES: u64 = 4 << 10;
        // A MANIFEST's edits are synced one by one.
        if self.log_number.is_none() || self.file_len <= (offset / PAGE_BYTES + 1) * PAGE_BYTES {
            return Ok(false);
        }
        let mut zeros_from = self.file_len;
        loop {
            self.load((zeros_from - 1) / BLOCK_BYTES as u64 * BLOCK_BYTES as u64)?;
            let last = self.block.iter().rposition(|&byte| byte != 0);
            zeros_from = self.block_start + last.map_or(0, |last| last as u64 + 1);
            if last.is_some() || zeros_from <= offset {
                break;
            }
        }
        self.load(offset)?;
        let page = zeros_from.max(offset + 1).next_multiple_of(PAGE_BYTES);
        Ok(page < end.min(self.file_len))
    }

    /// Damage makes the following lengths of the block untrustworthy, so reading resumes at the next block.
    fn damage(&self, what: &'static str) -> Step {
        Step::Damage(Damage { offset: self.position(), what, resume: self.next_block() })
    }

    fn next_block(&self) -> u64 {
        self.block_start + BLOCK_BYTES as u64
    }

    /// Reads the block of `offset`, and moves to `offset`.
    fn load(&mut self, offset: u64) -> Result<()> {
        self.at = (offset % BLOCK_BYTES as u64) as usize;
        self.block_start = offset - self.at as u64;
        let len = self.file_len.saturating_sub(self.block_start).min(BLOCK_BYTES as u64) as usize;
        self.block.clear();
        self.block.resize(len, 0);
        if len > 0 && self.file.read_at(self.block_start, &mut self.block, self.class)? < len {
            // A short read must never pass for the end of the log.
            self.block.clear();
            return Err(Error::new(ErrorKind::Io, "a file became shorter while it was read").at_path(&self.path));
        }
        Ok(())
    }
}

/// The expected crc of a header, unmasked.
fn checksum(header: &Header, payload: &[u8]) -> u32 {
    let mut crc = crc32c(&[header.kind]);
    if let Some(number) = header.log_number {
        crc = crc32c_append(crc, &number.to_le_bytes());
    }
    crc32c_append(crc, payload)
}

/// Why a record of a special type cannot be skipped; `None` if it can.
fn refusal(kind: u8, payload: &[u8]) -> Option<String> {
    match kind {
        special::SET_COMPRESSION => {
            Some("the log is compressed (wal_compression); replay it with the version that wrote it".into())
        }
        special::TIMESTAMP_SIZES | special::TIMESTAMP_SIZES_RECYCLABLE => timestamps_refusal(payload),
        kind if kind & special::IGNORABLE_BIT != 0 => None,
        kind => Some(format!("a log record of the unknown type {kind}")),
    }
}

/// A list of pairs, family u32 and timestamp bytes u16.
fn timestamps_refusal(payload: &[u8]) -> Option<String> {
    let mut reader = Reader::new(payload);
    while !reader.is_empty() {
        let (Ok(family), Ok(size)) = (reader.u32("family"), reader.bytes(2, "timestamp size")) else {
            return Some("a malformed list of timestamp sizes".into());
        };
        if size != [0, 0] {
            return Some(format!("family {family} was written with user-defined timestamps"));
        }
    }
    None
}
