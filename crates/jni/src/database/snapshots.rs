//! `Snapshot`: made and released by its database.

use capi::snapshot::SnapshotHandle;

use super::Db;
use crate::boundary::natives;

natives! { "RocksDB";
    /// Released by the database's close at the latest.
    "getSnapshot" => fn(_env, database: &Db) -> i64 {
        Ok(database.children().adopt(Box::new(SnapshotHandle::Own(database.db.snapshot()))))
    }

    "releaseSnapshot" => fn(_env, database: &Db, snapshot: i64) -> () {
        database.children().release::<SnapshotHandle>(snapshot);
        Ok(())
    }
}

pub mod numbers {
    use super::*;

    natives! { "Snapshot";
        "getSequenceNumber" => fn(_env, snapshot: &SnapshotHandle) -> i64 {
            Ok(snapshot.snapshot().seq().0 as i64)
        }
    }
}
