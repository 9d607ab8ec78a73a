//! Brings a caller's file into the database's directory, by hard link or copy. The contents are durable afterwards; the
//! name is not yet.

use std::path::Path;
use std::sync::Arc;

use base::checksum::crc32c_append;
use base::note;
use base::{Error, ErrorKind, Result};
use vfs::{IfExists, IoClass, RandomFile, SharedFile, Vfs};

use super::options::{FileChecksum, IngestOptions};
use super::progress::FileProgress;
use super::source::{MadeFile, Source, changed};
use crate::background::staging::read_blocks;

/// The only supported whole-file checksum: RocksDB's name for crc32c, big-endian.
const CRC32C: &str = "FileChecksumCrc32c";

/// Inputs for bringing in one file.
pub(super) struct Bringing<'a> {
    pub vfs: &'a Arc<dyn Vfs>,
    pub options: &'a IngestOptions,
    pub progress: &'a FileProgress<'a>,
    /// Whole-file checksum stated by the caller.
    pub checksum: Option<&'a FileChecksum>,
}

/// A file brought in.
pub(super) struct Brought {
    pub file: MadeFile,
    pub bytes: u64,
    /// Open for the commit to write the sequence number. `None` without `write_global_seqno`.
    pub numbered: Option<Arc<dyn SharedFile>>,
}

/// Passes of [`Bringing::bring`] over a file. A linked file is read only to verify its checksum.
pub(super) fn passes(options: &IngestOptions, checksum: Option<&FileChecksum>) -> u64 {
    let reads = checksum.is_some() && options.verify_file_checksum;
    u64::from(!options.links() || reads)
}

impl Bringing<'_> {
    /// Gives the file a name in the database's directory and makes its contents durable.
    ///
    /// # Errors
    /// `InvalidArgument`: it changed meanwhile. `Corruption`: its checksum differs. `Io`, `NoSpace`, `Closed`. No file
    /// is left behind.
    pub fn bring(&self, source: &Source, to: &Path) -> Result<Brought> {
        if let Some(checksum) = self.checksum {
            check_function(checksum)?;
        }
        let mut file = MadeFile::at(self.vfs.clone(), to.to_owned());
        let mut numbered = None;
        if !self.options.links() || !self.link(source, &file)? {
            numbered = self.copy(source, &file)?;
        }
        let bytes = file.finish()?;
        if bytes != source.metadata.len {
            return Err(changed(&source.path));
        }
        Ok(Brought { file, bytes, numbered })
    }

    /// Hard-links the file. False if it cannot be linked and is to be copied.
    fn link(&self, source: &Source, to: &MadeFile) -> Result<bool> {
        let linked = self.vfs.hard_link(&source.path, to.path()).and_then(|()| {
            // The source path may have been replaced since the first look. The new name is the database's alone.
            match self.vfs.metadata(to.path())?.identity == source.metadata.identity {
                true => self.vfs.open_append(to.path()),
                false => Err(changed(&source.path)),
            }
        });
        match linked {
            // The caller may not have synced the file.
            Ok(mut file) => file.sync(IoClass::Ingest)?,
            Err(error) if cannot_be(&error) && self.options.failed_move_fall_back_to_copy => {
                note::info!(%error, "a file cannot be linked into the database, so it is copied");
                self.vfs.remove_file(to.path()).or_else(|e| if e.is_not_found() { Ok(()) } else { Err(e) })?;
                return Ok(false);
            }
            Err(error) if cannot_be(&error) => {
                return Err(error.context("the file cannot be linked, and failed_move_fall_back_to_copy is off"));
            }
            Err(error) => return Err(error),
        }
        if self.checked_checksum().is_some() {
            let end = source.metadata.len;
            self.compare(self.go_over(&*self.vfs.open(to.path())?, end, &mut |_, _| Ok(()))?)?;
        }
        Ok(true)
    }

    /// Copies the file. Returns the open copy with `write_global_seqno`.
    fn copy(&self, source: &Source, to: &MadeFile) -> Result<Option<Arc<dyn SharedFile>>> {
        let from = self.vfs.open(&source.path)?;
        let end = source.metadata.len.saturating_add(1); // one byte more, to notice a growing file
        let (crc, numbered) = if self.options.write_global_seqno {
            let file = self.vfs.create_shared(to.path())?;
            let crc = self.go_over(&*from, end, &mut |offset, block| file.write_at(offset, block, IoClass::Ingest))?;
            file.sync(IoClass::Ingest)?;
            (crc, Some(file))
        } else {
            let mut file = self.vfs.create(to.path(), IfExists::Fail)?;
            let crc = self.go_over(&*from, end, &mut |_, block| {
                file.append(block, IoClass::Ingest)?;
                file.start_writeback(IoClass::Ingest); // leaves little for the sync
                Ok(())
            })?;
            file.sync(IoClass::Ingest)?;
            (crc, None)
        };
        // The first look preceded the open: check that the file was neither replaced nor changed.
        source.check_unchanged(&**self.vfs)?;
        self.compare(crc)?;
        Ok(numbered)
    }

    /// Visits every block of a file. Returns its crc32c if a checksum is to be verified, else 0.
    fn go_over(&self, file: &dyn RandomFile, end: u64, visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<u32> {
        let checks = self.checked_checksum().is_some();
        let mut crc = 0;
        read_blocks(file, end, IoClass::Ingest, &mut |offset, block| {
            self.progress.check()?;
            if checks {
                crc = crc32c_append(crc, block);
            }
            visit(offset, block)?;
            self.progress.worked(block.len() as u64);
            Ok(())
        })?;
        Ok(crc)
    }

    fn checked_checksum(&self) -> Option<&FileChecksum> {
        self.checksum.filter(|_| self.options.verify_file_checksum)
    }

    /// # Errors
    /// `Corruption`: the caller stated another checksum.
    fn compare(&self, crc: u32) -> Result<()> {
        match self.checked_checksum() {
            Some(stated) if stated.value != crc.to_be_bytes() => {
                let hex: String = stated.value.iter().map(|byte| format!("{byte:02x}")).collect();
                Err(Error::corruption(format!("the file's checksum is {crc:08x} ({CRC32C}), stated was {hex}")))
            }
            _ => Ok(()),
        }
    }
}

/// Whether the file cannot be linked at all: another file system, one without hard links, or missing permission.
fn cannot_be(error: &Error) -> bool {
    use std::error::Error as _;
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    error.kind() == ErrorKind::Unsupported
        || source.is_some_and(|source| source.kind() == std::io::ErrorKind::PermissionDenied)
}

fn check_function(checksum: &FileChecksum) -> Result<()> {
    if checksum.function == CRC32C && checksum.value.len() == size_of::<u32>() {
        return Ok(());
    }
    let FileChecksum { function, value } = checksum;
    let what = format!("a checksum of {} bytes by \"{function}\": four bytes by {CRC32C} are known", value.len());
    Err(Error::invalid_argument(what))
}
