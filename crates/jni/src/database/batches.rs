//! Writing batches.

use capi::write_options::WriteSettings;

use super::Db;
use crate::batch::Batch;
use crate::batch::indexed::Indexed;
use crate::boundary::natives;

natives! { "RocksDB";
    "write0" => fn(_env, database: &Db, options: &WriteSettings, batch: &Batch) -> () {
        batch.written(|batch| Ok(database.write(batch, options)?))
    }

    "write1" => fn(_env, database: &Db, options: &WriteSettings, batch: &Indexed) -> () {
        batch.read(|batch| Ok(database.write(batch, options)?))
    }
}
