//! Chooses an ingested table's level: the deepest with every read still correct. Pure except for probes of tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::note;
use base::options::FamilyOptions;
use base::tombstone::FragmentedTombstones;
use base::{Cursor, FileNumber, LookupKey, Result, SeqNo, UserOrder};
use table::{Table, TableReadOptions};
use vfs::IoClass;

use crate::compaction::{LevelTargets, compacted_levels};
use crate::version::span::Span;
use crate::version::table_file::{FileMeta, TableFile};
use crate::version::version::Version;

/// State of a placement. The version holds everything older than the tables placed: a family's flushes are serial (Q2),
/// and compactions only move data further down, or beneath tables sharing no key with it (V4).
pub(crate) struct Placement<'a> {
    order: &'a UserOrder,
    version: &'a Version,
    base_level: usize,
    /// Number of usable levels, the last included.
    levels: usize,
    /// Levels and spans of running compactions and other jobs' reservations.
    taken: &'a [(usize, Span)],
    /// Tables placed so far, oldest first: later tables must stay above them.
    placed: Vec<Placed>,
    /// Tables flushed from memtables, by index in `placed`. They span much and may hold little of it, so they are
    /// probed.
    flushed: BTreeMap<usize, Arc<TableFile>>,
    /// Indexes in `placed` of each level's tables. Below level 0 ascending by span, without overlap.
    by_level: Vec<Vec<usize>>,
}

/// A table and its level.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed {
    pub level: usize,
    pub span: Span,
    pub meta: FileMeta,
}

/// Tells whether a table of the version holds anything in a span.
pub(crate) trait Probe {
    fn has_data(&self, file: &TableFile, span: &Span) -> Result<bool>;
}

impl<'a> Placement<'a> {
    pub fn new(version: &'a Version, options: &FamilyOptions, taken: &'a [(usize, Span)]) -> Self {
        let base_level = LevelTargets::of(version, options).base_level;
        let levels = compacted_levels(version, options);
        Placement {
            order: &version.order().user,
            version,
            base_level,
            levels,
            taken,
            placed: Vec::new(),
            flushed: BTreeMap::new(),
            by_level: vec![Vec::new(); levels],
        }
    }

    /// Places a table at the deepest level with no data of its span in the levels above, and no table of the level
    /// itself overlapping it.
    pub fn place(&mut self, meta: FileMeta, probe: &impl Probe) -> Result<()> {
        let span = Span::of_file(&meta);
        let level = self.deepest(&span, probe)?;
        self.push(Placed { level, span, meta });
        Ok(())
    }

    /// Places a table in level 0, above everything.
    pub fn place_on_top(&mut self, meta: FileMeta) {
        self.push(Placed { level: 0, span: Span::of_file(&meta), meta });
    }

    /// Places a memtable's table in level 0.
    pub fn place_flushed(&mut self, file: &Arc<TableFile>) {
        self.flushed.insert(self.placed.len(), file.clone());
        self.place_on_top(file.meta.clone());
    }

    fn push(&mut self, placed: Placed) {
        let at = self.first_reaching(placed.level, &placed.span);
        if let Some(of_level) = self.by_level.get_mut(placed.level) {
            of_level.insert(at, self.placed.len());
        }
        self.placed.push(placed);
    }

    /// Index among a level's placed tables of the first not ending before the span; for level 0, their number.
    fn first_reaching(&self, level: usize, span: &Span) -> usize {
        let Some(of_level) = self.by_level.get(level) else { return 0 };
        let ends_before = |at: &usize| self.placed.get(*at).is_some_and(|p| !p.span.reaches(self.order, &span.start));
        if level == 0 { of_level.len() } else { of_level.partition_point(ends_before) }
    }

    /// Whether a table placed in this level so far overlaps the span. Memtables' tables are probed.
    fn is_placed(&self, level: usize, span: &Span, probe: &impl Probe) -> Result<bool> {
        let Some(of_level) = self.by_level.get(level) else { return Ok(false) };
        let overlaps = |at: &&usize| self.placed.get(**at).is_some_and(|p| p.span.overlaps(self.order, span));
        if level > 0 {
            return Ok(of_level.get(self.first_reaching(level, span)).as_ref().is_some_and(overlaps));
        }
        for at in of_level.iter().filter(overlaps) {
            match self.flushed.get(at) {
                Some(file) if !probe.has_data(file, span)? => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    pub fn placed(self) -> Vec<Placed> {
        self.placed
    }

    fn deepest(&self, span: &Span, probe: &impl Probe) -> Result<usize> {
        let mut deepest = 0;
        for level in 0..self.levels {
            let placed = self.is_placed(level, span, probe)?;
            let overlapping: Vec<_> = self.version.overlapping_span(level, span).collect();
            // Dynamic level sizes keep the levels above the base level empty.
            let usable = level >= self.base_level && level > 0;
            if usable && overlapping.is_empty() && !placed && !self.is_taken(level, span) {
                deepest = level;
            }
            if placed || has_data(&overlapping, span, probe)? {
                break;
            }
        }
        Ok(deepest)
    }

    fn is_taken(&self, level: usize, span: &Span) -> bool {
        self.taken.iter().any(|(taken, by)| *taken == level && by.overlaps(self.order, span))
    }

    /// Whether the places are still free in the family's current version. Tables in `leaving` leave by the same edit
    /// and do not count.
    pub fn still_holds(
        placed: &[Placed],
        leaving: &[(usize, FileNumber)],
        version: &Version,
        taken: &[(usize, Span)],
    ) -> bool {
        let order = &version.order().user;
        placed.iter().filter(|p| p.level > 0).all(|p| {
            let stays = |file: &Arc<TableFile>| !leaving.contains(&(p.level, file.number()));
            let meets_taken = |(level, by): &(usize, Span)| *level == p.level && by.overlaps(order, &p.span);
            !version.overlapping_span(p.level, &p.span).any(stays) && !taken.iter().any(meets_taken)
        })
    }
}

fn has_data(files: &[&Arc<TableFile>], span: &Span, probe: &impl Probe) -> Result<bool> {
    for file in files {
        if probe.has_data(file, span)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Looks into tables: one seek each.
pub(crate) struct TableProbe {
    order: UserOrder,
    options: TableReadOptions,
}

impl TableProbe {
    /// For jobs: does not fill the block cache.
    pub fn uncached(order: UserOrder) -> Self {
        let options = TableReadOptions { fill_cache: false, class: IoClass::Ingest, ..TableReadOptions::default() };
        TableProbe { order, options }
    }

    /// For an ingest finding its levels itself: follows its `fill_cache`.
    pub fn of_ingest(order: UserOrder, fill_cache: bool) -> Self {
        let mut probe = TableProbe::uncached(order);
        probe.options.fill_cache = fill_cache;
        probe
    }
}

impl Probe for TableProbe {
    fn has_data(&self, file: &TableFile, span: &Span) -> Result<bool> {
        let table = file.open()?;
        if table.tombstones().is_some_and(|tombstones| covers_any(&tombstones, span, &self.order)) {
            return Ok(true);
        }
        has_point(table, span, &self.order, &self.options)
    }
}

/// Treats an unreadable table as holding data. A place above it is always right, and reads of it report the damage.
pub(crate) struct Cautious<P>(pub P);

impl<P: Probe> Probe for Cautious<P> {
    fn has_data(&self, file: &TableFile, span: &Span) -> Result<bool> {
        self.0.has_data(file, span).or_else(|error| {
            note::warn!(%error, table = %file.number(), "ingested tables are placed above a table that cannot be read");
            Ok(true)
        })
    }
}

fn has_point(table: Arc<dyn Table>, span: &Span, order: &UserOrder, options: &TableReadOptions) -> Result<bool> {
    let mut cursor = table.cursor(options);
    if !cursor.seek(LookupKey::new(&span.start, SeqNo::MAX).internal()) {
        cursor.status()?;
        return Ok(false);
    }
    Ok(span.reaches(order, base::key::user_key(cursor.key())))
}

/// Whether a tombstone of the table reaches into the span.
fn covers_any(tombstones: &FragmentedTombstones, span: &Span, order: &UserOrder) -> bool {
    let at = tombstones.seek(&span.start);
    tombstones.fragments().get(at).is_some_and(|fragment| span.reaches(order, &fragment.start))
}

#[cfg(test)]
mod tests;
