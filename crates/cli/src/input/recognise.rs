//! The form of an input where the command line does not say it: by its name and its first line.

use super::source::Source;
use super::{Form, Format, InputArgs};
use crate::failure::{Failure, Outcome};

/// Endings of compressed files, behind that of the format.
const COMPRESSED: [&str; 3] = [".gz", ".zst", ".zstd"];

/// Characters between fields, besides the comma.
const DELIMITERS: [u8; 3] = *b";\t|";

impl InputArgs {
    /// The form of all files, by the first one. Consumes nothing.
    ///
    /// # Errors
    /// The format is not given, and neither the name nor the first line tells it.
    pub(super) fn form(&self, source: &mut Source) -> Outcome<Form> {
        let name = source.name().to_owned();
        let line = source.peek_line()?;
        let format = match self.format.or_else(|| by_name(&name)) {
            Some(format) => format,
            None => by_line(&name, line)?,
        };
        // Rows without names prove nothing: one field can have a semicolon in each.
        let may_guess = self.format.is_none() || !self.no_header;
        let delimiter = match format {
            Format::Csv => {
                self.delimiter.or_else(|| delimiter(line).filter(|_| may_guess).map(char::from)).unwrap_or(',')
            }
            _ => '\t',
        };
        let no_header =
            self.no_header || (self.format.is_none() && !self.header && self.begins_with_data(line, delimiter));
        let is_guessed =
            self.format.is_none() || (format == Format::Csv && self.delimiter.is_none() && delimiter != ',');
        Ok(Form { format, delimiter, no_header, is_guessed })
    }

    /// Whether the first row is a record: a number is no name of a column. Keys by name need a row of names.
    fn begins_with_data(&self, line: &[u8], delimiter: char) -> bool {
        let first = line.split(|byte| char::from(*byte) == delimiter).next().unwrap_or_default();
        let is_number = |text: &str| text.trim_matches('"').parse::<f64>().is_ok_and(f64::is_finite);
        let mut named = self.key.iter().chain(&self.value);
        std::str::from_utf8(first).is_ok_and(is_number)
            && named.all(|column| column.parse::<usize>().is_ok() && column.as_bytes() != first)
    }
}

fn by_name(name: &str) -> Option<Format> {
    let name = name.to_ascii_lowercase();
    let name = COMPRESSED.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    match name.rsplit_once('.')?.1 {
        "csv" => Some(Format::Csv),
        "tsv" | "tab" => Some(Format::Tsv),
        "ndjson" | "jsonl" | "json" => Some(Format::Ndjson),
        "kv" => Some(Format::Kv),
        _ => None,
    }
}

fn by_line(name: &str, line: &[u8]) -> Outcome<Format> {
    let line = line.trim_ascii();
    let tabs = line.iter().filter(|byte| **byte == b'\t').count();
    match tabs {
        _ if line.starts_with(b"{") || line.starts_with(b"[{") || line == b"[" => Ok(Format::Ndjson),
        0 if line.contains(&b',') || delimiter(line).is_some() => Ok(Format::Csv),
        2.. => Ok(Format::Tsv),
        1 => Err(Failure::refused(format!(
            "{name}: its first line has one tab: say --format kv if the lines are keys and values, or --format tsv if the \
             first one names two columns"
        ))),
        _ => Err(Failure::refused(format!(
            "{name}: neither its name nor its first line tells its format: say --format csv, tsv, ndjson or kv"
        ))),
    }
}

/// The character between the fields of a line; `None` for a comma, or if there is none.
fn delimiter(line: &[u8]) -> Option<u8> {
    let mut counts = [0usize; DELIMITERS.len()];
    let mut is_quoted = false;
    for byte in line {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => return None,
            _ if is_quoted => {}
            _ => counts.iter_mut().zip(DELIMITERS).filter(|(_, it)| it == byte).for_each(|(count, _)| *count += 1),
        }
    }
    let most = counts.into_iter().zip(DELIMITERS).max_by_key(|(count, _)| *count);
    most.filter(|(count, _)| *count > 0).map(|(_, it)| it)
}

/// # Errors
/// The input is JSON, but not an object on each line.
pub(super) fn check_objects(source: &mut Source) -> Outcome {
    let line = source.peek_line()?.trim_ascii();
    let (what, command) = match line {
        [b'[', ..] => ("a JSON array", "jq -c '.[]'"),
        b"{" => ("JSON over several lines", "jq -c ."),
        _ => return Ok(()),
    };
    let name = source.name();
    Err(Failure::refused(format!(
        "{name} is {what}, not an object on each line; convert it first: `{command} {name} | spillway ...` with - as the \
         file, and --format ndjson"
    )))
}
