//! What may be handed to an ingest, and what becomes of it: which files are taken, what is found out about them, and that
//! whatever is refused leaves the database as it was and the caller's files untouched.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]
#![expect(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

mod common;
mod files;
mod foreign;
mod layers;
mod moving;
mod progress;
mod rocksdb;
mod scan;
