//! Restart by image: a database whose process was killed opens with its memtables as they lie, and is the same in every
//! key as one that replayed its log.
#![allow(clippy::disallowed_methods, reason = "tests use threads as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
mod ext4;
mod full_disk;
mod idle;
mod ingests;
mod kills;
mod left;
mod remounts;
