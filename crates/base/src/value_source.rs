//! Values that live in a log instead of in the memtable or table that refers to them. The log implements the trait, so
//! that neither memtables nor tables import it.
//!
//! Where values may be elsewhere, what stands in a value's place begins with a byte that says what follows: the value,
//! or a reference to it. Format: docs/format/values.md

use crate::coding::{Reader, put_u32, put_u64};
use crate::error::{Error, Result};
use crate::key::FileNumber;
use crate::pinned::Pinned;

/// Where a value lies in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRef {
    pub log: FileNumber,
    pub offset: u64,
    pub len: u32,
    /// crc32c of the value's bytes, unmasked.
    pub crc: u32,
}

pub trait ValueSource: Send + Sync {
    /// # Errors
    /// `Corruption`: the bytes there do not match the reference's checksum, or the log is not one of this source's.
    fn resolve(&self, value: ValueRef) -> Result<Pinned>;

    /// Says in an error where the reference was found, if that is known.
    fn named(&self, error: Error) -> Error {
        error
    }
}

/// How references are written: both forms are read wherever there may be any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceForm {
    /// Every number whole: 25 bytes.
    Plain,
    /// 17 bytes, where the numbers fit: else as `Plain`.
    Short,
}

impl ReferenceForm {
    /// Values up to this length are kept in place: a reference would not be worth the second look. ToplingDB's limits.
    pub fn inline_max_bytes(self) -> usize {
        match self {
            ReferenceForm::Plain => 11,
            ReferenceForm::Short => 7,
        }
    }
}

/// The most bytes that a reference takes.
pub const REFERENCE_BYTES_MAX: usize = 25;

const HERE: u8 = 0;
const PLAIN: u8 = 1;
const SHORT: u8 = 2;

/// Limits of the short form: 40 bits of offset, 24 of length.
const SHORT_OFFSET_BITS: u32 = 40;
const SHORT_LEN_MAX: u32 = (1 << 24) - 1;

/// What stands in a value's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredValue<'a> {
    Here(&'a [u8]),
    InLog(ValueRef),
}

impl<'a> StoredValue<'a> {
    /// # Errors
    /// `Corruption`: `stored` is neither.
    pub fn decode(stored: &'a [u8]) -> Result<StoredValue<'a>> {
        let Some((tag, rest)) = stored.split_first() else {
            return Err(Error::corruption("nothing stands where a value or a reference to one should"));
        };
        let mut reader = Reader::new(rest);
        let value = match *tag {
            HERE => return Ok(StoredValue::Here(rest)),
            PLAIN => ValueRef {
                log: FileNumber(reader.u64("log")?),
                offset: reader.u64("offset")?,
                len: reader.u32("length")?,
                crc: reader.u32("checksum")?,
            },
            SHORT => {
                let (log, place, crc) = (reader.u32("log")?, reader.u64("place")?, reader.u32("checksum")?);
                let (offset, len) = (place & ((1 << SHORT_OFFSET_BITS) - 1), (place >> SHORT_OFFSET_BITS) as u32);
                ValueRef { log: FileNumber(log.into()), offset, len, crc }
            }
            other => return Err(Error::corruption(format!("a value of the unknown form {other}"))),
        };
        if !reader.is_empty() {
            return Err(Error::corruption("a reference to a value is too long"));
        }
        Ok(StoredValue::InLog(value))
    }
}

/// Appends what stands for a value that is kept in place.
pub fn put_here(out: &mut Vec<u8>, value: &[u8]) {
    out.push(HERE);
    out.extend_from_slice(value);
}

/// Appends what stands for a value in a log.
pub fn put_reference(out: &mut Vec<u8>, value: &ValueRef, form: ReferenceForm) {
    let log = u32::try_from(value.log.0).ok();
    let fits = value.offset >> SHORT_OFFSET_BITS == 0 && value.len <= SHORT_LEN_MAX;
    match log.filter(|_| fits && form == ReferenceForm::Short) {
        Some(log) => {
            out.push(SHORT);
            put_u32(out, log);
            put_u64(out, value.offset | u64::from(value.len) << SHORT_OFFSET_BITS);
        }
        None => {
            out.push(PLAIN);
            put_u64(out, value.log.0);
            put_u64(out, value.offset);
            put_u32(out, value.len);
        }
    }
    put_u32(out, value.crc);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn both_forms_round_trip_and_numbers_that_do_not_fit_the_short_one_take_the_plain() {
        let fits = ValueRef { log: FileNumber(7), offset: (1 << 40) - 1, len: SHORT_LEN_MAX, crc: 0xdead_beef };
        let larger = [
            ValueRef { log: FileNumber(1 << 32), ..fits },
            ValueRef { offset: 1 << 40, ..fits },
            ValueRef { len: 1 << 24, ..fits },
        ];
        for (value, form, bytes) in
            [(fits, ReferenceForm::Short, 17), (fits, ReferenceForm::Plain, REFERENCE_BYTES_MAX)]
                .into_iter()
                .chain(larger.map(|value| (value, ReferenceForm::Short, REFERENCE_BYTES_MAX)))
        {
            let mut stored = Vec::new();
            put_reference(&mut stored, &value, form);
            assert_eq!(stored.len(), bytes);
            assert_eq!(StoredValue::decode(&stored).expect("whole"), StoredValue::InLog(value));
            for len in 0..stored.len() {
                let error = StoredValue::decode(&stored[..len]).expect_err("cut off");
                assert_eq!(error.kind(), ErrorKind::Corruption);
            }
            stored.push(0);
            assert!(StoredValue::decode(&stored).is_err(), "too long");
        }
    }

    #[test]
    fn a_value_in_place_may_be_anything() {
        for value in [&b""[..], b"\x01", b"\x02value"] {
            let mut stored = Vec::new();
            put_here(&mut stored, value);
            assert_eq!(StoredValue::decode(&stored).expect("whole"), StoredValue::Here(value));
        }
        assert!(StoredValue::decode(b"\x03").is_err());
    }
}
