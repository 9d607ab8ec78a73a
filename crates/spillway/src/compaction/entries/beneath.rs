//! The sinking table: newer than the stream's output, but to lie beneath it. The stream yields none of its keys (V4).

use std::sync::Arc;

use base::note;
use base::{Cursor, Error, InternalOrder, LookupKey, ParsedKey, Result, SeqNo, ValueKind};
use table::TableReadOptions;
use vfs::IoClass;

use super::bad_entry;
use crate::cursor::level::{LevelCursor, LevelFiles};
use crate::version::table_file::TableFile;

/// Steps towards a key before a seek. A seek costs a block read, and the stream's keys may be as dense as the table's.
const STEPS_MAX: u32 = 8;

/// Looks up ascending user keys in the sinking table.
pub struct Beneath {
    file: Arc<TableFile>,
    order: InternalOrder,
    cursor: LevelCursor,
    target: LookupKey,
    is_placed: bool,
}

/// The table's newest entry of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Nothing,
    /// An entry with this number, hiding older entries of its stripe.
    Hiding(SeqNo),
    /// A merge operand; it needs older entries.
    Operand,
}

impl Held {
    /// The number of a hiding entry.
    pub fn hiding(self) -> Option<SeqNo> {
        if let Held::Hiding(seq) = self { Some(seq) } else { None }
    }
}

impl Beneath {
    /// # Errors
    /// As [`refuse`](Self::refuse): the table cannot be read, or its range tombstones would hide entries above it.
    pub fn new(order: &InternalOrder, file: &Arc<TableFile>) -> Result<Self> {
        let options = TableReadOptions {
            fill_cache: false,
            total_order_seek: true,
            class: IoClass::Compaction,
            ..TableReadOptions::default()
        };
        let cursor = LevelCursor::over(order.clone(), LevelFiles::One(file.clone()), options);
        let beneath = Beneath {
            file: file.clone(),
            order: order.clone(),
            cursor,
            target: LookupKey::default(),
            is_placed: false,
        };
        match file.open().map(|table| table.tombstones()) {
            Ok(None) => Ok(beneath),
            Ok(Some(_)) => Err(beneath.refuse()),
            Err(error) => Err(beneath.refuse_unread(&error)),
        }
    }

    /// Returns `Busy`: the stream would yield an entry that may not lie above the table. The table is not tried again,
    /// since such an obstacle often stays.
    #[cold]
    pub fn refuse(&self) -> Error {
        self.file.keep_above();
        Error::busy(format!("table {} hides or needs what would lie above it", self.file.number()))
    }

    /// Refuses an unreadable table. Its readers report the damage.
    #[cold]
    fn refuse_unread(&self, error: &Error) -> Error {
        note::warn!(%error, table = %self.file.number(), "a table stays where it is, as it cannot be read");
        self.refuse()
    }

    /// The table's newest entry of the key.
    ///
    /// # Errors
    /// As [`refuse`](Self::refuse), if the table cannot be read. `Corruption`: a key does not parse.
    pub(super) fn held(&mut self, user_key: &[u8]) -> Result<Held> {
        let is_before = |cursor: &LevelCursor| {
            cursor.valid() && self.order.user.compare(base::key::user_key(cursor.key()), user_key).is_lt()
        };
        let mut steps = 0;
        while self.is_placed && steps < STEPS_MAX && is_before(&self.cursor) {
            self.cursor.next();
            steps += 1;
        }
        if !self.is_placed || is_before(&self.cursor) {
            self.target.set(user_key, SeqNo::MAX);
            self.cursor.seek(self.target.internal());
            self.is_placed = true;
        }
        if !self.cursor.valid() {
            return self.cursor.status().map(|()| Held::Nothing).map_err(|error| self.refuse_unread(&error));
        }
        let internal_key = self.cursor.key();
        let Some(entry) = ParsedKey::parse(internal_key) else { return Err(bad_entry(internal_key)) };
        Ok(match entry.kind {
            _ if !self.order.user.equal(entry.user_key, user_key) => Held::Nothing,
            ValueKind::Merge => Held::Operand,
            _ => Held::Hiding(entry.seq),
        })
    }
}

#[cfg(test)]
mod tests {
    use base::ErrorKind;
    use vfs::{MemoryVfs, Vfs};

    use super::*;
    use crate::internal::{Database, OpenOptions, WriteOptions};
    use crate::version::file_name::FileType;

    /// Readable tables: `tests/ingest_modes/sunk.rs`.
    #[test]
    fn a_table_that_cannot_be_opened_is_refused_and_not_tried_again() {
        let vfs = MemoryVfs::new(1);
        let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        options.db.max_open_files = 1;
        let db = Database::open("/db", &options).expect("a new database");
        let (core, family) = (db.core(), db.default_family());
        for key in [b"a", b"b"] {
            db.put(&family, key, b"value", &WriteOptions::default()).expect("written");
            db.flush(&[&family]).expect("flushed");
        }
        let version = family.view_full().version.clone();
        for file in version.level(0) {
            let is_open = file.is_open();
            vfs.remove_file(&core.path_of(FileType::Table, file.number())).expect("removed");
            match Beneath::new(family.order(), file) {
                Ok(_) => assert!(is_open),
                Err(error) => assert_eq!((error.kind(), is_open), (ErrorKind::Busy, false)),
            }
            assert_eq!(file.is_kept_above(), !is_open);
        }
        assert!(version.level(0).iter().any(|file| file.is_kept_above()), "no more than one was open");
    }
}
