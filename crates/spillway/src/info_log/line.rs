//! A line of the event log, in RocksDB's form.

use std::sync::atomic::{AtomicU64, Ordering};

use base::options::InfoLogLevel;

pub(super) struct Line {
    /// Microseconds since the epoch.
    pub time_us: u64,
    pub thread: u64,
    pub level: InfoLogLevel,
    pub text: String,
}

impl Line {
    /// `2026/11/25-13:28:54.123456 7 [WARN] text`, in UTC. As in RocksDB, ordinary lines and the header omit the level.
    /// Newlines in the text are printed as they are.
    pub fn print(&self, out: &mut String) {
        let level = match self.level {
            InfoLogLevel::Debug => "[DEBUG] ",
            InfoLogLevel::Warn => "[WARN] ",
            InfoLogLevel::Error => "[ERROR] ",
            InfoLogLevel::Fatal => "[FATAL] ",
            _ => "",
        };
        out.push_str(&format!("{} {} {level}{}\n", date_and_time(self.time_us), self.thread, self.text));
    }
}

/// Number of the calling thread, in the order of first use.
pub(super) fn thread_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: u64 = 1 + LAST.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

const DAY_S: u64 = 86_400;

/// Microseconds since 1970 as RocksDB's event log has them.
pub(crate) fn date_and_time(time_us: u64) -> String {
    let (seconds, us) = (time_us / 1_000_000, time_us % 1_000_000);
    let (year, month, day) = date(seconds / DAY_S);
    let (hour, minute, second) = (seconds % DAY_S / 3600, seconds % 3600 / 60, seconds % 60);
    format!("{year:04}/{month:02}/{day:02}-{hour:02}:{minute:02}:{second:02}.{us:06}")
}

/// Year, month and day of a day since 1970-01-01. Years begin in March, with the leap day last. Eras of 400 years have
/// the same number of days.
fn date(day: u64) -> (u64, u64, u64) {
    const ERA_DAYS: u64 = 146_097;
    const DAYS_BEFORE_1970: u64 = 719_468; // since March of year 0
    let day = day + DAYS_BEFORE_1970;
    let (era, day) = (day / ERA_DAYS, day % ERA_DAYS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // from March
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let year = year + era * 400 + u64::from(month >= 10);
    (year, if month < 10 { month + 3 } else { month - 9 }, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_rocksdbs_form() {
        let mut out = String::new();
        let text = "[open.rs:1] no".to_owned();
        Line { time_us: 1_795_613_334_123_456, thread: 7, level: InfoLogLevel::Warn, text }.print(&mut out);
        assert_eq!(out, "2026/11/25-13:28:54.123456 7 [WARN] [open.rs:1] no\n");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (day, expected) in [
            (0, (1970, 1, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_819, (2027, 1, 1)),
            (47_540, (2100, 2, 28)),
        ] {
            assert_eq!(date(day), expected);
        }
    }
}
