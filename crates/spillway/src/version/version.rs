//! The tables of a family at one instant (V1). Immutable; [`super::builder`] makes the next version.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{FileNumber, InternalOrder, SeqNo};

use super::level::Level;
use super::table_file::{FileMeta, TableFile};
use crate::version::span::Span;

/// More levels than any options ask for; a larger number in a MANIFEST is damage (B2).
pub const LEVELS_MAX: usize = 64;

/// Backing file of virtual tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedFile {
    /// Bytes counted by tables.
    pub counted_bytes: u64,
    pub file_bytes: u64,
}

impl SharedFile {
    /// Bytes counted by no table: the excised ones.
    pub fn excised_bytes(&self) -> u64 {
        self.file_bytes.saturating_sub(self.counted_bytes)
    }
}

/// Names the answers of a version's tables. Unique in the process.
///
/// Two versions of one number give every reader the same answer to a lookup of their tables. So an answer kept under
/// the number holds for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentNumber(pub u64);

impl ContentNumber {
    fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        ContentNumber(1 + LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// The levels of a family. Cheap to clone: levels are shared.
#[derive(Clone)]
pub struct Version {
    order: InternalOrder,
    levels: Vec<Arc<Level>>,
    /// Number of versions so far in which hidden entries may show again. See [`gaps`](crate::cursor::gaps).
    era: u64,
    content: ContentNumber,
}

impl Version {
    /// A version without tables.
    pub fn empty(order: InternalOrder, num_levels: usize) -> Self {
        assert!((1..=LEVELS_MAX).contains(&num_levels), "{num_levels} levels");
        let empty = Arc::new(Level::default());
        Version { order, levels: vec![empty; num_levels], era: 0, content: ContentNumber::new() }
    }

    /// The next version, with these levels and a content of its own.
    pub(super) fn followed_by(&self, levels: Vec<Arc<Level>>) -> Self {
        Version { order: self.order.clone(), levels, era: self.era, content: ContentNumber::new() }
    }

    /// The same tables in a new era.
    #[must_use]
    pub fn in_next_era(self) -> Self {
        Version { era: self.era + 1, ..self }
    }

    pub fn era(&self) -> u64 {
        self.era
    }

    /// Takes over the content number of `base`: this version came from it by a step that changes no reader's answer.
    pub fn keep_content_of(&mut self, base: &Version) {
        self.content = base.content;
    }

    pub fn content(&self) -> ContentNumber {
        self.content
    }

    /// The largest number in any of the tables.
    pub fn largest_seq(&self) -> SeqNo {
        self.levels.iter().map(|level| level.largest_seq()).max().unwrap_or(SeqNo::ZERO)
    }

    /// The same tables for a MANIFEST elsewhere: those of `copies` as copies in other files, with the same bounds.
    pub fn with_copies(&self, copies: &BTreeMap<FileNumber, FileMeta>) -> Version {
        let level = |level: &Arc<Level>| {
            let mut copy = Level::with_capacity(level.files().len());
            for file in level.files() {
                let meta = copies.get(&file.number());
                copy.push(&self.order.user, meta.map_or_else(|| file.clone(), |meta| file.elsewhere(meta.clone())));
            }
            Arc::new(copy)
        };
        self.followed_by(self.levels.iter().map(level).collect())
    }

    pub fn order(&self) -> &InternalOrder {
        &self.order
    }

    pub fn num_levels(&self) -> usize {
        self.levels.len()
    }

    pub(super) fn levels(&self) -> &[Arc<Level>] {
        &self.levels
    }

    /// The tables of a level: level 0 newest first, other levels ascending. Empty past the last level.
    pub fn level(&self, level: usize) -> &[Arc<TableFile>] {
        self.levels.get(level).map_or(&[], |level| level.files())
    }

    /// Tables of level 0, and deeper levels with any.
    pub fn sorted_runs(&self) -> usize {
        self.level(0).len() + self.levels.iter().skip(1).filter(|level| !level.files().is_empty()).count()
    }

    /// Bytes of the level's files.
    pub fn level_bytes(&self, level: usize) -> u64 {
        self.levels.get(level).map_or(0, |level| level.bytes())
    }

    /// The oldest known time of data in the level, in seconds since the epoch.
    pub fn oldest_data_s(&self, level: usize) -> Option<u64> {
        self.levels.get(level).map(|level| level.oldest_data_s()).filter(|&time_s| time_s > 0)
    }

    /// The oldest known creation of a table of the level, in seconds since the epoch.
    pub fn oldest_file_s(&self, level: usize) -> Option<u64> {
        self.levels.get(level).map(|level| level.oldest_file_s()).filter(|&time_s| time_s > 0)
    }

    pub fn total_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.bytes()).sum()
    }

    /// The backing files of virtual tables.
    pub fn shared_files(&self) -> BTreeMap<FileNumber, SharedFile> {
        let mut shared: BTreeMap<FileNumber, SharedFile> = BTreeMap::new();
        for meta in self.all_files().map(|(_, file)| &file.meta).filter(|meta| meta.is_virtual()) {
            let file = shared.entry(meta.physical_number()).or_default();
            file.counted_bytes = file.counted_bytes.saturating_add(meta.file_bytes);
            file.file_bytes = meta.physical_bytes();
        }
        shared
    }

    /// The largest epoch number of all tables; 0 if there is none. The next level-0 table takes a larger one.
    pub fn max_epoch(&self) -> u64 {
        self.levels.iter().map(|level| level.max_epoch()).max().unwrap_or(0)
    }

    /// Every table with its level, from level 0 down.
    pub fn all_files(&self) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
        self.levels.iter().enumerate().flat_map(|(n, level)| level.files().iter().map(move |file| (n, file)))
    }

    /// The table with this number, and its level. Scans all tables.
    pub fn file(&self, number: FileNumber) -> Option<(usize, &Arc<TableFile>)> {
        self.all_files().find(|(_, file)| file.number() == number)
    }

    /// Level 1 and below: the first table with the user key in its span.
    pub fn find(&self, level: usize, user_key: &[u8]) -> Option<&Arc<TableFile>> {
        self.candidates(level, user_key).first()
    }

    /// Level 1 and below: all tables with the user key in their span, newest versions first. More than one only if
    /// RocksDB split the versions of one key between neighbours.
    pub fn candidates(&self, level: usize, user_key: &[u8]) -> &[Arc<TableFile>] {
        debug_assert!(level > 0, "level 0 has no order by key");
        match self.levels.get(level) {
            // Most levels are empty, and every lookup visits all of them.
            Some(level) if !level.files().is_empty() => {
                level.overlapping_sorted(&self.order.user, Some(user_key), Some(user_key))
            }
            _ => &[],
        }
    }

    /// The tables of a level with keys in `start..=end`, in the level's order; `None` is unbounded. In level 0 the span
    /// grows with each table found: no excluded table overlaps an included one.
    pub fn overlapping(&self, level: usize, start: Option<&[u8]>, end: Option<&[u8]>) -> Vec<Arc<TableFile>> {
        let Some(found) = self.levels.get(level) else {
            return Vec::new();
        };
        if level == 0 {
            return found.overlapping_unsorted(&self.order.user, start, end);
        }
        found.overlapping_sorted(&self.order.user, start, end).to_vec()
    }

    /// The tables of a level overlapping a span.
    pub fn overlapping_span(&self, level: usize, span: &Span) -> impl Iterator<Item = &Arc<TableFile>> {
        let (order, files) = (&self.order().user, self.level(level));
        // Level 0 is not sorted.
        let near = if level == 0 { Some(files) } else { files.get(span.places_in(order, files)) };
        near.unwrap_or_default().iter().filter(move |file| span.overlaps_file(order, &file.meta))
    }

    /// Whether a level above `last` may hold entries with sequence number 0, the number of tables ingested behind.
    pub fn has_zeros_above(&self, last: usize) -> bool {
        (0..last).flat_map(|level| self.level(level)).any(|file| file.meta.smallest_seq == SeqNo::ZERO)
    }

    /// Opens the level-0 tables, written last: crash damage would show there.
    ///
    /// # Errors
    /// Errors of opening a table.
    pub fn open_newest(&self) -> base::Result<()> {
        self.level(0).iter().try_for_each(|file| file.open().map(drop))
    }

    /// Whether any table of the level has keys in `start..=end`; `None` is unbounded.
    pub fn overlaps(&self, level: usize, start: Option<&[u8]>, end: Option<&[u8]>) -> bool {
        match self.levels.get(level) {
            None => false,
            Some(found) if level == 0 => found.any_overlap_unsorted(&self.order.user, start, end),
            Some(found) => !found.overlapping_sorted(&self.order.user, start, end).is_empty(),
        }
    }
}
