//! A live page of a Spillway database, in a browser: is it well, why was that write slow, what fills up next, what should I
//! turn?
//!
//! ```no_run
//! let db = spillway::Db::open("/tmp/app")?;
//! let server = live::Server::start(db.clone(), live::Settings::default())?;
//! println!("look at {}", server.url());
//! # Ok::<(), spillway::Error>(())
//! ```
//!
//! The server has two threads of its own, takes a reading each second while somebody looks, and every ten seconds else. It listens
//! on loopback without a token, elsewhere only with one; it changes options only with [`Settings::allow_changes`] and a token,
//! and none that deletes data. Nobody who looks can slow the database down: viewers are bounded, and share one reading.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod history;
pub mod options;
mod server;
mod source;
pub mod told;
pub mod units;
pub mod verdict;

pub use server::{Server, Settings};
pub use source::Source;
