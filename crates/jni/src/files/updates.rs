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

pub mod logs {
    use super::*;
    use crate::boundary::reply::ArrayOf;

    static LOG_FILE: Class = Class::new(c"org/rocksdb/LogFile");
    static NEW_LOG_FILE: Method = Method::constructor(&LOG_FILE, c"(Ljava/lang/String;JBJJ)V");

    /// `WalFileType`.
    const ARCHIVED: i8 = 0;
    const ALIVE: i8 = 1;

    natives! { "RocksDB";
        /// Logs with records, by number, those in the archive included.
        "getSortedWalFiles" => fn(env, database: &Db) -> ArrayOf {
            let logs = database.db.log_files()?;
            let array = env.new_array(&LOG_FILE, logs.into_iter(), |log| {
                let name = log.path.file_name().unwrap_or_default().to_string_lossy();
                let dir = if log.is_archived { "/archive/" } else { "/" };
                let path = env.new_text(&format!("{dir}{name}"))?;
                let made = NEW_LOG_FILE.make(env, &[
                    Value::Object(path),
                    Value::Long(log.number.0 as i64),
                    Value::Byte(if log.is_archived { ARCHIVED } else { ALIVE }),
                    Value::Long(log.first.0 as i64),
                    Value::Long(log.bytes as i64),
                ])?;
                env.delete(path);
                Ok(Some(made))
            })?;
            Ok(array.into())
        }
    }
}
