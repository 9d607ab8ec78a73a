//! Making and releasing snapshots.

use super::Database;
use crate::boundary::export;
use crate::snapshot::SnapshotHandle;

export! {
    fn rocksdb_create_snapshot(database: &Database) -> Box<SnapshotHandle> {
        Box::new(SnapshotHandle::Own(database.db.snapshot()))
    }

    fn rocksdb_release_snapshot(_database: &Database, snapshot: Option<Box<SnapshotHandle>>) {
        drop(snapshot);
    }
}
