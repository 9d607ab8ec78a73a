//! Numbers, a place in the pipeline and space in the log: taken together, under the commit lock.

use std::sync::Arc;

use base::{Error, Result};
use log::Reservation;

use crate::core::{CommitState, Core};
use crate::write::given::Given;
use crate::write::logs::ActiveLog;
use crate::write::pipeline::{KeyBounds, Ticket};

/// Space for a record.
pub(crate) type InLog = (Arc<ActiveLog>, Reservation);

/// What a change took.
pub(crate) struct Taken {
    pub given: Given,
    pub ticket: Ticket,
    /// `None` where it has no record.
    pub space: Option<InLog>,
}

/// Why a change cannot take numbers just now. Nothing was taken.
pub(crate) enum Full {
    Pipeline,
    Log(Arc<ActiveLog>),
}

impl Core {
    /// Takes so many numbers, and space for a record of so many bytes where there is one. O(1) (C3).
    #[inline(never)]
    pub(crate) fn take_numbers(
        &self,
        commit: &mut CommitState,
        count: u64,
        record_bytes: Option<usize>,
        bounds: &[KeyBounds],
    ) -> Result<Result<Taken, Full>> {
        if !self.pipeline.has_room() {
            return Ok(Err(Full::Pipeline));
        }
        let exhausted = || Error::read_only("the database has used up its 2^56 sequence numbers");
        let before = commit.last_seq;
        let last = before.checked_add(count).ok_or_else(exhausted)?;
        let log = commit.log.as_ref().ok_or_else(|| Error::closed("the database has no log: it is closed"))?;
        // The last step that can fail: space that is reserved is filled.
        let space = match record_bytes.map(|bytes| log.file.try_reserve(bytes)) {
            None => None,
            Some(Some(reservation)) => Some((log.clone(), reservation)),
            Some(None) => return Ok(Err(Full::Log(log.clone()))),
        };
        assert!(last > before, "sequence numbers only grow (S1, S3)");
        commit.last_seq = last;
        let log_end = space.as_ref().map_or(0, |(log, reservation)| log.position(reservation));
        let ticket = self.pipeline.enter(last, log_end, bounds);
        Ok(Ok(Taken { given: Given { before, last, log_end }, ticket, space }))
    }
}
