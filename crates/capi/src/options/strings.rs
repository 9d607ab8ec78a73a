//! Options as text: RocksDB's option strings, which is also how Spillway's own options reach C.

use std::ffi::CStr;

use spillway::options::keep_both;

use super::Options;
use crate::boundary::argument::Replaced;
use crate::boundary::{export, fallible};
use crate::failure::Failure;
use crate::text::utf8;

impl Options {
    /// Sets what an option string names, of the database or of the family. What cannot be honoured is kept, as setters keep
    /// it.
    fn apply(&mut self, text: &str) -> Result<(), Failure> {
        keep_both(&mut self.db, &mut self.family, text)?; // opening a database tells of what has no effect
        Ok(())
    }
}

export! {
    /// Not RocksDB's. Options that change what is stored, kept or found, and cannot be honoured, are told of in the event
    /// log when a database is opened, instead of refused.
    fn spillway_options_set_ignore_unsupported_options(options: &mut Options, ignore: bool) {
        options.db.ignore_unsupported_options = ignore;
    }
}

fallible! {
    /// `new_options` becomes what `base_options` is, with what the string says.
    fn rocksdb_get_options_from_string(
        base_options: &Options,
        text: &CStr,
        new_options: Replaced<Options>,
    ) {
        let mut options = base_options.clone();
        options.apply(utf8(text)?)?;
        new_options.with(options);
        Ok(())
    }
}
