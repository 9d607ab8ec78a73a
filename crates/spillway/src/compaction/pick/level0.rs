//! Level 0: files overlap, newest first.

use std::sync::Arc;

use base::options::CompactionStyle;

use super::{Chosen, Picker};
use crate::core::plan::{LevelInputs, Pick, Reason};
use crate::version::span::{Span, bytes_of, clean_cut};
use crate::version::table_file::TableFile;

/// Fewest files of a merge within level 0: fewer would cost work but spare reads little.
const INTRA_FILES_MIN: usize = 4;
/// While level 0 cannot compact down, it is merged in place from this many files above the trigger.
const INTRA_FILES_ABOVE_TRIGGER: usize = 2;
/// Level-0 files with less than 1/`SMALL_PART` of the bytes they overlap below are not worth rewriting those. RocksDB's part,
/// at its default multiplier; it counts the whole base level.
const SMALL_PART: u64 = 20;

impl Picker<'_> {
    /// Compacts level 0 where it is due: down, or within it while its files are small or the base level is busy.
    pub(super) fn due_level0(&self) -> Option<Pick> {
        match self.oldest_of_level0() {
            Some(down) => self.small_in_level0(&down).or(Some(down)),
            None => self.within_level0(),
        }
    }

    /// Compacts the oldest level-0 file, with all overlapping level-0 files, into the base level.
    fn oldest_of_level0(&self) -> Option<Pick> {
        let oldest = self.version.level(0).last()?;
        let files = self.version.overlapping(0, Some(oldest.smallest_user_key()), Some(oldest.largest_user_key()));
        self.down_from_level0(files, Reason::Level0, true)
    }

    /// Compacts level-0 files into the base level. No other level-0 file may overlap them. Only one compaction at a
    /// time takes files out of level 0.
    pub(super) fn down_from_level0(&self, files: Vec<Arc<TableFile>>, reason: Reason, may_move: bool) -> Option<Pick> {
        let output_level = self.below_level0();
        if output_level == 0 || self.running.level0_is_busy() {
            return None;
        }
        let below = self.version.level(output_level);
        let span = Span::of_files(self.order(), &files)?;
        let places = clean_cut(self.order(), below, span.places_in(self.order(), below));
        let below = below.get(places).unwrap_or(&[]);
        if self.any_busy(below) {
            return None;
        }
        let mut inputs =
            vec![LevelInputs { level: 0, files }, LevelInputs { level: output_level, files: below.to_vec() }];
        let chosen = |inputs: &[LevelInputs]| Chosen { reason, inputs: inputs.to_vec(), output_level, may_move };
        let pick = self.complete(chosen(&inputs))?;
        if !pick.trivial_move {
            return Some(pick);
        }
        if let Some(level0) = inputs.first_mut() {
            self.add_movable(&mut level0.files);
        }
        self.complete(chosen(&inputs)).filter(|pick| pick.trivial_move).or(Some(pick))
    }

    /// The level that level-0 files compact into: the base level or, without targets, the first with tables.
    fn below_level0(&self) -> usize {
        if self.options.compaction_style == CompactionStyle::Level {
            return self.targets.base_level;
        }
        self.first_used_below(0).unwrap_or(self.levels() - 1)
    }

    /// Rewrites a level-0 file with all overlapping level-0 files: into the base level, or in place if level 0 is the
    /// only level. With sorted runs, the file alone is rewritten in place.
    pub(super) fn rewritten_from_level0(&self, file: &TableFile, reason: Reason) -> Option<Pick> {
        let by_level = self.options.compaction_style == CompactionStyle::Level;
        let mut files = self.version.overlapping(0, Some(file.smallest_user_key()), Some(file.largest_user_key()));
        if by_level && self.targets.base_level > 0 {
            return self.down_from_level0(files, reason, false);
        }
        files.retain(|other| by_level || other.number() == file.number());
        if self.running.level0_is_busy() || self.any_busy(&files) {
            return None;
        }
        let inputs = vec![LevelInputs { level: 0, files }];
        self.complete(Chosen { reason, inputs, output_level: 0, may_move: false })
    }

    /// Adds every other level-0 file without overlap in level 0 and the base level, to move along.
    fn add_movable(&self, files: &mut Vec<Arc<TableFile>>) {
        let (level0, base) = (self.version.level(0), self.below_level0());
        let alone = |file: &Arc<TableFile>| {
            let span = Span::of_file(&file.meta);
            let others = level0.iter().filter(|other| other.number() != file.number());
            let below = self.version.level(base);
            span.places_in(self.order(), below).is_empty()
                && !self.running.writes_into(self.order(), base, &span)
                && !others.into_iter().any(|other| span.overlaps_file(self.order(), &other.meta))
        };
        let more = level0.iter().filter(|file| !files.iter().any(|f| f.number() == file.number()) && alone(file));
        files.extend(more.cloned().collect::<Vec<_>>());
        // In level order, newest first.
        let place = |file: &Arc<TableFile>| level0.iter().position(|other| other.number() == file.number());
        files.sort_by_key(place);
    }

    /// Merges the level-0 files of a pick in place, if going down would rewrite much for little, as with flushes for frequent
    /// checkpoints. Mostly deletions, and range tombstones, go down: what they free is below.
    fn small_in_level0(&self, down: &Pick) -> Option<Pick> {
        let [above, below] = down.inputs.as_slice() else { return None };
        let deletes = |file: &Arc<TableFile>| file.meta.deletes_ranges || file.has_mostly_deletions();
        // With values in logs, a table has fewer bytes than its merge would write.
        let may_stay = |file: &Arc<TableFile>| file.meta.value_logs.is_empty() && !deletes(file);
        let is_small = bytes_of(&above.files).saturating_mul(SMALL_PART) < bytes_of(&below.files);
        // One file alone would stay what it is, and due.
        if !is_small || above.files.len() < 2 || !above.files.iter().all(may_stay) {
            return None;
        }
        self.merged_in_level0(above.files.clone())
    }

    /// Merges the newest level-0 files into one level-0 file.
    fn within_level0(&self) -> Option<Pick> {
        let level0 = self.version.level(0);
        let trigger = self.options.level0_file_num_compaction_trigger.max(1) as usize;
        let spare = if self.targets.base_level == 0 { 0 } else { INTRA_FILES_ABOVE_TRIGGER };
        if level0.len() < trigger + spare {
            return None;
        }
        self.newest_of_level0(INTRA_FILES_MIN, u64::MAX)
    }

    /// Merges `least` or more of the newest level-0 files, with at most `gone_bytes_max` written per file removed.
    pub(super) fn newest_of_level0(&self, least: usize, gone_bytes_max: u64) -> Option<Pick> {
        let level0 = self.version.level(0);
        // Each further file must lower the bytes written per file removed.
        let mut bytes = 0u64;
        let mut per_file_gone = u64::MAX;
        let mut count = 0usize;
        for file in level0.iter().take_while(|file| !self.running.is_busy(file.number())) {
            bytes = bytes.saturating_add(file.meta.file_bytes);
            let next = bytes.checked_div(count as u64).unwrap_or(u64::MAX);
            if count > 0 && (next > per_file_gone || bytes > self.options.max_compaction_bytes()) {
                break;
            }
            per_file_gone = next;
            count += 1;
        }
        if count < least || per_file_gone > gone_bytes_max {
            return None;
        }
        self.merged_in_level0(level0.get(..count).unwrap_or(&[]).to_vec())
    }

    fn merged_in_level0(&self, files: Vec<Arc<TableFile>>) -> Option<Pick> {
        let inputs = vec![LevelInputs { level: 0, files }];
        self.complete(Chosen { reason: Reason::IntraLevel0, inputs, output_level: 0, may_move: false })
    }
}

/// A sinking file is at least this many times as large as the rewritten older files together.
const TIMES_THE_REST: u64 = 2;

/// Older files above 1/`LITTLE_PART` of `max_bytes_for_level_base` are too large to rewrite for a sinking file. A file below
/// 1/`WORTH_PART` is not worth an edit and the syncs of a small file.
const LITTLE_PART: u64 = 4;
const WORTH_PART: u64 = 32;

/// Sinking a large level-0 file that overlaps small, older level-0 files, such as a table ingested into a range under
/// writes. Compacting all of them down would rewrite the file, and most of the base level, for a few keys. Instead the
/// older files are rewritten within level 0 without the file's keys, and the file moves beneath them unchanged.
///
/// Reads stay right: the file is newer than the tables above it, but shares no key with them (V4).
impl Picker<'_> {
    /// Sinks the oldest eligible level-0 file. It moves alone if it overlaps no older file. Otherwise the inputs are it
    /// and all older files.
    pub(super) fn sinking(&self) -> Option<Pick> {
        if self.targets.base_level == 0 || self.running.level0_is_busy() {
            return None;
        }
        let level0 = self.version.level(0);
        (0..level0.len()).rev().find_map(|place| self.sunk_with_older(place))
    }

    fn sunk_with_older(&self, place: usize) -> Option<Pick> {
        let files = self.version.level(0).get(place..)?;
        let (file, older) = files.split_first()?;
        let span = Span::of_file(&file.meta);
        let is_alone = !older.iter().any(|other| span.overlaps_file(self.order(), &other.meta));
        if !self.is_worth_sinking(file, if is_alone { &[] } else { older }) {
            return None;
        }
        let output_level = self.deepest_free(&span)?;
        // All older files or none: their merged output must not end up above a file between them.
        let files = if is_alone { vec![file.clone()] } else { files.to_vec() };
        let inputs = vec![LevelInputs { level: 0, files }];
        let pick = self.complete(Chosen { reason: Reason::Sink, inputs, output_level: 0, may_move: false })?;
        let sinks = (!is_alone).then(|| file.number());
        // Not bottommost: the file lies beneath the rewritten ones.
        Some(Pick { output_level, span, trivial_move: is_alone, sinks, bottommost: false, ..pick })
    }

    /// Whether a file may and should sink if the `older` files must be rewritten for it.
    fn is_worth_sinking(&self, file: &TableFile, older: &[Arc<TableFile>]) -> bool {
        let (bytes, base_bytes) = (file.meta.file_bytes, *self.options.max_bytes_for_level_base);
        let most = (bytes / TIMES_THE_REST).min(base_bytes / LITTLE_PART);
        if bytes < base_bytes / WORTH_PART || bytes_of(older) > most || file.is_kept_above() {
            return false;
        }
        // A single sequence number means an ingested table as it was brought or, rarely, the flush of one large entry.
        let came_whole = file.meta.smallest_seq == file.meta.largest_seq;
        let is_older = |other: &Arc<TableFile>| other.meta.largest_seq < file.meta.smallest_seq;
        let has_own_values = |file: &TableFile| file.meta.value_logs.is_empty();
        came_whole && has_own_values(file) && older.iter().all(|other| is_older(other) && has_own_values(other))
    }

    /// The deepest level reachable without overlap: no level from 1 on down to it has a file or a running output in the
    /// span. `None` if that level is above the base level.
    fn deepest_free(&self, span: &Span) -> Option<usize> {
        let is_free = |&level: &usize| {
            span.places_in(self.order(), self.version.level(level)).is_empty()
                && !self.running.writes_into(self.order(), level, span)
        };
        let deepest = (1..self.levels()).take_while(is_free).last()?;
        (deepest >= self.targets.base_level).then_some(deepest)
    }
}
