//! Options to run scripts under, by name: small ones, so that a short script meets full memtables, new logs, several
//! levels and a new MANIFEST.

use std::sync::Arc;

use base::options::{DbOptions, FamilyOptions, apply_string};
use spillway::OpenOptions;
use vfs::Vfs;

/// A set of options. A family's merge operator follows from its name: see [`merge_operator`].
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub name: &'static str,
    db: &'static str,
    family: &'static str,
}

/// All profiles; the first is the one to begin with.
pub const ALL: [Profile; 8] = [
    Profile {
        name: "tiny",
        db: "log_file_bytes=64K;max_manifest_file_size=2048",
        family: "write_buffer_size=64K;target_file_size_base=16K;max_bytes_for_level_base=32K;\
                 max_bytes_for_level_multiplier=3;level0_file_num_compaction_trigger=2;compression=kNoCompression",
    },
    Profile {
        name: "vector",
        db: "log_file_bytes=64K;log_backing=pwrite;max_manifest_file_size=1024",
        family: "write_buffer_size=64K;memtable_factory=vector;target_file_size_base=8K;max_bytes_for_level_base=16K;\
                 max_bytes_for_level_multiplier=2;level0_file_num_compaction_trigger=3;compression=kLZ4Compression",
    },
    Profile {
        name: "static-levels",
        db: "log_file_bytes=128K;log_backing=mapped;max_subcompactions=3;max_open_files=4;max_total_wal_size=256K",
        family: "write_buffer_size=64K;level_compaction_dynamic_level_bytes=false;target_file_size_base=4K;\
                 max_bytes_for_level_base=8K;max_bytes_for_level_multiplier=2;level0_file_num_compaction_trigger=2;\
                 num_levels=4;compression=kNoCompression;max_sequential_skip_in_iterations=1",
    },
    Profile {
        name: "partitioned",
        db: "log_file_bytes=64K;db_write_buffer_size=200K;large_batch_bytes=10K",
        family: "write_buffer_size=128K;min_write_buffer_number_to_merge=2;max_write_buffer_number=4;\
                 target_file_size_base=32K;max_bytes_for_level_base=64K;compression=kZSTD;\
                 memtable_prefix_bloom_size_ratio=0.1;memtable_whole_key_filtering=true;\
                 block_based_table_factory={block_size=512;index_type=kTwoLevelIndexSearch;partition_filters=true;\
                 filter_policy=bloomfilter:10:false;metadata_block_size=256;block_cache=64K;\
                 cache_index_and_filter_blocks=true;data_block_index_type=kDataBlockBinaryAndHash}",
    },
    Profile {
        // Memtables stay in the queue, and with them the ingests above them.
        name: "queued",
        db: "log_file_bytes=64K",
        family: "write_buffer_size=64K;min_write_buffer_number_to_merge=16;max_write_buffer_number=40;\
                 target_file_size_base=16K;max_bytes_for_level_base=32K;max_bytes_for_level_multiplier=3;\
                 level0_file_num_compaction_trigger=2;compression=kNoCompression",
    },
    Profile {
        // Memtables lie in files, which become tables.
        name: "converted",
        db: "log_file_bytes=64K;max_manifest_file_size=2048",
        family: "write_buffer_size=64K;memtable_factory={id=trie;convert_to_sst=kFileMmap};target_file_size_base=16K;\
                 max_bytes_for_level_base=32K;max_bytes_for_level_multiplier=3;level0_file_num_compaction_trigger=2;\
                 compression=kLZ4Compression",
    },
    Profile {
        // Memtables are written out as tables; few of those are open at a time, and some move down as they are.
        name: "dumped",
        db: "log_file_bytes=64K;max_open_files=4;large_batch_bytes=10K",
        family: "write_buffer_size=64K;memtable_factory={id=skip_list;convert_to_sst=kDumpMem};paranoid_file_checks=true;\
                 target_file_size_base=16K;max_bytes_for_level_base=32K;max_bytes_for_level_multiplier=3;\
                 level0_file_num_compaction_trigger=3;compression=kNoCompression",
    },
    Profile {
        name: "defaults",
        db: "",
        family: "block_based_table_factory={filter_policy=bloomfilter:10:false;index_type=kBinarySearchWithFirstKey}",
    },
];

/// The profile of that name.
pub fn by_name(name: &str) -> Option<Profile> {
    ALL.into_iter().find(|profile| profile.name == name)
}

/// The merge operator that families of this name have: sums for `sum...`, else strings joined by commas.
pub fn merge_operator(family: &str) -> &'static str {
    if family.starts_with("sum") { "uint64add" } else { "stringappend" }
}

impl Profile {
    pub fn db_options(&self) -> DbOptions {
        let mut options =
            DbOptions { create_if_missing: true, create_missing_column_families: true, ..DbOptions::default() };
        apply_string(&mut options, self.db).expect("a profile's options are right");
        options
    }

    pub fn family_options(&self, family: &str) -> FamilyOptions {
        let mut options = FamilyOptions::default();
        apply_string(&mut options, self.family).expect("a profile's options are right");
        options.merge_operator = base::merge::by_name(merge_operator(family));
        options
    }

    /// Options to open a database with these families.
    pub fn open_options(&self, vfs: Arc<dyn Vfs>, families: impl IntoIterator<Item = impl AsRef<str>>) -> OpenOptions {
        let mut options = OpenOptions { db: self.db_options(), vfs, ..OpenOptions::default() };
        options = options.family("default", self.family_options("default"));
        for name in families {
            options = options.family(name.as_ref(), self.family_options(name.as_ref()));
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_valid() {
        for profile in ALL {
            profile.db_options().validate().unwrap();
            profile.family_options("sums").validate().unwrap();
            assert_eq!(by_name(profile.name).unwrap().name, profile.name);
        }
    }
}
