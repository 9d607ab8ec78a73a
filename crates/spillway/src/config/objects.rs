//! Named objects, turned into options by class.

use std::str::FromStr;

use base::options::document::apply_member;
use base::options::known::{Unhonoured, how};
use base::options::row::{Load, OptionGroup};
use base::options::tree::Node;
use base::options::{CacheSize, FilterPolicy, MemtableChoice, TableOptions, string};
use base::{Error, Result};

use crate::config::groups::set_text;
use crate::config::sections::{Document, Kind, Object, number};

/// Limit on the chain of memtables of class `Dyna`.
const DYNA_MAX: usize = 8;

/// The block cache of a family's tables.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CacheUse {
    /// The object's name in section `Cache`; empty for an inline one.
    pub name: String,
    pub bytes: usize,
    pub is_strict: bool,
    pub high_priority_ratio: f64,
}

const CACHE_PARAMS: &[Unhonoured] = &[
    how("num_shard_bits", &["-1", "6"]),
    how("low_pri_pool_ratio", &["0"]),
    how("use_adaptive_mutex", &["false"]),
    how("metadata_charge_policy", &["kFullChargeCacheMetadata"]),
    how("secondary_cache", &["nullptr"]),
    how("memory_allocator", &["nullptr"]),
];

const STATISTICS_PARAMS: &[Unhonoured] =
    &[how("discard_tickers", &["nullptr"]), how("discard_histograms", &["nullptr"])];

/// RocksDB's levels of statistics. Here statistics are on or off.
const STATISTICS_LEVELS: [&str; 7] = [
    "kDisableAll",
    "kExceptTickers",
    "kExceptHistogramOrTimers",
    "kExceptTimers",
    "kExceptDetailedTimers",
    "kExceptTimeForMutex",
    "kAll",
];

const WRITE_BUFFER_MANAGER_PARAMS: &[Unhonoured] =
    &[how("cache", &["nullptr"]), how("cost_to_cache", &["nullptr"]), how("allow_stall", &["false"])];

impl<'a> Document<'a> {
    /// Checks every object of a kind. An unused object's mistakes are errors too, except unsupported classes: warnings.
    pub(super) fn try_objects(&mut self, kind: Kind) -> Result<()> {
        for node in self.named(kind.section())? {
            let tried = match kind {
                Kind::Cache => cache(node, &mut self.warnings).map(drop),
                Kind::Comparator => self.option_text("comparator", node).map(drop),
                Kind::FilterPolicy => filter_policy(node, &mut self.warnings).map(drop),
                Kind::MemTableRepFactory => self.memtable(node).map(drop),
                Kind::MergeOperator => self.option_text("merge_operator", node).map(drop),
                Kind::SliceTransform => self.option_text("prefix_extractor", node).map(drop),
                Kind::SstPartitionerFactory => self.option_text("sst_partitioner_factory", node).map(drop),
                Kind::Statistics => statistics(node, &mut self.warnings).map(drop),
                Kind::TableFactory => self.try_table_factory(node),
                Kind::WriteBufferManager => write_buffer_bytes(node, &mut self.warnings).map(drop),
            };
            tried.or_else(|error| self.pass_if_unsupported(error))?;
        }
        Ok(())
    }

    /// Notes an unsupported object as a remark; where a database uses it, it is an error.
    ///
    /// # Errors
    /// `error`, if it is another one.
    pub(super) fn pass_if_unsupported(&mut self, error: Error) -> Result<()> {
        if error.kind() != base::ErrorKind::Unsupported {
            return Err(error);
        }
        self.warnings.push(format!("{} (an error where a database uses it)", error.message()));
        Ok(())
    }

    /// The memtable of an object, as its factory writes it.
    pub(super) fn memtable(&mut self, node: &'a Node) -> Result<MemtableChoice> {
        let mut node = node;
        for _ in 0..DYNA_MAX {
            let object = Object::new(node)?;
            if object.class_name != "Dyna" {
                return own_memtable(&object);
            }
            object.check_params(&["real_fac"], &[], &mut self.warnings)?;
            self.warnings
                .push(object.class.remark("the memtable is fixed while the database is open: `real_fac` is used"));
            let real = object.param("real_fac").ok_or_else(|| node.error("class `Dyna` needs `real_fac`"))?;
            match self.refer(Kind::MemTableRepFactory.section(), real)? {
                Some(next) => node = next,
                None => return canonical_memtable(&real.text()?).map_err(|error| real.locate(error)),
            }
        }
        Err(node.error("classes `Dyna` stand for each other in a circle"))
    }

    /// The text of a family's option for an object.
    pub(super) fn option_text(&mut self, option: &str, node: &'a Node) -> Result<String> {
        let object = Object::new(node)?;
        let text = match option {
            "merge_operator" => merge_text(&object)?,
            "prefix_extractor" => prefix_text(&object, node, &mut self.warnings)?,
            "sst_partitioner_factory" => partitioner_text(&object, node, &mut self.warnings)?,
            _ => {
                object.check_params(&[], &[], &mut self.warnings)?;
                string::escape(&object.class_name)
            }
        };
        let mut scratch = self.start.family.clone();
        let (_, setting) = scratch.find_mut(option).expect("callers name options that there are");
        setting.set(&text, &mut Load::default()).map_err(|error| object.class.locate(error))?;
        Ok(text)
    }

    /// Sets the options of block-based tables. Returns the cache they name.
    pub(super) fn table_params(&mut self, params: &'a [Node], table: &mut TableOptions) -> Result<Option<CacheUse>> {
        let mut used = None;
        let mut load = Load::default();
        for param in params {
            let referred = match param.name() {
                _ if param.is_null() => None,
                "block_cache" => self.refer(Kind::Cache.section(), param)?,
                "filter_policy" => self.refer(Kind::FilterPolicy.section(), param)?,
                _ => None,
            };
            match (param.name(), referred) {
                ("block_cache", Some(object)) => {
                    let found = cache(object, &mut self.warnings)?;
                    table.block_cache = CacheSize(found.bytes);
                    used = Some(found);
                }
                ("block_cache", None) if param.is_null() => {} // RocksDB's word for the default one
                ("filter_policy", Some(object)) => {
                    let text = filter_policy(object, &mut self.warnings)?;
                    set_text(table, param, &text, &mut self.warnings)?;
                }
                ("block_cache", None) => apply_member(table, param, &mut load)
                    .map_err(|error| self.neither(Kind::Cache.section(), param, error))?,
                ("filter_policy", None) => apply_member(table, param, &mut load)
                    .map_err(|error| self.neither(Kind::FilterPolicy.section(), param, error))?,
                _ => apply_member(table, param, &mut load)?,
            }
        }
        self.warnings.append(&mut load.warnings);
        Ok(used)
    }
}

/// The memtable of an object other than ToplingDB's `Dyna`. An error is located at the first parameter that fails
/// alone.
fn own_memtable(object: &Object<'_>) -> Result<MemtableChoice> {
    let class = object.class_name.as_str();
    let choice_of = |params: &[Node]| canonical_memtable(&MemtableChoice::of_class(class, params));
    choice_of(object.params).map_err(|error| {
        if choice_of(&[]).is_err() {
            return object.class.locate(error);
        }
        let single = |param: &&Node| choice_of(std::slice::from_ref(*param)).is_err();
        object.params.iter().find(single).unwrap_or(object.class).locate_key(error)
    })
}

/// The option string in its factory's form.
pub(super) fn canonical_memtable(option: &str) -> Result<MemtableChoice> {
    Ok(memtable::factory_from_option_string(option)?.option_string().into())
}

fn cache(node: &Node, warnings: &mut Vec<String>) -> Result<CacheUse> {
    let object = Object::new(node)?;
    match object.class_name.as_str() {
        "LRUCache" => {}
        "ClockCache" | "HyperClockCache" => {
            warnings.push(object.class.remark("there is one kind of block cache here; it does what this one does"));
        }
        _ => return Err(object.unknown_class(&["LRUCache"])),
    }
    object.check_params(&["capacity", "strict_capacity_limit", "high_pri_pool_ratio"], CACHE_PARAMS, warnings)?;
    let capacity = object.param("capacity").ok_or_else(|| node.error("it has no `capacity`"))?;
    let is_strict = parsed(&object, "strict_capacity_limit", "it is true or false")?.unwrap_or(false);
    let ratio: Option<f64> = parsed(&object, "high_pri_pool_ratio", "it is a number")?;
    let ratio = ratio.unwrap_or(table::cache::HIGH_PRIORITY_RATIO);
    Ok(CacheUse { name: node.name().to_owned(), bytes: number(capacity)?, is_strict, high_priority_ratio: ratio })
}

/// A parameter, if it is given. `wrong` says what it is.
fn parsed<T: FromStr>(object: &Object<'_>, name: &str, wrong: &str) -> Result<Option<T>> {
    let Some(param) = object.param(name) else { return Ok(None) };
    param.text()?.parse().map(Some).map_err(|_| param.error(wrong))
}

/// The policy of an object, in option string form.
fn filter_policy(node: &Node, warnings: &mut Vec<String>) -> Result<String> {
    let object = Object::new(node)?;
    let format = match object.class_name.as_str() {
        "BloomFilter" => "bloomfilter",
        "RibbonFilter" => "ribbonfilter",
        _ => return Err(object.unknown_class(&["BloomFilter"])),
    };
    let unhonoured = [how("use_block_based_builder", &["false"])];
    object.check_params(&["bits_per_key"], &unhonoured, warnings)?;
    let bits = object.param("bits_per_key");
    let text = bits.map_or(Ok("10".to_owned()), Node::text)?;
    let blamed = bits.unwrap_or(object.class);
    let policy = format!("{format}:{text}:false");
    FilterPolicy::parse(&policy).map_err(|error| blamed.locate(error))?;
    Ok(policy)
}

/// Whether the object turns statistics on.
pub(super) fn statistics(node: &Node, warnings: &mut Vec<String>) -> Result<bool> {
    let object = Object::new(node)?;
    if !["default", "Default", "Statistics"].contains(&object.class_name.as_str()) {
        return Err(object.unknown_class(&["default"]));
    }
    object.check_params(&["stats_level"], STATISTICS_PARAMS, warnings)?;
    let Some(level) = object.param("stats_level") else { return Ok(true) };
    let name = level.text()?;
    if !STATISTICS_LEVELS.contains(&name.as_str()) {
        return Err(level.error(format!("`{name}` is none of {}", STATISTICS_LEVELS.join(", "))));
    }
    if !["kDisableAll", "kAll"].contains(&name.as_str()) {
        warnings.push(level.remark("statistics are counted wholly or not at all here; they are counted"));
    }
    Ok(name != "kDisableAll")
}

/// Limit in bytes on all memtables together.
pub(super) fn write_buffer_bytes(node: &Node, warnings: &mut Vec<String>) -> Result<usize> {
    let object = Object::new(node)?;
    if object.class_name != "WriteBufferManager" {
        return Err(object.unknown_class(&["WriteBufferManager"]));
    }
    object.check_params(&["buffer_size"], WRITE_BUFFER_MANAGER_PARAMS, warnings)?;
    number(object.param("buffer_size").ok_or_else(|| node.error("it has no `buffer_size`"))?)
}

fn prefix_text(object: &Object<'_>, node: &Node, warnings: &mut Vec<String>) -> Result<String> {
    let (kind, length) = match object.class_name.as_str() {
        "FixedPrefixTransform" => ("fixed", "prefix_len"),
        "CappedPrefixTransform" => ("capped", "cap_len"),
        _ => return Err(object.unknown_class(&["FixedPrefixTransform", "CappedPrefixTransform"])),
    };
    object.check_params(&[length], &[], warnings)?;
    let given = object.param(length).ok_or_else(|| node.error(format!("it has no `{length}`")))?;
    Ok(format!("{kind}:{}", number::<usize>(given)?))
}

fn partitioner_text(object: &Object<'_>, node: &Node, warnings: &mut Vec<String>) -> Result<String> {
    const CLASSES: [&str; 2] = ["SstPartitionerFixedPrefix", "SstPartitionerFixedPrefixFactory"];
    if !CLASSES.contains(&object.class_name.as_str()) {
        return Err(object.unknown_class(&CLASSES));
    }
    object.check_params(&["prefix_len"], &[], warnings)?;
    let given = object.param("prefix_len").ok_or_else(|| node.error("it has no `prefix_len`"))?;
    Ok(format!("{{id=SstPartitionerFixedPrefixFactory;length={};}}", number::<usize>(given)?))
}

fn merge_text(object: &Object<'_>) -> Result<String> {
    let mut text = format!("{{id={};", string::escape(&object.class_name));
    for param in object.params {
        text += &format!("{}={};", param.name(), string::escape(&param.text()?));
    }
    Ok(text + "}")
}
