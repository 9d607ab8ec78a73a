//! Picks for manual compactions, one step at a time.

use std::ops::Range;
use std::sync::Arc;

use base::FileNumber;

use super::{Chosen, Picker};
use crate::core::plan::{LevelInputs, Pick, Reason};
use crate::version::level::ends_before;
use crate::version::table_file::TableFile;
use crate::version::version::Version;

/// A range of user keys in one level, both ends inclusive; `None` is the end of the key space.
#[derive(Clone, Copy, Debug)]
pub struct RangeRequest<'a> {
    pub level: usize,
    pub start: Option<&'a [u8]>,
    pub end: Option<&'a [u8]>,
    /// If set, rewrites files in their level instead of compacting them down: virtual files, and files with smaller
    /// numbers.
    pub in_place_before: Option<FileNumber>,
    /// Whether trivial moves are allowed.
    pub may_move: bool,
}

/// The next step of a manual compaction.
pub enum RangePick {
    /// The level has nothing more in the range.
    Nothing,
    /// A running compaction uses the files: retry when it ends.
    Busy,
    /// `resume_at` is the start of the next step; `None` if this is the last.
    Step { pick: Box<Pick>, resume_at: Option<Vec<u8>> },
}

impl RangePick {
    /// A step, unless running compactions are in the way of it.
    pub(super) fn of(pick: Option<Pick>, resume_at: Option<Vec<u8>>) -> RangePick {
        pick.map_or(RangePick::Busy, |pick| RangePick::Step { pick: Box::new(pick), resume_at })
    }
}

impl Picker<'_> {
    /// What is due by itself.
    pub fn due(&self) -> RangePick {
        self.automatic().map_or(RangePick::Nothing, |pick| RangePick::of(Some(pick), None))
    }

    pub fn range(&self, request: &RangeRequest<'_>) -> RangePick {
        if let Some(before) = request.in_place_before {
            return self.range_in_place(request, before);
        }
        if request.level == 0 {
            return self.range_of_level0(request);
        }
        let files = self.version.level(request.level);
        let run = request.places(self.version);
        if run.is_empty() || request.level + 1 >= self.levels() {
            return RangePick::Nothing;
        }
        let step = self.bounded(files, run.clone(), |_| true);
        let rest = files.get(step.end..run.end).unwrap_or(&[]);
        let resume_at = rest.first().map(|file| file.smallest_user_key().to_vec());
        RangePick::of(self.down(request.level, step, Reason::Manual, request.may_move), resume_at)
    }

    fn range_of_level0(&self, request: &RangeRequest<'_>) -> RangePick {
        let files = self.version.overlapping(0, request.start, request.end);
        if files.is_empty() || self.targets.base_level == 0 {
            return RangePick::Nothing;
        }
        RangePick::of(self.down_from_level0(files, Reason::Manual, request.may_move), None)
    }

    fn range_in_place(&self, request: &RangeRequest<'_>, before: FileNumber) -> RangePick {
        let wanted = |file: &Arc<TableFile>| file.number() < before || file.meta.is_virtual();
        if request.level == 0 {
            return self.range_in_level0(request, wanted);
        }
        let files = self.version.level(request.level);
        let mut run = request.places(self.version);
        let skipped = files.get(run.clone()).unwrap_or(&[]).iter().take_while(|file| !wanted(file)).count();
        run.start += skipped;
        if run.is_empty() {
            return RangePick::Nothing;
        }
        RangePick::of(self.in_place(request.level, self.bounded(files, run, wanted), Reason::Manual), None)
    }

    /// Merges level 0's files in the range, with the files they overlap, in place if any is wanted. Used if level 0 is
    /// the only level.
    fn range_in_level0(&self, request: &RangeRequest<'_>, wanted: impl Fn(&Arc<TableFile>) -> bool) -> RangePick {
        let files = self.version.overlapping(0, request.start, request.end);
        if !files.iter().any(wanted) {
            return RangePick::Nothing;
        }
        if self.any_busy(&files) {
            return RangePick::Busy;
        }
        let inputs = vec![LevelInputs { level: 0, files }];
        RangePick::of(self.complete(Chosen { reason: Reason::Manual, inputs, output_level: 0, may_move: false }), None)
    }

    /// The run's leading wanted files, at least one, within the size limit of a compaction.
    pub(super) fn bounded(
        &self,
        files: &[Arc<TableFile>],
        run: Range<usize>,
        wanted: impl Fn(&Arc<TableFile>) -> bool,
    ) -> Range<usize> {
        let most = self.options.max_compaction_bytes();
        let mut bytes = 0u64;
        let taken = files.get(run.clone()).unwrap_or(&[]).iter().take_while(|file| {
            let first = bytes == 0;
            bytes = bytes.saturating_add(file.meta.file_bytes.max(1));
            wanted(file) && (first || bytes <= most)
        });
        run.start..run.start + taken.count()
    }
}

impl RangeRequest<'_> {
    /// Index range of a sorted level's files in the range.
    fn places(&self, version: &Version) -> Range<usize> {
        let (files, order) = (version.level(self.level), &version.order().user);
        let first = self.start.map_or(0, |start| files.partition_point(|file| ends_before(order, &file.meta, start)));
        let end = self.end.map_or(files.len(), |end| {
            files.partition_point(|file| order.compare(file.smallest_user_key(), end).is_le())
        });
        first..end.max(first)
    }
}
