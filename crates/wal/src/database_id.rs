//! Database ids in WAL headers. Databases may share a WAL directory and must not replay each other's WALs.

use std::fmt;

/// Id bytes in a WAL header. RocksDB's ids have 36 characters and fit.
pub(crate) const DATABASE_ID_BYTES: usize = 40;

/// A database id, truncated to the header's field. Zeros if unknown, as in WALs written before the field existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseId(pub(crate) [u8; DATABASE_ID_BYTES]);

impl DatabaseId {
    /// No database: of a log of an early version.
    pub const UNKNOWN: DatabaseId = DatabaseId([0; DATABASE_ID_BYTES]);

    /// The id as stored in a log's header.
    pub fn new(id: &str) -> Self {
        Self::from_bytes(id.as_bytes())
    }

    pub(crate) fn from_bytes(id: &[u8]) -> Self {
        let mut bytes = [0; DATABASE_ID_BYTES];
        bytes.iter_mut().zip(id).for_each(|(to, from)| *to = *from);
        DatabaseId(bytes)
    }

    /// True unless it is [`UNKNOWN`](Self::UNKNOWN).
    pub fn is_known(self) -> bool {
        self != Self::UNKNOWN
    }

    /// True if both ids are known and differ.
    pub fn is_another_than(self, other: DatabaseId) -> bool {
        self.is_known() && other.is_known() && self != other
    }
}

impl Default for DatabaseId {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy(&self.0);
        write!(f, "{}", text.trim_end_matches('\0').escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_ids_differ() {
        let (one, other, unknown) = (DatabaseId::new("one"), DatabaseId::new("other"), DatabaseId::new(""));
        assert!(one.is_another_than(other) && !one.is_another_than(one));
        assert!(!one.is_another_than(unknown) && !unknown.is_another_than(one) && !unknown.is_known());
        let long = "0123456789".repeat(5);
        assert_eq!(DatabaseId::new(&long).to_string(), long[..40]);
        assert_eq!(DatabaseId::new("a\n").to_string(), "a\\n");
    }
}
