//! Makes a backup: captures the database as a checkpoint does (Q3 pins the files), copies files the directory lacks,
//! then writes the meta file.

use base::name;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use base::note;
use base::options::ini;
use base::{Error, FileNumber, Result};
use table::Properties;
use vfs::Vfs;

use super::copy::{self, Contents, NotedEnds, Target, work_off};
use super::meta_file::{MetaEntry, MetaFile};
use super::path::{BackupPath, PRIVATE_DIR, Place, SHARED_CHECKSUM_DIR, SHARED_DIR};
use super::store::Store;
use super::{BackupId, BackupOptions};
use crate::database::handle::Database;
use crate::manage::checkpoint::{Capture, CapturedFile, Content, Copier};
use crate::version::file_name::{self, FileType};
use crate::version::manifest::write_alone;
use crate::version::snapshot::ManifestKind;
use crate::version::table_file::TableFile;

pub(super) fn create(
    store: &Store,
    options: &BackupOptions,
    db: &Database,
    flushes: bool,
    note: &[u8],
) -> Result<BackupId> {
    let (core, copier) = (db.core(), db.engine().copier());
    copier.check_copied()?;
    // Before leftovers go: the number of a backup that has lost its meta file is not given to another one.
    let id = store.next_id()?;
    store.collect_garbage(&[])?;
    if flushes {
        let families: Vec<_> = core.families.load().iter().cloned().collect();
        db.engine().flusher.flush_families(&families.iter().collect::<Vec<_>>())?;
    } else {
        copier.flush_what_no_log_has()?;
    }
    let capture = copier.capture()?;
    let filled = fill(store, options, &copier, id, &capture);
    let published = filled.and_then(|meta| store.publish(id, &MetaFile { note: note.to_vec(), ..meta }));
    published.inspect_err(|_| abandon(store, id))?;
    Ok(id)
}

/// Removes the files of a failed backup. The next change removes any leftovers.
fn abandon(store: &Store, id: BackupId) {
    if let Err(error) = store.remove(&[id]) {
        note::warn!(%error, "cannot remove what there is of a backup that failed");
    }
}

/// Brings the files, and describes them.
fn fill(
    store: &Store,
    options: &BackupOptions,
    copier: &Copier<'_>,
    id: BackupId,
    capture: &Capture,
) -> Result<MetaFile> {
    store.vfs.create_dir_all(&store.private_dir(id))?;
    let bringer = Bringer {
        store: store.clone(),
        source: copier.core.context.vfs.clone(),
        known: known_files(store)?,
        logs: NotedEnds {
            ends: capture.snapshot.log_ends.clone(),
            range: capture.snapshot.wal_range,
            own_from: copier.core.first_own_file,
        },
        id,
        shares_tables: options.share_table_files,
        names_are_unique: options.share_files_with_checksum,
    };
    let mut files = work_off(options, copier.files_of(capture), move |file| bringer.bring(file))?;
    files.extend(describe(store, copier, id, capture)?);
    store.sync_dir(&format!("{PRIVATE_DIR}/{id}"))?;
    for dir in [PRIVATE_DIR, SHARED_DIR, SHARED_CHECKSUM_DIR] {
        store.sync_dir(dir)?;
    }
    let timestamp_s = store.vfs.unix_time_us() / 1_000_000;
    Ok(MetaFile { timestamp_s, last_seq: capture.snapshot.last_seq, files, ..MetaFile::default() })
}

/// The shared files of all complete backups. Not those for which the meta files have different checksums: one of these is wrong,
/// and a new copy replaces the file.
fn known_files(store: &Store) -> Result<BTreeMap<BackupPath, Contents>> {
    let (mut known, mut contested) = (BTreeMap::new(), BTreeSet::new());
    for backup in store.load_all()?.into_iter().flatten() {
        for (file, bytes) in backup.meta.files.into_iter().zip(backup.file_bytes) {
            // A file without a checksum is copied again, to learn its checksum.
            if let (Place::Shared | Place::SharedChecksum, Some(crc32c)) = (file.path.place(), file.crc32c) {
                let before = known.insert(file.path.clone(), Contents { bytes, crc32c });
                contested.extend(before.filter(|before| before.crc32c != crc32c).map(|_| file.path));
            }
        }
    }
    known.retain(|path, _| !contested.contains(path));
    Ok(known)
}

/// Writes options, MANIFEST and CURRENT.
fn describe(store: &Store, copier: &Copier<'_>, id: BackupId, capture: &Capture) -> Result<Vec<MetaEntry>> {
    let dir = store.private_dir(id);
    let options = file_name::format(FileType::Options, capture.manifest);
    let (id_of_database, audience) = (&copier.core.context.db_id, ini::Audience::Spillway);
    let text = copier.describe_options(&capture.families, id_of_database, capture.manifest, audience);
    store.write(&dir.join(&options), &name::bytes(&text))?;
    write_alone(&*store.vfs, &dir, capture.manifest, &capture.snapshot, ManifestKind::Fenced)?;
    let manifest = file_name::format(FileType::Manifest, capture.manifest);
    let current = file_name::format(FileType::Current, FileNumber(0));
    let described = [options, manifest, current];
    described.iter().map(|name| entry(id, name, copy::read(&*store.vfs, &dir.join(name), None)?)).collect()
}

/// The meta file's entry for a private file.
fn entry(id: BackupId, name: &str, contents: Contents) -> Result<MetaEntry> {
    let path = BackupPath::private(id, name).ok_or_else(|| unnamed(name))?;
    Ok(MetaEntry { path, crc32c: Some(contents.crc32c), bytes: None })
}

fn unnamed(name: &str) -> Error {
    Error::unsupported(format!("{name} has no place in a backup"))
}

/// Copies files of the database into the backup directory.
struct Bringer {
    store: Store,
    /// The database's file system.
    source: Arc<dyn Vfs>,
    known: BTreeMap<BackupPath, Contents>,
    logs: NotedEnds,
    id: BackupId,
    shares_tables: bool,
    names_are_unique: bool,
}

impl Bringer {
    /// Copies a file unless the backups already have it.
    fn bring(&self, file: &CapturedFile) -> Result<MetaEntry> {
        let name = file.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let private = || BackupPath::private(self.id, name).ok_or_else(|| unnamed(name));
        match &file.content {
            // A checksum is made of the copy, so it would match a damaged file.
            Content::GrowingLog { number, bytes } => {
                self.logs.verify(&*self.source, &file.path, FileType::Log, *number)?;
                self.copy(file, Some(*bytes), private()?)
            }
            Content::Table(table) => {
                let path = if self.shares_tables { self.shared_table_path(file, table)? } else { private()? };
                let bytes = table.meta.physical_bytes();
                match self.reuse(&path, bytes)? {
                    // Its values lie in logs.
                    Some(entry) if table.meta.value_logs.is_empty() => Ok(entry),
                    Some(entry) => table.verify_file().map(|()| entry),
                    None => {
                        table.verify_file()?;
                        self.copy(file, Some(bytes), path)
                    }
                }
            }
            Content::CompleteLog(kind, number) => {
                self.logs.verify(&*self.source, &file.path, *kind, *number)?;
                match self.shares_tables && self.names_are_unique {
                    true => self.bring_log(file, *kind, *number),
                    false => self.copy(file, None, private()?),
                }
            }
        }
    }

    fn copy(&self, file: &CapturedFile, end: Option<u64>, path: BackupPath) -> Result<MetaEntry> {
        let temp = path.temp_at(&self.store.dir);
        let contents = self.copy_to(&temp, file, end)?;
        self.publish(&temp, path, contents)
    }

    fn copy_to(&self, temp: &Path, file: &CapturedFile, end: Option<u64>) -> Result<Contents> {
        let target = Target { vfs: &*self.store.vfs, path: temp, syncs: self.store.syncs };
        copy::copy(&*self.source, &file.path, end, &target)
    }

    fn publish(&self, temp: &Path, path: BackupPath, contents: Contents) -> Result<MetaEntry> {
        self.store.vfs.rename(temp, &path.at(&self.store.dir))?;
        Ok(MetaEntry { path, crc32c: Some(contents.crc32c), bytes: None })
    }

    /// Uses a file in the directory in place of copying one of `bytes`. `None`: there is none, or it has lost a part, and a copy
    /// takes its place in all backups. Its bytes are not read: a backup costs what is new.
    ///
    /// # Errors
    /// `InvalidArgument`: the sizes differ, because the directory also serves another database.
    fn reuse(&self, path: &BackupPath, bytes: u64) -> Result<Option<MetaEntry>> {
        let Some(known) = self.known.get(path) else { return Ok(None) };
        if bytes != known.bytes {
            let what = format!(
                "another database's table of this name is in the backups, which has {} bytes instead of {bytes}; use \
                 share_files_with_checksum, or another directory",
                known.bytes
            );
            return Err(Error::invalid_argument(what).at_path(path.to_string()));
        }
        let found = self.store.look(&path.at(&self.store.dir))?;
        if found.len == known.bytes {
            return Ok(Some(MetaEntry { path: path.clone(), crc32c: Some(known.crc32c), bytes: None }));
        }
        note::warn!(file = %path, "a shared file of the backups has another length by now, and is copied again");
        Ok(None)
    }

    /// Copies a log under a name made of its contents. Reads the log first: cheaper than another copy in each backup.
    /// Its trailing zeros may be truncated in between, so the name is made from the copied bytes.
    fn bring_log(&self, file: &CapturedFile, kind: FileType, number: FileNumber) -> Result<MetaEntry> {
        let found = by_contents(kind, number, copy::read(&*self.source, &file.path, None)?)?;
        let bytes = self.known.get(&found).map_or(0, |known| known.bytes);
        if let Some(entry) = self.reuse(&found, bytes)? {
            return Ok(entry);
        }
        let temp = found.temp_at(&self.store.dir);
        let contents = self.copy_to(&temp, file, None)?;
        self.publish(&temp, by_contents(kind, number, contents)?, contents)
    }

    fn shared_table_path(&self, file: &CapturedFile, table: &TableFile) -> Result<BackupPath> {
        let (number, bytes) = (table.meta.physical_number(), table.meta.physical_bytes());
        let name = file_name::format(FileType::Table, number);
        if !self.names_are_unique {
            return BackupPath::shared(&name).ok_or_else(|| unnamed(&name));
        }
        match table.with(|table| Ok(session_of(table.properties()).map(str::to_owned)))? {
            Some(session) => BackupPath::shared_checksum(FileType::Table, number, &format!("s{session}_{bytes}"))
                .ok_or_else(|| unnamed(&name)),
            None => by_contents(FileType::Table, number, copy::read(&*self.source, &file.path, Some(bytes))?),
        }
    }
}

/// The path of a file named by its contents.
fn by_contents(kind: FileType, number: FileNumber, Contents { bytes, crc32c }: Contents) -> Result<BackupPath> {
    let path = BackupPath::shared_checksum(kind, number, &format!("{crc32c}_{bytes}"));
    path.ok_or_else(|| unnamed(&file_name::format(kind, number)))
}

/// The session that made a table: identifies the table among equal numbers without reading it. `None` for ingested
/// tables: another database may have the same table with another sequence number written into it.
fn session_of(properties: &Properties) -> Option<&str> {
    let session = properties.session_id.as_str();
    let is_plain = !session.is_empty() && session.bytes().all(|b| b.is_ascii_alphanumeric());
    (is_plain && properties.external.is_none()).then_some(session)
}
