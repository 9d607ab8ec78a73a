//! What an ingest costs whose table overlaps some memtables: the call, and the flush of what it leaves. The memtables are
//! kept from flushing, so that there are exactly as many as asked for, and each database is new.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::options::DbOptions;
use base::{Error, Result};
use spillway::{
    DEFAULT_FAMILY, Db, Family, FamilyOptions, IngestMode, IngestOptions, IngestProgress, IngestRequest, OpenOptions,
    ReadOptions, WriteOptions,
};
use vfs::{MemoryVfs, Vfs};

use super::flags::{IngestFlags, Store};
use super::record::{NONE, OverlapRecord};
use super::tables::{Entries, KEY_BYTES, family_options, is_value_of, make_table, spread};
use crate::flags::choices::Named;
use crate::machine::Setting;
use crate::medians::{median, spread as low_and_high};
use crate::workload::{KeyBuffer, Rng};

/// Writes that each memtable holds at the least, the mutable one included.
const WRITES_MIN: u64 = 8;

/// How long a database is left alone before the ingest: the spare memtable for the one that was filled last is made in the
/// background.
const SETTLE: Duration = Duration::from_millis(3);

/// Bytes of a log where files lie in memory: there, unlike on disk, a file is cleared when it is allocated, and clearing tens
/// of megabytes for each database would leave nothing of the program in the processor's caches.
const LOG_BYTES_IN_MEMORY: u64 = 1 << 20;

/// The property that counts sealed memtables.
const SEALED: &str = "rocksdb.num-immutable-mem-table";

/// What prepare looks at, without and with `--verify`.
pub const VERIFIES: [&str; 2] =
    ["footer, properties, index, first and last key", "all blocks' checksums, order of all keys"];

/// One measured ingest, or flush without one.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    prepare: Duration,
    commit: Duration,
    flush: Duration,
}

/// A mode, or none, over so many memtables in a store, with what was measured of it.
struct Cell {
    mode: Option<IngestMode>,
    store: Store,
    memtables: usize,
    times: Vec<Times>,
}

/// Measures every mode over every number of memtables, by turns: no two measurements of a cell follow each other.
///
/// # Errors
/// The first failure of an operation.
pub fn run(flags: &IngestFlags, vfs: &Arc<dyn Vfs>, setting: &Setting) -> Result<Vec<OverlapRecord>> {
    let mut cells = cells(flags);
    for _ in 0..flags.repeats {
        for cell in &mut cells {
            let times = measure(flags, vfs, cell).map_err(|e| e.context(cell.name()))?;
            cell.times.push(times);
        }
    }
    Ok(cells.iter().map(|cell| cell.record(flags, setting)).collect())
}

fn cells(flags: &IngestFlags) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &store in &flags.stores.0 {
        for &memtables in &flags.memtables.0 {
            let modes = std::iter::once(None).chain(flags.mode.0.iter().copied().map(Some));
            cells.extend(modes.map(|mode| Cell { mode, store, memtables, times: Vec::new() }));
        }
    }
    cells
}

impl Cell {
    fn name(&self) -> String {
        format!("{} over {} memtables in {}", self.mode_name(), self.memtables, self.store.name())
    }

    fn mode_name(&self) -> &'static str {
        self.mode.map_or(NONE, Named::name)
    }

    fn record(&self, flags: &IngestFlags, setting: &Setting) -> OverlapRecord {
        let of = |time: fn(&Times) -> Duration| -> Vec<f64> {
            self.times.iter().map(|times| time(times).as_secs_f64() * 1e6).collect()
        };
        let ingests = of(|times| times.prepare + times.commit);
        let (ingest_min_us, ingest_max_us) = low_and_high(&ingests);
        let verifies = self.mode.and(VERIFIES.get(usize::from(flags.verify))).copied().unwrap_or_default();
        OverlapRecord {
            mode: self.mode_name().to_owned(),
            store: self.store.name().to_owned(),
            memtables: self.memtables,
            ingest_us: median(ingests).unwrap_or_default(),
            flush_us: median(of(|times| times.flush)).unwrap_or_default(),
            prepare_us: median(of(|times| times.prepare)).unwrap_or_default(),
            commit_us: median(of(|times| times.commit)).unwrap_or_default(),
            ingest_min_us,
            ingest_max_us,
            verifies: verifies.to_owned(),
            repeats: flags.repeats,
            setting: setting.clone(),
        }
    }
}

/// Measures once, on a database of its own. `clock` is the machine's: that of a file system in memory is none.
fn measure(flags: &IngestFlags, clock: &Arc<dyn Vfs>, cell: &Cell) -> Result<Times> {
    let (vfs, dir): (Arc<dyn Vfs>, PathBuf) = match cell.store {
        Store::Disk => (clock.clone(), Path::new(&flags.db).join("overlap")),
        Store::Memory => {
            let memory = MemoryVfs::new(flags.seed);
            memory.set_runs_inline(false);
            (memory, PathBuf::from("/overlap"))
        }
    };
    vfs.create_dir_all(&dir)?;
    let range = 1000 * flags.overlap_keys;
    let numbers: Vec<u64> = spread(range / 2, flags.overlap_keys, &mut Rng::new(flags.seed)).collect();
    let path = dir.join("new.sst");
    let table = make_table(&vfs, &path, flags, numbers.iter().copied())?;
    let db = open(flags, cell, &dir.join("db"), &vfs)?;
    let family = db.default_family();
    fill(flags, &db, &family, cell.memtables, range)?;
    // What the memtables hold is not the ingest's to sync.
    db.sync_log()?;
    settle(clock.as_ref(), flags.asleep);
    let times = time(flags, clock.as_ref(), &db, &family, cell.mode.map(|mode| (mode, table.path)))?;
    if cell.mode.is_some() {
        check(&db, &family, &numbers)?;
    }
    db.close()?;
    drop(family);
    drop(db);
    Db::destroy(dir.join("db"), None, &vfs)?;
    vfs.remove_file(&path)?;
    vfs.remove_dir(&dir)?;
    Ok(times)
}

fn open(flags: &IngestFlags, cell: &Cell, path: &Path, vfs: &Arc<dyn Vfs>) -> Result<Db> {
    // As many memtables as are to be there do not make a flush, and do not make writers wait.
    let more = cell.memtables + 4;
    let family = FamilyOptions {
        min_write_buffer_number_to_merge: more,
        max_write_buffer_number: 2 * more,
        disable_auto_compactions: true,
        ..family_options(flags.memtable_size)
    };
    let mut options = OpenOptions::create_if_missing().family(DEFAULT_FAMILY, family);
    options.db = DbOptions { max_total_wal_size: u64::MAX, ..options.db };
    if cell.store == Store::Memory {
        options.db.log_file_bytes = LOG_BYTES_IN_MEMORY;
    }
    options.vfs = vfs.clone();
    Db::open(path, &options)
}

/// Leaves the database alone for a while. A caller that sleeps meanwhile comes back to a processor that others have used,
/// which costs it about a fifth more.
fn settle(clock: &dyn Vfs, asleep: bool) {
    if asleep {
        return clock.sleep(SETTLE);
    }
    let until = clock.now() + SETTLE;
    while clock.now() < until {
        std::hint::spin_loop();
    }
}

/// Writes over the whole range until there are so many memtables, each with keys in it.
fn fill(flags: &IngestFlags, db: &Db, family: &Arc<Family>, memtables: usize, range: u64) -> Result<()> {
    let mut entries = Entries::new(flags, 0);
    let mut in_mutable = 0;
    let mut sealed = 0;
    while sealed + 1 < memtables as u64 || in_mutable < WRITES_MIN {
        let number = entries.draw(0, range);
        let (key, value) = entries.entry(number);
        db.put(family, key, value, &WriteOptions::default())?;
        in_mutable += 1;
        let now = sealed_memtables(db, family)?;
        if now != sealed {
            (sealed, in_mutable) = (now, 1);
        }
    }
    if sealed + 1 != memtables as u64 {
        return Err(Error::invalid_argument(format!("{} memtables were wanted, there are {}", memtables, sealed + 1)));
    }
    Ok(())
}

fn sealed_memtables(db: &Db, family: &Arc<Family>) -> Result<u64> {
    db.int_property(family, SEALED)
        .ok_or_else(|| Error::invalid_argument(format!("the database has no property {SEALED}")))
}

/// Ingests where there is a table, then flushes.
fn time(
    flags: &IngestFlags,
    clock: &dyn Vfs,
    db: &Db,
    family: &Arc<Family>,
    table: Option<(IngestMode, PathBuf)>,
) -> Result<Times> {
    let mut times = Times::default();
    if let Some((mode, path)) = table {
        let options = IngestOptions {
            mode,
            link_files: true,
            verify_checksums_before_ingest: flags.verify,
            ..IngestOptions::default()
        };
        let request = IngestRequest::new(family.clone(), vec![path]);
        let start = clock.now();
        let prepared = db.prepare_ingest(&[request], &options, &IngestProgress::default())?;
        let ready = clock.now();
        db.commit_ingest(prepared)?;
        (times.prepare, times.commit) = (ready - start, clock.now() - ready);
    }
    let start = clock.now();
    db.flush(&[family])?;
    times.flush = clock.now() - start;
    Ok(times)
}

/// Everything that was ingested can be read.
fn check(db: &Db, family: &Arc<Family>, numbers: &[u64]) -> Result<()> {
    let mut key = KeyBuffer::new(KEY_BYTES);
    for &number in numbers {
        let value = db.get(family, key.set(number), &ReadOptions::default())?;
        if !value.is_some_and(|value| is_value_of(&value, number)) {
            return Err(Error::corruption(format!("key {number} was ingested and is not there")));
        }
    }
    Ok(())
}
