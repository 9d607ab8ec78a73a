//! A record of the log whose numbers are not known yet: encoded before the commit lock, filled in when it is appended.

use log::RecordKind;
use smallvec::SmallVec;

use crate::write::given::Given;

const NUMBER_BYTES: usize = 8;

/// A record whose numbers are not known yet.
pub(crate) struct Record {
    pub kind: RecordKind,
    pub payload: Vec<u8>,
    /// Where in it numbers are to be put, in order, and how far each is above the last number before the change.
    pub numbers: SmallVec<[(usize, u64); 2]>,
}

impl Record {
    /// Of its payload.
    pub fn len(&self) -> usize {
        self.payload.len()
    }

    pub fn numbers(&self, given: &Given) -> SmallVec<[[u8; NUMBER_BYTES]; 2]> {
        self.numbers.iter().map(|&(_, above)| (given.before.0 + above).to_le_bytes()).collect()
    }

    /// Its bytes with the numbers filled in, piece by piece: the payload is not copied while writers wait behind it.
    pub fn with<'a>(&'a self, numbers: &'a [[u8; NUMBER_BYTES]]) -> SmallVec<[&'a [u8]; 5]> {
        let mut parts = SmallVec::new();
        let mut from = 0;
        for (&(at, _), number) in self.numbers.iter().zip(numbers) {
            parts.push(self.payload.get(from..at).expect("places in the payload, in order"));
            parts.push(&number[..]);
            from = at + NUMBER_BYTES;
        }
        parts.push(self.payload.get(from..).expect("a place in the payload"));
        parts
    }
}

#[cfg(test)]
mod tests {
    use base::SeqNo;
    use smallvec::smallvec;

    use super::*;

    #[test]
    fn numbers_are_put_where_they_belong() {
        let payload = (0..30).collect();
        let record = Record { kind: RecordKind::Ingest, payload, numbers: smallvec![(0, 1), (17, 3)] };
        let given = Given { before: SeqNo(0x100), last: SeqNo(0x103), log_end: 0 };
        let bytes = record.with(&record.numbers(&given)).concat();
        let expected =
            [&0x101u64.to_le_bytes()[..], &record.payload[8..17], &0x103u64.to_le_bytes(), &record.payload[25..]];
        assert_eq!(bytes, expected.concat());
    }
}
