//! Small databases with every kind of file, and their contents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::{Db, Error, OpenOptions, ReadOptions};
use testkit::model::Model;
use testkit::parse;
use testkit::profile::{self, Profile};
use testkit::run::{DIR, Runner};
use vfs::MemoryVfs;

pub type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// A small database: the script that makes it, and the options for that and for opening it again.
#[derive(Clone, Copy)]
pub struct Subject {
    pub script: &'static str,
    profile: &'static str,
}

pub const PLAIN: Subject = Subject { script: SCRIPT, profile: "tiny" };

/// Its ingests stay in the queue where they stand over a memtable.
pub const INGESTS: Subject = Subject { script: INGESTS_SCRIPT, profile: "queued" };

/// Its large values stay in the logs, and its tables refer to them.
pub const REFERRING: Subject = Subject { script: REFERRING_SCRIPT, profile: "referring" };

const REFERRING_SCRIPT: &str = "create users\nput default a noise:1:1062\nput default b 1\nput default c noise:2:1062\n\
                                put default d noise:3:1062\nflush default";

impl Subject {
    fn profile(&self) -> Profile {
        profile::by_name(self.profile).unwrap()
    }

    /// Options for opening. They cover any families listed by a damaged MANIFEST.
    pub fn options(&self, vfs: &Arc<MemoryVfs>) -> OpenOptions {
        let mut options = self.profile().open_options(vfs.clone(), ["users"]);
        options.db.create_if_missing = false;
        options.db.create_missing_column_families = false;
        options
    }

    pub fn database(&self) -> Arc<MemoryVfs> {
        self.after(self.script)
    }

    /// Runs a script, not necessarily the subject's own, and closes the database.
    pub fn after(&self, script: &str) -> Arc<MemoryVfs> {
        let vfs = MemoryVfs::new(1);
        let mut runner = Runner::open(vfs.clone(), self.profile(), Model::default()).unwrap();
        for op in parse::script(script).unwrap().ops {
            runner.step(&op).unwrap_or_else(|failure| panic!("{op}: {failure}"));
        }
        drop(runner.abandon());
        vfs
    }

    /// Reads everything in both directions and key by key, so that no block stays unread.
    pub fn read(&self, vfs: &Arc<MemoryVfs>) -> Result<Contents, Error> {
        read_with(&self.options(vfs), DIR)
    }

    /// Opening and reading must fail with an error naming `file`.
    pub fn refused(&self, vfs: &Arc<MemoryVfs>, file: &Path) -> Error {
        match self.read(vfs) {
            Ok(contents) => panic!("{} is damaged, and was read: {contents:?}", file.display()),
            Err(error) => {
                assert_eq!(error.path(), Some(file), "{error:?}");
                error
            }
        }
    }
}

pub fn profile() -> Profile {
    PLAIN.profile()
}

pub fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    PLAIN.options(vfs)
}

pub fn database(script: &str) -> Arc<MemoryVfs> {
    PLAIN.after(script)
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

/// What an ingest leaves in every place: a table in which an excise left two parts, one that is linked under a memtable, in
/// a log that ended with an earlier life; and in the last log, whose end may be lost, one over memtables of two families,
/// with a batch, that no flush has met.
const INGESTS_SCRIPT: &str = "
    create users
    batch put default a 1; put default c 1; put default d 1; put default f 1; put users a 1
    flush default users
    compact default force
    ingest flushable; excise default c e; file default; put d 2
    put users b 1
    ingest flushable; file users; put m 1; put n 1
    reopen
    put default n 1
    put users c 1
    ingest flushable; excise default f g; file default; put n 2; put o 1; delete-range s t; file default; merge a 3; \
     file users; put b 2; batch; put default z 1; put users y 1
    put default o 2 sync
    merge users b 3
    delete default z";

pub fn read(vfs: &Arc<MemoryVfs>) -> Result<Contents, Error> {
    PLAIN.read(vfs)
}

/// As [`Subject::read`], with other options or another directory.
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

/// Files with names ending in `end`, in the order of their numbers.
pub fn files(vfs: &MemoryVfs, end: &str) -> Vec<PathBuf> {
    let in_dir = vfs.all_files().into_iter().filter(|path| path.starts_with(DIR));
    in_dir.filter(|path| path.to_string_lossy().ends_with(end)).collect()
}

pub fn manifest(vfs: &MemoryVfs) -> PathBuf {
    let current = vfs.read_file(&Path::new(DIR).join("CURRENT")).unwrap();
    Path::new(DIR).join(String::from_utf8(current).unwrap().trim_end())
}

/// A copy to damage.
pub fn copy(vfs: &MemoryVfs) -> Arc<MemoryVfs> {
    vfs.crash_clone(1, vfs::CrashPolicy::ProcessKilled)
}

pub fn refused(vfs: &Arc<MemoryVfs>, file: &Path) -> Error {
    PLAIN.refused(vfs, file)
}
