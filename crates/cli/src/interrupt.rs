//! Ctrl-C for commands with cleanup: the first one asks the command to end, the second one ends it. SIGTERM works the
//! same. The SIGHUP of a closed terminal only asks.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use spillway::internal::vfs::{IoClass, RealVfs};
use spillway::internal::{Error, ErrorKind, Result};

use crate::failure::{Failure, Outcome};

/// A shell's exit status for a command ended by SIGINT.
pub const INTERRUPTED_STATUS: u8 = 130;

/// The kernel's status of this process; bytes of the file to read.
const STATUS_FILE: &str = "/proc/self/status";
const STATUS_BYTES_MAX: usize = 64 << 10;

/// Flag: the command was asked to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on the first SIGINT or SIGTERM is only noted, and so is every SIGHUP: for a closed terminal both the
    /// shell and the kernel send one. Under `nohup` SIGHUP stays ignored.
    pub fn listen(&self) -> Outcome {
        let asked = &self.0;
        let failed = |error| Failure::refused(format!("cannot listen for Ctrl-C: {error}"));
        for signal in [SIGINT, SIGTERM] {
            // In this order: only the second signal finds the flag set.
            flag::register_conditional_shutdown(signal, INTERRUPTED_STATUS.into(), asked.clone()).map_err(failed)?;
            flag::register(signal, asked.clone()).map_err(failed)?;
        }
        if !ignores_hangup() {
            flag::register(SIGHUP, asked.clone()).map_err(failed)?;
        }
        Ok(())
    }

    /// Sets the flag as Ctrl-C does.
    #[cfg(test)]
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// `Closed`: the command was asked to end.
    pub fn check(&self) -> Result<()> {
        if self.is_asked() { Err(Error::closed("interrupted")) } else { Ok(()) }
    }

    /// Turns `Closed` after an interrupt into [`Failure::Interrupted`]; `so` describes the state of the work.
    pub fn explain<T>(&self, outcome: Outcome<T>, so: &str) -> Outcome<T> {
        match outcome {
            Err(Failure::Engine(error)) if self.is_asked() && error.kind() == ErrorKind::Closed => {
                Err(Failure::Interrupted(so.to_owned()))
            }
            outcome => outcome,
        }
    }
}

/// Whether SIGHUP was ignored when the command was started; false if the kernel gives no status.
fn ignores_hangup() -> bool {
    let read = || -> Result<Vec<u8>> {
        let mut status = vec![0; STATUS_BYTES_MAX];
        let read = RealVfs::new().open(Path::new(STATUS_FILE))?.read_at(0, &mut status, IoClass::Other)?;
        status.truncate(read);
        Ok(status)
    };
    let status = read().unwrap_or_default();
    let ignored = String::from_utf8_lossy(&status).lines().find_map(ignored_signals).unwrap_or(0);
    ignored & (1 << (SIGHUP - 1)) != 0
}

/// Parses the signals of a line `SigIgn:\t0000000000000001`; the lowest bit is signal 1.
fn ignored_signals(line: &str) -> Option<u64> {
    u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok()
}
