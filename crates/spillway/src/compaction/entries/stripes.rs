//! Stripes of history, cut at the sequence numbers of reads.

use base::SeqNo;

use crate::cursor::snapshot::CapturedSnapshots;

/// The stripes of a job. A stripe's name is its newest number.
pub(super) struct Stripes {
    /// Snapshots below the visible number, ascending.
    snapshots: Vec<SeqNo>,
    visible: SeqNo,
    /// The newest number of the oldest stripe.
    oldest: SeqNo,
    visible_is_snapshot: bool,
}

impl Stripes {
    pub fn new(captured: &CapturedSnapshots) -> Self {
        let visible = captured.visible;
        let snapshots: Vec<SeqNo> = captured.snapshots.iter().copied().filter(|&seq| seq < visible).collect();
        Stripes {
            oldest: snapshots.first().copied().unwrap_or(visible),
            visible_is_snapshot: captured.snapshots.contains(&visible),
            snapshots,
            visible,
        }
    }

    /// The stripe of a number: the smallest snapshot or visible number at or above it. Above the visible number each
    /// number is its own stripe, since a snapshot may yet be taken there.
    #[inline]
    pub fn of(&self, seq: SeqNo) -> SeqNo {
        if seq <= self.oldest {
            return self.oldest;
        }
        if seq > self.visible {
            return seq;
        }
        let newer = self.snapshots.partition_point(|&snapshot| snapshot < seq);
        self.snapshots.get(newer).copied().unwrap_or(self.visible)
    }

    /// Whether the number is in the oldest stripe: no reader reads below it, so no older version is visible beside it.
    #[inline]
    pub fn in_oldest(&self, seq: SeqNo) -> bool {
        seq <= self.oldest
    }

    pub fn is_above_visible(&self, seq: SeqNo) -> bool {
        seq > self.visible
    }

    /// Whether only reads without a snapshot see this stripe.
    pub fn no_snapshot_sees(&self, stripe: SeqNo) -> bool {
        stripe == self.visible && !self.visible_is_snapshot
    }
}
