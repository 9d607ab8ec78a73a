//! The second copy of a MANIFEST: `NNNNNN.spmanifest`, the same bytes as `MANIFEST-NNNNNN`.
//!
//! Each record is appended and synced in the MANIFEST first, then in the copy (V3). So a copy that goes on behind its
//! MANIFEST's end proves a lost end, and a copy stands in for a lost or damaged MANIFEST. RocksDB ignores the file.

use std::path::{Path, PathBuf};

use base::{Error, ErrorKind, FileNumber, Result};
use vfs::{IoClass, Vfs};
use wal::framed::{FramedReader, FramedRecord};

use super::file_name::{self, FileType};
use super::manifest::manifest_path;

/// The path of a MANIFEST's copy.
pub(crate) fn copy_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(file_name::format(FileType::ManifestCopy, number))
}

/// Bytes in the copy; 0 if there is none. A reader beside a writer asks before it reads the MANIFEST: the MANIFEST is
/// never shorter than the copy.
pub(crate) fn copy_bytes(vfs: &dyn Vfs, dir: &Path, number: FileNumber) -> Result<u64> {
    match vfs.metadata(&copy_path(dir, number)) {
        Ok(metadata) => Ok(metadata.len),
        Err(error) if error.is_not_found() => Ok(0),
        Err(error) => Err(error),
    }
}

/// Compares a MANIFEST with its copy while it is read. A copy goes on behind the MANIFEST's end, be it with a torn record or
/// zeros, only if the MANIFEST had it whole before.
pub(super) struct Comparison {
    /// What is left of the copy. `None`: there is none that can be read from here on.
    copy: Option<FramedReader>,
    /// Bytes of the copy before the MANIFEST was read, which is never shorter.
    copy_bytes: u64,
    /// The first offset at which both have a whole record, and the records differ.
    difference: Option<u64>,
}

impl Comparison {
    /// To be begun before the MANIFEST is opened.
    ///
    /// # Errors
    /// The file system's. A copy that cannot be opened counts as none.
    pub fn begin(vfs: &dyn Vfs, dir: &Path, number: FileNumber) -> Result<Comparison> {
        let copy_bytes = copy_bytes(vfs, dir, number)?;
        let copy = FramedReader::open(vfs, &copy_path(dir, number), None, IoClass::Manifest).ok();
        Ok(Comparison { copy, copy_bytes, difference: None })
    }

    /// Compares the MANIFEST's next record.
    pub fn see(&mut self, record: &FramedRecord) {
        let Some(copy) = &mut self.copy else { return };
        match copy.next() {
            Ok(Some(other)) if other == *record => return,
            Ok(Some(_)) => self.difference = Some(record.offset),
            Ok(None) | Err(_) => {} // it ends, or is damaged: nothing is to be said of the MANIFEST
        }
        self.copy = None;
    }

    /// `end`: where the MANIFEST's records end. `None`: it is RocksDB's, which has no copy; one that differs shows that it came
    /// from elsewhere.
    ///
    /// # Errors
    /// `Corruption`: the MANIFEST lost its end, or one of the files is another database's.
    pub fn check(&self, dir: &Path, number: FileNumber, end: Option<u64>) -> Result<()> {
        let name = file_name::format(FileType::ManifestCopy, number);
        let (what, at) = match (self.difference, end) {
            (Some(offset), _) => {
                let what = format!(
                    "the MANIFEST and its copy {name} hold different records: one is another database's, or an older one. Put \
                     the right file back from a copy, or keep what is certain with `spillway repair` (rocksdb_repair_db)"
                );
                (what, offset)
            }
            (None, Some(end)) if self.copy_bytes > end => {
                (format!("the end of the MANIFEST is missing: its copy {name} goes on"), end)
            }
            _ => return Ok(()),
        };
        Err(Error::corruption(what).at_path(manifest_path(dir, number)).at_offset(at))
    }
}

/// The first offset at which both have a whole record, and the records differ: one of the files is another database's.
///
/// # Errors
/// The file system's.
pub(super) fn first_difference(vfs: &dyn Vfs, dir: &Path, number: FileNumber) -> Result<Option<u64>> {
    let copy = match FramedReader::open(vfs, &copy_path(dir, number), None, IoClass::Manifest) {
        Err(error) if error.is_not_found() => return Ok(None),
        opened => opened?,
    };
    let manifest = match FramedReader::open(vfs, &manifest_path(dir, number), None, IoClass::Manifest) {
        Err(error) if error.is_not_found() => return Ok(None),
        opened => opened?,
    };
    let mut readers = [manifest, copy];
    loop {
        let [manifest, copy] = &mut readers;
        let (a, b) = match (manifest.next(), copy.next()) {
            (Ok(Some(a)), Ok(Some(b))) => (a, b),
            (Err(error), _) | (_, Err(error)) if error.kind() != ErrorKind::Corruption => return Err(error),
            _ => return Ok(None),
        };
        if a != b {
            return Ok(Some(a.offset));
        }
    }
}
