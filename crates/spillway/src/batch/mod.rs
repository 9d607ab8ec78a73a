//! Write batches in RocksDB's layout: `fixed64 sequence, fixed32 count, records` (`db/write_batch.cc`). A batch is
//! encoded once; its records go to the WAL as they are.

pub mod options;

use base::coding::{Reader, decode_u32, decode_u64, put_prefixed, put_varint32};
use base::limits::{self, ENTRY_BYTES_MAX, KEY_BYTES_MAX};
use base::{Error, FamilyId, Result, SeqNo, ValueKind};

/// Bytes before the first record.
pub const HEADER_BYTES: usize = 12;

/// Maximum bytes of an encoded batch: it is one WAL record.
const BATCH_BYTES_MAX: u64 = wal::PAYLOAD_BYTES_MAX;

/// Record tags without a `ValueKind`. Families other than the default one have separate tags.
pub(crate) mod tag {
    pub const LOG_DATA: u8 = 0x3;
    pub const FAMILY_DELETION: u8 = 0x4;
    pub const FAMILY_VALUE: u8 = 0x5;
    pub const FAMILY_MERGE: u8 = 0x6;
    pub const FAMILY_SINGLE_DELETION: u8 = 0x8;
    // Steps of transactions, in RocksDB's logs only.
    pub const BEGIN_PREPARE: u8 = 0x9;
    pub const END_PREPARE: u8 = 0xA;
    pub const COMMIT: u8 = 0xB;
    pub const ROLLBACK: u8 = 0xC;
    pub const NOOP: u8 = 0xD;
    pub const FAMILY_RANGE_DELETION: u8 = 0xE;
    /// Begins a prepare of the write policy `WritePrepared`.
    pub const BEGIN_WRITE_PREPARED: u8 = 0x12;
    /// Begins a part of a transaction of the write policy `WriteUnprepared`.
    pub const BEGIN_WRITE_UNPREPARED: u8 = 0x13;
    pub const COMMIT_WITH_TIMESTAMP: u8 = 0x15;
}

/// Tag of a record outside the default family.
fn family_tag(kind: ValueKind) -> u8 {
    match kind {
        ValueKind::Deletion => tag::FAMILY_DELETION,
        ValueKind::Value => tag::FAMILY_VALUE,
        ValueKind::Merge => tag::FAMILY_MERGE,
        ValueKind::SingleDeletion => tag::FAMILY_SINGLE_DELETION,
        ValueKind::RangeDeletion => tag::FAMILY_RANGE_DELETION,
    }
}

/// The kind of a record, and whether a family number follows its tag.
fn kind_of_tag(byte: u8) -> Option<(ValueKind, bool)> {
    Some(match byte {
        tag::FAMILY_DELETION => (ValueKind::Deletion, true),
        tag::FAMILY_VALUE => (ValueKind::Value, true),
        tag::FAMILY_MERGE => (ValueKind::Merge, true),
        tag::FAMILY_SINGLE_DELETION => (ValueKind::SingleDeletion, true),
        tag::FAMILY_RANGE_DELETION => (ValueKind::RangeDeletion, true),
        byte => (ValueKind::from_u8(byte)?, false),
    })
}

/// Changes applied together: all or none, across families.
///
/// A batch names families by id and is not bound to a database. Written to a database other than the source of the ids,
/// it changes the families with the same ids there.
///
/// A change larger than the limits ([`limits`]) is not added. Writing the batch then fails, unless it is rolled back to
/// an earlier savepoint.
#[derive(Clone, Debug)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    count: u32,
    /// Why a change was left out. If set, the batch cannot be written.
    left_out: Option<LeftOut>,
    savepoints: Vec<Savepoint>,
}

/// Why a batch left out a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOut {
    TooLarge,
    TooManyChanges,
}

/// The place of a change's key and value in the encoded batch.
pub(crate) struct Placed {
    pub key_at: usize,
    pub key_len: usize,
    pub value_at: usize,
    pub value_len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Savepoint {
    len: usize,
    count: u32,
    left_out: Option<LeftOut>,
}

impl Default for WriteBatch {
    fn default() -> Self {
        WriteBatch { bytes: vec![0; HEADER_BYTES], count: 0, left_out: None, savepoints: Vec::new() }
    }
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes in RocksDB's layout and checks every record.
    ///
    /// # Errors
    /// `Corruption`: the bytes are not a batch, or its count is wrong. `Unsupported`: a record type this version cannot
    /// apply. `InvalidArgument`: a change larger than the limits ([`limits`]).
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let reader = BatchReader::new(&bytes)?;
        let count = reader.declared_count();
        let mut records = 0u64;
        for record in reader {
            let record = record?;
            limits::check_change(record.kind, record.key, record.value)?;
            records += 1;
        }
        if records != u64::from(count) {
            return Err(Error::corruption(format!(
                "WriteBatch has wrong count: it says {count} records and holds {records}"
            )));
        }
        Ok(WriteBatch { bytes, count, left_out: None, savepoints: Vec::new() })
    }

    /// The encoded batch. Its sequence number is set at the commit.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The encoded records, without the header.
    pub(crate) fn body(&self) -> &[u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// Number of changes. Log data does not count.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// True if the batch has no changes and left none out: writing it succeeds and changes nothing.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.left_out.is_none()
    }

    /// Bytes of the encoded batch.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all changes and savepoints.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER_BYTES);
        self.set_count(0);
        self.left_out = None;
        self.savepoints.clear();
    }

    /// Sets the value of a key.
    pub fn put(&mut self, family: FamilyId, key: &[u8], value: &[u8]) {
        self.add(family, ValueKind::Value, key, value);
    }

    /// Adds an operand of a merge.
    pub fn merge(&mut self, family: FamilyId, key: &[u8], operand: &[u8]) {
        self.add(family, ValueKind::Merge, key, operand);
    }

    /// Deletes a key.
    pub fn delete(&mut self, family: FamilyId, key: &[u8]) {
        self.add(family, ValueKind::Deletion, key, &[]);
    }

    /// Deletes a key put at most once since its last deletion. Otherwise the result is undefined, as in RocksDB.
    pub fn single_delete(&mut self, family: FamilyId, key: &[u8]) {
        self.add(family, ValueKind::SingleDeletion, key, &[]);
    }

    /// Deletes `[start, end)`.
    pub fn delete_range(&mut self, family: FamilyId, start: &[u8], end: &[u8]) {
        self.add(family, ValueKind::RangeDeletion, start, end);
    }

    /// Adds a blob to the WAL record only; the database does not change. Without changes in the batch it is not logged.
    pub fn put_log_data(&mut self, blob: &[u8]) {
        if blob.len() > ENTRY_BYTES_MAX {
            self.left_out = Some(LeftOut::TooLarge);
            return;
        }
        self.bytes.push(tag::LOG_DATA);
        put_prefixed(&mut self.bytes, blob);
    }

    /// Sets a savepoint for [`rollback_to_savepoint`](Self::rollback_to_savepoint).
    pub fn set_savepoint(&mut self) {
        let savepoint = Savepoint { len: self.bytes.len(), count: self.count, left_out: self.left_out };
        self.savepoints.push(savepoint);
    }

    /// Removes the last savepoint and everything added since. False if there is none.
    pub fn rollback_to_savepoint(&mut self) -> bool {
        let Some(savepoint) = self.savepoints.pop() else { return false };
        self.bytes.truncate(savepoint.len);
        self.set_count(savepoint.count);
        self.left_out = savepoint.left_out;
        true
    }

    /// Removes the last savepoint, but keeps everything added since. False if there is none.
    pub fn pop_savepoint(&mut self) -> bool {
        self.savepoints.pop().is_some()
    }

    /// Whether every change is a deletion.
    #[cold]
    pub(crate) fn only_deletes(&self) -> bool {
        let deletes = |kind| matches!(kind, ValueKind::Deletion | ValueKind::SingleDeletion | ValueKind::RangeDeletion);
        self.iter().all(|change| change.is_ok_and(|change| deletes(change.kind)))
    }

    /// The changes, in order.
    pub fn iter(&self) -> BatchReader<'_> {
        BatchReader { rest: Reader::new(self.body()), seq: SeqNo::ZERO, count: self.count, failed: false }
    }

    /// True if a change was left out as too large or one too many. Writing the batch will fail.
    pub fn is_oversized(&self) -> bool {
        self.left_out.is_some()
    }

    /// # Errors
    /// `InvalidArgument`: the batch is too large, or a change was left out.
    pub(crate) fn check_size(&self) -> Result<()> {
        let what = match self.left_out {
            Some(LeftOut::TooLarge) => {
                format!(
                    "a change of the batch is too large: a key has {KEY_BYTES_MAX} bytes at most, and {ENTRY_BYTES_MAX} \
                     together with its value"
                )
            }
            Some(LeftOut::TooManyChanges) => format!("a batch has {} changes at most", u32::MAX),
            None if self.bytes.len() as u64 > BATCH_BYTES_MAX => {
                format!("the batch has {} bytes; {BATCH_BYTES_MAX} is the most: write it in parts", self.bytes.len())
            }
            None => return Ok(()),
        };
        Err(Error::invalid_argument(what))
    }

    /// Adds a change of any kind. Returns its place; `None` if it was left out. A deletion has no value; a range
    /// deletion's is its end.
    #[inline]
    pub(crate) fn add(&mut self, family: FamilyId, kind: ValueKind, key: &[u8], value: &[u8]) -> Option<Placed> {
        if limits::check_change(kind, key, value).is_err() {
            self.left_out = Some(LeftOut::TooLarge);
            return None;
        }
        if self.count == u32::MAX {
            self.left_out = Some(LeftOut::TooManyChanges);
            return None;
        }
        if family == FamilyId::DEFAULT {
            self.bytes.push(kind as u8);
        } else {
            self.bytes.push(family_tag(kind));
            put_varint32(&mut self.bytes, family.0);
        }
        put_prefixed(&mut self.bytes, key);
        let key_end = self.bytes.len();
        if !matches!(kind, ValueKind::Deletion | ValueKind::SingleDeletion) {
            put_prefixed(&mut self.bytes, value);
        }
        self.set_count(self.count + 1);
        let (key_len, value_len, end) = (key.len(), value.len(), self.bytes.len());
        Some(Placed { key_at: key_end - key_len, key_len, value_at: end - value_len, value_len })
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        if let Some(field) = self.bytes.get_mut(8..HEADER_BYTES) {
            field.copy_from_slice(&count.to_le_bytes());
        }
    }
}

/// Header of a batch of `count` changes; the first has number `seq`.
pub(crate) fn header(seq: SeqNo, count: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    let (seq_field, count_field) = bytes.split_at_mut(8);
    seq_field.copy_from_slice(&seq.0.to_le_bytes());
    count_field.copy_from_slice(&count.to_le_bytes());
    bytes
}

/// One change of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRecord<'a> {
    /// The family.
    pub family: FamilyId,
    /// The kind of change.
    pub kind: ValueKind,
    /// The key; the start of a range deletion.
    pub key: &'a [u8],
    /// Empty for deletions; the end of the range for a range deletion.
    pub value: &'a [u8],
}

/// A record of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchItem<'a> {
    /// A change.
    Change(BatchRecord<'a>),
    /// A blob for readers of the WAL.
    LogData(&'a [u8]),
}

/// Iterates over the changes of an encoded batch. Skips log data and no-ops. Ends after the first error.
#[derive(Clone, Debug)]
pub struct BatchReader<'a> {
    rest: Reader<'a>,
    seq: SeqNo,
    count: u32,
    failed: bool,
}

impl<'a> BatchReader<'a> {
    /// Reads a batch's bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let short = || {
            Error::corruption(format!(
                "malformed WriteBatch (too small): {} bytes, {HEADER_BYTES} at least",
                bytes.len()
            ))
        };
        let (head, body) = bytes.split_at_checked(HEADER_BYTES).ok_or_else(short)?;
        let seq = SeqNo(decode_u64(head).ok_or_else(short)?);
        let count = head.get(8..).and_then(decode_u32).ok_or_else(short)?;
        if seq.checked_add(u64::from(count.saturating_sub(1))).is_none() {
            return Err(Error::corruption(format!("a write batch's sequence number {seq} is past the end of 56 bits")));
        }
        Ok(BatchReader { rest: Reader::new(body), seq, count, failed: false })
    }

    /// Reads `count` encoded changes, of which the first has number `seq`.
    pub(crate) fn of_changes(seq: SeqNo, count: u32, changes: &'a [u8]) -> Self {
        BatchReader { rest: Reader::new(changes), seq, count, failed: false }
    }

    /// The number of the batch's first change.
    pub fn seq(&self) -> SeqNo {
        self.seq
    }

    /// Number of changes in the header.
    pub fn declared_count(&self) -> u32 {
        self.count
    }

    /// The changes not read yet, encoded.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest.clone().rest()
    }

    /// The batch as bytes, without its number.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [&header(SeqNo::ZERO, self.count), self.rest.rest()].concat()
    }

    /// Bytes of the changes not read yet.
    pub(crate) fn rest_bytes(&self) -> usize {
        self.rest.len()
    }

    fn read(&mut self) -> Result<Option<BatchRecord<'a>>> {
        while let Some(item) = self.item()? {
            if let BatchItem::Change(record) = item {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The next change or blob of log data.
    #[inline]
    fn item(&mut self) -> Result<Option<BatchItem<'a>>> {
        while !self.rest.is_empty() {
            match self.rest.u8("a batch record's tag")? {
                tag::LOG_DATA => return Ok(Some(BatchItem::LogData(self.rest.prefixed("log data in a batch")?))),
                tag::NOOP => {}
                tag => return self.change(tag).map(BatchItem::Change).map(Some),
            }
        }
        Ok(None)
    }

    /// The changes and the log data, in order. Ends after the first error.
    pub fn with_log_data(mut self) -> impl Iterator<Item = Result<BatchItem<'a>>> {
        let mut failed = false;
        std::iter::from_fn(move || {
            if failed {
                return None;
            }
            let item = self.item();
            failed = item.is_err();
            item.transpose()
        })
    }

    fn change(&mut self, tag: u8) -> Result<BatchRecord<'a>> {
        let Some((kind, has_family)) = kind_of_tag(tag) else {
            return Err(Error::unsupported(format!("{UNKNOWN_TAG}: {tag} ({})", tag_name(tag))));
        };
        let (key_name, value_name) = match kind {
            ValueKind::Deletion | ValueKind::SingleDeletion => ("bad WriteBatch Delete: its key", ""),
            ValueKind::RangeDeletion => {
                ("bad WriteBatch DeleteRange: its start", "bad WriteBatch DeleteRange: its end")
            }
            ValueKind::Merge => ("bad WriteBatch Merge: its key", "bad WriteBatch Merge: its value"),
            _ => ("bad WriteBatch Put: its key", "bad WriteBatch Put: its value"),
        };
        let family =
            if has_family { FamilyId(self.rest.varint32("a batch record's family")?) } else { FamilyId::DEFAULT };
        let key = self.rest.prefixed(key_name)?;
        let value = match kind {
            ValueKind::Deletion | ValueKind::SingleDeletion => &[],
            _ => self.rest.prefixed(value_name)?,
        };
        Ok(BatchRecord { family, kind, key, value })
    }
}

impl<'a> Iterator for BatchReader<'a> {
    type Item = Result<BatchRecord<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.read();
        self.failed = record.is_err();
        record.transpose()
    }
}

/// Whether RocksDB is known to have records with this tag.
pub(crate) fn is_known(tag: u8) -> bool {
    kind_of_tag(tag).is_some() || tag_name(tag) != UNKNOWN
}

const UNKNOWN: &str = "unknown";

/// The beginning of the error of a batch with a record that is not read here, as RocksDB's.
pub const UNKNOWN_TAG: &str = "unknown WriteBatch tag";

fn tag_name(tag: u8) -> &'static str {
    match tag {
        tag::BEGIN_PREPARE..=tag::ROLLBACK => "two-phase commit",
        tag::BEGIN_WRITE_PREPARED => "a prepare of write policy WritePrepared",
        tag::BEGIN_WRITE_UNPREPARED => "a prepare of write policy WriteUnprepared",
        tag::COMMIT_WITH_TIMESTAMP => "a commit with a timestamp",
        0x10 | 0x11 => "blob index",
        0x16 | 0x17 => "wide columns",
        0x18 | 0x19 => "preferred sequence number",
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ErrorKind;

    fn records(batch: &WriteBatch) -> Vec<(u32, ValueKind, Vec<u8>, Vec<u8>)> {
        batch
            .iter()
            .map(|r| r.expect("well formed"))
            .map(|r| (r.family.0, r.kind, r.key.to_vec(), r.value.to_vec()))
            .collect()
    }

    #[test]
    fn a_batch_has_rocksdbs_layout() {
        let mut batch = WriteBatch::new();
        batch.put(FamilyId::DEFAULT, b"k", b"vv");
        batch.delete(FamilyId(3), b"d");
        batch.put_log_data(b"x");
        batch.delete_range(FamilyId::DEFAULT, b"a", b"b");
        let expected = b"\0\0\0\0\0\0\0\0\x03\0\0\0\x01\x01k\x02vv\x04\x03\x01d\x03\x01x\x0f\x01a\x01b";
        assert_eq!(batch.as_bytes(), expected);
        assert_eq!(records(&WriteBatch::from_bytes(expected.to_vec()).expect("valid")), records(&batch));
        let items: Vec<_> = batch.iter().with_log_data().map(|item| item.expect("well formed")).collect();
        assert!(items.len() == 4 && items.get(2) == Some(&BatchItem::LogData(b"x")), "{items:?}");
    }

    #[test]
    fn savepoints_nest() {
        let mut batch = WriteBatch::new();
        batch.put(FamilyId(1), b"a", b"");
        batch.set_savepoint();
        batch.merge(FamilyId(1), b"b", b"1");
        batch.set_savepoint();
        batch.single_delete(FamilyId(1), b"c");
        assert!(batch.rollback_to_savepoint());
        assert_eq!(batch.count(), 2);
        assert!(batch.pop_savepoint());
        assert!(!batch.rollback_to_savepoint());
        assert_eq!(records(&batch).len(), 2);
    }

    #[test]
    fn a_count_that_lies_and_a_cut_batch_are_refused() {
        let mut batch = WriteBatch::new();
        batch.put(FamilyId::DEFAULT, b"key", b"value");
        let mut lying = batch.as_bytes().to_vec();
        lying[8] = 2;
        assert_eq!(WriteBatch::from_bytes(lying).expect_err("lies").kind(), ErrorKind::Corruption);
        for len in 0..batch.len() {
            let error = WriteBatch::from_bytes(batch.as_bytes()[..len].to_vec()).expect_err("cut");
            assert_eq!(error.kind(), ErrorKind::Corruption, "{len}");
        }
        let mut unknown = batch.as_bytes().to_vec();
        unknown[HEADER_BYTES] = 0x16;
        assert_eq!(WriteBatch::from_bytes(unknown).expect_err("wide column").kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn what_no_table_can_hold_is_left_out_and_the_batch_refused() {
        let mut large = vec![0; ENTRY_BYTES_MAX + 1]; // never touched, so never in memory
        type Add = fn(&mut WriteBatch, &[u8]);
        let adds: [Add; 6] = [
            |batch, large| batch.put(FamilyId::DEFAULT, b"", large),
            |batch, large| batch.put(FamilyId(1), &large[..=KEY_BYTES_MAX], b""),
            |batch, large| batch.put(FamilyId(1), b"key", &large[3..]),
            |batch, large| batch.merge(FamilyId::DEFAULT, b"", large),
            |batch, large| batch.delete_range(FamilyId::DEFAULT, b"", &large[..=KEY_BYTES_MAX]),
            |batch, large| batch.put_log_data(large),
        ];
        for (i, add) in adds.iter().enumerate() {
            let mut batch = WriteBatch::new();
            batch.put(FamilyId::DEFAULT, b"k", b"");
            batch.set_savepoint();
            add(&mut batch, &large);
            assert!(!batch.is_empty(), "{i}");
            let error = batch.check_size().expect_err("too large");
            assert!(error.to_string().contains(&ENTRY_BYTES_MAX.to_string()), "{i}: {error}");
            assert!((batch.count(), batch.is_oversized()) == (1, true) && batch.len() < 100, "{i}");
            assert!(batch.rollback_to_savepoint() && !batch.is_oversized(), "{i}: taken back");
            batch.check_size().expect("as before");
        }
        // The same as bytes: a value, all zeros, of one byte more than fits.
        let mut head = header(SeqNo(1), 1).to_vec();
        head.extend([ValueKind::Value as u8, 0]);
        base::coding::put_varint64(&mut head, ENTRY_BYTES_MAX as u64 + 1);
        large = vec![0; head.len() + ENTRY_BYTES_MAX + 1];
        large[..head.len()].copy_from_slice(&head);
        assert_eq!(WriteBatch::from_bytes(large).expect_err("too large").kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn a_batch_larger_than_a_record_is_refused() {
        let value_bytes = 3 << 30;
        let mut head = header(SeqNo(1), 2).to_vec();
        let mut value = vec![ValueKind::Value as u8, 0];
        base::coding::put_varint64(&mut value, value_bytes as u64);
        head.extend(&value);
        let mut bytes = vec![0; HEADER_BYTES + 2 * (value.len() + value_bytes)]; // all but two pages are never touched
        bytes[..head.len()].copy_from_slice(&head);
        bytes[head.len() + value_bytes..][..value.len()].copy_from_slice(&value);
        let batch = WriteBatch::from_bytes(bytes).expect("each change fits");
        assert!(batch.check_size().expect_err("too large").to_string().contains(&u32::MAX.to_string()));
    }
}
