//! Reads by a transaction.

use std::iter;
use std::sync::Arc;

use capi::family::FamilyHandle;
use capi::read_options::ReadSettings;
use spillway::internal::{Family, LockMode, Pinned};

use super::Txn;
use crate::boundary::argument::{Bytes, Direct, DirectRoom, Handles, Head, Room};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::database::read::NOT_FOUND;
use crate::fault::Fault;
use crate::iterator::Walk;

/// What `getForUpdate` asks for beside the key.
#[derive(Clone, Copy)]
struct ForUpdate {
    exclusive: bool,
    /// The key must not have changed since the transaction's snapshot.
    validate: bool,
}

impl Txn {
    fn get(&self, family: &FamilyHandle, key: &[u8], options: &ReadSettings) -> Result<Option<Pinned>, Fault> {
        Ok(self.transaction.get(Some(family), key, options)?)
    }

    fn get_for_update(
        &mut self,
        env: Env<'_>,
        family: &FamilyHandle,
        key: &[u8],
        asked: ForUpdate,
        options: &ReadSettings,
    ) -> Result<Option<Pinned>, Fault> {
        let found = if asked.validate {
            self.transaction.get_for_update(Some(family), key, asked.exclusive, options)?
        } else {
            let database = self.transaction.database.clone();
            database.honour(options)?;
            let mode = if asked.exclusive { LockMode::Exclusive } else { LockMode::Shared };
            let transaction = &mut self.transaction.transaction;
            transaction.get_for_update_unchecked(&database.db, &family.0, key, mode, &options.options)?
        };
        self.notify(env)?;
        Ok(found)
    }

    /// The families of as many keys: the default one without handles.
    fn families(&self, handles: Option<&Handles>, count: usize) -> Result<Vec<Arc<Family>>, Fault> {
        let Some(handles) = handles else {
            return Ok(iter::repeat_n(self.transaction.family(None).clone(), count).collect());
        };
        let families: Vec<Arc<Family>> =
            handles.get::<FamilyHandle>()?.into_iter().map(|family| family.0.clone()).collect();
        if families.len() != count {
            return Err(Fault::illegal(format!("{count} keys, and {} column families", families.len())));
        }
        Ok(families)
    }

    fn multi_get(
        &self,
        families: &[Arc<Family>],
        keys: &[Vec<u8>],
        options: &ReadSettings,
    ) -> Result<Vec<Option<Pinned>>, Fault> {
        let families: Vec<&Arc<Family>> = families.iter().collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        self.transaction.multi_get(&families, &keys, options).into_iter().map(|found| Ok(found?)).collect()
    }

    fn multi_get_for_update(
        &mut self,
        env: Env<'_>,
        handles: Option<&Handles>,
        keys: &[Vec<u8>],
        options: &ReadSettings,
    ) -> Result<Vec<Option<Pinned>>, Fault> {
        let families = self.families(handles, keys.len())?;
        let families: Vec<&Arc<Family>> = families.iter().collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let found = self.transaction.multi_get_for_update(&families, &keys, options);
        self.notify(env)?;
        found.into_iter().map(|found| Ok(found?)).collect()
    }
}

natives! { "Transaction";
    "get__JJ_3BIIJ" =>
    fn(_env, txn: &Txn, options: &ReadSettings, key[offset, len]: Bytes, family: &FamilyHandle) -> Option<Pinned> {
        txn.get(family, &key, options)
    }

    "get__JJ_3BII_3BIIJ" => fn(
        env,
        txn: &Txn,
        options: &ReadSettings,
        key[offset, len]: Bytes,
        room[at, size]: Room<'_>,
        family: &FamilyHandle,
    ) -> i32 {
        txn.get(family, &key, options)?.map_or(Ok(NOT_FOUND), |value| room.fill(env, &value))
    }

    "getDirect" => fn(
        _env,
        txn: &Txn,
        options: &ReadSettings,
        key[offset, len]: Direct<'_>,
        room[at, size]: DirectRoom,
        family: &FamilyHandle,
    ) -> i32 {
        txn.get(family, &key, options)?.map_or(Ok(NOT_FOUND), |value| room.fill(&value))
    }

    "getForUpdate__JJ_3BIIJZZ" => fn(
        env,
        txn: &mut Txn,
        options: &ReadSettings,
        key[offset, len]: Bytes,
        family: &FamilyHandle,
        exclusive: bool,
        validate: bool,
    ) -> Option<Pinned> {
        txn.get_for_update(env, family, &key, ForUpdate { exclusive, validate }, options)
    }

    "getForUpdate__JJ_3BII_3BIIJZZ" => fn(
        env,
        txn: &mut Txn,
        options: &ReadSettings,
        key[offset, len]: Bytes,
        room[at, size]: Room<'_>,
        family: &FamilyHandle,
        exclusive: bool,
        validate: bool,
    ) -> i32 {
        let found = txn.get_for_update(env, family, &key, ForUpdate { exclusive, validate }, options)?;
        found.map_or(Ok(NOT_FOUND), |value| room.fill(env, &value))
    }

    "getDirectForUpdate" => fn(
        env,
        txn: &mut Txn,
        options: &ReadSettings,
        key[offset, len]: Direct<'_>,
        room[at, size]: DirectRoom,
        family: &FamilyHandle,
        exclusive: bool,
        validate: bool,
    ) -> i32 {
        let found = txn.get_for_update(env, family, &key, ForUpdate { exclusive, validate }, options)?;
        found.map_or(Ok(NOT_FOUND), |value| room.fill(&value))
    }

    "multiGet__JJ_3_3B" =>
    fn(_env, txn: &Txn, options: &ReadSettings, keys: Vec<Vec<u8>>) -> Vec<Option<Pinned>> {
        txn.multi_get(&txn.families(None, keys.len())?, &keys, options)
    }

    "multiGet__JJ_3_3B_3J" =>
    fn(_env, txn: &Txn, options: &ReadSettings, keys: Vec<Vec<u8>>, families: Handles) -> Vec<Option<Pinned>> {
        txn.multi_get(&txn.families(Some(&families), keys.len())?, &keys, options)
    }

    "multiGet__JJJ_3_3B" =>
    fn(_env, txn: &Txn, options: &ReadSettings, family: &FamilyHandle, keys: Vec<Vec<u8>>) -> Vec<Option<Pinned>> {
        let families = vec![family.0.clone(); keys.len()];
        txn.multi_get(&families, &keys, options)
    }

    "multiGetForUpdate__JJ_3_3B" =>
    fn(env, txn: &mut Txn, options: &ReadSettings, keys: Vec<Vec<u8>>) -> Vec<Option<Pinned>> {
        txn.multi_get_for_update(env, None, &keys, options)
    }

    "multiGetForUpdate__JJ_3_3B_3J" =>
    fn(env, txn: &mut Txn, options: &ReadSettings, keys: Vec<Vec<u8>>, families: Handles) -> Vec<Option<Pinned>> {
        txn.multi_get_for_update(env, Some(&families), &keys, options)
    }

    /// Of a pessimistic transaction the key's lock stays: giving it back early is a hint in RocksDB.
    "undoGetForUpdate__J_3BI" => fn(_env, txn: &mut Txn, key[len]: Head) -> () {
        txn.transaction.undo_get_for_update(None, &key);
        Ok(())
    }

    "undoGetForUpdate__J_3BIJ" => fn(_env, txn: &mut Txn, key[len]: Head, family: &FamilyHandle) -> () {
        txn.transaction.undo_get_for_update(Some(family), &key);
        Ok(())
    }

    /// An iterator over the database and the transaction's changes. Each move shows the present ones.
    "getIterator__JJJ" => fn(_env, txn: &Txn, options: &ReadSettings, family: Option<&FamilyHandle>) -> i64 {
        Ok(Walk::beside(&txn.siblings, txn.transaction.iterator(family, options)))
    }

    "getIterator__JJ" => fn(_env, txn: &Txn, options: &ReadSettings) -> i64 {
        Ok(Walk::beside(&txn.siblings, txn.transaction.iterator(None, options)))
    }
}
