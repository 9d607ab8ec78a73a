//! A WAL file during recovery: finds the record at an offset, or the next record after it.
//!
//! Keeps B1 and B2: a record is valid only if both checksums match, and allocations never exceed the file's length.
//!
//! Another process may be writing the WAL. It overwrites zeros, and truncates the file behind the last record at close.
//! Written bytes never change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::checksum::crc32c_append;
use base::{Error, ErrorKind, Result};
use vfs::{IoClass, RandomFile, Vfs};

use crate::format::{ALIGNMENT, BadHeader, FILE_HEADER_BYTES, FileHeader, RecordHeader, Version};

/// Bytes read at a time, unless a record is longer.
const WINDOW_BYTES: u64 = 256 << 10;

/// Bytes read first at the tail of a WAL being written, where few are new.
const TAIL_WINDOW_BYTES: u64 = 4 << 10;

/// Bytes compared with zero at once: whole words.
const ZERO_BLOCK_BYTES: usize = 512;

pub(crate) struct LogBytes {
    file: Arc<dyn RandomFile>,
    path: PathBuf,
    len: u64,
    /// Bytes from this offset on are hidden.
    cut: u64,
    /// Seed of the checksums. Set when the header is read.
    version: Version,
    seed: u32,
    window_start: u64,
    window: Vec<u8>,
    /// Bytes of the next window. Doubles up to [`WINDOW_BYTES`].
    next_window_bytes: u64,
}

/// The header of a WAL, as read.
pub(crate) enum Header {
    Valid(FileHeader),
    Bad(BadHeader),
}

/// A whole record at some offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub header: RecordHeader,
    /// Start of the next record.
    pub end: u64,
}

/// A range without a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    /// Start of the next record; `None` if no record follows.
    pub next: Option<u64>,
    /// True if any byte up to `next`, or to the file's end, is not zero.
    pub has_data: bool,
}

impl LogBytes {
    pub fn open(vfs: &dyn Vfs, path: &Path) -> Result<Self> {
        let file = vfs.open(path)?;
        let len = file.len()?;
        Ok(LogBytes {
            file,
            path: path.to_owned(),
            len,
            cut: u64::MAX,
            version: Version::V2,
            seed: 0,
            window_start: 0,
            window: Vec::new(),
            next_window_bytes: WINDOW_BYTES,
        })
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Hides the bytes from `end` on.
    pub fn cut_at(&mut self, end: u64) {
        self.cut = end;
        self.len = self.len.min(end);
    }

    /// Drops the buffered window and rereads the length, in case a writer has continued.
    pub fn refresh(&mut self) -> Result<()> {
        self.window.clear();
        self.len = self.file.len()?.min(self.cut);
        Ok(())
    }

    /// As [`refresh`](Self::refresh), for a reader that waits for the next record.
    pub fn refresh_for_tail(&mut self) -> Result<()> {
        self.next_window_bytes = TAIL_WINDOW_BYTES;
        self.refresh()
    }

    /// Reads the file's header. The header is synced before the first record. So a damaged header without data behind
    /// it was never completed, and the WAL counts as blank.
    pub fn header(&mut self) -> Result<Header> {
        let len = self.len.min(FILE_HEADER_BYTES) as usize;
        let bad = match FileHeader::decode(self.get(0, len)?.unwrap_or_default()) {
            Ok(header) => {
                (self.version, self.seed) = (header.version, header.seed());
                return Ok(Header::Valid(header));
            }
            Err(bad) => bad,
        };
        if matches!(bad, BadHeader::Version(_)) {
            return Ok(Header::Bad(bad));
        }
        let has_data_behind = self.gap_from(FILE_HEADER_BYTES, |_| false)?.has_data;
        Ok(Header::Bad(if has_data_behind { BadHeader::Damaged } else { BadHeader::Blank }))
    }

    /// The whole record that starts at `offset`, if there is one.
    pub fn record_at(&mut self, offset: u64) -> Result<Option<Found>> {
        let (version, seed) = (self.version, self.seed);
        let header_bytes = version.header_bytes();
        let Some(bytes) = self.get(offset, header_bytes)? else { return Ok(None) };
        let decoded = RecordHeader::decode(bytes, version, seed, offset);
        let Some((header, crc, payload_crc)) = decoded else { return Ok(None) };
        let payload_offset = offset + header_bytes as u64;
        let end = offset + version.record_bytes(u64::from(header.len));
        let Some(bytes) = self.get(payload_offset, (end - payload_offset) as usize)? else { return Ok(None) };
        let Some((payload, padding)) = bytes.split_at_checked(header.len as usize) else { return Ok(None) };
        let is_whole = crc32c_append(crc, payload) == payload_crc && padding.iter().all(|&byte| byte == 0);
        Ok(is_whole.then_some(Found { header, end }))
    }

    /// Start of the payload of the record at `offset`.
    pub fn payload_offset(&self, offset: u64) -> u64 {
        offset + self.version.header_bytes() as u64
    }

    /// The payload of the record at `offset`; `None` if the file is too short.
    pub fn payload(&mut self, offset: u64, len: u32) -> Result<Option<&[u8]>> {
        self.get(self.payload_offset(offset), len as usize)
    }

    /// True if a record ends at `offset`, or the first one starts there. Searches backwards for the start of the last
    /// record before it.
    pub fn ends_at(&mut self, offset: u64) -> Result<bool> {
        if offset > self.len || !offset.is_multiple_of(ALIGNMENT) {
            return Ok(false);
        }
        let (mut at, mut start) = (offset, offset);
        while at > FILE_HEADER_BYTES {
            if at == start {
                start = start.saturating_sub(WINDOW_BYTES / 2).max(FILE_HEADER_BYTES);
            }
            self.get(start, (at - start) as usize)?; // else the window would begin at each offset
            at -= ALIGNMENT;
            if let Some(found) = self.record_at(at)? {
                return Ok(found.end == offset);
            }
        }
        Ok(offset == FILE_HEADER_BYTES)
    }

    /// Searches for the next record after `offset`, where no record starts. Zeros may precede it: their number proves
    /// nothing. A search reads at most the space allocated ahead, if no record follows.
    pub fn gap_at(&mut self, offset: u64) -> Result<Gap> {
        self.gap_from(offset, |at| at > offset)
    }

    /// Scans the words from `offset` on for a record start. Only offsets accepted by `may_start` count.
    fn gap_from(&mut self, offset: u64, may_start: impl Fn(u64) -> bool) -> Result<Gap> {
        let mut has_data = false;
        let mut at = offset;
        while at < self.len {
            if let Some(zeros) = self.zeros_at(at)? {
                at += zeros;
                continue;
            }
            let len = ALIGNMENT.min(self.len - at) as usize;
            let is_zero = self.get(at, len)?.is_some_and(|word| word.iter().all(|&byte| byte == 0));
            if !is_zero {
                if may_start(at) && self.record_at(at)?.is_some() {
                    return Ok(Gap { next: Some(at), has_data });
                }
                has_data = true;
            }
            at += ALIGNMENT;
        }
        Ok(Gap { next: None, has_data })
    }

    /// Length of a run of zero blocks at `offset`, within one window; `None` if the first block has data. Most of a
    /// partly filled WAL is allocated space.
    fn zeros_at(&mut self, offset: u64) -> Result<Option<u64>> {
        let wanted = WINDOW_BYTES.min(self.len - offset) / ALIGNMENT * ALIGNMENT;
        let Some(bytes) = self.get(offset, wanted as usize)? else { return Ok(None) };
        let (blocks, _) = bytes.as_chunks::<ZERO_BLOCK_BYTES>();
        let zeros = blocks.iter().take_while(|block| **block == [0; ZERO_BLOCK_BYTES]).count();
        Ok((zeros > 0).then_some((zeros * ZERO_BLOCK_BYTES) as u64))
    }

    /// Bytes of the file; `None` if the range passes its end.
    fn get(&mut self, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        let end = offset.saturating_add(len as u64);
        if end > self.len {
            return Ok(None);
        }
        let window_end = self.window_start + self.window.len() as u64;
        if offset < self.window_start || end > window_end {
            let wanted = self.next_window_bytes.max(len as u64).min(self.len - offset) as usize;
            self.next_window_bytes = (2 * self.next_window_bytes).min(WINDOW_BYTES);
            self.window.clear();
            self.window.resize(wanted, 0);
            if self.file.read_at(offset, &mut self.window, IoClass::Log)? < wanted {
                let len_before = self.len;
                self.refresh()?;
                if self.len >= len_before {
                    // A short read must never pass for the end of the WAL.
                    let what = "a log yields less than it has";
                    return Err(Error::new(ErrorKind::Io, what).at_path(&self.path).at_offset(offset));
                }
                return self.get(offset, len); // its writer cut it
            }
            self.window_start = offset;
        }
        let from = (offset - self.window_start) as usize;
        Ok(self.window.get(from..from + len))
    }
}
