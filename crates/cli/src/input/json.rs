//! A JSON object on each line. The line is the value, as it stands.

use serde_json::Value;

use super::source::Source;
use super::{Next, Parser, Record};
use crate::failure::Outcome;

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
        let parsed: Value = serde_json::from_slice(&record.value).map_err(|e| format!("not JSON: {e}"))?;
        let Value::Object(object) = parsed else { return Err("not a JSON object".to_owned()) };
        record.key.clear();
        for (i, field) in self.fields.iter().enumerate() {
            if i > 0 {
                record.key.extend_from_slice(self.separator.as_bytes());
            }
            match object.get(field) {
                Some(Value::String(text)) => record.key.extend_from_slice(text.as_bytes()),
                Some(number @ (Value::Number(_) | Value::Bool(_))) => {
                    record.key.extend_from_slice(number.to_string().as_bytes());
                }
                Some(_) => return Err(format!("the field \"{field}\" is neither text nor a number")),
                None => return Err(format!("the object has no field \"{field}\"")),
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
