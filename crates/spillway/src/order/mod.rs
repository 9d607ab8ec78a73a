//! The order of sequence numbers: the commit pipeline, range latches, stalls. Keeps S1-S3, C2-C4.

pub(crate) mod latch;
pub mod pipeline;
pub mod stall;
pub(crate) mod sync;

use base::SeqNo;

use crate::order::pipeline::LogPosition;

/// Sequence numbers of a commit, and the end of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeqRange {
    /// Last number before the commit.
    pub before: SeqNo,
    pub last: SeqNo,
    /// End of the record in the WAL; 0 without a record.
    pub log_end: LogPosition,
}
