//! Sorted levels: the file to compact down, and the files to take along.

use std::ops::Range;
use std::sync::Arc;

use base::options::{CompactionPri, CompactionStyle};

use super::{Chosen, Picker};
use crate::core::plan::{LevelInputs, Pick, Reason};
use crate::version::level::ends_before;
use crate::version::span::{Span, bytes_of, clean_cut};
use crate::version::table_file::TableFile;

/// Files of one trivial move, at most: each costs a few hundred bytes of the edit.
const MOVED_FILES_MAX: usize = 64;

/// Bytes rewritten below for each byte of a table with mostly deletions, at most. Deletions are small beside what they
/// delete.
const DELETIONS_TIMES_MAX: u64 = 16;

impl Picker<'_> {
    /// Compacts down an idle file of the level: the first by `compaction_pri`.
    pub(super) fn first_of(&self, level: usize) -> Option<Pick> {
        let places = self.by_priority(level);
        places.into_iter().find_map(|place| self.down(level, place..place + 1, Reason::LevelSize, true))
    }

    pub(super) fn is_marked(&self, file: &TableFile) -> bool {
        file.meta.marked_for_compaction || self.running.is_suggested(file.number())
    }

    /// Compacts down a file marked or suggested for compaction. Files of the deepest used level stay; with sorted runs,
    /// not if that is level 0.
    pub(super) fn marked(&self) -> Option<Pick> {
        let version = self.version;
        let deepest = (0..self.levels()).rev().find(|&level| !version.level(level).is_empty())?;
        let by_level = self.options.compaction_style == CompactionStyle::Level;
        let end = if by_level { deepest } else { deepest.max(1) };
        (0..end).find_map(|level| {
            let marked = version.level(level).iter().enumerate().filter(|(_, file)| self.is_marked(file));
            marked.into_iter().find_map(|(place, file)| {
                if level > 0 {
                    let output_level = self.below(level)?;
                    return self.down_to(level, output_level, place..place + 1, Reason::Marked, true);
                }
                let (start, end) = (file.smallest_user_key(), file.largest_user_key());
                self.down_from_level0(version.overlapping(0, Some(start), Some(end)), Reason::Marked, true)
            })
        })
    }

    /// Rewrites a level-0 table that keeps a mostly dead WAL. Only flushes, into level 0, write tables with values in
    /// WALs.
    pub(super) fn releasing_log(&self) -> Option<Pick> {
        let mut keeping = self.version.level(0).iter().filter(|file| file.keeps_dead_log());
        keeping.find_map(|file| self.rewritten_from_level0(file, Reason::ValueLog))
    }

    /// Rewrites a table with mostly deletions into the next level, if that is cheap.
    ///
    /// Bounded work: files of the deepest used level stay, and every pick brings its deletions one level down. So
    /// deletions kept for a snapshot are rewritten at most once for each level.
    pub(super) fn mostly_deleted(&self) -> Option<Pick> {
        let version = self.version;
        let deepest = (0..self.levels()).rev().find(|&level| !version.level(level).is_empty())?;
        (0..deepest.max(1)).find_map(|level| {
            let files = version.level(level).iter().enumerate();
            let mut dense = files.filter(|(_, file)| file.has_mostly_deletions());
            dense.find_map(|(place, file)| self.deletions_down(level, place, file))
        })
    }

    fn deletions_down(&self, level: usize, place: usize, file: &Arc<TableFile>) -> Option<Pick> {
        let pick = match level {
            0 if self.targets.base_level == 0 => None,
            0 => self.rewritten_from_level0(file, Reason::Deletions),
            level => self.down(level, place..place + 1, Reason::Deletions, false),
        }?;
        let below = pick.inputs.iter().filter(|inputs| inputs.level > level).map(|inputs| bytes_of(&inputs.files));
        let taken = pick.input_bytes() - below.clone().sum::<u64>();
        (below.sum::<u64>() <= taken.saturating_mul(DELETIONS_TIMES_MAX)).then_some(pick)
    }

    /// Indexes of a level's idle files, in the order to compact them.
    fn by_priority(&self, level: usize) -> Vec<usize> {
        let files = self.version.level(level);
        let sorted = |rank: &dyn Fn(&TableFile) -> (bool, u64)| {
            let idle = files.iter().enumerate().filter(|(_, file)| !self.running.is_busy(file.number()));
            let mut ranked: Vec<_> = idle.map(|(place, file)| (rank(file), place)).collect();
            ranked.sort_unstable();
            ranked.into_iter().map(|(_, place)| place).collect()
        };
        match self.options.compaction_pri {
            CompactionPri::ByCompensatedSize => {
                sorted(&|file| (!file.has_mostly_deletions(), u64::MAX - file.meta.file_bytes))
            }
            CompactionPri::OldestLargestSeqFirst => sorted(&|file| (false, file.meta.largest_seq.0)),
            CompactionPri::OldestSmallestSeqFirst => sorted(&|file| (false, file.meta.smallest_seq.0)),
            CompactionPri::RoundRobin => {
                let is_passed = |file: &TableFile| {
                    let last = self.running.last_compacted(level);
                    last.is_some_and(|last| self.order().compare(file.smallest_user_key(), last).is_le())
                };
                sorted(&|file| (is_passed(file), 0))
            }
            _ => self.by_overlap(level),
        }
    }

    /// Indexes of a level's idle files: by ascending overlapped bytes below for their size,
    /// after those with mostly deletions.
    fn by_overlap(&self, level: usize) -> Vec<usize> {
        let (files, below) = (self.version.level(level), self.version.level(level + 1));
        let mut first = 0;
        let mut ratios: Vec<(bool, u64, usize)> = Vec::with_capacity(files.len());
        for (place, file) in files.iter().enumerate() {
            // Both levels ascend: continue at the previous file's first overlap.
            let rest = below.get(first..).unwrap_or(&[]);
            let skipped = rest.iter().take_while(|f| ends_before(self.order(), &f.meta, file.smallest_user_key()));
            first += skipped.count();
            let span = Span::of_file(&file.meta);
            let rest = below.get(first..).unwrap_or(&[]).iter();
            let overlapped = bytes_of(rest.take_while(|f| span.overlaps_file(self.order(), &f.meta)));
            if !self.running.is_busy(file.number()) {
                // In 1/1024, so integers tell ratios apart.
                let ratio = overlapped.saturating_mul(1024) / file.meta.file_bytes.max(1);
                ratios.push((!file.has_mostly_deletions(), ratio, place));
            }
        }
        ratios.sort_unstable();
        ratios.into_iter().map(|(.., place)| place).collect()
    }

    /// The next level by age: the one below or, with sorted runs, the next with tables.
    fn below(&self, level: usize) -> Option<usize> {
        if self.options.compaction_style == CompactionStyle::Level {
            return Some(level + 1);
        }
        self.first_used_below(level)
    }

    /// The first level with tables below `level`.
    pub(super) fn first_used_below(&self, level: usize) -> Option<usize> {
        (level + 1..self.levels()).find(|&level| !self.version.level(level).is_empty())
    }

    /// Compacts a run of a level's files into the level below.
    pub(super) fn down(&self, level: usize, run: Range<usize>, reason: Reason, may_move: bool) -> Option<Pick> {
        self.down_to(level, level + 1, run, reason, may_move)
    }

    /// Compacts a run of a level's files into another level, with further files that must or may go along. `None` if a
    /// file is busy. No level between has files.
    fn down_to(
        &self,
        level: usize,
        output_level: usize,
        run: Range<usize>,
        reason: Reason,
        may_move: bool,
    ) -> Option<Pick> {
        let (files, below) = (self.version.level(level), self.version.level(output_level));
        let (mut taken, mut overlapped) = self.idle_cut(files, below, run)?;
        if overlapped.is_empty() {
            taken = self.with_movable(level, taken, reason);
        } else if let Some(more) = self.free_growth(files, below, &taken, &overlapped) {
            (taken, overlapped) = more;
        }
        let upper = files.get(taken).unwrap_or(&[]).to_vec();
        let lower = below.get(overlapped).unwrap_or(&[]).to_vec();
        let inputs = vec![LevelInputs { level, files: upper }, LevelInputs { level: output_level, files: lower }];
        self.complete(Chosen { reason, inputs, output_level, may_move })
    }

    /// Rewrites a run of a level's files in place. `None` if a file is busy.
    pub(super) fn in_place(&self, level: usize, run: Range<usize>, reason: Reason) -> Option<Pick> {
        let files = self.version.level(level);
        let files = files.get(clean_cut(self.order(), files, run)).unwrap_or(&[]);
        if self.any_busy(files) {
            return None;
        }
        let inputs = vec![LevelInputs { level, files: files.to_vec() }];
        self.complete(Chosen { reason, inputs, output_level: level, may_move: false })
    }

    /// Widens the run to a clean cut, and returns it with the overlapped run of the level below. `None` if a file is
    /// busy.
    fn idle_cut(
        &self,
        files: &[Arc<TableFile>],
        below: &[Arc<TableFile>],
        run: Range<usize>,
    ) -> Option<(Range<usize>, Range<usize>)> {
        let run = clean_cut(self.order(), files, run);
        let taken = files.get(run.clone())?;
        let span = Span::of_files(self.order(), taken)?;
        let overlapped = clean_cut(self.order(), below, span.places_in(self.order(), below));
        let idle = !self.any_busy(taken) && !self.any_busy(below.get(overlapped.clone())?);
        idle.then_some((run, overlapped))
    }

    /// Grows the run within the span rewritten below, if the growth adds no file of the level below and stays within
    /// the size limit of a compaction.
    fn free_growth(
        &self,
        files: &[Arc<TableFile>],
        below: &[Arc<TableFile>],
        taken: &Range<usize>,
        overlapped: &Range<usize>,
    ) -> Option<(Range<usize>, Range<usize>)> {
        let inputs = files.get(taken.clone())?.iter().chain(below.get(overlapped.clone())?);
        let hull = Span::of_files(self.order(), inputs)?;
        let grown = hull.places_in(self.order(), files);
        let (grown, then_overlapped) = self.idle_cut(files, below, grown)?;
        let bytes = bytes_of(files.get(grown.clone())?) + bytes_of(below.get(then_overlapped.clone())?);
        let is_free =
            grown.len() > taken.len() && then_overlapped == *overlapped && bytes <= self.options.max_compaction_bytes();
        is_free.then_some((grown, then_overlapped))
    }

    /// Extends a run without overlap below by the next files without overlap, while the level is over its target.
    fn with_movable(&self, level: usize, run: Range<usize>, reason: Reason) -> Range<usize> {
        let (files, below) = (self.version.level(level), self.version.level(level + 1));
        let excess = self.version.level_bytes(level).saturating_sub(self.targets.max_bytes(level));
        let mut bytes = bytes_of(files.get(run.clone()).unwrap_or(&[]));
        let mut end = run.end;
        while reason == Reason::LevelSize && end - run.start < MOVED_FILES_MAX && bytes < excess {
            let next = clean_cut(self.order(), files, end..(end + 1).min(files.len()));
            let Some((next, overlapped)) = self.idle_cut(files, below, next) else { break };
            let hull = files.get(run.start..next.end).and_then(|files| Span::of_files(self.order(), files));
            let taken = hull.is_none_or(|hull| {
                self.running.writes_into(self.order(), level + 1, &hull)
                    || !hull.places_in(self.order(), below).is_empty()
            });
            if !overlapped.is_empty() || taken {
                break;
            }
            bytes += bytes_of(files.get(next.clone()).unwrap_or(&[]));
            end = next.end;
        }
        run.start..end
    }
}
