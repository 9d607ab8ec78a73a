//! The options of libraries: the conditions common to all, then the options of the command line.

use crate::flags::{ALL, Flags};

/// The same memory and the same stall triggers for every library, whatever their defaults.
fn conditions(flags: &Flags) -> String {
    format!(
        "create_if_missing=true;max_open_files=-1;max_background_jobs=2;max_subcompactions=1;\
         write_buffer_size={};max_write_buffer_number=4;\
         level0_file_num_compaction_trigger=4;level0_slowdown_writes_trigger=20;level0_stop_writes_trigger=36;\
         delayed_write_rate=16777216;target_file_size_base=67108864;max_bytes_for_level_base=268435456;\
         level_compaction_dynamic_level_bytes=true;compression=kNoCompression;\
         block_based_table_factory={{block_cache={};block_size=4096;filter_policy=bloomfilter:10:false;format_version=5;\
         checksum=kXXH3}}",
        flags.write_buffer_size, flags.cache_bytes,
    )
}

/// The option strings for a library. Each overrides the ones before it, also within groups (`block_based_table_factory={...}`).
pub fn options(flags: &Flags, lib: &str) -> Vec<String> {
    let given = flags.options.iter().filter(|given| given.name == lib || given.name == ALL);
    std::iter::once(conditions(flags)).chain(given.map(|given| given.value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn conditions_are_equal_and_what_is_given_comes_last() {
        let given = ["x", "--lib=a=/a", "--lib=b=/b", "--options=b=x=7", "--options=all=y={z=1}", "--cache_bytes=9"];
        let flags = Flags::try_parse_from(given).unwrap();
        let (a, b) = (options(&flags, "a"), options(&flags, "b"));
        assert!(a[0].contains("write_buffer_size=67108864;") && a[0].contains("block_cache=9;"));
        assert_eq!(
            (&a[0], &a[1..], &b[1..]),
            (&b[0], &["y={z=1}".to_owned()][..], &["x=7".to_owned(), "y={z=1}".to_owned()][..])
        );
    }
}
