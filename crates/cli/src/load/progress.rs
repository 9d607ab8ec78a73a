//! The progress bar: records, rates, bytes and time left. Not there where standard error is no terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use super::source::Source;
use crate::human;

pub struct Progress {
    bar: ProgressBar,
    read_bytes: Arc<AtomicU64>,
}

impl Progress {
    pub fn begin(source: &Source) -> Progress {
        let (bar, template) = match source.total_bytes() {
            Some(total) => (
                ProgressBar::new(total),
                "{bar:30} {percent:>3}%  {bytes}/{total_bytes}  {bytes_per_sec}  {msg}  {eta} left",
            ),
            None => (ProgressBar::no_length(), "{spinner} {bytes}  {bytes_per_sec}  {msg}  {elapsed}"),
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        Progress { bar, read_bytes: source.counter() }
    }

    /// So many records are loaded now.
    pub fn advance(&self, records: u64) {
        self.bar.set_position(self.read_bytes.load(Ordering::Relaxed));
        let rate = human::per_second(records, self.bar.elapsed());
        self.bar.set_message(format!("{} records  {} records/s", human::count(records), human::count(rate)));
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
