//! A database being opened, and what its listeners know of it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use capi::database::Database;
use capi::env::Env;
use capi::family::FamilyHandle;
use capi::options::Options;
use parking_lot::Mutex;
use spillway::internal::Family;
use spillway::internal::dump::{open_table, open_table_in};
use spillway::internal::extend::EventListener;
use spillway::internal::vfs::Vfs;

use super::{Listening, tell_family_closed};
use crate::boundary::handle;
use crate::database::Db;
use crate::files::properties::Facts;
use crate::objects::threads;

/// The database of a listener.
#[derive(Default)]
pub struct Home {
    /// 0 until the open is done.
    handle: AtomicI64,
    dir: PathBuf,
    vfs: Option<Arc<dyn Vfs>>,
    database: OnceLock<Weak<Database>>,
    /// Properties of the table read last: a flush tells of its table twice.
    last_read: Mutex<Option<(PathBuf, Facts)>>,
}

impl Home {
    pub fn handle(&self) -> i64 {
        self.handle.load(Ordering::Acquire)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn family(&self, name: &str) -> Option<Arc<Family>> {
        self.database.get()?.upgrade()?.db.family(name)
    }

    /// The properties of a table's file, read from it. Empty if it is gone.
    pub fn properties(&self, family: &str, path: &Path) -> Facts {
        let mut last = self.last_read.lock();
        if let Some((_, facts)) = last.as_ref().filter(|(read, _)| read == path) {
            return facts.clone();
        }
        let facts = self.read_properties(family, path).unwrap_or_default();
        *last = Some((path.to_owned(), facts.clone()));
        facts
    }

    fn read_properties(&self, family: &str, path: &Path) -> Option<Facts> {
        let vfs = self.vfs.as_ref()?;
        let opened = match self.family(family) {
            Some(family) => open_table_in(vfs, path, family.options().order.clone()),
            None => open_table(vfs, path),
        };
        Some(Facts::of(opened.ok()?.table().properties()))
    }
}

/// Options with listeners of one database.
pub struct Opening<'o> {
    pub options: Cow<'o, Options>,
    home: Arc<Home>,
}

impl<'o> Opening<'o> {
    pub fn new(options: &'o Options, path: &str) -> Opening<'o> {
        if options.db.listeners.is_empty() {
            return Opening { options: Cow::Borrowed(options), home: Arc::default() };
        }
        let home = Arc::new(Home { dir: PathBuf::from(path), vfs: Some(options.vfs()), ..Home::default() });
        let at_home = |listener: &Arc<dyn EventListener>| -> Arc<dyn EventListener> {
            match Listening::of(listener) {
                Some(listening) => Arc::new(Listening { listener: listening.listener.clone(), home: home.clone() }),
                None => listener.clone(),
            }
        };
        let mut own = options.clone();
        own.db.listeners = options.db.listeners.iter().map(at_home).collect();
        Opening { options: Cow::Owned(own), home }
    }

    /// The handle of the open database.
    pub fn done(self, mut database: Box<Db>) -> i64 {
        let env = self.options.env.clone().unwrap_or_else(Env::of_process);
        database.set_env(&env);
        threads::log_opened(env, &database.database);
        let _ = self.home.database.set(Arc::downgrade(&database.database)); // set once
        let handle = handle::open(database);
        self.home.handle.store(handle, Ordering::Release);
        handle
    }

    /// As [`done`](Self::done), of an open without named families: RocksDB ends a handle of the default family then.
    pub fn done_alone(self, database: Box<Db>) -> i64 {
        let default = FamilyHandle(database.default_family().clone());
        let handle = self.done(database);
        tell_family_closed(&default);
        handle
    }
}
