//! Excises deferred until older snapshots are released: see [`crate::ingest`]'s `late`.

use base::FileNumber;
use base::tombstone::RangeTombstone;

use crate::cursor::snapshot::CapturedSnapshots;

#[derive(Clone, Debug)]
pub(crate) struct LateExcise {
    pub tombstone: RangeTombstone,
    /// The table holding only the tombstone.
    pub table: FileNumber,
}

impl LateExcise {
    /// Whether every present and future reader sees the excise.
    pub fn is_due(&self, CapturedSnapshots { snapshots, visible }: &CapturedSnapshots) -> bool {
        let seq = self.tombstone.seq;
        *visible >= seq && snapshots.first().is_none_or(|oldest| *oldest >= seq)
    }
}
