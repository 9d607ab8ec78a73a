//! `rocksdb_column_family_metadata_t`: a family, its levels, and their tables.

use spillway::internal::name;
use std::ffi::{c_char, c_int};
use std::sync::Arc;

use spillway::internal::Family;

use super::live_files::ShownFile;
use crate::boundary::argument::Out;
use crate::boundary::reply::Given;
use crate::boundary::{export, handles};
use crate::database::Database;
use crate::family::FamilyHandle;

/// A family's tables by level.
pub struct FamilyMetadata {
    name: String,
    levels: Vec<Arc<Level>>,
}

struct Level {
    number: usize,
    files: Vec<Arc<ShownFile>>,
}

/// `rocksdb_level_metadata_t`.
pub struct LevelMetadata(Arc<Level>);

/// `rocksdb_sst_file_metadata_t`.
pub struct FileMetadata(Arc<ShownFile>);

handles!(FamilyMetadata, LevelMetadata, FileMetadata);

impl Level {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|shown| shown.file.bytes).sum()
    }
}

impl FamilyMetadata {
    fn of(database: &Database, family: &Family) -> Box<FamilyMetadata> {
        let mut levels: Vec<Level> =
            (0..family.options().num_levels).map(|number| Level { number, files: Vec::new() }).collect();
        for file in database.db.live_files().into_iter().filter(|file| file.family == family.name()) {
            if let Some(level) = levels.get_mut(file.level) {
                level.files.push(Arc::new(ShownFile::new(file)));
            }
        }
        Box::new(FamilyMetadata { name: family.name().to_owned(), levels: levels.into_iter().map(Arc::new).collect() })
    }
}

export! {
    fn rocksdb_get_column_family_metadata(database: &Database) -> Box<FamilyMetadata> {
        FamilyMetadata::of(database, database.default_family())
    }

    fn rocksdb_get_column_family_metadata_cf(database: &Database, family: &FamilyHandle) -> Box<FamilyMetadata> {
        FamilyMetadata::of(database, &family.0)
    }

    fn rocksdb_column_family_metadata_destroy(metadata: Option<Box<FamilyMetadata>>) {
        drop(metadata);
    }

    fn rocksdb_column_family_metadata_get_size(metadata: &FamilyMetadata) -> u64 {
        metadata.levels.iter().map(|level| level.bytes()).sum()
    }

    fn rocksdb_column_family_metadata_get_file_count(metadata: &FamilyMetadata) -> usize {
        metadata.levels.iter().map(|level| level.files.len()).sum()
    }

    fn rocksdb_column_family_metadata_get_name(metadata: &FamilyMetadata) -> Given<c_char> {
        Given::text(name::bytes(&metadata.name))
    }

    fn rocksdb_column_family_metadata_get_level_count(metadata: &FamilyMetadata) -> usize {
        metadata.levels.len()
    }

    /// NULL if there is no such level.
    fn rocksdb_column_family_metadata_get_level_metadata(
        metadata: &FamilyMetadata,
        level: usize,
    ) -> Option<Box<LevelMetadata>> {
        metadata.levels.get(level).map(|level| Box::new(LevelMetadata(level.clone())))
    }

    fn rocksdb_level_metadata_destroy(level: Option<Box<LevelMetadata>>) {
        drop(level);
    }

    fn rocksdb_level_metadata_get_level(level: &LevelMetadata) -> c_int {
        c_int::try_from(level.0.number).unwrap_or(c_int::MAX)
    }

    fn rocksdb_level_metadata_get_size(level: &LevelMetadata) -> u64 {
        level.0.bytes()
    }

    fn rocksdb_level_metadata_get_file_count(level: &LevelMetadata) -> usize {
        level.0.files.len()
    }

    /// NULL if there is no such table.
    fn rocksdb_level_metadata_get_sst_file_metadata(
        level: &LevelMetadata,
        index: usize,
    ) -> Option<Box<FileMetadata>> {
        level.0.files.get(index).map(|shown| Box::new(FileMetadata(shown.clone())))
    }

    fn rocksdb_sst_file_metadata_destroy(file: Option<Box<FileMetadata>>) {
        drop(file);
    }

    fn rocksdb_sst_file_metadata_get_relative_filename(file: &FileMetadata) -> Given<c_char> {
        Given::text(file.0.name.as_bytes().strip_prefix(b"/").unwrap_or_default())
    }

    fn rocksdb_sst_file_metadata_get_directory(file: &FileMetadata) -> Given<c_char> {
        Given::text(file.0.directory.as_bytes())
    }

    fn rocksdb_sst_file_metadata_get_size(file: &FileMetadata) -> u64 {
        file.0.file.bytes
    }

    fn rocksdb_sst_file_metadata_get_smallestkey(file: &FileMetadata, len: Out<usize>) -> Given<c_char> {
        len.set(file.0.file.smallest.len());
        Given::bytes(&file.0.file.smallest)
    }

    fn rocksdb_sst_file_metadata_get_largestkey(file: &FileMetadata, len: Out<usize>) -> Given<c_char> {
        len.set(file.0.file.largest.len());
        Given::bytes(&file.0.file.largest)
    }
}
