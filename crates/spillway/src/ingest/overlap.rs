//! For ingests giving levels at once: everything in memory overlapping the tables is flushed first, while overlapping
//! writes are kept out. The tables then share no key with older queue entries, so they can leave the queue before them
//! (Q1).

use std::sync::Arc;

use base::{Error, ErrorKind, Result, SeqNo};

use super::options::{IngestMode, IngestOptions};
use crate::commit::admission::Waiter;
use crate::commit::flushables::NewFlushable;
use crate::commit::overlap::Coverage;
use crate::core::family::Family;
use crate::core::space::Needs;
use crate::ingest::commit::Ingester;
use crate::order::latch::{LatchGuard, Reach};
use crate::queue::flushable::Flushable;

/// Most flushes `FlushFirst` waits for with the gate open, before it flushes with the gate closed.
const FLUSHES_OUTSIDE_MAX: usize = 3;

/// Latch over an ingest's keys, and the flushes needed before.
pub(super) struct Cleared<'a> {
    pub latch: LatchGuard<'a>,
    pub flushes: Flushes,
}

/// Flushes an ingest waited for: `outside` while overlapping writes went on, `inside` while they were kept out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flushes {
    pub outside: usize,
    pub inside: usize,
}

/// A queue entry or mutable memtable overlapping the ingest. It must be flushed first.
struct Overlap {
    family: Arc<Family>,
    entry: Arc<dyn Flushable>,
    is_mutable: bool,
}

impl Ingester {
    /// Flushes everything in memory overlapping `covered`. The returned latch keeps writers from the keys of
    /// `flushables`, so nothing new overlaps until its drop.
    ///
    /// # Errors
    /// `InvalidArgument`: a flush or a sequence number is needed, and the options forbid it. `Busy`: it would wait, and
    /// `no_slowdown` is set. `Closed`, `ReadOnly`.
    pub(super) fn flush_overlapping(
        &self,
        flushables: &[NewFlushable],
        covered: &[(Arc<Family>, Coverage)],
        options: &IngestOptions,
    ) -> Result<Cleared<'_>> {
        let outside_max = match options.mode {
            IngestMode::Blocking => 0,
            IngestMode::FlushFirst => FLUSHES_OUTSIDE_MAX,
            IngestMode::Flushable | IngestMode::Direct => 1,
        };
        let mut flushes = Flushes::default();
        let mut latch = self.exclude_others(flushables, options)?;
        loop {
            let met = self.met_in_memory(covered)?;
            if met.is_empty() {
                return Ok(Cleared { latch, flushes });
            }
            check_may_flush(options.allow_global_seqno, options.no_slowdown)?;
            if flushes.outside < outside_max {
                drop(latch);
                flushes.outside += 1;
                self.flush_met(&met)?;
                latch = self.exclude_others(flushables, options)?;
            } else {
                check_may_block(options.allow_blocking_flush)?;
                flushes.inside += 1;
                self.flush_met(&met)?;
            }
        }
    }

    /// Closes the gate for all writers (`Blocking`, `FlushFirst`), or latches the touched keys.
    fn exclude_others(&self, flushables: &[NewFlushable], options: &IngestOptions) -> Result<LatchGuard<'_>> {
        if matches!(options.mode, IngestMode::Blocking | IngestMode::FlushFirst) {
            let busy = "the ingest would have to wait for another ingest";
            return self.committer.latch(Reach::Everything, options.no_slowdown, busy);
        }
        let waiter = Waiter { no_slowdown: options.no_slowdown, is_writer: false };
        self.committer.latch_keys(flushables.iter().flat_map(NewFlushable::keys), waiter)
    }

    /// Returns the youngest overlapping entry of each family's memory. First waits until all numbered writes are
    /// visible; numbered writes wait for no latch.
    fn met_in_memory(&self, covered: &[(Arc<Family>, Coverage)]) -> Result<Vec<Overlap>> {
        let numbered = self.core.commit.lock().last_seq;
        self.core.pipeline.wait_visible(numbered)?;
        let mut met = Vec::new();
        for (family, coverage) in covered {
            met.extend(youngest_met(family, coverage)?);
        }
        Ok(met)
    }

    /// Flushes the entries and everything older in their families, and waits.
    fn flush_met(&self, met: &[Overlap]) -> Result<()> {
        let _awaited = self.core.context.throttle.await_flushes();
        self.core.space.try_now(Needs::Flush);
        for Overlap { family, entry, is_mutable } in met {
            if *is_mutable {
                self.memtables.seal_for_flush(family)?;
            }
            let through = entry.largest_seq().unwrap_or(SeqNo::ZERO);
            let mut state = self.core.state.lock();
            let family = self.core.family_state(&mut state, family.id())?;
            family.flush_wanted_through = family.flush_wanted_through.max(through);
            drop(state);
            self.core.state_changed.notify_all();
        }
        self.core.wait_until(|state| {
            for Overlap { family, entry, .. } in met {
                if self.core.family_state(state, family.id())?.has_in_memory(entry) {
                    return self.core.is_done_or_lacks_space(false);
                }
            }
            Ok(true)
        })
    }
}

fn youngest_met(family: &Arc<Family>, coverage: &Coverage) -> Result<Option<Overlap>> {
    let view = family.view_full();
    let mutable: Arc<dyn Flushable> = view.mutable.clone();
    let entries = std::iter::once((mutable, true)).chain(view.queue.iter().cloned().map(|entry| (entry, false)));
    for (entry, is_mutable) in entries {
        if coverage.meets_entry(&entry)? {
            return Ok(Some(Overlap { family: family.clone(), entry, is_mutable }));
        }
    }
    Ok(None)
}

/// # Errors
/// `InvalidArgument`, `Busy`: the options forbid any flush for the ingest.
fn check_may_flush(takes_number: bool, no_slowdown: bool) -> Result<()> {
    if !takes_number {
        return Err(needs_number("keys of the ingest are in memtables"));
    }
    if no_slowdown { Err(busy("a flush")) } else { Ok(()) }
}

/// # Errors
/// `InvalidArgument`: the options forbid stopping writers for a flush, even writers of the same keys only.
fn check_may_block(is_allowed: bool) -> Result<()> {
    if is_allowed {
        return Ok(());
    }
    Err(Error::invalid_argument(
        "External file requires flush: keys of the ingest are in memtables, and allow_blocking_flush is off",
    ))
}

pub(super) fn needs_number(why: &str) -> Error {
    Error::invalid_argument(format!("Global seqno is required, but disabled (because {why}). Set allow_global_seqno"))
}

fn busy(what: &str) -> Error {
    Error::new(ErrorKind::Busy, format!("the ingest would have to wait for {what} (no_slowdown was asked for)"))
}
