//! Single changes.

use capi::family::FamilyHandle;
use capi::write_options::WriteSettings;

use super::Db;
use crate::boundary::argument::{Bytes, Direct};
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
}
