//! A large file of level 0 over older files there that hold little, as where a table is ingested into a range that is being
//! written to: to take all of them down would rewrite the file, and most of the base level, for the sake of a few keys. So the
//! few are rewritten instead, where they are, without those that the file holds too, and the file sinks beneath them as it is.
//!
//! That keeps every read right: of any key, what is found first is newest. The file is newer than all that is then above it, but
//! shares no key with that (V4).

use std::sync::Arc;

use super::{Chosen, Picker};
use crate::compaction::plan::{LevelInputs, Pick, Reason};
use crate::version::span::{Span, bytes_of};
use crate::version::table_file::TableFile;

/// Older files are rewritten for a file at least so many times as large as they are together.
const TIMES_THE_REST: u64 = 2;

/// Of the base level: more than the first is no longer little, less than the second not worth an edit and the syncs of a
/// small file.
const LITTLE_PART: u64 = 4;
const WORTH_PART: u64 = 32;

impl Picker<'_> {
    /// The oldest file of level 0 that can and should sink, with all older ones.
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
        // All that are older, or none: what they become must not come to stand over one that was between them.
        let files = if is_alone { vec![file.clone()] } else { files.to_vec() };
        let inputs = vec![LevelInputs { level: 0, files }];
        let pick = self.complete(Chosen { reason: Reason::Sink, inputs, output_level: 0, may_move: false })?;
        let sinks = (!is_alone).then(|| file.number());
        Some(Pick { output_level, span, trivial_move: is_alone, sinks, ..pick })
    }

    /// Whether a file may and should sink where these older ones have to be rewritten for it.
    fn is_worth_sinking(&self, file: &TableFile, older: &[Arc<TableFile>]) -> bool {
        let (bytes, base_bytes) = (file.meta.file_bytes, self.options.max_bytes_for_level_base);
        let most = (bytes / TIMES_THE_REST).min(base_bytes / LITTLE_PART);
        if bytes < base_bytes / WORTH_PART || bytes_of(older) > most || file.is_kept_above() {
            return false;
        }
        // What one number was given to came as a whole, in a format of its own, but for the rare memtable of one large entry.
        let came_whole = file.meta.smallest_seq == file.meta.largest_seq;
        let is_newer = |other: &Arc<TableFile>| other.meta.largest_seq < file.meta.smallest_seq;
        let has_own_values = |file: &TableFile| file.meta.value_logs.is_empty();
        came_whole && has_own_values(file) && older.iter().all(|other| is_newer(other) && has_own_values(other))
    }

    /// The deepest level such that no file of it, nor of one above it but for level 0, overlaps the span, and none will that is
    /// being written.
    fn deepest_free(&self, span: &Span) -> Option<usize> {
        let is_free = |&level: &usize| {
            span.places_in(self.order(), self.version.level(level)).is_empty()
                && !self.running.writes_into(self.order(), level, span)
        };
        let deepest = (1..self.levels()).take_while(is_free).last()?;
        (deepest >= self.targets.base_level).then_some(deepest)
    }
}
