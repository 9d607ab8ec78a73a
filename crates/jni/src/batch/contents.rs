//! What rocksdbjni's own tests ask of batches.

use std::fmt::Write;

use spillway::internal::ValueKind;

use super::Batch;
use crate::boundary::natives;

/// A batch as a memtable would show it: by key, of each key the newest change first, without deleted ranges.
fn shown(batch: &Batch) -> String {
    let records = batch.read(|batch| {
        let owned = batch.iter().flatten().map(|record| (record.kind, record.key.to_vec(), record.value.to_vec()));
        owned.collect::<Vec<_>>()
    });
    let numbered = (batch.seq..).zip(records).filter(|(_, (kind, ..))| *kind != ValueKind::RangeDeletion);
    let mut numbered: Vec<_> = numbered.collect();
    numbered.sort_by(|(one, (_, one_key, _)), (other, (_, other_key, _))| one_key.cmp(other_key).then(other.cmp(one)));
    let mut text = String::new();
    for (seq, (kind, key, value)) in numbered {
        let (key, value) = (String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
        let _infallible = match kind {
            ValueKind::Value => write!(text, "Put({key}, {value})@{seq}"),
            ValueKind::Merge => write!(text, "Merge({key}, {value})@{seq}"),
            ValueKind::SingleDeletion => write!(text, "SingleDelete({key})@{seq}"),
            ValueKind::Deletion | ValueKind::RangeDeletion => write!(text, "Delete({key})@{seq}"),
        };
    }
    text
}

/// `WriteBatchTest`.
pub mod test {
    use super::*;

    natives! { "WriteBatchTest";
        "getContents" => fn(_env, batch: &Batch) -> Vec<u8> {
            Ok(shown(batch).into_bytes())
        }
    }
}

/// Its `WriteBatchTestInternalHelper`.
pub mod helper {
    use super::*;

    natives! { "WriteBatchTestInternalHelper";
        "setSequence" => fn(_env, batch: &mut Batch, seq: i64) -> () {
            batch.seq = seq as u64;
            Ok(())
        }

        "sequence" => fn(_env, batch: &Batch) -> i64 {
            Ok(batch.seq as i64)
        }

        "append" => fn(_env, batch: &mut Batch, other: &Batch) -> () {
            let other = other.read(Clone::clone);
            other.iter().flatten().try_for_each(|record| batch.add(record.family, record.kind, record.key, record.value))
        }
    }
}
