//! Lookups of several keys.

use std::sync::Arc;

use capi::database::read::Found;
use capi::failure::Failure;
use capi::family::FamilyHandle;
use capi::read_options::ReadSettings;
use spillway::internal::{Family, Pinned};

use super::Db;
use crate::boundary::argument::{Array, Handles, IntRoom};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::object::Object;
use crate::fault::{self, Fault};

/// Places of the keys in their arrays: offsets and lengths.
struct Places(Vec<i32>, Vec<i32>);

impl Places {
    fn of(&self, at: usize) -> (i32, i32) {
        let get = |numbers: &[i32]| numbers.get(at).copied().unwrap_or(-1);
        (get(&self.0), get(&self.1))
    }
}

/// The keys, each copied from its place in its array.
fn keys(env: Env<'_>, arrays: Object<'_>, places: &Places) -> Result<Vec<Vec<u8>>, Fault> {
    let mut at = 0;
    env.elements(arrays, |array| {
        let (offset, len) = places.of(at);
        at += 1;
        let mut key = vec![0; usize::try_from(len).map_err(|_| Fault::illegal("a key has no length"))?];
        env.read_bytes(array, offset, &mut key)?;
        Ok(key)
    })
}

impl Db {
    /// Each key in its family: in the only one given, or in the default one.
    fn each(&self, families: &[&FamilyHandle], keys: &[&[u8]], options: &ReadSettings) -> Result<Vec<Found>, Fault> {
        let default = self.default_family();
        let family = |at: usize| -> Option<&Arc<Family>> {
            match families {
                [] => Some(default),
                [only] => Some(&only.0),
                several => several.get(at).map(|family| &family.0),
            }
        };
        let of_each: Option<Vec<&Family>> = (0..keys.len()).map(|at| family(at).map(|family| &**family)).collect();
        let of_each = of_each.ok_or_else(|| Fault::illegal("fewer families than keys"))?;
        Ok(self.multi_get_of(of_each.into_iter(), keys, options))
    }

    /// Values in the order of the keys; null for absent ones.
    fn values(
        &self,
        env: Env<'_>,
        families: Option<&Handles>,
        arrays: Object<'_>,
        places: &Places,
        options: &ReadSettings,
    ) -> Result<Vec<Option<Pinned>>, Fault> {
        let keys = keys(env, arrays, places)?;
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let families = families.map_or(Ok(Vec::new()), Handles::get::<FamilyHandle>)?;
        let found = self.each(&families, &keys, options)?;
        found.into_iter().map(|found| Ok(found?)).collect()
    }
}

/// Results of lookups into direct buffers: values, lengths, and statuses.
struct Replies<'j> {
    buffers: Object<'j>,
    lengths: Object<'j>,
    statuses: Object<'j>,
}

impl Replies<'_> {
    fn give(&self, env: Env<'_>, found: Vec<Found>) -> Result<(), Fault> {
        let mut lengths = Vec::with_capacity(found.len());
        let mut found = found.into_iter();
        env.each_element(self.buffers, |buffer| {
            let at = i32::try_from(lengths.len()).map_err(|_| Fault::too_long())?;
            let found = found.next().unwrap_or(Ok(None)).map_err(Failure::from);
            let (len, failure) = match (found, buffer) {
                (Ok(Some(value)), Some(buffer)) => (fill(env, buffer, &value)?, None),
                (Ok(_), _) => (0, Some(Failure::not_found(""))),
                (Err(failure), _) => (0, Some(failure)),
            };
            lengths.push(len);
            let status = fault::status(env, failure.as_ref())?;
            env.set_element(self.statuses, at, status)?;
            env.delete(status);
            Ok(())
        })?;
        env.set_ints(self.lengths, &lengths)
    }
}

/// Copies as much as there is room for from the buffer's start; the value's length.
fn fill(env: Env<'_>, buffer: Object<'_>, value: &[u8]) -> Result<i32, Fault> {
    env.direct_room(buffer)?.fill(value)
}

natives! { "RocksDB";
    "multiGet__J_3_3B_3I_3I" =>
    fn(env, database: &Db, keys: Array<'_>, offsets: Vec<i32>, lens: Vec<i32>) -> Vec<Option<Pinned>> {
        database.values(env, None, keys.0, &Places(offsets, lens), &ReadSettings::default())
    }

    "multiGet__J_3_3B_3I_3I_3J" => fn(
        env,
        database: &Db,
        keys: Array<'_>,
        offsets: Vec<i32>,
        lens: Vec<i32>,
        families: Handles,
    ) -> Vec<Option<Pinned>> {
        database.values(env, Some(&families), keys.0, &Places(offsets, lens), &ReadSettings::default())
    }

    "multiGet__JJ_3_3B_3I_3I" => fn(
        env,
        database: &Db,
        options: &ReadSettings,
        keys: Array<'_>,
        offsets: Vec<i32>,
        lens: Vec<i32>,
    ) -> Vec<Option<Pinned>> {
        database.values(env, None, keys.0, &Places(offsets, lens), options)
    }

    "multiGet__JJ_3_3B_3I_3I_3J" => fn(
        env,
        database: &Db,
        options: &ReadSettings,
        keys: Array<'_>,
        offsets: Vec<i32>,
        lens: Vec<i32>,
        families: Handles,
    ) -> Vec<Option<Pinned>> {
        database.values(env, Some(&families), keys.0, &Places(offsets, lens), options)
    }

    /// A key is in its buffer from the offset; its length is counted from there.
    "multiGet__JJ_3J_3Ljava_nio_ByteBuffer_2_3I_3I_3Ljava_nio_ByteBuffer_2_3I_3Lorg_rocksdb_Status_2" => fn(
        env,
        database: &Db,
        options: &ReadSettings,
        families: Handles,
        keys: Array<'_>,
        offsets: Vec<i32>,
        lens: Vec<i32>,
        buffers: Array<'_>,
        lengths: IntRoom<'_>,
        statuses: Array<'_>,
    ) -> () {
        let places = Places(offsets, lens);
        let mut at = 0;
        let keys = env.elements(keys.0, |buffer| {
            let (offset, len) = places.of(at);
            at += 1;
            env.direct_bytes(buffer, offset, len)
        })?;
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let found = database.each(&families.get::<FamilyHandle>()?, &keys, options)?;
        Replies { buffers: buffers.0, lengths: lengths.0, statuses: statuses.0 }.give(env, found)
    }
}
