//! What `WriteBatch` alone has: bytes, contents, and the iteration.

use spillway::internal::ValueKind;

use super::handler::Handler;
use super::{Batch, WalEnd, content_bit};
use crate::boundary::argument::Head;
use crate::boundary::class::{Class, Method};
use crate::boundary::natives;
use crate::boundary::object::Value;
use crate::boundary::reply::Made;

static SAVE_POINT: Class = Class::new(c"org/rocksdb/WriteBatch$SavePoint");
static NEW_SAVE_POINT: Method = Method::constructor(&SAVE_POINT, c"(JJJ)V");

impl Batch {
    fn has(&self, kind: ValueKind) -> bool {
        self.contents() & content_bit(kind) != 0
    }
}

natives! { "WriteBatch";
    /// Batches grow as they need.
    "newWriteBatch__I" => fn(_env, _reserved_bytes: i32) -> Box<Batch> {
        Ok(Box::default())
    }

    /// From a batch's bytes. If they are malformed, writing the batch fails.
    "newWriteBatch___3BI" => fn(_env, bytes[len]: Head) -> Box<Batch> {
        Ok(Batch::of_bytes(bytes.to_vec()))
    }

    "iterate" => fn(env, batch: &Batch, handler: &Handler) -> () {
        batch.written(|batch| handler.show(env, batch))
    }

    "data" => fn(_env, batch: &Batch) -> Vec<u8> {
        Ok(batch.encoded())
    }

    "getDataSize" => fn(_env, batch: &Batch) -> i64 {
        Ok(batch.read(|batch| batch.len() as i64))
    }

    "hasPut" => fn(_env, batch: &Batch) -> bool {
        Ok(batch.has(ValueKind::Value))
    }

    "hasDelete" => fn(_env, batch: &Batch) -> bool {
        Ok(batch.has(ValueKind::Deletion))
    }

    "hasSingleDelete" => fn(_env, batch: &Batch) -> bool {
        Ok(batch.has(ValueKind::SingleDeletion))
    }

    "hasDeleteRange" => fn(_env, batch: &Batch) -> bool {
        Ok(batch.has(ValueKind::RangeDeletion))
    }

    "hasMerge" => fn(_env, batch: &Batch) -> bool {
        Ok(batch.has(ValueKind::Merge))
    }

    /// Marks of a prepare and its end are not in batches.
    "hasBeginPrepare" => fn(_env, _batch: &Batch) -> bool {
        Ok(false)
    }

    "hasEndPrepare" => fn(_env, _batch: &Batch) -> bool {
        Ok(false)
    }

    "hasCommit" => fn(_env, _batch: &Batch) -> bool {
        Ok(false)
    }

    "hasRollback" => fn(_env, _batch: &Batch) -> bool {
        Ok(false)
    }

    /// Later changes need no log. They are logged all the same.
    "markWalTerminationPoint" => fn(_env, batch: &mut Batch) -> () {
        let (bytes, count) = batch.read(|batch| (batch.len() as u64, batch.count()));
        batch.wal_end = WalEnd { bytes, count, contents: batch.contents() };
        Ok(())
    }

    "getWalTerminationPoint" => fn(env, batch: &Batch) -> Made {
        let WalEnd { bytes, count, contents } = batch.wal_end;
        let numbers = [Value::Long(bytes as i64), Value::Long(count.into()), Value::Long(contents.into())];
        Ok(NEW_SAVE_POINT.make(env, &numbers)?.into())
    }
}
