//! Single changes.

use capi::family::FamilyHandle;
use capi::write_options::WriteSettings;

use super::Db;
use crate::boundary::argument::{Bytes, Direct, Head};
use crate::boundary::natives;

natives! { "RocksDB";
    "put__J_3BII_3BII" => fn(_env, database: &Db, key[offset, len]: Bytes, value[at, size]: Bytes) -> () {
        Ok(database.put(database.default_family(), &key, &value, &WriteSettings::default())?)
    }

    "put__J_3BII_3BIIJ" =>
    fn(_env, database: &Db, key[offset, len]: Bytes, value[at, size]: Bytes, family: &FamilyHandle) -> () {
        Ok(database.put(&family.0, &key, &value, &WriteSettings::default())?)
    }

    "put__JJ_3BII_3BII" =>
    fn(_env, database: &Db, options: &WriteSettings, key[offset, len]: Bytes, value[at, size]: Bytes) -> () {
        Ok(database.put(database.default_family(), &key, &value, options)?)
    }

    "put__JJ_3BII_3BIIJ" => fn(
        _env,
        database: &Db,
        options: &WriteSettings,
        key[offset, len]: Bytes,
        value[at, size]: Bytes,
        family: &FamilyHandle,
    ) -> () {
        Ok(database.put(&family.0, &key, &value, options)?)
    }

    "putDirect" => fn(
        _env,
        database: &Db,
        options: &WriteSettings,
        key[offset, len]: Direct<'_>,
        value[at, size]: Direct<'_>,
        family: Option<&FamilyHandle>,
    ) -> () {
        Ok(database.put(database.family(family), &key, &value, options)?)
    }

    "delete__J_3BII" => fn(_env, database: &Db, key[offset, len]: Bytes) -> () {
        Ok(database.delete(database.default_family(), &key, &WriteSettings::default())?)
    }

    "delete__J_3BIIJ" => fn(_env, database: &Db, key[offset, len]: Bytes, family: &FamilyHandle) -> () {
        Ok(database.delete(&family.0, &key, &WriteSettings::default())?)
    }

    "delete__JJ_3BII" => fn(_env, database: &Db, options: &WriteSettings, key[offset, len]: Bytes) -> () {
        Ok(database.delete(database.default_family(), &key, options)?)
    }

    "delete__JJ_3BIIJ" =>
    fn(_env, database: &Db, options: &WriteSettings, key[offset, len]: Bytes, family: &FamilyHandle) -> () {
        Ok(database.delete(&family.0, &key, options)?)
    }

    "deleteDirect" => fn(
        _env,
        database: &Db,
        options: &WriteSettings,
        key[offset, len]: Direct<'_>,
        family: Option<&FamilyHandle>,
    ) -> () {
        Ok(database.delete(database.family(family), &key, options)?)
    }

    "singleDelete__J_3BI" => fn(_env, database: &Db, key[len]: Head) -> () {
        Ok(database.single_delete(database.default_family(), &key, &WriteSettings::default())?)
    }

    "singleDelete__J_3BIJ" => fn(_env, database: &Db, key[len]: Head, family: &FamilyHandle) -> () {
        Ok(database.single_delete(&family.0, &key, &WriteSettings::default())?)
    }

    "singleDelete__JJ_3BI" => fn(_env, database: &Db, options: &WriteSettings, key[len]: Head) -> () {
        Ok(database.single_delete(database.default_family(), &key, options)?)
    }

    "singleDelete__JJ_3BIJ" =>
    fn(_env, database: &Db, options: &WriteSettings, key[len]: Head, family: &FamilyHandle) -> () {
        Ok(database.single_delete(&family.0, &key, options)?)
    }

    "deleteRange__J_3BII_3BII" => fn(_env, database: &Db, start[offset, len]: Bytes, end[at, size]: Bytes) -> () {
        Ok(database.delete_range(database.default_family(), &start, &end, &WriteSettings::default())?)
    }

    "deleteRange__J_3BII_3BIIJ" =>
    fn(_env, database: &Db, start[offset, len]: Bytes, end[at, size]: Bytes, family: &FamilyHandle) -> () {
        Ok(database.delete_range(&family.0, &start, &end, &WriteSettings::default())?)
    }

    "deleteRange__JJ_3BII_3BII" =>
    fn(_env, database: &Db, options: &WriteSettings, start[offset, len]: Bytes, end[at, size]: Bytes) -> () {
        Ok(database.delete_range(database.default_family(), &start, &end, options)?)
    }

    "deleteRange__JJ_3BII_3BIIJ" => fn(
        _env,
        database: &Db,
        options: &WriteSettings,
        start[offset, len]: Bytes,
        end[at, size]: Bytes,
        family: &FamilyHandle,
    ) -> () {
        Ok(database.delete_range(&family.0, &start, &end, options)?)
    }

    "merge__J_3BII_3BII" => fn(_env, database: &Db, key[offset, len]: Bytes, operand[at, size]: Bytes) -> () {
        Ok(database.merge(database.default_family(), &key, &operand, &WriteSettings::default())?)
    }

    "merge__J_3BII_3BIIJ" =>
    fn(_env, database: &Db, key[offset, len]: Bytes, operand[at, size]: Bytes, family: &FamilyHandle) -> () {
        Ok(database.merge(&family.0, &key, &operand, &WriteSettings::default())?)
    }

    "merge__JJ_3BII_3BII" =>
    fn(_env, database: &Db, options: &WriteSettings, key[offset, len]: Bytes, operand[at, size]: Bytes) -> () {
        Ok(database.merge(database.default_family(), &key, &operand, options)?)
    }

    "merge__JJ_3BII_3BIIJ" => fn(
        _env,
        database: &Db,
        options: &WriteSettings,
        key[offset, len]: Bytes,
        operand[at, size]: Bytes,
        family: &FamilyHandle,
    ) -> () {
        Ok(database.merge(&family.0, &key, &operand, options)?)
    }

    "mergeDirect" => fn(
        _env,
        database: &Db,
        options: &WriteSettings,
        key[offset, len]: Direct<'_>,
        operand[at, size]: Direct<'_>,
        family: Option<&FamilyHandle>,
    ) -> () {
        Ok(database.merge(database.family(family), &key, &operand, options)?)
    }
}
