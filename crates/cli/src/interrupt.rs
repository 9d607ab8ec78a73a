//! Ctrl-C for commands that have something to clean up: the first one asks them to end, the second one ends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use spillway::{Error, Result};

use crate::failure::{Failure, Outcome};

/// What a shell has for a command that SIGINT ended.
const INTERRUPTED_STATUS: i32 = 130;

/// Whether the command was asked to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGINT and SIGTERM are only noted, the first time.
    pub fn listen() -> Outcome<Interrupt> {
        let asked = Arc::<AtomicBool>::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds the first one noted.
            let registered = flag::register_conditional_shutdown(signal, INTERRUPTED_STATUS, asked.clone())
                .and_then(|_| flag::register(signal, asked.clone()));
            registered.map_err(|error| Failure::refused(format!("cannot listen for Ctrl-C: {error}")))?;
        }
        Ok(Interrupt(asked))
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
        if self.is_asked() { Err(Error::closed("interrupted: nothing is kept of what was begun")) } else { Ok(()) }
    }
}
