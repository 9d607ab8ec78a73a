//! `rocksdb_snapshot_t`.

use spillway::internal::Snapshot;

use crate::boundary::{export, handles};

/// A state of the database, readable until this is released and its last reader ends.
pub struct SnapshotHandle(pub Snapshot);

handles!(SnapshotHandle);

export! {
    fn rocksdb_snapshot_get_sequence_number(snapshot: &SnapshotHandle) -> u64 {
        snapshot.0.seq().0
    }
}
