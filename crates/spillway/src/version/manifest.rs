//! Writes the MANIFEST: one record for each change of any family's tables, durable when `commit` returns (V3).
//!
//! A MANIFEST starts with the fence and a snapshot of everything, and grows by edits until rolled over into a new one.
//! CURRENT is switched only to a whole and synced MANIFEST. Each record goes to a second copy of the file, too
//! ([`manifest_copy`](super::manifest_copy)). Format: docs/format/manifest.md.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, ErrorKind, FileNumber, Result};
use vfs::{IfExists, IoClass, Vfs};
use wal::NotedManifest;
use wal::framed::FramedWriter;

use super::current::{SetCurrentError, install_current, set_current};
use super::edit::VersionEdit;
use super::edit_codec;
use super::file_name::{self, FileType};
use super::manifest_copy::copy_path;
use super::recover::read_edits;
use super::snapshot::{ManifestKind, ManifestSnapshot};

/// Appends edits to the MANIFEST named by CURRENT. One owner at a time.
///
/// The first failure to append or sync is sticky: every later call returns it. The end of the file is then unknown
/// (D4), and the caller turns the database read-only. After `NoSpace`, [`replace`](ManifestWriter::replace) continues
/// in a new file.
pub struct ManifestWriter {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    number: FileNumber,
    writer: FramedWriter,
    /// Written and synced after `writer`, with the same records.
    copy: FramedWriter,
    /// Length of the initial snapshot: a roll-over cannot make the file shorter.
    snapshot_bytes: u64,
    max_bytes: u64,
    failed: Option<Error>,
    /// Only the end of the file is unknown, so a new MANIFEST can replace it.
    is_replaceable: bool,
    /// Tables of failed edits, and of all edits after a failure.
    lost: Vec<FileNumber>,
}

impl ManifestWriter {
    /// Writes a new, fenced MANIFEST starting from `snapshot`, and switches CURRENT to it. `number` is fresh and below
    /// the snapshot's `next_file`. `max_bytes`: `max_manifest_file_size`.
    ///
    /// # Errors
    /// File system errors. Afterwards CURRENT names the old MANIFEST or the new one, and both are whole.
    pub fn create(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        number: FileNumber,
        snapshot: &ManifestSnapshot,
        max_bytes: u64,
    ) -> Result<Self> {
        let [writer, copy] = begin(&*vfs, dir, number, snapshot)?;
        let snapshot_bytes = writer.len();
        let (failed, is_replaceable, lost) = (None, false, Vec::new());
        let dir = dir.to_owned();
        Ok(ManifestWriter { vfs, dir, number, writer, copy, snapshot_bytes, max_bytes, failed, is_replaceable, lost })
    }

    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// How far the MANIFEST has come, for the header of a new log.
    pub(crate) fn noted(&self) -> NotedManifest {
        NotedManifest::new(self.number, self.len())
    }

    /// Bytes in the file.
    pub(crate) fn len(&self) -> u64 {
        self.writer.len()
    }

    /// The sticky error, if any.
    pub fn failure(&self) -> Option<&Error> {
        self.failed.as_ref()
    }

    /// Appends edits, of one family or several, and syncs. They are one record: recovery sees all of them or none (D3).
    ///
    /// # Errors
    /// Sticky. The edits may or may not survive a restart, so files they made obsolete must stay.
    pub fn commit(&mut self, edits: &[VersionEdit]) -> Result<()> {
        let committed = self.check_alive().and_then(|()| {
            let record = edit_codec::encode_record(edits);
            let append = |file: &mut FramedWriter| file.append(&record).and_then(|()| file.sync());
            let result = append(&mut self.writer).and_then(|()| append(&mut self.copy));
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

    /// True if the file is past its limit and more than twice the length of its snapshot. The second condition keeps a
    /// big database from rolling over at every edit.
    pub fn wants_roll_over(&self) -> bool {
        self.failed.is_none() && self.len() > self.max_bytes.max(self.snapshot_bytes.saturating_mul(2))
    }

    /// Continues in a new MANIFEST starting from `snapshot`: exactly the state after the edits appended so far. Returns
    /// the number of the old MANIFEST, to be deleted.
    ///
    /// # Errors
    /// If the new file could not be made, the writer continues with the old one. If CURRENT after a power loss is
    /// unknown, the error is sticky.
    pub fn roll_over(&mut self, number: FileNumber, snapshot: &ManifestSnapshot) -> Result<FileNumber> {
        self.check_alive()?;
        self.go_on_in(number, snapshot)
    }

    /// After `NoSpace`, continues in a new MANIFEST starting from `snapshot`: the state without the failed edits. The
    /// old file is void from then on. Returns the number of the old MANIFEST, and the tables added by the failed edits.
    ///
    /// # Errors
    /// `NoSpace`: there is still none. Other errors: reopen the database.
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
        let [writer, copy] = begin(&*self.vfs, &self.dir, number, snapshot).map_err(|error| match error {
            SetCurrentError::Before(error) => error,
            SetCurrentError::Unknown(error) => {
                self.is_replaceable = false;
                self.fail(error)
            }
        })?;
        self.snapshot_bytes = writer.len();
        (self.writer, self.copy) = (writer, copy);
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

/// Writes a MANIFEST without a copy, and CURRENT: of an export, whose tables are in RocksDB's formats only, or of a backup,
/// which has checksums of its own.
///
/// # Errors
/// File system errors.
pub fn write_alone(
    vfs: &dyn Vfs,
    dir: &Path,
    number: FileNumber,
    snapshot: &ManifestSnapshot,
    kind: ManifestKind,
) -> Result<()> {
    write_snapshot(vfs, &manifest_path(dir, number), snapshot, kind)?;
    install_current(vfs, dir, number)
}

/// Adds a private edit to a MANIFEST without a copy, by writing the file anew. RocksDB's MANIFESTs have no fence, so they stay
/// as they are. Nothing else may have the file open, and a crash may leave it cut off. Returns whether it has a fence.
///
/// # Errors
/// `Corruption`: the MANIFEST is damaged. The file system's.
pub(crate) fn add_if_fenced(vfs: &dyn Vfs, path: &Path, edit: VersionEdit) -> Result<bool> {
    let (mut records, mut is_fenced) = (Vec::new(), false);
    read_edits(vfs, path, |record, edits| {
        is_fenced |= edits.iter().any(|edit| edit.fence.is_some());
        records.push(record.payload.clone());
        Ok(())
    })?;
    if !is_fenced || edit == VersionEdit::default() {
        return Ok(is_fenced);
    }
    records.push(edit_codec::encode_record(&[edit]));
    let mut writer = FramedWriter::new(vfs.create(path, IfExists::Truncate)?, IoClass::Manifest);
    let written = records.iter().try_for_each(|record| writer.append(record)).and_then(|()| writer.sync());
    written.map(|()| true).map_err(|error| error.at_path(path))
}

/// The path of a MANIFEST.
pub fn manifest_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(file_name::format(FileType::Manifest, number))
}

/// Begins a MANIFEST and its copy with a snapshot, and has CURRENT name it. Removes the files while CURRENT names the
/// old one.
fn begin(
    vfs: &dyn Vfs,
    dir: &Path,
    number: FileNumber,
    snapshot: &ManifestSnapshot,
) -> Result<[FramedWriter; 2], SetCurrentError> {
    let write = |path: &Path| write_snapshot(vfs, path, snapshot, ManifestKind::Fenced);
    let writer = write(&manifest_path(dir, number)).map_err(SetCurrentError::Before)?;
    // The copy last: recovery takes a MANIFEST with a copy, and finds all that it names.
    let copy = vfs.sync_dir(dir).and_then(|()| write(&copy_path(dir, number)));
    let copy = copy.map_err(|error| remove_manifest(vfs, dir, number, error))?;
    set_current(vfs, dir, number).map_err(|error| match error {
        SetCurrentError::Before(error) => remove_manifest(vfs, dir, number, error),
        unknown => unknown,
    })?;
    Ok([writer, copy])
}

/// Writes and syncs a MANIFEST, or its copy, with a snapshot. Removes the file on failure.
fn write_snapshot(vfs: &dyn Vfs, path: &Path, snapshot: &ManifestSnapshot, kind: ManifestKind) -> Result<FramedWriter> {
    let file = vfs.create(path, IfExists::Fail)?;
    let mut writer = FramedWriter::new(file, IoClass::Manifest);
    let mut edits = snapshot.edits(kind);
    let result =
        edits.try_for_each(|edit| writer.append(&edit_codec::encode_record(&[edit]))).and_then(|()| writer.sync());
    match result {
        Ok(()) => Ok(writer),
        Err(error) => {
            let _ = vfs.remove_file(path); // or the next open deletes it
            Err(error.at_path(path))
        }
    }
}

/// Removes a MANIFEST not named by CURRENT, and its copy. Were they left whole, recovery would take them for the last
/// state: so the removal must be durable before CURRENT's MANIFEST goes on.
fn remove_manifest(vfs: &dyn Vfs, dir: &Path, number: FileNumber, error: Error) -> SetCurrentError {
    let is_gone = |path: &Path| match vfs.remove_file(path) {
        Err(error) => error.is_not_found(),
        Ok(()) => true,
    };
    let are_gone = [copy_path(dir, number), manifest_path(dir, number)].iter().all(|path| is_gone(path));
    if are_gone && vfs.sync_dir(dir).is_ok() { SetCurrentError::Before(error) } else { SetCurrentError::Unknown(error) }
}
