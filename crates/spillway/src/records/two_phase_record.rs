//! Records of prepared transactions: the prepare with the batch, the commit and the rollback with the name. Format:
//! docs/format/log.md.

use base::coding::{Reader, put_prefixed, put_u32, put_u64, put_varint32};
use base::{Error, FamilyId, Result, SeqNo};
use wal::RecordKind;

use crate::batch::BatchReader;

/// Longest name of a transaction, as in RocksDB.
pub(crate) const NAME_BYTES_MAX: usize = 512;

/// A step of a transaction that is prepared before it is committed.
pub(crate) struct TransactionRecord<'a> {
    pub name: &'a [u8],
    /// The first number of the record.
    pub first: SeqNo,
    pub step: Step<'a>,
}

pub(crate) enum Step<'a> {
    /// Takes one number, so that flushed-through numbers tell which logs hold it.
    Prepare(BatchReader<'a>),
    Commit(CommitStep),
    /// Takes one number.
    Rollback,
}

/// The commit of a batch in an earlier record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommitStep {
    /// Changes of the batch. It takes a number for each, and one if it has none.
    pub count: u32,
    /// Families of the batch. Once all of them have flushed through the commit, the prepare's log may be gone.
    pub families: Vec<FamilyId>,
}

impl<'a> TransactionRecord<'a> {
    /// # Errors
    /// `Corruption`: a malformed record.
    pub fn decode(kind: RecordKind, payload: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(payload);
        let first = SeqNo(reader.u64("a transaction's number")?);
        let name = reader.prefixed("a transaction's name")?;
        let step = match kind {
            RecordKind::Prepare => Step::Prepare(BatchReader::new(reader.rest())?),
            RecordKind::Commit => Step::Commit(CommitStep::decode(&mut reader)?),
            _ => Step::Rollback,
        };
        let record = TransactionRecord { name, first, step };
        let is_named = (1..=NAME_BYTES_MAX).contains(&name.len());
        if !is_named || first.checked_add(record.count() - 1).is_none() {
            return Err(Error::corruption("a transaction's record is malformed"));
        }
        Ok(record)
    }

    /// The last number of the record.
    pub fn last(&self) -> SeqNo {
        SeqNo(self.first.0 + self.count() - 1)
    }

    fn count(&self) -> u64 {
        match &self.step {
            Step::Prepare(_) | Step::Rollback => 1,
            Step::Commit(commit) => numbers_of(commit.count),
        }
    }
}

impl CommitStep {
    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let count = reader.u32("a commit's count")?;
        let mut families = Vec::new();
        while !reader.is_empty() {
            families.push(FamilyId(reader.varint32("a commit's family")?));
        }
        Ok(CommitStep { count, families })
    }

    /// Whether recovery needs the prepare. `flushed_through`: of a family; `None` if the family was dropped.
    pub fn is_needed(&self, last: SeqNo, flushed_through: impl Fn(FamilyId) -> Option<SeqNo>) -> bool {
        self.families.iter().any(|family| flushed_through(*family).is_some_and(|flushed| flushed < last))
    }
}

/// A commit that replay needs, without its prepare.
#[cold]
pub(crate) fn commit_without_prepare(name: &[u8]) -> Error {
    let name = name.escape_ascii();
    Error::corruption(format!("the log commits transaction '{name}', and no record before has its changes"))
}

/// A prepare under a name whose transaction has not ended.
#[cold]
pub(crate) fn prepared_twice(name: &[u8]) -> Error {
    Error::corruption(format!("the log prepares transaction '{}' twice", name.escape_ascii()))
}

/// Checks that a commit is of its `prepare`, which has so many changes.
///
/// # Errors
/// `Corruption`: it is another transaction's.
pub(crate) fn check_same(prepare: u32, commit: &CommitStep) -> Result<()> {
    match prepare == commit.count {
        true => Ok(()),
        false => Err(Error::corruption("a commit and its prepare differ in their number of changes")),
    }
}

/// Numbers taken by the commit of a batch of `count` changes.
pub(crate) fn numbers_of(count: u32) -> u64 {
    u64::from(count).max(1)
}

/// The payload of a rollback, and the start of the others: a number to be filled in, then the name.
pub(crate) fn encode_head(name: &[u8]) -> Vec<u8> {
    encode_numbered_head(SeqNo::ZERO, name)
}

pub(crate) fn encode_numbered_head(first: SeqNo, name: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_u64(&mut bytes, first.0);
    put_prefixed(&mut bytes, name);
    bytes
}

/// The payload of a commit, without its number.
pub(crate) fn encode_commit(name: &[u8], commit: &CommitStep) -> Vec<u8> {
    let mut bytes = encode_head(name);
    put_u32(&mut bytes, commit.count);
    commit.families.iter().for_each(|family| put_varint32(&mut bytes, family.0));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch;

    fn with_number(mut payload: Vec<u8>, number: u64) -> Vec<u8> {
        payload[..8].copy_from_slice(&number.to_le_bytes());
        payload
    }

    #[test]
    fn records_have_the_documented_layout() {
        let rollback = with_number(encode_head(b"t1"), 0x0102);
        assert_eq!(rollback, b"\x02\x01\0\0\0\0\0\0\x02t1");
        let step = CommitStep { count: 3, families: vec![FamilyId(0), FamilyId(300)] };
        let commit = with_number(encode_commit(b"t1", &step), 7);
        assert_eq!(commit, b"\x07\0\0\0\0\0\0\0\x02t1\x03\0\0\0\0\xac\x02");
        let record = TransactionRecord::decode(RecordKind::Commit, &commit).expect("valid");
        assert!((record.name, record.first, record.last()) == (b"t1", SeqNo(7), SeqNo(9)));
        assert!(matches!(record.step, Step::Commit(decoded) if decoded == step));
        let prepare = [&with_number(encode_head(b"t1"), 5)[..], &batch::header(SeqNo::ZERO, 4)].concat();
        let record = TransactionRecord::decode(RecordKind::Prepare, &prepare).expect("valid");
        assert_eq!((record.first, record.last()), (SeqNo(5), SeqNo(5)));
        assert!(matches!(record.step, Step::Prepare(batch) if batch.declared_count() == 4));
    }

    #[test]
    fn malformed_records_are_refused() {
        let step = CommitStep { count: 2, families: Vec::new() };
        let commit = encode_commit(b"name", &step);
        for len in 0..commit.len() {
            TransactionRecord::decode(RecordKind::Commit, &commit[..len]).err().expect("cut");
        }
        for name in [&b""[..], &[b'n'; NAME_BYTES_MAX + 1]] {
            TransactionRecord::decode(RecordKind::Rollback, &encode_head(name)).err().expect("no name");
        }
        let late = with_number(commit, SeqNo::MAX.0);
        TransactionRecord::decode(RecordKind::Commit, &late).err().expect("numbers end at 56 bits");
        TransactionRecord::decode(RecordKind::Prepare, &encode_head(b"name")).err().expect("no batch");
    }

    #[test]
    fn the_commit_of_no_change_takes_a_number() {
        let step = CommitStep { count: 0, families: Vec::new() };
        let payload = with_number(encode_commit(b"name", &step), 9);
        let record = TransactionRecord::decode(RecordKind::Commit, &payload).expect("valid");
        assert_eq!((record.first, record.last()), (SeqNo(9), SeqNo(9)));
        assert!(!step.is_needed(SeqNo(9), |_| Some(SeqNo::ZERO)));
    }
}
