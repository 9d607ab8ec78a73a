//! The table of properties: RocksDB's names, and Spillway's own, with the prefix `spillway.`.

use std::sync::Arc;

use super::{stats, tables, text};
use crate::compaction::levels::{LevelTargets, pending_bytes, scores};
use crate::core::family::Family;
use crate::core::{Core, FamilyState, State};
use crate::queue::flushable::Flushable;
use crate::queue::ingest::QueuedIngest;
use crate::queue::view::ReadView;
use crate::version::recover::table_path;

/// The source of a property.
pub(super) struct Reported<'a> {
    pub engine: &'a Engine,
    pub core: &'a Core,
    pub family: &'a Family,
    pub view: Arc<ReadView>,
}

/// The reader of a property.
enum Reader {
    Number(fn(&Reported<'_>) -> u64),
    Text(fn(&Reported<'_>) -> String),
    /// A level's number follows the name.
    Level(fn(&Reported<'_>, usize) -> String),
}

use crate::engine::Engine;
use crate::engine::Lag;
use Reader::{Level, Number, Text};

const PROPERTIES: &[(&str, Reader)] = &[
    ("rocksdb.num-files-at-level", Level(|s, level| s.view.version.level(level).len().to_string())),
    ("rocksdb.compression-ratio-at-level", Level(|s, level| format!("{:.6}", s.compression_ratio(level)))),
    ("rocksdb.levelstats", Text(text::level_stats)),
    ("rocksdb.stats", Text(|s| stats::of_family(s) + &tables::read_times(s) + &stats::of_database(s))),
    ("rocksdb.cfstats", Text(|s| stats::of_family(s) + &tables::read_times(s))),
    ("rocksdb.cfstats-no-file-histogram", Text(stats::of_family)),
    ("rocksdb.cf-file-histogram", Text(tables::read_times)),
    ("rocksdb.cf-write-stall-stats", Text(stats::family_waits)),
    ("rocksdb.dbstats", Text(stats::of_database)),
    ("rocksdb.db-write-stall-stats", Text(stats::database_waits)),
    ("rocksdb.aggregated-table-properties", Text(tables::aggregated)),
    ("rocksdb.aggregated-table-properties-at-level", Level(tables::aggregated_at)),
    ("rocksdb.block-cache-entry-stats", Text(tables::cache_entries)),
    ("rocksdb.fast-block-cache-entry-stats", Text(tables::cache_entries)),
    ("rocksdb.sstables", Text(text::tables)),
    ("rocksdb.options-statistics", Text(text::statistics)),
    ("rocksdb.num-immutable-mem-table", Number(|s| s.view.queue.len() as u64)),
    ("rocksdb.mem-table-flush-pending", Number(|s| u64::from(!s.view.queue.is_empty()))),
    ("rocksdb.num-running-flushes", Number(|s| s.state(|state| state.flushes_running as u64))),
    ("rocksdb.compaction-pending", Number(|s| u64::from(s.compaction_is_due()))),
    ("rocksdb.num-running-compactions", Number(|s| s.state(|state| state.compactions_running as u64))),
    ("rocksdb.background-errors", Number(|s| s.core.space.errors())),
    ("rocksdb.cur-size-active-mem-table", Number(|s| s.view.mutable.memory_bytes() as u64)),
    ("rocksdb.cur-size-all-mem-tables", Number(|s| s.memtable_bytes())),
    ("rocksdb.size-all-mem-tables", Number(|s| s.family.memtable_bytes() as u64)),
    ("rocksdb.num-entries-active-mem-table", Number(|s| s.view.mutable.memtable().entries())),
    ("rocksdb.num-entries-imm-mem-tables", Number(|s| s.queued(|memtable| memtable.entries()))),
    ("rocksdb.num-deletes-active-mem-table", Number(|s| s.view.mutable.memtable().counts().deletions)),
    ("rocksdb.num-deletes-imm-mem-tables", Number(|s| s.queued(|memtable| memtable.counts().deletions))),
    ("rocksdb.estimate-num-keys", Number(|s| s.keys())),
    ("rocksdb.estimate-table-readers-mem", Number(|s| s.open_table_bytes())),
    ("rocksdb.estimate-live-data-size", Number(tables::live_bytes)),
    ("rocksdb.num-live-versions", Number(|s| s.family.live_versions() as u64)),
    ("rocksdb.current-super-version-number", Number(|s| s.family.views_made())),
    ("rocksdb.is-file-deletions-enabled", Number(|s| u64::from(!s.core.purge.is_held()))),
    ("rocksdb.num-blob-files", Number(|_| 0)),
    ("rocksdb.total-blob-file-size", Number(|_| 0)),
    ("rocksdb.live-blob-file-size", Number(|_| 0)),
    ("rocksdb.live-blob-file-garbage-size", Number(|_| 0)),
    ("rocksdb.num-snapshots", Number(|s| s.core.snapshots.count() as u64)),
    ("rocksdb.oldest-snapshot-time", Number(|s| s.core.snapshots.oldest().map_or(0, |(_, taken_s)| taken_s))),
    ("rocksdb.oldest-snapshot-sequence", Number(|s| s.core.snapshots.oldest().map_or(0, |(seq, _)| seq.0))),
    ("rocksdb.min-log-number-to-keep", Number(|s| s.core.logs.oldest().map_or(0, |number| number.0))),
    // Tables that are no part of a version are deleted at once, whatever their numbers.
    ("rocksdb.min-obsolete-sst-number-to-keep", Number(|_| u64::MAX)),
    ("rocksdb.num-running-compaction-sorted-runs", Number(|s| s.compacted_runs())),
    ("rocksdb.obsolete-sst-files-size", Number(|s| s.obsolete_bytes())),
    ("rocksdb.total-sst-files-size", Number(|s| s.table_bytes())),
    ("rocksdb.live-sst-files-size", Number(|s| s.table_bytes())),
    ("rocksdb.base-level", Number(|s| LevelTargets::of(&s.view.version, &s.family.options()).base_level as u64)),
    ("rocksdb.estimate-pending-compaction-bytes", Number(|s| pending_bytes(&s.view.version, &s.family.options()))),
    ("rocksdb.actual-delayed-write-rate", Number(|s| s.core.stall.delayed_bytes_per_second().unwrap_or(0))),
    ("rocksdb.is-write-stopped", Number(|s| u64::from(s.core.stall.is_stopped()))),
    ("rocksdb.block-cache-capacity", Number(|s| s.core.block_cache.capacity() as u64)),
    ("rocksdb.block-cache-usage", Number(|s| s.core.block_cache.usage() as u64)),
    ("rocksdb.block-cache-pinned-usage", Number(|s| s.core.block_cache.pinned_usage() as u64)),
    ("spillway.version", Text(|_| env!("CARGO_PKG_VERSION").to_owned())),
    ("spillway.excised-bytes", Number(|s| s.excised_bytes())),
    ("spillway.log-bytes", Number(|s| s.core.logs.total().0)),
    ("spillway.secondary-sequence-number", Number(|s| s.lag().map_or(0, |lag| lag.visible.0))),
    ("spillway.secondary-bytes-behind", Number(|s| s.lag().map_or(0, |lag| lag.bytes))),
    ("spillway.value-logs", Number(|s| s.core.context.logs.of_tables().0)),
    ("spillway.value-log-bytes", Number(|s| s.core.context.logs.of_tables().1)),
    ("spillway.live-value-log-bytes", Number(|s| s.core.context.logs.of_tables().2)),
    ("spillway.memtable", Text(|s| s.view.mutable.memtable().name().to_owned())),
    ("spillway.memtables-restored", Number(|s| s.core.restored_memtables as u64)),
    ("spillway.memtable-bytes-charged", Number(|s| s.core.context.memtables.memory.charged_bytes() as u64)),
    ("spillway.pins", Text(text::pins)),
    ("spillway.stalls", Text(text::stalls)),
    ("spillway.recovery-doubts", Text(text::recovery_doubts)),
    ("spillway.flushes-rewritten", Number(|s| s.core.context.flushes.report().rewritten)),
    ("spillway.flushes-converted", Number(|s| s.core.context.flushes.report().converted)),
    ("spillway.flushes-linked", Number(|s| s.core.context.flushes.report().linked)),
    ("spillway.flushes-fallen-back", Number(|s| s.core.context.flushes.report().fallen_back)),
    ("spillway.last-flush-fall-back", Text(|s| s.core.context.flushes.report().last_fall_back.unwrap_or_default())),
    ("spillway.ingests-queued", Number(|s| s.queued_ingests().count() as u64)),
    ("spillway.oldest-queued-ingest-seconds", Number(|s| s.view.oldest_ingest_s(s.core.context.vfs.unix_time_us()))),
    ("spillway.ingested-tables-placed-at-level", Level(|s, level| s.family.work().done().ingested(level).to_string())),
    ("spillway.ingested-tables-queued", Number(|s| s.view.queued_tables().count() as u64)),
    ("spillway.ingest-writer-waits", Number(|s| s.engine.committer.ingest_waits.report().waits)),
    ("spillway.ingest-writer-wait-nanos", Number(|s| s.engine.committer.ingest_waits.report().total.as_nanos() as u64)),
    (
        "spillway.ingest-commit-lock-nanos",
        Number(|s| s.engine.committer.ingest_waits.report().lock_held.as_nanos() as u64),
    ),
    ("spillway.ingest-commit-lock-waits", Number(|s| s.engine.committer.ingest_waits.report().lock_waits)),
    (
        "spillway.ingest-longest-writer-wait-nanos",
        Number(|s| s.engine.committer.ingest_waits.report().longest.as_nanos() as u64),
    ),
];

/// The names of all properties. Append a level's number to names ending in `-level`.
pub fn property_names() -> impl Iterator<Item = &'static str> {
    PROPERTIES.iter().map(|(name, _)| *name)
}

pub(super) fn text(engine: &Engine, family: &Family, name: &str) -> Option<String> {
    let source = Reported { engine, core: &engine.core, family, view: family.view_full() };
    PROPERTIES.iter().find_map(|(known, reader)| {
        let rest = name.strip_prefix(known)?;
        match reader {
            Number(read) if rest.is_empty() => Some(read(&source).to_string()),
            Text(read) if rest.is_empty() => Some(read(&source)),
            Level(read) => {
                let levels = source.view.version.num_levels();
                rest.parse().ok().filter(|level| *level < levels).map(|level| read(&source, level))
            }
            Number(_) | Text(_) => None,
        }
    })
}

pub(super) fn number(engine: &Engine, family: &Family, name: &str) -> Option<u64> {
    PROPERTIES.iter().find_map(|(known, reader)| match reader {
        Number(read) if *known == name => {
            Some(read(&Reported { engine, core: &engine.core, family, view: family.view_full() }))
        }
        _ => None,
    })
}

impl Reported<'_> {
    /// `None` if the database is no secondary.
    fn lag(&self) -> Option<Lag> {
        self.engine.follower.get()?.lag().ok()
    }

    fn state<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        read(&self.core.state.lock())
    }

    fn family_state<R>(&self, read: impl FnOnce(&FamilyState) -> R) -> Option<R> {
        self.state(|state| state.families.get(&self.family.id()).map(read))
    }

    /// A sum over the sealed memtables.
    fn queued(&self, read: impl Fn(&dyn memtable::Memtable) -> u64) -> u64 {
        self.view.queue.iter().filter_map(|entry| entry.as_memtable()).map(|memtable| read(&**memtable)).sum()
    }

    /// Queued ingests, without a level yet.
    fn queued_ingests(&self) -> impl Iterator<Item = &QueuedIngest> {
        self.view.queue.iter().filter_map(|entry| entry.as_ingest())
    }

    /// Files of a level with a compaction reading them.
    pub fn busy_files(&self, level: usize) -> usize {
        let files = self.view.version.level(level);
        let busy = |family: &FamilyState| files.iter().filter(|file| family.compactions.is_busy(file.number())).count();
        self.family_state(busy).unwrap_or(0)
    }

    /// Sorted runs that compactions of the family read: each table of level 0, and each level below with a table in use.
    fn compacted_runs(&self) -> u64 {
        let below = (1..self.view.version.num_levels()).filter(|level| self.busy_files(*level) > 0).count();
        (self.busy_files(0) + below) as u64
    }

    /// Bytes of tables that wait for their deletion.
    fn obsolete_bytes(&self) -> u64 {
        let context = &self.core.context;
        let paths = self
            .core
            .purge
            .tables()
            .into_iter()
            .filter_map(|(path_id, number)| table_path(&context.dir, path_id, number).ok());
        paths.filter_map(|path| context.vfs.metadata(&path).ok()).map(|file| file.len).sum()
    }

    fn table_bytes(&self) -> u64 {
        self.view.tables().map(|file| file.meta.file_bytes).sum()
    }

    /// Bytes of files outside every table.
    fn excised_bytes(&self) -> u64 {
        self.view.version.shared_files().values().map(|file| file.excised_bytes()).sum()
    }

    fn memtable_bytes(&self) -> u64 {
        self.view.flushables().map(|entry| entry.memory_bytes() as u64).sum()
    }

    fn compaction_is_due(&self) -> bool {
        let options = self.family.options();
        let is_due = |family: &FamilyState| {
            let targets = LevelTargets::of(&family.version, &options);
            scores(&family.version, &options, &targets, &family.compactions).iter().any(|(_, score)| *score >= 1.0)
        };
        !options.disable_auto_compactions && self.family_state(is_due).unwrap_or(false)
    }

    /// Each deletion is taken to hide one entry, as in RocksDB. Unreadable tables count nothing.
    /// Entries, less two for each deletion: it and the key that it deletes, which is elsewhere perhaps.
    fn keys(&self) -> u64 {
        let of_memtable = |memtable: &dyn memtable::Memtable| (memtable.entries(), memtable.counts().deletions);
        let of_table = |table: &dyn table::Table| {
            let properties = table.properties();
            Ok((properties.entries, properties.deletions))
        };
        let mutable = of_memtable(&**self.view.mutable.memtable());
        let queued = (self.queued(|memtable| memtable.entries()), self.queued(|memtable| memtable.counts().deletions));
        let tables = self.view.tables().filter_map(|file| file.with(of_table).ok());
        let all = [mutable, queued].into_iter().chain(tables);
        let (entries, deletions) = all.fold((0u64, 0u64), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        entries.saturating_sub(2 * deletions)
    }

    fn open_table_bytes(&self) -> u64 {
        let open = self.view.tables().filter(|file| file.is_open());
        open.filter_map(|file| file.with(|table| Ok(table.memory_bytes() as u64)).ok()).sum()
    }

    /// Bytes of keys and values for each byte of file; -1 for an empty level.
    fn compression_ratio(&self, level: usize) -> f64 {
        let raw = |table: &dyn table::Table| {
            let properties = table.properties();
            Ok(properties.raw_key_bytes + properties.raw_value_bytes)
        };
        let raw: u64 = self.view.version.level(level).iter().filter_map(|file| file.with(raw).ok()).sum();
        match self.view.version.level_bytes(level) {
            0 => -1.0,
            bytes => raw as f64 / bytes as f64,
        }
    }
}
