//! Reads past damage, with a report of each skipped part.
//!
//! A skipped part can hide newer entries: a read may show an older version of a key, or a deleted key. Only reads with
//! `skip_damaged` do this.

use std::fmt;

use base::Error;

/// A part skipped by a read: a block, a value, or a whole table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PassedOver {
    /// The damage; names the file and, for a block, the offset.
    pub error: Error,
    /// Lower bound of the affected user keys, inclusive; `None` if unknown.
    pub from: Option<Vec<u8>>,
    /// Upper bound of the affected user keys, inclusive; `None` if unknown.
    pub through: Option<Vec<u8>>,
}

impl PassedOver {
    /// A part with these bounds.
    pub fn new(error: Error, from: Option<Vec<u8>>, through: Option<Vec<u8>>) -> PassedOver {
        PassedOver { error, from, through }
    }

    /// Whether `error` is the same damage.
    pub(crate) fn is_of(&self, error: &Error) -> bool {
        let own = &self.error;
        own.path() == error.path() && own.offset() == error.offset() && own.message() == error.message()
    }

    /// Takes in the next key of a walk.
    pub(crate) fn extend(&mut self, key: &[u8], forward: bool) {
        let end = if forward { &mut self.through } else { &mut self.from };
        let end = end.get_or_insert_default();
        end.clear();
        end.extend_from_slice(key);
    }
}

/// Receives the parts skipped by reads. The same damage can be reported several times.
pub trait DamageSink: Send + Sync + fmt::Debug {
    /// Takes a skipped part.
    fn passed_over(&self, what: PassedOver);
}
