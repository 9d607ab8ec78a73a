//! Takes out of a secondary's memory what tables hold by now. Keeps Q1; an entry is never in memory and in a table, or a
//! merge would take its operand twice.
//!
//! The primary's memtables end elsewhere than ours. What a memtable has above T goes to a memtable of its own: readers
//! may still use the old one.

use std::sync::Arc;

use base::key::ParsedKey;
use base::{Error, Result, SeqNo, ValueKind};
use memtable::{Entry, Memtable};

use crate::core::FamilyState;
use crate::core::context::Context;
use crate::queue::flushable::{Flushable, QueuedMemtable};

/// Drops everything through T, `through`, and linked ingests.
pub(super) fn trim(through: SeqNo, context: &Context, family: &mut FamilyState) -> Result<()> {
    let mut queue = Vec::with_capacity(family.queue.len());
    for entry in &family.queue {
        let (created_at, largest) = (entry.created_at(), entry.largest_seq().unwrap_or(SeqNo::MAX));
        let is_in_tables = match entry.as_ingest() {
            Some(_) => family.has_linked(SeqNo(created_at.0 + 1), largest),
            None => largest <= through,
        };
        match entry.as_memtable() {
            _ if is_in_tables => {}
            Some(memtable) if created_at < through => {
                let rest = above(through, memtable, context, family)?;
                rest.seal_at(largest, 0, None);
                queue.push(rest as Arc<dyn Flushable>);
            }
            _ => queue.push(entry.clone()),
        }
    }
    if family.mutable.is_unused() {
        family.mutable.advance_empty_to(through);
    } else if family.mutable.created_at() < through {
        family.mutable = above(through, family.mutable.memtable(), context, family)?;
    }
    family.queue = queue;
    Ok(())
}

/// A memtable of the entries above `through`.
fn above(
    through: SeqNo,
    old: &Arc<dyn Memtable>,
    context: &Context,
    family: &FamilyState,
) -> Result<Arc<QueuedMemtable>> {
    let rest = context.queue_memtable(family.family.create_memtable(old.reserved_bytes())?);
    rest.begin_after(through);
    let mut cursor = old.clone().cursor();
    let mut is_there = cursor.seek_to_first();
    while is_there {
        let key =
            ParsedKey::parse(cursor.key()).ok_or_else(|| Error::corruption("a memtable holds a malformed key"))?;
        if key.seq > through {
            let entry = Entry { user_key: key.user_key, seq: key.seq, kind: key.kind, value: cursor.value() };
            insert(entry, &rest)?;
        }
        is_there = cursor.next();
    }
    cursor.status()?;
    for fragment in old.tombstones().iter().flat_map(|tombstones| tombstones.fragments()) {
        for &seq in fragment.seqs.iter().filter(|seq| **seq > through) {
            let (user_key, value) = (&fragment.start[..], &fragment.end[..]);
            insert(Entry { user_key, seq, kind: ValueKind::RangeDeletion, value }, &rest)?;
        }
    }
    Ok(rest)
}

fn insert(entry: Entry<'_>, memtable: &QueuedMemtable) -> Result<()> {
    let need = memtable.room_for(1, entry.user_key.len() + entry.value.len());
    if !memtable.memtable().try_reserve(need) {
        return Err(Error::invalid_argument("the rest of a memtable fits into none that can be made"));
    }
    memtable.insert_all(&mut std::iter::once(entry), None);
    Ok(())
}
