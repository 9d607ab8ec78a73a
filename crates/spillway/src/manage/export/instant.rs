//! An instant of the database that RocksDB's formats can express: every table has a level, and whatever else there is
//! lies in the WAL. Writes go on meanwhile. Keeps D2 and D3.

use std::sync::Arc;

use base::{Error, Result, SeqNo};

use super::log::{LogStart, RestOfLog};
use super::{ExportOptions, closed};
use crate::core::FamilyState;
use crate::core::family::Family;
use crate::manage::checkpoint::Copier;
use crate::version::snapshot::ManifestSnapshot;

/// Flushes tried before giving up on an instant without ingests in the queues.
const ATTEMPTS_MAX: usize = 10;

/// The captured instant. Its versions and logs are pinned (Q3).
pub(super) struct Instant {
    /// Of each family, everything through its flushed-through number is in tables.
    pub snapshot: ManifestSnapshot,
    pub families: Vec<Arc<Family>>,
    /// What the tables lack.
    pub rest: RestOfLog,
}

impl Instant {
    /// Captures an instant, after a flush if the WAL is as long as `options` say.
    ///
    /// # Errors
    /// `Busy`: ingests kept coming. `ReadOnly`, `Closed`, and as a flush.
    pub(super) fn capture(copier: &Copier<'_>, options: ExportOptions) -> Result<Instant> {
        let mut start = None;
        if copier.core.logs.total().0 >= options.flush_from_log_bytes {
            start = Some(LogStart::now(copier.core));
            let families: Vec<_> = copier.core.families.load().iter().cloned().collect();
            copier.flusher.flush_families(&families.iter().collect::<Vec<_>>())?;
        } else {
            copier.flush_what_no_log_has()?;
        }
        for _ in 0..ATTEMPTS_MAX {
            let waiting = match Instant::try_capture(copier, start)? {
                Attempt::Captured(instant) => return Ok(*instant),
                Attempt::IngestsWait(families) => families,
            };
            copier.flusher.flush_families(&waiting.iter().collect::<Vec<_>>())?;
        }
        let what = "tables kept being ingested meanwhile; pause them, or make a checkpoint of our own form";
        Err(Error::busy(what).at_path(&copier.core.context.dir))
    }

    /// The manifest lock freezes versions, and keeps ingests without a level in the queues.
    fn try_capture(copier: &Copier<'_>, start: Option<LogStart>) -> Result<Attempt> {
        let core = copier.core;
        let manifest = copier.installer.manifest.lock();
        manifest.as_ref().ok_or_else(closed)?;
        let published = core.pipeline.published_log();
        let snapshot = copier.installer.manifest_snapshot(Vec::new());
        let waits = |family: &FamilyState| has_waiting_ingest(snapshot.last_seq, family);
        let waiting = core.state.lock().families_where(waits);
        if !waiting.is_empty() {
            return Ok(Attempt::IngestsWait(waiting));
        }
        let families = core.families.load().iter().cloned().collect();
        let rest = RestOfLog::capture(core, &snapshot, start, published);
        Ok(Attempt::Captured(Box::new(Instant { snapshot, families, rest })))
    }
}

enum Attempt {
    Captured(Box<Instant>),
    /// These families have ingested tables without a level.
    IngestsWait(Vec<Arc<Family>>),
}

/// Whether an ingest that is visible at `through` has no level yet.
fn has_waiting_ingest(through: SeqNo, family: &FamilyState) -> bool {
    family.queue.iter().any(|entry| entry.as_ingest().is_some() && entry.created_at() < through)
}
