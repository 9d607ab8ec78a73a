//! Storage of a WAL: a file mapping or positional writes. Extents of both are allocated ahead, so an append neither
//! grows the file nor runs out of space.

use std::path::Path;
use std::sync::Arc;

use base::options::LogBacking;
use base::{ErrorKind, Result};
use vfs::{IoClass, RwMapping, SharedFile, Vfs};

use crate::format::ALIGNMENT;

pub(crate) enum Backing {
    Mapped(Arc<dyn RwMapping>),
    Pwrite(Arc<dyn SharedFile>),
}

impl Backing {
    pub fn create(vfs: &dyn Vfs, path: &Path, choice: LogBacking, capacity: u64) -> Result<Self> {
        let pwrite = || vfs.create_shared(path).map(Backing::Pwrite);
        match choice {
            LogBacking::Pwrite => pwrite(),
            LogBacking::Mapped => vfs.create_mapped(path, capacity).map(Backing::Mapped),
            // `Auto`.
            _ => match vfs.create_mapped(path, capacity) {
                Ok(mapping) => Ok(Backing::Mapped(mapping)),
                Err(error) if error.kind() == ErrorKind::Unsupported => pwrite(),
                Err(error) => Err(error),
            },
        }
    }

    /// Allocates `from .. to`, everything below `from` being allocated already.
    pub fn allocate(&self, from: u64, to: u64) -> Result<()> {
        match self {
            Backing::Mapped(mapping) => mapping.ensure(to),
            Backing::Pwrite(file) => file.allocate(from, to - from, IoClass::Log),
        }
    }

    pub fn populate(&self, offset: u64, len: u64) {
        if let Backing::Mapped(mapping) = self {
            mapping.populate(offset, len);
        }
    }

    /// Unmaps the whole pages of a written range. The next access maps them again. Mapped files only.
    pub fn release(&self, offset: u64, len: u64) {
        if let Backing::Mapped(mapping) = self {
            mapping.release(offset, len);
        }
    }

    pub fn sync(&self) -> Result<()> {
        match self {
            Backing::Mapped(mapping) => mapping.sync(IoClass::Log),
            Backing::Pwrite(file) => file.sync(IoClass::Log),
        }
    }

    pub fn start_writeback(&self, offset: u64, len: u64) -> Result<()> {
        match self {
            Backing::Mapped(mapping) => mapping.start_writeback(offset, len, IoClass::Log),
            Backing::Pwrite(file) => file.start_writeback(offset, len, IoClass::Log),
        }
    }

    /// Cuts the file to `len` bytes, now or when it is closed. Best effort: the bytes after `len` are zeros and
    /// harmless.
    pub fn give_back_from(&self, len: u64) {
        match self {
            Backing::Mapped(mapping) => mapping.truncate_on_drop(len),
            Backing::Pwrite(file) => drop(file.truncate(len)),
        }
    }

    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        match self {
            Backing::Mapped(mapping) => {
                mapping.read(offset, buf);
                Ok(buf.len())
            }
            Backing::Pwrite(file) => file.read_at(offset, buf, IoClass::Log),
        }
    }

    /// As [`read`](Backing::read), after a failed sync. Unreadable bytes are an error, never a signal.
    pub fn read_file(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        match self {
            Backing::Mapped(mapping) => mapping.read_file(offset, buf, IoClass::Log),
            Backing::Pwrite(_) => self.read(offset, buf),
        }
    }

    /// Writes `bytes` at an aligned place in allocated space.
    #[inline]
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        match self {
            Backing::Mapped(mapping) => {
                mapping.write(offset, bytes);
                Ok(())
            }
            Backing::Pwrite(file) => file.write_at(offset, bytes, IoClass::Log),
        }
    }

    /// Writes `header`, then `parts`, contiguously from `offset`, an aligned offset in allocated space.
    pub fn write_parts(&self, offset: u64, header: &[u8], parts: &[&[u8]]) -> Result<()> {
        let to = |at: u64, bytes: &[u8]| self.write(at, bytes);
        match self {
            Backing::Mapped(_) => gather::<MAPPED_STAGE_BYTES>(offset, header, parts, to),
            Backing::Pwrite(_) => gather::<PWRITE_STAGE_BYTES>(offset, header, parts, to),
        }
    }
}

const MAPPED_STAGE_BYTES: usize = 512;
/// Large enough that an ordinary record is one system call.
const PWRITE_STAGE_BYTES: usize = 4 << 10;

/// Joins the pieces into writes at aligned offsets. Short pieces go through a stage of `STAGE` bytes; long pieces are
/// written directly.
fn gather<const STAGE: usize>(
    offset: u64,
    header: &[u8],
    parts: &[&[u8]],
    mut to: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut stage = [0u8; STAGE];
    let mut staged = 0;
    let mut at = offset;
    for mut piece in std::iter::once(header).chain(parts.iter().copied()) {
        loop {
            let (now, later) = piece.split_at(piece.len().min(STAGE - staged));
            if let Some(room) = stage.get_mut(staged..staged + now.len()) {
                room.copy_from_slice(now);
            }
            staged += now.len();
            if later.is_empty() {
                break;
            }
            to(at, &stage)?;
            at += STAGE as u64;
            staged = 0;
            let (long, rest) = later.split_at(later.len() - later.len() % ALIGNMENT as usize);
            if long.len() >= STAGE {
                to(at, long)?;
                at += long.len() as u64;
                piece = rest;
            } else {
                piece = later;
            }
        }
    }
    match stage.get(..staged) {
        Some(last) if staged > 0 => to(at, last),
        _ => Ok(()),
    }
}
