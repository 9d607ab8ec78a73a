//! Point lookups.

use capi::family::FamilyHandle;
use capi::read_options::ReadSettings;
use spillway::internal::{Family, Pinned};

use super::Db;
use crate::boundary::argument::{Bytes, Direct, DirectRoom, Room};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::fault::Fault;

/// A lookup's number for an absent key.
pub const NOT_FOUND: i32 = -1;

impl Db {
    #[inline]
    pub fn get(&self, family: &Family, key: &[u8], options: Option<&ReadSettings>) -> Result<Option<Pinned>, Fault> {
        match options {
            Some(options) => Ok(self.look_up(family, key, options)?),
            None => Ok(self.look_up(family, key, &ReadSettings::default())?),
        }
    }

    #[inline]
    fn get_into(
        &self,
        env: Env<'_>,
        family: &Family,
        key: &[u8],
        options: Option<&ReadSettings>,
        room: &Room<'_>,
    ) -> Result<i32, Fault> {
        self.get(family, key, options)?.map_or(Ok(NOT_FOUND), |value| room.fill(env, &value))
    }
}

natives! { "RocksDB";
    "get__J_3BII" => fn(_env, database: &Db, key[offset, len]: Bytes) -> Option<Pinned> {
        database.get(database.default_family(), &key, None)
    }

    "get__J_3BIIJ" => fn(_env, database: &Db, key[offset, len]: Bytes, family: &FamilyHandle) -> Option<Pinned> {
        database.get(&family.0, &key, None)
    }

    "get__JJ_3BII" => fn(_env, database: &Db, options: &ReadSettings, key[offset, len]: Bytes) -> Option<Pinned> {
        database.get(database.default_family(), &key, Some(options))
    }

    "get__JJ_3BIIJ" => fn(
        _env,
        database: &Db,
        options: &ReadSettings,
        key[offset, len]: Bytes,
        family: &FamilyHandle,
    ) -> Option<Pinned> {
        database.get(&family.0, &key, Some(options))
    }

    "get__J_3BII_3BII" => fn(env, database: &Db, key[offset, len]: Bytes, room[at, size]: Room<'_>) -> i32 {
        database.get_into(env, database.default_family(), &key, None, &room)
    }

    "get__J_3BII_3BIIJ" => fn(
        env,
        database: &Db,
        key[offset, len]: Bytes,
        room[at, size]: Room<'_>,
        family: &FamilyHandle,
    ) -> i32 {
        database.get_into(env, &family.0, &key, None, &room)
    }

    "get__JJ_3BII_3BII" => fn(
        env,
        database: &Db,
        options: &ReadSettings,
        key[offset, len]: Bytes,
        room[at, size]: Room<'_>,
    ) -> i32 {
        database.get_into(env, database.default_family(), &key, Some(options), &room)
    }

    "get__JJ_3BII_3BIIJ" => fn(
        env,
        database: &Db,
        options: &ReadSettings,
        key[offset, len]: Bytes,
        room[at, size]: Room<'_>,
        family: &FamilyHandle,
    ) -> i32 {
        database.get_into(env, &family.0, &key, Some(options), &room)
    }

    "getDirect" => fn(
        _env,
        database: &Db,
        options: Option<&ReadSettings>,
        key[offset, len]: Direct<'_>,
        room[at, size]: DirectRoom,
        family: Option<&FamilyHandle>,
    ) -> i32 {
        let found = database.get(database.family(family), &key, options)?;
        found.map_or(Ok(NOT_FOUND), |value| room.fill(&value))
    }
}
