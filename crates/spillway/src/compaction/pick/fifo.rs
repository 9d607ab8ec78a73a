//! FIFO compaction: deletes whole tables, the oldest first, by their bytes together or by their age.
//!
//! New tables stay in level 0. Deeper levels hold tables from the time before the family became FIFO: they are the
//! oldest, from the last level up.

use std::ops::Deref;
use std::sync::Arc;

use super::{Chosen, Picker};
use crate::core::plan::{LevelInputs, Pick, Reason};
use crate::version::table_file::TableFile;

/// A merge within level 0 writes at most this many percent of a write buffer for each table it removes: tables merged
/// before are too large to be merged again.
const BYTES_PER_TABLE_PERCENT: u64 = 110;

/// Picks whole tables to delete.
pub(super) struct Fifo<'p, 'a>(pub &'p Picker<'a>);

impl<'a> Deref for Fifo<'_, 'a> {
    type Target = Picker<'a>;

    fn deref(&self) -> &Picker<'a> {
        self.0
    }
}

impl Fifo<'_, '_> {
    /// The next automatic compaction, if one is due.
    pub(super) fn automatic(&self) -> Option<Pick> {
        self.expired().or_else(|| self.over_size()).or_else(|| self.merged_small())
    }

    /// Deletes the oldest tables with nothing younger than the ttl.
    fn expired(&self) -> Option<Pick> {
        let oldest_first = self.oldest_first();
        let expired =
            oldest_first.iter().take_while(|(level, place, _)| self.ages().is_expired(*level, *place)).count();
        self.dropped(oldest_first.get(..expired)?, Reason::Expired)
    }

    /// Deletes the oldest tables until the rest is within the limit.
    fn over_size(&self) -> Option<Pick> {
        let most_bytes = self.options.compaction_options_fifo.most_bytes();
        let mut bytes = self.version.total_bytes();
        if bytes <= most_bytes {
            return None;
        }
        let oldest_first = self.oldest_first();
        let gone = oldest_first.iter().take_while(|(.., file)| {
            let is_over = bytes > most_bytes;
            bytes = bytes.saturating_sub(file.meta.file_bytes);
            is_over
        });
        self.dropped(oldest_first.get(..gone.count())?, Reason::TooManyBytes)
    }

    fn merged_small(&self) -> Option<Pick> {
        if !self.options.compaction_options_fifo.allow_compaction {
            return None;
        }
        let least = self.options.level0_file_num_compaction_trigger.max(2) as usize;
        let most = (self.options.write_buffer_size as u64).saturating_mul(BYTES_PER_TABLE_PERCENT) / 100;
        self.newest_of_level0(least, most)
    }

    /// Every table with its level and its place there, the oldest first.
    fn oldest_first(&self) -> Vec<(usize, usize, &Arc<TableFile>)> {
        let of_level =
            |level: usize| self.version.level(level).iter().enumerate().map(move |(place, file)| (level, place, file));
        let deeper = (1..self.version.num_levels()).rev().flat_map(of_level);
        deeper.chain(of_level(0).rev()).collect()
    }

    /// Deletes tables. Waits for running compactions: they may be merging the oldest.
    fn dropped(&self, oldest_first: &[(usize, usize, &Arc<TableFile>)], reason: Reason) -> Option<Pick> {
        if oldest_first.is_empty() || self.running.count() > 0 {
            return None;
        }
        let inputs = (0..self.version.num_levels()).map(|level| {
            let of_level = oldest_first.iter().filter(|(of, ..)| *of == level);
            let mut files: Vec<Arc<TableFile>> = of_level.map(|(.., file)| (*file).clone()).collect();
            if level == 0 {
                files.reverse(); // in level order
            }
            LevelInputs { level, files }
        });
        let pick = self.complete(Chosen { reason, inputs: inputs.collect(), output_level: 0, may_move: false })?;
        Some(Pick { drops: true, ..pick })
    }
}
