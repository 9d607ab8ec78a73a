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

/// RocksDB's flags of sizes.
const INCLUDE_MEMTABLES: u8 = 1;
const INCLUDE_FILES: u8 = 2;

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

    /// Bytes of ranges, by RocksDB's flags: of memtables, of files.
    pub fn approximate_sizes(
        &self,
        family: &Family,
        ranges: &[(&[u8], &[u8])],
        flags: u8,
    ) -> Result<Vec<u64>, Failure> {
        let mut sizes = vec![0; ranges.len()];
        if flags & INCLUDE_FILES != 0 {
            sizes = self.db.approximate_sizes(family, ranges)?;
        }
        if flags & INCLUDE_MEMTABLES != 0 {
            for (size, (start, end)) in sizes.iter_mut().zip(ranges) {
                *size += self.db.approximate_memtables(family, start, end)?.bytes;
            }
        }
        Ok(sizes)
    }

    fn sizes(&self, family: &Family, ranges: Ranges, flags: u8, sizes: OutArray<u64>) -> Result<(), Failure> {
        let count = ranges.count;
        let starts = ranges.starts.byte_strings(ranges.start_lens, count);
        let limits = ranges.limits.byte_strings(ranges.limit_lens, count);
        let ranges: Vec<(&[u8], &[u8])> = starts.zip(limits).collect();
        let found = self.approximate_sizes(family, &ranges, flags)?;
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

    /// Spillway's own: a reading of everything as OpenMetrics text, with a zero behind it.
    fn spillway_metrics(database: &Database, len: Out<usize>) -> Given<c_char> {
        let text = database.db.observe().to_metrics();
        len.set(text.len());
        Given::text(text)
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
        database.sizes(database.default_family(), ranges, INCLUDE_FILES, sizes)
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
        database.sizes(&family.0, ranges, INCLUDE_FILES, sizes)
    }

    fn rocksdb_approximate_sizes_cf_with_flags(
        database: &Database,
        family: &FamilyHandle,
        count: IntCount,
        starts: Array<*const c_char>,
        start_lens: Array<usize>,
        limits: Array<*const c_char>,
        limit_lens: Array<usize>,
        include_flags: c_char,
        sizes: OutArray<u64>,
    ) {
        let ranges = Ranges { count: count.into(), starts, start_lens, limits, limit_lens };
        database.sizes(&family.0, ranges, include_flags as u8, sizes)
    }
}
