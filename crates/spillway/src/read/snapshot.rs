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
    /// What waits for all snapshots older than a number to go.
    waiting: Vec<(SeqNo, Task)>,
}

type Task = Box<dyn FnOnce() + Send>;

impl Live {
    fn is_past(&self, seq: SeqNo) -> bool {
        self.by_seq.first_key_value().is_none_or(|(&(oldest, _), _)| oldest >= seq)
    }
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

    /// Whether the snapshot was taken of this database.
    pub fn has(&self, snapshot: &Snapshot) -> bool {
        Arc::ptr_eq(&self.live, &snapshot.registration.list.live)
    }

    pub fn count(&self) -> usize {
        self.live.lock().by_seq.len()
    }

    /// Has `task` run once no live snapshot is older than `seq`, by whoever releases the last, off the list's lock.
    pub fn when_past(&self, seq: SeqNo, task: impl FnOnce() + Send + 'static) {
        let mut live = self.live.lock();
        if !live.is_past(seq) {
            live.waiting.push((seq, Box::new(task)));
            return;
        }
        drop(live);
        task();
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
