//! The files that memtables lie in, where they are to become tables without being copied (`convert_to_sst=kFileMmap`).
//!
//! An image has the number that its table will have. It is private: no other database reads it, and none is made before
//! the directory is fenced. It is its memtable's, which removes it unless it became a table; what a crash leaves is
//! removed at the next open.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::FileNumber;
use memtable::ImageFile;
use memtable::image::ImageIdentity;
use vfs::Vfs;

use crate::context::FileNumbers;
use crate::version::file_name::{self, FileType};

/// Gives memtables' files their names.
pub struct ImageNames {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    numbers: Arc<FileNumbers>,
    is_fenced: AtomicBool,
    /// Of [`ImageFile::told`].
    told: Arc<AtomicBool>,
}

impl ImageNames {
    /// `is_fenced`: the directory's MANIFEST keeps RocksDB from it.
    pub fn new(vfs: Arc<dyn Vfs>, dir: &Path, numbers: Arc<FileNumbers>, is_fenced: bool) -> Arc<Self> {
        let is_fenced = AtomicBool::new(is_fenced);
        Arc::new(ImageNames { vfs, dir: dir.to_owned(), numbers, is_fenced, told: Arc::default() })
    }

    /// Says that a MANIFEST of ours is durable.
    pub fn note_fence(&self) {
        self.is_fenced.store(true, Ordering::Release);
    }

    /// Whether private tables may be made.
    pub fn is_fenced(&self) -> bool {
        self.is_fenced.load(Ordering::Acquire)
    }

    /// A file for one memtable.
    pub fn next(&self) -> ImageFile {
        let name = file_name::format(FileType::MemtableImage, self.numbers.take());
        ImageFile { vfs: self.vfs.clone(), path: self.dir.join(name), told: self.told.clone(), identity: ImageIdentity::default() }
    }
}

/// The number of an image and of its table; `None` where the file is none.
pub(crate) fn number_of(image: &ImageFile) -> Option<FileNumber> {
    let (kind, number) = file_name::parse(image.path.file_name()?.to_str()?)?;
    (kind == FileType::MemtableImage).then_some(number)
}
