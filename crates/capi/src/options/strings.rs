//! Options as text: RocksDB's option strings, also C's way to Spillway's own options.

use std::ffi::CStr;

use spillway::internal::options::keep_both;

use super::Options;
use crate::boundary::argument::Replaced;
use crate::boundary::{export, fallible};
use crate::failure::Failure;
use crate::text::text;

impl Options {
    /// Sets the options in a string, of the database or of the family. Unsupported values are kept, as by setters.
    fn apply(&mut self, text: &str) -> Result<(), Failure> {
        keep_both(&mut self.db, &mut self.family, text)?; // the open notes options without effect
        Ok(())
    }
}

export! {
    /// Not RocksDB's. Unsupported options affecting stored data or results are noted in the event log at the open,
    /// instead of refused.
    fn spillway_options_set_ignore_unsupported_options(options: &mut Options, ignore: bool) {
        options.db.ignore_unsupported_options = ignore;
    }
}

fallible! {
    /// `new_options` becomes a copy of `base_options` with the string applied.
    fn rocksdb_get_options_from_string(
        base_options: &Options,
        string: &CStr,
        new_options: Replaced<Options>,
    ) {
        let mut options = base_options.clone();
        options.apply(&text(string))?;
        new_options.with(options);
        Ok(())
    }
}
