//! Skipped malformed records.

use std::io::Write;

use crate::failure::{Failure, Outcome};
use crate::human;

#[derive(Clone, Debug, Default)]
pub struct Skipped {
    records: u64,
    /// Place and error of the first one.
    first: Option<String>,
}

impl Skipped {
    pub(super) fn add(&mut self, what: String) {
        self.records += 1;
        self.first.get_or_insert(what);
    }

    pub fn records(&self) -> u64 {
        self.records
    }

    /// Prints the number of skipped records, if any.
    pub fn show(&self, out: &mut dyn Write) -> Outcome {
        let Some(first) = &self.first else { return Ok(()) };
        let records = human::counted(self.records, "malformed record", "malformed records");
        Ok(writeln!(out, "passed over {records}; the first: {first}")?)
    }

    /// Fails if records were skipped and `good`, the number of good ones, is 0.
    pub fn check(&self, good: u64) -> Outcome {
        match &self.first {
            Some(first) if good == 0 => {
                let records = human::counted(self.records, "record", "records");
                Err(Failure::refused(format!("there is no good record, and {records} malformed; the first: {first}")))
            }
            _ => Ok(()),
        }
    }
}
