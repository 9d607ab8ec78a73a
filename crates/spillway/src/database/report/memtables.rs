//! Ranges of keys in memtables.

use std::sync::Arc;

use base::key::{self, SEEK_KIND, append, user_key};
use base::{Cursor, SeqNo};
use memtable::Memtable;

use crate::core::family::Family;

/// Entries that are counted one by one. What is beyond them is estimated.
const COUNTED_MAX: u64 = 10_000;

/// The part of memtables within a range of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemtableRange {
    /// Point entries, every version of a key.
    pub entries: u64,
    /// Bytes of their keys and values, by the average of the memtables.
    pub bytes: u64,
}

/// See [`Database::approximate_memtables`](crate::internal::Database::approximate_memtables).
pub(super) fn between(range: (&[u8], &[u8]), family: &Family) -> MemtableRange {
    let (start, end) = range;
    let mut all = MemtableRange::default();
    for flushable in family.view_full().flushables() {
        let Some(memtable) = flushable.as_memtable().filter(|memtable| memtable.entries() > 0) else { continue };
        let counts = memtable.counts();
        let entries = entries_between(memtable, family, start, end).min(counts.entries);
        all.entries += entries;
        all.bytes += (entries as f64 * counts.payload_bytes as f64 / counts.entries as f64) as u64;
    }
    all
}

fn entries_between(memtable: &Arc<dyn Memtable>, family: &Family, start: &[u8], end: &[u8]) -> u64 {
    let mut target = Vec::with_capacity(start.len() + key::TRAILER_BYTES);
    append(&mut target, start, SeqNo::MAX, SEEK_KIND);
    let mut cursor = memtable.clone().cursor();
    let (mut entries, mut is_on) = (0, cursor.seek(&target));
    while is_on && family.order().user.compare(user_key(cursor.key()), end).is_lt() {
        entries += 1;
        if entries == COUNTED_MAX {
            return memtable.approximate_entries(start, end).max(entries);
        }
        is_on = cursor.next();
    }
    entries
}

#[cfg(test)]
mod tests {
    use vfs::MemoryVfs;

    use super::*;
    use crate::internal::{Database, OpenOptions, WriteOptions};

    #[test]
    fn entries_of_a_range_are_counted_or_estimated() {
        let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).expect("opened");
        let family = db.default_family();
        for n in 0..40_000u32 {
            db.put(&family, &n.to_be_bytes(), b"value", &WriteOptions::default()).expect("put");
        }
        let range = |from: u32, to: u32| {
            db.approximate_memtables(&family, &from.to_be_bytes(), &to.to_be_bytes()).expect("open")
        };
        assert_eq!(range(10, 20).entries, 10);
        assert!((80..=100).contains(&range(10, 20).bytes), "{:?}", range(10, 20));
        let half = range(10_000, 30_000).entries;
        assert!((10_000..=40_000).contains(&half), "{half}");
        assert_eq!((range(20, 10).entries, range(50_000, 60_000).entries), (0, 0));
        db.flush(&[&family]).expect("flushed");
        assert_eq!(range(10, 20), MemtableRange::default());
    }
}
