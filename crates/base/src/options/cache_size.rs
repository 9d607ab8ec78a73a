//! The value of `block_cache`: a size, also as RocksDB's object of a cache.

use std::ops::Deref;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::options::row::{Load, Setting};
use crate::options::string;

/// RocksDB's caches, any of which is the one block cache here.
const CLASSES: [&str; 3] = ["LRUCache", "HyperClockCache", "FixedHyperClockCache"];

/// Parameters of RocksDB's caches without effect in an option string.
const WITHOUT_EFFECT: [&str; 6] = [
    "num_shard_bits",
    "strict_capacity_limit",
    "high_pri_pool_ratio",
    "low_pri_pool_ratio",
    "use_adaptive_mutex",
    "metadata_charge_policy",
];

/// Bytes of a block cache: `64M`, or `{capacity=64M;id=LRUCache}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheSize(pub usize);

impl Deref for CacheSize {
    type Target = usize;

    fn deref(&self) -> &usize {
        &self.0
    }
}

impl CacheSize {
    /// Reads the members of an object.
    fn of_members(members: &[(&str, &str)], load: &mut Load) -> Result<CacheSize> {
        let mut capacity = None;
        for (name, text) in members {
            match *name {
                "id" if CLASSES.contains(text) => {}
                "id" => {
                    return Err(Error::unsupported(format!(
                        "cache `{text}` is unknown; {} is there",
                        CLASSES.join(", ")
                    )));
                }
                "capacity" => {
                    let mut bytes = 0usize;
                    bytes.set(text, load).map_err(|error| error.context("`capacity`"))?;
                    capacity = Some(CacheSize(bytes));
                }
                name if WITHOUT_EFFECT.contains(&name) => {
                    load.warnings.push(format!("`{name}={text}` of the cache has no effect in an option string"));
                }
                name => return Err(Error::invalid_argument(format!("a cache has no parameter `{name}`"))),
            }
        }
        capacity.ok_or_else(|| Error::invalid_argument("the cache has no `capacity`; write {capacity=64M;id=LRUCache}"))
    }
}

impl Setting for CacheSize {
    fn kind(&self) -> String {
        self.0.kind()
    }

    fn text(&self) -> String {
        self.0.text()
    }

    fn set(&mut self, text: &str, load: &mut Load) -> Result<()> {
        match string::members(text) {
            Some(members) => CacheSize::of_members(&members, load).map(|size| *self = size),
            None => self.0.set(text, load),
        }
    }

    fn value(&self) -> Value {
        self.0.value()
    }

    fn number(&self) -> Option<f64> {
        self.0.number()
    }
}

#[cfg(test)]
mod tests {
    use crate::options::{FamilyOptions, apply_string};

    #[test]
    fn size_is_read_from_a_number_and_from_an_object_in_any_order() {
        let read = |cache: &str| {
            let mut family = FamilyOptions::default();
            let text = format!("block_based_table_factory={{block_cache={cache};block_size=8K}}");
            apply_string(&mut family, &text).map(|warnings| (family.table.block_cache.0, warnings.len()))
        };
        for (cache, expected) in [
            ("8M", (8 << 20, 0)),
            ("{capacity=8M}", (8 << 20, 0)),
            ("{id=LRUCache;capacity=8M}", (8 << 20, 0)),
            ("{capacity=8M;num_shard_bits=4;id=LRUCache}", (8 << 20, 1)),
        ] {
            assert_eq!(read(cache).expect(cache), expected, "{cache}");
        }
        for (cache, says) in [
            ("{id=LRUCache}", "the cache has no `capacity`"),
            ("{capacity=x}", "`x` is no integer"),
            ("{capacity=1M;id=MyCache}", "cache `MyCache` is unknown; LRUCache"),
            ("{capacity=1M;shards=3}", "a cache has no parameter `shards`"),
        ] {
            let error = read(cache).expect_err(cache);
            assert!(error.message().contains(says), "{cache}: {error}");
        }
    }
}
