//! A database whose ingests and flushes a test can step into.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::extend::{Event, EventListener};
use base::metrics::Ticker;
use parking_lot::Mutex;
use testkit::engine::vfs::{IfExists, IoClass, MemoryVfs, RealVfs, Vfs, read_all};
use testkit::engine::{
    Db, Error, Family, FamilyOptions, IngestMode, IngestOptions, IngestReport, IngestRequest, OpenOptions,
    OtherFamilies, ReadOptions, Snapshot, TableWriter, WriteOptions,
};

pub const MODES: [IngestMode; 4] =
    [IngestMode::Flushable, IngestMode::Blocking, IngestMode::FlushFirst, IngestMode::Direct];

/// Values by key.
pub type Contents = BTreeMap<String, String>;

type Action = Box<dyn FnMut(&Event) + Send>;

/// Calls what a test wants to happen in the midst of something.
#[derive(Clone, Default)]
pub struct Hook(Arc<Mutex<Option<Action>>>);

impl EventListener for Hook {
    fn on_event(&self, event: &Event) {
        // Taken out, so that it may do what makes further events.
        let Some(mut action) = self.0.lock().take() else { return };
        action(event);
        self.0.lock().get_or_insert(action);
    }
}

pub struct World {
    pub vfs: Arc<dyn Vfs>,
    pub db: Arc<Db>,
    pub family: Arc<Family>,
    hook: Hook,
    options: OpenOptions,
    root: PathBuf,
    _dir: Option<tempfile::TempDir>,
}

impl World {
    /// With all work done on the thread that waits for it.
    pub fn inline() -> World {
        World::of(OpenOptions { vfs: MemoryVfs::new(3), ..options() }, "/w".into())
    }

    /// In memory, with threads.
    pub fn threaded() -> World {
        World::threaded_with(|_| {})
    }

    /// In memory, with threads and other options.
    pub fn threaded_with(change: impl FnOnce(&mut OpenOptions)) -> World {
        let vfs = MemoryVfs::new(3);
        vfs.set_runs_inline(false);
        let mut options = OpenOptions { vfs, ..options() };
        change(&mut options);
        World::of(options, "/w".into())
    }

    pub fn real() -> World {
        let dir = tempfile::tempdir().expect("temp");
        let root = dir.path().to_owned();
        World { _dir: Some(dir), ..World::of(OpenOptions { vfs: RealVfs::new(), ..options() }, root) }
    }

    /// In memory and inline, with other options.
    pub fn with(change: impl FnOnce(&mut OpenOptions)) -> World {
        let mut options = OpenOptions { vfs: MemoryVfs::new(3), ..options() };
        change(&mut options);
        World::of(options, "/w".into())
    }

    fn of(mut options: OpenOptions, root: PathBuf) -> World {
        let (vfs, hook) = (options.vfs.clone(), Hook::default());
        options.db.listeners.push(Arc::new(hook.clone()));
        vfs.create_dir_all(&root).expect("made");
        let db = Db::open(root.join("db"), &options).expect("open");
        let family = db.default_family();
        World { vfs, db: Arc::new(db), family, hook, options, root, _dir: None }
    }

    /// Overwrites what lies in the data blocks of every table. Closes the database.
    pub fn damage_tables(&self) {
        self.db.close().expect("closed");
        let dir = self.root.join("db");
        for file in self.vfs.read_dir(&dir).expect("there").iter().filter(|name| name.ends_with(".sst")) {
            let path = dir.join(file);
            let mut bytes = read_all(&*self.vfs, &path, u64::MAX, IoClass::Other).expect("readable");
            let half = bytes.len() / 2;
            bytes.iter_mut().take(half).for_each(|byte| *byte ^= 0xa5);
            self.vfs.remove_file(&path).expect("removed");
            let mut file = self.vfs.create(&path, IfExists::Fail).expect("created");
            file.append(&bytes, IoClass::Other).expect("written");
            file.sync(IoClass::Other).expect("synced");
        }
    }

    /// Overwrites a part in the middle of a file, which the ends of a table say nothing of.
    pub fn damage_middle(&self, file: &Path) {
        let mut bytes = read_all(&*self.vfs, file, u64::MAX, IoClass::Other).expect("readable");
        let middle = bytes.len() / 2;
        bytes.iter_mut().skip(middle - 100).take(100).for_each(|byte| *byte ^= 0xa5);
        self.vfs.remove_file(file).expect("removed");
        let mut damaged = self.vfs.create(file, IfExists::Fail).expect("created");
        damaged.append(&bytes, IoClass::Other).expect("written");
        damaged.sync(IoClass::Other).expect("synced");
    }

    /// Ingests that a flush wrote into one table with what they stood over.
    pub fn merged(&self) -> u64 {
        self.db.statistics().expect("asked for").count(Ticker::IngestMerged)
    }

    pub fn reopen(&mut self) {
        self.db.close().expect("closed");
        self.db = Arc::new(Db::open(self.root.join("db"), &self.options).expect("reopened"));
        self.family = self.db.default_family();
    }

    /// Reopens with other options.
    pub fn change_options(&mut self, change: impl FnOnce(&mut OpenOptions)) {
        change(&mut self.options);
        self.reopen();
    }

    /// Has an action done whenever something happens in the database.
    pub fn whenever(&self, mut action: impl FnMut(&Arc<Db>, &Event) + Send + 'static) {
        let db = Arc::downgrade(&self.db);
        let act = move |event: &Event| db.upgrade().into_iter().for_each(|db| action(&db, event));
        *self.hook.0.lock() = Some(Box::new(act));
    }

    pub fn put(&self, key: u32, value: &str) {
        put(&self.db, key, value).expect("written");
    }

    pub fn put_all(&self, keys: impl IntoIterator<Item = u32>, value: &str) {
        keys.into_iter().for_each(|key| self.put(key, value));
    }

    pub fn get(&self, key: u32) -> Option<String> {
        let found = self.db.get(&self.family, name(key).as_bytes(), &ReadOptions::default()).expect("readable");
        found.map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    pub fn flush(&self) {
        self.db.flush(&[&self.family]).expect("flushed");
    }

    pub fn contents(&self) -> Contents {
        contents(&self.db, &self.family, None)
    }

    pub fn number(&self, property: &str) -> u64 {
        self.db.int_property(&self.family, property).expect("a property")
    }

    /// A table of these keys, each with `value`.
    pub fn table(&self, file: &str, keys: impl IntoIterator<Item = u32>, value: &str) -> PathBuf {
        table(&self.vfs, &self.root.join(file), keys, value)
    }

    pub fn ingest(&self, file: PathBuf, options: &IngestOptions) -> Result<IngestReport, Error> {
        self.db.ingest(&self.family, &[file], options)
    }

    /// The ingest fails, and neither the database nor its directory is other than before.
    pub fn refused(&self, requests: &[IngestRequest], options: &IngestOptions) -> Error {
        let state = || (self.contents(), self.vfs.read_dir(&self.root.join("db")).expect("listed"));
        let before = state();
        let error = self.db.ingest_all(requests, options).expect_err("it must be refused");
        assert_eq!(state(), before, "{error}");
        error
    }

    pub fn request(&self, file: PathBuf) -> IngestRequest {
        IngestRequest::new(self.family.clone(), vec![file])
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::create_if_missing();
    options.db.statistics = true;
    options.db.log_file_bytes = 256 << 10; // opened often, filled never
    // What is sealed stays in the queue until somebody wants it flushed.
    let family = FamilyOptions {
        write_buffer_size: 256 << 10,
        min_write_buffer_number_to_merge: 4,
        max_write_buffer_number: 8,
        ..FamilyOptions::default()
    };
    options.families.push(("default".to_owned(), family));
    options.other_families = OtherFamilies::OpenWith(Box::default());
    options
}

pub fn mode(mode: IngestMode) -> IngestOptions {
    IngestOptions { mode, ..IngestOptions::default() }
}

pub fn name(key: u32) -> String {
    format!("k{key:05}")
}

pub fn put(db: &Db, key: u32, value: &str) -> Result<(), Error> {
    db.put(&db.default_family(), name(key).as_bytes(), value.as_bytes(), &WriteOptions::default())
}

/// Fails where it would have to wait.
pub fn put_now(db: &Db, key: u32, value: &str) -> Result<(), Error> {
    let impatient = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
    db.put(&db.default_family(), name(key).as_bytes(), value.as_bytes(), &impatient)
}

pub fn table(vfs: &Arc<dyn Vfs>, path: &Path, keys: impl IntoIterator<Item = u32>, value: &str) -> PathBuf {
    let mut writer = TableWriter::create(vfs.clone(), path, &FamilyOptions::default()).expect("new");
    for key in keys {
        writer.put(name(key).as_bytes(), value.as_bytes()).expect("ascending");
    }
    writer.finish().expect("written");
    path.to_owned()
}

pub fn contents(db: &Db, family: &Arc<Family>, snapshot: Option<Snapshot>) -> Contents {
    let mut iterator = db.iter(family, &ReadOptions { snapshot, ..ReadOptions::default() }).expect("iterator");
    let mut all = Contents::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut valid = iterator.seek_to_first();
    while valid {
        all.insert(text(iterator.key()), text(iterator.value()));
        valid = iterator.next();
    }
    iterator.status().expect("readable");
    all
}
