//! A WAL record without its numbers: encoded before the commit lock, filled in when it is appended.

use base::SeqNo;
use log::RecordKind;
use smallvec::SmallVec;

use crate::commit::batch::{self, WriteBatch};
use crate::commit::committer::Given;

const NUMBER_BYTES: usize = 8;

/// A record without its numbers.
pub(crate) enum Record<'a> {
    /// A batch as it is. It begins with its first number.
    Batch(&'a WriteBatch),
    Made(MadeRecord),
}

/// A payload encoded for a commit.
pub(crate) struct MadeRecord {
    pub kind: RecordKind,
    pub payload: Vec<u8>,
    /// Offsets of the numbers in the payload, ascending, and each number's distance from the last number before the
    /// commit.
    pub numbers: SmallVec<[(usize, u64); 2]>,
}

impl Record<'_> {
    /// Bytes of the payload.
    pub fn len(&self) -> usize {
        match self {
            Record::Batch(batch) => batch.len(),
            Record::Made(made) => made.payload.len(),
        }
    }

    /// Calls `append` with the payload in pieces, numbers filled in. No copy is made while writers wait behind it.
    pub fn appended<R>(&self, given: &Given, append: impl FnOnce(RecordKind, &[&[u8]]) -> R) -> R {
        match self {
            Record::Batch(batch) => {
                let header = batch::header(SeqNo(given.before.0 + 1), batch.count());
                append(RecordKind::Batch, &[&header, batch.body()])
            }
            Record::Made(made) => append(made.kind, &made.pieces(&made.numbers_of(given))),
        }
    }
}

impl MadeRecord {
    fn numbers_of(&self, given: &Given) -> SmallVec<[[u8; NUMBER_BYTES]; 2]> {
        self.numbers.iter().map(|&(_, above)| (given.before.0 + above).to_le_bytes()).collect()
    }

    fn pieces<'a>(&'a self, numbers: &'a [[u8; NUMBER_BYTES]]) -> SmallVec<[&'a [u8]; 5]> {
        let mut pieces = SmallVec::new();
        let mut from = 0;
        for (&(at, _), number) in self.numbers.iter().zip(numbers) {
            pieces.push(self.payload.get(from..at).expect("places in the payload, in order"));
            pieces.push(&number[..]);
            from = at + NUMBER_BYTES;
        }
        pieces.push(self.payload.get(from..).expect("a place in the payload"));
        pieces
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    #[test]
    fn numbers_are_put_where_they_belong() {
        let payload = (0..30).collect();
        let record = MadeRecord { kind: RecordKind::Ingest, payload, numbers: smallvec![(0, 1), (17, 3)] };
        let given = Given { before: SeqNo(0x100), last: SeqNo(0x103), log_end: 0 };
        let bytes = record.pieces(&record.numbers_of(&given)).concat();
        let expected =
            [&0x101u64.to_le_bytes()[..], &record.payload[8..17], &0x103u64.to_le_bytes(), &record.payload[25..]];
        assert_eq!(bytes, expected.concat());
    }
}
