//! `rocksdb_snapshot_t`.

use spillway::internal::Snapshot;

use crate::boundary::{export, handles};
use crate::lent::Lender;

/// A state of the database, readable until this is released and its last reader ends.
pub enum SnapshotHandle {
    Own(Snapshot),
    /// A transaction's, by its number in [`LENT`].
    Lent(u64),
}

handles!(SnapshotHandle);

pub static LENT: Lender<Snapshot> = Lender::new();

impl SnapshotHandle {
    pub fn snapshot(&self) -> Snapshot {
        match self {
            SnapshotHandle::Own(snapshot) => snapshot.clone(),
            SnapshotHandle::Lent(number) => LENT.get(*number, "the snapshot"),
        }
    }
}

export! {
    fn rocksdb_snapshot_get_sequence_number(snapshot: &SnapshotHandle) -> u64 {
        snapshot.snapshot().seq().0
    }
}
