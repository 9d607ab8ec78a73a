//! Runs a compaction without locks. Its only effect is new files.
//!
//! A large compaction is split by user key into subcompactions of similar size, run in parallel. Their outputs are
//! ordered and disjoint, tombstones included, so together they form one sorted run.

use std::sync::Arc;

use base::metrics::{Histogram, Ticker, record, tick};
use base::{Result, UserOrder};

use super::entries::DropCounts;
use super::output::FamilyRules;
use super::subcompaction::{self, Part};
use crate::background::{Helpers, run_parts};
use crate::core::context::Context;
use crate::core::plan::Pick;
use crate::core::running::EntriesDone;
use crate::cursor::level::UserBounds;
use crate::cursor::snapshot::CapturedSnapshots;
use crate::version::span::bytes_of;
use crate::version::table_file::FileMeta;
use crate::version::version::Version;

/// Split points per input file, at most.
const ANCHORS_PER_FILE_MAX: usize = 128;

/// Inputs of a compaction run.
pub(crate) struct Work {
    pub context: Arc<Context>,
    pub family: FamilyRules,
    pub version: Arc<Version>,
    pub pick: Arc<Pick>,
    pub snapshots: CapturedSnapshots,
    /// Input entries done, by all subcompactions.
    pub done: EntriesDone,
}

/// Result of a compaction run.
pub(crate) struct Ran {
    /// Its output tables, in order.
    pub files: Vec<FileMeta>,
    /// Input entries left out of the outputs.
    pub dropped: u64,
    /// A compaction filter skipped entries (G1).
    pub skipped: bool,
}

/// Runs a compaction and returns its output tables in order, synced to disk. The caller installs them or deletes them
/// with [`Context::discard_tables`].
///
/// # Errors
/// The inputs' and the file system's; `Closed` once `stop` returns true. No files are left behind.
pub(crate) fn run(work: &Arc<Work>, stop: &dyn Fn() -> bool) -> Result<Ran> {
    let context = &work.context;
    let start = context.vfs.now();
    let ranges = split(work)?;
    record(&context.statistics, Histogram::NumSubcompactions, ranges.len() as u64);
    let parts = run_ranges(work, ranges, stop)?;
    let micros = context.vfs.now().saturating_sub(start).as_micros() as u64;
    record(&context.statistics, Histogram::CompactionTime, micros);
    record(&context.statistics, Histogram::NumFilesInSingleCompaction, work.pick.files().count() as u64);
    let bytes_read = bytes_of(work.pick.rewritten().map(|(_, file)| file));
    tick(&context.statistics, Ticker::CompactReadBytes, bytes_read);
    parts.iter().for_each(|part| count_drops(part.drops, &context.statistics));
    let dropped = parts.iter().map(|part| part.drops.sum()).sum();
    let skipped = parts.iter().any(|part| part.drops.skipped > 0);
    Ok(Ran { files: parts.into_iter().flat_map(|part| part.files).collect(), dropped, skipped })
}

fn count_drops(drops: DropCounts, statistics: &Option<Arc<base::metrics::Statistics>>) {
    tick(statistics, Ticker::CompactionKeyDropNewerEntry, drops.shadowed + drops.merged);
    tick(statistics, Ticker::CompactionKeyDropObsolete, drops.deletions + drops.single_deletions);
    tick(statistics, Ticker::CompactionKeyDropRangeDel, drops.covered);
    tick(statistics, Ticker::CompactionKeyDropUser, drops.filtered);
}

/// Ascending ranges of the subcompactions; a single range if a split is not worthwhile.
fn split(work: &Work) -> Result<Vec<UserBounds>> {
    let pick = &work.pick;
    let worth = pick.input_bytes() / pick.output_file_bytes.max(1);
    let parts = (pick.subcompactions_max as u64).min(worth).max(1);
    if parts == 1 || pick.written_level() == 0 {
        return Ok(vec![UserBounds::default()]);
    }
    let mut anchors = Vec::new();
    for (_, file) in pick.files() {
        let mut before = 0;
        for (key, bytes) in file.open()?.anchors(ANCHORS_PER_FILE_MAX)? {
            anchors.push((key, bytes.saturating_sub(before)));
            before = bytes;
        }
    }
    let cuts = even_cuts(&work.family.order.user, anchors, parts);
    let lowers = std::iter::once(None).chain(cuts.iter().cloned().map(Some));
    let uppers = cuts.iter().cloned().map(Some).chain([None]);
    Ok(lowers.zip(uppers).map(|(lower, upper)| UserBounds { lower, upper }).collect())
}

/// Ascending keys that cut the anchors' bytes into at most `parts` similar parts.
fn even_cuts(order: &UserOrder, mut anchors: Vec<(Vec<u8>, u64)>, parts: u64) -> Vec<Vec<u8>> {
    anchors.sort_by(|a, b| order.compare(&a.0, &b.0));
    let total: u64 = anchors.iter().map(|anchor| anchor.1).sum();
    let last = anchors.last().map(|anchor| anchor.0.clone());
    let mut cuts: Vec<Vec<u8>> = Vec::new();
    let mut bytes = 0;
    for (key, more) in anchors {
        bytes += more;
        let due = total.saturating_mul(cuts.len() as u64 + 1) / parts;
        let is_new = cuts.last().is_none_or(|cut| order.compare(cut, &key).is_lt());
        // Nothing lies behind the last anchor.
        let splits = last.as_ref().is_some_and(|last| order.compare(&key, last).is_lt());
        if bytes >= due && is_new && splits && (cuts.len() as u64) + 1 < parts {
            cuts.push(key);
        }
    }
    cuts
}

/// Runs all parts. On an error, outputs of finished parts are deleted.
fn run_ranges(work: &Arc<Work>, ranges: Vec<UserBounds>, stop: &dyn Fn() -> bool) -> Result<Vec<Part>> {
    let context = &work.context;
    let helpers = context.tasks.registration().map_or_else(Helpers::none, |env| env.compaction_helpers(ranges.len()));
    let of_parts = work.clone();
    let outcome = run_parts(helpers, ranges, stop, move |range, stop| subcompaction::run(&of_parts, range, stop));
    if outcome.error.is_some() {
        context.discard_tables(outcome.done.iter().flat_map(|part| &part.files));
    }
    outcome.all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(anchors: &[(&str, u64)], parts: u64) -> Vec<String> {
        let anchors = anchors.iter().map(|(key, bytes)| (key.as_bytes().to_vec(), *bytes)).collect();
        let cuts = even_cuts(&UserOrder::Bytewise, anchors, parts);
        cuts.into_iter().map(|key| String::from_utf8(key).unwrap()).collect()
    }

    #[test]
    fn cuts_ascend_and_split_evenly() {
        // Two files over the same keys, and one over the upper half.
        let anchors = [("b", 10), ("d", 10), ("f", 10), ("h", 10), ("a", 10), ("c", 10), ("e", 10), ("g", 10)];
        assert_eq!(cuts(&anchors, 2), ["d"]);
        assert_eq!(cuts(&anchors, 4), ["b", "d", "f"]);
        let uneven = [("b", 10), ("d", 10), ("f", 100), ("h", 100)];
        assert_eq!(cuts(&uneven, 2), ["f"]);
    }

    #[test]
    fn there_are_no_more_parts_than_places_to_cut() {
        assert_eq!(cuts(&[("b", 10), ("b", 10), ("c", 10)], 8), ["b"]);
        assert_eq!(cuts(&[("b", 10)], 8), Vec::<String>::new());
        assert_eq!(cuts(&[], 8), Vec::<String>::new());
    }
}
