//! A record of the log whose numbers are not known yet: encoded before the commit lock, filled in when it is appended.

use std::borrow::Cow;

use log::RecordKind;
use smallvec::{SmallVec, smallvec};

use crate::write::batch::WriteBatch;
use crate::write::commit::Given;

const NUMBER_BYTES: usize = 8;

/// A record whose numbers are not known yet.
pub(crate) struct Record<'a> {
    pub kind: RecordKind,
    pub payload: Cow<'a, [u8]>,
    /// Where in the payload numbers stand, in order, and how far each is above the last number before the commit.
    pub numbers: SmallVec<[(usize, u64); 2]>,
}

impl<'a> Record<'a> {
    /// A batch as it is. It begins with its first number.
    pub fn of_batch(batch: &'a WriteBatch) -> Self {
        Record { kind: RecordKind::Batch, payload: Cow::Borrowed(batch.as_bytes()), numbers: smallvec![(0, 1)] }
    }

    /// Bytes of the payload.
    pub fn len(&self) -> usize {
        self.payload.len()
    }

    pub fn numbers(&self, given: &Given) -> SmallVec<[[u8; NUMBER_BYTES]; 2]> {
        self.numbers.iter().map(|&(_, above)| (given.before.0 + above).to_le_bytes()).collect()
    }

    /// The payload with the numbers filled in, piece by piece: it is not copied while writers wait behind it.
    pub fn pieces<'b>(&'b self, numbers: &'b [[u8; NUMBER_BYTES]]) -> SmallVec<[&'b [u8]; 5]> {
        let mut pieces = SmallVec::new();
        let mut from = 0;
        for (&(at, _), number) in self.numbers.iter().zip(numbers) {
            if at > from {
                pieces.push(self.payload.get(from..at).expect("places in the payload, in order"));
            }
            pieces.push(&number[..]);
            from = at + NUMBER_BYTES;
        }
        pieces.push(self.payload.get(from..).expect("a place in the payload"));
        pieces
    }
}

#[cfg(test)]
mod tests {
    use base::SeqNo;

    use super::*;

    #[test]
    fn numbers_are_put_where_they_belong() {
        let payload = Cow::Owned((0..30).collect());
        let record = Record { kind: RecordKind::Ingest, payload, numbers: smallvec![(0, 1), (17, 3)] };
        let given = Given { before: SeqNo(0x100), last: SeqNo(0x103), log_end: 0 };
        let bytes = record.pieces(&record.numbers(&given)).concat();
        let expected =
            [&0x101u64.to_le_bytes()[..], &record.payload[8..17], &0x103u64.to_le_bytes(), &record.payload[25..]];
        assert_eq!(bytes, expected.concat());
    }
}
