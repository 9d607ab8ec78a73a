//! Reports on a database: properties under RocksDB's names, levels, files, sizes, statistics.
//!
//! Figures are read one after the other, without stopping writers: two of them may be of different instants.

mod memtables;
mod observation;
mod properties;
pub(crate) mod serve;
mod spans;
mod stats;
mod tables;
mod text;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::key::{self, SEEK_KIND};
use base::metrics::Statistics;
use base::{Result, SeqNo, key::append};
use table::Properties;

use crate::compaction::levels::{LevelTargets, scores};
use crate::core::Core;
use crate::core::doubt::Doubt;
use crate::core::family::Family;
use crate::core::flush_ways::FlushReport;
use crate::core::kept_views::Pinned;
pub use crate::core::live_file::LiveFile;
use crate::database::handle::Database;
use crate::database::report::observation::Reading;
use crate::ingest::IngestWaitReport;
use crate::observe::{Observation, ObservedEvents};
use crate::order::stall::StallCause;
use crate::updates::LogFileReport;
use crate::version::file_name::{self, FileType};
use crate::version::level::overlaps;
use crate::version::table_file::TableFile;
use crate::version::{current, manifest};

pub use self::memtables::MemtableRange;
pub use self::properties::property_names;

/// A range of user keys, both inclusive.
pub type KeyRange<'a> = (&'a [u8], &'a [u8]);

/// The files that make up a database without its logs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveFileNames {
    /// Tables, CURRENT, the MANIFEST and the newest OPTIONS file.
    pub paths: Vec<PathBuf>,
    /// Bytes of the MANIFEST.
    pub manifest_bytes: u64,
}

/// One level of a family.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LevelReport {
    /// The level's number.
    pub level: usize,
    /// Number of tables.
    pub files: usize,
    /// Bytes of the tables.
    pub bytes: u64,
    /// Size above which the level is compacted. `None` for level 0, scored by its number of files, and for levels meant
    /// to stay empty.
    pub target_bytes: Option<u64>,
    /// Compaction score: due from 1 on. `None` for the last level.
    pub score: Option<f64>,
}

/// What iterators keep that were made before the family went on: memtables since flushed, tables since compacted. Iterators
/// over the same state are one report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PinReport {
    /// Name of the family.
    pub family: String,
    /// Iterators, with reads that are under way.
    pub readers: usize,
    /// Since the state was replaced by a newer one; the iterators are older.
    pub age: Duration,
    /// Memtables kept for the readers alone.
    pub memtables: usize,
    /// Their memory, which counts for no limit once a writer would have to wait for it.
    pub memtable_bytes: u64,
    /// Tables kept for the readers alone.
    pub tables: usize,
    /// Bytes of their files, on disk.
    pub table_bytes: u64,
}

impl PinReport {
    fn of(family: String, pinned: Pinned) -> Self {
        let Pinned { readers, age, memtables, memtable_bytes, tables, table_bytes } = pinned;
        PinReport { family, readers, age, memtables, memtable_bytes, tables, table_bytes }
    }
}

/// Stalls of writers since the database was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StallReport {
    /// What writers waited for.
    pub cause: StallCause,
    /// Number of waits.
    pub waits: u64,
    /// Microseconds waited, all writers together.
    pub micros: u64,
}

impl Database {
    /// A property as text; `None` for an unknown name ([`property_names`]), for a different database's family, and once the
    /// database is closed.
    pub fn property(&self, family: &Family, name: &str) -> Option<String> {
        self.check_open().ok()?;
        family.check_home(&self.core().context).ok()?;
        properties::text(self.engine(), family, name)
    }

    /// A property as one number; `None` for any other name, and for a different database's family.
    pub fn int_property(&self, family: &Family, name: &str) -> Option<u64> {
        self.check_open().ok()?;
        family.check_home(&self.core().context).ok()?;
        properties::number(self.engine(), family, name)
    }

    /// One reading of everything that an operator asks for. No I/O; microseconds for each family.
    pub fn observe(&self) -> Observation {
        Reading::new(self.engine()).take()
    }

    /// The latest events after a number; 0 for all that are kept.
    pub fn events(&self, since: u64) -> ObservedEvents {
        self.core().context.events.since(since)
    }

    /// Counters and distributions; `None` if the option `statistics` is off.
    pub fn statistics(&self) -> Option<Arc<Statistics>> {
        self.core().context.statistics.clone()
    }

    /// The family's levels, level 0 first; empty for a different database's family, and once the database is closed.
    pub fn levels(&self, family: &Family) -> Vec<LevelReport> {
        if self.check_open().is_err() || family.check_home(&self.core().context).is_err() {
            return Vec::new();
        }
        levels_of(self.core(), family)
    }

    /// Logs with records, by number: those in use, and those kept in the archive. Large batches, in files of their own, are
    /// not among them.
    ///
    /// # Errors
    /// `Closed`. `Io`, `Corruption`: a log could not be read.
    pub fn log_files(&self) -> Result<Vec<LogFileReport>> {
        self.core().check_open()?;
        self.core().archive.dirs().list()
    }

    /// The log that the next write goes to, without its first number. `None`: nothing was logged since the open.
    ///
    /// # Errors
    /// As of [`log_files`](Self::log_files).
    pub fn current_log_file(&self) -> Result<Option<LogFileReport>> {
        self.core().check_open()?;
        let current = self.core().commit.lock().log.as_ref().map(|log| log.number());
        current.map_or(Ok(None), |number| self.core().archive.dirs().report(number, SeqNo::ZERO))
    }

    /// Every table of every family, including ingested ones without a level yet. Empty once the database is closed.
    pub fn live_files(&self) -> Vec<LiveFile> {
        if self.check_open().is_err() {
            return Vec::new();
        }
        let of_family = |family: &Arc<Family>| {
            let view = family.view_full();
            let file = |level: usize, table: &Arc<TableFile>| {
                LiveFile::of(family, level, table, self.core().context.table_path(table.meta.physical_number()))
            };
            let placed = view.version.all_files().map(|(level, table)| file(level, table));
            let queued = view.queued_tables().map(|table| LiveFile { is_queued: true, ..file(0, table) });
            placed.chain(queued).collect::<Vec<_>>()
        };
        self.families().iter().flat_map(of_family).collect()
    }

    /// The names of the files now. Later changes may delete some of them.
    ///
    /// # Errors
    /// Reading CURRENT or the directory fails.
    pub fn live_file_names(&self) -> Result<LiveFileNames> {
        let (dir, vfs) = (self.path(), self.vfs());
        let mut paths: Vec<PathBuf> = self.live_files().into_iter().map(|file| file.path).collect();
        paths.sort();
        paths.dedup(); // several tables may be parts of one file
        let manifest = manifest::manifest_path(dir, current::read_current(&**vfs, dir)?);
        let manifest_bytes = vfs.metadata(&manifest)?.len;
        paths.extend([dir.join(file_name::format(FileType::Current, Default::default())), manifest]);
        let names = vfs.read_dir(dir)?;
        let numbered = names.iter().filter_map(|name| file_name::parse(name));
        let options = numbered.filter(|(file_type, _)| *file_type == FileType::Options).map(|(_, number)| number).max();
        paths.extend(options.map(|number| dir.join(file_name::format(FileType::Options, number))));
        Ok(LiveFileNames { paths, manifest_bytes })
    }

    /// The properties of a family's tables by file, of those with keys in a range if `ranges` is given.
    ///
    /// # Errors
    /// `InvalidArgument`: the family is of another database. `Corruption`, `Io`: a table cannot be read.
    pub fn table_properties(
        &self,
        family: &Arc<Family>,
        ranges: Option<&[KeyRange<'_>]>,
    ) -> Result<Vec<(PathBuf, Properties)>> {
        self.check_family(family)?;
        let (view, order) = (family.view_full(), &family.order().user);
        let is_asked_for = |table: &Arc<TableFile>| {
            let meets = |&(start, end): &KeyRange<'_>| overlaps(order, &table.meta, Some(start), Some(end));
            ranges.is_none_or(|ranges| ranges.iter().any(meets))
        };
        let placed = view.version.all_files().map(|(_, table)| table);
        let tables = placed.chain(view.queued_tables()).filter(|table| is_asked_for(table));
        let properties = |table: &Arc<TableFile>| {
            let path = self.core().context.table_path(table.meta.physical_number());
            Ok((path, table.with(|table| Ok(table.properties().clone()))?))
        };
        tables.map(properties).collect()
    }

    /// Approximate bytes of tables with keys of each range `[start, end)`, including ingested tables without a level
    /// yet.
    ///
    /// # Errors
    /// `Corruption`, `Io`: an index could not be read.
    pub fn approximate_sizes(&self, family: &Family, ranges: &[(&[u8], &[u8])]) -> Result<Vec<u64>> {
        self.core().check_family(family)?;
        let view = family.view_full();
        let mut sizes = Vec::with_capacity(ranges.len());
        for (start, end) in ranges {
            let mut bytes = 0;
            for level in 0..view.version.num_levels() {
                for file in view.version.overlapping(level, Some(start), Some(end)) {
                    bytes += bytes_between(&file, start, end)?;
                }
            }
            let reaches = |file: &&Arc<TableFile>| overlaps(&family.order().user, &file.meta, Some(start), Some(end));
            for file in view.queued_tables().filter(reaches) {
                bytes += bytes_between(file, start, end)?;
            }
            sizes.push(bytes);
        }
        Ok(sizes)
    }

    /// Entries of memtables with keys in `[start, end)`: counted if they are few, else estimated.
    ///
    /// # Errors
    /// `InvalidArgument`: the family is of another database. `Closed`.
    pub fn approximate_memtables(&self, family: &Family, start: &[u8], end: &[u8]) -> Result<MemtableRange> {
        self.core().check_family(family)?;
        Ok(memtables::between((start, end), family))
    }

    /// Stalls of writers by cause, including causes without any.
    pub fn stalls(&self) -> Vec<StallReport> {
        let counts = self.core().stall.counts().into_iter();
        counts.map(|(cause, waits, micros)| StallReport { cause, waits, micros }).collect()
    }

    /// Keys that may not have their last durable values, since the open passed over damage
    /// (`wal_recovery_mode=kSkipAnyCorruptedRecords`) or went back to an older state (`best_efforts_recovery`). All other
    /// keys have them. Empty after every other open.
    pub fn recovery_doubts(&self) -> Vec<Doubt> {
        self.core().context.recovery_doubts.all()
    }

    /// What old iterators keep, by family, oldest first.
    pub fn pins(&self) -> Vec<PinReport> {
        let now = self.core().context.vfs.now();
        let of_family = |family: &Arc<Family>| {
            let pinned = family.kept_views().pinned(&family.view_full(), now);
            let name = family.name().to_owned();
            pinned.into_iter().map(move |pinned| PinReport::of(name.clone(), pinned))
        };
        self.core().families.load().iter().flat_map(of_family).collect()
    }

    /// Counts of flushes by kind.
    pub fn flushes(&self) -> FlushReport {
        self.core().context.flushes.report()
    }

    /// Time spent by stalled writers on ingests.
    pub fn ingest_waits(&self) -> IngestWaitReport {
        self.engine().committer.ingest_waits.report()
    }
}

fn levels_of(core: &Core, family: &Family) -> Vec<LevelReport> {
    let (version, options) = (family.view_full().version.clone(), family.options());
    let targets = LevelTargets::of(&version, &options);
    let state = core.state.lock();
    let running = state.families.get(&family.id()).map(|family| &family.compactions);
    let scores = running.map(|running| scores(&version, &options, &targets, running)).unwrap_or_default();
    drop(state);
    let level = |level: usize| LevelReport {
        level,
        files: version.level(level).len(),
        bytes: version.level_bytes(level),
        target_bytes: Some(targets.max_bytes(level)).filter(|&bytes| level > 0 && bytes < u64::MAX),
        score: scores.iter().find(|(of, _)| *of == level).map(|(_, score)| *score),
    };
    (0..version.num_levels()).map(level).collect()
}

fn bytes_between(file: &TableFile, start: &[u8], end: &[u8]) -> Result<u64> {
    let target = |user_key: &[u8]| {
        let mut internal = Vec::with_capacity(user_key.len() + key::TRAILER_BYTES);
        append(&mut internal, user_key, SeqNo::MAX, SEEK_KIND);
        internal
    };
    file.with(|table| {
        let (from, to) = (table.approximate_offset(&target(start))?, table.approximate_offset(&target(end))?);
        Ok(to.saturating_sub(from))
    })
}

#[cfg(test)]
mod tests {
    use vfs::MemoryVfs;

    use crate::internal::{Database, OpenOptions, WriteOptions};

    #[test]
    fn files_and_their_properties_are_told() {
        let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).unwrap();
        let family = db.default_family();
        for keys in [[b"a", b"b"], [b"m", b"n"]] {
            for key in keys {
                db.put(&family, key, b"value", &WriteOptions::default()).unwrap();
            }
            db.flush(&[&family]).unwrap();
        }
        let files = db.live_file_names().unwrap();
        let names: Vec<&str> = files.paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        for part in [".sst", "CURRENT", "MANIFEST-", "OPTIONS-"] {
            assert!(names.iter().any(|name| name.contains(part)), "{part} of {names:?}");
        }
        assert!(files.manifest_bytes > 0);
        assert!(files.paths.iter().all(|path| db.vfs().exists(path).unwrap()));
        let entries = |ranges: Option<&[super::KeyRange<'_>]>| -> Vec<u64> {
            let tables = db.table_properties(&family, ranges).unwrap();
            tables.iter().map(|(_, properties)| properties.entries).collect()
        };
        assert_eq!(entries(None), [2, 2]);
        assert_eq!(entries(Some(&[(b"b", b"c")])), [2]);
        assert!(entries(Some(&[(b"c", b"d")])).is_empty());
        assert_eq!(entries(Some(&[(b"c", b"d"), (b"0", b"z")])), [2, 2]);
    }
}
