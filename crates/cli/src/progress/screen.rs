//! A one-line terminal for tests; it records everything drawn.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use indicatif::{ProgressDrawTarget, TermLike};

/// More columns than any of our lines.
pub const COLUMNS: u16 = 200;

/// Time a test waits for a line of a different thread.
const PATIENCE: Duration = Duration::from_secs(20);

const WHOLE: &str = "nobody panics while drawing";

thread_local! {
    static OF_THREAD: RefCell<Option<Screen>> = const { RefCell::new(None) };
}

/// Clones share the screen.
#[derive(Clone, Debug, Default)]
pub struct Screen(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    drawn: Mutex<Drawn>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Drawn {
    line: String,
    /// All states of the line.
    lines: Vec<String>,
}

impl Screen {
    /// Progress begun by this thread from now on is drawn here, even if a different thread continues it.
    pub fn of_this_thread() -> Screen {
        let screen = Screen::default();
        OF_THREAD.set(Some(screen.clone()));
        screen
    }

    /// `None` if this thread has no screen.
    pub fn target() -> Option<ProgressDrawTarget> {
        let screen = OF_THREAD.with_borrow(|screen| screen.clone())?;
        Some(ProgressDrawTarget::term_like(Box::new(screen)))
    }

    /// Whether there was such a line.
    pub fn showed(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.drawn().lines.iter().any(|line| is_it(line))
    }

    /// Whether a line with all texts is drawn before the patience ends.
    pub fn comes_to_show(&self, texts: &[&str]) -> bool {
        let has_all = |line: &String| texts.iter().all(|&text| line.contains(text));
        let lacks = |drawn: &mut Drawn| !drawn.lines.iter().any(has_all);
        let waited = self.0.changed.wait_timeout_while(self.drawn(), PATIENCE, lacks).expect(WHOLE);
        !waited.1.timed_out()
    }

    pub fn is_clear(&self) -> bool {
        self.drawn().line.is_empty()
    }

    fn drawn(&self) -> MutexGuard<'_, Drawn> {
        self.0.drawn.lock().expect(WHOLE)
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        COLUMNS
    }

    fn move_cursor_up(&self, _lines: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _lines: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _columns: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _columns: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.drawn().line.push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.drawn().line.clear();
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let mut drawn = self.drawn();
        let line = drawn.line.trim_end().to_owned();
        drawn.lines.push(line);
        self.0.changed.notify_all();
        Ok(())
    }
}
