//! Growth of memtables and logs between two checks, for the prefault of what is written next.

use std::time::Duration;

use parking_lot::Mutex;

use crate::order::pipeline::LogPosition;

/// Window of a nearly empty memtable: sixteen pages.
pub(crate) const WINDOW_MIN_BYTES: usize = 64 << 10;

/// Window of slow families. Smaller ones would wake upkeep more often than every 256 KiB.
pub(crate) const WINDOW_SLOW_BYTES: usize = 1 << 20;

/// Two huge pages: several times the bytes written between two checks at 100 MB/s.
pub(crate) const WINDOW_MAX_BYTES: usize = 4 << 20;

/// Smallest window of the log, used up in [`WINDOW_TIME`] at 25 MB/s. Slower writers get none.
const LOG_WINDOW_MIN_BYTES: u64 = 1 << 20;

/// Largest window of the log. The kernel treats prefaulted log pages as written, and the next sync writes them.
const LOG_WINDOW_MAX_BYTES: u64 = 4 << 20;

/// Writing time covered by a window.
const WINDOW_TIME: Duration = Duration::from_millis(40);

/// Consecutive checks with fast growth before the log gets a window: about twice the time of a window.
const FAST_LOOKS_MIN: u32 = 8;

/// Shortest interval for measuring growth.
const PACE_MIN: Duration = Duration::from_millis(5);

/// Bytes to prefault beyond the reserved ones, for a memtable with `used_bytes` written, which grows by `pace_bytes` in
/// [`WINDOW_TIME`].
pub(crate) fn window_bytes(used_bytes: usize, pace_bytes: u64) -> usize {
    let pace_bytes = usize::try_from(pace_bytes).unwrap_or(usize::MAX);
    used_bytes.clamp(WINDOW_MIN_BYTES, pace_bytes.clamp(WINDOW_SLOW_BYTES, WINDOW_MAX_BYTES))
}

/// Growth rate of a memtable or log, between checks.
#[derive(Clone, Copy, Default)]
struct Pace {
    end: u64,
    at: Duration,
    /// Growth expected in [`WINDOW_TIME`].
    bytes: u64,
}

impl Pace {
    /// Notes `end` at `now`. False if the last check is too recent to tell.
    fn note(&mut self, end: u64, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at);
        if passed < PACE_MIN {
            return false;
        }
        let grown = u128::from(end.saturating_sub(self.end));
        let expected = grown * WINDOW_TIME.as_micros() / passed.as_micros();
        *self = Pace { end, at: now, bytes: u64::try_from(expected).unwrap_or(u64::MAX) };
        true
    }
}

/// Growth rate of a memtable. A leaf lock.
#[derive(Default)]
pub(crate) struct MemtablePace(Mutex<Pace>);

impl MemtablePace {
    /// Bytes until upkeep is to check a memtable with `used_bytes` again.
    pub fn look_after(&self, used_bytes: usize) -> usize {
        window_bytes(used_bytes, self.0.lock().bytes) / 4
    }

    /// Notes `used_bytes` at `now`. Returns the bytes expected in [`WINDOW_TIME`].
    pub fn note(&self, used_bytes: usize, now: Duration) -> u64 {
        let mut pace = self.0.lock();
        pace.note(used_bytes as u64, now);
        pace.bytes
    }
}

/// Growth rate of the log between checks. A leaf lock.
#[derive(Default)]
pub(crate) struct LogPace(Mutex<Seen>);

#[derive(Clone, Copy, Default)]
struct Seen {
    pace: Pace,
    /// Consecutive checks with fast growth.
    fast_looks: u32,
    window_bytes: u64,
}

impl LogPace {
    /// Bytes prefaulted at the last check.
    pub fn last_window_bytes(&self) -> u64 {
        self.0.lock().window_bytes
    }

    /// Bytes to prefault beyond `end`, the log's end at `now`. Zero until growth was fast for some checks: after a
    /// burst the next sync would write unused pages. Prefault thus adds at most half to the bytes written.
    pub fn window_bytes(&self, end: LogPosition, now: Duration) -> u64 {
        let mut seen = self.0.lock();
        if seen.pace.note(end, now) {
            let window_bytes = seen.pace.bytes.min(LOG_WINDOW_MAX_BYTES);
            let is_fast = window_bytes >= LOG_WINDOW_MIN_BYTES;
            seen.fast_looks = if is_fast { seen.fast_looks.saturating_add(1) } else { 0 };
            seen.window_bytes = if seen.fast_looks >= FAST_LOOKS_MIN { window_bytes } else { 0 };
        }
        seen.window_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_logs_window_is_what_writers_take_in_a_moment_and_none_where_they_are_slow() {
        let pace = LogPace::default();
        let (mut end, mut now) = (0, 1000 * MS);
        let mut look = |grown: u64, after: Duration| {
            (end, now) = (end + grown, now + after);
            pace.window_bytes(end, now)
        };
        assert_eq!(look(100 << 10, 10 * MS), 0, "of the first second, and of ten megabytes a second");
        for _ in 1..FAST_LOOKS_MIN {
            assert_eq!(look(512 << 10, 10 * MS), 0, "a burst, as far as so few looks can tell");
        }
        assert_eq!(look(512 << 10, 10 * MS), 2 << 20);
        assert_eq!(look(64 << 10, MS), 2 << 20, "too soon to tell");
        assert_eq!(look(8 << 20, 10 * MS), LOG_WINDOW_MAX_BYTES);
        assert_eq!(look(u64::MAX / 2, 10 * MS), LOG_WINDOW_MAX_BYTES);
        assert_eq!(look(200 << 10, 10 * MS), 0);
        assert_eq!(look(8 << 20, 10 * MS), 0, "another burst");
    }
}
