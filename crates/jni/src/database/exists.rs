//! Whether a key is there.

use capi::family::FamilyHandle;
use capi::read_options::ReadSettings;
use spillway::internal::Pinned;

use super::Db;
use crate::boundary::argument::{Bytes, Direct, DirectRoom};
use crate::boundary::natives;
use crate::fault::Fault;

/// `KeyMayExist.KeyMayExistEnum`, by ordinal.
const ABSENT: i8 = 0;
const MAYBE: i8 = 1;
const FOUND: i8 = 2;

impl Db {
    fn value(
        &self,
        family: Option<&FamilyHandle>,
        key: &[u8],
        options: Option<&ReadSettings>,
    ) -> Result<Option<Pinned>, Fault> {
        self.get(self.family(family), key, options)
    }

    /// As far as a lookup tells: after an error the key may be there, as in RocksDB.
    fn may_exist(&self, family: Option<&FamilyHandle>, key: &[u8], options: Option<&ReadSettings>) -> (i8, Vec<u8>) {
        match self.value(family, key, options) {
            Ok(Some(value)) => (FOUND, value.to_vec()),
            Ok(None) => (ABSENT, Vec::new()),
            Err(_) => (MAYBE, Vec::new()),
        }
    }
}

natives! { "RocksDB";
    "keyExists" => fn(
        _env,
        database: &Db,
        family: Option<&FamilyHandle>,
        options: Option<&ReadSettings>,
        key[offset, len]: Bytes,
    ) -> bool {
        database.value(family, &key, options).map(|value| value.is_some())
    }

    "keyExistsDirect" => fn(
        _env,
        database: &Db,
        family: Option<&FamilyHandle>,
        options: Option<&ReadSettings>,
        key[offset, len]: Direct<'_>,
    ) -> bool {
        database.value(family, &key, options).map(|value| value.is_some())
    }

    "keyMayExist" => fn(
        _env,
        database: &Db,
        family: Option<&FamilyHandle>,
        options: Option<&ReadSettings>,
        key[offset, len]: Bytes,
    ) -> bool {
        Ok(database.may_exist(family, &key, options).0 != ABSENT)
    }

    "keyMayExistDirect" => fn(
        _env,
        database: &Db,
        family: Option<&FamilyHandle>,
        options: Option<&ReadSettings>,
        key[offset, len]: Direct<'_>,
    ) -> bool {
        Ok(database.may_exist(family, &key, options).0 != ABSENT)
    }

    /// The answer's number in an array of its own, then the value.
    "keyMayExistFoundValue" => fn(
        _env,
        database: &Db,
        family: Option<&FamilyHandle>,
        options: Option<&ReadSettings>,
        key[offset, len]: Bytes,
    ) -> Vec<Vec<u8>> {
        let (answer, value) = database.may_exist(family, &key, options);
        Ok(vec![vec![answer as u8], value])
    }

    /// The answer's number and the value's length.
    "keyMayExistDirectFoundValue" => fn(
        _env,
        database: &Db,
        family: Option<&FamilyHandle>,
        options: Option<&ReadSettings>,
        key[offset, len]: Direct<'_>,
        room[at, size]: DirectRoom,
    ) -> Vec<i32> {
        let (answer, value) = database.may_exist(family, &key, options);
        Ok(vec![answer.into(), room.fill(&value)?])
    }
}
