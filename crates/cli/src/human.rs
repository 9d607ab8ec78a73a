//! Numbers with their units.

use std::time::Duration;

/// `1,234,567`.
pub fn count(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 table`, `3 tables`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// `512 B`, `1.83 MiB`.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = number as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == "B" { format!("{number} B") } else { format!("{value:.2} {unit}") }
}

/// Parses the output of [`bytes`] and its short forms: `4096`, `64M`, `64MiB`, `1.5G`. Units are powers of 1024.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let power = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" | "kb" => 1,
        "m" | "mib" | "mb" => 2,
        "g" | "gib" | "gb" => 3,
        "t" | "tib" | "tb" => 4,
        _ => return Err(format!("{unit:?} is no unit; there are K, M, G and T, powers of 1024")),
    };
    let value: f64 = number.parse().map_err(|_| "a size is a number and a unit, such as 64M".to_owned())?;
    Ok((value * 1024f64.powi(power)) as u64)
}

/// `number` in each second of `time`, rounded.
pub fn per_second(number: u64, time: Duration) -> u64 {
    (number as f64 / time.as_secs_f64().max(1e-6)) as u64
}

/// `0.12 s`.
pub fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// `850 ns`, `8.1 us`, `12.3 ms`, `1.20 s`.
pub fn short_time(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    match nanos {
        ..1e3 => format!("{nanos} ns"),
        ..1e6 => format!("{:.1} us", nanos / 1e3),
        ..1e9 => format!("{:.1} ms", nanos / 1e6),
        _ => seconds(time),
    }
}

/// Formats seconds since the epoch: `2026-11-21 22:23:06 UTC`. Dates as in Howard Hinnant's `civil_from_days`: years
/// begin with March, so that the leap day is last.
pub fn utc(seconds: u64) -> String {
    const DAYS_FROM_YEAR_0: u64 = 719_468;
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let (days, second) = (seconds / 86_400 + DAYS_FROM_YEAR_0, seconds % 86_400);
    let (era, day_of_era) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let leap_days = day_of_era / 1460 + day_of_era / (DAYS_IN_400_YEARS - 1) - day_of_era / 36_524;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02} UTC", second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_easily() {
        assert_eq!(
            [count(0u64), count(999u64), count(1000u64), count(1_234_567u64)],
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(counted(1, "table", "tables"), "1 table");
        assert_eq!(counted(2, "table", "tables"), "2 tables");
        assert_eq!([bytes(1023), bytes(1024), bytes(1_913_704)], ["1023 B", "1.00 KiB", "1.83 MiB"]);
        assert_eq!(bytes(u64::MAX), "16.00 EiB");
        assert_eq!(
            ["0", "4096", "64M", "1.83 MiB", "1.5g"].map(|text| parse_bytes(text).unwrap()),
            [0, 4096, 64 << 20, 1_918_894, 3 << 29]
        );
        assert!(["", "M", "1X", "1.2.3K", "-1"].into_iter().all(|text| parse_bytes(text).is_err()));
        let times = [850, 8_140, 12_340_000, 1_200_000_000].map(|nanos| short_time(Duration::from_nanos(nanos)));
        assert_eq!(times, ["850 ns", "8.1 us", "12.3 ms", "1.20 s"]);
        let dates = [0, 951_782_399, 951_782_400, 1_795_299_786, 4_107_542_399].map(utc);
        assert_eq!(dates[..3], ["1970-01-01 00:00:00 UTC", "2000-02-28 23:59:59 UTC", "2000-02-29 00:00:00 UTC"]);
        assert_eq!(dates[3..], ["2026-11-21 22:23:06 UTC", "2100-02-28 23:59:59 UTC"]);
        assert_eq!(per_second(100, Duration::from_millis(500)), 200);
    }
}
