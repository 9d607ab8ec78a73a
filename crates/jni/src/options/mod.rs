//! Options of databases, families and calls.

pub mod backup;
pub mod calls;
pub mod comparator;
pub mod compression;
pub mod config;
pub mod database;
pub mod env;
pub mod family;
pub mod files;
pub mod lives;
pub mod objects;
pub mod read;
pub mod styles;
pub mod table;
pub mod transactions;
