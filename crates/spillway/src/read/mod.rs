//! Reads of a view: point lookups and iterators.
//!
//! A read holds a [`ReadView`](crate::queue::view::ReadView) and a sequence number (V1) and searches the view's sources
//! from young to old (Q1). [`get`] searches them for one key, [`changed`] for its newest number. [`iterator`] merges their cursors
//! and hides entries invisible at the number.

pub mod changed;
pub mod get;
pub mod iterator;
pub mod multi_get;
