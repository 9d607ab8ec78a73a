//! Values in a WAL file, referenced from memtables and tables. The WAL implements the trait, so memtables and tables do
//! not import the WAL.
//!
//! If references are possible, a stored value begins with a tag byte; the value or a reference follows. Format:
//! docs/format/values.md

use crate::coding::{Reader, put_u32, put_u64};
use crate::error::{Error, Result};
use crate::key::FileNumber;
use crate::pinned::Pinned;

/// Position of a value in a WAL file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRef {
    /// The log's number.
    pub log: FileNumber,
    /// The value's offset in the log, in bytes.
    pub offset: u64,
    /// The value's length, in bytes.
    pub len: u32,
    /// crc32c of the value's bytes, unmasked.
    pub crc: u32,
}

/// Reads values that lie in logs.
pub trait ValueSource: Send + Sync {
    /// # Errors
    /// `Corruption`: the bytes do not match the reference's checksum, or this source has no such WAL file.
    fn resolve(&self, value: ValueRef) -> Result<Pinned>;

    /// Adds the reference's own location to an error, if known.
    fn named(&self, error: Error) -> Error {
        error
    }
}

/// Encoding of written references. Readers accept both forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceForm {
    /// Full-width numbers: 25 bytes.
    Plain,
    /// 17 bytes if the numbers fit, else as `Plain`.
    Short,
}

impl ReferenceForm {
    /// Values up to this length stay inline: a reference would not be worth the extra read. ToplingDB's limits.
    pub fn inline_max_bytes(self) -> usize {
        match self {
            ReferenceForm::Plain => 11,
            ReferenceForm::Short => 7,
        }
    }
}

/// Longest encoded reference, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 25;

const HERE: u8 = 0;
const PLAIN: u8 = 1;
const SHORT: u8 = 2;

/// Limits of the short form: 40 bits of offset, 24 of length.
const SHORT_OFFSET_BITS: u32 = 40;
const SHORT_LEN_MAX: u32 = (1 << 24) - 1;

/// A decoded stored value: inline bytes or a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredValue<'a> {
    /// The value itself.
    Here(&'a [u8]),
    /// A value in a log.
    InLog(ValueRef),
}

impl<'a> StoredValue<'a> {
    /// # Errors
    /// `Corruption`: `stored` is neither inline nor a reference.
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

/// Appends an inline value.
pub fn put_here(out: &mut Vec<u8>, value: &[u8]) {
    out.push(HERE);
    out.extend_from_slice(value);
}

/// Appends a reference to a value in a WAL file.
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
