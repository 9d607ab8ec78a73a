//! The recovery watermark of an image: a cache line of words in the header, raised while the memtable lives. It is not
//! under a checksum, and valid only if the machine was not rebooted since. Format: docs/format/image.md
//!
//! Each word only grows, and is raised before the words behind it. So at any instant of a crash, the position found was
//! valid for some number at or below the number found. It is valid for the number found too: it lies at or before the
//! first write above it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use base::{Result, SeqNo};

use super::view::View;
use crate::arena::{Arena, IMAGE_HEADER_BYTES};
use crate::gate::Gate;

/// A cache line of its own: no other changing word shares it.
pub(super) const WATERMARK_AT: usize = 3072;
const COMPLETE_AT: usize = WATERMARK_AT;
const POSITION_AT: usize = WATERMARK_AT + 8;
const HANDED_OUT_AT: usize = WATERMARK_AT + 16;
const FOREIGN_AT: usize = WATERMARK_AT + 24;

const BEGUN_AT: usize = WATERMARK_AT + 32;
const EMPTY_AT: usize = WATERMARK_AT + 40;

const _: () = assert!(WATERMARK_AT.is_multiple_of(64) && EMPTY_AT + 8 <= IMAGE_HEADER_BYTES);

/// Last values given to [`Memtable::mark`](crate::Memtable::mark).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermark {
    /// No write at or below this number is in the image; `None` if the memtable did not come into use.
    pub begins_after: Option<SeqNo>,
    /// Nor is one at or below this number, if it is larger: the memtable stayed empty so far.
    pub empty_through: SeqNo,
    /// Every write of the family meant for this memtable, above `begins_after` and up to this number, is in the image.
    /// 0 if nothing was marked.
    pub complete_through: SeqNo,
    /// At or before the first write above `complete_through`; the engine defines the unit.
    pub position: u64,
    /// Allocated bytes at the last mark: a hint at the used part of the file. 0 if nothing was marked.
    pub handed_out_bytes: u64,
    /// Some writes of the family in this range are elsewhere: the image is incomplete.
    pub is_foreign: bool,
}

impl Watermark {
    pub(super) fn read(view: &View<'_>) -> Result<Watermark> {
        let word = |at: usize| view.u64(at as u64);
        Ok(Watermark {
            begins_after: word(BEGUN_AT)?.checked_sub(1).map(SeqNo),
            empty_through: SeqNo(word(EMPTY_AT)?),
            complete_through: SeqNo(word(COMPLETE_AT)?),
            position: word(POSITION_AT)?,
            handed_out_bytes: word(HANDED_OUT_AT)?,
            is_foreign: word(FOREIGN_AT)? != 0,
        })
    }
}

/// Raises the watermark. No effect without a header, or once sealed.
pub(crate) fn mark<const IMAGE: bool>(arena: &Arena<IMAGE>, gate: &Gate, complete_through: SeqNo, position: u64) {
    let (Some(complete), Some(at), Some(handed_out)) =
        (arena.header_word(COMPLETE_AT), arena.header_word(POSITION_AT), arena.header_word(HANDED_OUT_AT))
    else {
        return;
    };
    // Checked first, so that a mark without news does not take the cache line from other threads.
    if complete.load(Relaxed) >= complete_through.0 && at.load(Relaxed) >= position {
        return;
    }
    let Some(_inside) = gate.enter_to_mark() else { return };
    raise(complete, complete_through.0);
    raise(at, position);
    raise(handed_out, arena.allocated() as u64);
}

/// Records the number after which the image begins. No effect without a header, or once sealed.
pub(crate) fn begin_after<const IMAGE: bool>(arena: &Arena<IMAGE>, gate: &Gate, created_at: SeqNo) {
    let Some(begun) = arena.header_word(BEGUN_AT) else { return };
    let Some(_inside) = gate.enter_to_mark() else { return };
    raise(begun, created_at.0 + 1);
}

/// Records that no write at or below `seq` is in the image. No effect without a header, or once sealed.
pub(crate) fn advance_empty_to<const IMAGE: bool>(arena: &Arena<IMAGE>, gate: &Gate, seq: SeqNo) {
    let Some(empty) = arena.header_word(EMPTY_AT) else { return };
    let Some(_inside) = gate.enter_to_mark() else { return };
    raise(empty, seq.0);
}

/// Records that the image is incomplete. False if it cannot: without a header, or once sealed.
pub(crate) fn mark_foreign<const IMAGE: bool>(arena: &Arena<IMAGE>, gate: &Gate) -> bool {
    let Some(foreign) = arena.header_word(FOREIGN_AT) else { return false };
    let Some(_inside) = gate.enter_to_mark() else { return false };
    raise(foreign, 1);
    true
}

/// Release: everything stored before is in the image whenever this word is: the entries it covers and the words before
/// it.
fn raise(word: &AtomicU64, to: u64) {
    word.fetch_max(to, Release);
}
