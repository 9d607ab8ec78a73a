//! Entries in order of arrival, sorted when a reader needs key order. Shared by the vector and the sorted hash.
//!
//! An insert appends to the list of its stripe ([`list`]). A reader cuts off the entries appended since the last cut as
//! a *chunk* ([`chunk`]). The first reader of a chunk sorts it ([`sort`]); later readers share the result. Sorted
//! chunks are *runs*; [`ladder`] keeps them few, [`walk`] and [`cursor`] walk over all of them at once.

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
