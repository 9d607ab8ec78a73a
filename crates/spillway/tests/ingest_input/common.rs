//! A database beside the tables that it is to take in, on the real file system or in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::options::ChecksumKind;
use base::tombstone::RangeTombstone;
use base::{SeqNo, ValueKind, key};
use table::{BlockBasedTableBuilder, TableBuilder, TableBuilderConfig};
use testkit::engine::vfs::{MemoryVfs, RealVfs, Vfs};
use testkit::engine::{
    Db, Error, Family, FamilyOptions, IngestOptions, IngestProgress, IngestReport, IngestRequest, OpenOptions,
    ReadOptions, TableWriter, WriteOptions,
};
use vfs::{IfExists, IoClass};

pub struct Place {
    pub vfs: Arc<dyn Vfs>,
    pub db: Db,
    pub family: Arc<Family>,
    root: PathBuf,
    _dir: Option<tempfile::TempDir>,
}

/// Values by key.
pub type Contents = BTreeMap<String, String>;

impl Place {
    pub fn real() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        Place { _dir: Some(dir), ..Self::on(RealVfs::new(), &root) }
    }

    pub fn in_memory() -> Place {
        Self::on(MemoryVfs::new(1), Path::new("/work"))
    }

    pub fn on(vfs: Arc<dyn Vfs>, root: &Path) -> Place {
        Self::with(vfs, root, FamilyOptions::default())
    }

    /// A database that holds something, and whose default family has these options.
    pub fn with(vfs: Arc<dyn Vfs>, root: &Path, family: FamilyOptions) -> Place {
        vfs.create_dir_all(root).unwrap();
        let mut options =
            OpenOptions::create_if_missing().family("default", family).family("second", FamilyOptions::default());
        options.db.create_missing_column_families = true;
        options.vfs = vfs.clone();
        let db = Db::open(root.join("db"), &options).unwrap();
        let family = db.default_family();
        let place = Place { vfs, db, family, root: root.to_owned(), _dir: None };
        place.put("k00005", "old");
        place.put("z", "old");
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn put(&self, key: &str, value: &str) {
        self.db.put(&self.family, key.as_bytes(), value.as_bytes(), &WriteOptions::default()).unwrap();
    }

    /// A table of these keys, each with `value`.
    pub fn table(&self, name: &str, keys: impl IntoIterator<Item = u32>, value: &str) -> PathBuf {
        self.table_of(name, |table| {
            keys.into_iter().for_each(|key| table.put(numbered(key).as_bytes(), value.as_bytes()).unwrap());
        })
    }

    pub fn table_of(&self, name: &str, fill: impl FnOnce(&mut TableWriter)) -> PathBuf {
        let path = self.path(name);
        let mut table = TableWriter::create(self.vfs.clone(), &path, &FamilyOptions::default()).unwrap();
        fill(&mut table);
        table.finish().unwrap();
        path
    }

    pub fn bytes(&self, path: &Path) -> Vec<u8> {
        vfs::read_all(&*self.vfs, path, 1 << 30, IoClass::Other).unwrap()
    }

    pub fn write(&self, path: &Path, bytes: &[u8]) {
        let mut file = self.vfs.create(path, IfExists::Truncate).unwrap();
        file.append(bytes, IoClass::Other).unwrap();
        file.sync(IoClass::Other).unwrap();
    }

    pub fn contents(&self) -> Contents {
        contents(&self.db, &self.family)
    }

    /// Names in the database's directory.
    pub fn listing(&self) -> Vec<String> {
        self.vfs.read_dir(&self.path("db")).unwrap()
    }

    pub fn ingest(&self, files: &[PathBuf], options: &IngestOptions) -> Result<IngestReport, Error> {
        self.db.ingest(&self.family, files, options)
    }

    pub fn ingest_one(&self, file: &Path, options: &IngestOptions) -> Result<IngestReport, Error> {
        self.ingest(&[file.to_owned()], options)
    }

    pub fn refused_one(&self, file: &Path, options: &IngestOptions) -> Error {
        self.refused(&[file.to_owned()], file, options)
    }

    /// The ingest must fail, name this file, and have changed nothing.
    pub fn refused(&self, files: &[PathBuf], named: &Path, options: &IngestOptions) -> Error {
        self.refused_all(&[IngestRequest::new(self.family.clone(), files.to_vec())], named, options)
    }

    pub fn refused_all(&self, requests: &[IngestRequest], named: &Path, options: &IngestOptions) -> Error {
        let before = (self.contents(), self.listing());
        let error = match self.db.prepare_ingest(requests, options, &IngestProgress::default()) {
            Ok(_) => panic!("{} was taken", named.display()),
            Err(error) => error,
        };
        let names_it = error.path() == Some(named) || error.message().contains(&named.display().to_string());
        assert!(names_it, "{error} is not about {}", named.display());
        assert_eq!((self.contents(), self.listing()), before, "{error}");
        error
    }
}

pub fn contents(db: &Db, family: &Arc<Family>) -> Contents {
    let mut iterator = db.iter(family, &ReadOptions::default()).unwrap();
    let mut all = Contents::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut valid = iterator.seek_to_first();
    while valid {
        all.insert(text(iterator.key()), text(iterator.value()));
        valid = iterator.next();
    }
    iterator.status().unwrap();
    all
}

pub fn numbered(key: u32) -> String {
    format!("k{key:05}")
}

pub fn default() -> IngestOptions {
    IngestOptions::default()
}

pub fn verifying() -> IngestOptions {
    IngestOptions { verify_checksums_before_ingest: true, ..default() }
}

/// Takes what comes from a database.
pub fn any() -> IngestOptions {
    IngestOptions { allow_db_generated_files: true, ..default() }
}

/// An entry of a table that is made by hand.
pub type Entry<'a> = (&'a str, u64, ValueKind, &'a str);

/// Tables that no writer of tables for ingest makes.
pub struct Forge {
    pub config: TableBuilderConfig,
}

impl Forge {
    /// Nothing but the order of keys is checked in such a table: its blocks have no checksums.
    pub fn new() -> Forge {
        let mut config = TableBuilderConfig::new("forged");
        config.options.checksum = ChecksumKind::None;
        config.ingestable = true;
        Forge { config }
    }

    pub fn bytes(&self, entries: &[Entry<'_>], tombstones: &[(&str, &str, u64)]) -> Vec<u8> {
        let (vfs, path) = (MemoryVfs::new(1), Path::new("/forged"));
        let mut builder = Box::new(
            BlockBasedTableBuilder::new(vfs.create(path, IfExists::Fail).unwrap(), self.config.clone()).unwrap(),
        );
        for (user_key, seq, kind, value) in entries {
            builder.add(&key::encode(user_key.as_bytes(), SeqNo(*seq), *kind), value.as_bytes()).unwrap();
        }
        for (start, end, seq) in tombstones {
            let (start, end) = (start.as_bytes().to_vec(), end.as_bytes().to_vec());
            builder.add_tombstone(&RangeTombstone { start, end, seq: SeqNo(*seq) }).unwrap();
        }
        builder.finish().unwrap();
        vfs.read_file(path).unwrap()
    }
}

/// Where `part` is in `bytes`, once.
pub fn only_place(bytes: &[u8], part: &[u8]) -> usize {
    let mut places = bytes.windows(part.len()).enumerate().filter(|(_, window)| *window == part);
    let (at, _) = places.next().unwrap();
    assert!(places.next().is_none());
    at
}

/// Replaces what follows a property's name.
pub fn set_property(bytes: &mut [u8], name: &str, value: &[u8]) {
    let at = only_place(bytes, name.as_bytes()) + name.len();
    bytes[at..at + value.len()].copy_from_slice(value);
}
