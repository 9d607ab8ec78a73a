//! A compaction's plan as plain data, and the register of running compactions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base::options::CompressionKind;
use base::{FileNumber, UserOrder};

use crate::core::family::Family;
use crate::version::span::{Span, bytes_of};
use crate::version::table_file::TableFile;
use crate::version::version::Version;

/// Why a compaction was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Level 0 has too many files, or too many bytes.
    Level0,
    /// Level 0 cannot compact down now, and is merged in place to leave reads fewer files.
    IntraLevel0,
    /// A large level-0 file moves below small, older level-0 files.
    Sink,
    /// A level is over its target.
    LevelSize,
    /// All sorted runs but the oldest have too many bytes beside it.
    SizeAmplification,
    /// Sorted runs are of similar size.
    SizeRatio,
    /// There are too many sorted runs.
    SortedRuns,
    /// A file was marked for compaction.
    Marked,
    /// A table keeps a WAL with mostly dead values.
    ValueLog,
    /// A table's data is older than the ttl.
    Ttl,
    /// A table is older than the period of rewrites.
    Periodic,
    /// Everything in a table is older than the ttl: it is deleted.
    Expired,
    /// The tables have too many bytes: the oldest are deleted.
    TooManyBytes,
    /// An excise left little of a file.
    Excised,
    /// A table holds mostly deletions.
    Deletions,
    /// A manual compaction.
    Manual,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Reason::Level0 => "level0",
            Reason::IntraLevel0 => "intra-level0",
            Reason::Sink => "sink",
            Reason::LevelSize => "level-size",
            Reason::SizeAmplification => "size-amplification",
            Reason::SizeRatio => "size-ratio",
            Reason::SortedRuns => "sorted-runs",
            Reason::Marked => "marked",
            Reason::ValueLog => "value log",
            Reason::Ttl => "ttl",
            Reason::Periodic => "periodic",
            Reason::Expired => "expired",
            Reason::TooManyBytes => "too-many-bytes",
            Reason::Excised => "excised",
            Reason::Deletions => "deletions",
            Reason::Manual => "manual",
        }
    }
}

/// The input files of one level, in the level's order.
#[derive(Clone)]
pub struct LevelInputs {
    pub level: usize,
    pub files: Vec<Arc<TableFile>>,
}

/// One compaction of a family.
#[derive(Clone)]
pub struct Pick {
    pub reason: Reason,
    pub output_level: usize,
    /// Youngest level first; no level without files.
    pub inputs: Vec<LevelInputs>,
    /// Hull of the inputs, or of the sinking file. Tables added to the output level stay within it.
    pub span: Span,
    /// The files move to the output level unchanged.
    pub trivial_move: bool,
    /// The level-0 file that moves to the output level unchanged. The other inputs, older level-0 files, are merged
    /// into one level-0 file without its keys: see `pick::level0`.
    pub sinks: Option<FileNumber>,
    /// The inputs are deleted, and nothing is written.
    pub drops: bool,
    /// No table below the output level overlaps the span, nor does an older table beside the inputs.
    pub bottommost: bool,
    /// Overlapping files of the first deeper level with any; output files are cut to overlap few of them.
    pub grandparents: Vec<Arc<TableFile>>,
    pub grandparent_bytes_max: u64,
    /// Target size of an output file.
    pub output_file_bytes: u64,
    pub compression: CompressionKind,
    pub subcompactions_max: usize,
}

impl Pick {
    pub fn start_level(&self) -> usize {
        self.inputs.first().map_or(0, |inputs| inputs.level)
    }

    pub fn files(&self) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
        self.inputs.iter().flat_map(|inputs| inputs.files.iter().map(move |file| (inputs.level, file)))
    }

    pub fn input_bytes(&self) -> u64 {
        bytes_of(self.files().map(|(_, file)| file))
    }

    /// The sinking file.
    pub fn sinking(&self) -> Option<&Arc<TableFile>> {
        self.files().map(|(_, file)| file).find(|file| Some(file.number()) == self.sinks)
    }

    /// The inputs to rewrite, unless the pick moves or drops them: all but the sinking file.
    pub fn rewritten(&self) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
        self.files().filter(|(_, file)| Some(file.number()) != self.sinks)
    }

    /// The level of the written tables.
    pub fn written_level(&self) -> usize {
        if self.sinks.is_some() { 0 } else { self.output_level }
    }

    /// Levels and numbers of the inputs, for edits and rechecks.
    pub fn input_numbers(&self) -> Vec<(usize, FileNumber)> {
        self.files().map(|(level, file)| (level, file.number())).collect()
    }
}

/// A picked compaction, registered as running.
pub struct CompactionPlan {
    pub family: Arc<Family>,
    /// The family's version at the pick.
    pub version: Arc<Version>,
    pub pick: Arc<Pick>,
    /// Its id in [`FamilyCompactions`].
    pub id: u64,
    /// Gives the compaction up once true.
    pub canceled: Option<Arc<AtomicBool>>,
}

struct Running {
    id: u64,
    inputs: Vec<FileNumber>,
    /// Files and bytes of the inputs, by level.
    taken: Vec<(usize, usize, u64)>,
    start_level: usize,
    /// Levels closed to other jobs. A move up closes every level it crosses: a table placed there meanwhile would end
    /// up below older files.
    output_levels: RangeInclusive<usize>,
    span: Span,
}

impl Running {
    fn outputs(&self) -> impl Iterator<Item = (usize, &Span)> {
        self.output_levels.clone().map(|level| (level, &self.span))
    }
}

/// Levels and spans reserved for a job's tables.
struct Reserved {
    id: u64,
    places: Vec<(usize, Span)>,
}

/// The running compactions of one family.
#[derive(Default)]
pub struct FamilyCompactions {
    running: Vec<Running>,
    reserved: Vec<Reserved>,
    last_id: u64,
    /// Number of ended compactions and reservations.
    ended: u64,
    /// Calls holding off automatic compactions, to get at busy files or to run alone.
    holds: usize,
    /// Files suggested for compaction.
    suggested: BTreeSet<FileNumber>,
    /// Where `kRoundRobin` goes on: of each level, the last user key compacted down because the level was full.
    last_compacted: BTreeMap<usize, Vec<u8>>,
}

impl FamilyCompactions {
    /// Marks the inputs busy and the output's span taken. Returns the id for [`end`](Self::end).
    pub fn begin(&mut self, pick: &Pick) -> u64 {
        self.last_id += 1;
        pick.files().for_each(|(_, file)| self.suggested.retain(|suggested| *suggested != file.number()));
        if pick.reason == Reason::LevelSize
            && let Some(last) = pick.inputs.first().and_then(|inputs| inputs.files.last())
        {
            self.last_compacted.insert(pick.start_level(), last.largest_user_key().to_vec());
        }
        self.running.push(Running {
            id: self.last_id,
            inputs: pick.files().map(|(_, file)| file.number()).collect(),
            taken: pick.inputs.iter().map(|i| (i.level, i.files.len(), bytes_of(&i.files))).collect(),
            start_level: pick.start_level(),
            output_levels: pick.output_level..=pick.output_level.max(pick.start_level()),
            span: pick.span.clone(),
        });
        self.last_id
    }

    pub fn end(&mut self, id: u64) {
        self.running.retain(|running| running.id != id);
        self.ended += 1;
    }

    pub fn count(&self) -> usize {
        self.running.len()
    }

    /// Grows when a compaction or reservation ends: busy files may be free then.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// Whether a running compaction reads the file.
    pub fn is_busy(&self, file: FileNumber) -> bool {
        self.running.iter().any(|running| running.inputs.contains(&file))
    }

    /// The files read by running compactions.
    pub fn busy(&self) -> impl Iterator<Item = FileNumber> {
        self.running.iter().flat_map(|running| running.inputs.iter().copied())
    }

    /// Count and bytes of a level's files read by running compactions.
    pub fn taken(&self, level: usize) -> (usize, u64) {
        let of_level = self.running.iter().flat_map(|running| &running.taken).filter(|taken| taken.0 == level);
        of_level.fold((0, 0), |(files, bytes), taken| (files + taken.1, bytes + taken.2))
    }

    /// Whether a running compaction or a reservation may write into the span of the level.
    pub fn writes_into(&self, order: &UserOrder, level: usize, span: &Span) -> bool {
        self.outputs(&[]).any(|(taken, by)| taken == level && by.overlaps(order, span))
    }

    /// Levels and spans for outputs of running compactions and for reservations, except the reservations `own`.
    pub fn places_taken(&self, own: &[u64]) -> Vec<(usize, Span)> {
        self.outputs(own).map(|(level, span)| (level, span.clone())).collect()
    }

    fn outputs(&self, own: &[u64]) -> impl Iterator<Item = (usize, &Span)> {
        let running = self.running.iter().flat_map(Running::outputs);
        let others = self.reserved.iter().filter(|reserved| !own.contains(&reserved.id));
        let reserved = others.flat_map(|reserved| &reserved.places);
        running.chain(reserved.map(|(level, span)| (*level, span)))
    }

    /// Keeps compactions from writing into these places until [`end_reservation`](Self::end_reservation). Returns the
    /// id for it.
    pub fn reserve(&mut self, places: Vec<(usize, Span)>) -> u64 {
        self.last_id += 1;
        self.reserved.push(Reserved { id: self.last_id, places });
        self.last_id
    }

    /// Whether any job has reserved places for tables.
    pub fn has_reservations(&self) -> bool {
        !self.reserved.is_empty()
    }

    pub fn end_reservation(&mut self, id: u64) {
        self.reserved.retain(|reserved| reserved.id != id);
        self.ended += 1;
    }

    /// The last user key of the level's latest compaction; `None` since the open, or once the level is compacted anew.
    pub fn last_compacted(&self, level: usize) -> Option<&[u8]> {
        self.last_compacted.get(&level).map(Vec::as_slice)
    }

    /// Whether a running compaction takes files out of level 0.
    pub fn level0_is_busy(&self) -> bool {
        self.running.iter().any(|running| running.start_level == 0)
    }

    /// Keeps automatic compactions from being picked until [`release`](Self::release).
    pub fn hold(&mut self) {
        self.holds += 1;
    }

    pub fn release(&mut self) {
        self.holds = self.holds.saturating_sub(1);
    }

    /// Suggests files for compaction one level down. Earlier suggestions are dropped if no longer `there`.
    pub fn suggest(&mut self, files: impl IntoIterator<Item = FileNumber>, there: impl Fn(FileNumber) -> bool) {
        self.suggested.retain(|&file| there(file));
        self.suggested.extend(files);
    }

    pub fn is_suggested(&self, file: FileNumber) -> bool {
        self.suggested.contains(&file)
    }

    pub fn is_held(&self) -> bool {
        self.holds > 0
    }
}
