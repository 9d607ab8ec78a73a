//! Snapshots: sequence numbers that jobs must not forget versions for.
//!
//! A snapshot's number is read *inside* the list's lock. A job captures the list, and the visible number beside it,
//! under the same lock: every snapshot taken later has a number at or above the one captured (S1), so that a job which
//! keeps what the captured numbers see, and everything above them, keeps what any snapshot will see (F1).

use std::collections::BTreeMap;
use std::sync::Arc;

use base::SeqNo;
use parking_lot::Mutex;

/// The live snapshots of a database. A handle: clones share one list.
#[derive(Clone, Default)]
pub struct SnapshotList {
    live: Arc<Mutex<Live>>,
}

/// Snapshots by number, then by the order in which they were taken; the value is when, in seconds since the epoch.
#[derive(Default)]
struct Live {
    by_seq: BTreeMap<(SeqNo, u64), u64>,
    taken: u64,
}

/// What a job goes by: see the module's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedSnapshots {
    /// Numbers of live snapshots, ascending, each once.
    pub snapshots: Vec<SeqNo>,
    /// The visible number at the same instant: entries above it are passed on untouched.
    pub visible: SeqNo,
}

impl SnapshotList {
    /// Takes a snapshot of the number that `visible` yields, which is called under the list's lock.
    pub fn acquire(&self, now_s: u64, visible: impl FnOnce() -> SeqNo) -> Snapshot {
        let mut live = self.live.lock();
        let seq = visible();
        live.taken += 1;
        let id = (seq, live.taken);
        live.by_seq.insert(id, now_s);
        Snapshot { registration: Arc::new(Registration { list: self.clone(), id }) }
    }

    /// The live snapshots and the visible number, as of one instant; `visible` is called under the list's lock.
    pub fn capture(&self, visible: impl FnOnce() -> SeqNo) -> CapturedSnapshots {
        let live = self.live.lock();
        let mut snapshots: Vec<SeqNo> = live.by_seq.keys().map(|&(seq, _)| seq).collect();
        snapshots.dedup();
        CapturedSnapshots { snapshots, visible: visible() }
    }

    pub fn count(&self) -> usize {
        self.live.lock().by_seq.len()
    }

    /// The smallest number of a live snapshot, and when it was taken, in seconds since the epoch.
    pub fn oldest(&self) -> Option<(SeqNo, u64)> {
        self.live.lock().by_seq.first_key_value().map(|(&(seq, _), &taken_s)| (seq, taken_s))
    }
}

/// A state of the database that stays readable. Clones are one snapshot; it is released when the last is dropped.
#[derive(Clone)]
pub struct Snapshot {
    registration: Arc<Registration>,
}

struct Registration {
    list: SnapshotList,
    id: (SeqNo, u64),
}

impl Snapshot {
    /// Writes at or below this number are seen, later ones are not.
    pub fn seq(&self) -> SeqNo {
        self.registration.id.0
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.list.live.lock().by_seq.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_live_as_long_as_their_handles() {
        let list = SnapshotList::default();
        let early = list.acquire(100, || SeqNo(5));
        let twin = list.acquire(101, || SeqNo(5));
        let late = list.acquire(102, || SeqNo(9));
        let captured = list.capture(|| SeqNo(12));
        assert_eq!(captured, CapturedSnapshots { snapshots: vec![SeqNo(5), SeqNo(9)], visible: SeqNo(12) });
        assert_eq!((list.count(), list.oldest()), (3, Some((SeqNo(5), 100))));

        let clone = early.clone();
        drop(early);
        assert_eq!((clone.seq(), list.count()), (SeqNo(5), 3), "a clone holds the snapshot");
        drop(clone);
        assert_eq!(list.oldest(), Some((SeqNo(5), 101)));
        drop((twin, late));
        assert_eq!((list.count(), list.oldest()), (0, None));
    }
}
