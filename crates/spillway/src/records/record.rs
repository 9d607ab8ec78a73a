//! The record of a commit, as every reader of a WAL decodes it: an ingest, a batch, or an ingest with a batch above it.
//! The batch lies in the record, or is large and lies in a file of its own, or was prepared by an earlier record. Keeps
//! D3. Format: docs/format/log.md.

use std::path::{Path, PathBuf};

use base::coding::{Reader, put_u32, put_u64, put_varint32};
use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNo};
use vfs::Vfs;
use wal::{DatabaseId, RecordKind, ReplayOptions};

use crate::batch::BatchReader;
use crate::records::ingest_record::IngestRecord;
use crate::records::two_phase_record::TransactionRecord;
use crate::version::file_name::{self, FileType};

/// What a record commits: an ingest, a batch, or both. A step of a prepared transaction stands for its batch.
pub(crate) struct CommitRecord<'a> {
    pub ingest: Option<IngestRecord>,
    /// Its numbers follow the ingest's.
    pub batch: Option<RecordedBatch<'a>>,
}

pub(crate) enum RecordedBatch<'a> {
    InRecord(BatchReader<'a>),
    InFile(LargeBatchRecord),
    Prepared(TransactionRecord<'a>),
}

impl<'a> CommitRecord<'a> {
    /// `None`: records of this kind commit nothing.
    ///
    /// # Errors
    /// `Corruption`: a malformed record.
    pub fn decode(kind: RecordKind, payload: &'a [u8]) -> Result<Option<Self>> {
        let (ingest, rest) = match kind {
            RecordKind::Batch | RecordKind::LargeBatch => (None, payload),
            RecordKind::Ingest | RecordKind::IngestAndLargeBatch => {
                let (ingest, rest) = IngestRecord::decode(payload)?;
                (Some(ingest), rest)
            }
            RecordKind::Noop | RecordKind::End => return Ok(None),
            RecordKind::Prepare | RecordKind::Commit | RecordKind::Rollback => {
                let batch = RecordedBatch::Prepared(TransactionRecord::decode(kind, payload)?);
                return Ok(Some(CommitRecord { ingest: None, batch: Some(batch) }));
            }
        };
        let batch = match kind {
            RecordKind::Ingest if rest.is_empty() => None,
            RecordKind::Batch | RecordKind::Ingest => Some(RecordedBatch::InRecord(BatchReader::new(rest)?)),
            _ => Some(RecordedBatch::InFile(LargeBatchRecord::decode(rest)?)),
        };
        let first = batch.as_ref().map(RecordedBatch::first);
        if ingest.as_ref().zip(first).is_some_and(|(ingest, first)| first.0 != ingest.last().0 + 1) {
            return Err(Error::corruption("the batch beside an ingest does not go on from its numbers"));
        }
        Ok(Some(CommitRecord { ingest, batch }))
    }

    /// The first and the last number; `None` if there are none, as in an empty batch.
    pub fn numbers(&self) -> Option<(SeqNo, SeqNo)> {
        let of_ingest = self.ingest.as_ref().map(|ingest| (ingest.first, ingest.last()));
        let of_batch = self.batch.as_ref().and_then(RecordedBatch::numbers);
        let (first, _) = of_ingest.or(of_batch)?;
        let (_, last) = of_batch.or(of_ingest)?;
        Some((first, last))
    }
}

impl RecordedBatch<'_> {
    fn first(&self) -> SeqNo {
        match self {
            RecordedBatch::InRecord(batch) => batch.seq(),
            RecordedBatch::InFile(large) => large.first,
            RecordedBatch::Prepared(record) => record.first,
        }
    }

    fn numbers(&self) -> Option<(SeqNo, SeqNo)> {
        match self {
            // No overflow: the reader checked it.
            RecordedBatch::InRecord(batch) => {
                let above_first = u64::from(batch.declared_count()).checked_sub(1)?;
                Some((batch.seq(), SeqNo(batch.seq().0 + above_first)))
            }
            RecordedBatch::InFile(large) => Some((large.first, large.last())),
            RecordedBatch::Prepared(record) => Some((record.first, record.last())),
        }
    }
}

/// A large batch in a commit's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LargeBatchRecord {
    /// The first number of the batch.
    pub first: SeqNo,
    pub count: u32,
    /// File of the batch: a WAL with the batch as its only record.
    pub file: FileNumber,
    /// Families of the batch. Once all of them have flushed through it, the file may be gone.
    pub families: Vec<FamilyId>,
}

impl LargeBatchRecord {
    /// Begins with the first number. The length does not depend on that number.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_u64(&mut bytes, self.first.0);
        put_u32(&mut bytes, self.count);
        put_u64(&mut bytes, self.file.0);
        self.families.iter().for_each(|family| put_varint32(&mut bytes, family.0));
        bytes
    }

    fn decode(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(payload);
        let first = SeqNo(reader.u64("a large batch's first number")?);
        let count = reader.u32("a large batch's count")?;
        let file = FileNumber(reader.u64("a large batch's file")?);
        let mut families = Vec::new();
        while !reader.is_empty() {
            families.push(FamilyId(reader.varint32("a large batch's family")?));
        }
        if count == 0 || first.checked_add(u64::from(count) - 1).is_none() {
            return Err(Error::corruption("a large batch's record is malformed"));
        }
        Ok(LargeBatchRecord { first, count, file, families })
    }

    /// The last number of the batch.
    pub fn last(&self) -> SeqNo {
        SeqNo(self.first.0 + u64::from(self.count) - 1)
    }

    pub fn path(&self, log_dir: &Path) -> PathBuf {
        log_dir.join(file_name::format(FileType::LargeBatch, self.file))
    }

    /// Whether recovery needs the file. `flushed_through`: of a family; `None` if the family was dropped.
    pub fn is_needed(&self, flushed_through: impl Fn(FamilyId) -> Option<SeqNo>) -> bool {
        let needs = |family: &FamilyId| flushed_through(*family).is_some_and(|flushed| flushed < self.last());
        self.families.iter().any(needs)
    }

    /// Calls `see` with the batch in the file, which the database's session made; 0: any session. Returns the end of the batch's record.
    ///
    /// # Errors
    /// `Corruption`: the file is damaged, holds anything but the batch, or is missing ([`Error::is_not_found`]).
    pub fn read(
        &self,
        vfs: &dyn Vfs,
        log_dir: &Path,
        (database, session): (DatabaseId, u32),
        see: &mut dyn FnMut(BatchReader<'_>) -> Result<()>,
    ) -> Result<u64> {
        let path = self.path(log_dir);
        // Synced before its commit record was written: the whole file must exist.
        let (number, mode) = (self.file, WalRecoveryMode::AbsoluteConsistency);
        let options = ReplayOptions { number, mode, database, session, ..ReplayOptions::default() };
        let mut batches = 0;
        let end = wal::replay(vfs, &path, &options, &mut |held| {
            batches += 1;
            let batch = BatchReader::new(held.payload)?;
            if held.kind != RecordKind::Batch || batch.declared_count() != self.count || batches > 1 {
                return Err(Error::corruption("the file does not hold the batch that the log commits").at_path(&path));
            }
            see(batch).map_err(|error| error.at_record(&path, held.offset))
        });
        let end = match end {
            Err(error) if error.is_not_found() && error.path() == Some(&path) => {
                let gone = std::io::Error::from(std::io::ErrorKind::NotFound);
                let what = "the file of a large batch is missing, which the log commits";
                return Err(Error::corruption(what).at_path(path).with_source(gone));
            }
            // Another database's: this one's is lost.
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {
                return Err(Error::corruption(error.message()).at_path(path));
            }
            end => end?,
        };
        if batches == 0 {
            return Err(Error::corruption("the file of a large batch is empty").at_path(path));
        }
        Ok(end.end_offset)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::batch;
    use crate::records::ingest_record::FamilyIngest;

    fn large(first: u64) -> LargeBatchRecord {
        let families = vec![FamilyId(0), FamilyId(300)];
        LargeBatchRecord { first: SeqNo(first), count: 3, file: FileNumber(12), families }
    }

    /// Takes the number 40.
    fn ingest() -> IngestRecord {
        let excise = Some((b"k".to_vec(), b"p".to_vec()));
        let share = FamilyIngest { excise, ..FamilyIngest::default() };
        IngestRecord { first: SeqNo(40), families: vec![Arc::new(share)], ..IngestRecord::default() }
    }

    fn numbers(kind: RecordKind, payload: &[u8]) -> Option<(u64, u64)> {
        let record = CommitRecord::decode(kind, payload).expect("valid").expect("it commits");
        record.numbers().map(|(first, last)| (first.0, last.0))
    }

    #[test]
    fn kinds_that_commit_nothing_have_no_numbers() {
        for kind in [RecordKind::Noop, RecordKind::End] {
            assert!(CommitRecord::decode(kind, b"").expect("valid").is_none());
        }
    }

    #[test]
    fn a_large_batch_round_trips_and_nothing_else_passes() {
        let record = large(7);
        let bytes = record.encode();
        assert_eq!(LargeBatchRecord::decode(&bytes).expect("valid"), record);
        assert_eq!(record.last(), SeqNo(9));
        for len in 0..20 {
            LargeBatchRecord::decode(&bytes[..len]).expect_err("cut");
        }
        LargeBatchRecord::decode(&large(SeqNo::MAX.0).encode()).expect_err("numbers end at 56 bits");
        let empty = LargeBatchRecord { count: 0, ..record };
        LargeBatchRecord::decode(&empty.encode()).expect_err("no change at all");
    }

    #[test]
    fn a_file_is_needed_until_every_family_left_has_flushed_through_it() {
        let record = large(7);
        let needed = |flushed: [Option<u64>; 2]| {
            record.is_needed(|family| flushed[usize::from(family != FamilyId::DEFAULT)].map(SeqNo))
        };
        assert!(needed([Some(9), Some(8)]) && needed([Some(0), None]));
        assert!(!needed([Some(9), Some(20)]) && !needed([None, Some(9)]) && !needed([None, None]));
    }

    #[test]
    fn numbers_span_the_ingest_and_the_batch_wherever_it_lies() {
        let (ingest, batch) = (ingest().encode(), batch::header(SeqNo(41), 4));
        assert_eq!(numbers(RecordKind::Batch, &batch), Some((41, 44)));
        assert_eq!(numbers(RecordKind::Batch, &batch::header(SeqNo(41), 0)), None);
        assert_eq!(numbers(RecordKind::LargeBatch, &large(7).encode()), Some((7, 9)));
        assert_eq!(numbers(RecordKind::Ingest, &ingest), Some((40, 40)));
        assert_eq!(numbers(RecordKind::Ingest, &[&ingest[..], &batch].concat()), Some((40, 44)));
        let with_large = [&ingest[..], &large(41).encode()].concat();
        assert_eq!(numbers(RecordKind::IngestAndLargeBatch, &with_large), Some((40, 43)));
    }

    #[test]
    fn a_large_batch_beside_an_ingest_goes_on_from_its_numbers() {
        let kind = RecordKind::IngestAndLargeBatch;
        for first in [0, 1, 40, 42, SeqNo::MAX.0 - 2] {
            let payload = [ingest().encode(), large(first).encode()].concat();
            CommitRecord::decode(kind, &payload).err().expect("not its numbers");
        }
        CommitRecord::decode(kind, &ingest().encode()).err().expect("no batch");
    }
}
