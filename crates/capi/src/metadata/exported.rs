//! Export of a family's tables and import into a different database: `rocksdb_export_import_files_metadata_t`.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uchar};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use spillway::internal::SeqNo;
use spillway::internal::report::LiveFile;

use super::live_files::{LiveFiles, ShownFile};
use crate::boundary::reply::Given;
use crate::boundary::settings::settings;
use crate::boundary::{export, fallible, handles};
use crate::checkpoint::Checkpoint;
use crate::database::Database;
use crate::database::families::NO_TTL;
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::kept::{Kept, keeps_numbers};
use crate::options::Options;
use crate::text::{path, text};

/// The exported tables, and the comparator of their keys.
#[derive(Default)]
pub struct Exported {
    comparator: CString,
    files: Vec<ShownFile>,
}

/// `rocksdb_livefile_t`: a table as described by a caller.
#[derive(Default)]
pub struct NewFile {
    file: LiveFile,
    directory: PathBuf,
    name: CString,
}

/// `rocksdb_import_column_family_options_t`.
#[derive(Default)]
pub struct ImportSettings {
    /// Tables are removed from where they were.
    move_files: bool,
    kept: Kept,
}

handles!(Exported, NewFile, ImportSettings);

keeps_numbers!(ImportSettings);

settings! { ImportSettings, "rocksdb_import_column_family_options_";
    move_files: c_uchar => move_files;
}

impl NewFile {
    /// The table as an entry of a list.
    fn shown(&self) -> ShownFile {
        let name = self.name.as_bytes();
        let name = OsStr::from_bytes(name.strip_prefix(b"/").unwrap_or(name));
        let mut file = self.file.clone();
        file.path = self.directory.join(name);
        ShownFile::new(file)
    }
}

impl Exported {
    /// Flushes the family, and links its tables into a new directory.
    pub fn of(checkpoint: &Checkpoint, family: &FamilyHandle, dir: &Path) -> Result<Box<Exported>, Failure> {
        if dir.as_os_str().is_empty() {
            return Err(Failure::invalid_argument("Specified export_dir invalid"));
        }
        if checkpoint.db().vfs().exists(dir)? {
            return Err(Failure::invalid_argument(format!("Specified export_dir exists: {}", dir.display())));
        }
        checkpoint.check_parent(dir)?;
        let files = checkpoint.db().export_family(&family.0, dir)?;
        let comparator = CString::new(family.0.options().order.name()).unwrap_or_default();
        let shown = |mut file: LiveFile| {
            // RocksDB's exports do not tell these.
            file.family.clear();
            (file.entries, file.deletions) = (0, 0);
            ShownFile::new(file)
        };
        let files = files.into_iter().map(shown).collect();
        Ok(Box::new(Exported { comparator, files }))
    }
}

impl Database {
    /// A family made of exports, whose key ranges must not overlap.
    pub fn import(
        &self,
        options: &Options,
        name: &str,
        settings: &ImportSettings,
        exports: &[&Exported],
    ) -> Result<Box<FamilyHandle>, Failure> {
        let own = options.family.order.name();
        if let Some(other) = exports.iter().find(|export| export.comparator.as_bytes() != own.as_bytes()) {
            let theirs = &other.comparator;
            let what =
                format!("Comparator name mismatch: the tables are sorted by {theirs:?}, and the family by {own}");
            return Err(Failure::invalid_argument(what));
        }
        let files = |export: &&Exported| export.files.iter().map(|shown| shown.file.clone()).collect();
        let files: Vec<Vec<LiveFile>> = exports.iter().map(files).collect();
        let files: Vec<&[LiveFile]> = files.iter().map(Vec::as_slice).collect();
        let mut options = self.options_of_new(options, name, NO_TTL)?;
        if self.stamps().is_some() {
            options.value_times = true.into();
        }
        let family = self.db.import_family(name, options, &files, settings.move_files);
        Ok(Box::new(FamilyHandle(family.map_err(|error| self.refused(error))?)))
    }
}

fallible! {
    /// See [`Exported::of`].
    fn rocksdb_checkpoint_export_column_family(
        checkpoint: &Checkpoint,
        family: &FamilyHandle,
        dir: &CStr,
    ) -> Box<Exported> {
        Exported::of(checkpoint, family, path(dir))
    }

    /// The tables are linked, and keep their sequence numbers.
    fn rocksdb_create_column_family_with_import(
        database: &Database,
        options: &Options,
        name: &CStr,
        import_options: &ImportSettings,
        metadata: &Exported,
    ) -> Box<FamilyHandle> {
        database.import(options, &text(name), import_options, &[metadata])
    }
}

export! {
    fn rocksdb_export_import_files_metadata_create() -> Box<Exported> {
        Box::default()
    }

    fn rocksdb_export_import_files_metadata_destroy(metadata: Option<Box<Exported>>) {
        drop(metadata);
    }

    fn rocksdb_export_import_files_metadata_get_db_comparator_name(metadata: &Exported) -> Given<c_char> {
        Given::text(metadata.comparator.as_bytes())
    }

    fn rocksdb_export_import_files_metadata_set_db_comparator_name(metadata: &mut Exported, name: &CStr) {
        metadata.comparator = name.to_owned();
    }

    /// A copy, owned by the caller.
    fn rocksdb_export_import_files_metadata_get_files(metadata: &Exported) -> Box<LiveFiles> {
        Box::new(LiveFiles(metadata.files.clone()))
    }

    /// The files stay the caller's.
    fn rocksdb_export_import_files_metadata_set_files(metadata: &mut Exported, files: &LiveFiles) {
        metadata.files = files.0.clone();
    }

    fn rocksdb_import_column_family_options_create() -> Box<ImportSettings> {
        Box::default()
    }

    fn rocksdb_import_column_family_options_destroy(options: Option<Box<ImportSettings>>) {
        drop(options);
    }

    fn rocksdb_livefiles_create() -> Box<LiveFiles> {
        Box::new(LiveFiles(Vec::new()))
    }

    /// A copy: the file stays the caller's.
    fn rocksdb_livefiles_add(files: &mut LiveFiles, file: &NewFile) {
        files.0.push(file.shown());
    }

    fn rocksdb_livefile_create() -> Box<NewFile> {
        Box::default()
    }

    fn rocksdb_livefile_destroy(file: Option<Box<NewFile>>) {
        drop(file);
    }

    fn rocksdb_livefile_set_column_family_name(file: &mut NewFile, name: &CStr) {
        file.file.family = text(name).into_owned();
    }

    fn rocksdb_livefile_set_level(file: &mut NewFile, level: c_int) {
        file.file.level = usize::try_from(level).unwrap_or(0);
    }

    fn rocksdb_livefile_set_name(file: &mut NewFile, name: &CStr) {
        file.name = name.to_owned();
    }

    fn rocksdb_livefile_set_directory(file: &mut NewFile, directory: &CStr) {
        file.directory = path(directory).to_owned();
    }

    fn rocksdb_livefile_set_size(file: &mut NewFile, bytes: usize) {
        file.file.bytes = bytes as u64;
    }

    fn rocksdb_livefile_set_smallest_key(file: &mut NewFile, key[key_len]: &[u8]) {
        file.file.smallest = key.to_vec();
    }

    fn rocksdb_livefile_set_largest_key(file: &mut NewFile, key[key_len]: &[u8]) {
        file.file.largest = key.to_vec();
    }

    fn rocksdb_livefile_set_smallest_seqno(file: &mut NewFile, number: u64) {
        file.file.smallest_seq = SeqNo(number);
    }

    fn rocksdb_livefile_set_largest_seqno(file: &mut NewFile, number: u64) {
        file.file.largest_seq = SeqNo(number);
    }

    fn rocksdb_livefile_set_num_entries(file: &mut NewFile, entries: u64) {
        file.file.entries = entries;
    }

    fn rocksdb_livefile_set_num_deletions(file: &mut NewFile, deletions: u64) {
        file.file.deletions = deletions;
    }
}
