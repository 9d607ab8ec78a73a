//! Files of memtables to be converted into tables without a copy (`convert_to_sst=kFileMmap`).
//!
//! An image has the number of its later table. It is private: no other database reads it, and none is made before the
//! directory is fenced. The memtable owns its image and removes it, unless the image became a table. The next open
//! reads images left by a crash or a close in place, or removes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{FamilyId, FileNumber};
use memtable::image::ImageIdentity;
use memtable::{Conversion, ImageFile};
use vfs::Vfs;

use crate::version::file_name::{self, FileType};
use crate::version::numbers::FileNumbers;

/// Flag in an image's `extra`: values may be references into WALs.
pub(crate) const LEAVES_VALUES: u64 = 1;

/// Names the files of memtables.
pub struct ImageNames {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    numbers: Arc<FileNumbers>,
    is_fenced: AtomicBool,
    /// Whether values may stay in the WAL.
    leaves_values: bool,
    /// Identities of the directory's page cache and of the database.
    page_cache: u128,
    database: u128,
    /// Shared by all images: [`ImageFile::told`].
    told: Arc<AtomicBool>,
}

impl ImageNames {
    /// For a directory without a fence; see [`record_fence`](Self::record_fence).
    pub fn new(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        db_id: &str,
        numbers: Arc<FileNumbers>,
        leaves_values: bool,
    ) -> Arc<Self> {
        let is_fenced = AtomicBool::new(false);
        let page_cache = ImageIdentity::number_of(&vfs.page_cache_id(dir).unwrap_or_default());
        let (dir, database) = (dir.to_owned(), ImageIdentity::number_of(db_id));
        Arc::new(ImageNames { vfs, dir, numbers, is_fenced, leaves_values, page_cache, database, told: Arc::default() })
    }

    /// Called once a MANIFEST of ours is durable: it keeps RocksDB out.
    pub fn record_fence(&self) {
        self.is_fenced.store(true, Ordering::Release);
    }

    /// Whether private tables may be made.
    pub fn is_fenced(&self) -> bool {
        self.is_fenced.load(Ordering::Acquire)
    }

    /// A file for one memtable of a family.
    pub fn next(&self, family: FamilyId, conversion: Conversion) -> ImageFile {
        let name = file_name::format(FileType::MemtableImage, self.numbers.take());
        let leaves_values = self.leaves_values && conversion.reference_form().is_some();
        let extra = if leaves_values { LEAVES_VALUES } else { 0 };
        let (page_cache, database) = (self.page_cache, self.database);
        let identity = ImageIdentity { page_cache, database, family, extra, ..ImageIdentity::default() };
        ImageFile { vfs: self.vfs.clone(), path: self.dir.join(name), told: self.told.clone(), identity }
    }
}

/// The number of an image and of its table; `None` if the file is not an image.
pub(crate) fn number_of(image: &ImageFile) -> Option<FileNumber> {
    let (kind, number) = file_name::parse(image.path.file_name()?.to_str()?)?;
    (kind == FileType::MemtableImage).then_some(number)
}
