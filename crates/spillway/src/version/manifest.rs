//! The MANIFEST, written: every change of every family's tables, one record each, durable when `commit` returns (V3).
//!
//! A MANIFEST starts with the fence and a snapshot of everything, and grows by edits until it is rolled over into a new
//! one. CURRENT is switched only to a MANIFEST that is whole and synced. Format: docs/format/manifest.md.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, ErrorKind, FileNumber, Result};
use log::framed::FramedWriter;
use vfs::{IfExists, IoClass, Vfs};

use super::current::{SetCurrentError, install_current, set_current};
use super::edit::VersionEdit;
use super::edit_codec;
use super::file_name::{self, FileType};
use super::snapshot::{ManifestKind, ManifestSnapshot};

/// Appends edits to the MANIFEST that CURRENT names. One owner at a time.
///
/// The first failure to append or sync is kept and returned by every later call: nothing is known of the file's end
/// (D4), and the caller turns the database read-only. Where it was for want of space,
/// [`replace`](ManifestWriter::replace) leaves the file for a new one.
pub struct ManifestWriter {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    number: FileNumber,
    writer: FramedWriter,
    /// Length of the snapshot that the file starts with: rolling over cannot make it shorter.
    snapshot_bytes: u64,
    max_bytes: u64,
    failed: Option<Error>,
    /// It is the end of the file alone that is not known.
    is_replaceable: bool,
    /// Tables of edits that failed, or came after one.
    lost: Vec<FileNumber>,
}

impl ManifestWriter {
    /// Writes a new, fenced MANIFEST that starts from `snapshot`, and switches CURRENT to it. `number` is fresh and
    /// below the snapshot's `next_file`. `max_bytes`: `max_manifest_file_size`.
    ///
    /// # Errors
    /// Whatever the file system reports. After an error CURRENT names the old MANIFEST or the new one, and both are
    /// whole.
    pub fn create(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        number: FileNumber,
        snapshot: &ManifestSnapshot,
        max_bytes: u64,
    ) -> Result<Self> {
        let writer = write_snapshot(&*vfs, dir, number, snapshot, ManifestKind::Fenced)?;
        match set_current(&*vfs, dir, number) {
            Ok(()) => {}
            Err(SetCurrentError::Before(error)) => {
                remove_manifest(&*vfs, dir, number);
                return Err(error);
            }
            Err(SetCurrentError::Unknown(error)) => return Err(error),
        }
        let snapshot_bytes = writer.len();
        let (failed, is_replaceable, lost) = (None, false, Vec::new());
        let dir = dir.to_owned();
        Ok(ManifestWriter { vfs, dir, number, writer, snapshot_bytes, max_bytes, failed, is_replaceable, lost })
    }

    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Bytes in the file.
    pub fn len(&self) -> u64 {
        self.writer.len()
    }

    pub fn is_empty(&self) -> bool {
        self.writer.is_empty()
    }

    /// The error that ended this writer, if one did.
    pub fn failure(&self) -> Option<&Error> {
        self.failed.as_ref()
    }

    /// Appends edits, of one family or several, and syncs. They are one record: recovery sees all of them or none (D3).
    ///
    /// # Errors
    /// Sticky: whether the edits will be there after a restart is not known, so what they made obsolete must stay.
    pub fn commit(&mut self, edits: &[VersionEdit]) -> Result<()> {
        let committed = self.check_alive().and_then(|()| {
            let record = edit_codec::encode_record(edits);
            let result = self.writer.append(&record).and_then(|()| self.writer.sync());
            result.map_err(|error| {
                self.is_replaceable = error.kind() == ErrorKind::NoSpace;
                self.fail(error)
            })
        });
        if committed.is_err() {
            self.lost.extend(edits.iter().flat_map(|edit| &edit.added).map(|(_, table)| table.number));
        }
        committed
    }

    /// True where the file is long enough to be replaced: past its limit, and at least twice what a new one would start
    /// with, so that a big database does not roll over at every edit.
    pub fn wants_roll_over(&self) -> bool {
        self.failed.is_none() && self.len() > self.max_bytes.max(self.snapshot_bytes.saturating_mul(2))
    }

    /// Goes on in a new MANIFEST, which starts from `snapshot`: exactly the state after the edits appended so far.
    /// Returns the number of the one it replaces, to be deleted.
    ///
    /// # Errors
    /// Where the new file could not be made, the old one still counts and the writer goes on with it. Where it is not
    /// known which one CURRENT will name after a power loss, the error is sticky.
    pub fn roll_over(&mut self, number: FileNumber, snapshot: &ManifestSnapshot) -> Result<FileNumber> {
        self.check_alive()?;
        self.go_on_in(number, snapshot)
    }

    /// After a failure for want of space, goes on in a new MANIFEST, which starts from `snapshot`: the state without the
    /// edits that failed. Nothing of the old file counts from then on. Returns the number of the old one, and the tables
    /// that those edits were to add.
    ///
    /// # Errors
    /// `NoSpace`: there is still none. Others: only a reopen helps.
    pub fn replace(
        &mut self,
        number: FileNumber,
        snapshot: &ManifestSnapshot,
    ) -> Result<(FileNumber, Vec<FileNumber>)> {
        if !self.is_replaceable {
            self.check_alive()?;
        }
        let old = self.go_on_in(number, snapshot)?;
        (self.failed, self.is_replaceable) = (None, false);
        Ok((old, std::mem::take(&mut self.lost)))
    }

    fn go_on_in(&mut self, number: FileNumber, snapshot: &ManifestSnapshot) -> Result<FileNumber> {
        let writer = write_snapshot(&*self.vfs, &self.dir, number, snapshot, ManifestKind::Fenced)?;
        match set_current(&*self.vfs, &self.dir, number) {
            Ok(()) => {}
            Err(SetCurrentError::Before(error)) => {
                remove_manifest(&*self.vfs, &self.dir, number);
                return Err(error);
            }
            Err(SetCurrentError::Unknown(error)) => {
                self.is_replaceable = false;
                return Err(self.fail(error));
            }
        }
        self.snapshot_bytes = writer.len();
        self.writer = writer;
        Ok(std::mem::replace(&mut self.number, number))
    }

    fn check_alive(&self) -> Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(error) if self.is_replaceable => {
                Err(error.clone().context("an earlier write to the MANIFEST found no space"))
            }
            Some(error) => {
                let what = "an earlier write to the MANIFEST failed; close and reopen the database to go on";
                Err(Error::new(ErrorKind::ReadOnly, what).with_source(error.clone()))
            }
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        let error = error.at_path(manifest_path(&self.dir, self.number));
        self.failed = Some(error.clone());
        error
    }
}

/// Writes a MANIFEST that RocksDB opens, and CURRENT, into a directory that holds tables in RocksDB's formats only.
///
/// # Errors
/// Whatever the file system reports.
pub fn write_export(vfs: &dyn Vfs, dir: &Path, number: FileNumber, snapshot: &ManifestSnapshot) -> Result<()> {
    write_snapshot(vfs, dir, number, snapshot, ManifestKind::Export)?;
    install_current(vfs, dir, number)
}

/// Where a MANIFEST lies.
pub fn manifest_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(file_name::format(FileType::Manifest, number))
}

/// Writes and syncs a MANIFEST that holds a snapshot; removes what there is of it on failure.
fn write_snapshot(
    vfs: &dyn Vfs,
    dir: &Path,
    number: FileNumber,
    snapshot: &ManifestSnapshot,
    kind: ManifestKind,
) -> Result<FramedWriter> {
    let path = manifest_path(dir, number);
    let file = vfs.create(&path, IfExists::Fail)?;
    let mut writer = FramedWriter::new(file, IoClass::Manifest);
    let mut edits = snapshot.edits(kind);
    let result =
        edits.try_for_each(|edit| writer.append(&edit_codec::encode_record(&[edit]))).and_then(|()| writer.sync());
    match result {
        Ok(()) => Ok(writer),
        Err(error) => {
            remove_manifest(vfs, dir, number);
            Err(error.at_path(path))
        }
    }
}

/// Removes a MANIFEST that CURRENT does not name. One that cannot be removed is deleted at the next open.
fn remove_manifest(vfs: &dyn Vfs, dir: &Path, number: FileNumber) {
    let _ = vfs.remove_file(&manifest_path(dir, number));
}
