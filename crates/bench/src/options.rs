//! From flags to the options for opening a database.

use base::options::{
    CacheSize, CompressionKind, DbOptions, FamilyOptions, FilterPolicy, OptionGroup, TableOptions, apply_both,
};
use base::{Error, Result};
use spillway::internal::{DEFAULT_FAMILY, OpenOptions};

use crate::flags::Flags;

/// Defaults of db_bench, if they differ from the engine's.
const DEFAULTS: &str = "create_if_missing=true;delayed_write_rate=8388608;level_compaction_dynamic_level_bytes=false;\
                        hard_pending_compaction_bytes_limit=137438953472";

/// Options with a different name in db_bench: its name, then ours.
const RENAMED: [(&str, &str); 3] = [
    ("open_files", "max_open_files"),
    ("subcompactions", "max_subcompactions"),
    ("memtable_bloom_size_ratio", "memtable_prefix_bloom_size_ratio"),
];

/// # Errors
/// `InvalidArgument` or `Unsupported`: a flag's value is not allowed, or an option is unknown or has no effect.
pub fn open_options(flags: &Flags) -> Result<OpenOptions> {
    let (mut db, mut family) = (DbOptions::default(), FamilyOptions::default());
    apply_both(&mut db, &mut family, DEFAULTS)?;
    db.statistics = flags.statistics;
    family.memtable_factory = flags.memtablerep.as_str().into();
    family.compression = compression(&flags.compression_type)?;
    family.table.block_cache = CacheSize(flags.cache_size);
    family.table.no_block_cache = flags.cache_size == 0;
    if flags.bloom_bits > 0 {
        family.table.filter_policy = FilterPolicy::bloom(f64::from(flags.bloom_bits));
    }
    for option in &flags.option {
        let told = format!("--{option} (--help lists the flags, `spillway options` the options that are flags too)");
        let warnings = apply_both(&mut db, &mut family, &option_text(option)).map_err(|e| e.context(told))?;
        if let Some(warning) = warnings.first() {
            return Err(Error::invalid_argument(format!("--{option}: {warning}")));
        }
    }
    let mut options = OpenOptions::create_if_missing().family(DEFAULT_FAMILY, family);
    options.db = db;
    Ok(options)
}

/// `NAME=VALUE` as an option string.
fn option_text(option: &str) -> String {
    let (name, value) = option.split_once('=').unwrap_or((option, "true"));
    let name = RENAMED.iter().find(|(db_benchs, _)| *db_benchs == name).map_or(name, |(_, ours)| ours);
    match TableOptions::default().find_mut(name) {
        Some(_) => format!("block_based_table_factory={{{name}={value}}}"),
        None => format!("{name}={value}"),
    }
}

fn compression(name: &str) -> Result<CompressionKind> {
    Ok(match name {
        "none" => CompressionKind::None,
        "snappy" => CompressionKind::Snappy,
        "zlib" => CompressionKind::Zlib,
        "lz4" => CompressionKind::Lz4,
        "lz4hc" => CompressionKind::Lz4hc,
        "zstd" => CompressionKind::Zstd,
        _ => return Err(Error::invalid_argument(format!("--compression_type cannot be {name:?}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<OpenOptions> {
        open_options(&Flags::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())?)
    }

    #[test]
    fn flags_reach_the_options() {
        let line = "--db=/x --memtablerep=vector --compression_type=lz4 --bloom_bits=10 --cache_size=5 --block_size=8192 \
                    --open_files=7 --write_buffer_size=65536 --disable_auto_compactions";
        let made = options(line).unwrap();
        let (name, family) = &made.families[0];
        assert_eq!((name.as_str(), family.compression), (DEFAULT_FAMILY, CompressionKind::Lz4));
        assert_eq!(family.table.filter_policy.bits_per_key, Some(10.0));
        assert_eq!((*family.table.block_cache, family.table.block_size), (5, 8192));
        assert_eq!((made.db.max_open_files, family.write_buffer_size), (7, 65536));
        assert!(family.memtable_factory == "vector" && family.disable_auto_compactions);
        assert!(made.db.delayed_write_rate == 8 << 20 && !family.level_compaction_dynamic_level_bytes);
    }

    #[test]
    fn what_cannot_be_honoured_is_an_error_that_names_it() {
        for (flag, named) in [
            ("--compression_type=best", "best"),
            ("--row_cache_size=1", "row_cache_size"),
            ("--block_size=many", "block_size"),
        ] {
            let message = options(&format!("--db=/x {flag}")).err().unwrap().to_string();
            assert!(message.contains(named), "{flag}: {message}");
        }
    }
}
