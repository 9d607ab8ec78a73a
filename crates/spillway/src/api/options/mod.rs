//! Options as builders. Each is a list of changes over stored or default options, so an option that was not given
//! changes nothing.

mod caches;
mod calls;
mod changes;
mod family;
mod functions;
mod stored;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use base::extend::{EventListener, Logger};
use base::options::{
    CompressionKind, CpuPriority, DbOptions, FamilyOptions as EngineFamilyOptions, InfoLogLevel, LogBacking,
    OptionGroup, WalRecoveryMode, apply_string, nearest, rows, string,
};
use base::{Error, for_each_db_option};
use vfs::{MemoryVfs, RealVfs, Vfs};

use crate::api::options::changes::{Changes, setters};
use crate::background::{Env, RateLimiter};
use crate::batch::options::WriteOptions as EngineWriteOptions;
use crate::core::open_options::DEFAULT_FAMILY;

pub use caches::{BlockCache, WriteBufferManager};
pub use calls::{
    BackupOptions, CompactFilesOptions, CompactOptions, IngestOptions, ReadOptions, TransactionOptions, WriteOptions,
};
pub use family::{CompressionOptions, FamilyOptions, FifoOptions, TableOptions, UniversalOptions};

/// Options to open a database: of the database, and of its default family.
///
/// **Only options that are given count.** A new database gets the defaults for the rest; a database that exists keeps
/// what it has stored: it writes the options in force into its directory (`OPTIONS-NNNNNN`) at every open and change.
/// So `Options::new()` opens every database as it was, families with theirs. Not stored, and to be given at every open,
/// are objects (comparators, merge operators and prefix extractors of your own, filters, listeners, loggers, caches) and
/// what concerns one open: `create_if_missing`, `error_if_exists`, `wal_recovery_mode`, `best_efforts_recovery`,
/// `read_only`.
///
/// Three parts of the methods here:
///
/// - *Opening*: how this open goes, and what the process shares between databases.
/// - *Options of the database*, one per row of RocksDB's `DBOptions`.
/// - *Options of the default family*: those used most, by their names in [`FamilyOptions`]; all of them by
///   [`default_family`](Self::default_family). Other families: [`family`](Self::family).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// use spillway::{Db, FamilyOptions, Options};
///
/// let options = Options::new()
///     .max_background_jobs(4)
///     .write_buffer_size(128 << 20)
///     .family("events", FamilyOptions::new().memtable("trie"));
/// let db = Db::open_with(dir.path().join("db"), &options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "options do nothing until they are given to a call"]
pub struct Options {
    database: Changes<DbOptions>,
    default_family: FamilyOptions,
    /// By name, in the order given.
    families: Vec<(String, FamilyOptions)>,
    write: EngineWriteOptions,
    read_only: bool,
    tolerates_damage: bool,
    refuses_rocksdb: bool,
    ignores_stored: bool,
    vfs: Arc<dyn Vfs>,
    env: Env,
    rate_limiter: Option<RateLimiter>,
    write_buffer_manager: Option<WriteBufferManager>,
    block_cache: Option<BlockCache>,
    row_cache: Option<BlockCache>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            database: Changes::default(),
            default_family: FamilyOptions::new(),
            families: Vec::new(),
            write: EngineWriteOptions::default(),
            read_only: false,
            tolerates_damage: false,
            refuses_rocksdb: false,
            ignores_stored: false,
            vfs: RealVfs::new(),
            env: Env::default(),
            rate_limiter: None,
            write_buffer_manager: None,
            block_cache: None,
            row_cache: None,
        }
    }
}

/// Opening.
impl Options {
    /// No options given.
    pub fn new() -> Self {
        Options::default()
    }

    /// A database in memory, for tests: it is gone with these options and their clones.
    pub fn in_memory() -> Self {
        Options { vfs: MemoryVfs::new(1), ..Options::default() }
    }

    /// Creates the database where there is none; true by default. If false, opening such a directory is an error,
    /// `InvalidArgument`.
    pub fn create_if_missing(mut self, create: bool) -> Self {
        self.database.set(create, |database, create| database.create_if_missing = create);
        self
    }

    /// Opens for reading only. Takes no lock and writes nothing: another process may have the database open, and is not
    /// disturbed. Shows the database as it is now, and does not follow.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// With [`read_only`](Self::read_only): missing or cut tables fail the reads in need of them, not the open.
    pub fn tolerate_damage(mut self, tolerate: bool) -> Self {
        self.tolerates_damage = tolerate;
        self
    }

    /// Whether a directory written by RocksDB is taken over; true by default. From then on RocksDB refuses it, and
    /// [`Db::export`](crate::Db::export) leads back. If false, opening one for writing is an error.
    pub fn adopt_rocksdb(mut self, adopt: bool) -> Self {
        self.refuses_rocksdb = !adopt;
        self
    }

    /// Opens with the defaults instead of the stored options, for when those cannot be read. What says how values are
    /// stored counts all the same: the ttl and the merge operator of a family. If the file is too damaged to tell, give
    /// them by [`family`](Self::family): values would else not expire, and merges fail.
    pub fn ignore_stored_options(mut self, ignore: bool) -> Self {
        self.ignores_stored = ignore;
        self
    }

    /// Syncs the log with each write, unless the write has options of its own: what was acknowledged survives a loss of
    /// power. Off by default: it survives the end of the process only.
    pub fn sync_writes(mut self, sync: bool) -> Self {
        self.write.sync = sync;
        self
    }

    /// Options of the family `name`, which is created if it is not there.
    pub fn family(mut self, name: impl Into<String>, options: FamilyOptions) -> Self {
        let name = name.into();
        if name == DEFAULT_FAMILY {
            return self.default_family(options);
        }
        self.families.retain(|(other, _)| *other != name);
        self.families.push((name, options));
        self
    }

    /// Threads for flushes and compactions; by default those of the process, shared by all databases.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Limits what flushes and compactions write, together with every other database of this limiter.
    pub fn rate_limiter(mut self, limiter: RateLimiter) -> Self {
        self.rate_limiter = Some(limiter);
        self
    }

    /// Limits the memory of memtables, together with every other database of this manager. The options
    /// `db_write_buffer_size` and `allow_stall`, which are for one database, then have no effect.
    pub fn write_buffer_manager(mut self, manager: WriteBufferManager) -> Self {
        self.write_buffer_manager = Some(manager);
        self
    }

    /// Keeps blocks of tables in this cache, together with every other database of this cache.
    pub fn shared_block_cache(mut self, cache: BlockCache) -> Self {
        self.block_cache = Some(cache);
        self
    }

    /// Keeps the values of keys looked up often in this cache, in front of the tables (RocksDB's `row_cache`). A cache given
    /// to several databases is shared. Without one, they share the block cache; the option `cache_answers` of a family
    /// ends that.
    pub fn row_cache(mut self, cache: BlockCache) -> Self {
        self.row_cache = Some(cache);
        self
    }

    /// Sets an option of the database, or of the default family, by name and text, as in RocksDB's option files. A wrong
    /// one is an error of the open, and names the nearest known one.
    pub fn option(self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.text(format!("{}={{{}}}", name.as_ref(), value.as_ref()))
    }

    /// Sets options by a text: `max_background_jobs=4;write_buffer_size=64M`. Errors as of [`option`](Self::option).
    pub fn text(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        let checked = |pairs: Vec<_>| string::check_names(&mut EngineFamilyOptions::default(), &pairs).map(|()| pairs);
        let pairs = match string::pairs(&text).and_then(checked) {
            Ok(pairs) => pairs,
            Err(error) => {
                self.database.add(move |_| Err(error.clone()));
                return self;
            }
        };
        let mut known = DbOptions::default();
        for (name, value) in pairs {
            let is_of_db = knows(&mut known, name);
            if !is_of_db && !knows(&mut EngineFamilyOptions::default(), name) {
                let error = unknown(name);
                self.database.add(move |_| Err(error.clone()));
            } else if is_of_db {
                let pair = format!("{name}={{{value}}}");
                self.database.add(move |database| apply_string(database, &pair));
            } else {
                self.default_family = self.default_family.option(name, value);
            }
        }
        self
    }
}

for_each_db_option! { setters, Options database DbOptions, Db }

/// Options of the database that take objects or paths.
impl Options {
    /// The directory of the log files; by default the database's own.
    pub fn wal_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.database.set(text_of(dir.as_ref()), |database, dir| database.wal_dir = dir);
        self
    }

    /// The directory of the event log; by default the database's own.
    pub fn db_log_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.database.set(text_of(dir.as_ref()), |database, dir| database.db_log_dir = dir);
        self
    }

    /// Permissions of new files, from `0o600` (the default, the owner's alone) to `0o666`; `0o640` lets a group read. The
    /// process's umask takes from them, and files that are there stay as they are. Others are an error of the open.
    pub fn file_mode(self, mode: u32) -> Self {
        self.option("file_mode", format!("{mode:o}"))
    }

    /// Hears of flushes, compactions, stalls and background errors. May be given several times.
    pub fn listener(mut self, listener: impl EventListener + 'static) -> Self {
        let listener: Arc<dyn EventListener> = Arc::new(listener);
        self.database.set(listener, |database, listener| database.listeners.push(listener));
        self
    }

    /// Takes the lines of the event log, in place of the file `LOG`.
    pub fn logger(mut self, logger: impl Logger + 'static) -> Self {
        let logger: Arc<dyn Logger> = Arc::new(logger);
        self.database.set(logger, |database, logger| database.info_log = Some(logger));
        self
    }
}

/// Options of the default family.
impl Options {
    /// Options of the default family: those given in `options`, over what was given before.
    pub fn default_family(mut self, options: FamilyOptions) -> Self {
        self.default_family = self.default_family.and(options);
        self
    }

    /// See [`FamilyOptions::memtable`].
    pub fn memtable(mut self, memtable: impl Into<String>) -> Self {
        self.default_family = self.default_family.memtable(memtable);
        self
    }

    /// See [`FamilyOptions::write_buffer_size`].
    pub fn write_buffer_size(mut self, bytes: usize) -> Self {
        self.default_family = self.default_family.write_buffer_size(bytes);
        self
    }

    /// See [`FamilyOptions::max_write_buffer_number`].
    pub fn max_write_buffer_number(mut self, memtables: usize) -> Self {
        self.default_family = self.default_family.max_write_buffer_number(memtables);
        self
    }

    /// See [`FamilyOptions::compression`].
    pub fn compression(mut self, compression: CompressionKind) -> Self {
        self.default_family = self.default_family.compression(compression);
        self
    }

    /// See [`FamilyOptions::table`].
    pub fn table(mut self, table: TableOptions) -> Self {
        self.default_family = self.default_family.table(table);
        self
    }

    /// See [`FamilyOptions::merge_operator`].
    pub fn merge_operator(mut self, operator: impl base::extend::MergeOperator + 'static) -> Self {
        self.default_family = self.default_family.merge_operator(operator);
        self
    }

    /// See [`FamilyOptions::merge_fn`].
    pub fn merge_fn(
        mut self,
        name: impl Into<String>,
        merge: impl Fn(&[u8], Option<&[u8]>, &[&[u8]]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        self.default_family = self.default_family.merge_fn(name, merge);
        self
    }
}

impl Options {
    /// Where the files are.
    pub(crate) fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.vfs
    }
}

fn knows(group: &mut dyn OptionGroup, name: &str) -> bool {
    group.find_mut(name).is_some() || group.unhonoured().iter().any(|row| row.name == name)
}

#[cold]
fn unknown(name: &str) -> Error {
    let (database, family) = (rows::<DbOptions>(), rows::<EngineFamilyOptions>());
    let near = nearest(name, database.iter().chain(&family).map(|row| row.name));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Error::invalid_argument(format!("neither databases nor families have an option `{name}`{near}"))
}

fn text_of(path: &Path) -> String {
    base::name::of_path(path).into_owned()
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut database, mut family) = (DbOptions::default(), EngineFamilyOptions::default());
        let database = self.database.apply(&mut database, &mut Vec::new()).map(|()| database);
        let family = self.default_family.apply(&mut family, &mut Vec::new()).map(|()| family);
        f.debug_struct("Options")
            .field("database", &database)
            .field("default_family", &family)
            .field("families", &self.families)
            .finish_non_exhaustive()
    }
}
