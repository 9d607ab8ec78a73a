//! Figures as people read them.

use std::fmt;

/// Bytes, such as `64 MiB`.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1023.95 && unit + 1 < units.len() {
            value /= 1024.0;
            unit += 1;
        }
        let name = units.get(unit).copied().unwrap_or_default();
        if unit == 0 || value >= 99.95 { write!(out, "{value:.0} {name}") } else { write!(out, "{value:.1} {name}") }
    }
}

/// Seconds, such as `2 h 5 min`.
#[derive(Clone, Copy, Debug)]
pub struct Age(pub u64);

impl fmt::Display for Age {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            seconds @ 0..=119 => write!(out, "{seconds} s"),
            seconds @ 120..=7199 => write!(out, "{} min", seconds / 60),
            seconds @ 7200..=172_799 => write!(out, "{} h {} min", seconds / 3600, seconds / 60 % 60),
            seconds => write!(out, "{} days", seconds / 86_400),
        }
    }
}

/// A count, such as `12.3 k`.
#[derive(Clone, Copy, Debug)]
pub struct Count(pub f64);

impl fmt::Display for Count {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            value if value < 9_999.5 => write!(out, "{value:.0}"),
            value if value < 999_950.0 => write!(out, "{:.1} k", value / 1e3),
            value => write!(out, "{:.2} M", value / 1e6),
        }
    }
}

/// Microseconds, such as `1.2 ms`.
#[derive(Clone, Copy, Debug)]
pub struct Micros(pub u64);

impl fmt::Display for Micros {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            us if us < 1_000 => write!(out, "{us} µs"),
            us if us < 1_000_000 => write!(out, "{:.1} ms", us as f64 / 1e3),
            us => write!(out, "{:.1} s", us as f64 / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let bytes: Vec<_> = [0, 1023, 1024, 1_048_575, 100 << 20, u64::MAX].map(|n| Bytes(n).to_string()).into();
        assert_eq!(bytes, ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "100 MiB", "16384 PiB"]);
        let ages: Vec<_> = [5, 119, 120, 7199, 7500, 200_000].map(|n| Age(n).to_string()).into();
        assert_eq!(ages, ["5 s", "119 s", "2 min", "119 min", "2 h 5 min", "2 days"]);
        let counts: Vec<_> = [0.4, 9_999.0, 10_000.0, 999_949.0, 1e6].map(|n| Count(n).to_string()).into();
        assert_eq!(counts, ["0", "9999", "10.0 k", "999.9 k", "1.00 M"]);
        let micros: Vec<_> = [999, 1_000, 2_500_000].map(|n| Micros(n).to_string()).into();
        assert_eq!(micros, ["999 µs", "1.0 ms", "2.5 s"]);
    }
}
