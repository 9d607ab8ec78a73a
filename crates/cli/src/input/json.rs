//! One JSON object on each line. The value is the line as it stands, or one of its fields. Numbers in keys keep their
//! text: parsed, distinct long numbers would become equal.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::source::{Line, Source};
use super::{Next, Parser, Record, separate};
use crate::bytes::append_hex;
use crate::failure::Outcome;

/// Suffix of a field's name if the field holds hexadecimal digits. `scan` writes bytes other than UTF-8 this way.
const HEX: &str = "_hex";

type Object<'a> = BTreeMap<String, &'a RawValue>;

pub struct Objects {
    source: Source,
    line: Vec<u8>,
    /// Names of the key's fields.
    fields: Vec<String>,
    separator: String,
    /// Name of the value's field; `None` for the whole line.
    value: Option<String>,
}

impl Objects {
    pub fn new(source: Source, fields: &[String], separator: &str, value: Option<&String>) -> Objects {
        let (fields, separator, value) = (fields.to_vec(), separator.to_owned(), value.cloned());
        Objects { source, line: Vec::new(), fields, separator, value }
    }

    fn parse(&self, record: &mut Record) -> Result<(), String> {
        let object: Object<'_> = serde_json::from_slice(&self.line).map_err(|error| {
            if error.is_data() { "not a JSON object".to_owned() } else { format!("not JSON: {error}") }
        })?;
        record.key.clear();
        let mut from = 0;
        for (i, field) in self.fields.iter().enumerate() {
            if i > 0 {
                separate(&mut record.key, from, &self.separator)?;
                from = record.key.len();
            }
            append(&object, field, &mut record.key, false)?;
        }
        if record.key.is_empty() {
            return Err("the key is empty (--format kv takes empty keys)".to_owned());
        }
        record.value.clear();
        match &self.value {
            Some(field) => append(&object, field, &mut record.value, true),
            None => {
                record.value.extend_from_slice(&self.line);
                Ok(())
            }
        }
    }
}

/// Appends a field's content: text, a number, true or false; with `any` also null, an array or an object, as it stands.
fn append(object: &Object<'_>, field: &str, to: &mut Vec<u8>, any: bool) -> Result<(), String> {
    let text = |raw: &str| serde_json::from_str::<String>(raw).map_err(|error| format!("not JSON: {error}"));
    let Some(raw) = object.get(field) else {
        let digits = object.get(&format!("{field}{HEX}"));
        let digits = digits.ok_or_else(|| format!("the object has no field \"{field}\""))?.get();
        let digits = text(digits).map_err(|_| format!("the field \"{field}{HEX}\" is no text of digits"))?;
        return append_hex(digits.as_bytes(), to);
    };
    match raw.get().as_bytes().first() {
        Some(b'"') => to.extend_from_slice(text(raw.get())?.as_bytes()),
        Some(b'-' | b'0'..=b'9' | b't' | b'f') => to.extend_from_slice(raw.get().as_bytes()),
        _ if any => to.extend_from_slice(raw.get().as_bytes()),
        _ => return Err(format!("the field \"{field}\" is neither text nor a number")),
    }
    Ok(())
}

impl Parser for Objects {
    fn next(&mut self, record: &mut Record) -> Outcome<Next> {
        loop {
            let line = self.source.line();
            match self.source.read_line(&mut self.line)? {
                Line::End => return Ok(Next::End),
                Line::TooLong => return Ok(Next::Malformed { line, what: self.source.too_long("line") }),
                Line::Whole if self.line.trim_ascii().is_empty() => {}
                Line::Whole => return Ok(Next::of(self.parse(record), line, record)),
            }
        }
    }
}
