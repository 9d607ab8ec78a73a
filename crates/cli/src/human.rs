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

/// `number` in each second of `time`, rounded.
pub fn per_second(number: u64, time: Duration) -> u64 {
    (number as f64 / time.as_secs_f64().max(1e-6)) as u64
}

/// `0.12 s`.
pub fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
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
        assert_eq!(per_second(100, Duration::from_millis(500)), 200);
    }
}
