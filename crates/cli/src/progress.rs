//! Progress on a terminal: one line, removed in the end. Shows nothing if standard error is no terminal, or narrower
//! than [`line::COLUMNS_MIN`].

pub mod line;
#[cfg(test)]
pub mod screen;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use self::line::Look;
use crate::human;

/// Texts of the line besides its bytes.
#[derive(Default)]
struct Words {
    label: String,
    extra: String,
}

/// A progress line of bytes. Clones share the line.
#[derive(Clone)]
struct Line {
    bar: ProgressBar,
    words: Arc<Mutex<Words>>,
}

impl Line {
    fn begin(label: &str, total_bytes: Option<u64>) -> Line {
        let words = Arc::new(Mutex::new(Words { label: label.to_owned(), extra: String::new() }));
        let (target, columns) = target();
        let drawn = words.clone();
        let draw = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            let words = drawn.lock().unwrap_or_else(PoisonError::into_inner);
            let (label, extra) = (words.label.clone(), words.extra.clone());
            let look = Look { done: state.pos(), total: state.len(), elapsed: state.elapsed(), label, extra };
            let _ = out.write_str(&line::line(&look, columns())); // into memory
        };
        // Hidden until it has its style: the default one would be drawn.
        let bar = ProgressBar::with_draw_target(total_bytes, ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{line}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        bar.set_style(style.with_key("line", draw));
        bar.set_draw_target(target);
        Line { bar, words }
    }

    fn say(&self, label: String, extra: String) {
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = Words { label, extra };
    }
}

/// The target to draw on, and a function for its columns, which can change.
fn target() -> (ProgressDrawTarget, fn() -> usize) {
    #[cfg(test)]
    if let Some(target) = screen::Screen::target() {
        return (target, || usize::from(screen::COLUMNS));
    }
    (ProgressDrawTarget::stderr(), stderr_columns)
}

/// Columns of the terminal; 0 if there is none.
fn stderr_columns() -> usize {
    console::Term::stderr().size_checked().map_or(0, |(_, columns)| usize::from(columns))
}

/// Records read from files: bytes of the files, their rate, records, their rate, time left.
pub struct Reading {
    line: Line,
    read_bytes: Arc<AtomicU64>,
}

impl Reading {
    /// `total_bytes`: of the files, if known. `read_bytes` grows as they are read.
    pub fn begin(total_bytes: Option<u64>, read_bytes: Arc<AtomicU64>) -> Reading {
        Reading { line: Line::begin("reading", total_bytes), read_bytes }
    }

    /// Sets the number of records read so far.
    pub fn advance(&self, records: u64) {
        let bar = &self.line.bar;
        let rate = human::per_second(records, bar.elapsed());
        self.line.say(human::counted(records, "record", "records"), format!("{} records/s", human::count(rate)));
        bar.set_position(self.read_bytes.load(Ordering::Relaxed));
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.line.bar.finish_and_clear();
    }
}

/// Bytes processed by a step. Any thread can count.
#[derive(Clone)]
pub struct Step(Line);

impl Step {
    /// `total_bytes`: if known.
    pub fn begin(name: &str, total_bytes: Option<u64>) -> Step {
        Step(Line::begin(name, total_bytes))
    }

    pub fn advance(&self, bytes: u64) {
        self.0.bar.inc(bytes);
    }

    /// Sets the bytes processed so far, and their total if known.
    pub fn reach(&self, bytes: u64, total_bytes: Option<u64>, what: String) {
        self.0.say(what, String::new());
        if let Some(total_bytes) = total_bytes {
            self.0.bar.set_length(total_bytes);
        }
        self.0.bar.set_position(bytes);
    }

    pub fn end(&self) {
        self.0.bar.finish_and_clear();
    }
}
