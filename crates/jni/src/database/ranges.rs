//! Ranges of keys, by pairs of slices.

use capi::family::FamilyHandle;

use super::Db;
use crate::boundary::argument::Handles;
use crate::boundary::handle;
use crate::boundary::natives;
use crate::fault::Fault;
use crate::objects::slice::Slice;

natives! { "RocksDB";
    /// Start and end of each range in turn.
    "getApproximateSizes" =>
    fn(_env, database: &Db, family: Option<&FamilyHandle>, slices: Handles, include: i8) -> Vec<i64> {
        let slices = slices.get::<Slice>()?;
        let ranges: Vec<(&[u8], &[u8])> = slices
            .chunks_exact(2)
            .filter_map(|range| match range {
                [start, end] => Some((start.bytes(), end.bytes())),
                _ => None,
            })
            .collect();
        let sizes = database.approximate_sizes(database.family(family), &ranges, include as u8)?;
        Ok(sizes.into_iter().map(|bytes| bytes as i64).collect())
    }

    /// Entries and bytes.
    "getApproximateMemTableStats" =>
    fn(_env, database: &Db, family: Option<&FamilyHandle>, start: &Slice, end: &Slice) -> Vec<i64> {
        let range = database.db.approximate_memtables(database.family(family), start.bytes(), end.bytes())?;
        Ok(vec![range.entries as i64, range.bytes as i64])
    }

    /// The whole key space is compacted one level down, in the background. Slices of the range: empty ones, as in RocksDB.
    "suggestCompactRange" => fn(_env, database: &Db, family: Option<&FamilyHandle>) -> Vec<i64> {
        database.suggest(database.family(family), None, None)?;
        let empty = || handle::open(Slice::new(Vec::new()));
        Ok(vec![empty(), empty()])
    }
}

/// `MemoryUtil`.
pub mod memory {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use capi::cache::Cache;

    use super::*;
    use crate::boundary::class::{Class, Method};
    use crate::boundary::env::Env;
    use crate::boundary::object::{Object, Value};
    use crate::boundary::reply::Made;
    use crate::collections::{boxed_long, map};

    static BYTE: Class = Class::new(c"java/lang/Byte");
    static BYTE_OF: Method = Method::fixed(&BYTE, c"valueOf", c"(B)Ljava/lang/Byte;");

    /// `MemoryUsageType` with the property that has it.
    const OF_DATABASES: [(i8, &str); 3] = [
        (0, "rocksdb.size-all-mem-tables"),
        (1, "rocksdb.cur-size-all-mem-tables"),
        (2, "rocksdb.estimate-table-readers-mem"),
    ];
    const CACHES: i8 = 3;

    fn boxed<'j>(env: Env<'j>, kind: i8, bytes: u64) -> Result<(Object<'j>, Object<'j>), Fault> {
        let null = || Fault::illegal("valueOf gave null");
        let kind = BYTE_OF.object_fixed(env, &[Value::Byte(kind)])?.ok_or_else(null)?;
        Ok((kind, boxed_long(env, bytes as i64)?))
    }

    natives! { "MemoryUtil";
        /// A cache that is given twice counts once, without its own tables, as in RocksDB. Without databases, or caches, nothing is said of them.
        "getApproximateMemoryUsageByType" => fn(env, databases: Handles, caches: Handles) -> Made {
            let databases = databases.get::<Db>()?;
            let total = |property: &str| -> u64 {
                let of = |database: &&Db| database.total(property).unwrap_or(0);
                databases.iter().map(of).sum()
            };
            let of_databases = OF_DATABASES.iter().filter(|_| !databases.is_empty());
            let mut usage: Vec<(i8, u64)> = of_databases.map(|(kind, property)| (*kind, total(property))).collect();
            let mut seen = BTreeSet::new();
            let caches = caches.get::<Cache>()?.into_iter().map(Cache::shared);
            let caches = caches.filter(|cache| seen.insert(Arc::as_ptr(cache).addr()));
            let cached: Vec<u64> = caches.map(|cache| cache.usage() as u64).collect();
            if !cached.is_empty() {
                usage.push((CACHES, cached.iter().sum()));
            }
            Ok(map(env, usage.into_iter(), |(kind, bytes)| boxed(env, kind, bytes))?.into())
        }
    }
}
