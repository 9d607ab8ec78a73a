//! How fast background work goes: a pure function of what is known about a database.

/// Kinds of work that are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Flush,
    Compaction,
    /// Giving back the space of deleted files.
    Deletion,
}

/// What a rate depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Callers synced the log of late.
    pub has_syncs: bool,
    /// How fast memtables fill.
    pub fill_bytes_per_s: u64,
    /// From 0; 1 is as far behind as flushes and compactions may be before they go as fast as they can.
    pub debt: f64,
    /// Somebody waits for the work.
    pub is_awaited: bool,
}

/// What the user allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// `None` for any.
    pub bytes_per_s: Option<u64>,
    /// Slower beside callers that sync.
    pub is_automatic: bool,
}

/// A write is charged no less than this allows: RocksDB's rate for writers of a database whose compactions are behind
/// (`delayed_write_rate`). A disk that does not bear it beside syncs is behind anyway.
const AUTOMATIC_LEAST: u64 = 16 << 20;

/// Flushes are faster than memtables fill.
const FLUSHES_PER_FILL: f64 = 2.0;

/// Writes of a byte on its way down a level: RocksDB's `max_bytes_for_level_multiplier`, if not set.
const COMPACTIONS_PER_FILL: f64 = 10.0;

/// Giving space back is cheaper than writing: no byte is moved.
const DELETIONS_PER_COMPACTION: u64 = 4;

/// Bytes per second; `None` for as fast as it goes.
pub(super) fn bytes_per_s(work: Work, allowed: Allowed, load: &Load) -> Option<u64> {
    if load.is_awaited {
        return None;
    }
    let automatic = allowed.is_automatic.then(|| automatic(work, load)).flatten();
    let most = automatic.into_iter().chain(allowed.bytes_per_s).min()?;
    Some(if work == Work::Deletion { most.saturating_mul(DELETIONS_PER_COMPACTION) } else { most })
}

/// Enough to keep up with writers, and the more, the further compactions are behind.
fn automatic(work: Work, load: &Load) -> Option<u64> {
    if !load.has_syncs || load.debt >= 1.0 {
        return None;
    }
    let (per_fill, due) = match work {
        Work::Flush => (FLUSHES_PER_FILL, 1.0),
        Work::Compaction | Work::Deletion => (COMPACTIONS_PER_FILL, 1.0 - load.debt),
    };
    let rate = (load.fill_bytes_per_s as f64 * per_fill).max(AUTOMATIC_LEAST as f64) / due;
    Some(rate as u64)
}

#[cfg(test)]
mod tests;
