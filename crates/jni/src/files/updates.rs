//! `TransactionLogIterator`: changes out of the WAL, in their order.

use capi::updates::LogIterator;

use crate::batch::Batch;
use crate::boundary::argument::Closed;
use crate::boundary::class::{Class, Method};
use crate::boundary::object::Value;
use crate::boundary::reply::Made;
use crate::boundary::{handle, natives};
use crate::database::Db;
use crate::fault::Fault;

static BATCH_RESULT: Class = Class::new(c"org/rocksdb/TransactionLogIterator$BatchResult");
static NEW_BATCH_RESULT: Method = Method::constructor(&BATCH_RESULT, c"(JJ)V");

natives! { "TransactionLogIterator";
    "isValid" => fn(_env, updates: &LogIterator) -> bool {
        Ok(updates.batch().is_some())
    }

    "next" => fn(_env, updates: &mut LogIterator) -> () {
        updates.advance();
        Ok(())
    }

    "status" => fn(_env, updates: &LogIterator) -> () {
        Ok(updates.status()?)
    }

    /// A copy of the batch, which Java closes.
    "getBatch" => fn(env, updates: &LogIterator) -> Made {
        let update = updates.batch().ok_or_else(|| Fault::State("the iterator is at no batch".to_owned()))?;
        let seq = update.sequence_number();
        let batch = handle::open(Batch::logged(update.as_bytes().to_vec(), seq));
        let result = NEW_BATCH_RESULT.make(env, &[Value::Long(seq.0 as i64), Value::Long(batch)]);
        Ok(result.inspect_err(|_| drop(handle::close::<Batch>(batch)))?.into())
    }

    "disposeInternal" | "disposeInternalJni" => fn(_env, updates: Closed<LogIterator>) -> () {
        drop(updates.0);
        Ok(())
    }
}

pub mod made {
    use super::*;

    natives! { "RocksDB";
        "getUpdatesSince" => fn(_env, database: &Db, number: i64) -> Box<LogIterator> {
            let number = u64::try_from(number).map_err(|_| Fault::illegal("a sequence number is negative"))?;
            Ok(database.updates_since(number)?)
        }
    }
}
