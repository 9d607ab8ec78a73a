//! Snapshots: sequence numbers whose visible versions jobs must keep.
//!
//! A snapshot's number is read *inside* the list's lock. A job captures the list and the visible number under the same
//! lock, so every later snapshot has a number at or above the captured visible number (S1). A job keeps the versions
//! visible at captured numbers and all versions above the visible number. So it keeps every version visible to any
//! snapshot, present or later (F1).

use std::collections::BTreeMap;
use std::sync::Arc;

use base::SeqNo;
use parking_lot::Mutex;
use vfs::Origin;

/// The live snapshots of a database. A handle: clones share one list.
#[derive(Clone, Default)]
pub struct SnapshotList {
    origin: Origin,
    live: Arc<Mutex<Live>>,
}

/// Snapshots by number, then by order of creation. The value is the creation time, in seconds since the epoch.
#[derive(Default)]
struct Live {
    by_seq: BTreeMap<(SeqNo, u64), u64>,
    taken: u64,
    /// Tasks to run once no snapshot older than the number is live.
    waiting: Vec<(SeqNo, Task)>,
}

type Task = Box<dyn FnOnce() + Send>;

impl Live {
    fn is_past(&self, seq: SeqNo) -> bool {
        self.by_seq.first_key_value().is_none_or(|(&(oldest, _), _)| oldest >= seq)
    }
}

/// Snapshots captured for a job: see the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedSnapshots {
    /// Numbers of live snapshots, ascending, each once.
    pub snapshots: Vec<SeqNo>,
    /// The visible number at the same instant. Jobs pass entries above it on untouched.
    pub visible: SeqNo,
}

impl SnapshotList {
    /// Takes a snapshot of the number returned by `visible`, called under the list's lock. In a forked child nothing can be
    /// read by it.
    pub fn acquire(&self, now_s: u64, visible: impl FnOnce() -> SeqNo) -> Snapshot {
        if !self.origin.is_here() {
            return Snapshot { registration: Arc::new(Registration { list: self.clone(), id: (visible(), 0) }) };
        }
        let mut live = self.live.lock();
        let seq = visible();
        live.taken += 1;
        let id = (seq, live.taken);
        live.by_seq.insert(id, now_s);
        Snapshot { registration: Arc::new(Registration { list: self.clone(), id }) }
    }

    /// Returns the live snapshots and the visible number at one instant. `visible` is called under the list's lock.
    pub fn capture(&self, visible: impl FnOnce() -> SeqNo) -> CapturedSnapshots {
        let live = self.live.lock();
        let mut snapshots: Vec<SeqNo> = live.by_seq.keys().map(|&(seq, _)| seq).collect();
        snapshots.dedup();
        CapturedSnapshots { snapshots, visible: visible() }
    }

    /// Whether the snapshot belongs to this database.
    pub fn has(&self, snapshot: &Snapshot) -> bool {
        Arc::ptr_eq(&self.live, &snapshot.registration.list.live)
    }

    pub fn count(&self) -> usize {
        self.live.lock().by_seq.len()
    }

    /// Runs `task` once no live snapshot is older than `seq`: at once, or on the thread releasing the last older one.
    /// Runs off the list's lock.
    pub fn when_past(&self, seq: SeqNo, task: impl FnOnce() + Send + 'static) {
        let mut live = self.live.lock();
        if !live.is_past(seq) {
            live.waiting.push((seq, Box::new(task)));
            return;
        }
        drop(live);
        task();
    }

    /// The live snapshots, by number: their numbers and creation times in seconds since the epoch.
    pub fn all(&self) -> Vec<(SeqNo, u64)> {
        self.live.lock().by_seq.iter().map(|(&(seq, _), &taken_s)| (seq, taken_s)).collect()
    }

    /// The smallest number of a live snapshot, and its creation time in seconds since the epoch.
    pub fn oldest(&self) -> Option<(SeqNo, u64)> {
        self.live.lock().by_seq.first_key_value().map(|(&(seq, _), &taken_s)| (seq, taken_s))
    }
}

/// A state of the database that stays readable. Clones share one snapshot, released when the last clone is dropped.
#[derive(Clone)]
pub struct Snapshot {
    registration: Arc<Registration>,
}

struct Registration {
    list: SnapshotList,
    id: (SeqNo, u64),
}

impl Snapshot {
    /// Writes at or below this number are visible, later writes are not.
    pub fn seq(&self) -> SeqNo {
        self.registration.id.0
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.list.origin.is_here() {
            return;
        }
        let mut live = self.list.live.lock();
        let was_oldest = live.by_seq.first_key_value().is_some_and(|(oldest, _)| *oldest == self.id);
        live.by_seq.remove(&self.id);
        if !was_oldest || live.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut live.waiting);
        let (due, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(seq, _)| live.is_past(*seq));
        live.waiting = later;
        drop(live);
        due.into_iter().for_each(|(_, task)| task());
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

    #[test]
    fn what_waits_for_older_snapshots_runs_when_the_last_is_released() {
        let list = SnapshotList::default();
        let ran = Arc::new(Mutex::new(Vec::new()));
        let wait = |seq| {
            let (ran, list) = (ran.clone(), list.clone());
            list.clone().when_past(SeqNo(seq), move || ran.lock().push((seq, list.count())));
        };
        let snapshots = [5, 7, 9].map(|seq| list.acquire(100, || SeqNo(seq)));
        [8, 6, 5].into_iter().for_each(wait);
        assert_eq!(*ran.lock(), [(5, 3)], "none is older");
        let [five, seven, nine] = snapshots;
        drop(seven);
        assert_eq!(ran.lock().len(), 1);
        drop(five);
        assert_eq!(ran.lock()[1..], [(8, 1), (6, 1)]);
        drop(nine);
        assert_eq!(ran.lock().len(), 3, "each once");
    }
}
