//! A walk over one table file by itself: each key with its newest value, as RocksDB's `SstFileReader` shows a table.
//! Range tombstones of the table hide nothing.

use std::cmp::Ordering;
use std::sync::Arc;

use base::extend::MergeOperator;
use base::key::{self, ParsedKey, SEEK_KIND, append};
use base::{Cursor, Error, Result, SeqNo, UserOrder, ValueKind};
use table::{Table, TableReadOptions};

/// An iterator over a table. It keeps the table open.
pub struct TableWalk {
    cursor: Box<dyn Cursor>,
    order: UserOrder,
    operator: Option<Arc<dyn MergeOperator>>,
    /// The first key shown.
    lower: Option<Vec<u8>>,
    /// The key behind the last one shown.
    upper: Option<Vec<u8>>,
    entry: Option<Entry>,
    error: Option<Error>,
}

/// Key and value; the cursor stands behind all entries of the key.
struct Entry {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl TableWalk {
    /// A walk without a position. `order` is the table's.
    pub fn new(table: Arc<dyn Table>, order: UserOrder, operator: Option<Arc<dyn MergeOperator>>) -> TableWalk {
        let cursor = table.cursor(&TableReadOptions::default());
        TableWalk { cursor, order, operator, lower: None, upper: None, entry: None, error: None }
    }

    /// Shows keys from `lower` to before `upper` only.
    #[must_use]
    pub fn within(mut self, lower: Option<Vec<u8>>, upper: Option<Vec<u8>>) -> TableWalk {
        (self.lower, self.upper) = (lower, upper);
        self
    }

    /// True on an entry.
    pub fn valid(&self) -> bool {
        self.entry.is_some()
    }

    /// The user key; empty off entries.
    pub fn key(&self) -> &[u8] {
        self.entry.as_ref().map_or(&[], |entry| &entry.key)
    }

    /// The value; empty off entries.
    pub fn value(&self) -> &[u8] {
        self.entry.as_ref().map_or(&[], |entry| &entry.value)
    }

    /// # Errors
    /// That of the last move.
    pub fn status(&self) -> Result<()> {
        self.error.clone().map_or_else(|| self.cursor.status(), Err)
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        match self.lower.clone() {
            Some(lower) => self.seek(&lower),
            None => {
                self.cursor.seek_to_first();
                self.settle_forward();
            }
        }
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        match self.upper.clone() {
            Some(upper) => self.before(&upper),
            None => {
                self.cursor.seek_to_last();
            }
        }
        self.settle_backward();
    }

    /// To the first entry at or behind the key.
    pub fn seek(&mut self, key: &[u8]) {
        let below = self.lower.as_ref().filter(|lower| self.order.compare(key, lower).is_lt());
        let key = below.map_or(key, |lower| lower).to_vec();
        self.cursor.seek(&first_of(&key));
        self.settle_forward();
    }

    /// To the last entry at or before the key.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        if self.is_above(key) {
            return self.seek_to_last();
        }
        let mut last = Vec::new();
        append(&mut last, key, SeqNo::ZERO, 0);
        self.cursor.seek_for_prev(&last);
        self.settle_backward();
    }

    /// One step. Off entries it does nothing.
    pub fn next(&mut self) {
        if self.valid() {
            self.settle_forward();
        }
    }

    /// One step back. Off entries it does nothing.
    pub fn prev(&mut self) {
        let Some(entry) = self.entry.take() else { return };
        self.before(&entry.key);
        self.settle_backward();
    }

    /// Moves the cursor to the last entry before all of a key.
    fn before(&mut self, key: &[u8]) {
        if self.cursor.seek(&first_of(key)) {
            self.cursor.prev();
        } else {
            self.cursor.seek_to_last();
        }
    }

    fn is_above(&self, key: &[u8]) -> bool {
        self.upper.as_ref().is_some_and(|upper| self.order.compare(key, upper).is_ge())
    }

    /// Shows the first key with a value from the cursor on.
    fn settle_forward(&mut self) {
        (self.entry, self.error) = (None, None);
        while self.cursor.valid() && self.error.is_none() {
            let key = key::user_key(self.cursor.key()).to_vec();
            if self.is_above(&key) {
                return;
            }
            if let Some(value) = self.take_key(&key) {
                self.entry = Some(Entry { key, value });
                return;
            }
        }
    }

    /// Shows the last key with a value up to the cursor.
    fn settle_backward(&mut self) {
        (self.entry, self.error) = (None, None);
        while self.cursor.valid() && self.error.is_none() {
            let key = key::user_key(self.cursor.key()).to_vec();
            if self.lower.as_ref().is_some_and(|lower| self.order.compare(&key, lower).is_lt()) {
                return;
            }
            self.cursor.seek(&first_of(&key));
            if let Some(value) = self.take_key(&key) {
                self.entry = Some(Entry { key, value });
                return;
            }
            self.before(&key);
        }
    }

    /// The newest value of the key that the cursor is at; `None` if it is deleted. The cursor goes behind the key.
    fn take_key(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let mut operands: Vec<Vec<u8>> = Vec::new();
        let mut base = None;
        let mut is_settled = false;
        while self.cursor.valid() && self.order.compare(key::user_key(self.cursor.key()), key) == Ordering::Equal {
            match ParsedKey::parse(self.cursor.key()).map(|parsed| parsed.kind) {
                _ if is_settled => {}
                Some(ValueKind::Merge) => operands.push(self.cursor.value().to_vec()),
                Some(ValueKind::Value) => (base, is_settled) = (Some(self.cursor.value().to_vec()), true),
                _ => is_settled = true,
            }
            self.cursor.next();
        }
        if operands.is_empty() {
            return base;
        }
        operands.reverse();
        self.merged(key, base.as_deref(), &operands).map_err(|error| self.error = Some(error)).ok()
    }

    fn merged(&self, key: &[u8], base: Option<&[u8]>, operands: &[Vec<u8>]) -> Result<Vec<u8>> {
        let missing =
            || Error::invalid_argument("the table has merge operands, and there is no merge operator for them");
        let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
        let merged = self.operator.as_ref().ok_or_else(missing)?.full_merge(key, base, &operands);
        merged.ok_or_else(|| Error::corruption("merge operands of the table cannot be applied"))
    }
}

/// The internal key before all entries of a user key.
fn first_of(user_key: &[u8]) -> Vec<u8> {
    let mut target = Vec::new();
    append(&mut target, user_key, SeqNo::MAX, SEEK_KIND);
    target
}

#[cfg(test)]
mod tests {
    use vfs::{MemoryVfs, Vfs};

    use super::*;
    use crate::internal::dump::open_table_in;
    use crate::internal::{Database, OpenOptions, WriteOptions};

    /// A table with several versions of a key, and deletions.
    fn walk() -> TableWalk {
        let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
        let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).unwrap();
        let (family, write) = (db.default_family(), WriteOptions::default());
        let snapshots: Vec<_> = ["b", "d", "c", "a", "d"]
            .into_iter()
            .enumerate()
            .map(|(n, key)| {
                db.put(&family, key.as_bytes(), n.to_string().as_bytes(), &write).unwrap();
                db.snapshot()
            })
            .collect();
        db.delete(&family, b"c", &write).unwrap();
        db.delete(&family, b"e", &write).unwrap();
        db.flush(&[&family]).unwrap();
        drop(snapshots);
        let path = db.live_files().remove(0).path;
        let table = open_table_in(&vfs, &path, UserOrder::Bytewise).unwrap().into_table();
        TableWalk::new(table, UserOrder::Bytewise, None)
    }

    fn forward(walk: &mut TableWalk) -> String {
        let mut shown = String::new();
        while walk.valid() {
            shown += &format!("{}{} ", walk.key().escape_ascii(), walk.value().escape_ascii());
            walk.next();
        }
        walk.status().unwrap();
        shown
    }

    fn backward(walk: &mut TableWalk) -> String {
        let mut shown = String::new();
        while walk.valid() {
            shown += &format!("{}{} ", walk.key().escape_ascii(), walk.value().escape_ascii());
            walk.prev();
        }
        walk.status().unwrap();
        shown
    }

    #[test]
    fn each_key_is_shown_once_in_both_directions() {
        let mut walk = walk();
        assert!(!walk.valid());
        walk.seek_to_first();
        assert_eq!(forward(&mut walk), "a3 b0 d4 ");
        walk.seek_to_last();
        assert_eq!(backward(&mut walk), "d4 b0 a3 ");
        walk.seek(b"c");
        assert_eq!(walk.key(), b"d");
        walk.prev();
        assert_eq!(walk.key(), b"b");
        walk.next();
        assert_eq!(walk.key(), b"d");
        walk.seek_for_prev(b"c");
        assert_eq!(walk.key(), b"b");
        walk.seek_for_prev(b"0");
        assert!(!walk.valid());
    }

    #[test]
    fn bounds_hold_in_both_directions() {
        let mut walk = walk().within(Some(b"b".to_vec()), Some(b"d".to_vec()));
        walk.seek_to_first();
        assert_eq!(forward(&mut walk), "b0 ");
        walk.seek_to_last();
        assert_eq!(backward(&mut walk), "b0 ");
        walk.seek(b"a");
        assert_eq!(walk.key(), b"b");
        walk.seek_for_prev(b"z");
        assert_eq!(walk.key(), b"b");
        walk.seek_for_prev(b"a");
        assert!(!walk.valid());
    }
}
