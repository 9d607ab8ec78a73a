//! A WAL being written: space is reserved in order under the commit lock, filled in parallel outside it, published in
//! order, and synced on request.
//!
//! Keeps C1 (reservations are contiguous and in call order), C3 (reserving does no I/O and never blocks), C4 (a
//! reservation lies in allocated space) and D4 (a failed sync is never retried).
//!
//! Frontiers, each only growing: `synced <= published <= tail <= allocated <= capacity`.

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::options::LogBacking;
use base::{Error, ErrorKind, FileNumber, Result};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use vfs::Vfs;

use crate::backing::Backing;
use crate::database_id::DatabaseId;
use crate::format::{
    ALIGNMENT, FILE_HEADER_BYTES, FileHeader, Frontiers, NotedManifest, PAYLOAD_BYTES_MAX, RECORD_HEADER_BYTES,
    RecordHeader, RecordKind, SmallRecord, Version, page_cache_hash, record_bytes,
};

/// Unit of allocation and mapping.
const PAGE_BYTES: u64 = 4 << 10;

/// Bytes prefaulted per call. The call holds up concurrent maps and unmaps for as long as clearing some tens of pages
/// takes.
const PRESENT_STEP_BYTES: u64 = 256 << 10;

/// Bytes unmapped per call. Each call costs an interrupt on all processors.
const RELEASE_STEP_BYTES: u64 = 1 << 20;

/// Space kept free behind every reservation, so a WAL can always be sealed.
const END_RECORD_BYTES: u64 = (RECORD_HEADER_BYTES as u64).next_multiple_of(ALIGNMENT);

/// The first extent: the space of a WAL with few records.
const EXTENT_BYTES: u64 = 64 << 10;

/// The longest extent, and so the most space allocated in vain. A WAL of 64 MiB takes some twenty extents.
const EXTENT_MAX_BYTES: u64 = 4 << 20;

/// How a WAL is created.
#[derive(Clone, Copy, Debug)]
pub struct LogConfig {
    /// Longest file. Rounded up to pages.
    pub capacity_bytes: u64,
    /// First allocation. Rounded up to pages. Each later extent is as long as all before it.
    pub extent_bytes: u64,
    /// Longest later extent.
    pub extent_max_bytes: u64,
    /// How the file is written.
    pub backing: LogBacking,
    /// Frontiers at creation, for the recovery of earlier WALs.
    pub earlier: Frontiers,
    /// The previous WAL, so recovery notices its absence; `None` if no earlier WAL is needed.
    pub predecessor: Option<FileNumber>,
    /// The database of this WAL.
    pub database: DatabaseId,
    /// How far the MANIFEST has come, so recovery notices if it loses its end.
    pub manifest: Option<NotedManifest>,
    /// The open that makes it, by a random number: the upper half of the salt. Tells copies of a database apart.
    pub session: u32,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig {
            capacity_bytes: 64 << 20,
            extent_bytes: EXTENT_BYTES,
            extent_max_bytes: EXTENT_MAX_BYTES,
            backing: LogBacking::Auto,
            earlier: Frontiers::default(),
            predecessor: None,
            database: DatabaseId::UNKNOWN,
            manifest: None,
            session: 0,
        }
    }
}

/// Reserved space for one record. A reservation left unfilled ends the WAL there at recovery.
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

    /// Start of the payload, for value references.
    pub fn payload_offset(&self) -> u64 {
        self.offset + RECORD_HEADER_BYTES as u64
    }

    /// Start of the next record, and the argument of [`publish`](LogFile::publish) once this record is whole.
    pub fn end(&self) -> u64 {
        self.offset + record_bytes(u64::from(self.payload_len))
    }
}

/// A live WAL, shared by its writers. Every method may be called from any thread.
pub struct LogFile {
    path: PathBuf,
    number: FileNumber,
    seed: u32,
    capacity: u64,
    /// Shortest and longest extent.
    extents: RangeInclusive<u64>,
    backing: Backing,
    /// End of the reserved space, with [`SEALED`]. Written under the commit lock.
    tail: CachePadded<AtomicU64>,
    /// Every record below is whole. Written by publishers, read by appenders.
    published: CachePadded<AtomicU64>,
    synced: AtomicU64,
    /// Written under `growth`.
    allocated: AtomicU64,
    /// Bytes from the start, prefaulted ahead of the writers.
    populated: AtomicU64,
    /// Bytes from the start, in whole pages, unmapped by [`release_behind`](LogFile::release_behind).
    released: AtomicU64,
    /// Bytes from the start, in whole pages, whose writeback was started.
    writeback: AtomicU64,
    growth: Mutex<()>,
    /// Held during a sync, or while writeback is started. Holds the first failure, so no later sync can succeed (D4).
    sync: Mutex<Option<Error>>,
    /// True if `sync` holds a failure.
    has_failed: AtomicBool,
}

/// A bit of `tail`: no more reservations.
const SEALED: u64 = 1 << 63;

impl LogFile {
    /// Creates the file, allocates its first extent, and writes and syncs the header before any record. The caller
    /// syncs the directory.
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `InvalidArgument` if the file exists, `Unsupported` if a mapping was requested and the file
    /// system is unsafe for mapped writes.
    pub fn create(vfs: &dyn Vfs, path: &Path, number: FileNumber, config: LogConfig) -> Result<LogFile> {
        let capacity = config.capacity_bytes.clamp(PAGE_BYTES, SEALED / 2).next_multiple_of(PAGE_BYTES);
        let first = config.extent_bytes.clamp(PAGE_BYTES, capacity).next_multiple_of(PAGE_BYTES);
        let salt = u64::from(config.session) << 32 | vfs.random_u64() >> 32;
        let backing = Backing::create(vfs, path, config.backing, capacity)?;
        let header = FileHeader {
            version: Version::V2,
            number: number.0,
            page_cache: page_cache_hash(vfs, path),
            salt,
            earlier: config.earlier,
            predecessor: config.predecessor.unwrap_or_default().0,
            database: config.database,
            manifest: config.manifest,
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
            writeback: AtomicU64::new(0),
            growth: Mutex::new(()),
            sync: Mutex::new(None),
            has_failed: AtomicBool::new(false),
        };
        log.begin(&header).map_err(|error| {
            // Best effort: an empty file is harmless, but a retry would find it.
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

    /// Reserves space for a record of `payload_len` bytes at the tail. `None` if the WAL is sealed, the payload too
    /// long or the allocated space too small: call [`ensure`](LogFile::ensure) or switch to the next WAL.
    ///
    /// Called under the commit lock, so records are in sequence number order (C1, C3).
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

    /// Closes the WAL to reservations, and reserves its last record. The caller appends this record with kind
    /// [`End`](RecordKind::End), and publishes it before any record of the next WAL. `None` if already sealed.
    ///
    /// Called under the commit lock. Dropping a sealed WAL truncates the space allocated ahead.
    pub fn seal(&self) -> Option<Reservation> {
        let offset = self.advance_tail(|tail| Some((tail + END_RECORD_BYTES) | SEALED))?;
        Some(Reservation { offset, payload_len: 0 })
    }

    #[inline]
    fn advance_tail(&self, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let unless_sealed = |tail: u64| if tail & SEALED == 0 { next(tail) } else { None };
        self.tail.fetch_update(Ordering::Relaxed, Ordering::Relaxed, unless_sealed).ok()
    }

    /// Allocates space for a reservation of `payload_len` bytes, without the commit lock. `false` if the capacity is
    /// too small or the WAL is sealed: switch to the next WAL.
    ///
    /// # Errors
    /// `NoSpace`, `Io`: the WAL is unchanged.
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

    /// Allocates extents so that `bytes` behind the tail can be reserved. For a background job.
    ///
    /// # Errors
    /// As of [`ensure`](LogFile::ensure).
    pub fn allocate_ahead(&self, bytes: u64) -> Result<()> {
        let wanted = self.tail().saturating_add(bytes).min(self.capacity);
        if self.is_sealed() { Ok(()) } else { self.allocate_through(wanted) }
    }

    /// Allocates at least `end` bytes, within the capacity. Allocates no more than `end` if the disk lacks space for a
    /// whole extent.
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

    /// Waits for a running allocation in a sealed WAL. A new allocation cannot start.
    pub fn wait_for_growth(&self) {
        debug_assert!(self.is_sealed(), "others would grow it again");
        drop(self.growth.lock());
    }

    /// Prefaults up to `bytes` of allocated space behind the tail, in steps, and follows the tail as it moves. Appends
    /// then take no page faults. For a background job.
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

    /// Unmaps published pages in large steps, and all once the WAL is sealed. Appends there are over, and a read maps
    /// the page again. Writeback of unmapped pages does not interrupt the writers. For a background job.
    pub fn release_behind(&self) {
        let (from, to) = (self.released.load(Ordering::Relaxed), self.published() & !(PAGE_BYTES - 1));
        if to.saturating_sub(from) >= RELEASE_STEP_BYTES || (from < to && self.is_sealed()) {
            self.backing.release(from, to - from);
            self.released.fetch_max(to, Ordering::Relaxed);
        }
    }

    /// Published pages that are neither synced nor on their way to the disk, if there are `bytes_min` bytes of them; the
    /// last ones of a sealed WAL are due at any size.
    fn due_writeback(&self, bytes_min: u64) -> Option<Range<u64>> {
        let from = self.writeback.load(Ordering::Relaxed).max(self.synced() & !(PAGE_BYTES - 1));
        let to = self.published() & !(PAGE_BYTES - 1);
        let is_due = to.saturating_sub(from) >= bytes_min.max(PAGE_BYTES) || (from < to && self.is_sealed());
        is_due.then_some(from..to)
    }

    /// Whether [`start_writeback`](Self::start_writeback) would write.
    pub fn is_writeback_due(&self, bytes_min: u64) -> bool {
        self.due_writeback(bytes_min).is_some()
    }

    /// Starts writeback of the published pages, if at least `bytes_min` bytes of them are due. A later sync then waits
    /// for little more than what was written since. Does nothing during a sync, which writes these pages itself.
    ///
    /// # Errors
    /// The pages may be lost: no later sync succeeds (D4).
    pub fn start_writeback(&self, bytes_min: u64) -> Result<()> {
        let Some(mut failed) = self.sync.try_lock().filter(|failed| failed.is_none()) else { return Ok(()) };
        let Some(Range { start, end }) = self.due_writeback(bytes_min) else { return Ok(()) };
        self.backing.release(start, end - start); // as before a sync
        self.released.fetch_max(end, Ordering::Relaxed);
        self.writeback.store(end, Ordering::Relaxed);
        let started = self.backing.start_writeback(start, end - start).map_err(|error| error.at_path(&self.path));
        started.inspect_err(|error| self.record_failure(&mut failed, error))
    }

    fn record_failure(&self, failed: &mut Option<Error>, error: &Error) {
        *failed = Some(error.clone());
        self.has_failed.store(true, Ordering::Release);
    }

    /// Fills a reservation with `parts`, contiguously. Reservations may be filled concurrently.
    ///
    /// # Errors
    /// `Io` (positional writes only): the bytes there are unknown, and recovery ends the WAL there.
    ///
    /// # Panics
    /// If the parts' total length differs from the reservation's.
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
            None => self.backing.write_parts(reservation.offset, header.with_payload(parts).as_flattened(), parts),
        };
        written.map_err(|error| error.at_path(&self.path).at_offset(reservation.offset))
    }

    /// Publishes everything below `end` as whole. Called in order, so every record below is complete.
    #[inline]
    pub fn publish(&self, end: u64) {
        debug_assert!(end <= self.tail(), "published beyond what is reserved");
        self.published.fetch_max(end, Ordering::Release);
    }

    /// Bytes published: a reader of the file may count on them.
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Makes everything published before the call durable, and returns the synced frontier. Calls that wait for a
    /// running sync share the next one.
    ///
    /// # Errors
    /// The first failure, repeated by every later call (D4): the durable part of the unsynced bytes is unknown.
    pub fn sync(&self) -> Result<u64> {
        let wanted = self.published();
        let mut failed = self.sync.lock();
        if let Some(error) = &*failed {
            return Err(error.clone());
        }
        if self.synced() < wanted {
            let (from, frontier) = (self.synced(), self.published());
            // Mapped pages would cost the writers one interrupt per page when the kernel write-protects them.
            self.backing.release(from, frontier.saturating_sub(from));
            if let Err(error) = self.backing.sync() {
                let error = error.at_path(&self.path);
                self.record_failure(&mut failed, &error);
                return Err(error);
            }
            self.synced.fetch_max(frontier, Ordering::Release);
        }
        Ok(self.synced())
    }

    /// Bytes synced.
    pub fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Copies bytes of a written record to `buf`. The caller knows of the record from a memtable entry, and checks the
    /// bytes. Reads continue after a failed sync, since the page cache still has most of the bytes.
    ///
    /// # Errors
    /// `Io`, `Corruption`: the bytes cannot be read.
    pub(crate) fn read_written(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let count = match self.has_failed.load(Ordering::Acquire) {
            false => self.backing.read(offset, buf)?,
            true => self.backing.read_file(offset, buf)?,
        };
        if count < buf.len() {
            return Err(Error::corruption("a log is shorter than what was written").at_path(&self.path));
        }
        Ok(())
    }

    /// The sync failure, if bytes before `end` may be lost with it (D4).
    pub(crate) fn failure_before(&self, end: u64) -> Option<Error> {
        if end <= self.synced() {
            return None;
        }
        self.sync.lock().clone()
    }

    /// End of the reserved space.
    pub fn tail(&self) -> u64 {
        self.tail.load(Ordering::Relaxed) & !SEALED
    }

    /// True once no more records are taken.
    pub fn is_sealed(&self) -> bool {
        self.tail.load(Ordering::Relaxed) & SEALED != 0
    }

    /// Most bytes of the file.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The log's number.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// The log's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        // After a failed sync the file is left unchanged, as evidence.
        if self.is_sealed() && self.sync.get_mut().is_none() {
            self.backing.give_back_from(self.tail());
        }
    }
}

#[cfg(test)]
mod tests;
