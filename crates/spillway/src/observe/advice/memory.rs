//! Rules for caches, old snapshots and old iterators.

use super::{Advice, AdviceSeverity, Scene, bytes, percent};

/// Fewer misses prove nothing.
const MISSES_MIN: u64 = 10_000;

/// Least share of misses among lookups, if evicted blocks come back.
const MISSED_MIN: f64 = 0.1;

/// Least share of misses on blocks evicted shortly before: a larger cache spares them.
const RETURNS_MIN: f64 = 0.1;

/// Least share of misses without returns: a tiny cache remembers few evictions.
const MOST_MISSED: f64 = 0.5;

/// A cache of so many times the bytes of all tables holds all their blocks, uncompressed.
const ENOUGH: u64 = 8;

/// The default of `block_cache`, and the least that is advised.
const CACHE_BYTES: u64 = 32 << 20;

/// By the cache's ghost list of evicted blocks, or by misses alone.
pub(super) fn cache_too_small(scene: &Scene<'_>) -> Vec<Advice> {
    let (hits, misses) = (scene.grown(|seen| seen.cache.hits), scene.grown(|seen| seen.cache.misses));
    let returns = scene.grown(|seen| seen.cache.returns);
    let cache = &scene.now.cache;
    let is_full = cache.usage_bytes > cache.capacity_bytes / 10 * 8;
    let tables: u64 = scene.now.families.iter().map(|family| family.table_bytes).sum();
    let is_enough = tables > 0 && cache.capacity_bytes / ENOUGH > tables;
    let part = misses as f64 / (hits + misses).max(1) as f64;
    let is_small = part > MISSED_MIN && returns as f64 > RETURNS_MIN * misses as f64 || part > MOST_MISSED;
    if misses < MISSES_MIN || !is_full || !is_small || is_enough {
        return Vec::new();
    }
    let (missed, capacity) = (percent(misses as f64, (hits + misses) as f64), bytes(cache.capacity_bytes));
    let came_back = match percent(returns as f64, misses as f64) {
        _ if returns as f64 <= RETURNS_MIN * misses as f64 => String::new(),
        part => format!(", and {part} of the missed blocks were there shortly before"),
    };
    let seen = format!("{missed} of the lookups in the block cache of {capacity} miss{came_back}");
    let what =
        "The cache is smaller than what is read again and again. Make it larger, or blocks smaller in the table.";
    let wanted = cache.capacity_bytes.saturating_mul(2).max(CACHE_BYTES);
    let advice = Advice::new("cache-too-small", AdviceSeverity::Warning, seen, what);
    vec![advice.option("block_cache", cache.capacity_bytes.to_string(), wanted.to_string())]
}

/// Least age of a snapshot, and least number of changes since.
const SNAPSHOT_AGE_S: u64 = 3600;
const CHANGES_MIN: u64 = 1_000_000;

pub(super) fn old_snapshots(scene: &Scene<'_>) -> Vec<Advice> {
    let oldest = scene.now.snapshots.oldest.as_ref();
    let is_old = oldest.filter(|oldest| oldest.age_s >= SNAPSHOT_AGE_S && oldest.changes_since >= CHANGES_MIN);
    let Some(oldest) = is_old else { return Vec::new() };
    let minutes = oldest.age_s / 60;
    let seen = format!("a snapshot is {minutes} minutes old, and {} changes were written since", oldest.changes_since);
    let what = "Nothing that it sees can be dropped by compactions: release it, or take it anew now and then.";
    vec![Advice::new("old-snapshot", AdviceSeverity::Warning, seen, what)]
}

/// Least age of an iterator's state, and least bytes kept for it.
const ITERATOR_AGE_S: u64 = 120;
const KEPT_BYTES_MIN: u64 = 4 << 20;

pub(super) fn old_iterators(scene: &Scene<'_>) -> Vec<Advice> {
    let kept = scene.now.kept.iter().filter(|kept| {
        kept.age_us >= ITERATOR_AGE_S * 1_000_000 && kept.memtable_bytes + kept.table_bytes >= KEPT_BYTES_MIN
    });
    let of = |kept: &crate::observe::ObservedKept| {
        let seen = format!(
            "{} iterators are older than {} minutes, and keep {} of memory and {} of disk",
            kept.readers,
            kept.age_us / 60_000_000,
            bytes(kept.memtable_bytes),
            bytes(kept.table_bytes)
        );
        let what = "Release them, or make them anew now and then.";
        let advice = Advice::new("old-iterator", AdviceSeverity::Warning, seen, what);
        Advice { family: Some(kept.family.clone()), ..advice }
    };
    kept.map(of).collect()
}
