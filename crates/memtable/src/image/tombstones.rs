//! The range deletions of an image: an unsorted list, the last added first. Layout: [`crate::tombstones`].

use base::{Result, UserOrder, ValueKind};

use super::check::Tally;
use super::view::{EntryView, View, check_key, wrong};
use crate::arena::GRANULE_BYTES;

const GRANULE: u64 = GRANULE_BYTES as u64;

/// The range deletion linked from the granule at `link_at`, and its offset.
pub(super) fn next<'a>(view: &View<'a>, link_at: u64) -> Result<Option<(u64, EntryView<'a>)>> {
    let link = view.u64(link_at)?;
    if link == 0 {
        return Ok(None);
    }
    let at = u32::try_from(link).map_err(|_| wrong(link_at, format!("{link:#x} is no reference")))?;
    let at = u64::from(at) * GRANULE;
    Ok(Some((at, view.record(at + GRANULE)?)))
}

/// Checks that the entry at `at` is a range deletion whose keys `order` can compare.
pub(super) fn check_one(at: u64, entry: &EntryView<'_>, order: &UserOrder) -> Result<()> {
    if entry.kind() != Some(ValueKind::RangeDeletion) {
        return Err(wrong(at, format!("kind {:#x} among range deletions", entry.trailer() as u8)));
    }
    check_key(at, order, entry.user_key())?;
    check_key(at, order, entry.value)
}

/// Checks and counts the list beginning at `head`.
///
/// # Errors
/// `Corruption`.
pub(super) fn check(view: &View<'_>, head: u64, order: &UserOrder, tally: &mut Tally) -> Result<()> {
    let mut link_at = head;
    while let Some((at, entry)) = next(view, link_at)? {
        tally.marks.take(at, entry.end, "a range deletion")?;
        check_one(at, &entry, order)?;
        tally.count(&entry, ValueKind::RangeDeletion);
        link_at = at;
    }
    Ok(())
}
