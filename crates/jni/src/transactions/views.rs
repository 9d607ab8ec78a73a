//! Parts of a transaction that Java knows by handles of their own, and does not close.

use capi::indexed_batch::IndexedBatch;
use capi::snapshot::SnapshotHandle;
use capi::write_options::WriteSettings;
use spillway::internal::SeqNo;

use crate::batch::Batch;
use crate::batch::indexed::Indexed;
use crate::boundary::handle::{self, Held};

/// A handle closed with its owner.
struct View<T: Held> {
    handle: i64,
    of: std::marker::PhantomData<T>,
}

impl<T: Held> View<T> {
    fn new(object: Box<T>) -> View<T> {
        View { handle: handle::open(object), of: std::marker::PhantomData }
    }
}

impl<T: Held> Drop for View<T> {
    fn drop(&mut self) {
        drop(handle::close::<T>(self.handle));
    }
}

/// The views of a transaction, made once they are asked for.
#[derive(Default)]
pub struct Views {
    changes: Option<View<Indexed>>,
    /// What a two-phase commit adds. The commit refuses it.
    at_commit: Option<View<Batch>>,
    write_options: Option<View<WriteSettings>>,
    snapshot: Option<(SeqNo, View<SnapshotHandle>)>,
}

impl Views {
    pub fn changes(&mut self, batch: impl FnOnce() -> Box<IndexedBatch>) -> i64 {
        self.changes.get_or_insert_with(|| View::new(Indexed::new(batch()))).handle
    }

    pub fn at_commit(&mut self) -> i64 {
        self.at_commit.get_or_insert_with(|| View::new(Box::default())).handle
    }

    /// The batch added at the commit, if it was asked for.
    pub fn at_commit_handle(&self) -> Option<i64> {
        self.at_commit.as_ref().map(|view| view.handle)
    }

    /// Each call gives another object, as in RocksDB.
    pub fn write_options(&mut self, options: WriteSettings) -> i64 {
        self.write_options.insert(View::new(Box::new(options))).handle
    }

    /// The handle of this snapshot, and the end of another one's; 0 for none.
    pub fn snapshot(&mut self, now: Option<(SeqNo, SnapshotHandle)>) -> i64 {
        let Some((seq, snapshot)) = now else {
            self.snapshot = None;
            return 0;
        };
        self.snapshot.take_if(|(shown, _)| *shown != seq);
        self.snapshot.get_or_insert_with(|| (seq, View::new(Box::new(snapshot)))).1.handle
    }
}
