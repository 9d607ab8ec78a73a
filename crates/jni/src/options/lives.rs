//! Copies of options, options from properties, and presets.

use std::sync::OnceLock;

use capi::cache::Cache;
use capi::kept::number::Number;
use capi::options::Options;
use capi::write_buffer_manager::WriteBufferManager;
use spillway::internal::options::row::OptionGroup;
use spillway::internal::options::{CompactionPri, WalRecoveryMode, keep_both, string};

use super::config::ConfigSettings;
use super::{database, family};
use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::settings::set_by_name;
use crate::fault::Fault;

/// Which part of the options a text may set.
#[derive(Clone, Copy)]
enum Part {
    Database,
    Family,
}

impl Part {
    fn has(self, options: &mut Options, name: &str) -> bool {
        let group: &mut dyn OptionGroup = match self {
            Part::Database => &mut options.db,
            Part::Family => &mut options.family,
        };
        group.find_mut(name).is_some() || group.unhonoured().iter().any(|row| row.name == name)
    }

    /// Numbers are taken as by setters, also those out of bounds.
    fn set(self, options: &mut Options, name: &str, value: &str) -> Option<()> {
        let rows = match self {
            Part::Database => database::TABLES,
            Part::Family => family::TABLES,
        };
        if let Some(number) = Number::parse(value)
            && set_by_name(rows, options, name, number)
        {
            return Some(());
        }
        keep_both(&mut options.db, &mut options.family, &format!("{name}={{{value}}}")).ok().map(drop)
    }

    /// `options`, changed by a text like `max_open_files=10;...`. `None` if one is unknown or wrong, as in RocksDB.
    fn read(self, mut options: Box<Options>, text: &str, ignores_unknown: bool) -> Option<Box<Options>> {
        for (name, value) in string::pairs(text).ok()? {
            if self.has(&mut options, name) {
                self.set(&mut options, name, value)?;
            } else if !ignores_unknown {
                return None;
            }
        }
        Some(options)
    }
}

static TABLE: Class = Class::new(c"org/rocksdb/BlockBasedTableConfig");
static NEW_TABLE: Method = Method::constructor(&TABLE, c"()V");
static FORMAT_VERSION: Method = Method::new(&TABLE, c"formatVersion", c"()I");

/// The format of tables that the jar takes for its library's default: 6 since RocksDB 9, 7 since 11. Asked once.
fn format_version(env: Env<'_>) -> Result<u32, Fault> {
    static KNOWN: OnceLock<u32> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(*known);
    }
    let table = NEW_TABLE.make(env, &[])?;
    let version = FORMAT_VERSION.int(env, table, &[]);
    env.delete(table);
    let version = u32::try_from(version?).unwrap_or_default().clamp(FORMAT_VERSION_OLDEST, FORMAT_VERSION_NEWEST);
    Ok(*KNOWN.get_or_init(|| version))
}

/// RocksDB 8.6 reads tables of 6, and every jar that loads this library has a newer one.
const FORMAT_VERSION_OLDEST: u32 = 6;
/// The newest that is written.
const FORMAT_VERSION_NEWEST: u32 = 7;

fn new_options(env: Env<'_>) -> Result<Box<Options>, Fault> {
    let mut options = Box::<Options>::default();
    options.family.table.format_version = format_version(env)?;
    Ok(options)
}

/// RocksDB's defaults before its version 5.19, as far as a version had them.
fn old_family_defaults(options: &mut Options, version: (i32, i32)) {
    const MIB: u64 = 1 << 20;
    let family = &mut options.family;
    if version < (4, 7) {
        family.write_buffer_size = 4 << 20;
        family.target_file_size_base = 2 * MIB;
        family.max_bytes_for_level_base = (10 * MIB).into();
        family.soft_pending_compaction_bytes_limit = 0;
        family.hard_pending_compaction_bytes_limit = 0;
    }
    if version < (5, 0) {
        family.level0_stop_writes_trigger = 24;
    } else if version < (5, 2) {
        family.level0_stop_writes_trigger = 30;
    }
    if version < (5, 19) {
        family.compaction_pri = CompactionPri::ByCompensatedSize;
    }
}

fn old_database_defaults(options: &mut Options, version: (i32, i32)) {
    const MIB: u64 = 1 << 20;
    let database = &mut options.db;
    if version < (4, 7) {
        database.max_open_files = 5000;
        database.wal_recovery_mode = WalRecoveryMode::TolerateCorruptedTailRecords;
    }
    if version < (5, 2) {
        database.delayed_write_rate = 2 * MIB;
    } else if version < (5, 6) {
        database.delayed_write_rate = 16 * MIB;
    }
}

pub mod both {
    use super::*;

    natives! { "Options";
        "newOptions__" => fn(env) -> Box<Options> {
            new_options(env)
        }

        "newOptions__JJ" => fn(_env, database: &Options, family: &Options) -> Box<Options> {
            Ok(Box::new(Options::joined(database, family)))
        }

        "copyOptions" => fn(_env, options: &Options) -> Box<Options> {
            Ok(Box::new(options.clone()))
        }

        "oldDefaults" => fn(_env, options: &mut Options, major: i32, minor: i32) -> () {
            old_database_defaults(options, (major, minor));
            old_family_defaults(options, (major, minor));
            Ok(())
        }

        /// Memtables are charged to the cache, without a limit of their own.
        "optimizeForSmallDb__J" => fn(_env, options: &mut Options) -> () {
            options.optimize_for_small_family(None);
            options.optimize_for_small_db();
            let cache = options.block_cache.clone().map(Cache::of_shared);
            options.write_buffer_manager = Some(*WriteBufferManager::new(0, false, cache.as_ref()));
            Ok(())
        }

        "prepareForBulkLoad" => fn(_env, options: &mut Options) -> () {
            options.prepare_for_bulk_load();
            Ok(())
        }
    }
}

pub mod of_database {
    use super::*;

    natives! { "DBOptions";
        "copyDBOptions" | "newDBOptionsFromOptions" => fn(_env, options: &Options) -> Box<Options> {
            Ok(Box::new(options.clone()))
        }

        "getDBOptionsFromProps__Ljava_lang_String_2" => fn(env, text: String) -> Option<Box<Options>> {
            Ok(Part::Database.read(new_options(env)?, &text, false))
        }

        "getDBOptionsFromProps__JLjava_lang_String_2" =>
        fn(env, config: &ConfigSettings, text: String) -> Option<Box<Options>> {
            Ok(Part::Database.read(new_options(env)?, &text, config.ignores_unknown))
        }

        "optimizeForSmallDb" => fn(_env, options: &mut Options) -> () {
            options.optimize_for_small_db();
            Ok(())
        }
    }
}

pub mod of_family {
    use super::*;

    natives! { "ColumnFamilyOptions";
        "newColumnFamilyOptions" => fn(env) -> Box<Options> {
            new_options(env)
        }

        "copyColumnFamilyOptions" | "newColumnFamilyOptionsFromOptions" => fn(_env, options: &Options) -> Box<Options> {
            Ok(Box::new(options.clone()))
        }

        "getColumnFamilyOptionsFromProps__Ljava_lang_String_2" => fn(env, text: String) -> Option<Box<Options>> {
            Ok(Part::Family.read(new_options(env)?, &text, false))
        }

        "getColumnFamilyOptionsFromProps__JLjava_lang_String_2" =>
        fn(env, config: &ConfigSettings, text: String) -> Option<Box<Options>> {
            Ok(Part::Family.read(new_options(env)?, &text, config.ignores_unknown))
        }

        "oldDefaults" => fn(_env, options: &mut Options, major: i32, minor: i32) -> () {
            old_family_defaults(options, (major, minor));
            Ok(())
        }

        "optimizeForSmallDb__J" => fn(_env, options: &mut Options) -> () {
            options.optimize_for_small_family(None);
            Ok(())
        }
    }
}

pub mod presets {
    use super::*;

    natives! { ["ColumnFamilyOptions", "Options"];
        "optimizeForSmallDb__JJ" => fn(_env, options: &mut Options, cache: Option<&Cache>) -> () {
            options.optimize_for_small_family(cache.map(Cache::shared));
            Ok(())
        }

        "optimizeForPointLookup" => fn(_env, options: &mut Options, block_cache_mib: i64) -> () {
            options.optimize_for_point_lookup(block_cache_mib as u64);
            Ok(())
        }

        "optimizeLevelStyleCompaction" => fn(_env, options: &mut Options, memtable_budget: i64) -> () {
            options.optimize_level_style(memtable_budget as u64);
            Ok(())
        }

        "optimizeUniversalStyleCompaction" => fn(_env, options: &mut Options, memtable_budget: i64) -> () {
            options.optimize_universal_style(memtable_budget as u64);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_options_of_one_part() {
        let family = Part::Family
            .read(Box::default(), "write_buffer_size=112;max_write_buffer_number=13;", false)
            .expect("valid");
        let row = |name| crate::boundary::settings::row(family::TABLES, name).ok().expect("there");
        assert_eq!((row("write_buffer_size").get)(&family), Number::Integer(112), "out of our bounds, and still taken");
        assert_eq!(family.family.max_write_buffer_number, 13);
        assert!(Part::Family.read(Box::default(), "max_open_files=5", false).is_none(), "an option of the database");
        assert!(Part::Family.read(Box::default(), "tomato=5;num_levels=3", false).is_none());
        let family = Part::Family.read(Box::default(), "tomato=5;num_levels=3;compression=kZSTD", true).expect("valid");
        assert_eq!((family.family.num_levels, family.family.compression.name()), (3, "kZSTD"));
        let database =
            Part::Database.read(Box::default(), "max_open_files=5;allow_mmap_writes=true", false).expect("valid");
        assert_eq!(database.db.max_open_files, 5);
    }
}
