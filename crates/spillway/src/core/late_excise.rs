//! Excises that wait for snapshots to go: see [`crate::ingest`]'s `late`.

use base::FileNumber;
use base::tombstone::RangeTombstone;

use crate::read::snapshot::CapturedSnapshots;

#[derive(Clone, Debug)]
pub(crate) struct LateExcise {
    pub tombstone: RangeTombstone,
    /// The table that holds it, and nothing else.
    pub table: FileNumber,
}

impl LateExcise {
    /// Whether everybody sees the excise, now and later.
    pub fn is_due(&self, CapturedSnapshots { snapshots, visible }: &CapturedSnapshots) -> bool {
        let seq = self.tombstone.seq;
        *visible >= seq && snapshots.first().is_none_or(|oldest| *oldest >= seq)
    }
}
