//! Makes a backup: captures the database as a checkpoint does (Q3 pins what is copied), copies what the directory lacks,
//! describes it, and gives it its name at last.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base::options::ini;
use base::{Error, FileNumber, Result};
use table::Properties;
use vfs::{IfExists, IoClass, Vfs};

use super::copy::{self, Contents, Target, work_off};
use super::meta_file::{MetaEntry, MetaFile};
use super::path::{BackupPath, PRIVATE_DIR, Place, SHARED_CHECKSUM_DIR, SHARED_DIR};
use super::store::Store;
use super::{BackupId, BackupOptions};
use crate::checkpoint::{Capture, CapturedFile, Content};
use crate::core::Core;
use crate::db::Db;
use crate::version::file_name::{self, FileType};
use crate::version::table_file::TableFile;

pub(super) fn create(store: &Store, options: &BackupOptions, db: &Db, flushes: bool) -> Result<BackupId> {
    let core = db.core();
    core.check_writable()?;
    // What is left of an attempt under the id that comes next must not get into this one.
    store.collect_garbage()?;
    let newest = store.ids()?.last().copied().unwrap_or(0);
    let id = newest.checked_add(1).ok_or_else(|| Error::invalid_argument("no number is left").at_path(&store.dir))?;
    if flushes {
        let families: Vec<_> = core.families.load().iter().cloned().collect();
        core.flush_families(&families.iter().collect::<Vec<_>>())?;
    } else {
        core.flush_what_no_log_has()?;
    }
    let capture = core.capture()?;
    fill(store, options, core, (id, &capture)).inspect_err(|_| abandon(store, id))?;
    Ok(id)
}

/// Removes what there is of a backup that failed. What cannot be removed goes with the next change.
fn abandon(store: &Store, id: BackupId) {
    let removed = if store.check_exists(id).is_ok() { store.remove(&[id]) } else { store.collect_garbage() };
    if let Err(error) = removed {
        tracing::warn!(%error, "cannot remove what there is of a backup that failed");
    }
}

fn fill(store: &Store, options: &BackupOptions, core: &Core, (id, capture): (BackupId, &Capture)) -> Result<()> {
    store.vfs.create_dir_all(&store.private_dir(id))?;
    let bringer = Bringer {
        store: store.clone(),
        source: core.context.vfs.clone(),
        known: known_files(store)?,
        id,
        shares_tables: options.share_table_files,
        names_are_unique: options.share_files_with_checksum,
    };
    let mut files = work_off(options, core.files_of(capture), move |file| bringer.bring(file))?;
    files.extend(describe(store, core, (id, capture))?);
    store.sync_dir(&format!("{PRIVATE_DIR}/{id}"))?;
    for dir in [PRIVATE_DIR, SHARED_DIR, SHARED_CHECKSUM_DIR] {
        store.sync_dir(dir)?;
    }
    let timestamp_s = store.vfs.unix_time_us() / 1_000_000;
    store.publish(id, &MetaFile { timestamp_s, last_seq: capture.snapshot.last_seq, files })
}

/// The shared files of the backups that are there with all their files.
fn known_files(store: &Store) -> Result<BTreeMap<BackupPath, Contents>> {
    let mut known = BTreeMap::new();
    for backup in store.load_all()?.into_iter().flatten() {
        for (file, bytes) in backup.meta.files.into_iter().zip(backup.file_bytes) {
            // A file without a checksum is copied anew, so that its checksum is known.
            if let (Place::Shared | Place::SharedChecksum, Some(crc32c)) = (file.path.place(), file.crc32c) {
                known.insert(file.path, Contents { bytes, crc32c });
            }
        }
    }
    Ok(known)
}

/// Writes options, MANIFEST and CURRENT.
fn describe(store: &Store, core: &Core, (id, capture): (BackupId, &Capture)) -> Result<Vec<MetaEntry>> {
    let dir = store.private_dir(id);
    let options = file_name::format(FileType::Options, capture.manifest);
    let text = core.describe_options(&capture.families, ini::Audience::Spillway);
    write(store, &dir.join(&options), text.as_bytes())?;
    core.write_captured_manifest(&store.vfs, &dir, capture)?;
    let manifest = file_name::format(FileType::Manifest, capture.manifest);
    let current = file_name::format(FileType::Current, FileNumber(0));
    let described = [options, manifest, current];
    described.iter().map(|name| entry(id, name, copy::read(&*store.vfs, &dir.join(name), None)?)).collect()
}

fn write(store: &Store, path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = store.vfs.create(path, IfExists::Truncate)?;
    file.append(bytes, IoClass::Other)?;
    if store.syncs { file.sync(IoClass::Other) } else { Ok(()) }
}

/// What a meta file says of a private file.
fn entry(id: BackupId, name: &str, contents: Contents) -> Result<MetaEntry> {
    let path = BackupPath::private(id, name).ok_or_else(|| unnamed(name))?;
    Ok(MetaEntry { path, crc32c: Some(contents.crc32c), bytes: None })
}

fn unnamed(name: &str) -> Error {
    Error::unsupported(format!("{name} has no place in a backup"))
}

/// Brings files of the database into the backup directory.
struct Bringer {
    store: Store,
    /// Where the database is.
    source: Arc<dyn Vfs>,
    known: BTreeMap<BackupPath, Contents>,
    id: BackupId,
    shares_tables: bool,
    names_are_unique: bool,
}

impl Bringer {
    /// Copies a file, unless it is there.
    fn bring(&self, file: &CapturedFile) -> Result<MetaEntry> {
        let name = file.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let (path, end) = match &file.content {
            Content::GrowingLog { bytes } => (BackupPath::private(self.id, name), Some(*bytes)),
            Content::Table(table) if self.shares_tables => (self.shared_table_path(file, table, name)?, None),
            // A log is read to be named, which is cheaper than a copy of it in each backup.
            Content::CompleteLog(kind, number) if self.shares_tables && self.names_are_unique => {
                (self.checksum_path(file, *kind, *number)?, None)
            }
            Content::Table(_) | Content::CompleteLog(..) => (BackupPath::private(self.id, name), None),
        };
        let path = path.ok_or_else(|| unnamed(name))?;
        if let Some(known) = self.known.get(&path) {
            return self.reuse(file, path, *known);
        }
        let temp = path.temp_at(&self.store.dir);
        let target = Target { vfs: &*self.store.vfs, path: &temp, syncs: self.store.syncs };
        let contents = copy::copy(&*self.source, &file.path, end, &target)?;
        self.store.vfs.rename(&temp, &path.at(&self.store.dir))?;
        Ok(MetaEntry { path, crc32c: Some(contents.crc32c), bytes: None })
    }

    /// # Errors
    /// `InvalidArgument`: what is there is not this file, since the directory serves another database too.
    fn reuse(&self, file: &CapturedFile, path: BackupPath, known: Contents) -> Result<MetaEntry> {
        let bytes = self.source.metadata(&file.path)?.len;
        if bytes != known.bytes {
            let what = format!(
                "another database's table of this name is in the backups, which has {} bytes instead of {bytes}; use \
                 share_files_with_checksum, or another directory",
                known.bytes
            );
            return Err(Error::invalid_argument(what).at_path(path.at(&self.store.dir)));
        }
        Ok(MetaEntry { path, crc32c: Some(known.crc32c), bytes: None })
    }

    fn shared_table_path(&self, file: &CapturedFile, table: &TableFile, name: &str) -> Result<Option<BackupPath>> {
        if !self.names_are_unique {
            return Ok(BackupPath::shared(name));
        }
        let (number, bytes) = (table.meta.physical_number(), table.meta.physical_bytes());
        match table.with(|table| Ok(session_of(table.properties()).map(str::to_owned)))? {
            Some(session) => Ok(BackupPath::shared_checksum(FileType::Table, number, &format!("s{session}_{bytes}"))),
            None => self.checksum_path(file, FileType::Table, number),
        }
    }

    /// Named by what is in it.
    fn checksum_path(&self, file: &CapturedFile, kind: FileType, number: FileNumber) -> Result<Option<BackupPath>> {
        let Contents { bytes, crc32c } = copy::read(&*self.source, &file.path, None)?;
        Ok(BackupPath::shared_checksum(kind, number, &format!("{crc32c}_{bytes}")))
    }
}

/// The session that made a table, which tells it from others of its number without reading it. Not of a table that was
/// ingested: other databases can have the same one, with another sequence number written into it.
fn session_of(properties: &Properties) -> Option<&str> {
    let session = properties.session_id.as_str();
    let is_plain = !session.is_empty() && session.bytes().all(|b| b.is_ascii_alphanumeric());
    (is_plain && properties.external.is_none()).then_some(session)
}
