//! How a database is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::metrics::Statistics;
use base::options::{DbOptions, FamilyOptions};
use base::{FileNumber, UserOrder};
use vfs::Vfs;

use crate::background::{Env, RateLimiter};
use crate::queue::memory::MemoryBudget;

/// Name of the family present in every database.
pub const DEFAULT_FAMILY: &str = "default";

/// Treatment of existing families not named at open.
#[derive(Clone, Default)]
pub enum OtherFamilies {
    /// The open fails and names them, as in RocksDB.
    #[default]
    Refuse,
    /// They are opened with these options; their key order and merge operator are looked up by their stored names.
    OpenWith(Box<FamilyOptions>),
    /// They are opened with the options under their names, and the rest as by `OpenWith`. A name without a family is
    /// passed over.
    OpenBy {
        /// Options by the family's name.
        named: Vec<(String, FamilyOptions)>,
        /// Options of all others.
        rest: Box<FamilyOptions>,
    },
}

impl OtherFamilies {
    /// Options to open the family with. `None`: it is not to be opened.
    pub(crate) fn options(&self, family: &str) -> Option<&FamilyOptions> {
        match self {
            OtherFamilies::Refuse => None,
            OtherFamilies::OpenWith(options) => Some(options),
            OtherFamilies::OpenBy { named, rest } => {
                let own = named.iter().find(|(name, _)| name == family);
                Some(own.map_or(rest, |(_, options)| options))
            }
        }
    }

    /// All options, with the family's name where they are for one.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &FamilyOptions)> {
        let (named, rest): (&[_], _) = match self {
            OtherFamilies::Refuse => (&[], None),
            OtherFamilies::OpenWith(rest) => (&[], Some(rest)),
            OtherFamilies::OpenBy { named, rest } => (named, Some(rest)),
        };
        let named = named.iter().map(|(name, options)| (name.as_str(), options));
        named.chain(rest.map(|options| ("others", &**options)))
    }
}

/// Options to open a database.
#[derive(Clone)]
pub struct OpenOptions {
    /// Number of the OPTIONS file of the database that these options come from, 0 where there was none. An open for writing is
    /// refused if the database wrote a later one. `None`: they are the caller's own.
    pub stored_in: Option<FileNumber>,
    /// Options of the database.
    pub db: DbOptions,
    /// Families by name, with their options. The default family may be left out: it gets the default options.
    pub families: Vec<(String, FamilyOptions)>,
    /// What is done with families that are there and not named.
    pub other_families: OtherFamilies,
    /// Opens without writing anything; other processes may have the database open.
    pub read_only: bool,
    /// With `read_only`: follows the writer. The directory of this reader's own files, such as its event log. Set by
    /// [`Database::open_as_secondary`](crate::internal::Database::open_as_secondary).
    pub secondary: Option<PathBuf>,
    /// With `read_only`: missing or truncated tables and value logs fail the reads in need of them, not the open. See
    /// [`ReadOptions::skip_damaged`](crate::internal::ReadOptions::skip_damaged) for reads past them.
    pub bear_damage: bool,
    /// Takes over a directory written by RocksDB. From then on RocksDB refuses it; `export` leads back.
    pub adopt_rocksdb: bool,
    /// Values with times (`value_times`) are written and shown with them, also to merge operators and filters: as RocksDB does without
    /// DBWithTTL. By default the engine keeps times from both, and the caller stamps what it writes (`internal::ttl`).
    pub raw_values: bool,
    /// Where the files are.
    pub vfs: Arc<dyn Vfs>,
    /// Threads for flushes and compactions; by default the process's.
    pub env: Env,
    /// Write rate of flushes and compactions. Databases given the same limiter share it. `None`: made from
    /// `rate_limiter_bytes_per_sec`.
    pub rate_limiter: Option<RateLimiter>,
    /// The limit on memtables. Databases given the same one share it. `None`: made from `db_write_buffer_size` and
    /// `allow_stall`.
    pub write_buffer_manager: Option<Arc<MemoryBudget>>,
    /// Databases given the same cache share it. `None`: made from each family's options.
    pub block_cache: Option<Arc<table::BlockCache>>,
    /// RocksDB's `row_cache`, of answers, shared if given. `None`: the block cache, unless `cache_answers` is off.
    pub row_cache: Option<Arc<table::BlockCache>>,
    /// Counts what happens in all databases given the same. `None`: made for this one if `statistics` is on.
    pub statistics: Option<Arc<Statistics>>,
    /// Lines for the event log, written once at the open: see [`remark_on`](OpenOptions::remark_on).
    pub remarks: Vec<String>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            stored_in: None,
            db: DbOptions::default(),
            families: Vec::new(),
            other_families: OtherFamilies::default(),
            read_only: false,
            secondary: None,
            bear_damage: false,
            adopt_rocksdb: true,
            raw_values: false,
            vfs: vfs::RealVfs::new(),
            env: Env::default(),
            rate_limiter: None,
            write_buffer_manager: None,
            block_cache: None,
            row_cache: None,
            statistics: None,
            remarks: Vec::new(),
        }
    }
}

impl OpenOptions {
    /// Creates the database if it is missing.
    pub fn create_if_missing() -> Self {
        let mut options = OpenOptions::default();
        options.db.create_if_missing = true;
        options
    }

    /// Options given for a family: its own, else those of the others, else the default ones.
    pub fn family_or_others(&self, name: &str) -> FamilyOptions {
        let named = self.families.iter().find(|(known, _)| known == name).map(|(_, family)| family);
        named.or(self.other_families.options(name)).cloned().unwrap_or_default()
    }

    /// The key orders tables may have.
    pub(crate) fn orders(&self) -> Vec<UserOrder> {
        let mut orders = vec![UserOrder::Bytewise, UserOrder::ReverseBytewise];
        let named = self.families.iter().map(|(_, family)| family);
        let others = self.other_families.all().map(|(_, family)| family);
        let given = named.chain(others).map(|family| &family.order);
        orders.extend(given.filter(|order| matches!(order, UserOrder::Custom(_))).cloned());
        orders
    }

    /// Adds a family, or replaces its options.
    #[must_use]
    pub fn family(mut self, name: impl Into<String>, options: FamilyOptions) -> Self {
        let name = name.into();
        self.families.retain(|(other, _)| *other != name);
        self.families.push((name, options));
        self
    }
}

/// The path of a database's lock file.
pub(crate) fn lock_path(dir: &Path) -> PathBuf {
    dir.join("LOCK")
}
