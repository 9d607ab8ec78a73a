//! What the engine is tested with: one language of operations, a model to compare with, and simulators of crashes and
//! faults that both drive.
//!
//! - [`ops`], [`ingest`], [`parse`]: the language, as data and as text. [`generate`]: random scripts. [`shrink`]: short ones.
//! - [`profile`], [`order`]: the options that scripts run under, and orders of keys. [`model`]: what a database should hold,
//!   at each point of its life.
//! - [`run`]: a script on engine and model, compared. [`crash`]: what every crash during a script leaves behind.
//!   [`faults`]: what a script does whose file system fails.
//! - [`gate`], [`threads`], [`concurrent`]: for tests with real threads. [`kill`]: processes that are killed.
//!   [`tables`]: tables to ingest.
#![forbid(unsafe_code)]

pub mod concurrent;
pub mod crash;
pub mod faults;
pub mod gate;
pub mod generate;
pub mod ingest;
mod iterate;
pub mod kill;
pub mod model;
pub mod ops;
pub mod order;
pub mod parse;
pub mod profile;
pub mod random;
pub mod run;
pub mod shrink;
pub mod tables;
pub mod threads;
