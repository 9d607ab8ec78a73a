//! `WBWIRocksIterator`: the entries of a batch with an index, alone.

use spillway::internal::ValueKind;
use spillway::internal::indexed::{Entries, Move};

use capi::failure::Failure;
use capi::snapshot::SnapshotHandle;

use crate::boundary::argument::{Bytes, Closed, Direct, Head};
use crate::boundary::{handle, natives};
use crate::fault::Fault;
use crate::objects::slice::Slice;

/// An iterator.
pub struct BatchWalk {
    entries: Entries,
}

impl BatchWalk {
    pub fn new(entries: Entries) -> BatchWalk {
        BatchWalk { entries }
    }
}

/// Java's `WriteType` of a change.
fn write_type(kind: ValueKind) -> i64 {
    match kind {
        ValueKind::Value => 0,
        ValueKind::Merge => 1,
        ValueKind::Deletion => 2,
        ValueKind::SingleDeletion => 3,
        ValueKind::RangeDeletion => 4,
    }
}

fn no_refresh() -> Fault {
    Failure::not_implemented("Refresh() is not supported").into()
}

natives! { "WBWIRocksIterator";
    "disposeInternal" | "disposeInternalJni" => fn(_env, walk: Closed<BatchWalk>) -> () {
        drop(walk.0);
        Ok(())
    }

    "isValid0" | "isValid0Jni" => fn(_env, walk: &BatchWalk) -> bool {
        Ok(walk.entries.valid())
    }

    "seekToFirst0" | "seekToFirst0Jni" => fn(_env, walk: &mut BatchWalk) -> () {
        walk.entries.go(Move::First);
        Ok(())
    }

    "seekToLast0" | "seekToLast0Jni" => fn(_env, walk: &mut BatchWalk) -> () {
        walk.entries.go(Move::Last);
        Ok(())
    }

    "next0" | "next0Jni" => fn(_env, walk: &mut BatchWalk) -> () {
        walk.entries.go(Move::Next);
        Ok(())
    }

    "prev0" | "prev0Jni" => fn(_env, walk: &mut BatchWalk) -> () {
        walk.entries.go(Move::Prev);
        Ok(())
    }

    "seek0" | "seek0Jni" => fn(_env, walk: &mut BatchWalk, key[len]: Head) -> () {
        walk.entries.go(Move::To(&key));
        Ok(())
    }

    "seekForPrev0" | "seekForPrev0Jni" => fn(_env, walk: &mut BatchWalk, key[len]: Head) -> () {
        walk.entries.go(Move::ToOrBefore(&key));
        Ok(())
    }

    "seekByteArray0" | "seekByteArray0Jni" => fn(_env, walk: &mut BatchWalk, key[offset, len]: Bytes) -> () {
        walk.entries.go(Move::To(&key));
        Ok(())
    }

    "seekForPrevByteArray0" | "seekForPrevByteArray0Jni" =>
    fn(_env, walk: &mut BatchWalk, key[offset, len]: Bytes) -> () {
        walk.entries.go(Move::ToOrBefore(&key));
        Ok(())
    }

    "seekDirect0" | "seekDirect0Jni" => fn(_env, walk: &mut BatchWalk, key[offset, len]: Direct<'_>) -> () {
        walk.entries.go(Move::To(&key));
        Ok(())
    }

    "seekForPrevDirect0" | "seekForPrevDirect0Jni" =>
    fn(_env, walk: &mut BatchWalk, key[offset, len]: Direct<'_>) -> () {
        walk.entries.go(Move::ToOrBefore(&key));
        Ok(())
    }

    /// The kind of change, and slices of key and value, which Java closes. A deletion has no value.
    "entry1" => fn(_env, walk: &BatchWalk) -> Vec<i64> {
        let kind = walk.entries.kind().ok_or_else(|| Fault::State("the iterator is at no entry".to_owned()))?;
        let has_value = !matches!(kind, ValueKind::Deletion | ValueKind::SingleDeletion);
        let key = handle::open(Slice::new(walk.entries.key().to_vec()));
        let value = if has_value { handle::open(Slice::new(walk.entries.value().to_vec())) } else { 0 };
        Ok(vec![write_type(kind), key, value])
    }

    /// A walk in memory has no errors.
    "status0" | "status0Jni" => fn(_env, _walk: &BatchWalk) -> () {
        Ok(())
    }

    "refresh1" => fn(_env, _walk: &BatchWalk, _snapshot: Option<&SnapshotHandle>) -> () {
        Err(no_refresh())
    }
}
