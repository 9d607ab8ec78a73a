//! Column families: handles, and their lives.

use capi::database::families::NO_TTL;
use capi::family::FamilyHandle;
use capi::options::Options;
use spillway::internal::name;

use super::Db;
use crate::boundary::argument::{Handles, Head};
use crate::boundary::handle;
use crate::boundary::natives;
use crate::fault::Fault;

/// The handles of a new database and its families.
pub fn handles_of(database: i64, families: Vec<FamilyHandle>) -> Vec<i64> {
    let families = families.into_iter().map(|family| handle::open(Box::new(family)));
    std::iter::once(database).chain(families).collect()
}

impl Db {
    /// A new family by its name in bytes.
    fn create(&self, options: &Options, name: &[u8]) -> Result<Box<FamilyHandle>, Fault> {
        Ok(self.create_named(options, &name::text(name), NO_TTL)?)
    }
}

natives! { "RocksDB";
    "createColumnFamily" => fn(_env, database: &Db, name[len]: Head, options: &Options) -> Box<FamilyHandle> {
        database.create(options, &name)
    }

    "createColumnFamilies__JJ_3_3B" =>
    fn(_env, database: &Db, options: &Options, names: Vec<Vec<u8>>) -> Vec<i64> {
        let created = names.iter().map(|name| database.create(options, name));
        Ok(created.collect::<Result<Vec<_>, Fault>>()?.into_iter().map(handle::open).collect())
    }

    "createColumnFamilies__J_3J_3_3B" =>
    fn(_env, database: &Db, options: Handles, names: Vec<Vec<u8>>) -> Vec<i64> {
        let options = options.get::<Options>()?;
        let created = options.iter().zip(&names).map(|(options, name)| database.create(options, name));
        Ok(created.collect::<Result<Vec<_>, Fault>>()?.into_iter().map(handle::open).collect())
    }

    "dropColumnFamily" => fn(_env, database: &Db, family: &FamilyHandle) -> () {
        Ok(database.drop_family(family)?)
    }

    "dropColumnFamilies" => fn(_env, database: &Db, families: Handles) -> () {
        families.get::<FamilyHandle>()?.into_iter().try_for_each(|family| Ok(database.drop_family(family)?))
    }

    /// The database's own: Java does not close it.
    "getDefaultColumnFamily" => fn(_env, database: &Db) -> i64 {
        Ok(database.default_handle())
    }
}
