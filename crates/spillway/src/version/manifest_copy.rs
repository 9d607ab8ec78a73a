//! The second copy of a MANIFEST: `NNNNNN.spmanifest`, the same bytes as `MANIFEST-NNNNNN`.
//!
//! Each record is appended and synced in the MANIFEST first, then in the copy (V3). So a copy that goes on behind its
//! MANIFEST's end proves a lost end, and a copy stands in for a lost or damaged MANIFEST. RocksDB ignores the file.

use std::path::{Path, PathBuf};

use base::{Error, ErrorKind, FileNumber, Result};
use log::framed::FramedReader;
use vfs::{IoClass, Vfs};

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

/// Compares a MANIFEST, whose records end at `end`, with a copy that had `bytes` before the MANIFEST was read. A copy goes on
/// behind the end, be it with a torn record or zeros, only if the MANIFEST had it whole before.
///
/// # Errors
/// `Corruption`: the MANIFEST lost its end, or one of the files is another database's. The file system's.
pub(super) fn check_copy(vfs: &dyn Vfs, dir: &Path, number: FileNumber, end: u64, bytes: u64) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    match check_same(vfs, dir, number) {
        Err(error) if error.is_read_failure() => {} // the copy's: the MANIFEST was read
        same => same?,
    }
    if bytes <= end {
        return Ok(());
    }
    let name = file_name::format(FileType::ManifestCopy, number);
    let what = format!("the end of the MANIFEST is missing: its copy {name} goes on");
    Err(Error::corruption(what).at_path(manifest_path(dir, number)).at_offset(end))
}

/// Checks that both hold the same records, as far as both go.
///
/// # Errors
/// `Corruption`: they do not. The file system's.
fn check_same(vfs: &dyn Vfs, dir: &Path, number: FileNumber) -> Result<()> {
    let Some(offset) = first_difference(vfs, dir, number)? else { return Ok(()) };
    let name = file_name::format(FileType::ManifestCopy, number);
    let what = format!(
        "the MANIFEST and its copy {name} hold different records: one is another database's, or an older one. Put the right file \
         back from a copy, or keep what is certain with `spillway repair` (rocksdb_repair_db)"
    );
    Err(Error::corruption(what).at_path(manifest_path(dir, number)).at_offset(offset))
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
