//! What RocksDB has and Spillway has not, so that programs which can do without it link.
//!
//! One rule: a function that has an `errptr` reports `Not implemented: `. One without takes only handles that such a function
//! would have made; so it gets NULL (K1), which ends the process as everywhere, or does nothing where it destroys them.

mod log_iterator;
mod secondary;
pub mod timestamps;
mod transactions;

use crate::failure::Failure;

/// What the engine has not, for messages.
#[derive(Clone, Copy)]
struct Absent(&'static str);

impl Absent {
    fn failure(self) -> Failure {
        Failure::not_implemented(format!("{} are not there", self.0))
    }

    /// The outcome of a function that would need it.
    fn refuse<R>(self) -> Result<R, Failure> {
        Err(self.failure())
    }
}
