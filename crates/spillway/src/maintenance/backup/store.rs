//! The backup directory: lists and loads backups, and removes unused files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::note;
use base::{Error, FileNumber, Result, SeqNo};
use vfs::{FileKind, IfExists, IoClass, Metadata, Vfs};

use super::meta_file::{META_BYTES_MAX, MetaFile};
use super::path::{
    BackupPath, META_DIR, PRIVATE_DIR, Place, SHARED_CHECKSUM_DIR, SHARED_DIR, is_temp_name, parse_id, temp_name,
};
use super::{BackupId, BackupInfo, DamagedBackup};
use crate::background::staging::create_durable_dir;
use crate::version::file_name::{self, FileType};
use crate::version::recover::Recovered;

/// The beginning of errors of absent backups, as RocksDB's.
pub const NO_BACKUP: &str = "Backup not found";

/// A backup with all its files present, in the expected sizes.
pub(super) struct Backup {
    pub id: BackupId,
    pub meta: MetaFile,
    /// One for each entry of `meta.files`.
    pub file_bytes: Vec<u64>,
}

impl Backup {
    /// The number of the last write, by the backup's MANIFEST. RocksDB's ends before that of the logs, so the meta file counts where
    /// the backup has logs.
    pub fn last_written(&self, manifest: &Recovered) -> SeqNo {
        let by_meta = if manifest.fenced || !self.has_logs() { SeqNo::ZERO } else { self.meta.last_seq };
        manifest.last_written.max(by_meta)
    }

    pub fn has_logs(&self) -> bool {
        self.meta.files.iter().any(|file| file.path.file_type().is_log())
    }

    pub fn info(&self) -> BackupInfo {
        BackupInfo {
            id: self.id,
            timestamp_s: self.meta.timestamp_s,
            last_seq: self.meta.last_seq,
            bytes: self.file_bytes.iter().sum(),
            files: self.meta.files.len(),
            note: self.meta.note.clone(),
        }
    }
}

/// A backup directory.
#[derive(Clone)]
pub(super) struct Store {
    pub vfs: Arc<dyn Vfs>,
    pub dir: PathBuf,
    /// Whether to sync writes.
    pub syncs: bool,
}

impl Store {
    /// Creates the directory and its subdirectories if missing.
    pub fn create_dirs(&self) -> Result<()> {
        for dir in ["", META_DIR, PRIVATE_DIR, SHARED_DIR, SHARED_CHECKSUM_DIR] {
            let dir = if dir.is_empty() { self.dir.clone() } else { self.dir.join(dir) };
            if !self.vfs.exists(&dir)? {
                create_durable_dir(&*self.vfs, &dir)?;
            }
        }
        Ok(())
    }

    /// The backups in the directory, damaged ones included, oldest first.
    pub fn ids(&self) -> Result<Vec<BackupId>> {
        let names = self.names_in(META_DIR)?;
        let ids: BTreeSet<BackupId> = names.iter().filter_map(|name| parse_id(name)).collect();
        Ok(ids.into_iter().collect())
    }

    /// The backups of [`ids`](Self::ids), and those of which anything is left.
    pub fn ids_with_leftovers(&self) -> Result<BTreeSet<BackupId>> {
        let private = self.names_in(PRIVATE_DIR)?;
        Ok(private.iter().filter_map(|name| private_id(name)).chain(self.ids()?).collect())
    }

    /// The number of the next backup: no backup, and nothing left of one, has it or a larger one.
    pub fn next_id(&self) -> Result<BackupId> {
        let newest = self.ids_with_leftovers()?.last().copied().unwrap_or(0);
        newest.checked_add(1).ok_or_else(|| Error::invalid_argument("no number is left").at_path(&self.dir))
    }

    /// What there is of backups without a meta file, oldest first. Such a backup was never finished, or was finished and
    /// lost its meta file: nothing tells which.
    pub fn unfinished(&self) -> Result<Vec<DamagedBackup>> {
        // Read before the meta files: a backup that is finished meanwhile is not told of.
        let private = self.names_in(PRIVATE_DIR)?;
        let ids = self.ids()?;
        let mut found = Vec::new();
        for name in &private {
            let path = self.dir.join(PRIVATE_DIR).join(name);
            if let Some(id) = private_id(name).filter(|id| !ids.contains(id))
                && self.is_leftover(&path)?
            {
                found.push(DamagedBackup { id, error: without_meta(id).at_path(path) });
            }
        }
        found.sort_by_key(|backup| backup.id);
        Ok(found)
    }

    /// Whether a deletion finds something to remove in the private directory of a backup without a meta file.
    fn is_leftover(&self, dir: &Path) -> Result<bool> {
        let looked = self.vfs.metadata(dir).and_then(|found| match found.kind {
            FileKind::Directory => self.vfs.read_dir(dir).map(Some),
            _ => Ok(None),
        });
        match looked {
            Ok(names) => Ok(names.is_some_and(|names| names.is_empty() || names.iter().any(|name| is_removable(name)))),
            Err(error) if error.is_not_found() => Ok(false), // removed meanwhile
            Err(error) => Err(error),
        }
    }

    /// The newest backup with all its files. Warns of newer ones that are damaged, or have no meta file.
    ///
    /// # Errors
    /// `InvalidArgument`: there is none; the error names what there is instead.
    pub fn latest(&self) -> Result<Backup> {
        let mut found = None;
        let mut passed = Vec::new();
        for id in self.ids()?.into_iter().rev() {
            match self.load(id) {
                Ok(backup) => {
                    found = Some(backup);
                    break;
                }
                Err(error) => passed.push(DamagedBackup { id, error }),
            }
        }
        let oldest = found.as_ref().map_or(0, |backup| backup.id);
        passed.extend(self.unfinished()?.into_iter().filter(|backup| backup.id > oldest));
        let Some(backup) = found else { return Err(self.nothing_to_restore(&passed)) };
        for DamagedBackup { error, .. } in &passed {
            note::warn!(%error, taken = backup.id, "a newer backup cannot be restored, and an older one is taken");
        }
        Ok(backup)
    }

    fn nothing_to_restore(&self, damaged: &[DamagedBackup]) -> Error {
        let errors: Vec<_> = damaged.iter().map(|backup| backup.error.to_string()).collect();
        let what = match errors.as_slice() {
            [] => format!("{NO_BACKUP}: there is no backup to restore"),
            errors => format!("{NO_BACKUP}: there is no backup to restore, only what cannot be: {}", errors.join("; ")),
        };
        Error::invalid_argument(what).at_path(&self.dir)
    }

    /// All backups, oldest first; an error for each damaged one.
    pub fn load_all(&self) -> Result<Vec<Result<Backup>>> {
        Ok(self.ids()?.into_iter().map(|id| self.load(id)).collect())
    }

    /// Reads a backup's meta file, and checks its files' presence and sizes.
    pub fn load(&self, id: BackupId) -> Result<Backup> {
        self.check_exists(id)?;
        let meta = self.read_meta(id)?;
        let file_bytes = meta.files.iter().map(|file| {
            let path = file.path.at(&self.dir);
            let found = self.look(&path).map_err(|error| match error.is_not_found() {
                true => Error::corruption(format!("a file of backup {id} is missing")).at_path(&path),
                false => error,
            })?;
            if found.kind != FileKind::File {
                return Err(Error::corruption(format!("backup {id} has something that is no file")).at_path(&path));
            }
            check_bytes(id, &path, file.bytes.or_else(|| file.path.named_bytes()), found.len)?;
            Ok(found.len)
        });
        let file_bytes = file_bytes.collect::<Result<_>>()?;
        Ok(Backup { id, meta, file_bytes })
    }

    /// A file of a backup. Tools that share or move files leave symbolic links in their place.
    pub fn look(&self, path: &Path) -> Result<Metadata> {
        let found = self.vfs.metadata(path)?;
        if found.kind == FileKind::Other { self.vfs.metadata(&self.vfs.canonicalize(path)?) } else { Ok(found) }
    }

    /// # Errors
    /// `InvalidArgument`: there is no backup of this id.
    pub fn check_exists(&self, id: BackupId) -> Result<()> {
        if self.vfs.exists(&self.meta_path(id))? {
            return Ok(());
        }
        Err(Error::invalid_argument(format!("{NO_BACKUP}: there is no backup {id}")).at_path(&self.dir))
    }

    fn read_meta(&self, id: BackupId) -> Result<MetaFile> {
        let path = self.meta_path(id);
        let decoded = vfs::read_all(&*self.vfs, &path, META_BYTES_MAX, IoClass::Other)
            .and_then(|bytes| MetaFile::decode(&bytes))
            .map_err(|error| error.context(format!("backup {id}")).at_path(&path))?;
        let of_others = |path: &BackupPath| matches!(path.place(), Place::Private(other) if other != id);
        match decoded.files.iter().find(|file| of_others(&file.path)) {
            Some(file) => {
                let what = format!("backup {id} names {}, which is another backup's", file.path);
                Err(Error::corruption(what).at_path(path))
            }
            None => Ok(decoded),
        }
    }

    /// Creates a backup's meta file; from then on the backup exists. All its files must be complete and synced.
    pub fn publish(&self, id: BackupId, meta: &MetaFile) -> Result<()> {
        let path = self.meta_path(id);
        let temp = self.dir.join(META_DIR).join(temp_name(&id.to_string()));
        self.write(&temp, meta.encode().as_bytes())?;
        self.vfs.rename(&temp, &path)?;
        self.sync_dir(META_DIR)
    }

    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = self.vfs.create(path, IfExists::Truncate)?;
        file.append(bytes, IoClass::Other)?;
        if self.syncs { file.sync(IoClass::Other) } else { Ok(()) }
    }

    /// Removes backups, or what is left of them, and then every file used by none.
    pub fn remove(&self, ids: &[BackupId]) -> Result<()> {
        // Oldest first: an interrupted purge still has the newest backups.
        for meta in ids.iter().map(|id| self.meta_path(*id)) {
            if self.vfs.exists(&meta)? {
                self.vfs.remove_file(&meta)?;
            }
        }
        // The meta file's removal must be durable first: a backup without its files would be damaged.
        self.sync_dir(META_DIR)?;
        self.collect_garbage(ids)
    }

    /// Removes leftovers of interrupted calls, and files of the `deleted` backups. What a backup may need stays until the
    /// backup is deleted: all that is left of one that may have lost its meta file, and every shared file while it is in
    /// doubt which ones a backup names.
    pub fn collect_garbage(&self, deleted: &[BackupId]) -> Result<()> {
        let ids = self.ids()?;
        let mut doubts = Vec::new();
        self.remove_files(&self.dir.join(META_DIR), is_temp_name)?;
        for name in self.vfs.read_dir(&self.dir.join(PRIVATE_DIR))? {
            let path = self.dir.join(PRIVATE_DIR).join(&name);
            let Some(id) = private_id(&name) else { continue };
            let is_finished = !is_temp_name(&name) && ids.contains(&id);
            let is_deleted = is_temp_name(&name) || deleted.contains(&id);
            if !is_finished && !is_deleted && self.vfs.exists(&current_in(&path))? {
                doubts.push(without_meta(id).at_path(path));
            } else if !is_finished {
                self.remove_private(&path)?;
            }
        }
        let used = self.files_in_use(&ids, &mut doubts);
        for error in &doubts {
            note::warn!(%error, "shared files of backups are not cleaned up while it is not known who needs them");
        }
        if !doubts.is_empty() {
            return Ok(());
        }
        for dir in [SHARED_DIR, SHARED_CHECKSUM_DIR] {
            let is_superfluous = |name: &str| {
                let path = format!("{dir}/{name}");
                is_temp_name(name) || (BackupPath::parse(&path).is_some() && !used.contains_key(&path))
            };
            self.remove_files(&self.dir.join(dir), is_superfluous)?;
        }
        Ok(())
    }

    /// The files that backups name, and their checksums. A damaged meta file may name another file than its own: one that
    /// is not there, or one that another backup names with another checksum.
    fn files_in_use(&self, ids: &[BackupId], doubts: &mut Vec<Error>) -> BTreeMap<String, Option<u32>> {
        let mut used = BTreeMap::new();
        for id in ids {
            let backup = match self.load(*id) {
                Ok(backup) => backup,
                Err(error) => {
                    doubts.push(error);
                    continue;
                }
            };
            for file in backup.meta.files {
                let path = file.path.to_string();
                let other: Option<Option<u32>> = used.insert(path, file.crc32c);
                if other.flatten().zip(file.crc32c).is_some_and(|(one, other)| one != other) {
                    let what = format!("backup {id} has another checksum for {} than was named before", file.path);
                    doubts.push(Error::corruption(what).at_path(self.meta_path(*id)));
                }
            }
        }
        used
    }

    /// Removes the files of a removed backup. Foreign files beside them stay. An interrupted removal goes on with the next
    /// change: CURRENT goes first.
    fn remove_private(&self, dir: &Path) -> Result<()> {
        if self.vfs.exists(&current_in(dir))? {
            self.vfs.remove_file(&current_in(dir))?;
        }
        self.remove_files(dir, is_removable)?;
        self.vfs.remove_dir(dir).or_else(|error| {
            let left = self.vfs.read_dir(dir)?;
            if left.is_empty() { Err(error) } else { Ok(()) }
        })
    }

    fn remove_files(&self, dir: &Path, is_superfluous: impl Fn(&str) -> bool) -> Result<()> {
        let names = self.vfs.read_dir(dir)?;
        names.iter().filter(|name| is_superfluous(name)).try_for_each(|name| self.vfs.remove_file(&dir.join(name)))
    }

    /// The names in a subdirectory of the backup directory; none if it is missing, so that reading creates nothing.
    fn names_in(&self, name: &str) -> Result<Vec<String>> {
        match self.vfs.read_dir(&self.dir.join(name)) {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            names => names,
        }
    }

    /// Syncs a subdirectory of the backup directory.
    pub fn sync_dir(&self, name: &str) -> Result<()> {
        if self.syncs { self.vfs.sync_dir(&self.dir.join(name)) } else { Ok(()) }
    }

    pub fn private_dir(&self, id: BackupId) -> PathBuf {
        self.dir.join(PRIVATE_DIR).join(id.to_string())
    }

    pub fn meta_path(&self, id: BackupId) -> PathBuf {
        self.dir.join(META_DIR).join(id.to_string())
    }
}

/// The backup that a directory in `private` belongs to. RocksDB has called it `ID.tmp` until the backup was finished.
fn private_id(name: &str) -> Option<BackupId> {
    parse_id(name.strip_suffix(".tmp").unwrap_or(name))
}

/// Whether a file in a backup's private directory is the backup's.
fn is_removable(name: &str) -> bool {
    file_name::parse(name).is_some() || is_temp_name(name)
}

/// The last file of a backup's private directory: a directory without it is of no finished backup.
fn current_in(private: &Path) -> PathBuf {
    private.join(file_name::format(FileType::Current, FileNumber(0)))
}

fn without_meta(id: BackupId) -> Error {
    Error::incomplete(format!(
        "backup {id} has no file {META_DIR}/{id}: it is still being made, was cut off, or has lost that file. If it was \
         finished once, bring {META_DIR}/{id} back from a copy; else delete backup {id}. The next backup or deletion removes \
         what is left of one that was never finished"
    ))
}

/// # Errors
/// `Corruption`: the file's size differs from the backup's record.
pub(super) fn check_bytes(id: BackupId, path: &Path, expected: Option<u64>, found: u64) -> Result<()> {
    match expected {
        Some(expected) if expected != found => {
            let what = format!("a file of backup {id} has {found} bytes, and should have {expected}");
            Err(Error::corruption(what).at_path(path))
        }
        _ => Ok(()),
    }
}
