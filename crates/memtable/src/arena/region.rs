//! Backing memory of an arena: the allocator's, an anonymous mapping, or a mapped file; and the part of it safe to
//! touch.
//!
//! A file made for an arena is removed with it, unless the file was kept ([`SealedFile::keep`]).

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use base::note;
use base::{Error, ErrorKind, Result};
use vfs::{AnonymousMapping, FileIdentity, HeapMemory, MappedMemory, ReadMapping, RwMapping};

use super::{ArenaConfig, GRANULE_BYTES, IMAGE_HEADER_BYTES, Source};
use crate::ImageFile;

/// Capacities from here up use huge pages by default: half the cost of a descent through a large memtable is address
/// translation. Small memtables do not pay 2 MiB for a page.
const HUGE_PAGES_MIN_BYTES: usize = 4 << 20;

/// The first bytes of an arena have small pages: a nearly empty memtable takes little memory, and the first writer to
/// an arena without prefault does not wait for 2 MiB to be cleared.
const SMALL_PAGES_BYTES: usize = 2 << 20;

/// File extents are allocated this far ahead: one call for tens of thousands of entries, and at most this much disk
/// unused.
const EXTENT_STEP_BYTES: usize = 4 << 20;

/// If the disk lacks room for this much, memory is used instead: no memtable can begin with a header alone.
const FILE_MIN_BYTES: usize = 64 << 10;

/// Pages are committed this far ahead: one huge page.
const COMMIT_STEP_BYTES: usize = 2 << 20;

/// Small pages are prefaulted in steps of at most this size: concurrent mmap and munmap calls wait only while some tens
/// of pages are cleared.
const SMALL_STEP_BYTES: usize = 256 << 10;

/// Memory of fixed capacity at one address (A4).
pub(super) struct Region {
    backing: Backing,
    /// Pages are committed before use, not by faults.
    commits_ahead: bool,
}

enum Backing {
    Heap(HeapMemory),
    Anonymous(AnonymousMapping),
    File(File),
    /// An image left by another arena; read-only.
    Image(Arc<dyn ReadMapping>),
}

struct File {
    memory: MappedMemory,
    mapping: Arc<dyn RwMapping>,
    place: ImageFile,
    identity: FileIdentity,
    is_kept: AtomicBool,
}

/// The file of a sealed memtable.
pub struct SealedFile<'a> {
    file: &'a File,
    image_bytes: u64,
}

impl SealedFile<'_> {
    /// The file that the region lies in.
    pub fn place(&self) -> &ImageFile {
        &self.file.place
    }

    /// The file's identity, independent of its name.
    pub fn identity(&self) -> FileIdentity {
        self.file.identity
    }

    /// Bytes of the file: the image, followed by zeros allocated ahead.
    pub fn file_bytes(&self) -> u64 {
        self.file.mapping.allocated()
    }

    /// Cuts the bytes allocated ahead, for good, except the rest of the image's last page. Later appends to the file
    /// then follow the image.
    ///
    /// # Errors
    /// Errors of cutting the file. The memtable is unchanged, and its file may be longer than
    /// [`file_bytes`](SealedFile::file_bytes) says.
    pub fn give_back_the_rest(&self) -> Result<()> {
        // References point into the image only, and pages are populated below the allocated end.
        self.file.mapping.cut(self.image_bytes)
    }

    /// Keeps the file when the memtable is dropped: its name now belongs to a new owner.
    pub fn keep(&self) {
        self.file.is_kept.store(true, Relaxed);
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if *self.is_kept.get_mut() {
            return;
        }
        match self.place.vfs.remove_file(&self.place.path) {
            Err(error) if !error.is_not_found() => {
                note::warn!(%error, "the file of a memtable stays until the database is opened again");
            }
            _ => {}
        }
    }
}

impl Region {
    /// A mapped file if configured and possible; else unnamed memory.
    pub(super) fn new(config: &ArenaConfig<'_>) -> Result<Region> {
        let backing = match config.image.map(|image| map_file(image, config.capacity)) {
            Some(Ok(backing)) => backing,
            Some(Err(e)) if !matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::NoSpace | ErrorKind::Io) => {
                return Err(e);
            }
            Some(Err(error)) => {
                if config.image.is_some_and(|image| !image.told.swap(true, Relaxed)) {
                    note::warn!(%error, "memtables are made in memory only, where their files cannot be made");
                }
                Backing::unnamed(config)?
            }
            None => Backing::unnamed(config)?,
        };
        Ok(Region { backing, commits_ahead: config.commits_ahead })
    }

    /// # Errors
    /// `Unsupported`: the mapping's address is not aligned to granules.
    pub(super) fn over_image(mapping: Arc<dyn ReadMapping>) -> Result<Region> {
        if !(*mapping).as_ref().as_ptr().addr().is_multiple_of(GRANULE_BYTES) {
            return Err(Error::unsupported("a mapping that does not begin at a word"));
        }
        Ok(Region { backing: Backing::Image(mapping), commits_ahead: false })
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self.backing, Backing::File(_))
    }

    /// `image_bytes`: all bytes up to the end of the allocated ones.
    pub(super) fn file(&self, image_bytes: usize) -> Option<SealedFile<'_>> {
        match &self.backing {
            Backing::File(file) => Some(SealedFile { file, image_bytes: image_bytes as u64 }),
            Backing::Heap(_) | Backing::Anonymous(_) | Backing::Image(_) => None,
        }
    }

    pub(super) fn base(&self) -> NonNull<u8> {
        let base = match &self.backing {
            Backing::Heap(memory) => memory.as_ptr(),
            Backing::Anonymous(memory) => memory.as_ptr(),
            Backing::File(file) => file.memory.as_ptr(),
            Backing::Image(mapping) => (**mapping).as_ref().as_ptr().cast_mut(),
        };
        NonNull::new(base).expect("no memory lies at the null address")
    }

    pub(super) fn capacity(&self) -> usize {
        match &self.backing {
            Backing::Heap(memory) => memory.capacity(),
            Backing::Anonymous(memory) => memory.capacity(),
            Backing::File(file) => file.memory.capacity(),
            Backing::Image(mapping) => (**mapping).as_ref().len(),
        }
    }

    /// Bytes from the start safe to touch without [`extend`](Region::extend).
    pub(super) fn ready_bytes(&self) -> usize {
        match &self.backing {
            Backing::Heap(memory) => memory.capacity(),
            Backing::Anonymous(_) if self.commits_ahead => 0,
            Backing::Anonymous(memory) => memory.capacity(),
            Backing::File(_) if self.commits_ahead => 0,
            Backing::File(file) => file.mapping.allocated() as usize,
            Backing::Image(_) => self.capacity(),
        }
    }

    /// Makes the bytes up to `end`, and some more, safe to touch; `ready` of them are already. Returns the bytes now
    /// ready.
    ///
    /// # Errors
    /// `NoSpace`, `Io`: there is no disk or memory for them.
    pub(super) fn extend(&self, ready: usize, end: usize) -> Result<usize> {
        let step_end = |step: usize| end.next_multiple_of(step).min(self.capacity());
        match &self.backing {
            Backing::Heap(memory) => Ok(memory.capacity()),
            Backing::Anonymous(memory) => {
                let to = step_end(COMMIT_STEP_BYTES);
                memory.commit(ready, to - ready)?;
                Ok(to)
            }
            Backing::File(File { mapping, .. }) => {
                ensure_some(&**mapping, step_end(EXTENT_STEP_BYTES), end)?;
                let to = mapping.allocated() as usize;
                if self.commits_ahead {
                    mapping.populate(ready as u64, to.saturating_sub(ready) as u64);
                }
                Ok(to)
            }
            Backing::Image(_) => Ok(self.capacity()),
        }
    }

    /// End of the prefault step from `from`, up to `wanted`: one whole huge page, or some small ones.
    pub(super) fn step_end(&self, from: usize, wanted: usize) -> usize {
        let is_huge = matches!(self.backing, Backing::Anonymous(_)) && from >= SMALL_PAGES_BYTES;
        let next_multiple_of = |step| (from + 1).next_multiple_of(step);
        if is_huge { next_multiple_of(COMMIT_STEP_BYTES) } else { next_multiple_of(SMALL_STEP_BYTES).min(wanted) }
    }

    /// Prefaults `from .. to`, and makes it safe to touch; all bytes below already are.
    ///
    /// # Errors
    /// As [`extend`](Region::extend), and if a file's bytes allocated ahead were given back; a part may then be
    /// present.
    pub(super) fn prefault(&self, from: usize, to: usize) -> Result<()> {
        let len = to.saturating_sub(from);
        match &self.backing {
            Backing::Heap(memory) => memory.commit(from, len),
            Backing::Anonymous(memory) => memory.commit(from, len),
            Backing::File(File { mapping, .. }) => {
                ensure_some(&**mapping, to.next_multiple_of(EXTENT_STEP_BYTES).min(self.capacity()), to)?;
                mapping.populate(from as u64, len as u64);
                Ok(())
            }
            Backing::Image(_) => Ok(()),
        }
    }

    /// Bytes held from the start, touched or not. Heap memory may be reused and resident, so all of it counts.
    pub(super) fn held_at_start(&self) -> usize {
        match &self.backing {
            Backing::Heap(memory) => memory.capacity(),
            Backing::Anonymous(_) | Backing::File(_) | Backing::Image(_) => 0,
        }
    }

    /// True if [`ready_bytes`](Region::ready_bytes) counts present bytes, not only bytes safe to touch.
    pub(super) fn commits_ahead(&self) -> bool {
        self.commits_ahead
    }

    pub(super) fn resident_bytes(&self) -> usize {
        match &self.backing {
            Backing::Heap(memory) => memory.resident_bytes(),
            Backing::Anonymous(memory) => memory.resident_bytes(),
            Backing::File(file) => file.memory.resident_bytes(),
            Backing::Image(_) => 0,
        }
    }
}

impl Backing {
    /// Memory without a file. Under Miri always the heap.
    fn unnamed(config: &ArenaConfig<'_>) -> Result<Backing> {
        let bytes = config.capacity + if config.keeps_header { IMAGE_HEADER_BYTES } else { 0 };
        if config.source == Source::Heap || cfg!(miri) {
            return Ok(Backing::Heap(HeapMemory::new(bytes)?));
        }
        let huge = config.huge_pages || bytes >= HUGE_PAGES_MIN_BYTES;
        let mapping = AnonymousMapping::new(bytes)?;
        if huge {
            mapping.use_huge_pages(SMALL_PAGES_BYTES);
        }
        Ok(Backing::Anonymous(mapping))
    }
}

/// A file with its first extents; removed again if it is unusable.
fn map_file(image: &ImageFile, capacity: usize) -> Result<Backing> {
    let bytes = capacity.saturating_add(IMAGE_HEADER_BYTES);
    let mapping = image.vfs.create_mapped(&image.path, bytes as u64)?;
    if bytes >= HUGE_PAGES_MIN_BYTES {
        mapping.use_huge_pages(SMALL_PAGES_BYTES as u64);
    }
    let first = || {
        ensure_some(&*mapping, EXTENT_STEP_BYTES.min(bytes), FILE_MIN_BYTES.min(bytes))?;
        let identity = image.vfs.metadata(&image.path)?.identity;
        Ok((Arc::clone(&mapping).memory()?, identity))
    };
    match first() {
        Ok((memory, identity)) => {
            let (place, is_kept) = (image.clone(), AtomicBool::new(false));
            Ok(Backing::File(File { memory, mapping, place, identity, is_kept }))
        }
        Err(error) => {
            drop(mapping);
            Err(remove_file(image, error))
        }
    }
}

/// Removes an unusable file after `error`, which is returned.
fn remove_file(image: &ImageFile, error: Error) -> Error {
    match image.vfs.remove_file(&image.path) {
        Ok(()) => error,
        Err(left) => error.context(format!("an empty file stays, as removing it failed too ({left})")),
    }
}

/// Allocates extents up to `wanted`; if the disk lacks room, up to `needed`.
fn ensure_some(mapping: &dyn RwMapping, wanted: usize, needed: usize) -> Result<()> {
    match mapping.ensure(wanted as u64) {
        Err(e) if e.is_lack() && needed < wanted => mapping.ensure(needed as u64),
        result => result,
    }
}

/// Refuses capacities beyond the reach of references, header included.
pub(super) fn check_capacity(config: &ArenaConfig<'_>) -> Result<()> {
    let header = if config.image.is_some() || config.keeps_header { IMAGE_HEADER_BYTES } else { 0 };
    let bounds = super::GRANULE_BYTES..=super::CAPACITY_MAX_BYTES - header;
    if bounds.contains(&config.capacity) {
        return Ok(());
    }
    let (min, max) = bounds.into_inner();
    Err(Error::invalid_argument(format!(
        "a memtable of {} bytes: the capacity must be {min} to {max} bytes",
        config.capacity
    )))
}
