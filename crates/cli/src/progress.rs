//! Progress on a terminal. Nothing is shown where standard error is none.

#[cfg(test)]
pub mod screen;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::human;

/// Counts bytes, with time left where the total is known.
fn bar(total_bytes: Option<u64>) -> ProgressBar {
    let template = match total_bytes {
        Some(_) => "{bar:30} {percent:>3}%  {bytes}/{total_bytes}  {bytes_per_sec}  {msg}  {eta} left",
        None => "{spinner} {bytes}  {bytes_per_sec}  {msg}  {elapsed}",
    };
    let bar = ProgressBar::with_draw_target(total_bytes, target());
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Where it is drawn.
fn target() -> ProgressDrawTarget {
    #[cfg(test)]
    if let Some(target) = screen::Screen::target() {
        return target;
    }
    ProgressDrawTarget::stderr()
}

/// Records read from files: bytes of the files, their rate, records, their rate, time left.
pub struct Reading {
    bar: ProgressBar,
    read_bytes: Arc<AtomicU64>,
}

impl Reading {
    /// `total_bytes`: of the files, where it is known. `read_bytes` grows as they are read.
    pub fn begin(total_bytes: Option<u64>, read_bytes: Arc<AtomicU64>) -> Reading {
        Reading { bar: bar(total_bytes), read_bytes }
    }

    /// So many records were taken in by now.
    pub fn advance(&self, records: u64) {
        self.bar.set_position(self.read_bytes.load(Ordering::Relaxed));
        let rate = human::per_second(records, self.bar.elapsed());
        self.bar.set_message(format!("{} records  {} records/s", human::count(records), human::count(rate)));
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Bytes that a step goes through. Any thread can count.
#[derive(Clone)]
pub struct Step(ProgressBar);

impl Step {
    /// `total_bytes`: where it is known.
    pub fn begin(name: &str, total_bytes: Option<u64>) -> Step {
        let bar = bar(total_bytes);
        bar.set_message(name.to_owned());
        Step(bar)
    }

    pub fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// So many bytes of so many, by now.
    pub fn reach(&self, bytes: u64, total_bytes: u64, what: String) {
        self.0.set_length(total_bytes);
        self.0.set_position(bytes);
        self.0.set_message(what);
    }

    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}
