//! Universal compaction: merges sorted runs of similar age, as RocksDB does.
//!
//! A table of level 0 is a sorted run, and so is each deeper level with tables. A pick takes runs that follow each other
//! in age. Its output goes right above the next older run, or to the last level if there is none: so every run stays
//! older than the runs above it (V4).

use std::ops::Deref;
use std::sync::Arc;

use base::options::{CompactionStopStyle, CompressionKind, UniversalOptions};

use super::{Chosen, Picker, RangePick};
use crate::core::plan::{LevelInputs, Pick, Reason};
use crate::version::span::bytes_of;
use crate::version::table_file::TableFile;

/// Fewest runs of a merge, whatever `min_merge_width` says.
const RUNS_MIN: usize = 2;

/// Runs counted at most if `max_read_amp` is derived: then the bound is no bound.
const DERIVED_RUNS_MAX: usize = 1 << 10;

/// One sorted run.
struct Run<'a> {
    level: usize,
    files: &'a [Arc<TableFile>],
    bytes: u64,
    is_busy: bool,
}

/// Picks by sorted runs.
pub(super) struct Universal<'p, 'a>(pub &'p Picker<'a>);

impl<'a> Deref for Universal<'_, 'a> {
    type Target = Picker<'a>;

    fn deref(&self) -> &Picker<'a> {
        self.0
    }
}

impl<'a> Universal<'_, 'a> {
    /// The next automatic compaction, if one is due.
    pub(super) fn automatic(&self) -> Option<Pick> {
        let merge = || {
            let runs = self.runs();
            self.saving_space(&runs).or_else(|| self.by_size(&runs)).or_else(|| self.reducing_runs(&runs))
        };
        let pick = self.past_period_of_runs();
        let pick = pick.or_else(|| if self.urgency() >= 1.0 { merge() } else { None });
        pick.or_else(|| self.marked_run()).or_else(|| self.releasing_log()).or_else(|| self.mostly_excised())
    }

    /// All runs as one, into the last level.
    pub(super) fn everything(&self) -> RangePick {
        let runs = self.runs();
        if runs.is_empty() {
            return RangePick::Nothing;
        }
        RangePick::of(self.merged(&runs, 0, runs.len(), Reason::Manual), None)
    }

    /// The runs, newest first.
    fn runs(&self) -> Vec<Run<'a>> {
        let version = self.version;
        let of_level0 = version.level(0).iter().map(|file| (0, std::slice::from_ref(file)));
        let deeper = (1..self.levels()).map(|level| (level, version.level(level)));
        let run = |(level, files)| Run { level, files, bytes: bytes_of(files), is_busy: self.any_busy(files) };
        of_level0.chain(deeper.filter(|(_, files)| !files.is_empty())).map(run).collect()
    }

    /// Merges the oldest runs, down from the newest that no compaction is below of, if one of them is to be written anew.
    fn past_period_of_runs(&self) -> Option<Pick> {
        if !(0..self.levels()).any(|level| self.ages().has_past_period(level)) {
            return None;
        }
        let runs = self.runs();
        let start = runs.iter().rposition(|run| run.is_busy).map_or(0, |busy| busy + 1);
        let is_due =
            runs.get(start..)?.iter().any(|run| run.files.iter().any(|file| self.ages().is_past_period(&file.meta)));
        if is_due { self.merged(&runs, start, runs.len(), Reason::Periodic) } else { None }
    }

    /// Merges the oldest run with all newer ones, if these have many bytes beside it: they may hide as many in it.
    fn saving_space(&self, runs: &[Run<'_>]) -> Option<Pick> {
        let (oldest, newer) = runs.split_last().filter(|(oldest, _)| !oldest.is_busy)?;
        let start = newer.iter().rposition(|run| run.is_busy).map_or(0, |busy| busy + 1);
        let newer_bytes = newer.get(start..)?.iter().map(|run| run.bytes).sum::<u64>();
        let percent = u64::from(self.settings().max_size_amplification_percent);
        if start == newer.len() || newer_bytes.saturating_mul(100) < percent.saturating_mul(oldest.bytes) {
            return None;
        }
        self.merged(runs, start, runs.len(), Reason::SizeAmplification)
    }

    /// Merges the newest runs of similar size.
    fn by_size(&self, runs: &[Run<'_>]) -> Option<Pick> {
        let factor = 100 + u64::from(self.settings().size_ratio);
        self.first_fitting(runs, usize::MAX, Reason::SizeRatio, |newer_bytes, older_bytes| {
            newer_bytes.saturating_mul(factor) / 100 >= older_bytes
        })
    }

    /// Merges the newest runs whatever their size, if there are too many.
    fn reducing_runs(&self, runs: &[Run<'_>]) -> Option<Pick> {
        let idle = runs.iter().filter(|run| !run.is_busy).count();
        let above = idle.checked_sub(self.runs_max(runs)).filter(|&above| above > 0)?;
        self.first_fitting(runs, above + 1, Reason::SortedRuns, |_, _| true)
    }

    /// Merges the first idle runs, `most` at most, of which each `fits` the newer ones, by bytes.
    fn first_fitting(
        &self,
        runs: &[Run<'_>],
        most: usize,
        reason: Reason,
        fits: impl Fn(u64, u64) -> bool,
    ) -> Option<Pick> {
        let settings = self.settings();
        let (least, most) =
            (RUNS_MIN.max(settings.min_merge_width as usize), most.min(settings.max_merge_width as usize));
        let is_similar = settings.stop_style == CompactionStopStyle::SimilarSize;
        (0..runs.len()).find_map(|start| {
            let (first, older) = runs.get(start..)?.split_first().filter(|(first, _)| !first.is_busy)?;
            let mut bytes = first.bytes;
            let fitting = older.iter().take(most.saturating_sub(1)).take_while(|run| {
                let taken = !run.is_busy && fits(bytes, run.bytes) && (!is_similar || fits(run.bytes, bytes));
                bytes = if is_similar { run.bytes } else { bytes.saturating_add(run.bytes) };
                taken
            });
            let count = 1 + fitting.count();
            if count < least { None } else { self.merged(runs, start, start + count, reason) }
        })
    }

    /// Compacts down a file marked for compaction. Without deeper levels its run is merged with all older ones.
    fn marked_run(&self) -> Option<Pick> {
        if self.levels() > 1 {
            return self.marked();
        }
        let start = self.version.level(0).iter().position(|file| self.is_marked(file))?;
        let runs = self.runs();
        self.merged(&runs, start, runs.len(), Reason::Marked)
    }

    /// Sorted runs above which they are merged whatever their size.
    fn runs_max(&self, runs: &[Run<'_>]) -> usize {
        match self.settings().max_read_amp {
            0 => self.derived_runs_max(runs),
            -1 => self.trigger(),
            most => usize::try_from(most).unwrap_or(usize::MAX),
        }
    }

    /// Runs that `size_ratio` leaves as they are, from one write buffer up to the largest run.
    fn derived_runs_max(&self, runs: &[Run<'_>]) -> usize {
        let largest = runs.iter().map(|run| run.bytes).max().unwrap_or(0);
        let factor = 100 + u64::from(self.settings().size_ratio);
        let mut newer_bytes = self.options.write_buffer_size as u64;
        let mut count = 1;
        while newer_bytes < largest && count < DERIVED_RUNS_MAX {
            // The smallest run that is not merged with the newer ones.
            newer_bytes = newer_bytes.saturating_add(newer_bytes.saturating_mul(factor) / 100);
            count += 1;
        }
        count.max(self.trigger())
    }

    fn trigger(&self) -> usize {
        self.options.level0_file_num_compaction_trigger.max(1) as usize
    }

    fn settings(&self) -> &UniversalOptions {
        &self.options.compaction_options_universal
    }

    /// Merges the runs from `start` until `end`. `None` if one is busy.
    fn merged(&self, runs: &[Run<'_>], start: usize, end: usize, reason: Reason) -> Option<Pick> {
        let (taken, older) = (runs.get(start..end)?, runs.get(end..)?);
        if taken.iter().any(|run| run.is_busy) {
            return None;
        }
        let output_level = older.first().map_or(self.levels() - 1, |run| run.level.saturating_sub(1));
        let mut inputs: Vec<LevelInputs> = Vec::new();
        for run in taken {
            match inputs.last_mut().filter(|inputs| inputs.level == run.level) {
                Some(inputs) => inputs.files.extend(run.files.iter().cloned()),
                None => inputs.push(LevelInputs { level: run.level, files: run.files.to_vec() }),
            }
        }
        let may_move = !matches!(reason, Reason::Manual | Reason::Periodic) && self.settings().allow_trivial_move;
        if let Some(moved) = may_move.then(|| self.moved(&inputs, output_level, reason)).flatten() {
            return Some(moved);
        }
        let pick = self.complete(Chosen { reason, inputs, output_level, may_move: false })?;
        let compression = if self.compresses(runs, older) { pick.compression } else { CompressionKind::None };
        // Nothing keeps runs small beside the next older one, which a later compaction takes as a whole.
        Some(Pick { compression, grandparents: Vec::new(), grandparent_bytes_max: u64::MAX, ..pick })
    }

    /// The move of all tables to the output level, as they are. `None` if they cannot.
    fn moved(&self, inputs: &[LevelInputs], output_level: usize, reason: Reason) -> Option<Pick> {
        let files: Vec<Arc<TableFile>> = inputs.iter().flat_map(|inputs| inputs.files.iter().cloned()).collect();
        if output_level == 0 || !self.are_disjoint(&files) || files.iter().any(|file| !file.meta.value_logs.is_empty())
        {
            return None;
        }
        let leaving = inputs.iter().filter(|inputs| inputs.level != output_level).cloned().collect();
        let pick = self.complete(Chosen { reason, inputs: leaving, output_level, may_move: false })?;
        let alike = pick.inputs.iter().all(|inputs| self.writes_alike(inputs.level, &pick));
        alike.then_some(Pick { trivial_move: true, ..pick })
    }

    /// Whether the output is compressed: not if enough of all bytes is older.
    fn compresses(&self, runs: &[Run<'_>], older: &[Run<'_>]) -> bool {
        let Ok(percent) = u64::try_from(self.settings().compression_size_percent) else { return true };
        let bytes = |runs: &[Run<'_>]| runs.iter().map(|run| run.bytes).sum::<u64>();
        bytes(older).saturating_mul(100) < bytes(runs).saturating_mul(percent)
    }
}
