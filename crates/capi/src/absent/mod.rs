//! RocksDB features missing from Spillway, so that programs able to do without them link.
//!
//! One rule: a function with an `errptr` reports `Not implemented: `. A function without one takes only handles made by
//! such a function, so it gets NULL (K1). It ends the process as everywhere, or does nothing if it destroys them.

mod timestamps;

use crate::failure::Failure;

/// A missing feature, for messages.
#[derive(Clone, Copy)]
struct Absent(&'static str);

impl Absent {
    fn failure(self) -> Failure {
        Failure::not_implemented(format!("{} are not there", self.0))
    }

    /// The outcome of a function in need of it.
    fn refuse<R>(self) -> Result<R, Failure> {
        Err(self.failure())
    }
}
