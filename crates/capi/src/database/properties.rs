//! Properties and sizes.

use std::ffi::{CStr, c_char, c_int};

use spillway::internal::Family;

use super::Database;
use crate::boundary::argument::Out;
use crate::boundary::array::{Array, Count, IntCount, OutArray};
use crate::boundary::reply::Given;
use crate::boundary::{export, fallible};
use crate::failure::Failure;
use crate::family::FamilyHandle;

impl Database {
    pub fn property(&self, family: &Family, name: &CStr) -> Given<c_char> {
        let value = name.to_str().ok().and_then(|name| self.db.property(family, name));
        value.map_or(Given::NONE, Given::text)
    }

    /// 0 if the property is known, else -1.
    pub fn int_property(&self, family: &Family, name: &CStr, value: Out<u64>) -> c_int {
        let found = name.to_str().ok().and_then(|name| self.db.int_property(family, name));
        let Some(number) = found else { return -1 };
        value.set(number);
        0
    }

    fn sizes(&self, family: &Family, ranges: Ranges, sizes: OutArray<u64>) -> Result<(), Failure> {
        let count = ranges.count;
        let starts = ranges.starts.byte_strings(ranges.start_lens, count);
        let limits = ranges.limits.byte_strings(ranges.limit_lens, count);
        let ranges: Vec<(&[u8], &[u8])> = starts.zip(limits).collect();
        let found = self.db.approximate_sizes(family, &ranges)?;
        for (room, size) in sizes.room(count).iter_mut().zip(found) {
            room.write(size);
        }
        Ok(())
    }
}

/// Ranges of keys, each part in an array of its own.
struct Ranges {
    count: Count,
    starts: Array<*const c_char>,
    start_lens: Array<usize>,
    limits: Array<*const c_char>,
    limit_lens: Array<usize>,
}

export! {
    /// NULL for an unknown property.
    fn rocksdb_property_value(database: &Database, name: &CStr) -> Given<c_char> {
        database.property(database.default_family(), name)
    }

    fn rocksdb_property_value_cf(database: &Database, family: &FamilyHandle, name: &CStr) -> Given<c_char> {
        database.property(&family.0, name)
    }

    fn rocksdb_property_int(database: &Database, name: &CStr, value: Out<u64>) -> c_int {
        database.int_property(database.default_family(), name, value)
    }

    fn rocksdb_property_int_cf(database: &Database, family: &FamilyHandle, name: &CStr, value: Out<u64>) -> c_int {
        database.int_property(&family.0, name, value)
    }

    fn rocksdb_get_db_identity(database: &Database, len: Out<usize>) -> Given<c_char> {
        len.set(database.db.identity().len());
        Given::bytes(database.db.identity().as_bytes())
    }

    fn rocksdb_get_latest_sequence_number(database: &Database) -> u64 {
        database.db.latest_sequence_number().0
    }
}

fallible! {
    fn rocksdb_approximate_sizes(
        database: &Database,
        count: IntCount,
        starts: Array<*const c_char>,
        start_lens: Array<usize>,
        limits: Array<*const c_char>,
        limit_lens: Array<usize>,
        sizes: OutArray<u64>,
    ) {
        let ranges = Ranges { count: count.into(), starts, start_lens, limits, limit_lens };
        database.sizes(database.default_family(), ranges, sizes)
    }

    fn rocksdb_approximate_sizes_cf(
        database: &Database,
        family: &FamilyHandle,
        count: IntCount,
        starts: Array<*const c_char>,
        start_lens: Array<usize>,
        limits: Array<*const c_char>,
        limit_lens: Array<usize>,
        sizes: OutArray<u64>,
    ) {
        let ranges = Ranges { count: count.into(), starts, start_lens, limits, limit_lens };
        database.sizes(&family.0, ranges, sizes)
    }
}
