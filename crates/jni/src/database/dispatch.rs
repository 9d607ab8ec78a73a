//! Writes by the database's kind.

use capi::failure::Failure;
use capi::write_options::WriteSettings;
use spillway::internal::{Family, ValueKind, WriteBatch};

use super::{Db, Kind};

impl Db {
    #[inline]
    pub fn put(&self, family: &Family, key: &[u8], value: &[u8], settings: &WriteSettings) -> Result<(), Failure> {
        match &self.kind {
            Kind::Plain => self.database.put(family, key, value, settings),
            Kind::Locking(locking) => locking.write_one(family, ValueKind::Value, key, value, settings),
        }
    }

    #[inline]
    pub fn merge(&self, family: &Family, key: &[u8], operand: &[u8], settings: &WriteSettings) -> Result<(), Failure> {
        match &self.kind {
            Kind::Plain => self.database.merge(family, key, operand, settings),
            Kind::Locking(locking) => locking.write_one(family, ValueKind::Merge, key, operand, settings),
        }
    }

    #[inline]
    pub fn delete(&self, family: &Family, key: &[u8], settings: &WriteSettings) -> Result<(), Failure> {
        match &self.kind {
            Kind::Plain => self.database.delete(family, key, settings),
            Kind::Locking(locking) => locking.write_one(family, ValueKind::Deletion, key, &[], settings),
        }
    }

    pub fn single_delete(&self, family: &Family, key: &[u8], settings: &WriteSettings) -> Result<(), Failure> {
        match &self.kind {
            Kind::Plain => self.database.single_delete(family, key, settings),
            Kind::Locking(locking) => locking.write_one(family, ValueKind::SingleDeletion, key, &[], settings),
        }
    }

    pub fn delete_range(
        &self,
        family: &Family,
        start: &[u8],
        end: &[u8],
        settings: &WriteSettings,
    ) -> Result<(), Failure> {
        match &self.kind {
            Kind::Plain => self.database.delete_range(family, start, end, settings),
            Kind::Locking(locking) => locking.write_one(family, ValueKind::RangeDeletion, start, end, settings),
        }
    }

    #[inline]
    pub fn write(&self, batch: &WriteBatch, settings: &WriteSettings) -> Result<(), Failure> {
        match &self.kind {
            Kind::Plain => self.database.write(batch, settings),
            Kind::Locking(locking) => locking.write(batch, settings),
        }
    }
}
