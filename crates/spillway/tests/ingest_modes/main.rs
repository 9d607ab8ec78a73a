//! The ways of an ingest beside each other, and what its options promise: seen through the public API.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system and threads as other programs do")]

mod behind;
mod cache;
mod closing;
mod common;
mod compactions;
mod corners;
mod excised;
mod merged;
mod options;
mod placed;
mod room;
mod states;
mod sunk;
mod told;
mod waits;
mod writers;
