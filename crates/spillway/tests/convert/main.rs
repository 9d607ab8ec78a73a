//! Memtables that become tables (`convert_to_sst`): what is read of them, where they go, and what becomes of a conversion
//! that fails or is cut off.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
mod crashes;
mod failures;
mod images;
mod moving;
mod reads;
mod told;
