//! Levels given by the ingest call itself, and the checks of `allow_global_seqno` and `fail_if_not_bottommost_level`.
//! Keeps F1, Q1, V2, D3.

use std::sync::Arc;

use base::extend::Event;
use base::note;
use base::{Error, Result, SeqNo};

use super::options::IngestOptions;
use super::overlap::needs_number;
use crate::core::Core;
use crate::core::family::Family;
use crate::core::install::Installer;
use crate::core::running::EntriesDone;
use crate::flush::divide::Divided;
use crate::flush::job::FlushPlan;
use crate::flush::link::Linker;
use crate::flush::placement::{Placement, Probe, TableProbe};
use crate::queue::entries::SmallIngests;
use crate::queue::flushable::Flushable;
use crate::queue::ingest::QueuedIngest;
use crate::records::ingest_record::FamilyIngest;
use crate::version::span::Span;

/// Searches for places in the last level, each lost to a compaction, before `Busy`.
const ATTEMPTS_MAX: usize = 8;

/// Queue entries held back from flushes; their committer gives the tables levels. On drop, entries still queued are
/// left to flushes. Counts as a running flush, so a close waits for it.
pub(super) struct HeldEntries<'a> {
    core: &'a Core,
    entries: Vec<(Arc<Family>, Arc<QueuedIngest>)>,
    reservations: Vec<(Arc<Family>, u64)>,
}

impl Drop for HeldEntries<'_> {
    fn drop(&mut self) {
        let mut state = self.core.state.lock();
        state.flushes_running -= 1;
        for (family, id) in &self.reservations {
            if let Some(family) = state.families.get_mut(&family.id()) {
                family.compactions.end_reservation(*id);
            }
        }
        self.entries.iter().for_each(|(_, entry)| entry.end_hold());
        drop(state);
        self.core.state_changed.notify_all();
    }
}

/// Gives tables their levels within the ingest call.
pub(crate) struct Placer {
    pub(super) core: Arc<Core>,
    pub(super) installer: Arc<Installer>,
    pub(super) linker: Arc<Linker>,
}

impl Placer {
    pub fn new(core: Arc<Core>, installer: Arc<Installer>, linker: Arc<Linker>) -> Self {
        Placer { core, installer, linker }
    }

    /// Holds entries back from flushes before they are queued, for [`give_levels`](Self::give_levels).
    ///
    /// # Errors
    /// `Closed`.
    pub(super) fn hold_entries(&self, entries: Vec<(Arc<Family>, Arc<QueuedIngest>)>) -> Result<HeldEntries<'_>> {
        let mut state = self.core.state.lock();
        self.core.check_open()?;
        state.flushes_running += 1;
        entries.iter().for_each(|(_, entry)| entry.hold());
        Ok(HeldEntries { core: &self.core, entries, reservations: Vec::new() })
    }

    /// Gives the tables of queued entries their levels. Every WAL must be synced through their numbers (F1), and
    /// nothing older in their queues may overlap them. Returns the events for the listeners; the caller sends them once
    /// writers may go on, since listeners may write.
    ///
    /// # Errors
    /// As of a flush, except `NoSpace`: the ingest stays queued, and a flush places its tables when there is room.
    pub(super) fn give_levels(&self, held: &HeldEntries<'_>) -> Result<Vec<Event>> {
        let snapshots = self.core.snapshots.capture(|| self.core.pipeline.visible());
        let mut events = Vec::new();
        let placed = held.entries.iter().try_for_each(|(family, entry)| {
            let plan = FlushPlan {
                family: family.clone(),
                version: family.view().version.clone(),
                through: entry.largest_seq().unwrap_or(SeqNo::ZERO),
                entries: vec![entry.clone()],
                small: SmallIngests::Link,
                by_hand: false,
                done: EntriesDone::default(),
            };
            match Divided::new(Arc::new(plan)).and_then(|divided| self.linker.link(&divided, &[], &snapshots)) {
                Err(_) if family.is_dropped() => Ok(()),
                linked => linked.map(|placed| events.extend(placed)),
            }
        });
        self.installer.release_logs();
        match placed {
            Ok(()) => Ok(events),
            Err(error) => {
                let error = error.context("ingested tables could not be given levels yet");
                if error.is_lack() {
                    note::warn!(%error, "a flush does it when there is room");
                    return Ok(events);
                }
                self.core.fail(&error);
                Err(error)
            }
        }
    }

    /// Checks `allow_global_seqno` and `fail_if_not_bottommost_level`, after overlapping memtables are flushed.
    /// Reserves places in the last level.
    ///
    /// # Errors
    /// `InvalidArgument`: an option forbids the ingest. `Busy`: compactions keep taking the last level.
    pub(super) fn check_levels(&self, held: &mut HeldEntries<'_>, options: &IngestOptions) -> Result<()> {
        for (family, entry) in &held.entries {
            if !options.allow_global_seqno {
                self.check_needs_no_number(family, entry.share(), options)?;
            }
            if options.fail_if_not_bottommost_level {
                let id = self.reserve_last_level(family, entry.share(), options)?;
                entry.keep_reservation(id);
                held.reservations.push((family.clone(), id));
            }
        }
        Ok(())
    }

    fn check_needs_no_number(&self, family: &Arc<Family>, share: &FamilyIngest, options: &IngestOptions) -> Result<()> {
        if share.layers.len() > 1 {
            return Err(needs_number("external files key range overlaps"));
        }
        if options.snapshot_consistency && self.core.snapshots.count() > 0 {
            return Err(needs_number("there are snapshots that must not see the ingest"));
        }
        let (order, view) = (&family.order().user, family.view_full());
        let probe = TableProbe::of_ingest(order.clone(), options.fill_cache);
        for table in share.layers.iter().flatten() {
            let span = Span::of_file(&table.meta);
            for (_, file) in view.version.all_files().filter(|(_, file)| span.overlaps_file(order, &file.meta)) {
                if probe.has_data(file, &span)? {
                    return Err(needs_number("keys of the ingest are in the database"));
                }
            }
        }
        Ok(())
    }

    /// Reserves places in the last level for all tables. Returns the reservation's id.
    fn reserve_last_level(&self, family: &Arc<Family>, share: &FamilyIngest, options: &IngestOptions) -> Result<u64> {
        let family_options = family.options();
        let probe = TableProbe::of_ingest(family.order().user.clone(), options.fill_cache);
        for _ in 0..ATTEMPTS_MAX {
            let (version, taken) = {
                let mut state = self.core.state.lock();
                let family = self.core.family_state(&mut state, family.id())?;
                (family.version.clone(), family.compactions.places_taken(&[]))
            };
            let mut placement = Placement::new(&version, &family_options, &taken);
            for table in share.layers.iter().flatten() {
                placement.place(table.meta.clone(), &probe)?;
            }
            let placed = placement.placed();
            // FIFO compaction has tables in level 0 only, so none comes to lie there.
            let last = version.num_levels() - 1 - usize::from(family_options.cf_allow_ingest_behind);
            if let Some(higher) = placed.iter().find(|placed| placed.level != last) {
                return Err(not_bottommost(family, higher.level, last));
            }
            let mut state = self.core.state.lock();
            let family = self.core.family_state(&mut state, family.id())?;
            let now = family.compactions.places_taken(&[]);
            let is_same = Arc::ptr_eq(&version, &family.version) && now == taken;
            if is_same || Placement::still_holds(&placed, &[], &family.version, &now) {
                return Ok(family.compactions.reserve(placed.into_iter().map(|p| (p.level, p.span)).collect()));
            }
        }
        let what = format!("{NOT_BOTTOMMOST} Compactions keep writing into the last level; try again");
        Err(Error::new(base::ErrorKind::Busy, what))
    }
}

/// RocksDB's words: the beginning of the errors of `fail_if_not_bottommost_level`.
pub const NOT_BOTTOMMOST: &str = "Files cannot be ingested to Lmax. Please make sure key range of Lmax and ongoing compaction's \
                                  output to Lmax does not overlap with files to ingest. Input files overlapping with each \
                                  other can cause some file to be assigned to non Lmax level.";

fn not_bottommost(family: &Family, level: usize, last: usize) -> Error {
    let name = family.name();
    Error::invalid_argument(format!(
        "{NOT_BOTTOMMOST} A table for column family \"{name}\" would get level {level}, not {last} \
         (fail_if_not_bottommost_level)"
    ))
}
