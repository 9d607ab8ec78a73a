//! User-defined timestamps. Opening a database whose comparator has them is refused, so no key has one. Operations with
//! a timestamp are refused too, not done without it.

use std::ffi::{CStr, c_char};

use super::Absent;
use crate::batch::Batch;
use crate::boundary::argument::Out;
use crate::boundary::array::{Array, CSlice, Count, IntCount, OutArray};
use crate::boundary::reply::{Given, Lent};
use crate::boundary::{export, fallible};
use crate::database::Database;
use crate::database::read::Results;
use crate::family::FamilyHandle;
use crate::iterator::Iterator;
use crate::job_options::CompactSettings;
use crate::kept::warn;
use crate::options::Options;
use crate::read_options::{ReadSettings, refused_timestamp};
use crate::table_writer::TableMaker;
use crate::write_options::WriteSettings;

const TIMESTAMPS: Absent = Absent("user-defined timestamps");

/// Destinations of a multi-get's timestamps.
struct FoundTimestamps {
    timestamps: OutArray<*mut c_char>,
    lens: OutArray<usize>,
}

/// Gives each key the same error; value and timestamp are empty.
fn refuse_all(count: Count, results: Results, found: FoundTimestamps) {
    results.fill(count, std::iter::repeat_with(|| Err(refused_timestamp())));
    for (timestamp, len) in found.timestamps.room(count).iter_mut().zip(found.lens.room(count)) {
        timestamp.write(std::ptr::null_mut());
        len.write(0);
    }
}

fallible! {
    fn rocksdb_put_with_ts(
        _database: &Database,
        _options: &WriteSettings,
        _key[_key_len]: &[u8],
        _timestamp[_timestamp_len]: &[u8],
        _value[_value_len]: &[u8],
    ) {
        TIMESTAMPS.refuse()
    }

    fn rocksdb_put_cf_with_ts(
        _database: &Database,
        _options: &WriteSettings,
        _family: &FamilyHandle,
        _key[_key_len]: &[u8],
        _timestamp[_timestamp_len]: &[u8],
        _value[_value_len]: &[u8],
    ) {
        TIMESTAMPS.refuse()
    }

    fn rocksdb_delete_with_ts(
        _database: &Database,
        _options: &WriteSettings,
        _key[_key_len]: &[u8],
        _timestamp[_timestamp_len]: &[u8],
    ) {
        TIMESTAMPS.refuse()
    }

    fn rocksdb_delete_cf_with_ts(
        _database: &Database,
        _options: &WriteSettings,
        _family: &FamilyHandle,
        _key[_key_len]: &[u8],
        _timestamp[_timestamp_len]: &[u8],
    ) {
        TIMESTAMPS.refuse()
    }

    fn rocksdb_singledelete_with_ts(
        _database: &Database,
        _options: &WriteSettings,
        _key[_key_len]: &[u8],
        _timestamp[_timestamp_len]: &[u8],
    ) {
        TIMESTAMPS.refuse()
    }

    fn rocksdb_singledelete_cf_with_ts(
        _database: &Database,
        _options: &WriteSettings,
        _family: &FamilyHandle,
        _key[_key_len]: &[u8],
        _timestamp[_timestamp_len]: &[u8],
    ) {
        TIMESTAMPS.refuse()
    }

    fn rocksdb_get_with_ts(
        _database: &Database,
        _options: &ReadSettings,
        _key[_key_len]: &[u8],
        _len: Out<usize>,
        _timestamp: Out<*mut c_char>,
        _timestamp_len: Out<usize>,
    ) -> Given<c_char> {
        TIMESTAMPS.refuse()
    }

    fn rocksdb_get_cf_with_ts(
        _database: &Database,
        _options: &ReadSettings,
        _family: &FamilyHandle,
        _key[_key_len]: &[u8],
        _len: Out<usize>,
        _timestamp: Out<*mut c_char>,
        _timestamp_len: Out<usize>,
    ) -> Given<c_char> {
        TIMESTAMPS.refuse()
    }

    fn rocksdb_increase_full_history_ts_low(
        _database: &Database,
        _family: &FamilyHandle,
        _timestamp[_timestamp_len]: &[u8],
    ) {
        TIMESTAMPS.refuse()
    }

    fn rocksdb_get_full_history_ts_low(
        _database: &Database,
        _family: &FamilyHandle,
        _timestamp_len: Out<usize>,
    ) -> Given<c_char> {
        TIMESTAMPS.refuse()
    }

    fn rocksdb_open_and_trim_history(
        _options: &Options,
        _name: &CStr,
        _count: IntCount,
        _names: Array<*const c_char>,
        _family_options: Array<*const Options>,
        _handles: OutArray<*mut FamilyHandle>,
        _timestamp[_timestamp_len]: &[u8],
    ) -> Option<Box<Database>> {
        TIMESTAMPS.refuse()
    }

    fn rocksdb_sstfilewriter_put_with_ts(
        _writer: &TableMaker,
        _key[_key_len]: &[u8],
        _timestamp[_timestamp_len]: &[u8],
        _value[_value_len]: &[u8],
    ) {
        TIMESTAMPS.refuse()
    }

    fn rocksdb_sstfilewriter_delete_with_ts(
        _writer: &TableMaker,
        _key[_key_len]: &[u8],
        _timestamp[_timestamp_len]: &[u8],
    ) {
        TIMESTAMPS.refuse()
    }
}

export! {
    fn rocksdb_multi_get_with_ts(
        _database: &Database,
        _options: &ReadSettings,
        count: Count,
        _keys: Array<*const c_char>,
        _key_lens: Array<usize>,
        values: OutArray<*mut c_char>,
        lens: OutArray<usize>,
        timestamps: OutArray<*mut c_char>,
        timestamp_lens: OutArray<usize>,
        errors: OutArray<*mut c_char>,
    ) {
        let found = FoundTimestamps { timestamps, lens: timestamp_lens };
        refuse_all(count, Results { values, lens, errors }, found);
    }

    fn rocksdb_multi_get_cf_with_ts(
        _database: &Database,
        _options: &ReadSettings,
        _families: Array<*const FamilyHandle>,
        count: Count,
        _keys: Array<*const c_char>,
        _key_lens: Array<usize>,
        values: OutArray<*mut c_char>,
        lens: OutArray<usize>,
        timestamps: OutArray<*mut c_char>,
        timestamp_lens: OutArray<usize>,
        errors: OutArray<*mut c_char>,
    ) {
        let found = FoundTimestamps { timestamps, lens: timestamp_lens };
        refuse_all(count, Results { values, lens, errors }, found);
    }

    /// Writing the batch fails.
    fn rocksdb_writebatch_put_cf_with_ts(
        batch: &mut Batch,
        _family: &FamilyHandle,
        _key[_key_len]: &[u8],
        _timestamp[_timestamp_len]: &[u8],
        _value[_value_len]: &[u8],
    ) {
        batch.damage(refused_timestamp());
    }

    fn rocksdb_writebatch_delete_cf_with_ts(
        batch: &mut Batch,
        _family: &FamilyHandle,
        _key[_key_len]: &[u8],
        _timestamp[_timestamp_len]: &[u8],
    ) {
        batch.damage(refused_timestamp());
    }

    fn rocksdb_writebatch_singledelete_cf_with_ts(
        batch: &mut Batch,
        _family: &FamilyHandle,
        _key[_key_len]: &[u8],
        _timestamp[_timestamp_len]: &[u8],
    ) {
        batch.damage(refused_timestamp());
    }

    /// Reads with a timestamp fail; NULL is none.
    fn rocksdb_readoptions_set_timestamp(options: &mut ReadSettings, timestamp[timestamp_len]: Option<&[u8]>) {
        options.has_timestamp = timestamp.is_some();
    }

    fn rocksdb_readoptions_set_iter_start_ts(options: &mut ReadSettings, timestamp[timestamp_len]: Option<&[u8]>) {
        options.has_timestamp = timestamp.is_some();
    }

    /// A compaction has no error to report it by.
    fn rocksdb_compactoptions_set_full_history_ts_low(
        _options: &mut CompactSettings,
        timestamp[timestamp_len]: Option<&[u8]>,
    ) {
        if timestamp.is_some() {
            warn("full_history_ts_low", "a timestamp");
        }
    }

    /// Empty: no key has one. Not NULL, as in RocksDB: bindings make a slice of it.
    fn rocksdb_iter_timestamp(_iterator: &Iterator, len: Out<usize>) -> Lent {
        len.set(0);
        Lent::EMPTY
    }

    fn rocksdb_iter_timestamp_slice(_iterator: &Iterator) -> CSlice {
        CSlice::EMPTY
    }
}
