//! Ctrl-C for commands that have something to clean up: the first one asks them to end, the second one ends them. So do
//! SIGTERM, and the SIGHUP of a terminal that is closed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use spillway::vfs::{IoClass, RealVfs};
use spillway::{Error, ErrorKind, Result};

use crate::failure::{Failure, Outcome};

/// What a shell has for a command that SIGINT ended.
pub const INTERRUPTED_STATUS: u8 = 130;

/// What the kernel says of this process, and how much of it is read, in bytes.
const STATUS_FILE: &str = "/proc/self/status";
const STATUS_BYTES_MAX: usize = 64 << 10;

/// Whether the command was asked to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGINT and SIGTERM are only noted, the first time, and SIGHUP whenever it comes: of a terminal that is closed
    /// the shell tells, and then the kernel. Under `nohup` it goes on being ignored.
    pub fn listen(&self) -> Outcome {
        let asked = &self.0;
        let failed = |error| Failure::refused(format!("cannot listen for Ctrl-C: {error}"));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds the first one noted.
            flag::register_conditional_shutdown(signal, INTERRUPTED_STATUS.into(), asked.clone()).map_err(failed)?;
            flag::register(signal, asked.clone()).map_err(failed)?;
        }
        if !ignores_hangup() {
            flag::register(SIGHUP, asked.clone()).map_err(failed)?;
        }
        Ok(())
    }

    /// As Ctrl-C does.
    #[cfg(test)]
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// `Closed`: it was asked.
    pub fn check(&self) -> Result<()> {
        if self.is_asked() { Err(Error::closed("interrupted")) } else { Ok(()) }
    }

    /// Tells a failure that comes of it apart from others; `so` says what became of the work.
    pub fn explain<T>(&self, outcome: Outcome<T>, so: &str) -> Outcome<T> {
        match outcome {
            Err(Failure::Engine(error)) if self.is_asked() && error.kind() == ErrorKind::Closed => {
                Err(Failure::Interrupted(so.to_owned()))
            }
            outcome => outcome,
        }
    }
}

/// Whether whoever started the command had it ignore SIGHUP; false where the kernel does not tell.
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

/// The signals that a line `SigIgn:\t0000000000000001` names, the lowest bit being signal 1.
fn ignored_signals(line: &str) -> Option<u64> {
    u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok()
}
