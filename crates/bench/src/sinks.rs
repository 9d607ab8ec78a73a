//! Where results go: text for people, lines of JSON for programs.

use std::io::Write;
use std::path::Path;

use base::{Error, Result};
use serde::Serialize;
use serde_json::Value;
use vfs::{AppendFile, IfExists, IoClass, Vfs};

use crate::report::{Spec, drawn};

/// Takes the results of a run.
pub struct Output<'a> {
    text: &'a mut dyn Write,
    json: Option<Box<dyn AppendFile>>,
    /// The results so far, as tables take them.
    pub records: Vec<Value>,
}

impl<'a> Output<'a> {
    /// JSON goes to a new file, if one is named.
    ///
    /// # Errors
    /// `Io`: it cannot be made.
    pub fn new(text: &'a mut dyn Write, vfs: &dyn Vfs, json: Option<&Path>) -> Result<Self> {
        let json = json.map(|path| vfs.create(path, IfExists::Truncate)).transpose()?;
        Ok(Output { text, json, records: Vec::new() })
    }

    /// # Errors
    /// `Io`: the text's reader is gone.
    pub fn say(&mut self, line: &str) -> Result<()> {
        let said = writeln!(self.text, "{line}").and_then(|()| self.text.flush());
        said.map_err(|e| Error::io("write", Path::new("standard output"), e))
    }

    /// Keeps a result. `line` is printed for people.
    ///
    /// # Errors
    /// `Io`: it cannot be written.
    pub fn keep(&mut self, line: &str, record: &impl Serialize) -> Result<()> {
        self.say(line)?;
        let record = serde_json::to_value(record).map_err(|e| Error::invalid_argument(e.to_string()))?;
        if let Some(file) = &mut self.json {
            file.append(format!("{record}\n").as_bytes(), IoClass::Other)?;
        }
        self.records.push(record);
        Ok(())
    }

    /// Prints a table of the results so far.
    ///
    /// # Errors
    /// As [`drawn`].
    pub fn show(&mut self, table: &Spec) -> Result<()> {
        let table = drawn(table, &self.records)?;
        self.say(&table)
    }
}
