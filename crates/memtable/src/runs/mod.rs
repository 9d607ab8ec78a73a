//! Entries in the order of their arrival, sorted when somebody wants them in the order of their keys: what the vector
//! and the sorted hash share.
//!
//! An insert appends to the list of its stripe ([`list`]). A reader cuts off what has come since the last one, as a
//! *chunk* ([`chunk`]) that is sorted once ([`sort`]), by whoever needs it first, and shared from then on. Sorted chunks
//! are *runs*; [`ladder`] keeps them few, [`walk`] and [`cursor`] walk over all of them at once.

mod chunk;
mod cursor;
mod get;
mod item;
mod ladder;
mod list;
mod prefix;
mod sort;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use cursor::RunsCursor;
pub(crate) use item::{Entries, Item};
pub(crate) use list::{Growth, RunsList};
