//! Key and value on each line, with a tab between.

use super::source::Source;
use super::{Next, Parser, Record};
use crate::bytes::parse_hex;
use crate::failure::Outcome;

pub struct Pairs {
    source: Source,
    hex: bool,
    line: Vec<u8>,
}

impl Pairs {
    pub fn new(source: Source, hex: bool) -> Pairs {
        Pairs { source, hex, line: Vec::new() }
    }

    fn parse(&self, record: &mut Record) -> Result<(), String> {
        let mut halves = self.line.splitn(2, |&byte| byte == b'\t');
        let (Some(key), Some(value)) = (halves.next(), halves.next()) else {
            return Err("no tab between key and value".to_owned());
        };
        for (bytes, to) in [(key, &mut record.key), (value, &mut record.value)] {
            to.clear();
            if self.hex {
                let digits = std::str::from_utf8(bytes).map_err(|_| "not hexadecimal digits".to_owned())?;
                to.extend(parse_hex(digits).map_err(|failure| failure.message().unwrap_or_default())?);
            } else {
                to.extend_from_slice(bytes);
            }
        }
        Ok(())
    }
}

impl Parser for Pairs {
    fn next(&mut self, record: &mut Record) -> Outcome<Next> {
        loop {
            if !self.source.read_line(&mut self.line)? {
                return Ok(Next::End);
            }
            if !self.line.is_empty() {
                break;
            }
        }
        Ok(match self.parse(record) {
            Ok(()) => Next::Record,
            Err(what) => Next::Malformed { line: self.source.line(), what },
        })
    }
}
