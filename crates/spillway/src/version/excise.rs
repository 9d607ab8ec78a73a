//! Effect of an excise on a version: tables inside its span are removed; tables straddling an end become virtual
//! tables, trimmed to the part outside. No byte is rewritten until a later compaction.
//!
//! Precondition, ensured by the caller: everything in the version is older than the excise, and no snapshot older than
//! the excise sees the span. Planning holds no lock, so the caller rechecks at install that the removed tables are
//! still there (V2).

use std::sync::Arc;

use base::key::encode;
use base::tombstone::FragmentedTombstones;
use base::{Cursor, FileNumber, InternalOrder, Result, SeqNo, UserOrder, ValueKind};
use table::{Table, TableReadOptions};
use vfs::IoClass;

use super::edit::VersionEdit;
use super::level::ends_before;
use super::table_file::{Backing, FileMeta, TableFile};
use super::version::Version;

/// The user keys in `start..end`.
#[derive(Clone, Copy, Debug)]
pub struct ExciseSpan<'a> {
    pub start: &'a [u8],
    pub end: &'a [u8],
}

/// The change removing a span from a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExcisePlan {
    /// Tables reaching into the span, with their levels: the inputs, for the recheck.
    pub deleted: Vec<(usize, FileNumber)>,
    /// Virtual tables left of them, with their levels.
    pub added: Vec<(usize, FileMeta)>,
}

impl ExcisePlan {
    /// Adds the change to `edit`.
    pub fn add_to(self, edit: &mut VersionEdit) {
        edit.deleted.extend(self.deleted);
        edit.added.extend(self.added);
    }
}

/// A side of the span.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// Plans the excise of `span`; `next_number` numbers the virtual tables. Opens the tables straddling an end of the span
/// and seeks in them.
///
/// # Errors
/// Errors of reading a table.
pub fn plan(
    version: &Version,
    span: ExciseSpan<'_>,
    next_number: &mut dyn FnMut() -> FileNumber,
) -> Result<ExcisePlan> {
    plan_of(version, version.all_files(), span, next_number)
}

/// As [`plan`], only for the tables below table `number` of `level`. For shared keys these hold the older versions,
/// whatever their sequence numbers.
///
/// # Errors
/// As [`plan`].
pub fn plan_below(
    version: &Version,
    level: usize,
    number: FileNumber,
    span: ExciseSpan<'_>,
    next_number: &mut dyn FnMut() -> FileNumber,
) -> Result<ExcisePlan> {
    // Level 0 is newest first. In a sorted level no other table has keys in the table's span.
    let beside = version.level(level).iter().skip_while(|file| file.number() != number).skip(1);
    let beside = beside.filter(|_| level == 0).map(|file| (level, file));
    let deeper = version.all_files().filter(|(at, _)| *at > level);
    plan_of(version, beside.chain(deeper), span, next_number)
}

fn plan_of<'a>(
    version: &Version,
    tables: impl Iterator<Item = (usize, &'a Arc<TableFile>)>,
    span: ExciseSpan<'_>,
    next_number: &mut dyn FnMut() -> FileNumber,
) -> Result<ExcisePlan> {
    let order = version.order();
    let mut plan = ExcisePlan::default();
    if order.user.compare(span.start, span.end).is_ge() {
        return Ok(plan);
    }
    for (level, file) in tables.filter(|(_, file)| span.reaches_into(&order.user, &file.meta)) {
        plan.deleted.push((level, file.number()));
        for side in [Side::Left, Side::Right] {
            if let Some(meta) = remainder(order, file, span, side)? {
                plan.added.push((level, FileMeta { number: next_number(), ..meta }));
            }
        }
    }
    Ok(plan)
}

impl ExciseSpan<'_> {
    fn reaches_into(&self, order: &UserOrder, meta: &FileMeta) -> bool {
        !ends_before(order, meta, self.start) && order.compare(meta.smallest_user_key(), self.end).is_lt()
    }

    /// Whether the table's bounds leave anything on `side`.
    fn leaves(&self, order: &UserOrder, meta: &FileMeta, side: Side) -> bool {
        match side {
            Side::Left => order.compare(meta.smallest_user_key(), self.start).is_lt(),
            Side::Right => !ends_before(order, meta, self.end),
        }
    }
}

/// The virtual table left on `side`, still to be numbered; `None` if nothing is left.
fn remainder(order: &InternalOrder, file: &TableFile, span: ExciseSpan<'_>, side: Side) -> Result<Option<FileMeta>> {
    let meta = &file.meta;
    if !span.leaves(&order.user, meta, side) {
        return Ok(None);
    }
    let table = file.open()?;
    let tombstones = table.tombstones().map(|all| meta.tombstones_inside(&all));
    let covered = tombstones.and_then(|all| match side {
        Side::Left => end_left_of(&all, span.start),
        Side::Right => start_right_of(&all, span.end),
    });
    let options =
        TableReadOptions { fill_cache: false, total_order_seek: true, class: IoClass::Ingest, ..Default::default() };
    let mut cursor = table.clone().cursor(&options);
    let found = match side {
        Side::Left => cursor.seek_for_prev(&first_version(span.start)),
        Side::Right => cursor.seek(&first_version(span.end)),
    };
    cursor.status()?;
    let entry = found.then(|| cursor.key().to_vec());
    let of_both = entry.into_iter().chain(covered);
    let trimmed = match side {
        Side::Left => of_both.max_by(|a, b| order.compare(a, b)),
        Side::Right => of_both.min_by(|a, b| order.compare(a, b)),
    };
    let Some(trimmed) = trimmed else { return Ok(None) };
    let backing = meta.backing.unwrap_or(Backing { number: meta.number, file_bytes: meta.file_bytes });
    let mut left = FileMeta { file_bytes: share(&*table, meta, span, side)?, backing: Some(backing), ..meta.clone() };
    match side {
        Side::Left => left.largest = trimmed,
        Side::Right => left.smallest = trimmed,
    }
    Ok(Some(left))
}

/// Sorts before every entry of `user_key`, and after all entries of smaller keys.
fn first_version(user_key: &[u8]) -> Vec<u8> {
    encode(user_key, SeqNo::MAX, ValueKind::RangeDeletion)
}

/// Largest key for the tombstones left of `start`: the end of the last one, clamped to `start`.
fn end_left_of(tombstones: &FragmentedTombstones, start: &[u8]) -> Option<Vec<u8>> {
    let order = tombstones.order();
    let before = tombstones.fragments().partition_point(|fragment| order.compare(&fragment.start, start).is_lt());
    let last = tombstones.fragments().get(before.checked_sub(1)?)?;
    let end = if order.compare(&last.end, start).is_gt() { start } else { &last.end };
    Some(encode(end, SeqNo::MAX, ValueKind::RangeDeletion))
}

/// Smallest key for the tombstones right of `end`: the start of the first one, clamped to `end`.
fn start_right_of(tombstones: &FragmentedTombstones, end: &[u8]) -> Option<Vec<u8>> {
    let first = tombstones.fragments().get(tombstones.seek(end))?;
    let start = if tombstones.order().compare(&first.start, end).is_lt() { end } else { &first.start };
    Some(encode(start, *first.seqs.first()?, ValueKind::RangeDeletion))
}

/// Approximate bytes of the table on `side` of the span; at least 1.
fn share(table: &dyn Table, meta: &FileMeta, span: ExciseSpan<'_>, side: Side) -> Result<u64> {
    let all = table.properties().data_bytes;
    let bytes = match side {
        Side::Left => table.approximate_offset(&first_version(span.start))?,
        Side::Right => all.saturating_sub(table.approximate_offset(&first_version(span.end))?),
    };
    let scaled = u128::from(meta.file_bytes) * u128::from(bytes.min(all)) / u128::from(all.max(1));
    Ok((scaled as u64).clamp(1, meta.file_bytes.max(1)))
}
