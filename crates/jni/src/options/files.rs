//! `OptionsUtil`: options from a database's OPTIONS files.

use spillway::internal::name;
use std::path::Path;

use capi::options::Options;
use capi::options::latest::{load_file, load_latest, newest};
use capi::options::table::Filter;
use spillway::internal::options::{OptionsFile, TableOptions};

use super::config::ConfigSettings;
use super::table;
use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::object::{Object, Value};
use crate::boundary::reply::Made;
use crate::boundary::{handle, natives};
use crate::fault::Fault;

static LIST: Class = Class::new(c"java/util/List");
static ADD: Method = Method::new(&LIST, c"add", c"(Ljava/lang/Object;)Z");
static FAMILY_OPTIONS: Class = Class::new(c"org/rocksdb/ColumnFamilyOptions");
static NEW_FAMILY_OPTIONS: Method = Method::constructor(&FAMILY_OPTIONS, c"(J)V");
static DESCRIPTOR: Class = Class::new(c"org/rocksdb/ColumnFamilyDescriptor");
static NEW_DESCRIPTOR: Method = Method::constructor(&DESCRIPTOR, c"([BLorg/rocksdb/ColumnFamilyOptions;)V");
static TABLE: Class = Class::new(c"org/rocksdb/BlockBasedTableConfig");
/// Of the jars to 10.6, of 10.10, of 11.0, and from 11.1 on.
static NEW_TABLE: Method = Method::constructor(&TABLE, c"(ZZZZBBDBZJIIIJZZZZZIIZZBBJD)V");
static NEW_TABLE_10_10: Method = Method::constructor(&TABLE, c"(ZZZZBBDBZJIIIJZZZZZIIZZJJBBJD)V");
static NEW_TABLE_11_0: Method = Method::constructor(&TABLE, c"(ZZZZBBDBZJIIIJZZZZZIIZZZJJBBBJD)V");
static NEW_TABLE_11_1: Method = Method::constructor(&TABLE, c"(ZZZZBBDBZJIIIJZZZZZIIZDZZJJBBBJD)V");

/// Puts the database's options into `options`, and a descriptor of each family into the list.
fn give(env: Env<'_>, file: OptionsFile, options: &mut Options, list: Object<'_>) -> Result<(), Fault> {
    options.db = file.db;
    for (name, family) in file.families {
        let name = env.new_bytes(&name::bytes(&name))?;
        let mut of_family = Box::<Options>::default();
        of_family.family = family;
        let number = handle::open(of_family);
        let family = NEW_FAMILY_OPTIONS.make(env, &[Value::Long(number)])?;
        let descriptor = NEW_DESCRIPTOR.make(env, &[Value::Object(name), Value::Object(family)])?;
        ADD.boolean(env, list, &[Value::Object(descriptor)])?;
        [name, family, descriptor].into_iter().for_each(|object| env.delete(object));
    }
    Ok(())
}

/// Java's numbers of filters: none that it knows, and bloom filters.
const NO_FILTER: i8 = 0;
const BLOOM_FILTER: i8 = 1;

/// Java's object of tables' options.
fn table_config<'j>(env: Env<'j>, of: &TableOptions) -> Result<Object<'j>, Fault> {
    let kept = table::of_blocks_with(of);
    let flag = |name: &str| Value::Bool(table::option(&kept, name));
    let byte = |name: &str| Value::Byte(table::option(&kept, name));
    let int = |number: usize| Value::Int(i32::try_from(number).unwrap_or(i32::MAX));
    let bits = of.filter_policy.bits_per_key;
    // Java keeps the filter without owning it.
    let filter = bits.map_or(0, |_| handle::open(Filter::of(of.filter_policy)));
    let first = [
        Value::Bool(of.cache_index_and_filter_blocks),
        flag("cache_index_and_filter_blocks_with_high_priority"),
        Value::Bool(of.pin_l0_filter_and_index_blocks_in_cache),
        flag("pin_top_level_index_and_filter"),
        Value::Byte(of.index_type.number() as i8),
        Value::Byte(of.data_block_index_type.number() as i8),
        Value::Double(of.data_block_hash_table_util_ratio),
        Value::Byte(of.checksum.number() as i8),
        Value::Bool(of.no_block_cache),
        Value::Long(of.block_size as i64),
        int(of.block_size_deviation as usize),
        int(of.block_restart_interval),
        int(of.index_block_restart_interval),
        Value::Long(of.metadata_block_size as i64),
        Value::Bool(of.partition_filters),
        flag("optimize_filters_for_memory"),
        flag("use_delta_encoding"),
        Value::Bool(of.whole_key_filtering),
        Value::Bool(of.verify_compression),
        Value::Int(table::option(&kept, "read_amp_bytes_per_bit")),
        Value::Int(of.asked_format_version() as i32),
    ];
    let second = [Value::Bool(of.enable_index_compression), flag("block_align")];
    let shortening = [byte("index_shortening")];
    let last = [
        Value::Byte(if bits.is_some() { BLOOM_FILTER } else { NO_FILTER }),
        Value::Long(filter),
        Value::Double(bits.unwrap_or(0.0)),
    ];
    let format =
        [flag("separate_key_value_in_data_block"), Value::Double(table::option(&kept, "uniform_cv_threshold"))];
    let block = ["super_block_alignment_size", "super_block_alignment_space_overhead_ratio"]
        .map(|name| Value::Long(table::option(&kept, name)));
    let index = [byte("index_block_search_type")];
    let forms: [(&Method, [&[Value<'_>]; 3]); 4] = [
        (&NEW_TABLE, [&[], &[], &[]]),
        (&NEW_TABLE_10_10, [&[], &block, &[]]),
        (&NEW_TABLE_11_0, [&format[..1], &block, &index]),
        (&NEW_TABLE_11_1, [&format, &block, &index]),
    ];
    for (new, [format, block, index]) in forms {
        if new.find(env).is_ok() {
            return new.make(env, &[&first[..], format, &second, block, &shortening, index, &last].concat());
        }
        env.clear_pending();
    }
    Err(Fault::illegal("the jar's BlockBasedTableConfig has another constructor than those of RocksDB 9 to 11.8"))
}

natives! { "OptionsUtil";
    "loadLatestOptions" =>
    fn(env, config: &ConfigSettings, dir: String, options: &mut Options, families: Object<'_>) -> () {
        let file = load_latest(&*config.env.vfs(), Path::new(&dir), config.ignores_unknown)?;
        give(env, file, options, families)
    }

    "loadOptionsFromFile" =>
    fn(env, config: &ConfigSettings, path: String, options: &mut Options, families: Object<'_>) -> () {
        let file = load_file(&*config.env.vfs(), Path::new(&path), config.ignores_unknown)?;
        give(env, file, options, families)
    }

    /// The name alone.
    "getLatestOptionsFileName" => fn(_env, dir: String, env: &capi::env::EnvHandle) -> String {
        let file = newest(&*env.env().vfs(), Path::new(&dir))?;
        Ok(file.file_name().unwrap_or_default().to_string_lossy().into_owned())
    }

    "readTableFormatConfig" => fn(env, options: &Options) -> Made {
        let name = table::table_name(options);
        if name != "BlockBasedTable" {
            return Err(Fault::illegal(format!("tables of the format {name} have no Java class here")));
        }
        table_config(env, &options.family.table).map(Made::from)
    }
}
