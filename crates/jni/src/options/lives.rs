//! Copies of options, options from properties, and presets.

use capi::cache::Cache;
use capi::kept::number::Number;
use capi::options::Options;
use capi::write_buffer_manager::WriteBufferManager;
use spillway::internal::options::row::OptionGroup;
use spillway::internal::options::{CompactionPri, WalRecoveryMode, keep_both, string};

use super::config::ConfigSettings;
use super::{database, family};
use crate::boundary::natives;
use crate::boundary::settings::set_by_name;

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

    /// Options from a text like `max_open_files=10;...`. `None` if one is unknown or wrong, as in RocksDB.
    fn read(self, text: &str, ignores_unknown: bool) -> Option<Box<Options>> {
        let mut options = new_options();
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

/// Of RocksDB's from 9.0 on, whose jars take it for the default. RocksDB 8.6 reads such tables, and every jar that loads
/// this library has a newer one.
const FORMAT_VERSION: u32 = 6;

fn new_options() -> Box<Options> {
    let mut options = Box::<Options>::default();
    options.family.table.format_version = FORMAT_VERSION;
    options
}

/// RocksDB's defaults before its version 5.19, as far as a version had them.
fn old_family_defaults(options: &mut Options, version: (i32, i32)) {
    const MIB: u64 = 1 << 20;
    let family = &mut options.family;
    if version < (4, 7) {
        family.write_buffer_size = 4 << 20;
        family.target_file_size_base = 2 * MIB;
        family.max_bytes_for_level_base = 10 * MIB;
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
        "newOptions__" => fn(_env) -> Box<Options> {
            Ok(new_options())
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

        "getDBOptionsFromProps__Ljava_lang_String_2" => fn(_env, text: String) -> Option<Box<Options>> {
            Ok(Part::Database.read(&text, false))
        }

        "getDBOptionsFromProps__JLjava_lang_String_2" =>
        fn(_env, config: &ConfigSettings, text: String) -> Option<Box<Options>> {
            Ok(Part::Database.read(&text, config.ignores_unknown))
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
        "newColumnFamilyOptions" => fn(_env) -> Box<Options> {
            Ok(new_options())
        }

        "copyColumnFamilyOptions" | "newColumnFamilyOptionsFromOptions" => fn(_env, options: &Options) -> Box<Options> {
            Ok(Box::new(options.clone()))
        }

        "getColumnFamilyOptionsFromProps__Ljava_lang_String_2" => fn(_env, text: String) -> Option<Box<Options>> {
            Ok(Part::Family.read(&text, false))
        }

        "getColumnFamilyOptionsFromProps__JLjava_lang_String_2" =>
        fn(_env, config: &ConfigSettings, text: String) -> Option<Box<Options>> {
            Ok(Part::Family.read(&text, config.ignores_unknown))
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
    fn new_options_have_the_jars_format_version() {
        assert_eq!(new_options().family.table.format_version, 6);
        let family = Part::Family.read("write_buffer_size=112", false).expect("valid");
        assert_eq!(family.family.table.format_version, 6);
    }

    #[test]
    fn properties_are_options_of_one_part() {
        let family = Part::Family.read("write_buffer_size=112;max_write_buffer_number=13;", false).expect("valid");
        let row = |name| crate::boundary::settings::row(family::TABLES, name).ok().expect("there");
        assert_eq!((row("write_buffer_size").get)(&family), Number::Integer(112), "out of our bounds, and still taken");
        assert_eq!(family.family.max_write_buffer_number, 13);
        assert!(Part::Family.read("max_open_files=5", false).is_none(), "an option of the database");
        assert!(Part::Family.read("tomato=5;num_levels=3", false).is_none());
        let family = Part::Family.read("tomato=5;num_levels=3;compression=kZSTD", true).expect("valid");
        assert_eq!((family.family.num_levels, family.family.compression.name()), (3, "kZSTD"));
        let database = Part::Database.read("max_open_files=5;allow_mmap_writes=true", false).expect("valid");
        assert_eq!(database.db.max_open_files, 5);
    }
}
