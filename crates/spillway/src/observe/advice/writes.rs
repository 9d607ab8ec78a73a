//! Rules for writes.

use super::{Advice, AdviceSeverity, Scene, WriteGate, bytes, percent};
use crate::observe::{ObservedFamily, ObservedJobKind};

/// Part of the time that writers wait before it is worth a word.
const WAITED_MIN: f64 = 0.01;

/// The database takes no writes.
pub(super) fn refused(scene: &Scene<'_>) -> Vec<Advice> {
    let Some(error) = &scene.now.health.background_error else { return Vec::new() };
    let what = "The database is read-only since this error. Mend its cause, then reopen it, or resume it if it was a lack of \
                space.";
    vec![Advice::new("read-only", AdviceSeverity::Urgent, format!("writes are refused: {error}"), what)]
}

/// The open went on without something.
pub(super) fn recovery_doubts(scene: &Scene<'_>) -> Vec<Advice> {
    let doubts = &scene.now.health.recovery_doubts;
    let Some(first) = doubts.first() else { return Vec::new() };
    let more = if doubts.len() > 1 { format!(", and {} more", doubts.len() - 1) } else { String::new() };
    let what = "Compare these keys with a backup. The property spillway.recovery-doubts lists all of it until the next open, \
                and so does the report in lost/.";
    vec![Advice::new(
        "recovery-doubts",
        AdviceSeverity::Warning,
        format!("recovery left in doubt: {first}{more}"),
        what,
    )]
}

pub(super) fn disk_is_full(scene: &Scene<'_>) -> Vec<Advice> {
    let health = &scene.now.health;
    if health.background_error.is_some() || !(health.waits_for_space || health.reserve_is_spent) {
        return Vec::new();
    }
    let seen = match health.reserve_is_spent {
        true => "the reserve for a full disk is given up: only deletions are written",
        false => {
            "a flush or a compaction waits for disk space, or for open files or memory where the event log says so"
        }
    };
    let what = "Free space on the database's disk, or delete data and compact. Nothing in the directory may be deleted by hand.";
    vec![Advice::new("disk-full", AdviceSeverity::Urgent, seen.to_owned(), what)]
}

/// Level 0 slows writers down, or stops them, and why it is behind.
pub(super) fn level0_behind(scene: &Scene<'_>) -> Vec<Advice> {
    let is_behind = |family: &&ObservedFamily| family.gate_cause.as_deref() == Some("l0-file-count");
    scene.now.families.iter().filter(is_behind).map(|family| level0_of(scene, family)).collect()
}

fn severity_of(gate: WriteGate) -> AdviceSeverity {
    if gate == WriteGate::Stopped { AdviceSeverity::Urgent } else { AdviceSeverity::Warning }
}

fn level0_of(scene: &Scene<'_>, family: &ObservedFamily) -> Advice {
    let tables = family.level(0).map_or(0, |level| level.tables);
    let (how, trigger) = match family.gate {
        WriteGate::Stopped => ("stopped", "level0_stop_writes_trigger"),
        _ => ("slowed down", "level0_slowdown_writes_trigger"),
    };
    let at = scene.number(Some(&family.name), trigger);
    let seen = format!("level 0 has {tables} tables, and writers are {how} from {at} on");
    let advice = |what: &str| Advice::new("level0-behind", severity_of(family.gate), seen.clone(), what).of(family);
    if scene.option(Some(&family.name), "disable_auto_compactions") == "true" {
        let what = "Nothing compacts them: automatic compactions are off. Turn them on, or compact by hand.";
        return advice(what).option("disable_auto_compactions", "true".to_owned(), "false".to_owned());
    }
    more_jobs(scene, advice, "max_subcompactions")
}

/// Compactions are slow: let them write more, run more of them at once, or one on more threads.
fn more_jobs(scene: &Scene<'_>, advice: impl Fn(&str) -> Advice, if_one: &str) -> Advice {
    let limit = scene.number(None, "rate_limiter_bytes_per_sec");
    if limit > 0 {
        let what = format!(
            "Flushes and compactions together may write {} a second: raise that limit, or take it away.",
            bytes(limit)
        );
        return advice(&what).option("rate_limiter_bytes_per_sec", limit.to_string(), (limit * 4).to_string());
    }
    let running = scene.now.jobs.iter().filter(|job| job.kind == ObservedJobKind::Compaction).count() as u64;
    let jobs = scene.number(None, "max_background_jobs");
    let compactions = jobs.saturating_sub((jobs / 4).max(1)).max(1);
    if running >= compactions {
        let what = format!(
            "All {compactions} threads for compactions are busy. Give them more, if processors and disk are not; else \
             write less, or tables with less compression."
        );
        return advice(&what).option("max_background_jobs", jobs.to_string(), (jobs * 2).to_string());
    }
    let parts = scene.number(None, if_one);
    let what = "Threads are free, but a compaction of level 0 runs alone: let it be split over several.";
    advice(what).option(if_one, parts.to_string(), (parts.max(1) * 4).min(jobs.max(2)).to_string())
}

/// Bytes to compact slow writers down, or stop them.
pub(super) fn bytes_behind(scene: &Scene<'_>) -> Vec<Advice> {
    let is_behind = |family: &&ObservedFamily| family.gate_cause.as_deref() == Some("pending-compaction-bytes");
    let of = |family: &ObservedFamily| {
        let (how, limit) = match family.gate {
            WriteGate::Stopped => ("stopped", "hard_pending_compaction_bytes_limit"),
            _ => ("slowed down", "soft_pending_compaction_bytes_limit"),
        };
        let (pending, at) = (bytes(family.pending_compaction_bytes), bytes(scene.number(Some(&family.name), limit)));
        let seen = format!("{pending} are to be compacted, and writers are {how} from {at} on");
        let advice =
            |what: &str| Advice::new("compactions-behind", severity_of(family.gate), seen.clone(), what).of(family);
        more_jobs(scene, advice, "max_subcompactions")
    };
    scene.now.families.iter().filter(is_behind).map(of).collect()
}

/// Writers wait for flushes, or memtables fill within moments.
pub(super) fn buffers_too_small(scene: &Scene<'_>) -> Vec<Advice> {
    let waited_s = scene.stalled_s("memtable-limit") + scene.stalled_s("memtable-switch");
    let of = |family: &ObservedFamily| {
        let flushes = scene.grown_in(family, |family| family.flushes.jobs);
        let every_s = scene.seconds / flushes.max(1) as f64;
        let waits = waited_s > WAITED_MIN * scene.seconds;
        let is_fast = every_s < FLUSH_SECONDS_MIN && flushes >= FLUSHES_MIN;
        let capacity = family.memtables.capacity_bytes;
        // A flush that is asked for, or made by ingests, says nothing of the memtable's size.
        let entries_bytes = scene.grown_in(family, |family| family.flushes.written_bytes) / flushes.max(1);
        if !is_fast || entries_bytes < capacity / 8 {
            return None;
        }
        let seen = format!(
            "memtables of {} are flushed every {every_s:.1} s; writers waited {waited_s:.1} s for them in {:.0} s",
            bytes(capacity),
            scene.seconds
        );
        let what = "Larger memtables make fewer and larger tables, with less to compact. Each family may hold \
                    max_write_buffer_number of them.";
        let severity = if waits { AdviceSeverity::Warning } else { AdviceSeverity::Note };
        let factor = (FLUSH_SECONDS_MIN / every_s.max(0.1)).clamp(2.0, 8.0);
        let wanted = ((capacity as f64 * factor) as u64).next_power_of_two().min(BUFFER_BYTES_MAX);
        let advice = Advice::new("buffers-too-small", severity, seen, what).of(family);
        (wanted > capacity).then(|| advice.option("write_buffer_size", capacity.to_string(), wanted.to_string()))
    };
    scene.now.families.iter().filter_map(of).collect()
}

/// A memtable that is full sooner is small for its rate of writes.
const FLUSH_SECONDS_MIN: f64 = 2.0;

/// Fewer flushes are a burst.
const FLUSHES_MIN: u64 = 10;

/// Larger memtables gain nothing.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// Syncs of the log slower than a disk with a write cache needs.
pub(super) fn slow_syncs(scene: &Scene<'_>) -> Vec<Advice> {
    let of = |seen: &crate::observe::Observation| seen.writes.as_ref().and_then(|writes| writes.sync_us.clone());
    let Some(now) = of(scene.now) else { return Vec::new() };
    let syncs = scene.before.and_then(of).map_or_else(|| now.clone(), |before| now.since(&before));
    let slow_us = syncs.percentile(99.0);
    if syncs.count < SYNCS_MIN || slow_us < SLOW_SYNC_US {
        return Vec::new();
    }
    let seen = format!(
        "a sync of the log takes {:.1} ms on average, and one in a hundred {:.0} ms or more",
        syncs.average() / 1e3,
        slow_us as f64 / 1e3
    );
    let what = "Synced writes wait for the disk. Put the log on a faster one, write more in one batch, or sync only what has \
                to survive a loss of power.";
    let dir = scene.option(None, "wal_dir");
    let advice = Advice::new("slow-syncs", AdviceSeverity::Warning, seen, what);
    vec![advice.option("wal_dir", dir, "a directory on a faster disk".to_owned())]
}

/// Fewer syncs prove nothing.
const SYNCS_MIN: u64 = 100;

/// A sync of a disk that does its best is faster.
const SLOW_SYNC_US: u64 = 30_000;

/// Writers wait for memory.
pub(super) fn memory_limit(scene: &Scene<'_>) -> Vec<Advice> {
    let waited_s = scene.stalled_s("memory-limit");
    let Some(limit) = scene.now.memory.budget_bytes.filter(|_| waited_s > WAITED_MIN * scene.seconds) else {
        return Vec::new();
    };
    let waited = percent(waited_s, scene.seconds);
    let seen = format!("writers waited for memory for {waited} of the time: all memtables may hold {}", bytes(limit));
    let what = "The limit on all memtables is too low for the rate of writes, or flushes are too slow for it.";
    let advice = Advice::new("memory-limit", AdviceSeverity::Warning, seen, what);
    vec![advice.option("db_write_buffer_size", limit.to_string(), limit.saturating_mul(2).to_string())]
}
