//! A small database with every kind of file, and what it holds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spillway::{Db, Error, OpenOptions, ReadOptions};
use testkit::model::Model;
use testkit::parse;
use testkit::profile::{self, Profile};
use testkit::run::{DIR, Runner};
use vfs::MemoryVfs;

pub type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

pub fn profile() -> Profile {
    profile::by_name("tiny").unwrap()
}

/// The options it is opened with, whatever families a damaged MANIFEST says there are.
pub fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    let mut options = profile().open_options(vfs.clone(), ["users"]);
    options.db.create_if_missing = false;
    options.db.create_missing_column_families = false;
    options
}

/// Runs a script and closes the database.
pub fn database(script: &str) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    let mut runner = Runner::open(vfs.clone(), profile(), Model::default()).unwrap();
    for op in parse::script(script).unwrap().ops {
        runner.step(&op).unwrap_or_else(|failure| panic!("{op}: {failure}"));
    }
    drop(runner.abandon());
    vfs
}

/// Tables in two levels of two families, and writes that only the log holds.
pub const SCRIPT: &str = "
    create users
    batch put default a 1; put default b 1; put users a 1
    flush default users
    batch put default b 2; put default c 2; merge users a 2; put users b 2
    delete-range default x z
    flush default users
    compact default force
    put default c 3
    flush default
    put default d 4 sync
    put users c 4
    merge default d 5
    delete users b";

/// Everything, read both ways and key by key, so that no block stays unread.
pub fn read(vfs: &Arc<MemoryVfs>) -> Result<Contents, Error> {
    read_with(&options(vfs), DIR)
}

/// The same, under other options or in another directory.
pub fn read_with(options: &OpenOptions, dir: &str) -> Result<Contents, Error> {
    let db = Db::open(dir, options)?;
    let mut contents = Contents::new();
    for family in db.families() {
        let mut pairs = BTreeMap::new();
        let mut iterator = db.iter(&family, &ReadOptions::default())?;
        let mut valid = iterator.seek_to_first();
        while valid {
            pairs.insert(iterator.key().to_vec(), iterator.value().to_vec());
            valid = iterator.next();
        }
        iterator.status()?;
        valid = iterator.seek_to_last();
        let mut backward = 0;
        while valid {
            backward += 1;
            assert_eq!(pairs.get(iterator.key()).map(Vec::as_slice), Some(iterator.value()), "the ways differ");
            valid = iterator.prev();
        }
        iterator.status()?;
        assert_eq!(backward, pairs.len(), "the ways differ");
        for (key, value) in &pairs {
            let found = db.get(&family, key, &ReadOptions::default())?;
            assert_eq!(found.as_deref(), Some(value.as_slice()), "lookup and scan differ");
        }
        contents.insert(family.name().to_owned(), pairs);
    }
    Ok(contents)
}

/// The files whose names end so, in the order of their numbers.
pub fn files(vfs: &MemoryVfs, end: &str) -> Vec<PathBuf> {
    let in_dir = vfs.all_files().into_iter().filter(|path| path.starts_with(DIR));
    in_dir.filter(|path| path.to_string_lossy().ends_with(end)).collect()
}

pub fn manifest(vfs: &MemoryVfs) -> PathBuf {
    let current = vfs.read_file(&Path::new(DIR).join("CURRENT")).unwrap();
    Path::new(DIR).join(String::from_utf8(current).unwrap().trim_end())
}

/// A copy to be damaged.
pub fn copy(vfs: &MemoryVfs) -> Arc<MemoryVfs> {
    vfs.crash_clone(1, vfs::CrashPolicy::ProcessKilled)
}

/// Opening and reading must fail, and name `file`.
pub fn refused(vfs: &Arc<MemoryVfs>, file: &Path) -> Error {
    match read(vfs) {
        Ok(contents) => panic!("{} is damaged, and was read: {contents:?}", file.display()),
        Err(error) => {
            assert_eq!(error.path(), Some(file), "{error:?}");
            error
        }
    }
}
