//! Secondary instances: followers of a different process's database.

use std::ffi::{CStr, c_char};

use super::Absent;
use crate::boundary::array::{Array, IntCount, OutArray};
use crate::boundary::fallible;
use crate::database::Database;
use crate::family::FamilyHandle;
use crate::options::Options;

const SECONDARIES: Absent = Absent("secondary instances");

fallible! {
    fn rocksdb_open_as_secondary(_options: &Options, _name: &CStr, _secondary_path: &CStr) -> Option<Box<Database>> {
        SECONDARIES.refuse()
    }

    fn rocksdb_open_as_secondary_column_families(
        _options: &Options,
        _name: &CStr,
        _secondary_path: &CStr,
        _count: IntCount,
        _names: Array<*const c_char>,
        _family_options: Array<*const Options>,
        _handles: OutArray<*mut FamilyHandle>,
    ) -> Option<Box<Database>> {
        SECONDARIES.refuse()
    }

    /// No database is a secondary.
    fn rocksdb_try_catch_up_with_primary(_database: &Database) {
        SECONDARIES.refuse()
    }
}
