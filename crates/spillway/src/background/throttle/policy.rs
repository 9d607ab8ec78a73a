//! The rate of background work: a pure function of a database's load.

/// Kinds of work subject to charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Flush,
    Compaction,
    /// Releasing the space of deleted files.
    Deletion,
}

/// Inputs of the rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Callers synced the WAL lately.
    pub has_syncs: bool,
    /// Fill rate of memtables.
    pub fill_bytes_per_s: u64,
    /// How far flushes and compactions are behind, from 0. From 1 on there is no automatic limit.
    pub debt: f64,
    /// A caller waits for the work.
    pub is_awaited: bool,
}

/// The user's limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// `None` for no limit.
    pub bytes_per_s: Option<u64>,
    /// Automatic rate while callers sync.
    pub is_automatic: bool,
}

/// Lower bound of the automatic rate: RocksDB's rate for writers when compactions are behind (`delayed_write_rate`). A
/// disk too slow for it beside syncs is behind anyway.
const AUTOMATIC_LEAST: u64 = 16 << 20;

/// Flush rate as a multiple of the fill rate: flushes must be faster.
const FLUSHES_PER_FILL: f64 = 2.0;

/// Writes per byte on its way down a level: RocksDB's `max_bytes_for_level_multiplier` by default.
const COMPACTIONS_PER_FILL: f64 = 10.0;

/// Releasing space is cheaper than writing: no byte is moved.
const DELETIONS_PER_COMPACTION: u64 = 4;

/// Bytes per second; `None` for full speed.
pub(super) fn bytes_per_s(work: Work, allowed: Allowed, load: &Load) -> Option<u64> {
    if load.is_awaited {
        return None;
    }
    let automatic = allowed.is_automatic.then(|| automatic(work, load)).flatten();
    let most = automatic.into_iter().chain(allowed.bytes_per_s).min()?;
    Some(if work == Work::Deletion { most.saturating_mul(DELETIONS_PER_COMPACTION) } else { most })
}

/// Fast enough to keep up with writers; for compactions and deletions, faster with growing debt.
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
