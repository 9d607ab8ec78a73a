//! Ctrl-C for commands that have something to clean up: the first one asks them to end, the second one ends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use spillway::{Error, ErrorKind, Result};

use crate::failure::{Failure, Outcome};

/// What a shell has for a command that SIGINT ended.
pub const INTERRUPTED_STATUS: u8 = 130;

/// Whether the command was asked to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGINT and SIGTERM are only noted, the first time.
    pub fn listen(&self) -> Outcome {
        let asked = &self.0;
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds the first one noted.
            let registered = flag::register_conditional_shutdown(signal, INTERRUPTED_STATUS.into(), asked.clone())
                .and_then(|_| flag::register(signal, asked.clone()));
            registered.map_err(|error| Failure::refused(format!("cannot listen for Ctrl-C: {error}")))?;
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
    pub fn explain<T>(&self, outcome: Outcome<T>, so: &'static str) -> Outcome<T> {
        match outcome {
            Err(Failure::Engine(error)) if self.is_asked() && error.kind() == ErrorKind::Closed => {
                Err(Failure::Interrupted(so))
            }
            outcome => outcome,
        }
    }
}
