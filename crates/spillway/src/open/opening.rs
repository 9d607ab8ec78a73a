//! A database while it opens: recovery of its state, then the start of its work. Keeps D2, V3.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use arc_swap::ArcSwap;
use base::metrics::Statistics;
use base::note;
use base::options::FamilyOptions;
use base::{Error, ErrorKind, FamilyId, InternalOrder, Result, SeqNo};
use table::{BlockCache, TableReadOptions};
use vfs::Origin;
use wal::Frontiers;

use crate::background::caught::caught;
use crate::background::tasks::Tasks;
use crate::background::{RateLimiter, Throttle};
use crate::core::context::{Context, log_dir, own_dirs};
use crate::core::doubt::Doubts;
use crate::core::family::FamilySet;
use crate::core::flush_ways::FlushCounts;
use crate::core::kept_views::KeptLook;
use crate::core::lost::Lost;
use crate::core::open_options::OpenOptions;
use crate::core::running::RunningJobs;
use crate::core::{Core, CoreParts, FamilyState};
use crate::cursor::sample::Sample;
use crate::info_log::InfoLog;
use crate::observe::events::EventRing;
use crate::open::replay::wal_range::LogPlaces;
use crate::open::replay::{LogReplay, Replayed};
use crate::open::restart::Restored;
use crate::queue::flushable::MemtableMaking;
use crate::queue::images::ImageNames;
use crate::queue::memory::MemoryBudget;
use crate::version::edit::WalRange;
use crate::version::file_name::{self, FileType};
use crate::version::ids;
use crate::version::log_life::LogLives;
use crate::version::manifest::ManifestWriter;
use crate::version::numbers::FileNumbers;
use crate::version::purge::PurgeQueue;
use crate::version::recover::Recovered;
use crate::version::replay::RecoveredFamily;
use crate::version::table_file::TableFile;
use crate::version::table_store::OpenSlots;

use super::follow::Follower;
use super::{families, identity, log_survey, orphans, replay, restart};
use crate::core::new_family::{FamilyStart, Shared, build_family};
use crate::engine::Engine;

/// A database being opened.
pub(super) struct Opening<'a> {
    pub(super) options: &'a OpenOptions,
    pub(super) recovered: Recovered,
    pub(super) context: Arc<Context>,
    pub(super) shared: Shared,
    pub(super) families: BTreeMap<FamilyId, FamilyState>,
    /// State restored from images.
    pub(super) restored: Restored,
    /// Families whose images are not used, and why.
    pub(super) damaged: BTreeMap<FamilyId, Error>,
    /// The end of a repair: its MANIFEST takes over. It has judged the images, and lets them go.
    pub(super) is_repairs: bool,
}

impl<'a> Opening<'a> {
    pub(super) fn new(
        dir: &Path,
        options: &'a OpenOptions,
        mut recovered: Recovered,
        info_log: &Arc<InfoLog>,
    ) -> Result<Self> {
        let vfs = options.vfs.clone();
        let logs = log_dir(dir, &options.db);
        let new_identity = || ids::new_identity(&*vfs);
        let mut db_id = identity::find(&*vfs, dir, &logs, &recovered)?.unwrap_or_else(new_identity);
        recovered.db_id = Some(db_id.clone());
        if recovered.is_copy() && !options.read_only {
            db_id = new_identity();
            recovered.options_file = None; // the stored options have the old id
        }
        let tasks = Tasks::new(options.read_only || vfs.runs_inline());
        let numbers = Arc::new(FileNumbers::starting_at(recovered.next_file));
        let own = || options.db.statistics.then(|| Arc::new(Statistics::new()));
        let statistics = options.statistics.clone().or_else(own);
        let own_limit = || RateLimiter::with(vfs.clone(), options.db.rate_limiter_bytes_per_sec);
        let rate_limiter = options.rate_limiter.clone().unwrap_or_else(own_limit);
        let context = Arc::new(Context {
            origin: Origin::here(),
            dir: dir.to_owned(),
            own_dirs: own_dirs(&*vfs, dir, &options.db)?,
            options: options.db.clone(),
            raw_values: options.raw_values,
            options_now: ArcSwap::from_pointee(options.db.clone()),
            numbers: numbers.clone(),
            memtable_ids: AtomicU64::new(0),
            last_options_file: AtomicU64::new(recovered.options_file.unwrap_or_default().0),
            memtables: MemtableMaking {
                background: tasks.as_background(),
                memory: options.write_buffer_manager.clone().unwrap_or_else(|| {
                    MemoryBudget::of_database(options.db.db_write_buffer_size, options.db.allow_stall)
                }),
                // With atomic flushes a restart finds all families at one instant: images end each at its own.
                images: (!options.read_only && !options.db.atomic_flush).then(|| {
                    let leaves_values = options.db.memtable_as_log_index;
                    let images = ImageNames::new(vfs.clone(), dir, &db_id, numbers, leaves_values);
                    if recovered.fenced {
                        images.record_fence();
                    }
                    images
                }),
            },
            flushes: FlushCounts::default(),
            running: RunningJobs::default(),
            events: EventRing::default(),
            tasks,
            logs: LogLives::new(vfs.clone(), logs, PurgeQueue::new()),
            throttle: Throttle::new(vfs.clone(), statistics.clone(), rate_limiter),
            sample: (statistics.is_none() && !vfs.runs_inline()).then(|| Sample::new(vfs.clone())),
            statistics,
            listeners: options.db.listeners.clone(),
            info_log: info_log.clone(),
            db_id,
            session_id: ids::new_session(&*vfs),
            sessions: recovered.sessions.clone(),
            dir_sync_failed: AtomicBool::new(false),
            recovery_doubts: Doubts::default(),
            kept_look: KeptLook::default(),
            vfs,
        });
        let capacity = options.families.iter().map(|(_, f)| *f.table.block_cache).max();
        let capacity = capacity.unwrap_or_else(|| *FamilyOptions::default().table.block_cache);
        let shared = Shared {
            slots: OpenSlots::new(options.db.max_open_files),
            purge: context.logs.purge().clone(),
            block_cache: options.block_cache.clone().unwrap_or_else(|| BlockCache::new(capacity).into()),
            row_cache: options.row_cache.clone(),
        };
        Ok(Opening {
            options,
            recovered,
            context,
            shared,
            families: BTreeMap::new(),
            restored: Restored::default(),
            damaged: BTreeMap::new(),
            is_repairs: false,
        })
    }

    pub(super) fn run(mut self) -> Result<Arc<Engine>> {
        let replayed = self.recover()?;
        self.begin(replayed)
    }

    /// Recovers from tables, images and the WAL. Existing files are not changed. A damaged image may make the caller's
    /// code panic.
    pub(super) fn recover(&mut self) -> Result<Replayed> {
        let tasks = self.context.tasks.clone();
        // No thread will run the waiting tasks, and they own what keeps them alive: drop them.
        caught("recovery", || self.recover_all()).inspect_err(|_| tasks.end())
    }

    /// Begins operation on the recovered state.
    pub(super) fn begin(self, replayed: Replayed) -> Result<Arc<Engine>> {
        let tasks = self.context.tasks.clone();
        self.begin_with(replayed).inspect_err(|_| tasks.end()) // as above
    }

    /// Reads the first block of each table of a directory that is taken over, which RocksDB refuses from then on. What is damaged is
    /// told where it is read.
    ///
    /// # Errors
    /// `Unsupported`: this version does not read one.
    pub(super) fn check_tables_are_supported(&self) -> Result<()> {
        let options = TableReadOptions { fill_cache: false, ..TableReadOptions::default() };
        for file in self.families.values().flat_map(FamilyState::tables) {
            let read = file.open().and_then(|table| {
                let mut cursor = table.cursor(&options);
                cursor.seek_to_first();
                cursor.status()
            });
            match read {
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    return Err(error.advise(
                        "nothing is taken over: let RocksDB write the table anew without it, by a compaction",
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn recover_all(&mut self) -> Result<Replayed> {
        if self.recovered.fenced && !self.bears_damage() {
            let (context, noted) = (&self.context, self.recovered.log_dir.as_deref());
            LogPlaces::new(&*context.vfs, &context.dir, &context.log_dir(), noted, Some(&self.recovered))?;
        }
        self.open_families()?;
        if !self.is_repairs {
            restart::check_log_ends(&self.context, &self.recovered, self.options.read_only, self.options.bear_damage)?;
        }
        if !self.options.read_only {
            let is_used = !self.is_repairs;
            self.restored =
                restart::restore(&self.context, &mut self.families, &self.damaged, &self.recovered, is_used)?;
        }
        let replayed = self.replay_logs()?;
        // After replay: logs kept with a backup may hold families unknown to it, under ids free now.
        self.recovered.max_family = replayed.max_family;
        self.create_missing(replayed.last_seq)?;
        Ok(replayed)
    }

    /// Whether any recovered entry is still read from an image.
    pub(super) fn has_images(&self) -> bool {
        self.families.values().flat_map(|family| &family.queue).any(|entry| entry.image_number().is_some())
    }

    fn begin_with(mut self, replayed: Replayed) -> Result<Arc<Engine>> {
        let engine = Engine::new(Core::new(CoreParts {
            context: self.context.clone(),
            read_only: self.options.read_only,
            is_secondary: self.options.secondary.is_some(),
            // A record that a catch-up reads later must be above it.
            last_seq: match self.options.secondary {
                Some(_) => replayed.last_record.max(self.recovered.last_written),
                None => replayed.last_seq,
            },
            first_own_file: self.recovered.next_file,
            restored_memtables: self.restored.images,
            max_family: self.recovered.max_family,
            purge: self.shared.purge.clone(),
            slots: self.shared.slots.clone(),
            block_cache: self.shared.block_cache.clone(),
            row_cache: self.shared.row_cache.clone(),
        }));
        let core = &engine.core;
        let mut families = std::mem::take(&mut self.families);
        if self.keeps_tables_open() {
            families.values().try_for_each(|family| self.open_for_good(family.tables()))?;
        }
        core.families.store(Arc::new(FamilySet::new(families.values().map(|f| f.family.clone()).collect())));
        for family in families.values_mut() {
            family.family.set_mutable(&family.mutable);
            if self.options.secondary.is_none() {
                core.learn_from_reads_of(&family.family); // a catch-up cuts no gaps (G1)
            }
            drop(family.publish_view());
        }
        let mut state = core.state.lock();
        state.table_bytes = families.values().map(|family| family.version.total_bytes()).sum();
        state.families = families;
        drop(state);
        if self.options.secondary.is_some() {
            let follower = Follower::new(core.clone(), &self.recovered, replayed.last_record, replayed.prepares);
            let _ = engine.follower.set(Box::new(follower)); // once, here
        } else if !self.options.read_only {
            self.begin_writing(&engine, replayed)?;
        }
        core.refresh_debt(&core.state.lock());
        let weak = Arc::downgrade(core);
        self.shared.purge.listen(Box::new(move || {
            if let Some(core) = weak.upgrade() {
                core.upkeep.raise();
            }
        }));
        if !self.shared.purge.is_empty() {
            core.upkeep.raise();
        }
        Ok(engine)
    }

    fn open_families(&mut self) -> Result<()> {
        let (dir, stored) = (&self.context.dir, self.recovered.families.clone());
        families::check_named(dir, self.options, &stored)?;
        let given = families::Given::new(self.options);
        let is_there = self.recovered.manifest.0 > 0;
        for family in &stored {
            let Some(mut options) = families::options_of(&given, family)? else { continue };
            if is_there && let Err(refused) = families::check_times(dir, &*self.context.vfs, &options, &family.name) {
                if !self.is_repairs {
                    return Err(refused);
                }
                note::warn!("the repair leaves the ttl out: {refused}");
                options.value_ttl_s = 0;
            }
            let state = self.open_family(family, options)?;
            self.families.insert(family.id, state);
        }
        Ok(())
    }

    fn open_family(&self, stored: &RecoveredFamily, options: FamilyOptions) -> Result<FamilyState> {
        if !self.bears_damage() {
            stored.check_tables(&*self.context.vfs, &self.context.dir)?;
        }
        stored.check_levels(options.num_levels)?;
        let tables = self.shared.table_store(&self.context, &options);
        let order = InternalOrder::new(options.order.clone());
        let version = Arc::new(stored.version(order, options.num_levels, &tables)?);
        self.measure_value_logs(&stored.name, &version)?;
        if self.keeps_tables_open() {
            self.open_for_good(version.all_files().map(|(_, file)| file))?;
        } else if self.context.options.paranoid_checks && !self.options.read_only {
            version.open_newest()?;
        }
        let through = stored.flushed_through.unwrap_or(SeqNo::ZERO);
        let start = FamilyStart { id: stored.id, name: &stored.name, options, version, through };
        let family = build_family(&self.context, &self.shared, tables, start)?;
        let view = family.view_full();
        let mut state = FamilyState::new(family, &view, through);
        state.linked_ingests.extend(&stored.linked_ingests);
        Ok(state)
    }

    /// True for a reader without a limit on open files: a writer may delete tables at any time.
    pub(super) fn keeps_tables_open(&self) -> bool {
        self.options.read_only && self.context.options.max_open_files < 0
    }

    pub(super) fn bears_damage(&self) -> bool {
        self.options.read_only && self.options.bear_damage
    }

    /// Opens every table: another process may delete its file at any time. Damage shows when the damaged part is read.
    fn open_for_good<'f>(&self, mut tables: impl Iterator<Item = &'f Arc<TableFile>>) -> Result<()> {
        tables.try_for_each(|file| match file.open() {
            Err(error) if error.is_not_found() && self.bears_damage() => Ok(()),
            Err(error) if error.kind() != ErrorKind::Corruption => Err(error),
            _ => Ok(()),
        })
    }

    fn create_missing(&mut self, last_seq: SeqNo) -> Result<()> {
        for (name, options) in families::missing(self.options, &self.recovered.families) {
            self.recovered.max_family += 1;
            let made = RecoveredFamily {
                id: FamilyId(self.recovered.max_family),
                name,
                comparator: options.order.name().to_owned(),
                flushed_through: Some(last_seq),
                ..RecoveredFamily::default()
            };
            let state = self.open_family(&made, options)?;
            self.families.insert(made.id, state);
        }
        Ok(())
    }

    fn replay_logs(&mut self) -> Result<Replayed> {
        let may_flush = !self.options.read_only;
        LogReplay::new(&self.context, may_flush, &mut self.families, &self.recovered, &self.restored).run()
    }

    /// Doubts the keys of writes that only unused images have: the way back to an older state lets them go.
    fn doubt_left_images(&self) -> Result<()> {
        let (context, recovered) = (&self.context, &self.recovered);
        if self.restored.left.is_empty() {
            return Ok(());
        }
        let (vfs, log_dir) = (&*context.vfs, context.log_dir());
        let logged = log_survey::logged(vfs, &log_dir, recovered.id(), recovered)?;
        let left = self.restored.left.iter().copied();
        let doubts = restart::unlogged(vfs, &context.dir, left, recovered, &logged, &self.options.orders())?;
        doubts.into_iter().for_each(|doubt| context.recovery_doubts.add(doubt));
        Ok(())
    }

    /// Logs of ours in a directory without a fence, left by a takeover that was cut off: the fence must not make them history,
    /// even if a crash keeps them from being deleted.
    fn left_logs(&self) -> Result<Option<WalRange>> {
        let (vfs, log_dir) = (&*self.context.vfs, self.context.log_dir());
        let own = self.recovered.id();
        let mut left = file_name::numbers_in(vfs, &log_dir, FileType::Log)?;
        left.retain(|number| {
            let path = log_dir.join(file_name::format(FileType::Log, *number));
            *number < self.recovered.next_file && !replay::wal_range::is_of_another(vfs, &path, own)
        });
        Ok(left.last().copied().map(WalRange::none_through))
    }

    /// Writes the MANIFEST with the ends of the old logs, durable before any sequence number is allocated; then IDENTITY, which a copy
    /// of RocksDB's must not have before. The first logged write creates a log.
    fn begin_writing(&self, engine: &Engine, replayed: Replayed) -> Result<()> {
        let (context, vfs) = (&self.context, &self.context.vfs);
        identity::remove_other(&**vfs, &context.dir, &context.db_id)?;
        let (core, number) = (&engine.core, context.numbers.take());
        let mut noted = self.recovered.noted_logs();
        if replayed.lets_logs_go {
            noted.frontiers = Frontiers::default(); // no log of before is read again
        }
        if !self.recovered.fenced {
            noted.range = self.left_logs()?;
        }
        core.logs.record_earlier(&noted);
        for log in &replayed.logs {
            core.logs.record_recovered(log);
        }
        core.logs.record_left_unsynced(replayed.unsynced);
        replayed.prepares.hand_over(&core.logs);
        let snapshot = engine.installer.manifest_snapshot(core.logs.recovered_ends());
        let limit = context.options.max_manifest_file_size;
        let lost = Lost::new(&**vfs, &context.dir);
        let is_chosen = self.recovered.manifest_end.is_none() && self.recovered.manifest.0 > 0; // by best efforts
        if !self.is_repairs && is_chosen {
            self.doubt_left_images()?;
        }
        if !self.is_repairs && (is_chosen || !context.recovery_doubts.all().is_empty()) {
            orphans::keep(engine, &self.recovered, &lost)?;
        }
        if self.is_repairs {
            lost.record_switch()?
        } else {
            lost.forget_cut_off(self.recovered.manifest)?
        }
        let writer = ManifestWriter::create(vfs.clone(), &context.dir, number, &snapshot, limit)?;
        identity::write(&**vfs, &context.dir, &context.db_id)?;
        core.logs.record_manifest(writer.noted());
        *engine.installer.manifest.lock() = Some(writer);
        snapshot.wal_range.into_iter().for_each(|range| core.logs.record_durable(range));
        context.memtables.images.iter().for_each(|images| images.record_fence());
        self.restored.forget_others(&**vfs, &context.dir)?;
        let taken_over = (!self.recovered.fenced).then(|| self.recovered.oldest_read_rocksdb_log());
        orphans::remove(engine, self.recovered.id(), taken_over)?;
        engine.options_file.write();
        engine.installer.release_logs();
        engine.installer.record_logs()
    }
}
