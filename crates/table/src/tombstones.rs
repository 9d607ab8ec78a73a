//! A table's range tombstones as a block, in every kind of table. Format: docs/format/table.md, "Range tombstones".

use std::sync::Arc;

use base::tombstone::{FragmentedTombstones, RangeTombstone};
use base::{Error, ParsedKey, Result, SeqNo, UserOrder, ValueKind, key};

use crate::block::{Block, BlockBuilder, GlobalSeq, walk};

/// The block's contents.
pub(crate) fn encode(order: &UserOrder, tombstones: &mut [RangeTombstone]) -> Vec<u8> {
    tombstones.sort_by(|a, b| order.compare(&a.start, &b.start).then(b.seq.cmp(&a.seq)));
    let mut block = BlockBuilder::new(1);
    for RangeTombstone { start, end, seq } in tombstones {
        block.add(&key::encode(start, *seq, ValueKind::RangeDeletion), end);
    }
    block.finish().to_vec()
}

/// The tombstones of a block; `None` if none deletes anything.
///
/// # Errors
/// `Corruption`.
pub(crate) fn decode(block: &Block, global: GlobalSeq, order: &UserOrder) -> Result<Option<Arc<FragmentedTombstones>>> {
    let mut all = Vec::new();
    walk(block, &mut |key, end| {
        let entry = ParsedKey::parse(key).filter(|entry| entry.kind == ValueKind::RangeDeletion);
        let entry = entry.ok_or_else(|| Error::corruption("a range tombstone's key is malformed"))?;
        all.push(RangeTombstone {
            start: entry.user_key.to_vec(),
            end: block.bytes().get(end).unwrap_or_default().to_vec(),
            seq: SeqNo(global.trailer(key::pack_trailer(entry.seq, entry.kind as u8)) >> 8),
        });
        Ok(())
    })?;
    let fragmented = FragmentedTombstones::build(order.clone(), all);
    Ok((!fragmented.is_empty()).then(|| Arc::new(fragmented)))
}

/// Memory of the tombstones, in bytes.
pub(crate) fn memory_bytes(tombstones: &FragmentedTombstones) -> usize {
    tombstones.fragments().iter().map(|f| f.start.len() + f.end.len() + f.seqs.len() * 8 + 72).sum()
}
