//! Test kit of the engine: a language of operations, a model, and simulators of crashes and faults that run both.
//!
//! - [`ops`], [`ingest`], [`parse`]: the language, as data and as text. [`generate`]: random scripts. [`shrink`]:
//!   shorter ones.
//! - [`profile`], [`order`]: options and key orders of scripts. [`model`]: expected contents at each point of the
//!   history.
//! - [`run`]: runs a script on engine and model and compares them. [`crash`]: crashes at every operation of a script.
//!   [`faults`]: scripts on a failing file system.
//! - [`rescue`]: damages random lives, rescues them, and holds the rescue to its word.
//! - [`engine`]: the engine under test. [`history`]: a checker of transactions.
//! - [`gate`], [`threads`], [`concurrent`]: tests with real threads. [`kill`]: processes killed by SIGKILL. [`tables`]:
//!   tables to ingest.
#![forbid(unsafe_code)]

pub mod concurrent;
pub mod crash;
pub mod engine;
pub mod faults;
pub mod gate;
pub mod generate;
pub mod history;
pub mod ingest;
mod iterate;
pub mod kill;
pub mod model;
pub mod ops;
pub mod order;
pub mod parse;
pub mod profile;
pub mod random;
pub mod rescue;
pub mod run;
pub mod shrink;
pub mod tables;
pub mod threads;
