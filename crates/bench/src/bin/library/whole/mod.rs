//! RocksDB's whole interface as one thread uses it, for the program that compares two libraries call by call. A failed call yields
//! the library's own message. Handles are counted: an object keeps alive whatever its handle depends on, so that they may be
//! dropped in any order. Nothing here is `Send`.

mod batch;
mod callbacks;
mod cursor;
mod held;
mod reads;
mod setup;
mod store;
mod table;
mod tables;
mod transaction;
mod writes;

pub use batch::{Batch, Indexed};
pub use callbacks::{append, count};
pub use cursor::Cursor;
pub use held::Answer;
pub use reads::{How, Reads, Snapshot};
pub use setup::{Library, Merging, Setup};
pub use store::{Compaction, Family, Ingest, Kind, Store};
pub use tables::write_table;
pub use transaction::{Begin, Transaction};
pub use writes::Change;
