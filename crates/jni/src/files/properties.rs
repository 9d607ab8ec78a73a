//! `TableProperties`.

use spillway::internal::name;
use std::collections::BTreeMap;
use std::path::PathBuf;

use capi::family::FamilyHandle;
use spillway::internal::dump::Properties;
use spillway::internal::report::KeyRange;

use super::lists::text;
use crate::boundary::argument::Handles;
use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::object::{Object, Value};
use crate::boundary::reply::Made;
use crate::collections::{map, string_map};
use crate::database::Db;
use crate::fault::Fault;
use crate::objects::slice::Slice;

static PROPERTIES: Class = Class::new(c"org/rocksdb/TableProperties");
static NEW_PROPERTIES: Method = Method::constructor(
    &PROPERTIES,
    c"(JJJJJJJJJJJJJJJJJJJJJJ[BLjava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljava/util/Map;Ljava/util/Map;)V",
);

/// What Java's object has.
#[derive(Clone, Default)]
pub struct Facts {
    /// In the constructor's order.
    pub numbers: [i64; 22],
    pub family: String,
    pub filter_policy: String,
    pub comparator: String,
    pub merge_operator: String,
    pub prefix_extractor: String,
    pub collectors: String,
    pub compression: String,
    pub user: BTreeMap<String, String>,
    pub readable: BTreeMap<String, String>,
}

fn numbers(properties: &Properties) -> [u64; 22] {
    [
        properties.data_bytes,
        properties.index_bytes,
        properties.index_partitions,
        properties.top_level_index_bytes,
        properties.index_key_is_user_key.into(),
        properties.index_value_is_delta.into(),
        properties.filter_bytes,
        properties.raw_key_bytes,
        properties.raw_value_bytes,
        properties.data_blocks,
        properties.entries,
        properties.deletions,
        properties.merge_operands,
        properties.range_deletions,
        properties.format_version,
        0, // no fixed length of keys
        properties.family_id.map_or(u64::from(i32::MAX as u32), u64::from),
        properties.creation_time_s,
        properties.oldest_key_time_s,
        0, // compressions are not sampled
        0,
        0, // the place of a global sequence number
    ]
}

/// A name; null without one.
fn name<'j>(env: Env<'j>, name: &str) -> Result<Value<'j>, Fault> {
    Ok(if name.is_empty() { Value::Null } else { Value::Object(env.new_text(name)?) })
}

impl Facts {
    pub fn of(properties: &Properties) -> Facts {
        let user = properties.other.iter();
        Facts {
            numbers: numbers(properties).map(|number| number as i64),
            family: properties.family_name.clone(),
            filter_policy: properties.filter_policy.clone(),
            comparator: properties.comparator.clone(),
            merge_operator: properties.merge_operator.clone(),
            prefix_extractor: properties.prefix_extractor.clone(),
            collectors: "[]".to_owned(),
            compression: properties.compression.clone(),
            user: user.map(|(name, value)| (name.clone(), String::from_utf8_lossy(value).into_owned())).collect(),
            readable: BTreeMap::new(),
        }
    }

    /// An object of Java's.
    pub fn object<'j>(&self, env: Env<'j>) -> Result<Object<'j>, Fault> {
        let mut values: Vec<Value<'_>> = self.numbers.iter().map(|&number| Value::Long(number)).collect();
        values.extend([
            Value::Object(env.new_bytes(&name::bytes(&self.family))?),
            name(env, &self.filter_policy)?,
            name(env, &self.comparator)?,
            name(env, &self.merge_operator)?,
            name(env, &self.prefix_extractor)?,
            name(env, &self.collectors)?,
            name(env, &self.compression)?,
            Value::Object(string_map(env, &self.user)?),
            Value::Object(string_map(env, &self.readable)?),
        ]);
        let made = NEW_PROPERTIES.make(env, &values)?;
        for value in values {
            if let Value::Object(reference) = value {
                env.delete(reference);
            }
        }
        Ok(made)
    }
}

/// Looks the class up, for callbacks (J5).
pub fn find_properties(env: Env<'_>) -> Result<(), Fault> {
    NEW_PROPERTIES.find(env)
}

/// An object of Java's.
pub fn properties<'j>(env: Env<'j>, properties: &Properties) -> Result<Object<'j>, Fault> {
    Facts::of(properties).object(env)
}

/// By path.
fn by_path<'j>(env: Env<'j>, tables: &[(PathBuf, Properties)]) -> Result<Object<'j>, Fault> {
    map(env, tables.iter(), |(path, of)| Ok((env.new_text(&text(path))?, properties(env, of)?)))
}

natives! { "RocksDB";
    "getPropertiesOfAllTables" => fn(env, database: &Db, family: Option<&FamilyHandle>) -> Made {
        Ok(by_path(env, &database.db.table_properties(database.family(family), None)?)?.into())
    }

    /// Of tables with keys in one of the ranges. Each range has two slices, its first key and its last.
    "getPropertiesOfTablesInRange" =>
    fn(env, database: &Db, family: Option<&FamilyHandle>, ranges: Handles) -> Made {
        let keys = ranges.get::<Slice>()?;
        let pairs = keys.chunks_exact(2).filter_map(|pair| Some((pair.first()?.bytes(), pair.last()?.bytes())));
        let ranges: Vec<KeyRange<'_>> = pairs.collect();
        Ok(by_path(env, &database.db.table_properties(database.family(family), Some(&ranges))?)?.into())
    }
}
