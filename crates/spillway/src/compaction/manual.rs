//! Manual compaction: a key range, level by level to the bottom.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::options::CompactionStyle;
use base::{Error, FamilyId, FileNumber, Result};

use super::levels::compacted_levels;
use super::pick::{Picker, RangePick, RangeRequest};
use crate::compaction::job::Compactor;
use crate::core::family::Family;
use crate::core::plan::{CompactionPlan, LevelInputs, Pick, Reason};
use crate::core::space::Needs;
use crate::core::{Core, FamilyState, State};
use crate::version::span::Span;

/// Treatment of files already in the range's deepest level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BottommostLevelCompaction {
    /// Keeps them. Virtual files are rewritten under every setting.
    Skip,
    /// Rewrites them if the family has a compaction filter.
    #[default]
    IfHaveCompactionFilter,
    /// Rewrites them.
    Force,
    /// Rewrites them, except files written by this call.
    ForceOptimized,
}

/// Options of a manual compaction, with RocksDB's names and defaults.
#[derive(Clone, Debug, Default)]
pub struct CompactRangeOptions {
    /// Waits for running compactions and keeps automatic ones from starting, in the whole database.
    pub exclusive_manual_compaction: bool,
    /// Moves the deepest level's files to `target_level` afterwards.
    pub change_level: bool,
    /// `None`: the uppermost level with room for them.
    pub target_level: Option<usize>,
    /// What is done with tables already in the deepest level.
    pub bottommost_level_compaction: BottommostLevelCompaction,
    /// 0 takes the database's option.
    pub max_subcompactions: usize,
    /// Ends the call once true.
    pub canceled: Option<Arc<AtomicBool>>,
}

impl CompactRangeOptions {
    /// # Errors
    /// `Incomplete`: the call was ended by its caller.
    fn check_wanted(&self) -> Result<()> {
        match &self.canceled {
            Some(canceled) if canceled.load(Ordering::Acquire) => Err(Error::incomplete("Manual compaction paused")),
            _ => Ok(()),
        }
    }

    fn forces(&self) -> bool {
        matches!(
            self.bottommost_level_compaction,
            BottommostLevelCompaction::Force | BottommostLevelCompaction::ForceOptimized
        )
    }
}

/// No file has a smaller number.
const NO_NUMBER: FileNumber = FileNumber(0);

/// A call in progress.
pub(super) struct Call<'a> {
    pub compactor: &'a Compactor,
    pub core: &'a Core,
    pub family: &'a Arc<Family>,
    pub start: Option<&'a [u8]>,
    pub end: Option<&'a [u8]>,
    pub options: &'a CompactRangeOptions,
}

/// Holds off automatic compactions of some families until dropped.
struct Hold<'a> {
    core: &'a Core,
    families: Vec<FamilyId>,
}

impl<'a> Hold<'a> {
    fn new(core: &'a Core, wanted: impl Fn(&FamilyState) -> bool) -> Self {
        let mut state = core.state.lock();
        let mut families = Vec::new();
        for (id, family) in state.families.iter_mut().filter(|(_, family)| wanted(family)) {
            family.compactions.hold();
            families.push(*id);
        }
        Hold { core, families }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut state = self.core.state.lock();
        for id in &self.families {
            if let Some(family) = state.families.get_mut(id) {
                family.compactions.release();
            }
        }
        drop(state);
        self.core.state_changed.notify_all();
    }
}

impl Compactor {
    /// Suggests the tables of a range for automatic compaction, one level down.
    pub(crate) fn suggest_compactions(&self, family: &Family, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        let mut state = self.core.state.lock();
        let FamilyState { version, compactions, .. } = self.core.family_state(&mut state, family.id())?;
        let deepest = (0..version.num_levels()).rev().find(|&level| !version.level(level).is_empty()).unwrap_or(0);
        let files = (0..deepest).flat_map(|level| version.overlapping(level, start, end));
        compactions.suggest(files.map(|file| file.number()), |file| version.file(file).is_some());
        drop(state);
        self.core.state_changed.notify_all();
        self.core.drive_if_inline();
        Ok(())
    }

    /// Suggests the tables that became hot by reads for automatic compaction, one level down.
    pub(crate) fn suggest_hot_tables(&self) {
        if !self.core.has_hot_tables.swap(false, Ordering::AcqRel) {
            return;
        }
        for family in self.core.families.load().iter() {
            let hot = family.tables().hot_reads().take();
            if hot.is_empty() {
                continue;
            }
            let mut state = self.core.state.lock();
            let Ok(FamilyState { version, compactions, .. }) = self.core.family_state(&mut state, family.id()) else {
                continue; // dropped meanwhile
            };
            compactions.suggest(hot, |file| version.file(file).is_some());
            drop(state);
            self.core.state_changed.notify_all();
        }
    }

    /// Compacts a range of a family. The caller flushes first.
    pub(crate) fn compact_range(
        &self,
        family: &Arc<Family>,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        let _awaited = self.core.context.throttle.await_compactions();
        let _alone = options.exclusive_manual_compaction.then(|| Hold::new(&self.core, |_| true));
        if options.exclusive_manual_compaction {
            self.core.wait_until(|state| Ok(state.compactions_running == 0))?;
        }
        let call = Call { compactor: self, core: &self.core, family, start, end, options };
        let deepest = match family.options().compaction_style {
            CompactionStyle::Universal => call.compact_everything()?,
            CompactionStyle::Fifo => call.compact_as_due()?,
            _ => call.compact_levels()?,
        };
        if options.change_level { call.change_level(deepest) } else { Ok(()) }
    }
}

impl Call<'_> {
    /// Compacts level by level; returns the level holding the whole range afterwards.
    fn compact_levels(&self) -> Result<usize> {
        // Level 0 must not compact automatically between finding `deepest` and compacting it here: its files could go
        // below `deepest`.
        let id = self.family.id();
        let hold = Hold::new(self.core, |family| family.family.id() == id);
        self.core.wait_until(|state| Ok(state.families.get(&id).is_none_or(|f| !f.compactions.level0_is_busy())))?;
        let family_options = self.family.options();
        let first_new = self.core.context.numbers.peek();
        let has_filter = family_options.has_compaction_filter();
        let may_move = !self.options.forces() && !has_filter;
        let version = self.core.family_state(&mut self.core.state.lock(), id)?.version.clone();
        let mut levels = (0..compacted_levels(&version, &family_options)).rev();
        let deepest = levels.find(|&level| version.overlaps(level, self.start, self.end));
        if family_options.cf_allow_ingest_behind {
            self.rewrite(family_options.num_levels - 1, NO_NUMBER)?; // virtual tables ingested from behind
        }
        let Some(deepest) = deepest else { return Ok(0) };
        let base = self.take_down(0, may_move)?;
        drop(hold);
        for level in 1..deepest {
            self.take_down(level, may_move)?;
        }
        let bottom = deepest.max(base);
        let before = match self.options.bottommost_level_compaction {
            _ if deepest == 0 && base > 0 => NO_NUMBER, // level 0 had everything; just written or moved
            BottommostLevelCompaction::Skip => NO_NUMBER,
            BottommostLevelCompaction::IfHaveCompactionFilter if !has_filter => NO_NUMBER,
            BottommostLevelCompaction::ForceOptimized => first_new,
            _ => self.core.context.numbers.peek(),
        };
        self.rewrite(bottom, before)?;
        Ok(bottom)
    }

    /// Merges all runs into the last level, whatever the range: they are of one age only together. Returns the level.
    fn compact_everything(&self) -> Result<usize> {
        let id = self.family.id();
        let _hold = Hold::new(self.core, |family| family.family.id() == id);
        while let Some((plan, _)) = self.next_step(&|picker| Ok(picker.everything()))? {
            let level = plan.pick.output_level;
            if self.run(plan)?.is_some() {
                return Ok(level);
            }
        }
        Ok(0)
    }

    /// Does what is due anyway, at most one step of it, as RocksDB does with FIFO compaction.
    fn compact_as_due(&self) -> Result<usize> {
        if let Some((plan, _)) = self.next_step(&|picker| Ok(picker.due()))? {
            self.run(plan)?;
        }
        Ok(0)
    }

    /// Compacts a level's files of the range into the next level; returns the last level written.
    fn take_down(&self, level: usize, may_move: bool) -> Result<usize> {
        let mut resume_at: Option<Vec<u8>> = None;
        let mut written = level;
        loop {
            let start = resume_at.as_deref().or(self.start);
            let request = RangeRequest { level, start, end: self.end, in_place_before: None, may_move };
            let Some((plan, next)) = self.next_step(&|picker| Ok(picker.range(&request)))? else { return Ok(written) };
            let output_level = plan.pick.output_level;
            if self.run(plan)?.is_none() {
                continue; // retry the step
            }
            written = output_level;
            match next {
                Some(next) => resume_at = Some(next),
                None => return Ok(written),
            }
        }
    }

    /// Rewrites a level's files of the range if their numbers are below `before`, and its virtual files.
    fn rewrite(&self, level: usize, before: FileNumber) -> Result<()> {
        let request =
            RangeRequest { level, start: self.start, end: self.end, in_place_before: Some(before), may_move: false };
        while let Some((plan, _)) = self.next_step(&|picker| Ok(picker.range(&request)))? {
            self.run(plan)?;
        }
        Ok(())
    }

    /// Registers the next compaction as running. Waits while running compactions keep its files busy.
    pub(super) fn next_step(&self, pick: &Choice<'_>) -> Result<Option<(CompactionPlan, Option<Vec<u8>>)>> {
        let mut hold = None;
        loop {
            let step = self.try_step(&mut self.core.state.lock(), pick)?;
            match step {
                Step::Done => return Ok(None),
                Step::Run(plan, resume_at) => return Ok(Some((plan, resume_at))),
                Step::Wait(ended) => {
                    // Otherwise automatic compactions could keep the files busy for ever.
                    let id = self.family.id();
                    hold.get_or_insert_with(|| Hold::new(self.core, |family| family.family.id() == id));
                    self.core.wait_until(|state| {
                        Ok(state.families.get(&id).is_none_or(|family| family.compactions.ended() != ended))
                    })?;
                }
            }
        }
    }

    fn try_step(&self, state: &mut State, pick: &Choice<'_>) -> Result<Step> {
        self.core.check_writable()?; // under the state lock; closing takes it before waiting for running jobs
        self.family.check_live()?;
        self.options.check_wanted()?;
        let family = self.core.family_state(state, self.family.id())?;
        let subcompactions_max = match self.options.max_subcompactions {
            0 => self.core.context.options_now.load().max_subcompactions,
            max => max,
        };
        let options = family.family.options();
        let now_s = self.core.context.now_s();
        let picker = Picker::new(&family.version, &options, &family.compactions, subcompactions_max).at(now_s);
        Ok(match pick(&picker)? {
            RangePick::Nothing => Step::Done,
            RangePick::Busy => Step::Wait(family.compactions.ended()),
            RangePick::Step { pick, resume_at } => {
                state.begin_compaction(self.family.id(), *pick).map_or(Step::Done, |plan| Step::Run(plan, resume_at))
            }
        })
    }

    /// The new tables. `None` if an input no longer stood, the reserve was given up for lack of space, or the call is no
    /// longer wanted; nothing changed then.
    pub(super) fn run(&self, plan: CompactionPlan) -> Result<Option<Vec<FileNumber>>> {
        let plan = CompactionPlan { canceled: self.options.canceled.clone(), ..plan };
        let installed = match self.compactor.compaction_job(plan) {
            Err(error) if self.core.gives_reserve_for(Needs::Compaction, &error) => None,
            Err(error) if !self.core.may_be_tried_again(&error) => {
                self.core.fail(&error);
                return Err(error);
            }
            done => done?,
        };
        self.core.check_writable()?;
        self.family.check_live()?;
        Ok(installed)
    }

    /// Moves all files of a level to another. The target and every level between must be empty.
    fn change_level(&self, from: usize) -> Result<()> {
        let id = self.family.id();
        let _hold = Hold::new(self.core, |family| family.family.id() == id);
        // Requires no running compaction and no reservation. A table linked meanwhile below the target would be newer
        // than the moved files above it.
        let is_alone = |family: &FamilyState| family.compactions.count() == 0 && !family.compactions.has_reservations();
        let plan = loop {
            self.core.wait_until(|state| Ok(is_alone(self.core.family_state(state, id)?)))?;
            let mut state = self.core.state.lock();
            self.core.check_writable()?; // as in `try_step`
            let family = self.core.family_state(&mut state, id)?;
            if !is_alone(family) {
                continue;
            }
            break match move_of_level(from, self.options.target_level, family)? {
                Some(pick) => state.begin_compaction(id, pick),
                None => None,
            };
        };
        plan.map_or(Ok(()), |plan| self.run(plan).map(|_| ()))
    }
}

/// Chooses the next step.
pub(super) type Choice<'a> = dyn Fn(&Picker<'_>) -> Result<RangePick> + 'a;

enum Step {
    Done,
    /// Until the count of ended compactions and reservations differs from this.
    Wait(u64),
    Run(CompactionPlan, Option<Vec<u8>>),
}

/// The trivial move of all files of a level; `None` if there are none, or they are there already.
fn move_of_level(from: usize, target: Option<usize>, family: &FamilyState) -> Result<Option<Pick>> {
    let version = &family.version;
    let options = family.family.options();
    let files = version.level(from).to_vec();
    let picker = Picker::new(version, &options, &family.compactions, 1);
    let is_empty = |level: usize| version.level(level).is_empty();
    let target = target.unwrap_or_else(|| {
        let fits = |level: &usize| is_empty(*level) && picker.targets().max_bytes(*level) >= version.level_bytes(from);
        (1..from).rev().take_while(fits).last().unwrap_or(from)
    });
    let Some(span) = Span::of_files(&version.order().user, &files).filter(|_| target != from) else { return Ok(None) };
    let mut crossed = if target < from { target..from } else { from + 1..target + 1 };
    if target == 0 || target >= compacted_levels(version, &options) || !crossed.all(is_empty) || from == 0 {
        let message = format!("compact_range: the files of level {from} cannot move to level {target}");
        return Err(Error::invalid_argument(message + ": it or a level between is not empty, or it does not exist"));
    }
    Ok(Some(Pick {
        reason: Reason::Manual,
        output_level: target,
        inputs: vec![LevelInputs { level: from, files }],
        span,
        trivial_move: true,
        sinks: None,
        drops: false,
        bottommost: false,
        grandparents: Vec::new(),
        grandparent_bytes_max: 0,
        output_file_bytes: 0,
        compression: base::options::CompressionKind::None,
        subcompactions_max: 1,
    }))
}
