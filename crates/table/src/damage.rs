//! Reads that go on past damage, and tell what they passed over.
//!
//! What is passed over can hide what lies beneath: of a key in a damaged block an older version may be shown, or one that
//! was deleted. Only reads that ask for it do this.

use std::fmt;

use base::Error;

/// What a read passed over: a block, a value, or a whole table.
#[derive(Clone, Debug)]
pub struct PassedOver {
    /// What is wrong; names file and, of a block, offset.
    pub error: Error,
    /// All user keys concerned are at or after this one; `None` where the first is not known.
    pub from: Option<Vec<u8>>,
    /// All user keys concerned are at or before this one; `None` where the last is not known.
    pub through: Option<Vec<u8>>,
}

/// Is told what reads pass over. The same damage can be met, and told, several times.
pub trait DamageSink: Send + Sync + fmt::Debug {
    fn passed_over(&self, what: PassedOver);
}
