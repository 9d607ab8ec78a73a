//! A log being written: space is reserved in order under the commit lock, filled in parallel outside it, published in
//! order, and synced by whoever needs it.
//!
//! Keeps C1 (reservations follow each other in the order they are asked for), C3 (reserving does no I/O and waits for
//! nobody), C4 (a reservation lies in space allocated before) and D4 (a failed sync is never tried again).
//!
//! Three marks, each growing only: `synced <= published <= tail <= allocated <= capacity`.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Error, ErrorKind, FileNumber, Result};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use vfs::Vfs;

use crate::backing::{Backing, BackingChoice};
use crate::database_id::DatabaseId;
use crate::format::{
    FILE_HEADER_BYTES, FileHeader, Frontiers, PAYLOAD_BYTES_MAX, RECORD_HEADER_BYTES, RecordHeader, RecordKind,
    SmallRecord, page_cache_hash, record_bytes,
};

/// The unit in which files are allocated and mapped.
const PAGE_BYTES: u64 = 4 << 10;

/// Pages are made present so many bytes at a time: no longer in the way of whoever maps or unmaps something than it takes to
/// clear some tens of pages.
const PRESENT_STEP_BYTES: u64 = 256 << 10;

/// Pages that were written leave the address space so many bytes at a time: each time costs an interrupt on all processors.
const RELEASE_STEP_BYTES: u64 = 1 << 20;

/// Kept free behind every reservation, so that a log can always be sealed.
const END_RECORD_BYTES: u64 = RECORD_HEADER_BYTES as u64;

/// Space that a log of few records takes.
const EXTENT_BYTES: u64 = 64 << 10;

/// A log of 64 MiB takes some twenty extents; no more than this is allocated in vain.
const EXTENT_MAX_BYTES: u64 = 4 << 20;

/// How a log is created.
#[derive(Clone, Copy, Debug)]
pub struct LogConfig {
    /// The most that the file may grow to. Rounded up to pages.
    pub capacity_bytes: u64,
    /// How much is allocated at first. Rounded up to pages. Each later extent is as long as all before it.
    pub extent_bytes: u64,
    /// The longest of the later extents.
    pub extent_max_bytes: u64,
    pub backing: BackingChoice,
    /// What is known when the log is created, for the recovery of the logs before it.
    pub earlier: Frontiers,
    /// The log before this one, for recovery to notice if it is gone; `None` where nobody needs an earlier log.
    pub predecessor: Option<FileNumber>,
    /// Whose log it is.
    pub database: DatabaseId,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig {
            capacity_bytes: 64 << 20,
            extent_bytes: EXTENT_BYTES,
            extent_max_bytes: EXTENT_MAX_BYTES,
            backing: BackingChoice::Auto,
            earlier: Frontiers::default(),
            predecessor: None,
            database: DatabaseId::UNKNOWN,
        }
    }
}

/// Space for one record, to be filled. One that is never filled ends the log there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    offset: u64,
    payload_len: u32,
}

impl Reservation {
    /// Where the record starts.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the payload starts, for references to values in it.
    pub fn payload_offset(&self) -> u64 {
        self.offset + RECORD_HEADER_BYTES as u64
    }

    /// Where the next record starts: what is published once the record is whole.
    pub fn end(&self) -> u64 {
        self.offset + record_bytes(u64::from(self.payload_len))
    }
}

/// A live log. Shared by its writers; every method may be called from any thread.
pub struct LogFile {
    path: PathBuf,
    number: FileNumber,
    seed: u32,
    capacity: u64,
    /// The shortest and the longest extent.
    extents: RangeInclusive<u64>,
    backing: Backing,
    /// The end of what is reserved, with [`SEALED`]. Written under the commit lock.
    tail: CachePadded<AtomicU64>,
    /// Everything below is whole. Written by publishers, read by appenders.
    published: CachePadded<AtomicU64>,
    synced: AtomicU64,
    /// Written under `growth`.
    allocated: AtomicU64,
    /// Bytes from the start that were made present before, or while, they were written.
    populated: AtomicU64,
    /// Bytes from the start, whole pages, that were let go by [`release_behind`](LogFile::release_behind).
    released: AtomicU64,
    growth: Mutex<()>,
    /// Held during a sync: one that fails must not be followed by another that succeeds (D4). Holds the failure.
    sync: Mutex<Option<Error>>,
    /// `sync` holds a failure.
    has_failed: AtomicBool,
}

/// A bit of `tail`: no more reservations.
const SEALED: u64 = 1 << 63;

impl LogFile {
    /// Creates the file, allocates its first extent, and writes and syncs its header, so that a log that holds a
    /// record never lacks it. The directory entry is for the caller to sync.
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `InvalidArgument` where the file exists, `Unsupported` where a mapping was asked for and the
    /// file system cannot be trusted with one.
    pub fn create(vfs: &dyn Vfs, path: &Path, number: FileNumber, config: LogConfig) -> Result<LogFile> {
        let capacity = config.capacity_bytes.clamp(PAGE_BYTES, SEALED / 2).next_multiple_of(PAGE_BYTES);
        let first = config.extent_bytes.clamp(PAGE_BYTES, capacity).next_multiple_of(PAGE_BYTES);
        let salt = vfs.random_u64();
        let backing = Backing::create(vfs, path, config.backing, capacity)?;
        let header = FileHeader {
            number: number.0,
            page_cache: page_cache_hash(vfs, path),
            salt,
            earlier: config.earlier,
            predecessor: config.predecessor.unwrap_or_default().0,
            database: config.database,
        };
        let log = LogFile {
            path: path.to_owned(),
            number,
            seed: header.seed(),
            capacity,
            extents: first..=config.extent_max_bytes.max(first),
            backing,
            tail: CachePadded::new(AtomicU64::new(FILE_HEADER_BYTES)),
            published: CachePadded::new(AtomicU64::new(FILE_HEADER_BYTES)),
            synced: AtomicU64::new(FILE_HEADER_BYTES),
            allocated: AtomicU64::new(0),
            populated: AtomicU64::new(0),
            released: AtomicU64::new(0),
            growth: Mutex::new(()),
            sync: Mutex::new(None),
            has_failed: AtomicBool::new(false),
        };
        log.begin(&header).map_err(|error| {
            // Best effort: the file holds nothing, and its absence would only make trying again easier.
            drop(vfs.remove_file(path));
            error.at_path(path)
        })?;
        Ok(log)
    }

    fn begin(&self, header: &FileHeader) -> Result<()> {
        self.allocate_through(*self.extents.start())?; // all of it: a log may be made for one record
        self.backing.write(0, &header.encode())?;
        self.backing.sync()
    }

    /// Takes space for a record of `payload_len` bytes behind all others. `None` where the allocated space does not
    /// suffice ([`ensure`](LogFile::ensure) more, or go on in the next log) or the log is sealed.
    ///
    /// Called under the commit lock, which makes the order of records that of sequence numbers (C1, C3).
    #[inline]
    pub fn try_reserve(&self, payload_len: usize) -> Option<Reservation> {
        let payload_len = payload_len as u64;
        if payload_len > PAYLOAD_BYTES_MAX {
            return None;
        }
        let allocated = self.allocated.load(Ordering::Acquire);
        let taken = record_bytes(payload_len);
        let offset = self.advance_tail(|tail| {
            let end = tail.checked_add(taken)?;
            (end.checked_add(END_RECORD_BYTES)? <= allocated).then_some(end)
        })?;
        Some(Reservation { offset, payload_len: payload_len as u32 })
    }

    /// Closes the log to reservations and takes space for its last record, which the caller appends, with kind
    /// [`End`](RecordKind::End), and publishes before anything in the next log is. `None` where it is sealed already.
    ///
    /// Called under the commit lock. When a sealed log is dropped, space allocated ahead is given back.
    pub fn seal(&self) -> Option<Reservation> {
        let offset = self.advance_tail(|tail| Some((tail + END_RECORD_BYTES) | SEALED))?;
        Some(Reservation { offset, payload_len: 0 })
    }

    #[inline]
    fn advance_tail(&self, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let unless_sealed = |tail: u64| if tail & SEALED == 0 { next(tail) } else { None };
        self.tail.fetch_update(Ordering::Relaxed, Ordering::Relaxed, unless_sealed).ok()
    }

    /// Makes room, off the lock, so that reserving `payload_len` bytes next would succeed. `false` where the capacity
    /// does not allow it, or the log is sealed: the next log has to take over.
    ///
    /// # Errors
    /// `NoSpace`, `Io`: the log stays as it was.
    pub fn ensure(&self, payload_len: usize) -> Result<bool> {
        let payload_len = payload_len as u64;
        let taken = record_bytes(payload_len.min(PAYLOAD_BYTES_MAX)) + END_RECORD_BYTES;
        let needed = self.tail().saturating_add(taken);
        if payload_len > PAYLOAD_BYTES_MAX || needed > self.capacity || self.is_sealed() {
            return Ok(false);
        }
        self.allocate_through(needed)?;
        Ok(true)
    }

    /// Allocates the next extents, so that `bytes` behind the tail can be reserved without a wait. For a background job.
    ///
    /// # Errors
    /// As of [`ensure`](LogFile::ensure).
    pub fn allocate_ahead(&self, bytes: u64) -> Result<()> {
        let wanted = self.tail().saturating_add(bytes).min(self.capacity);
        if self.is_sealed() { Ok(()) } else { self.allocate_through(wanted) }
    }

    /// Allocates at least `end` bytes, within the capacity; only these where the disk has no room for a whole extent.
    fn allocate_through(&self, end: u64) -> Result<()> {
        if end <= self.allocated.load(Ordering::Acquire) {
            return Ok(());
        }
        let _growing = self.growth.lock();
        let allocated = self.allocated.load(Ordering::Acquire);
        if end <= allocated || self.is_sealed() {
            return Ok(());
        }
        let extent = allocated.clamp(*self.extents.start(), *self.extents.end());
        let whole = |end: u64| end.next_multiple_of(PAGE_BYTES).min(self.capacity);
        let (extended, least) = (whole(end.max(allocated + extent)), whole(end));
        let mut to = extended;
        let mut made = self.backing.allocate(allocated, to);
        if extended > least && made.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) {
            to = least;
            made = self.backing.allocate(allocated, to);
        }
        made.map_err(|error| error.at_path(&self.path))?;
        self.allocated.store(to, Ordering::Release);
        Ok(())
    }

    /// Waits for whoever allocates space in a sealed log; nobody begins.
    pub fn wait_for_growth(&self) {
        debug_assert!(self.is_sealed(), "others would grow it again");
        drop(self.growth.lock());
    }

    /// Bytes allocated and not reserved yet.
    pub fn room_ahead(&self) -> u64 {
        self.allocated.load(Ordering::Acquire).saturating_sub(self.tail() + END_RECORD_BYTES)
    }

    /// Makes the pages of the next `bytes` allocated bytes present, so that appends do not fault; step by step, and further
    /// as the log grows meanwhile. For a background job.
    pub fn populate_ahead(&self, bytes: u64) {
        loop {
            let from = self.populated.load(Ordering::Relaxed).max(self.tail());
            let wanted = self.tail().saturating_add(bytes).min(self.allocated.load(Ordering::Acquire));
            if from >= wanted || self.is_sealed() {
                return;
            }
            let to = (from + 1).next_multiple_of(PRESENT_STEP_BYTES).min(wanted.next_multiple_of(PAGE_BYTES));
            self.backing.populate(from, to - from);
            self.populated.fetch_max(to, Ordering::Relaxed);
        }
    }

    /// Takes what is published off the address space, where there is enough of it: nobody appends there any more, whoever
    /// reads there has its pages mapped again, and the kernel need not interrupt the writers when it writes them back. For a
    /// background job.
    pub fn release_behind(&self) {
        let (from, to) = (self.released.load(Ordering::Relaxed), self.published() & !(PAGE_BYTES - 1));
        if to.saturating_sub(from) >= RELEASE_STEP_BYTES || (from < to && self.is_sealed()) {
            self.backing.release(from, to - from);
            self.released.fetch_max(to, Ordering::Relaxed);
        }
    }

    /// Fills a reservation with the bytes of `parts`, one behind the other. Many may do so at once; each fills
    /// its own.
    ///
    /// # Errors
    /// `Io` (positional writes only): what lies there is unknown, and recovery would end the log there.
    ///
    /// # Panics
    /// Where the parts are not as long as what was reserved.
    #[inline]
    pub fn append(&self, reservation: &Reservation, kind: RecordKind, parts: &[&[u8]]) -> Result<()> {
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        assert_eq!(len, u64::from(reservation.payload_len), "a record must fill its reservation");
        let header = RecordHeader {
            len: reservation.payload_len,
            kind: kind as u8,
            synced: self.synced.load(Ordering::Relaxed),
            published: self.published.load(Ordering::Relaxed),
        };
        let header = header.encode(self.seed, reservation.offset);
        let written = match SmallRecord::new(&header, parts) {
            Some(record) => self.backing.write(reservation.offset, record.bytes()),
            None => self.backing.write_parts(reservation.offset, &header.with_payload(parts), parts),
        };
        written.map_err(|error| error.at_path(&self.path).at_offset(reservation.offset))
    }

    /// Notes that everything below `end` is whole. Called in order, so that nothing unfinished lies below.
    #[inline]
    pub fn publish(&self, end: u64) {
        debug_assert!(end <= self.tail(), "published beyond what is reserved");
        self.published.fetch_max(end, Ordering::Release);
    }

    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Makes everything that is published at the call survive a power loss, and returns the synced frontier. Calls
    /// that wait behind another's sync share the next one.
    ///
    /// # Errors
    /// The first failure, again for every later call (D4): what of the unsynced bytes is on disk is unknown.
    pub fn sync(&self) -> Result<u64> {
        let wanted = self.published();
        let mut failed = self.sync.lock();
        if let Some(error) = &*failed {
            return Err(error.clone());
        }
        if self.synced() < wanted {
            let (from, frontier) = (self.synced(), self.published());
            // Else the kernel interrupts the writers once for each page that it write-protects.
            self.backing.release(from, frontier.saturating_sub(from));
            if let Err(error) = self.backing.sync() {
                let error = error.at_path(&self.path);
                *failed = Some(error.clone());
                self.has_failed.store(true, Ordering::Release);
                return Err(error);
            }
            self.synced.fetch_max(frontier, Ordering::Release);
        }
        Ok(self.synced())
    }

    pub fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Copies published bytes out.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the published frontier; after a failed sync its error, beyond the synced one (D4).
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let end = offset.saturating_add(buf.len() as u64);
        if end > self.synced() {
            if let Some(error) = &*self.sync.lock() {
                return Err(error.clone());
            }
            if end > self.published() {
                let message = "a log is read beyond its published end";
                return Err(Error::invalid_argument(message).at_path(&self.path).at_offset(offset));
            }
        }
        self.read_backing(offset, buf)
    }

    /// Copies bytes out that the caller knows to be written: they lie in a record whose entries are in a memtable. After a
    /// failed sync reads go on: the kernel has most of what is not on disk. The caller checks what it gets.
    ///
    /// # Errors
    /// `Io`, `Corruption`: they cannot be read.
    pub(crate) fn read_written(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if !self.has_failed.load(Ordering::Acquire) {
            return self.read_backing(offset, buf);
        }
        self.check_read(self.backing.read_file(offset, buf)?, buf)
    }

    /// The failure of a sync, where what lies before `end` may be gone with it (D4).
    pub(crate) fn failure_before(&self, end: u64) -> Option<Error> {
        if end <= self.synced() {
            return None;
        }
        self.sync.lock().clone()
    }

    fn read_backing(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check_read(self.backing.read(offset, buf)?, buf)
    }

    fn check_read(&self, count: usize, buf: &[u8]) -> Result<()> {
        if count < buf.len() {
            return Err(Error::corruption("a log is shorter than what was written").at_path(&self.path));
        }
        Ok(())
    }

    /// The end of what is reserved.
    pub fn tail(&self) -> u64 {
        self.tail.load(Ordering::Relaxed) & !SEALED
    }

    pub fn is_sealed(&self) -> bool {
        self.tail.load(Ordering::Relaxed) & SEALED != 0
    }

    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    pub fn number(&self) -> FileNumber {
        self.number
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_mapped(&self) -> bool {
        matches!(self.backing, Backing::Mapped(_))
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        // After a failed sync the file is left as it is, for whoever has to find out what it holds.
        if self.is_sealed() && self.sync.get_mut().is_none() {
            self.backing.give_back_from(self.tail());
        }
    }
}

#[cfg(test)]
mod tests;
