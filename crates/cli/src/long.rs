//! A long command in one call of the engine: progress on the terminal, and a message at Ctrl-C. Ctrl-C ends the process
//! at once, like a kill: the next open or attempt cleans up.

use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spillway::internal::vfs::{IoClass, RealVfs, Vfs};

use crate::failure::{Failure, Outcome, note};
use crate::interrupt::Interrupt;
use crate::progress::Step;
use crate::threads::Job;

/// Interval of progress updates and Ctrl-C checks.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// The kernel's I/O counters of this process; bytes of the file to read.
const IO_FILE: &str = "/proc/self/io";
const IO_BYTES_MAX: usize = 4 << 10;

/// Progress of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    pub bytes: u64,
    pub total_bytes: Option<u64>,
    /// The current step.
    pub what: String,
}

/// Handle for a command to report its progress. Clones share it.
#[derive(Clone, Default)]
pub struct Teller(Arc<Mutex<Reached>>);

impl Teller {
    pub fn tell(&self, reached: Reached) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reached;
    }

    pub fn told(&self) -> Reached {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// While alive, shows the command's progress. Ctrl-C ends the command with a message.
pub struct Long {
    /// Never sent to. Dropping it ends the thread; it is dropped before the job is joined.
    _end: mpsc::Sender<()>,
    /// `None` where no thread can be had: the command goes on, and Ctrl-C ends it without a message.
    _job: Option<Job<()>>,
}

impl Long {
    /// `reached` is called repeatedly; `interrupted` once, at Ctrl-C: it says how far the command came and how to go
    /// on.
    pub fn begin(
        reached: impl Fn() -> Reached + Send + 'static,
        interrupted: impl Fn() -> String + Send + 'static,
    ) -> Outcome<Long> {
        Long::begin_on(&*RealVfs::new(), reached, interrupted)
    }

    fn begin_on(
        vfs: &dyn Vfs,
        reached: impl Fn() -> Reached + Send + 'static,
        interrupted: impl Fn() -> String + Send + 'static,
    ) -> Outcome<Long> {
        let interrupt = Interrupt::default();
        let asked = interrupt.clone();
        let (end, ended) = mpsc::channel();
        let first = reached();
        let step = Step::begin(&first.what, first.total_bytes);
        let watch = move || {
            while ended.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let Reached { bytes, total_bytes, what } = reached();
                step.reach(bytes, total_bytes, what);
                if asked.is_asked() {
                    step.end();
                    end_process(&Failure::Interrupted(interrupted()));
                }
            }
            step.end();
        };
        // Only where another thread can be had beside it: the command's own work may need the last one.
        let (release, held) = mpsc::channel::<()>();
        let job = Job::start(vfs, "spare", move || held.recv().unwrap_or(())).and_then(|spare| {
            let job = Job::start(vfs, "progress", watch);
            drop((release, spare)); // in this order: the spare one waits
            job
        });
        match &job {
            Ok(_) => interrupt.listen()?,
            Err(error) => note(&format!("no progress is shown: {error}")),
        }
        Ok(Long { _end: end, _job: job.ok() })
    }

    /// For a command with no progress but the bytes written by the process.
    pub fn writing(what: &str, interrupted: impl Fn() -> String + Send + 'static) -> Outcome<Long> {
        let (what, start) = (what.to_owned(), written_bytes());
        let reached =
            move || Reached { bytes: written_bytes().saturating_sub(start), total_bytes: None, what: what.clone() };
        Long::begin(reached, interrupted)
    }
}

fn end_process(failure: &Failure) {
    failure.tell();
    let _ = io::stderr().flush(); // fails on a closed terminal
    std::process::exit(failure.status().into());
}

/// Bytes written by this process, by the kernel's count; 0 if there is no count.
fn written_bytes() -> u64 {
    let read = || -> spillway::internal::Result<Vec<u8>> {
        let mut text = vec![0; IO_BYTES_MAX];
        let read = RealVfs::new().open(Path::new(IO_FILE))?.read_at(0, &mut text, IoClass::Other)?;
        text.truncate(read);
        Ok(text)
    };
    let text = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().find_map(|line| line.strip_prefix("wchar:")?.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use spillway::internal::vfs::{Fault, FaultCode, FaultVfs, Operation, Rule};

    use super::*;
    use crate::progress::screen::Screen;

    #[test]
    fn the_terminal_shows_what_is_told_and_is_clear_in_the_end() {
        let (screen, teller) = (Screen::of_this_thread(), Teller::default());
        let told = teller.clone();
        let long = Long::begin(move || told.told(), String::new).ok().unwrap();
        teller.tell(Reached { bytes: 5 << 20, total_bytes: Some(10 << 20), what: "000007.sst".to_owned() });
        assert!(screen.comes_to_show(&[" 50%  5.00 MiB/10.00 MiB", "000007.sst"]), "{screen:?}");
        assert!(screen.showed(|line| line.contains("000007.sst")), "{screen:?}");
        drop(long);
        assert!(screen.is_clear(), "{screen:?}");
    }

    /// As in a container without room for another process.
    #[test]
    fn a_command_without_a_thread_for_its_progress_goes_on() {
        let (screen, vfs) = (Screen::of_this_thread(), FaultVfs::new(RealVfs::new()));
        vfs.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Spawn).sticky());
        drop(Long::begin_on(&*vfs, Reached::default, String::new).ok().unwrap());
        assert!(screen.is_clear(), "{screen:?}");
    }

    #[test]
    fn bytes_that_are_written_are_counted() {
        let before = written_bytes();
        let dir = tempfile::tempdir().unwrap();
        let mut file = RealVfs::new().create(&dir.path().join("f"), spillway::internal::vfs::IfExists::Fail).unwrap();
        file.append(&[0; 100_000], IoClass::Other).unwrap();
        drop(file);
        let written = written_bytes();
        assert!(written == 0 || written >= before + 100_000, "{before} {written}");
    }
}
