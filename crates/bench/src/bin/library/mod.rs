//! A library with RocksDB's C API, loaded at run time, behind safe types. Shared by the programs beside this folder. Its premises: the
//! library keeps the contract of RocksDB's `c.h`; every pointer passed was made by the same library; the types below borrow from
//! each other as handles depend on each other.

mod call;
mod cursor;
mod database;
mod idle;
mod indexed;
mod options;
mod table;
mod tables;
mod transactions;
mod version;
#[allow(unused_imports, reason = "for `differential` only")]
pub mod whole;

pub use database::{Database, Habits};
pub use idle::wait_until_idle;
pub use indexed::IndexedBatch;
pub use options::Options;
pub use table::{Functions, Own};
pub use tables::TableFile;
pub use transactions::{Control, TransactionDatabase};
pub use version::version;
