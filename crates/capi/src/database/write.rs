//! Writing: one change, or a batch.

use spillway::internal::{ErrorKind, Family, WriteBatch};

use super::Database;
use crate::batch::Batch;
use crate::boundary::fallible;
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::write_options::WriteSettings;

impl Database {
    #[inline]
    pub fn put(&self, family: &Family, key: &[u8], value: &[u8], settings: &WriteSettings) -> Result<(), Failure> {
        let written = match &self.stamps {
            None => self.db.put(family, key, value, self.writing(settings)),
            Some(stamps) => self
                .db
                .record_times(family)
                .and_then(|()| self.db.put(family, key, &stamps.stamped(value), self.writing(settings))),
        };
        written.map_err(|error| self.refused(error))
    }

    #[inline]
    pub fn merge(&self, family: &Family, key: &[u8], operand: &[u8], settings: &WriteSettings) -> Result<(), Failure> {
        let written = match &self.stamps {
            None => self.db.merge(family, key, operand, self.writing(settings)),
            Some(stamps) => self
                .db
                .record_times(family)
                .and_then(|()| self.db.merge(family, key, &stamps.stamped(operand), self.writing(settings))),
        };
        written.map_err(|error| match (error.kind(), &family.options().merge_operator) {
            (ErrorKind::InvalidArgument, None) => Failure::not_implemented("Provide a merge_operator when opening DB"),
            _ => self.refused(error),
        })
    }

    pub fn delete(&self, family: &Family, key: &[u8], settings: &WriteSettings) -> Result<(), Failure> {
        self.db.delete(family, key, self.writing(settings)).map_err(|error| self.refused(error))
    }

    pub fn single_delete(&self, family: &Family, key: &[u8], settings: &WriteSettings) -> Result<(), Failure> {
        self.db.single_delete(family, key, self.writing(settings)).map_err(|error| self.refused(error))
    }

    pub fn delete_range(
        &self,
        family: &Family,
        start: &[u8],
        end: &[u8],
        settings: &WriteSettings,
    ) -> Result<(), Failure> {
        self.db.delete_range(family, start, end, self.writing(settings)).map_err(|error| self.refused(error))
    }

    pub fn write(&self, batch: &WriteBatch, settings: &WriteSettings) -> Result<(), Failure> {
        let written = match &self.stamps {
            // A stamped copy would silently lack the entries of an oversized batch: refuse the batch itself.
            Some(stamps) if !batch.is_oversized() => {
                let stamped = stamps.stamped_batch(batch)?;
                self.db.record_times_of(&stamped).and_then(|()| self.db.write(&stamped, self.writing(settings)))
            }
            _ => self.db.write(batch, self.writing(settings)),
        };
        written.map(drop).map_err(|error| self.refused(error))
    }
}

fallible! {
    fn rocksdb_put(database: &Database, options: &WriteSettings, key[key_len]: &[u8], value[value_len]: &[u8]) {
        database.put(database.default_family(), key, value, options)
    }

    fn rocksdb_put_cf(
        database: &Database,
        options: &WriteSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        value[value_len]: &[u8],
    ) {
        database.put(&family.0, key, value, options)
    }

    fn rocksdb_delete(database: &Database, options: &WriteSettings, key[key_len]: &[u8]) {
        database.delete(database.default_family(), key, options)
    }

    fn rocksdb_delete_cf(
        database: &Database,
        options: &WriteSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
    ) {
        database.delete(&family.0, key, options)
    }

    fn rocksdb_singledelete(database: &Database, options: &WriteSettings, key[key_len]: &[u8]) {
        database.single_delete(database.default_family(), key, options)
    }

    fn rocksdb_singledelete_cf(
        database: &Database,
        options: &WriteSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
    ) {
        database.single_delete(&family.0, key, options)
    }

    fn rocksdb_delete_range_cf(
        database: &Database,
        options: &WriteSettings,
        family: &FamilyHandle,
        start[start_len]: &[u8],
        end[end_len]: &[u8],
    ) {
        database.delete_range(&family.0, start, end, options)
    }

    fn rocksdb_merge(database: &Database, options: &WriteSettings, key[key_len]: &[u8], operand[operand_len]: &[u8]) {
        database.merge(database.default_family(), key, operand, options)
    }

    fn rocksdb_merge_cf(
        database: &Database,
        options: &WriteSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        operand[operand_len]: &[u8],
    ) {
        database.merge(&family.0, key, operand, options)
    }

    fn rocksdb_write(database: &Database, options: &WriteSettings, batch: &Batch) {
        database.write(batch.written()?, options)
    }
}
