//! Properties.

use std::collections::BTreeMap;

use capi::family::FamilyHandle;
use spillway::internal::Family;
use spillway::internal::options::string::print;

use super::Db;
use crate::boundary::natives;
use crate::boundary::reply::Made;
use crate::collections::string_map;
use crate::fault::Fault;

impl Db {
    fn property(&self, family: &Family, name: &str) -> Result<String, Fault> {
        self.db.property(family, name).ok_or_else(Fault::not_found)
    }

    fn number(&self, family: &Family, name: &str) -> Result<u64, Fault> {
        self.db.int_property(family, name).ok_or_else(Fault::not_found)
    }

    /// The sum over all families.
    pub fn total(&self, name: &str) -> Result<u64, Fault> {
        self.db.families().iter().try_fold(0u64, |sum, family| Ok(sum.saturating_add(self.number(family, name)?)))
    }
}

/// The lines of a property as names and values.
fn lines(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

natives! { "RocksDB";
    "getProperty" =>
    fn(_env, database: &Db, family: Option<&FamilyHandle>, name: String, _len: i32) -> String {
        database.property(database.family(family), &name)
    }

    "getMapProperty" =>
    fn(env, database: &Db, family: Option<&FamilyHandle>, name: String, _len: i32) -> Made {
        let text = database.property(database.family(family), &name)?;
        Ok(string_map(env, &lines(&text))?.into())
    }

    "getLongProperty" =>
    fn(_env, database: &Db, family: Option<&FamilyHandle>, name: String, _len: i32) -> i64 {
        Ok(database.number(database.family(family), &name)? as i64)
    }

    "getAggregatedLongProperty" => fn(_env, database: &Db, name: String, _len: i32) -> i64 {
        Ok(database.total(&name)? as i64)
    }

    "getLatestSequenceNumber" => fn(_env, database: &Db) -> i64 {
        Ok(database.db.latest_sequence_number().0 as i64)
    }

    "getName" => fn(_env, database: &Db) -> String {
        Ok(database.db.path().display().to_string())
    }

    "numberLevels" => fn(_env, database: &Db, family: Option<&FamilyHandle>) -> i32 {
        Ok(i32::try_from(database.family(family).options().num_levels).unwrap_or(i32::MAX))
    }

    /// As an option string.
    "getOptions" => fn(_env, database: &Db, family: Option<&FamilyHandle>) -> String {
        Ok(print(&*database.family(family).options()))
    }

    "getDBOptions" => fn(_env, database: &Db) -> String {
        Ok(print(&*database.db.options()))
    }

    "resetStats" => fn(_env, database: &Db) -> () {
        if let Some(statistics) = database.db.statistics() {
            statistics.reset();
        }
        Ok(())
    }

    /// No memtable is compacted further than level 0, as in RocksDB.
    "maxMemCompactionLevel" => fn(_env, _database: &Db, _family: Option<&FamilyHandle>) -> i32 {
        Ok(0)
    }

    "level0StopWriteTrigger" => fn(_env, database: &Db, family: Option<&FamilyHandle>) -> i32 {
        Ok(database.family(family).options().level0_stop_writes_trigger)
    }
}
