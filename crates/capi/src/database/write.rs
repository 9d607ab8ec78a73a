//! Writing: one change, or a batch.

use super::{Database, FamilyHandle};
use crate::batch::Batch;
use crate::boundary::fallible;
use crate::write_options::WriteSettings;

fallible! {
    fn rocksdb_put(database: &Database, options: &WriteSettings, key[key_len]: &[u8], value[value_len]: &[u8]) {
        let written = database.db.put(database.default_family(), key, value, &options.options);
        written.map_err(|error| database.refused(error))
    }

    fn rocksdb_put_cf(
        database: &Database,
        options: &WriteSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        value[value_len]: &[u8],
    ) {
        database.db.put(&family.0, key, value, &options.options).map_err(|error| database.refused(error))
    }

    fn rocksdb_delete(database: &Database, options: &WriteSettings, key[key_len]: &[u8]) {
        let written = database.db.delete(database.default_family(), key, &options.options);
        written.map_err(|error| database.refused(error))
    }

    fn rocksdb_delete_cf(
        database: &Database,
        options: &WriteSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
    ) {
        database.db.delete(&family.0, key, &options.options).map_err(|error| database.refused(error))
    }

    fn rocksdb_singledelete(database: &Database, options: &WriteSettings, key[key_len]: &[u8]) {
        let written = database.db.single_delete(database.default_family(), key, &options.options);
        written.map_err(|error| database.refused(error))
    }

    fn rocksdb_singledelete_cf(
        database: &Database,
        options: &WriteSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
    ) {
        database.db.single_delete(&family.0, key, &options.options).map_err(|error| database.refused(error))
    }

    fn rocksdb_delete_range_cf(
        database: &Database,
        options: &WriteSettings,
        family: &FamilyHandle,
        start[start_len]: &[u8],
        end[end_len]: &[u8],
    ) {
        database.db.delete_range(&family.0, start, end, &options.options).map_err(|error| database.refused(error))
    }

    fn rocksdb_merge(database: &Database, options: &WriteSettings, key[key_len]: &[u8], operand[operand_len]: &[u8]) {
        let written = database.db.merge(database.default_family(), key, operand, &options.options);
        written.map_err(|error| database.refused(error))
    }

    fn rocksdb_merge_cf(
        database: &Database,
        options: &WriteSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        operand[operand_len]: &[u8],
    ) {
        database.db.merge(&family.0, key, operand, &options.options).map_err(|error| database.refused(error))
    }

    fn rocksdb_write(database: &Database, options: &WriteSettings, batch: &Batch) {
        database.db.write(batch.written()?, &options.options).map_err(|error| database.refused(error))?;
        Ok(())
    }
}
