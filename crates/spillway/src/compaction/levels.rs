//! Target sizes of levels, compaction scores, and bytes pending compaction.
//!
//! Fixed sizes: level 1 has `max_bytes_for_level_base`, each deeper level `max_bytes_for_level_multiplier` times as
//! much. Dynamic sizes: the last level takes the size of the largest level, and each level above is smaller by the
//! multiplier. Level 0 compacts into the *base level*, the first level of at most `max_bytes_for_level_base`; levels
//! between are empty. The arithmetic is RocksDB's, so a database behaves alike under either engine.
//!
//! Universal compaction knows no targets: its one score counts sorted runs. That of FIFO compaction counts bytes.

use base::options::{CompactionStyle, FamilyOptions};

use crate::core::plan::FamilyCompactions;
use crate::version::version::Version;

/// Separates the scores of levels over their target from all other scores.
const OVER_TARGET_FACTOR: f64 = 10.0;

/// Target sizes of a version's levels.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelTargets {
    /// Output level for compactions of level 0.
    pub base_level: usize,
    /// In bytes, by level; `u64::MAX` if unlimited, as for level 0.
    max_bytes: Vec<u64>,
}

impl LevelTargets {
    pub fn of(version: &Version, options: &FamilyOptions) -> LevelTargets {
        match options.compaction_style {
            CompactionStyle::Level if options.level_compaction_dynamic_level_bytes => dynamic(version, options),
            CompactionStyle::Level => fixed(version, options),
            _ => unlimited(version, options),
        }
    }

    /// Target size of the level, in bytes.
    pub fn max_bytes(&self, level: usize) -> u64 {
        self.max_bytes.get(level).copied().unwrap_or(u64::MAX)
    }

    /// Target size of the level's files, in bytes.
    pub fn file_bytes(&self, level: usize, options: &FamilyOptions) -> u64 {
        let steps = level.saturating_sub(self.base_level) as u32;
        let factor = u64::from(options.target_file_size_multiplier).saturating_pow(steps);
        options.target_file_size_base.saturating_mul(factor)
    }

    /// Index of the level in per-level option lists, counted from the base level.
    pub fn listed_level(&self, level: usize) -> usize {
        if level == 0 { 0 } else { (level + 1).saturating_sub(self.base_level) }
    }
}

/// Number of levels used by compactions, from level 0 on: all but the level reserved for ingests from behind. FIFO
/// compaction writes to level 0 only.
pub fn compacted_levels(version: &Version, options: &FamilyOptions) -> usize {
    compacted_of(version.num_levels(), options)
}

/// [`compacted_levels`] of a version with `num_levels`.
pub fn compacted_of(num_levels: usize, options: &FamilyOptions) -> usize {
    if options.compaction_style == CompactionStyle::Fifo {
        return 1;
    }
    num_levels - usize::from(options.cf_allow_ingest_behind)
}

fn times(bytes: u64, factor: f64) -> u64 {
    // Casts saturate at `u64::MAX`.
    (bytes as f64 * factor) as u64
}

fn fixed(version: &Version, options: &FamilyOptions) -> LevelTargets {
    let base = *options.max_bytes_for_level_base;
    let sizes = std::iter::successors(Some(base), |&bytes| Some(times(bytes, options.max_bytes_for_level_multiplier)));
    let max_bytes = std::iter::once(u64::MAX).chain(sizes).take(compacted_levels(version, options)).collect();
    LevelTargets { base_level: 1.min(compacted_levels(version, options) - 1), max_bytes }
}

fn unlimited(version: &Version, options: &FamilyOptions) -> LevelTargets {
    let levels = compacted_levels(version, options);
    LevelTargets { base_level: 1.min(levels - 1), max_bytes: vec![u64::MAX; levels] }
}

fn dynamic(version: &Version, options: &FamilyOptions) -> LevelTargets {
    let last = compacted_levels(version, options) - 1;
    let multiplier = options.max_bytes_for_level_multiplier;
    let base_max = *options.max_bytes_for_level_base;
    let base_min = times(base_max, 1.0 / multiplier);
    let largest = (1..=last).map(|level| version.level_bytes(level)).max().unwrap_or(0);
    let Some(first_used) = (1..=last).find(|&level| !version.level(level).is_empty()) else {
        return LevelTargets { base_level: last, max_bytes: vec![u64::MAX; last + 1] };
    };
    let mut base_level = first_used;
    let mut bytes = (first_used..last).fold(largest, |bytes, _| times(bytes, 1.0 / multiplier));
    if bytes <= base_min {
        bytes = base_min + 1;
    } else {
        while base_level > 1 && bytes > base_max {
            base_level -= 1;
            bytes = times(bytes, 1.0 / multiplier);
        }
        bytes = bytes.clamp(1, base_max);
    }
    let mut max_bytes = vec![u64::MAX; base_level];
    for _ in base_level..=last {
        // No target below `base_max`: compacting a smaller level gains nothing.
        max_bytes.push(bytes.max(base_max));
        bytes = times(bytes, multiplier);
    }
    LevelTargets { base_level, max_bytes }
}

/// Compaction score of each level; 1 and above is due. Highest score first; at equal scores the upper level first. The
/// last level is never due.
pub fn scores(
    version: &Version,
    options: &FamilyOptions,
    targets: &LevelTargets,
    running: &FamilyCompactions,
) -> Vec<(usize, f64)> {
    match options.compaction_style {
        CompactionStyle::Universal => return vec![(0, runs_score(version, options, running))],
        CompactionStyle::Fifo => return vec![(0, fifo_score(version, options))],
        _ => {}
    }
    let idle_bytes = |level: usize| version.level_bytes(level).saturating_sub(running.taken(level).1);
    let mut scores = vec![(0, level0_score(version, options, targets, running))];
    // Bytes the levels above will move down. They lower a level's score: compacting out of it first would only enlarge
    // the next level.
    let mut coming = if options.level_compaction_dynamic_level_bytes { idle_bytes(0) } else { 0 };
    for level in 1..compacted_levels(version, options).saturating_sub(1) {
        let (bytes, target) = (idle_bytes(level), targets.max_bytes(level));
        let score = if !options.level_compaction_dynamic_level_bytes || bytes < target {
            bytes as f64 / target as f64
        } else {
            bytes as f64 / (target as f64 + coming as f64) * OVER_TARGET_FACTOR
        };
        coming += bytes.saturating_sub(target);
        scores.push((level, score));
    }
    scores.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scores
}

/// Bytes in parts of those to keep, or tables to merge in parts of the trigger.
fn fifo_score(version: &Version, options: &FamilyOptions) -> f64 {
    let fifo = &options.compaction_options_fifo;
    let by_bytes = version.total_bytes() as f64 / fifo.most_bytes().max(1) as f64;
    let by_count = version.level(0).len() as f64 / f64::from(options.level0_file_num_compaction_trigger.max(1));
    if fifo.allow_compaction { by_bytes.max(by_count) } else { by_bytes }
}

/// Sorted runs outside of compactions, in parts of the trigger.
fn runs_score(version: &Version, options: &FamilyOptions, running: &FamilyCompactions) -> f64 {
    let is_idle = |level: &usize| !version.level(*level).is_empty() && running.taken(*level).0 == 0;
    let deeper = (1..compacted_levels(version, options)).filter(is_idle).count();
    let in_level0 = version.level(0).len().saturating_sub(running.taken(0).0);
    (in_level0 + deeper) as f64 / f64::from(options.level0_file_num_compaction_trigger.max(1))
}

fn level0_score(
    version: &Version,
    options: &FamilyOptions,
    targets: &LevelTargets,
    running: &FamilyCompactions,
) -> f64 {
    let (taken_files, taken_bytes) = running.taken(0);
    let files = version.level(0).len().saturating_sub(taken_files);
    let bytes = version.level_bytes(0).saturating_sub(taken_bytes);
    let base_max = *options.max_bytes_for_level_base;
    let by_count = files as f64 / f64::from(options.level0_file_num_compaction_trigger.max(1));
    if version.num_levels() == 1 {
        return by_count;
    }
    if !options.level_compaction_dynamic_level_bytes {
        return by_count.max(bytes as f64 / base_max as f64);
    }
    let mut score = by_count;
    if bytes >= base_max {
        score = score.max(1.01);
    }
    let base_target = targets.max_bytes(targets.base_level);
    if bytes > base_target {
        let base_bytes = version.level_bytes(targets.base_level).max(base_target);
        score = score.max(bytes as f64 / base_bytes as f64);
    }
    if score >= 1.0 { score * OVER_TARGET_FACTOR } else { score }
}

/// Estimated bytes to rewrite until every level is within its target; write stalls depend on it. 0 if automatic
/// compactions are disabled, and if levels have no targets.
pub fn pending_bytes(version: &Version, options: &FamilyOptions) -> u64 {
    let has_targets = options.compaction_style == CompactionStyle::Level && version.num_levels() > 1;
    if options.disable_auto_compactions || !has_targets {
        return 0;
    }
    let targets = LevelTargets::of(version, options);
    let level0 = version.level_bytes(0);
    let level0_is_due = version.level(0).len() >= options.level0_file_num_compaction_trigger.max(1) as usize
        || level0 >= *options.max_bytes_for_level_base;
    let (mut pending, mut coming) = (0u64, 0u64);
    if level0_is_due {
        pending = level0 + version.level_bytes(targets.base_level);
        coming = level0;
    }
    for level in targets.base_level..compacted_levels(version, options) - 1 {
        let bytes = version.level_bytes(level) + coming;
        coming = bytes.saturating_sub(targets.max_bytes(level));
        let below = version.level_bytes(level + 1);
        if coming > 0 && below > 0 {
            // Each byte moved down rewrites about as many bytes below as the ratio of the two levels' sizes.
            pending = pending.saturating_add(times(coming, below as f64 / bytes as f64 + 1.0));
        }
    }
    pending
}
