//! Compactions for age: `ttl` and `periodic_compaction_seconds`. Ages come from the MANIFEST, the time from the caller.

use std::ops::Deref;

use base::options::{CompactionStyle, FamilyOptions};

use super::Picker;
use crate::core::plan::{Pick, Reason};
use crate::version::table_file::FileMeta;
use crate::version::version::Version;

/// Whether something of `time_s` is older than `limit_s`; never without limit or time.
fn is_older(time_s: u64, limit_s: u64, now_s: u64) -> bool {
    limit_s > 0 && time_s > 0 && time_s.saturating_add(limit_s) < now_s
}

/// The second at which [`is_older`] becomes true, if it is to come.
fn due_at(time_s: u64, limit_s: u64, now_s: u64) -> Option<u64> {
    let due_s = time_s.saturating_add(limit_s).saturating_add(1);
    (limit_s > 0 && time_s > 0 && due_s > now_s).then_some(due_s)
}

/// No later than the write of the table's newest entry; 0 if unknown. Of level 0, the next newer table was begun later.
fn newest_time_s(version: &Version, level: usize, place: usize) -> u64 {
    let files = version.level(level);
    let created_s = files.get(place).map_or(0, |file| file.meta.file_creation_time);
    let newer = (level == 0).then(|| files.get(place.checked_sub(1)?)).flatten();
    let times = [created_s, newer.map_or(0, |file| file.meta.oldest_ancestor_time)];
    times.into_iter().filter(|&time_s| time_s > 0).min().unwrap_or(0)
}

/// The next second after `now_s` at which a table becomes due for its age. `None` if one is due now: its compaction changes
/// the version, and the next second with it.
pub fn next_due_s(version: &Version, options: &FamilyOptions, now_s: u64) -> Option<u64> {
    let limits = options.age_limits();
    if options.compaction_style == CompactionStyle::Fifo {
        let oldest = version.level(0).len().checked_sub(1)?;
        return due_at(newest_time_s(version, 0, oldest), limits.ttl_s, now_s);
    }
    let levels = version.num_levels();
    let oldest_data_s = (0..levels - 1).filter_map(|level| version.oldest_data_s(level));
    let oldest_file_s = (0..levels).filter_map(|level| version.oldest_file_s(level));
    let by_ttl = oldest_data_s.filter_map(|time_s| due_at(time_s, limits.ttl_s, now_s));
    by_ttl.chain(oldest_file_s.filter_map(|time_s| due_at(time_s, limits.periodic_s, now_s))).min()
}

/// Picks by age.
pub(super) struct Ages<'p, 'a>(pub &'p Picker<'a>);

impl<'a> Deref for Ages<'_, 'a> {
    type Target = Picker<'a>;

    fn deref(&self) -> &Picker<'a> {
        self.0
    }
}

impl Ages<'_, '_> {
    /// Compacts down a table with data older than the ttl. Files of the last level stay.
    pub(super) fn past_ttl(&self) -> Option<Pick> {
        let ttl_s = self.options.age_limits().ttl_s;
        (0..self.levels().saturating_sub(1)).find_map(|level| {
            self.version.oldest_data_s(level).filter(|&oldest_s| is_older(oldest_s, ttl_s, self.now_s))?;
            let files = self.version.level(level).iter().enumerate();
            let mut old = files.filter(|(_, file)| is_older(file.meta.oldest_ancestor_time, ttl_s, self.now_s));
            old.find_map(|(place, file)| {
                if level > 0 {
                    return self.down(level, place..place + 1, Reason::Ttl, true);
                }
                let (start, end) = (file.smallest_user_key(), file.largest_user_key());
                self.down_from_level0(self.version.overlapping(0, Some(start), Some(end)), Reason::Ttl, true)
            })
        })
    }

    /// Writes a table anew where it is; of level 0, into the base level.
    pub(super) fn past_period(&self) -> Option<Pick> {
        (0..self.levels()).find_map(|level| {
            if !self.has_past_period(level) {
                return None;
            }
            let files = self.version.level(level).iter().enumerate();
            let mut old = files.filter(|(_, file)| self.is_past_period(&file.meta));
            old.find_map(|(place, file)| match level {
                0 => self.rewritten_from_level0(file, Reason::Periodic),
                level => self.in_place(level, place..place + 1, Reason::Periodic),
            })
        })
    }

    /// Whether a table of the level is to be written anew.
    pub(super) fn has_past_period(&self, level: usize) -> bool {
        let period_s = self.options.age_limits().periodic_s;
        self.version.oldest_file_s(level).is_some_and(|oldest_s| is_older(oldest_s, period_s, self.now_s))
    }

    pub(super) fn is_past_period(&self, meta: &FileMeta) -> bool {
        is_older(meta.file_creation_time, self.options.age_limits().periodic_s, self.now_s)
    }

    /// Whether everything in a table is older than the ttl.
    pub(super) fn is_expired(&self, level: usize, place: usize) -> bool {
        is_older(newest_time_s(self.version, level, place), self.options.age_limits().ttl_s, self.now_s)
    }
}
