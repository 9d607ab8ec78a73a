//! The engines behind one trait, a file each. Dispatch is static.

mod fjall;
mod lmdb;
mod redb;
mod rocksdb;
mod spillway;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use vfs::Vfs;

pub use fjall::Fjall;
pub use lmdb::Lmdb;
pub use redb::Redb;
pub use rocksdb::Rocks;
pub use spillway::Spillway;

/// An engine with a way of reading, as named on the command line.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Spillway,
    /// With `allow_mmap_reads`.
    SpillwayMapped,
    #[value(name = "rocksdb")]
    Rocksdb,
    /// With `allow_mmap_reads`.
    #[value(name = "rocksdb-mapped")]
    RocksdbMapped,
    Lmdb,
    Redb,
    Fjall,
}

impl Kind {
    pub fn is_mapped(self) -> bool {
        matches!(self, Kind::SpillwayMapped | Kind::RocksdbMapped)
    }

    /// Variables of the environment of the engine's processes.
    pub fn environment(self) -> Option<(&'static str, &'static str)> {
        // redb's cache is pages on the heap, freed by other threads than allocated them: in glibc's arenas of each thread it takes
        // twice its size, and outgrows the memory group. In one arena it keeps to its size, and is faster with more data than memory.
        (self == Kind::Redb).then_some(("MALLOC_ARENA_MAX", "1"))
    }
}

/// The conditions of an open.
pub struct Setup<'a> {
    pub vfs: &'a Arc<dyn Vfs>,
    pub dir: &'a Path,
    /// For everything: caches and memtables of the engine, page cache of the system.
    pub memory_bytes: u64,
    /// Of keys and values, at most.
    pub data_bytes: u64,
    /// Tables are read by mappings.
    pub is_mapped: bool,
    /// RocksDB's library.
    pub library: Option<&'a Path>,
}

impl Setup<'_> {
    pub fn fits(&self) -> bool {
        self.data_bytes < self.memory_bytes / 2
    }
}

/// A change of one entry.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    Put { key: &'a [u8], value: &'a [u8] },
    Remove { key: &'a [u8] },
}

/// Changes to be made together, lent one by one.
pub trait Changes {
    fn next(&mut self) -> Option<Change<'_>>;
}

/// An open database of an engine.
pub trait Peer: Sync + Sized {
    type Reader<'a>: Reader
    where
        Self: 'a;

    /// Changes of a bulk load in one transaction at most, as the engine's or redb's authors load.
    const BULK_MAX: u64;

    /// # Errors
    /// The engine's.
    fn open(setup: &Setup<'_>) -> Result<Self>;

    /// Name and version, and the options in force.
    fn describe(setup: &Setup<'_>) -> Result<Described>;

    /// Whether commits wait for the disk from now on. If not, they end where a log or the changed pages are handed to the system, or
    /// earlier if the engine has no such mode.
    fn set_durable(&mut self, durable: bool) -> Result<()>;

    /// Makes the changes in one transaction or batch.
    fn commit(&self, changes: &mut dyn Changes) -> Result<()>;

    /// Loads puts with ascending keys into an empty database, in the fastest way its authors offer.
    fn load(&mut self, changes: &mut dyn Changes) -> Result<()>;

    /// Reads the state of now. A reader stays in its thread.
    fn reader(&self) -> Result<Self::Reader<'_>>;

    /// Entries, by the cheapest call.
    fn count(&self) -> Result<u64>;

    /// Makes everything durable, and ends the work in the background.
    fn settle(&mut self) -> Result<()>;

    /// Makes the files as small as the engine can.
    fn compact(&mut self) -> Result<()>;
}

/// Reads in one state.
pub trait Reader {
    /// Whether the key exists; `see` gets its value.
    fn get(&mut self, key: &[u8], see: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool>;

    /// Reads `count` entries from the first key at or after `from`; `see` gets each. Returns their number.
    fn scan(&mut self, from: &[u8], count: u64, see: &mut See<'_>) -> Result<u64>;
}

/// Gets the key and value of an entry.
pub type See<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// What a record says of an engine.
#[derive(Clone, Debug, Default)]
pub struct Described {
    pub version: String,
    pub options: String,
}

/// An engine's error as ours.
fn failed<E: Display>(call: &'static str) -> impl Fn(E) -> Error {
    move |error| Error::new(ErrorKind::Io, error.to_string()).context(call)
}

/// Time between two looks at an engine's work in the background.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Successive looks at an idle engine before it counts as idle.
const IDLE_LOOKS: u32 = 20;

/// Waits for the end of an engine's work in the background, if it has no call for that.
fn wait_until_idle(vfs: &dyn Vfs, is_idle: impl Fn() -> bool) {
    let mut looks = 0;
    while looks < IDLE_LOOKS {
        looks = if is_idle() { looks + 1 } else { 0 };
        vfs.sleep(LOOK_EVERY);
    }
}

/// Bytes of a table to be ingested, and of a load's transaction.
const LOAD_BYTES: usize = 64 << 20;

/// Options common to RocksDB and Spillway: RocksDB's advice for point reads (filters of 10 bits, hash indexes in blocks), memory by
/// its guide: a third for the block cache, the rest for memtables and the system's page cache.
fn lsm_options(setup: &Setup<'_>) -> String {
    let mapped = if setup.is_mapped { "allow_mmap_reads=true;" } else { "" };
    format!(
        "create_if_missing=true;max_open_files=-1;max_background_jobs=2;bytes_per_sync=1048576;{mapped}\
         write_buffer_size={};max_write_buffer_number=4;target_file_size_base=67108864;max_bytes_for_level_base=268435456;\
         level_compaction_dynamic_level_bytes=true;compression=kNoCompression;\
         block_based_table_factory={{block_cache={};block_size=4096;filter_policy=bloomfilter:10:false;format_version=5;\
         checksum=kXXH3;data_block_index_type=kDataBlockBinaryAndHash;block_restart_interval=4}}",
        setup.memory_bytes / 16,
        setup.memory_bytes / 3,
    )
}

/// The file of the `nth` table of a load.
fn table_path(dir: &Path, nth: usize) -> PathBuf {
    dir.with_extension(format!("load-{nth}"))
}
