//! Pages for users. There is nothing to call here.

#[doc = include_str!("durability.md")]
pub mod durability {}

#[doc = include_str!("tuning.md")]
pub mod tuning {}

#[doc = include_str!("bulk_loads.md")]
pub mod bulk_loads {}

#[doc = include_str!("from_rocksdb.md")]
pub mod from_rocksdb {}
