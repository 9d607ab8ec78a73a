//! A JSON object on each line. The line is the value, as it stands. Numbers in keys are the text that stands there: as
//! numbers, long ones would become equal that are not.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::source::Source;
use super::{Next, Parser, Record};
use crate::failure::Outcome;

/// What editors of some systems begin a file of UTF-8 with. It belongs to no object.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub struct Objects {
    source: Source,
    /// Names of the fields that make the key.
    fields: Vec<String>,
    separator: String,
}

impl Objects {
    pub fn new(source: Source, fields: &[String], separator: &str) -> Objects {
        Objects { source, fields: fields.to_vec(), separator: separator.to_owned() }
    }

    fn parse(&self, record: &mut Record) -> Result<(), String> {
        let object: BTreeMap<String, &RawValue> = serde_json::from_slice(&record.value).map_err(|error| {
            if error.is_data() { "not a JSON object".to_owned() } else { format!("not JSON: {error}") }
        })?;
        record.key.clear();
        for (i, field) in self.fields.iter().enumerate() {
            if i > 0 {
                record.key.extend_from_slice(self.separator.as_bytes());
            }
            let raw = object.get(field).ok_or_else(|| format!("the object has no field \"{field}\""))?.get();
            match raw.as_bytes().first() {
                Some(b'"') => {
                    let text: String = serde_json::from_str(raw).map_err(|error| format!("not JSON: {error}"))?;
                    record.key.extend_from_slice(text.as_bytes());
                }
                Some(b'-' | b'0'..=b'9' | b't' | b'f') => record.key.extend_from_slice(raw.as_bytes()),
                _ => return Err(format!("the field \"{field}\" is neither text nor a number")),
            }
        }
        if record.key.is_empty() { Err("the key is empty".to_owned()) } else { Ok(()) }
    }
}

impl Parser for Objects {
    fn next(&mut self, record: &mut Record) -> Outcome<Next> {
        loop {
            if !self.source.read_line(&mut record.value)? {
                return Ok(Next::End);
            }
            if self.source.line() == 1 && record.value.starts_with(BYTE_ORDER_MARK) {
                record.value.drain(..BYTE_ORDER_MARK.len());
            }
            if !record.value.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(match self.parse(record) {
            Ok(()) => Next::Record,
            Err(what) => Next::Malformed { line: self.source.line(), what },
        })
    }
}
