//! Options as text: RocksDB's option strings, which is also how Spillway's own options reach C.

use std::ffi::CStr;

use spillway::options::apply_both;

use super::Options;
use crate::boundary::argument::Replaced;
use crate::boundary::fallible;
use crate::failure::Failure;
use crate::text::utf8;

impl Options {
    /// Sets what an option string names, of the database or of the family.
    fn apply(&mut self, text: &str) -> Result<(), Failure> {
        let warnings = apply_both(&mut self.db, &mut self.family, text)?;
        warnings.iter().for_each(|warning| tracing::warn!(warning, "options"));
        Ok(())
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
