//! How far a memtable is complete, as its image says at any instant: a line of words in the header that go on changing
//! while the memtable lives. They are not under a checksum; whoever relies on them relies on the machine not having been
//! booted since. Format: docs/format/image.md
//!
//! Each word only grows, and each is raised before those behind it. So whatever instant a crash leaves, the position found
//! was true of a number at or below the one found, and so is of that one too: it lies at or before the first write above.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use base::{Result, SeqNo};

use super::view::View;
use crate::arena::{Arena, IMAGE_HEADER_BYTES};
use crate::gate::Gate;

/// A line of its own: nothing else that changes lies beside it.
pub(super) const WATERMARK_AT: usize = 3072;
const COMPLETE_AT: usize = WATERMARK_AT;
const POSITION_AT: usize = WATERMARK_AT + 8;
const HANDED_OUT_AT: usize = WATERMARK_AT + 16;
const FOREIGN_AT: usize = WATERMARK_AT + 24;

const BEGUN_AT: usize = WATERMARK_AT + 32;

const _: () = assert!(WATERMARK_AT.is_multiple_of(64) && BEGUN_AT + 8 <= IMAGE_HEADER_BYTES);

/// What [`Memtable::mark`](crate::Memtable::mark) said last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermark {
    /// No write at or below this number is in the image; `None` where the memtable did not come into use.
    pub begins_after: Option<SeqNo>,
    /// Every write of the family above `begins_after`, up to this number, that was meant for this memtable is in the image.
    /// 0 where nothing was marked.
    pub complete_through: SeqNo,
    /// At or before the first write above `complete_through`; what the number means is the engine's.
    pub position: u64,
    /// Bytes handed out when it was marked: a hint at how much of the file is used. 0 where nothing was marked.
    pub handed_out_bytes: u64,
    /// Something of the family that belongs between is elsewhere: the image does not tell all.
    pub is_foreign: bool,
}

impl Watermark {
    pub(super) fn read(view: &View<'_>) -> Result<Watermark> {
        let word = |at: usize| view.u64(at as u64);
        Ok(Watermark {
            begins_after: word(BEGUN_AT)?.checked_sub(1).map(SeqNo),
            complete_through: SeqNo(word(COMPLETE_AT)?),
            position: word(POSITION_AT)?,
            handed_out_bytes: word(HANDED_OUT_AT)?,
            is_foreign: word(FOREIGN_AT)? != 0,
        })
    }
}

/// Raises the watermark; nothing without a header, or once sealed.
pub(crate) fn mark<const IMAGE: bool>(arena: &Arena<IMAGE>, gate: &Gate, complete_through: SeqNo, position: u64) {
    let (Some(complete), Some(at), Some(handed_out)) =
        (arena.header_word(COMPLETE_AT), arena.header_word(POSITION_AT), arena.header_word(HANDED_OUT_AT))
    else {
        return;
    };
    // Looked at first, so that who has nothing to say leaves the line to others.
    if complete.load(Relaxed) >= complete_through.0 && at.load(Relaxed) >= position {
        return;
    }
    let Some(_inside) = gate.enter_to_mark() else { return };
    raise(complete, complete_through.0);
    raise(at, position);
    raise(handed_out, arena.allocated() as u64);
}

/// Says after which number the image begins; nothing without a header, or once sealed.
pub(crate) fn begin_after<const IMAGE: bool>(arena: &Arena<IMAGE>, gate: &Gate, created_at: SeqNo) {
    let Some(begun) = arena.header_word(BEGUN_AT) else { return };
    let Some(_inside) = gate.enter_to_mark() else { return };
    raise(begun, created_at.0 + 1);
}

/// Says that the image does not tell all; false where it cannot: without a header, or once sealed.
pub(crate) fn mark_foreign<const IMAGE: bool>(arena: &Arena<IMAGE>, gate: &Gate) -> bool {
    let Some(foreign) = arena.header_word(FOREIGN_AT) else { return false };
    let Some(_inside) = gate.enter_to_mark() else { return false };
    raise(foreign, 1);
    true
}

/// Release: what was stored before is in the image whenever this is, the entries that it speaks of and the words before it.
fn raise(word: &AtomicU64, to: u64) {
    word.fetch_max(to, Release);
}
