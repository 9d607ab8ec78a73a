//! What an arena's memory is: the allocator's, an anonymous mapping, or a mapped file, and how far it may be touched.
//!
//! A file that was made for an arena goes with it, unless somebody said that it is to stay ([`SealedFile::keep`]).

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use base::note;
use base::{Error, ErrorKind, Result};
use vfs::{AnonymousMapping, FileIdentity, HeapMemory, IoClass, MappedMemory, ReadMapping, RwMapping};

use super::{ArenaConfig, GRANULE_BYTES, IMAGE_HEADER_BYTES, Source};
use crate::ImageFile;

/// Capacities from here up ask for huge pages unasked: half of the cost of a descent through a large memtable is address
/// translation, and memory that small memtables do not need is not taken 2 MiB at a time.
const HUGE_PAGES_MIN_BYTES: usize = 4 << 20;

/// The first of an arena has small pages: a memtable that holds little takes little, and whoever writes first into one that
/// nobody made present does not wait for two megabytes to be cleared.
const SMALL_PAGES_BYTES: usize = 2 << 20;

/// Extents of a file are allocated this far ahead: one call to the file system for tens of thousands of entries, and no
/// more disk than this taken in vain.
const EXTENT_STEP_BYTES: usize = 4 << 20;

/// Where the disk has no room for as much, memory is taken: no memtable can begin with a header alone.
const FILE_MIN_BYTES: usize = 64 << 10;

/// Pages are committed this far ahead: a huge page.
const COMMIT_STEP_BYTES: usize = 2 << 20;

/// Of small pages, so many bytes at the most are made present at a time: no longer in the way of whoever maps or unmaps
/// something than it takes to clear some tens of pages.
const SMALL_STEP_BYTES: usize = 256 << 10;

/// Memory of fixed capacity at one address (A4).
pub(super) struct Region {
    backing: Backing,
    /// Pages are made present before they are used, not by faults.
    commits_ahead: bool,
}

enum Backing {
    Heap(HeapMemory),
    Anonymous(AnonymousMapping),
    File(File),
    /// What another arena has left, not to be written.
    Image(Arc<dyn ReadMapping>),
}

struct File {
    memory: MappedMemory,
    mapping: Arc<dyn RwMapping>,
    place: ImageFile,
    identity: FileIdentity,
    is_kept: AtomicBool,
}

/// The file that a sealed memtable lies in.
pub struct SealedFile<'a> {
    file: &'a File,
    image_bytes: u64,
}

impl SealedFile<'_> {
    pub fn place(&self) -> &ImageFile {
        &self.file.place
    }

    /// Which file it is, whatever it is called.
    pub fn identity(&self) -> FileIdentity {
        self.file.identity
    }

    /// Bytes of the file: the image, and behind it what was allocated ahead, zeros.
    pub fn file_bytes(&self) -> u64 {
        self.file.mapping.allocated()
    }

    /// Gives back what was allocated ahead, all but the rest of the image's last page, for good: what is appended to the file
    /// then lies behind the image.
    ///
    /// # Errors
    /// What cutting the file yields. The memtable is as it was, and its file may be longer than
    /// [`file_bytes`](SealedFile::file_bytes) says.
    pub fn give_back_the_rest(&self) -> Result<()> {
        // Readers follow references into the image only, and pages are populated below what is allocated.
        self.file.mapping.cut(self.image_bytes)
    }

    /// # Errors
    /// As [`RwMapping::sync`] (D4).
    pub fn sync(&self, class: IoClass) -> Result<()> {
        self.file.mapping.sync(class)
    }

    /// The file stays when the memtable goes: its name is another's now.
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
    /// A file, where one is asked for and can be had; else memory without a name.
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
    /// `Unsupported`: a mapping at an address that is not aligned to granules.
    pub(super) fn over_image(mapping: Arc<dyn ReadMapping>) -> Result<Region> {
        if !(*mapping).as_ref().as_ptr().addr().is_multiple_of(GRANULE_BYTES) {
            return Err(Error::unsupported("a mapping that does not begin at a word"));
        }
        Ok(Region { backing: Backing::Image(mapping), commits_ahead: false })
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self.backing, Backing::File(_))
    }

    /// `image_bytes`: what was handed out, and all before it.
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

    /// Bytes from the start that may be touched as things stand.
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

    /// Makes the bytes up to `end`, and some more, ready to be touched, `ready` of them being so. Returns how many are.
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

    /// Where a step ends that makes pages present from `from` on, up to `wanted`: a whole huge page, or some small ones.
    pub(super) fn step_end(&self, from: usize, wanted: usize) -> usize {
        let is_huge = matches!(self.backing, Backing::Anonymous(_)) && from >= SMALL_PAGES_BYTES;
        let next_multiple_of = |step| (from + 1).next_multiple_of(step);
        if is_huge { next_multiple_of(COMMIT_STEP_BYTES) } else { next_multiple_of(SMALL_STEP_BYTES).min(wanted) }
    }

    /// Makes `from .. to` present, and ready to be touched; all below is.
    ///
    /// # Errors
    /// As [`extend`](Region::extend), and where a file was given back what was allocated ahead; a part may be present then.
    pub(super) fn make_present(&self, from: usize, to: usize) -> Result<()> {
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

    /// Bytes held from the start, touched or not: of memory from the allocator, which gives what others left, all.
    pub(super) fn held_at_start(&self) -> usize {
        match &self.backing {
            Backing::Heap(memory) => memory.capacity(),
            Backing::Anonymous(_) | Backing::File(_) | Backing::Image(_) => 0,
        }
    }

    /// True where [`ready_bytes`](Region::ready_bytes) are bytes present, not only bytes that can be.
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
    /// Under Miri always the heap.
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

/// A file with its first extents; it is removed again where it cannot be used.
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

/// Removes a file that was made in vain because of `error`, which is returned.
fn remove_file(image: &ImageFile, error: Error) -> Error {
    match image.vfs.remove_file(&image.path) {
        Ok(()) => error,
        Err(left) => error.context(format!("an empty file stays, as removing it failed too ({left})")),
    }
}

/// Allocates extents up to `wanted`; where the disk has no room for that, up to `needed`.
fn ensure_some(mapping: &dyn RwMapping, wanted: usize, needed: usize) -> Result<()> {
    match mapping.ensure(wanted as u64) {
        Err(e) if e.kind() == ErrorKind::NoSpace && needed < wanted => mapping.ensure(needed as u64),
        result => result,
    }
}

/// Refuses capacities that references cannot reach, a file's header included.
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
