//! `rocksdb_livefiles_t`: every table of every family.

use spillway::internal::name;
use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use spillway::internal::report::LiveFile;

use crate::boundary::argument::Out;
use crate::boundary::reply::Lent;
use crate::boundary::{export, handles};
use crate::database::Database;

/// The tables, with their names as C strings. For an index out of range functions return nothing or 0.
pub struct LiveFiles(pub Vec<ShownFile>);

/// A table's file.
#[derive(Clone)]
pub struct ShownFile {
    pub file: LiveFile,
    /// As RocksDB shows it: `/000012.sst`.
    pub name: CString,
    pub directory: CString,
    family: CString,
}

handles!(LiveFiles);

/// Text of ours never holds a zero byte; a path cannot.
fn text(bytes: &[u8]) -> CString {
    CString::new(bytes).unwrap_or_default()
}

impl ShownFile {
    pub fn new(file: LiveFile) -> ShownFile {
        let directory = file.path.parent().unwrap_or(Path::new(""));
        let name = file.path.file_name().unwrap_or_default();
        ShownFile {
            name: text(&[b"/", name.as_bytes()].concat()),
            directory: text(directory.as_os_str().as_bytes()),
            family: text(&name::bytes(&file.family)),
            file,
        }
    }
}

impl LiveFiles {
    fn at(&self, index: c_int) -> Option<&ShownFile> {
        self.0.get(usize::try_from(index).ok()?)
    }

    fn number(&self, index: c_int, number: fn(&LiveFile) -> u64) -> u64 {
        self.at(index).map_or(0, |shown| number(&shown.file))
    }

    fn text(&self, index: c_int, text: fn(&ShownFile) -> &CString) -> Lent {
        self.at(index).map_or(Lent::NONE, |shown| Lent::of(text(shown).as_bytes_with_nul()))
    }

    fn key(&self, index: c_int, len: Out<usize>, key: fn(&LiveFile) -> &[u8]) -> Lent {
        let key = self.at(index).map_or(&[][..], |shown| key(&shown.file));
        len.set(key.len());
        Lent::of(key)
    }
}

export! {
    fn rocksdb_livefiles(database: &Database) -> Box<LiveFiles> {
        Box::new(LiveFiles(database.db.live_files().into_iter().map(ShownFile::new).collect()))
    }

    fn rocksdb_livefiles_destroy(files: Option<Box<LiveFiles>>) {
        drop(files);
    }

    fn rocksdb_livefiles_count(files: &LiveFiles) -> c_int {
        c_int::try_from(files.0.len()).unwrap_or(c_int::MAX)
    }

    fn rocksdb_livefiles_column_family_name(files: &LiveFiles, index: c_int) -> Lent {
        files.text(index, |shown| &shown.family)
    }

    fn rocksdb_livefiles_name(files: &LiveFiles, index: c_int) -> Lent {
        files.text(index, |shown| &shown.name)
    }

    fn rocksdb_livefiles_directory(files: &LiveFiles, index: c_int) -> Lent {
        files.text(index, |shown| &shown.directory)
    }

    fn rocksdb_livefiles_level(files: &LiveFiles, index: c_int) -> c_int {
        files.number(index, |file| file.level as u64) as c_int
    }

    fn rocksdb_livefiles_size(files: &LiveFiles, index: c_int) -> usize {
        files.number(index, |file| file.bytes) as usize
    }

    fn rocksdb_livefiles_smallestkey(files: &LiveFiles, index: c_int, len: Out<usize>) -> Lent {
        files.key(index, len, |file| &file.smallest)
    }

    fn rocksdb_livefiles_largestkey(files: &LiveFiles, index: c_int, len: Out<usize>) -> Lent {
        files.key(index, len, |file| &file.largest)
    }

    fn rocksdb_livefiles_entries(files: &LiveFiles, index: c_int) -> u64 {
        files.number(index, |file| file.entries)
    }

    fn rocksdb_livefiles_deletions(files: &LiveFiles, index: c_int) -> u64 {
        files.number(index, |file| file.deletions)
    }

    fn rocksdb_livefiles_smallest_seqno(files: &LiveFiles, index: c_int) -> u64 {
        files.number(index, |file| file.smallest_seq.0)
    }

    fn rocksdb_livefiles_largest_seqno(files: &LiveFiles, index: c_int) -> u64 {
        files.number(index, |file| file.largest_seq.0)
    }
}
