//! A large batch, indexed ahead of its commit into a sealed memtable. Inside, its changes are numbered from 1. Readers
//! see them above a base, set once when the batch's sequence numbers are allocated.

use std::sync::{Arc, OnceLock};

use base::key::{self, SEEK_KIND};
use base::tombstone::{FragmentedTombstones, RangeTombstone};
use base::{Cursor, LookupKey, Result, SeqNo};
use table::{TableReadOptions, TableValue, Visit};

use crate::order::SeqRange;
use crate::order::pipeline::LogPosition;
use crate::queue::flushable::Enqueue;
use crate::queue::flushable::{Flushable, HeldMemtable};
use crate::queue::memory::Charge;

/// A memtable with internal sequence numbers.
pub struct RebasedMemtable {
    held: HeldMemtable,
    /// Numbers of the same commit before the batch's first.
    numbers_before: u64,
    given: OnceLock<SeqRange>,
    /// With external numbers; built on first use.
    tombstones: OnceLock<Option<Arc<FragmentedTombstones>>>,
}

impl RebasedMemtable {
    /// `held` is sealed and numbered from 1. The commit's first `numbers_before` numbers are not the batch's.
    pub fn new(held: HeldMemtable, numbers_before: u64) -> Arc<Self> {
        Arc::new(RebasedMemtable { held, numbers_before, given: OnceLock::new(), tombstones: OnceLock::new() })
    }

    fn raised_tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        let inside = self.held.memtable().tombstones()?;
        let base = self.base().0;
        let raised = inside.fragments().iter().flat_map(|fragment| {
            let of_seq = |seq: &SeqNo| RangeTombstone {
                start: fragment.start.clone(),
                end: fragment.end.clone(),
                seq: SeqNo(seq.0 + base),
            };
            fragment.seqs.iter().map(of_seq)
        });
        Some(Arc::new(FragmentedTombstones::build(inside.order().clone(), raised.collect())))
    }

    /// Added to internal numbers.
    fn base(&self) -> SeqNo {
        let given = self.given.get().expect("no view has a batch without numbers");
        SeqNo(given.before.0 + self.numbers_before)
    }
}

impl Flushable for RebasedMemtable {
    fn get(&self, key: &LookupKey, _options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        let base = self.base().0;
        let Some(seq) = key.seq().0.checked_sub(base) else { return Ok(()) };
        let inside = LookupKey::new(key.user_key(), SeqNo(seq));
        self.held
            .memtable()
            .get(&inside, &mut |seq, kind, bytes| visit(SeqNo(seq.0 + base), kind, TableValue { bytes, owner: None }));
        Ok(())
    }

    fn cursor(self: Arc<Self>, _options: &TableReadOptions) -> Result<Box<dyn Cursor>> {
        let inner = self.held.memtable().clone().cursor();
        Ok(Box::new(RebasedCursor { inner, base: self.base(), key: Vec::new(), target: Vec::new() }))
    }

    fn tombstones(&self, _options: &TableReadOptions) -> Result<Option<Arc<FragmentedTombstones>>> {
        Ok(self.tombstones.get_or_init(|| self.raised_tombstones()).clone())
    }

    fn created_at(&self) -> SeqNo {
        self.base()
    }

    fn largest_seq(&self) -> Option<SeqNo> {
        self.given.get().map(|given| given.last)
    }

    fn logged_through(&self) -> LogPosition {
        self.given.get().map_or(0, |given| given.log_end)
    }

    fn memory_bytes(&self) -> usize {
        self.held.memtable().memory_bytes()
    }

    fn charge(&self) -> Option<&Arc<Charge>> {
        Some(self.held.charge())
    }
}

impl Enqueue for RebasedMemtable {
    fn set_numbers(&self, given: &SeqRange) {
        self.given.set(*given).expect("an entry is numbered once");
    }
}

/// A cursor with external numbers.
struct RebasedCursor {
    inner: Box<dyn Cursor>,
    base: SeqNo,
    /// The current key, with its external number.
    key: Vec<u8>,
    target: Vec<u8>,
}

impl RebasedCursor {
    /// Copies the inner cursor's key, renumbered.
    fn show(&mut self, valid: bool) -> bool {
        self.key.clear();
        if let Some((user_key, trailer)) = key::split(self.inner.key()).filter(|_| valid) {
            self.key.extend_from_slice(user_key);
            self.key.extend_from_slice(&(trailer + (self.base.0 << 8)).to_le_bytes());
        }
        valid
    }

    /// Sets `target` to the internal form of an external target. Numbers at or below the base are older than every
    /// entry.
    fn lower(&mut self, target: &[u8]) {
        let (user_key, trailer) = key::split(target).unwrap_or((target, 0));
        let inside = trailer.saturating_sub(self.base.0 << 8);
        self.target.clear();
        self.target.extend_from_slice(user_key);
        self.target.extend_from_slice(&inside.to_le_bytes());
    }
}

impl Cursor for RebasedCursor {
    fn valid(&self) -> bool {
        self.inner.valid()
    }

    fn seek_to_first(&mut self) -> bool {
        let valid = self.inner.seek_to_first();
        self.show(valid)
    }

    fn seek_to_last(&mut self) -> bool {
        let valid = self.inner.seek_to_last();
        self.show(valid)
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        self.lower(target);
        let valid = self.inner.seek(&self.target);
        self.show(valid)
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        self.lower(target);
        let valid = self.inner.seek_for_prev(&self.target);
        self.show(valid)
    }

    fn next(&mut self) -> bool {
        let valid = self.inner.next();
        self.show(valid)
    }

    fn prev(&mut self) -> bool {
        let valid = self.inner.prev();
        self.show(valid)
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn value(&self) -> &[u8] {
        self.inner.value()
    }

    fn status(&self) -> Result<()> {
        self.inner.status()
    }
}

/// Seek targets carry the largest trailer of their number.
const _: () = assert!(SEEK_KIND == u8::MAX);

#[cfg(test)]
mod tests {
    use base::{FamilyId, InternalOrder, ValueKind};
    use memtable::{Entry, MemtableConfig};

    use super::*;
    use crate::queue::flushable::MemtableMaking;

    fn batch(entries: &[(&str, ValueKind, &str)]) -> Arc<RebasedMemtable> {
        let factory = memtable::factory_from_option_string("skip_list").expect("known");
        let config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, 1 << 16);
        let memtable = factory.create(&config).expect("memory");
        assert!(memtable.try_reserve(memtable.worst_case_bytes(entries.len(), 64)));
        for (i, (key, kind, value)) in entries.iter().enumerate() {
            let seq = SeqNo(i as u64 + 1);
            memtable.insert(Entry { user_key: key.as_bytes(), seq, kind: *kind, value: value.as_bytes() });
        }
        RebasedMemtable::new(HeldMemtable::new(memtable, 1 << 16, &MemtableMaking::inline()), 2)
    }

    #[test]
    fn entries_are_read_under_the_numbers_the_batch_took() {
        let batch = batch(&[
            ("a", ValueKind::Value, "1"),
            ("b", ValueKind::Value, "2"),
            ("a", ValueKind::Value, "3"),
            ("c", ValueKind::RangeDeletion, "d"),
        ]);
        batch.set_numbers(&SeqRange { before: SeqNo(98), last: SeqNo(104), log_end: 0 });
        let options = TableReadOptions::default();
        let seen = |seq| {
            let mut seen = Vec::new();
            let mut visit = |seq: SeqNo, _: ValueKind, value: TableValue<'_>| {
                seen.push((seq.0, value.bytes.to_vec()));
                true
            };
            batch.get(&LookupKey::new(b"a", SeqNo(seq)), &options, &mut visit).expect("readable");
            seen
        };
        assert_eq!(seen(104), [(103, b"3".to_vec()), (101, b"1".to_vec())]);
        assert_eq!(seen(102), [(101, b"1".to_vec())]);
        assert_eq!(seen(100), []);
        assert_eq!(seen(7), []);
        let tombstones = batch.tombstones(&TableReadOptions::default()).expect("readable").expect("one");
        assert_eq!(tombstones.covering(b"c", SeqNo(200)), Some(SeqNo(104)));
        let mut cursor = batch.cursor(&options).expect("cursor");
        assert!(cursor.seek(LookupKey::new(b"a", SeqNo(102)).internal()));
        assert_eq!(cursor.key(), key::encode(b"a", SeqNo(101), ValueKind::Value));
        assert!(cursor.seek(LookupKey::new(b"a", SeqNo(50)).internal()), "nothing of a is that old");
        assert_eq!(cursor.key(), key::encode(b"b", SeqNo(102), ValueKind::Value));
        assert!(cursor.seek_for_prev(LookupKey::new(b"b", SeqNo(50)).internal()));
        assert_eq!(cursor.key(), key::encode(b"b", SeqNo(102), ValueKind::Value));
    }
}
