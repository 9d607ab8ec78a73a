//! Output formats of `spillway scan`.

use std::io::Write;

use clap::ValueEnum;

use crate::bytes::{Notation, hex, write_hex};
use crate::delimited::Layout;
use crate::failure::{Failure, Outcome};
use crate::human;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Key, tab and value on a line. Backslashes, control characters and bytes other than UTF-8 are escapes.
    Kv,
    /// Two columns, key and value, in quotes if needed. Bytes are unchanged.
    Csv,
    /// An object on each line, {"key":...,"value":...}. Bytes other than UTF-8 are hexadecimal: {"key_hex":...}.
    Ndjson,
    /// The value and a line end. Bytes are unchanged.
    Values,
}

/// Writes entries in a format.
pub struct Printer<'a> {
    pub out: &'a mut dyn Write,
    pub format: Format,
    pub notation: Notation,
    pub keys_only: bool,
    /// Prints the times of values.
    pub times: bool,
}

impl Printer<'_> {
    /// Writes the text before the first entry.
    ///
    /// # Errors
    /// The format would have nothing to write.
    pub fn begin(&mut self) -> Outcome {
        match self.format {
            Format::Values if self.keys_only => Err(Failure::refused("--keys-only leaves nothing of --format values")),
            Format::Values if self.times => Err(Failure::refused("--format values has no place for --times")),
            Format::Csv => {
                let value = if self.keys_only { "" } else { ",value" };
                Ok(writeln!(self.out, "key{value}{}", if self.times { ",time" } else { "" })?)
            }
            _ => Ok(()),
        }
    }

    /// `time_s`: when the value was written, since the epoch; `None`: it does not say so.
    pub fn entry(&mut self, key: &[u8], value: &[u8], time_s: Option<u32>) -> Outcome {
        let time = time_s.filter(|_| self.times).map(|time_s| human::utc(u64::from(time_s)));
        match self.format {
            Format::Kv => {
                self.notation.write(self.out, key)?;
                if !self.keys_only {
                    self.out.write_all(b"\t")?;
                    self.notation.write(self.out, value)?;
                }
                if self.times {
                    write!(self.out, "\t{}", time.unwrap_or_default())?;
                }
            }
            Format::Csv => {
                self.row(key, value)?;
                if self.times {
                    write!(self.out, ",{}", time.unwrap_or_default())?;
                }
            }
            Format::Ndjson => {
                self.field("{", "key", key)?;
                if !self.keys_only {
                    self.field(",", "value", value)?;
                }
                if let Some(time_s) = time_s.filter(|_| self.times) {
                    write!(self.out, ",\"unix_time_s\":{time_s}")?;
                }
                self.out.write_all(b"}")?;
            }
            Format::Values if self.notation.hex => write_hex(self.out, value)?,
            Format::Values => self.out.write_all(value)?,
        }
        Ok(self.out.write_all(b"\n")?)
    }

    fn row(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        let digits = if self.notation.hex { [hex(key), hex(value)] } else { Default::default() };
        let [key, value] =
            if self.notation.hex { digits.each_ref().map(|digits| digits.as_bytes()) } else { [key, value] };
        let mut row = Vec::with_capacity(key.len() + value.len() + 8);
        let fields = [key, value].into_iter().take(if self.keys_only { 1 } else { 2 });
        Layout::CSV.append(&mut row, fields);
        if row.is_empty() {
            row.extend_from_slice(b"\"\""); // an empty line is no row
        }
        Ok(self.out.write_all(&row)?)
    }

    fn field(&mut self, before: &str, name: &str, bytes: &[u8]) -> Outcome {
        match std::str::from_utf8(bytes) {
            Ok(text) if !self.notation.hex => {
                write!(self.out, "{before}\"{name}\":")?;
                serde_json::to_writer(&mut *self.out, text).map_err(std::io::Error::from)?;
            }
            _ => {
                write!(self.out, "{before}\"{name}_hex\":\"")?;
                write_hex(self.out, bytes)?;
                write!(self.out, "\"")?;
            }
        }
        Ok(())
    }
}
