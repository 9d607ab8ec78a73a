//! History cut at the numbers that readers read at.

use base::SeqNo;

use crate::read::snapshot::CapturedSnapshots;

/// The stripes of a job. A stripe is named by its newest number.
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

    /// The stripe of a number: the smallest number at or above it that a reader reads at. Above the visible number any
    /// may become one.
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

    /// No reader reads at a number below, so that nothing older is seen beside it.
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
