//! Key and value on each line, with a tab between.

use super::source::{Line, Source};
use super::{Next, Parser, Record};
use crate::bytes::{append_hex, unescape};
use crate::failure::Outcome;

/// Notation of bytes that a line cannot hold.
#[derive(Clone, Copy)]
pub enum Notation {
    /// As `scan` prints them: `\\`, `\t`, `\n`, `\r`, `\xNN`.
    Escapes,
    Hex,
    /// None: every byte stands for itself.
    Raw,
}

pub struct Pairs {
    source: Source,
    notation: Notation,
    line: Vec<u8>,
}

impl Pairs {
    pub fn new(source: Source, notation: Notation) -> Pairs {
        Pairs { source, notation, line: Vec::new() }
    }

    fn parse(&self, record: &mut Record) -> Result<(), String> {
        let tab = memchr::memchr(b'\t', &self.line).ok_or_else(|| "no tab between key and value".to_owned())?;
        let (key, value) = self.line.split_at(tab);
        for (bytes, to) in [(key, &mut record.key), (value.get(1..).unwrap_or_default(), &mut record.value)] {
            to.clear();
            match self.notation {
                Notation::Escapes => unescape(bytes, to)?,
                Notation::Hex => append_hex(bytes, to)?,
                Notation::Raw => to.extend_from_slice(bytes),
            }
        }
        Ok(())
    }
}

impl Parser for Pairs {
    fn next(&mut self, record: &mut Record) -> Outcome<Next> {
        loop {
            let line = self.source.line();
            match self.source.read_line(&mut self.line)? {
                Line::End => return Ok(Next::End),
                Line::TooLong => return Ok(Next::Malformed { line, what: self.source.too_long("line") }),
                Line::Whole if self.line.is_empty() => {}
                Line::Whole => return Ok(Next::of(self.parse(record), line, record)),
            }
        }
    }
}
