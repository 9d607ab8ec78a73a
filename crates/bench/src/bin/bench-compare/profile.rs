//! The options that libraries are opened with: the conditions of all, then what is given for each.

use base::Result;

use crate::flags::Flags;
use crate::option_text::OptionText;

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

/// The option string for a library: conditions, then what was given for it by name.
///
/// # Errors
/// `InvalidArgument`: what was given is no option string.
pub fn options(flags: &Flags, lib: &str) -> Result<OptionText> {
    let mut options = OptionText::parse(&conditions(flags))?;
    for given in flags.options.iter().filter(|given| given.lib == lib) {
        options = options.overlaid(&OptionText::parse(&given.text)?);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn conditions_are_equal_and_what_is_given_comes_last() {
        let given = ["x", "--lib=a=/a", "--lib=b=/b", "--options=b=write_buffer_size=7", "--cache_bytes=9"];
        let flags = Flags::try_parse_from(given).unwrap();
        let a = options(&flags, "a").unwrap().to_string();
        let b = options(&flags, "b").unwrap().to_string();
        assert!(a.contains("write_buffer_size=67108864;") && b.contains("write_buffer_size=7;"), "{a}\n{b}");
        assert!(a.contains("block_cache=9;") && b.contains("block_cache=9;"));
        assert_eq!(a.matches("block_based_table_factory").count(), 1);
    }
}
