//! Read order of tables if the MANIFEST is lost or incomplete, and levels consistent with it (V4).
//!
//! All tables are merged in one pass. Of tables with the same key, the table with the newest entry goes first. A table
//! with a range tombstone goes before tables with older covered keys, and after tables with newer ones. No other pairs
//! are ordered.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::key::{split, user_key};
use base::options::FamilyOptions;
use base::tombstone::FragmentedTombstones;
use base::{Cursor, InternalOrder, Result, SeqNo};
use table::{Table, TableReadOptions};
use vfs::IoClass;

use crate::compaction::compacted_of;
use crate::version::span::Span;
use crate::version::table_file::FileMeta;

/// A table to place.
pub(super) struct Unplaced {
    pub meta: FileMeta,
    pub table: Arc<dyn Table>,
    /// The level in the MANIFEST, if known.
    pub level: Option<usize>,
}

/// Pairs of table indices: the first is read before the second.
pub(super) type Before = BTreeSet<(usize, usize)>;

/// Orders all tables of a family.
///
/// # Errors
/// The tables'.
pub(super) fn relations(order: &InternalOrder, tables: &[Unplaced]) -> Result<Before> {
    let mut waiting: Vec<usize> = (0..tables.len()).collect();
    let smallest = |i: &usize| tables.get(*i).map_or(&[][..], |table| &table.meta.smallest);
    waiting.sort_by(|a, b| order.compare(smallest(b), smallest(a))); // popped from the end
    let mut walk = Walk { order, tables, active: Vec::new(), covers: Vec::new(), before: Before::new() };
    loop {
        let next = walk.least_key();
        let is_due = |i: &usize| match &next {
            Some(key) => order.user.compare(user_key(smallest(i)), key).is_le(),
            None => true,
        };
        if let Some(i) = waiting.last().copied().filter(is_due) {
            waiting.pop();
            walk.begin(i)?;
            continue;
        }
        let Some(key) = next else { return Ok(walk.before) };
        walk.pass(&key)?;
    }
}

struct Walk<'a> {
    order: &'a InternalOrder,
    tables: &'a [Unplaced],
    /// Valid cursors, by table.
    active: Vec<(usize, Box<dyn Cursor>)>,
    /// Tables with range tombstones, from their smallest key on.
    covers: Vec<(usize, Arc<FragmentedTombstones>)>,
    before: Before,
}

/// A table's newest entry of one key.
struct Holder {
    table: usize,
    newest: SeqNo,
}

impl Walk<'_> {
    fn begin(&mut self, i: usize) -> Result<()> {
        let Some(unplaced) = self.tables.get(i) else { return Ok(()) };
        if let Some(all) = unplaced.table.tombstones() {
            self.covers.push((i, unplaced.meta.tombstones_inside(&all)));
        }
        let options = TableReadOptions { fill_cache: false, class: IoClass::Other, ..TableReadOptions::default() };
        let mut cursor = unplaced.table.clone().cursor(&options);
        if cursor.seek_to_first() {
            self.active.push((i, cursor));
            return Ok(());
        }
        cursor.status()
    }

    fn least_key(&self) -> Option<Vec<u8>> {
        let keys = self.active.iter().map(|(_, cursor)| user_key(cursor.key()));
        keys.min_by(|a, b| self.order.user.compare(a, b)).map(<[u8]>::to_vec)
    }

    /// Consumes all entries of `key`, and notes the order they imply.
    fn pass(&mut self, key: &[u8]) -> Result<()> {
        let order = &self.order.user;
        let mut holders: Vec<Holder> = Vec::new();
        for (i, cursor) in &mut self.active {
            while cursor.valid() && order.equal(user_key(cursor.key()), key) {
                let seq = split(cursor.key()).map_or(SeqNo::ZERO, |(_, trailer)| SeqNo(trailer >> 8));
                match holders.last_mut().filter(|last| last.table == *i) {
                    Some(last) => last.newest = last.newest.max(seq),
                    None => holders.push(Holder { table: *i, newest: seq }),
                }
                cursor.next();
            }
            cursor.status()?;
        }
        self.active.retain(|(_, cursor)| cursor.valid());
        self.record_versions(&holders);
        self.record_tombstones(key, &holders);
        Ok(())
    }

    fn record_versions(&mut self, holders: &[Holder]) {
        for (at, a) in holders.iter().enumerate() {
            for b in holders.iter().skip(at + 1) {
                // Equal sequence numbers occur if an ingest's was guessed: the later file goes first.
                let number = |holder: &Holder| self.tables.get(holder.table).map(|table| table.meta.number);
                let a_first = (a.newest, number(a)) > (b.newest, number(b));
                self.before.insert(if a_first { (a.table, b.table) } else { (b.table, a.table) });
            }
        }
    }

    fn record_tombstones(&mut self, key: &[u8], holders: &[Holder]) {
        for (i, tombstones) in &self.covers {
            let Some(seq) = tombstones.covering(key, SeqNo::MAX) else { continue };
            for holder in holders.iter().filter(|holder| holder.table != *i) {
                let is_first = seq > holder.newest;
                self.before.insert(if is_first { (*i, holder.table) } else { (holder.table, *i) });
            }
        }
    }
}

/// A table's level, and its epoch in level 0: a larger epoch is read earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub level: usize,
    pub epoch: u64,
}

/// Result of [`levels`].
pub(super) struct Placed {
    /// One for each table.
    pub places: Vec<Place>,
    /// Tables at which a cycle in the order was broken: their place may be wrong.
    pub contradicting: Vec<FileMeta>,
}

/// Assigns each table its old level if V4 allows it, or else the deepest allowed level that compactions use; level 0 if
/// there is none. So a compaction of the family takes all tables whose place is a guess.
pub(super) fn levels(order: &InternalOrder, tables: &[Unplaced], before: &Before, options: &FamilyOptions) -> Placed {
    let (num_levels, compacted) = (options.num_levels, compacted_of(options.num_levels, options));
    let (sequence, contradicting) = oldest_first(tables, before);
    let mut places: Vec<Option<Place>> = vec![None; tables.len()];
    let mut spans: Vec<Vec<Span>> = vec![Vec::new(); num_levels];
    let mut epoch = 1;
    for i in sequence {
        let Some(table) = tables.get(i) else { continue };
        let older = before.range((i, 0)..(i + 1, 0)).filter_map(|(_, older)| places.get(*older).copied().flatten());
        let limit = older.map(|place| place.level).min().unwrap_or(num_levels);
        let span = Span::of_file(&table.meta);
        let is_free = |level: &usize| {
            spans.get(*level).is_some_and(|others| others.iter().all(|other| !other.overlaps(&order.user, &span)))
        };
        let mut allowed = (1..limit.min(compacted)).rev().filter(is_free);
        let level = match table.level {
            Some(0) => 0,
            Some(level) if level < limit && is_free(&level) => level,
            _ => allowed.next().unwrap_or(0),
        };
        epoch += u64::from(level == 0);
        if let Some(others) = spans.get_mut(level) {
            others.push(span);
        }
        if let Some(place) = places.get_mut(i) {
            *place = Some(Place { level, epoch: if level == 0 { epoch } else { 1 } });
        }
    }
    let places = places.into_iter().map(|place| place.unwrap_or(Place { level: 0, epoch: 1 })).collect();
    Placed { places, contradicting }
}

/// Topological order, oldest first. Cycles are broken at the oldest table, which is returned as contradicting.
fn oldest_first(tables: &[Unplaced], before: &Before) -> (Vec<usize>, Vec<FileMeta>) {
    let age =
        |i: &usize| tables.get(*i).map(|table| (table.meta.largest_seq, table.meta.epoch_number, table.meta.number));
    let mut older_left = vec![0usize; tables.len()];
    let mut newer: Vec<Vec<usize>> = vec![Vec::new(); tables.len()];
    for (first, second) in before {
        if let Some(left) = older_left.get_mut(*first) {
            *left += 1;
        }
        if let Some(newer) = newer.get_mut(*second) {
            newer.push(*first);
        }
    }
    let mut left: BTreeSet<usize> = (0..tables.len()).collect();
    let (mut sequence, mut contradicting) = (Vec::with_capacity(tables.len()), Vec::new());
    while !left.is_empty() {
        let free = left.iter().copied().filter(|i| older_left.get(*i) == Some(&0)).min_by_key(age);
        let Some(next) = free.or_else(|| left.iter().copied().min_by_key(age)) else { break };
        if free.is_none() {
            contradicting.extend(tables.get(next).map(|table| table.meta.clone()));
        }
        left.remove(&next);
        sequence.push(next);
        for first in newer.get(next).into_iter().flatten() {
            if let Some(left) = older_left.get_mut(*first) {
                *left = left.saturating_sub(1);
            }
        }
    }
    (sequence, contradicting)
}
