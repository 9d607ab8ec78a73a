//! Takes a reading of everything: [`Observation`]. No I/O; the state lock is held once, for the figures of running
//! compactions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::metrics::{Histogram, SAMPLED_ONE_IN, Statistics, Ticker};
use base::options::row::{Change, Row};
use base::options::{DbOptions, FamilyOptions, OptionGroup};
use base::{FamilyId, FileNumber};

use crate::compaction::levels::{LevelTargets, scores};
use crate::core::family::Family;
use crate::core::{Core, FamilyState};
use crate::cursor::sample::{Place, Sample};
use crate::engine::Engine;
use crate::observe::*;
use crate::order::stall::Debt;
use crate::queue::ingest::QueuedIngest;
use crate::queue::view::ReadView;
use crate::version::work::LevelWork;

use super::spans;

/// A reading being taken.
pub(super) struct Reading<'a> {
    pub engine: &'a Engine,
    pub core: &'a Core,
    now: Duration,
    running: BTreeMap<FamilyId, Running>,
}

/// What only the state lock guards, of one family.
struct Running {
    scores: Vec<(usize, f64)>,
    busy: BTreeSet<FileNumber>,
    pending_bytes: u64,
    debt: Debt,
    has_spare: bool,
    is_flushing: bool,
}

impl Running {
    fn of(family: &FamilyState) -> Self {
        let (version, options) = (&family.version, family.family.options());
        Running {
            scores: scores(version, &options, &LevelTargets::of(version, &options), &family.compactions),
            busy: family.compactions.busy().collect(),
            pending_bytes: family.pending_compaction_bytes,
            debt: Debt::of(version, family.pending_compaction_bytes, &options),
            has_spare: family.spare.is_some(),
            is_flushing: family.flushing,
        }
    }
}

impl<'a> Reading<'a> {
    pub fn new(engine: &'a Engine) -> Self {
        let core: &Core = &engine.core;
        let state = core.state.lock();
        let running = state.families.iter().map(|(id, family)| (*id, Running::of(family))).collect();
        drop(state);
        Reading { engine, core, now: core.context.vfs.now(), running }
    }

    pub fn take(&self) -> Observation {
        let families = self.core.families.load();
        let views: Vec<_> = families.iter().map(|family| (family.clone(), family.view_full())).collect();
        let statistics = self.core.context.statistics.as_deref();
        let families: Vec<_> = views.iter().map(|(family, view)| self.family(family, view)).collect();
        Observation {
            process: self.process(),
            health: self.health(),
            writes: (!self.core.read_only).then(|| self.writes()),
            reads: statistics.map(reads),
            sample: self.core.context.sample.as_deref().map(sampled),
            jobs: self.core.context.running.observe(self.now),
            ended: self.core.context.running.ended(),
            disk: self.disk(),
            logs: self.logs(),
            ingests: self.ingests(&families),
            cache: self.cache(),
            memory: self.memory(&views),
            snapshots: self.snapshots(),
            kept: views.iter().flat_map(|(family, view)| self.kept(family, view)).collect(),
            options: self.options(&views),
            statistics: statistics.map(all_statistics),
            families,
        }
    }

    fn process(&self) -> ObservedProcess {
        let context = &self.core.context;
        ObservedProcess {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            directory: context.dir.to_string_lossy().into_owned(),
            identity: context.db_id.clone(),
            observed_by: match (self.engine.follower.get().is_some(), self.core.read_only) {
                (true, _) => ObservedBy::Secondary,
                (false, true) => ObservedBy::Reader,
                (false, false) => ObservedBy::Writer,
            },
            unix_time_us: context.vfs.unix_time_us(),
            uptime_us: micros(self.core.uptime()),
            last_number: self.core.pipeline.visible().0,
        }
    }

    fn health(&self) -> ObservedHealth {
        let (core, debt) = (self.core, self.core.stall.debt());
        let error = core.background_error();
        let gate = match core.read_only || error.is_some() || core.is_closing() {
            true => WriteGate::Refused,
            false => gate_of(debt),
        };
        ObservedHealth {
            background_errors: core.space.errors(),
            background_error: error.map(|error| error.to_string()),
            gate,
            gate_cause: (debt.level > 0.0).then(|| debt.cause.name().to_owned()),
            debt: debt.level,
            delayed_bytes_per_second: core.stall.delayed_bytes_per_second(),
            waits_for_space: core.space.any(),
            reserve_is_spent: core.reserve.is_spent(),
            recovery_doubts: core.context.recovery_doubts.all().iter().map(ToString::to_string).collect(),
        }
    }

    fn writes(&self) -> ObservedWrites {
        let [writes, keys, bytes, logged, logged_bytes] = self.engine.committer.counts.sums();
        let stall = &self.core.stall;
        let stalls = stall.counts().into_iter().map(|(cause, waits, micros)| {
            let ((_, stops), (waiting, age)) = (stall.delays_and_stops(cause), stall.under_way(cause, self.now));
            ObservedStall {
                cause: cause.name().to_owned(),
                waits,
                stops,
                micros,
                waiting,
                waiting_us: self::micros(age),
            }
        });
        let statistics = self.core.context.statistics.as_deref();
        let times = |of| statistics.map(|statistics| ObservedHistogram::from(&statistics.distribution(of)));
        ObservedWrites {
            writes,
            keys,
            bytes,
            logged,
            logged_bytes,
            syncs: self.core.logs.syncs(),
            stalls: stalls.collect(),
            latency_us: times(Histogram::DbWrite),
            sync_us: times(Histogram::WalFileSync),
            traces: self.engine.committer.counts.slow.traces(),
        }
    }

    fn family(&self, family: &Family, view: &ReadView) -> ObservedFamily {
        let (options, done) = (family.options(), family.work().done());
        let running = self.running.get(&family.id());
        let debt = running.map_or(Debt::NONE, |running| running.debt);
        let waits_for_memtables = family.has_waiting_writers();
        let gate = if waits_for_memtables { WriteGate::Stopped } else { gate_of(debt) };
        let cause = if waits_for_memtables { "memtable-limit" } else { debt.cause.name() };
        let ingests = || view.queue.iter().filter_map(|entry| entry.as_ingest());
        let tables: Vec<_> = ingests().flat_map(QueuedIngest::files).collect();
        ObservedFamily {
            id: family.id().0,
            name: family.name().to_owned(),
            memtables: self.memtables(family, view, &options),
            levels: self.levels(family, view, &options),
            tables: view.version.all_files().count() as u64,
            table_bytes: view.version.total_bytes(),
            pending_compaction_bytes: running.map_or(0, |running| running.pending_bytes),
            gate,
            gate_cause: (gate != WriteGate::Free).then(|| cause.to_owned()),
            debt: debt.level,
            queued_ingests: ingests().count() as u64,
            queued_tables: tables.len() as u64,
            queued_table_bytes: tables.iter().map(|table| table.meta.file_bytes).sum(),
            oldest_queued_ingest_s: view.oldest_ingest_s(self.core.context.vfs.unix_time_us()),
            flushes: work(&done.flushes),
            ingested_tables: done.ingested.iter().sum(),
            ingested_bytes: done.ingested_bytes,
        }
    }

    fn memtables(&self, family: &Family, view: &ReadView, options: &FamilyOptions) -> ObservedMemtables {
        let running = self.running.get(&family.id());
        let (memtable, sealed) = (view.mutable.memtable(), view.queue.iter().filter(|entry| entry.charge().is_some()));
        let (sealed, sealed_bytes) =
            sealed.fold((0, 0), |(n, bytes), entry| (n + 1, bytes + entry.memory_bytes() as u64));
        ObservedMemtables {
            kind: memtable.name().to_owned(),
            mutable_bytes: view.mutable.used_bytes() as u64,
            mutable_entries: memtable.entries(),
            mutable_deletions: memtable.counts().deletions,
            capacity_bytes: options.write_buffer_size as u64,
            sealed,
            sealed_bytes,
            number_max: options.max_write_buffer_number as u64,
            has_spare: running.is_some_and(|running| running.has_spare),
            total_bytes: family.memtable_bytes() as u64,
            is_flushing: running.is_some_and(|running| running.is_flushing),
        }
    }

    fn levels(&self, family: &Family, view: &ReadView, options: &FamilyOptions) -> Vec<ObservedLevel> {
        let (version, done) = (&view.version, family.work().done());
        let targets = LevelTargets::of(version, options);
        let (running, none) = (self.running.get(&family.id()), BTreeSet::new());
        let busy = running.map_or(&none, |running| &running.busy);
        let mut spans = spans::of(version, busy).into_iter();
        let level = |level: usize| {
            let files = version.level(level);
            let busy_files = files.iter().filter(|file| !busy.is_empty() && busy.contains(&file.number()));
            let busy_bytes: Vec<u64> = busy_files.map(|file| file.meta.file_bytes).collect();
            let scores = running.map_or(&[][..], |running| &running.scores);
            ObservedLevel {
                level: level as u32,
                tables: files.len() as u64,
                bytes: version.level_bytes(level),
                target_bytes: Some(targets.max_bytes(level)).filter(|&bytes| level > 0 && bytes < u64::MAX),
                score: scores.iter().find(|(of, _)| *of == level).map(|(_, score)| *score),
                busy_tables: busy_bytes.len() as u64,
                busy_bytes: busy_bytes.iter().sum(),
                compactions: done.compactions.get(level).map(work).unwrap_or_default(),
                spans: spans.next().unwrap_or_default(),
            }
        };
        (0..version.num_levels()).map(level).collect()
    }

    fn disk(&self) -> ObservedDisk {
        let throttle = &self.core.context.throttle;
        let [flushed_bytes, compacted_bytes] = throttle.written_bytes();
        let (files_to_release, bytes_to_release) = self.core.removals.pending();
        ObservedDisk {
            flushed_bytes,
            compacted_bytes,
            rate_limit: throttle.limit_bytes_per_second(),
            rate_wait_us: throttle.rested_us(),
            files_to_delete: self.core.purge.len() as u64,
            files_to_release: files_to_release as u64,
            bytes_to_release,
        }
    }

    fn logs(&self) -> ObservedLogs {
        let logs = &self.core.logs;
        let current = self.core.commit.lock().log.clone();
        let (value_logs, value_log_bytes, live_value_bytes) = self.core.context.logs.of_tables();
        ObservedLogs {
            live: logs.pin_all().len() as u64,
            live_bytes: logs.total().0,
            limit_bytes: self.engine.wal.log_limit_bytes(),
            oldest: logs.oldest().map(|number| number.0),
            current: current.as_ref().map(|log| log.number().0),
            current_bytes: current.as_ref().map_or(0, |log| log.file.tail()),
            current_capacity_bytes: current.as_ref().map_or(0, |log| log.file.capacity()),
            window_bytes: self.engine.wal.log_pace.last_window_bytes(),
            has_spare: logs.has_spare(),
            value_logs,
            value_log_bytes,
            live_value_bytes,
        }
    }

    fn ingests(&self, families: &[ObservedFamily]) -> ObservedIngests {
        let waits = self.engine.committer.ingest_waits.report();
        let sum = |of: fn(&ObservedFamily) -> u64| families.iter().map(of).sum();
        ObservedIngests {
            queued: sum(|family| family.queued_ingests),
            queued_tables: sum(|family| family.queued_tables),
            oldest_queued_s: families.iter().map(|family| family.oldest_queued_ingest_s).max().unwrap_or(0),
            placed_tables: sum(|family| family.ingested_tables),
            placed_bytes: sum(|family| family.ingested_bytes),
            writer_waits: waits.waits,
            writer_wait_us: micros(waits.total),
            longest_writer_wait_us: micros(waits.longest),
            lock_held_us: micros(waits.lock_held),
            lock_waits: waits.lock_waits,
        }
    }

    fn cache(&self) -> ObservedCache {
        let cache = &self.core.block_cache;
        let stats = cache.stats();
        ObservedCache {
            capacity_bytes: cache.capacity() as u64,
            usage_bytes: cache.usage() as u64,
            hits: stats.hits,
            misses: stats.misses,
            inserts: stats.inserts,
            returns: stats.returns,
            kinds: self.core.context.statistics.as_deref().map(kinds_of_blocks),
        }
    }

    fn memory(&self, views: &[(Arc<Family>, Arc<ReadView>)]) -> ObservedMemory {
        let budget = &self.core.context.memtables.memory;
        let is_limited = budget.is_limited();
        let tables = views.iter().flat_map(|(_, view)| view.tables()).filter_map(|file| file.memory_bytes_if_open());
        let (open_tables, table_readers_bytes) = tables.fold((0, 0), |(n, bytes), more| (n + 1, bytes + more as u64));
        let living: usize = views.iter().map(|(family, _)| family.memtable_bytes()).sum();
        let kept = views.iter().flat_map(|(family, view)| family.kept_views().pinned(view, self.now));
        ObservedMemory {
            budget_bytes: is_limited.then(|| budget.limit_bytes() as u64),
            charged_bytes: is_limited.then(|| budget.charged_bytes() as u64),
            memtables_bytes: living as u64,
            kept_memtables_bytes: kept.map(|kept| kept.memtable_bytes).sum(),
            block_cache_bytes: self.core.block_cache.usage() as u64,
            row_cache_bytes: self.core.row_cache.as_ref().map_or(0, |cache| cache.usage() as u64),
            table_readers_bytes,
            open_tables,
        }
    }

    fn snapshots(&self) -> ObservedSnapshots {
        let (now_s, visible) = (self.core.context.now_s(), self.core.pipeline.visible());
        let oldest = self.core.snapshots.oldest().map(|(seq, taken_s)| ObservedSnapshot {
            number: seq.0,
            age_s: now_s.saturating_sub(taken_s),
            changes_since: visible.0.saturating_sub(seq.0),
        });
        ObservedSnapshots { count: self.core.snapshots.count() as u64, oldest }
    }

    fn kept(&self, family: &Family, view: &ReadView) -> Vec<ObservedKept> {
        let kept = |pinned: crate::core::kept_views::Pinned| ObservedKept {
            family: family.name().to_owned(),
            readers: pinned.readers as u64,
            age_us: micros(pinned.age),
            memtables: pinned.memtables as u64,
            memtable_bytes: pinned.memtable_bytes,
            tables: pinned.tables as u64,
            table_bytes: pinned.table_bytes,
        };
        family.kept_views().pinned(view, self.now).into_iter().map(kept).collect()
    }

    fn options(&self, views: &[(Arc<Family>, Arc<ReadView>)]) -> Vec<ObservedOption> {
        static OF_DB: OnceLock<Vec<String>> = OnceLock::new();
        static OF_FAMILY: OnceLock<Vec<String>> = OnceLock::new();
        let of_db = OF_DB.get_or_init(|| texts(&DbOptions::default()));
        let of_family = OF_FAMILY.get_or_init(|| texts(&FamilyOptions::default()));
        let mut changed = changed_options(None, &**self.core.context.options_now.load(), of_db);
        for (family, _) in views {
            changed.extend(changed_options(Some(family.name()), &*family.options(), of_family));
        }
        changed
    }
}

fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}

fn gate_of(debt: Debt) -> WriteGate {
    match debt.level {
        1.0.. => WriteGate::Stopped,
        level if level > 0.0 => WriteGate::Delayed,
        _ => WriteGate::Free,
    }
}

fn work(work: &LevelWork) -> ObservedWork {
    ObservedWork {
        jobs: work.jobs,
        micros: work.micros,
        read_bytes: work.read_bytes(),
        read_above_bytes: work.read_above_bytes,
        written_bytes: work.written_bytes,
        moved_bytes: work.moved_bytes,
        entries_read: work.entries_read,
        entries_dropped: work.entries_dropped,
    }
}

fn reads(statistics: &Statistics) -> ObservedReads {
    let count = |ticker| statistics.count(ticker);
    let times = |histogram| ObservedHistogram::from(&statistics.distribution(histogram));
    let (gets, multi_get_keys) = (count(Ticker::NumberKeysRead), count(Ticker::NumberMultigetKeysRead));
    let [level0, level1, deeper] = [Ticker::GetHitL0, Ticker::GetHitL1, Ticker::GetHitL2AndUp].map(count);
    let (memtables, kept) = (count(Ticker::MemtableHit), count(Ticker::RowCacheHit));
    let answered = memtables + kept + level0 + level1 + deeper;
    ObservedReads {
        gets,
        multi_gets: count(Ticker::NumberMultigetCalls),
        multi_get_keys,
        bytes: count(Ticker::BytesRead) + count(Ticker::NumberMultigetBytesRead),
        get_us: times(Histogram::DbGet),
        multi_get_us: times(Histogram::DbMultiget),
        seek_us: times(Histogram::DbSeek),
        table_read_us: times(Histogram::SstRead),
        answers: ObservedAnswers {
            memtables,
            kept,
            level0,
            level1,
            deeper,
            nowhere: (gets + multi_get_keys).saturating_sub(answered),
        },
        filters: ObservedFilters {
            useful: count(Ticker::BloomFilterUseful),
            passed: count(Ticker::BloomFilterFullPositive),
            passed_rightly: count(Ticker::BloomFilterFullTruePositive),
            prefix_checked: count(Ticker::BloomFilterPrefixChecked),
            prefix_useful: count(Ticker::BloomFilterPrefixUseful),
        },
        seeks: count(Ticker::NumberDbSeek),
        steps: count(Ticker::NumberDbNext) + count(Ticker::NumberDbPrev),
        skipped: count(Ticker::NumberIterSkip),
        reseeks: count(Ticker::NumberReseeksInIteration),
    }
}

fn sampled(sample: &Sample) -> ObservedSample {
    let [write_us, get_us, seek_us] = sample.times().each_ref().map(ObservedHistogram::from);
    ObservedSample {
        one_in: u64::from(SAMPLED_ONE_IN),
        write_us,
        get_us,
        seek_us,
        answers: ObservedAnswers {
            memtables: sample.answered(Place::Queue),
            kept: sample.answered(Place::Answer),
            level0: sample.answered(Place::Level0),
            level1: sample.answered(Place::Level1),
            deeper: sample.answered(Place::Deeper),
            nowhere: sample.answered(Place::Nowhere),
        },
    }
}

fn kinds_of_blocks(statistics: &Statistics) -> Vec<ObservedBlocks> {
    use Ticker::*;
    let kinds = [
        ("data", BlockCacheDataHit, BlockCacheDataMiss, BlockCacheDataBytesInsert),
        ("index", BlockCacheIndexHit, BlockCacheIndexMiss, BlockCacheIndexBytesInsert),
        ("filter", BlockCacheFilterHit, BlockCacheFilterMiss, BlockCacheFilterBytesInsert),
    ];
    let count = |(kind, hits, misses, bytes): (&str, Ticker, Ticker, Ticker)| ObservedBlocks {
        kind: kind.to_owned(),
        hits: statistics.count(hits),
        misses: statistics.count(misses),
        inserted_bytes: statistics.count(bytes),
    };
    kinds.map(count).into()
}

fn all_statistics(statistics: &Statistics) -> ObservedStatistics {
    let tickers = Ticker::ALL.iter().map(|ticker| (ticker.name().to_owned(), statistics.count(*ticker)));
    let histograms = Histogram::ALL
        .iter()
        .map(|histogram| (histogram.name().to_owned(), ObservedHistogram::from(&statistics.distribution(*histogram))));
    ObservedStatistics {
        tickers: tickers.collect(),
        histograms: histograms.filter(|(_, values)| values.count > 0).collect(),
    }
}

fn texts(group: &dyn OptionGroup) -> Vec<String> {
    group.settings().iter().map(|(_, setting)| setting.text()).collect()
}

fn changed_options(family: Option<&str>, group: &dyn OptionGroup, defaults: &[String]) -> Vec<ObservedOption> {
    let both = group.settings().into_iter().zip(defaults);
    let changed = both.map(|((row, setting), default)| (row, setting.text(), default));
    let option = |(row, value, default): (&Row, String, &String)| ObservedOption {
        family: family.map(str::to_owned),
        name: row.name.to_owned(),
        value,
        default: default.clone(),
        is_mutable: row.change == Change::Mutable,
    };
    changed.filter(|(_, value, default)| value != *default).map(option).collect()
}

#[cfg(test)]
#[path = "observation_tests.rs"]
mod tests;
