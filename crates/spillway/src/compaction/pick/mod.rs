//! Picks compactions: a pure function of a version, its options and the running compactions.
//!
//! Leveled compaction as in RocksDB: the level with the highest score first, and in it the files with the least overlap
//! below, or by another `compaction_pri`. A pick is a *clean cut*: no user key has versions left behind in the same level. A pick avoids inputs and
//! outputs of running compactions, so compactions of one family can run in parallel.
//!
//! The styles other than by level have a file each; marked, excised and log-keeping files are theirs too.

mod aged;
mod fifo;
mod level0;
mod named;
mod range;
mod sorted;
mod universal;

use std::sync::Arc;

use base::options::{CompactionStyle, CompressionKind, FamilyOptions};
use base::{Result, UserOrder};

use self::aged::Ages;
pub use self::aged::next_due_s;
use self::fifo::Fifo;
pub use self::named::FilesRequest;
use self::named::Named;
pub use self::range::{RangePick, RangeRequest};
use self::universal::Universal;
use super::levels::{LevelTargets, compacted_levels, scores};
use crate::core::plan::{FamilyCompactions, LevelInputs, Pick, Reason};
use crate::version::span::{Span, bytes_of};
use crate::version::table_file::TableFile;
use crate::version::version::Version;
use base::FileNumber;
use std::collections::BTreeSet;

/// Picks compactions of one version of a family.
pub struct Picker<'a> {
    version: &'a Version,
    options: &'a FamilyOptions,
    running: &'a FamilyCompactions,
    targets: LevelTargets,
    subcompactions_max: usize,
    /// Seconds since the epoch; 0: no table is old.
    now_s: u64,
    /// Levels with their scores, most urgent first.
    scores: Vec<(usize, f64)>,
}

/// Chosen inputs, not yet completed to a [`Pick`].
struct Chosen {
    reason: Reason,
    inputs: Vec<LevelInputs>,
    output_level: usize,
    /// Whether a trivial move is allowed.
    may_move: bool,
}

impl<'a> Picker<'a> {
    pub fn new(
        version: &'a Version,
        options: &'a FamilyOptions,
        running: &'a FamilyCompactions,
        subcompactions_max: usize,
    ) -> Self {
        let targets = LevelTargets::of(version, options);
        let scores = scores(version, options, &targets, running);
        Picker { version, options, running, targets, subcompactions_max, now_s: 0, scores }
    }

    /// With the time, in seconds since the epoch, for compactions by age.
    #[must_use]
    pub fn at(self, now_s: u64) -> Self {
        Picker { now_s, ..self }
    }

    pub fn targets(&self) -> &LevelTargets {
        &self.targets
    }

    /// The score of the most urgent level; 1 and above is due.
    pub fn urgency(&self) -> f64 {
        self.scores.first().map_or(0.0, |&(_, score)| score)
    }

    /// The next automatic compaction, if one is due.
    pub fn automatic(&self) -> Option<Pick> {
        match self.options.compaction_style {
            CompactionStyle::Universal => Universal(self).automatic(),
            CompactionStyle::Fifo => Fifo(self).automatic(),
            _ => self.by_level(),
        }
    }

    /// All runs of a universal family as one, into the last level.
    pub fn everything(&self) -> RangePick {
        Universal(self).everything()
    }

    /// The compaction of tables that a caller names.
    ///
    /// # Errors
    /// `InvalidArgument`: a table is not there, or cannot go to that level.
    pub fn named(&self, request: &FilesRequest<'_>) -> Result<RangePick> {
        Named(self).pick(request)
    }

    fn ages(&self) -> Ages<'_, 'a> {
        Ages(self)
    }

    fn by_level(&self) -> Option<Pick> {
        if let Some(pick) = self.sinking() {
            return Some(pick);
        }
        let mut level0_waits = false;
        for &(level, score) in self.scores.iter().take_while(|(_, score)| *score >= 1.0) {
            tracing::trace!(level, score, "due for compaction");
            if level == 0 {
                if let Some(pick) = self.due_level0() {
                    return Some(pick);
                }
                level0_waits = true;
            } else if level0_waits && level == self.targets.base_level {
                // Busy base-level files block level 0. Further compactions out of the base level could starve it.
            } else if let Some(pick) = self.first_of(level) {
                return Some(pick);
            }
        }
        self.marked()
            .or_else(|| self.releasing_log())
            .or_else(|| self.mostly_excised())
            .or_else(|| self.mostly_deleted())
            .or_else(|| self.ages().past_ttl())
            .or_else(|| self.ages().past_period())
    }

    fn order(&self) -> &UserOrder {
        &self.version.order().user
    }

    fn any_busy<'f>(&self, files: impl IntoIterator<Item = &'f Arc<TableFile>>) -> bool {
        files.into_iter().any(|file| self.running.is_busy(file.number()))
    }

    /// See [`compacted_levels`].
    fn levels(&self) -> usize {
        compacted_levels(self.version, self.options)
    }

    /// The files in the span, of the first level at or below `level` with any.
    fn first_overlap(&self, span: &Span, level: usize) -> &'a [Arc<TableFile>] {
        let version = self.version;
        (level..self.levels())
            .map(|level| version.level(level))
            .find_map(|files| files.get(span.places_in(self.order(), files)).filter(|found| !found.is_empty()))
            .unwrap_or(&[])
    }

    /// Completes a pick from its inputs. `None` if a running compaction may write into the span of the output level.
    fn complete(&self, chosen: Chosen) -> Option<Pick> {
        let Chosen { reason, mut inputs, output_level, may_move } = chosen;
        inputs.retain(|inputs| !inputs.files.is_empty());
        let span = Span::of_files(self.order(), inputs.iter().flat_map(|inputs| &inputs.files))?;
        if output_level > 0 && self.running.writes_into(self.order(), output_level, &span) {
            return None;
        }
        let grandparents = if output_level == 0 { &[] } else { self.first_overlap(&span, output_level + 1) };
        let mut pick = Pick {
            reason,
            output_level,
            bottommost: self.is_bottommost(output_level, &inputs, grandparents),
            grandparents: grandparents.to_vec(),
            grandparent_bytes_max: self.options.max_compaction_bytes(),
            output_file_bytes: match output_level {
                0 => u64::MAX,
                level => self.targets.file_bytes(level, self.options),
            },
            compression: self.compression(output_level),
            subcompactions_max: self.subcompactions_max,
            trivial_move: false,
            sinks: None,
            drops: false,
            inputs,
            span,
        };
        pick.trivial_move = may_move && self.can_move(&pick);
        Some(pick)
    }

    /// Whether nothing older than the inputs is in their span, nor can come there. In level 0: the inputs are its oldest
    /// tables, and no deeper level has any.
    fn is_bottommost(&self, output_level: usize, inputs: &[LevelInputs], below: &[Arc<TableFile>]) -> bool {
        if output_level > 0 || !self.is_final(0) {
            return below.is_empty() && self.is_final(output_level);
        }
        let oldest = inputs.iter().flat_map(|inputs| &inputs.files).rev();
        let are_oldest = oldest.zip(self.version.level(0).iter().rev()).all(|(a, b)| a.number() == b.number());
        are_oldest && (1..self.version.num_levels()).all(|level| self.version.level(level).is_empty())
    }

    /// Whether no table can come to lie below the level later.
    fn is_final(&self, level: usize) -> bool {
        !self.options.cf_allow_ingest_behind || level >= self.levels()
    }

    /// The compression of tables written to a level.
    fn compression(&self, level: usize) -> CompressionKind {
        let deeper = level + 1..self.levels();
        let last = level > 0 && deeper.into_iter().all(|level| self.version.level(level).is_empty());
        self.options.compression_at(self.targets.listed_level(level), last)
    }

    /// Whether the inputs can move to the output level unchanged.
    fn can_move(&self, pick: &Pick) -> bool {
        let [inputs] = pick.inputs.as_slice() else { return false };
        if inputs.files.iter().any(|file| !file.meta.value_logs.is_empty()) {
            return false; // a moved table would keep its WALs alive
        }
        let partitioner = self.options.sst_partitioner_factory;
        let is_cut = |file: &TableFile| partitioner.cuts_between(file.smallest_user_key(), file.largest_user_key());
        if inputs.files.iter().any(|file| is_cut(file)) {
            return false;
        }
        if inputs.level == pick.output_level || !self.writes_alike(inputs.level, pick) {
            return false;
        }
        let disjoint = inputs.level > 0 || self.are_disjoint(&inputs.files);
        let most = self.options.max_compaction_bytes();
        disjoint && inputs.files.iter().all(|file| self.bytes_below(file, pick.output_level) <= most)
    }

    /// Whether the pick would write the level's compression and format.
    fn writes_alike(&self, level: usize, pick: &Pick) -> bool {
        let factory = &self.options.table_factory;
        self.compression(level) == pick.compression
            && factory.at_level(level).same_format(factory.at_level(pick.output_level))
    }

    fn are_disjoint(&self, files: &[Arc<TableFile>]) -> bool {
        files.iter().enumerate().all(|(i, file)| {
            let span = Span::of_file(&file.meta);
            !files.iter().skip(i + 1).any(|other| span.overlaps_file(self.order(), &other.meta))
        })
    }

    /// Bytes of the file and of its overlap one level below `level`: the least cost of its next compaction.
    fn bytes_below(&self, file: &TableFile, level: usize) -> u64 {
        let below = self.version.level(level + 1);
        let overlapped = Span::of_file(&file.meta).places_in(self.order(), below);
        file.meta.file_bytes + bytes_of(below.get(overlapped).unwrap_or(&[]))
    }
}

/// A file is kept while tables count at least 1/`COUNTED_PART` of its bytes.
const COUNTED_PART: u64 = 4;

/// Bytes to free, at least: small files are not worth their syncs one by one.
const EXCISED_BYTES_MIN: u64 = 1 << 20;

/// Rewrites the rest of mostly excised files, so the files can be deleted. Nothing else would: the last level is never
/// due by size, and level sizes count only the rest.
impl Picker<'_> {
    /// Rewrites the rest of mostly excised files; below level 0 in place, so no virtual table results.
    pub(super) fn mostly_excised(&self) -> Option<Pick> {
        let files = self.files_to_free();
        if files.is_empty() {
            return None;
        }
        let wanted = |file: &Arc<TableFile>| file.meta.is_virtual() && files.contains(&file.meta.physical_number());
        let mut of_level0 = self.version.level(0).iter().filter(|file| wanted(file));
        let pick = of_level0.find_map(|file| self.rewritten_from_level0(file, Reason::Excised));
        pick.or_else(|| (1..self.version.num_levels()).find_map(|level| self.left_in(level, &wanted)))
    }

    /// Rewrites the first idle run of a level's wanted files.
    fn left_in(&self, level: usize, wanted: &impl Fn(&Arc<TableFile>) -> bool) -> Option<Pick> {
        let files = self.version.level(level);
        let mut at = 0;
        while let Some(skipped) = files.get(at..)?.iter().position(wanted) {
            let run = self.bounded(files, at + skipped..files.len(), wanted);
            at = run.end;
            if let Some(pick) = self.in_place(level, run, Reason::Excised) {
                return Some(pick);
            }
        }
        None
    }

    /// Mostly excised files, if they free [`EXCISED_BYTES_MIN`] together.
    fn files_to_free(&self) -> BTreeSet<FileNumber> {
        let is_little = |counted_bytes: u64, file_bytes: u64| counted_bytes < file_bytes / COUNTED_PART;
        let mut metas = self.version.all_files().map(|(_, file)| &file.meta);
        // Most families have none: collect nothing then.
        if !metas.any(|meta| meta.is_virtual() && is_little(meta.file_bytes, meta.physical_bytes())) {
            return BTreeSet::new();
        }
        let mut shared = self.version.shared_files();
        shared.retain(|_, file| is_little(file.counted_bytes, file.file_bytes));
        let excised_bytes: u64 = shared.values().map(|file| file.excised_bytes()).sum();
        if excised_bytes < EXCISED_BYTES_MIN { BTreeSet::new() } else { shared.into_keys().collect() }
    }
}

#[cfg(test)]
mod tests;
