//! The progress line: as many parts as fit into the terminal's columns, the most important first.

use std::time::Duration;

use crate::human;

/// Least columns for a progress line.
pub const COLUMNS_MIN: usize = 60;

/// Least columns for a bar: with fewer it would come and go as numbers grow.
const BAR_SHOWN_COLUMNS: usize = 72;

/// Characters of the bar itself.
const BAR_COLUMNS_MIN: usize = 10;
const BAR_COLUMNS_MAX: usize = 30;

/// Gap between two parts.
const GAP: &str = "  ";

/// Progress of a command.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Bytes.
    pub done: u64,
    /// Bytes, if known.
    pub total: Option<u64>,
    pub elapsed: Duration,
    /// The current step, or its count.
    pub label: String,
    /// Shown if there is room.
    pub extra: String,
}

/// At most `columns - 1` characters: a full line would wrap in some terminals. Empty below [`COLUMNS_MIN`].
pub fn line(look: &Look, columns: usize) -> String {
    if columns < COLUMNS_MIN {
        return String::new();
    }
    let has_bar = columns >= BAR_SHOWN_COLUMNS && look.total.is_some_and(|total| total > 0);
    let bar_columns = if has_bar { BAR_COLUMNS_MIN } else { 0 };
    let mut room = Room { left: columns - 1 - bar_columns, bar_columns, parts: [const { String::new() }; PARTS] };
    for (at, part) in parts(look) {
        room.place(at, part);
    }
    room.join(look)
}

/// Places of the parts on the line.
const PERCENT: usize = 0;
const BYTES: usize = 1;
const RATE: usize = 2;
const LABEL: usize = 3;
const EXTRA: usize = 4;
const TIME: usize = 5;
const PARTS: usize = 6;

/// The parts with their places, the most important first.
fn parts(look: &Look) -> Vec<(usize, String)> {
    let mut parts = Vec::new();
    let bytes = human::bytes(look.done);
    let rate = human::per_second(look.done, look.elapsed);
    match look.total.filter(|total| *total > 0) {
        Some(total) => {
            let done = look.done.min(total);
            parts.push((PERCENT, format!("{:>3}%", (u128::from(done) * 100 / u128::from(total)))));
            parts.push((BYTES, format!("{bytes}/{}", human::bytes(total))));
            parts.push((LABEL, look.label.clone()));
            let left_s = (total - done).checked_div(rate);
            parts.extend(left_s.map(|left_s| (TIME, format!("{} left", minutes(left_s)))));
        }
        None => {
            if look.done > 0 {
                parts.push((BYTES, bytes));
            }
            parts.push((LABEL, look.label.clone()));
            parts.push((TIME, minutes(look.elapsed.as_secs())));
        }
    }
    if look.done > 0 {
        parts.push((RATE, format!("{}/s", human::bytes(rate))));
    }
    parts.push((EXTRA, look.extra.clone()));
    parts
}

/// Columns left, and the parts placed.
struct Room {
    left: usize,
    /// Kept for the bar; 0 for none.
    bar_columns: usize,
    parts: [String; PARTS],
}

impl Room {
    /// Places a part. A label is cut to the columns left; other parts are placed in full, or not at all.
    fn place(&mut self, at: usize, part: String) {
        let is_first = self.bar_columns == 0 && self.parts.iter().all(String::is_empty);
        let gap = if is_first { 0 } else { GAP.len() };
        let left = self.left.saturating_sub(gap);
        let part = if at == LABEL { cut(&part, left) } else { part };
        let wide = part.chars().count();
        if wide == 0 || wide > left {
            return;
        }
        self.left -= gap + wide;
        if let Some(place) = self.parts.get_mut(at) {
            *place = part;
        }
    }

    fn join(self, look: &Look) -> String {
        let mut parts: Vec<String> = Vec::with_capacity(PARTS + 1);
        if self.bar_columns > 0 {
            let wide = (self.bar_columns + self.left).min(BAR_COLUMNS_MAX);
            parts.push(bar(look.done, look.total.unwrap_or(1).max(1), wide));
        }
        parts.extend(self.parts.into_iter().filter(|part| !part.is_empty()));
        parts.join(GAP)
    }
}

fn bar(done: u64, total: u64, wide: usize) -> String {
    let inner = wide - 2;
    let full = (u128::from(done.min(total)) * inner as u128 / u128::from(total)) as usize;
    format!("[{}{}]", "#".repeat(full), "-".repeat(inner - full))
}

fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(3)).collect();
    if columns > 3 { kept + "..." } else { String::new() }
}

/// `8s`, `2m 05s`, `3h 07m`.
fn minutes(seconds: u64) -> String {
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loading() -> Look {
        Look {
            done: 1234 << 20,
            total: Some(4321 << 20),
            elapsed: Duration::from_secs(10),
            label: "12,345,678 records".to_owned(),
            extra: "1,234,567 records/s".to_owned(),
        }
    }

    #[test]
    fn more_is_shown_where_there_is_more_room() {
        let at = |columns| line(&loading(), columns);
        assert_eq!(at(59), "");
        assert_eq!(at(60), " 28%  1.21 GiB/4.22 GiB  12,345,678 records  25s left");
        assert_eq!(at(80), "[##------]   28%  1.21 GiB/4.22 GiB  123.40 MiB/s  12,345,678 records  25s left");
        let full = "[#######--------------------]   28%  1.21 GiB/4.22 GiB  123.40 MiB/s  12,345,678 records  \
                    1,234,567 records/s  25s left";
        assert_eq!(at(120), full);
    }

    #[test]
    fn no_line_fills_its_terminal() {
        let mut looks =
            vec![loading(), Look { total: None, ..loading() }, Look { done: 0, ..loading() }, Look::default()];
        looks.push(Look { label: "x".repeat(300), done: u64::MAX, total: Some(u64::MAX), ..loading() });
        looks.push(Look { done: u64::MAX, total: Some(1), elapsed: Duration::MAX, ..loading() });
        for look in &looks {
            for columns in 0..300 {
                assert!(line(look, columns).chars().count() < columns.max(1), "{columns}: {look:?}");
            }
        }
    }

    #[test]
    fn without_a_total_the_time_is_told() {
        let look =
            Look { total: None, elapsed: Duration::from_secs(125), label: "compacting".to_owned(), ..Look::default() };
        assert_eq!(line(&look, 60), "compacting  2m 05s");
        let look = Look { done: 250 << 20, ..look };
        assert_eq!(line(&look, 60), "250.00 MiB  2.00 MiB/s  compacting  2m 05s");
        assert_eq!([8, 60, 3600, 90_061].map(minutes), ["8s", "1m 00s", "1h 00m", "25h 01m"]);
    }
}
