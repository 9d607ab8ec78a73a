//! Named options for scripts. Sizes are small, so that a short script fills memtables, rotates WALs and the MANIFEST,
//! and reaches several levels.
//!
//! Words after the name select a variant: key order, memtable, and families with ingests behind. Example:
//! `tiny reverse trie-file behind`.

use std::fmt;
use std::sync::Arc;

use crate::engine::OpenOptions;
use base::options::{DbOptions, FamilyOptions, apply_string};
use vfs::Vfs;

use crate::order::KeyOrder;
use crate::random::Random;

/// A set of options, or a variant of one. The family's name selects its merge operator: see [`merge_operator`].
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub name: &'static str,
    db: &'static str,
    family: &'static str,
    pub order: KeyOrder,
    /// Every family reserves a level for ingests behind.
    pub behind: bool,
    /// One of [`MEMTABLES`], replacing the set's own.
    memtable: Option<(&'static str, &'static str)>,
}

/// Memtables of variants, by name. A new memtable needs only an option string here.
const MEMTABLES: [(&str, &str); 6] = [
    ("trie", "trie"),
    ("trie-dump", r#"trie:{"convert_to_sst":"kDumpMem"}"#),
    ("trie-file", r#"trie:{"convert_to_sst":"kFileMmap"}"#),
    ("skip-list-dump", r#"skip_list:{"convert_to_sst":"kDumpMem"}"#),
    ("skip-list-file", r#"skip_list:{"convert_to_sst":"kFileMmap"}"#),
    ("sorted-hash", "sorted_hash"),
];

/// Word for families with ingests behind.
const BEHIND: &str = "behind";

const PLAIN: Profile =
    Profile { name: "", db: "", family: "", order: KeyOrder::Bytewise, behind: false, memtable: None };

/// All profiles; try the first one first.
pub const ALL: [Profile; 14] = [
    Profile {
        name: "tiny",
        db: "log_file_bytes=64K;max_manifest_file_size=2048",
        family: "write_buffer_size=64K;target_file_size_base=16K;max_bytes_for_level_base=32K;\
                 max_bytes_for_level_multiplier=3;level0_file_num_compaction_trigger=2;compression=kNoCompression",
        ..PLAIN
    },
    Profile {
        name: "mapped",
        db: "log_file_bytes=64K;allow_mmap_reads=true;max_open_files=8",
        family: "write_buffer_size=64K;target_file_size_base=16K;max_bytes_for_level_base=32K;\
                 max_bytes_for_level_multiplier=3;level0_file_num_compaction_trigger=2;compression_per_level=\
                 kNoCompression:kLZ4Compression:kNoCompression",
        ..PLAIN
    },
    Profile {
        name: "vector",
        db: "log_file_bytes=64K;log_backing=pwrite;max_manifest_file_size=1024",
        family: "write_buffer_size=64K;memtable_factory=vector;target_file_size_base=8K;max_bytes_for_level_base=16K;\
                 max_bytes_for_level_multiplier=2;level0_file_num_compaction_trigger=3;compression=kLZ4Compression",
        ..PLAIN
    },
    Profile {
        name: "static-levels",
        db: "log_file_bytes=128K;log_backing=mapped;max_subcompactions=3;max_open_files=4;max_total_wal_size=256K",
        family: "write_buffer_size=64K;level_compaction_dynamic_level_bytes=false;target_file_size_base=4K;\
                 max_bytes_for_level_base=8K;max_bytes_for_level_multiplier=2;level0_file_num_compaction_trigger=2;\
                 num_levels=4;compression=kNoCompression;max_sequential_skip_in_iterations=1;merge_ingests_max_bytes=0",
        ..PLAIN
    },
    Profile {
        name: "partitioned",
        db: "log_file_bytes=64K;db_write_buffer_size=200K;large_batch_bytes=4K",
        family: "write_buffer_size=128K;min_write_buffer_number_to_merge=2;max_write_buffer_number=4;\
                 target_file_size_base=32K;max_bytes_for_level_base=64K;compression=kZSTD;\
                 prefix_extractor=fixed:3;memtable_prefix_bloom_size_ratio=0.1;memtable_whole_key_filtering=true;\
                 block_based_table_factory={block_size=512;index_type=kTwoLevelIndexSearch;partition_filters=true;\
                 filter_policy=bloomfilter:10:false;metadata_block_size=256;block_cache=64K;\
                 cache_index_and_filter_blocks=true;data_block_index_type=kDataBlockBinaryAndHash}",
        ..PLAIN
    },
    // Memtables stay in the queue, with the ingests above them.
    Profile {
        name: "queued",
        db: "log_file_bytes=64K;large_batch_bytes=4K",
        family: "write_buffer_size=64K;min_write_buffer_number_to_merge=16;max_write_buffer_number=40;\
                 target_file_size_base=16K;max_bytes_for_level_base=32K;max_bytes_for_level_multiplier=3;\
                 level0_file_num_compaction_trigger=2;compression=kNoCompression;prefix_extractor=capped:3;\
                 merge_ingests_max_bytes=0",
        ..PLAIN
    },
    Profile {
        // Memtables are file-backed and become tables.
        name: "converted",
        db: "log_file_bytes=64K;max_manifest_file_size=2048",
        family: "write_buffer_size=64K;memtable_factory={id=trie;convert_to_sst=kFileMmap};target_file_size_base=16K;\
                 max_bytes_for_level_base=32K;max_bytes_for_level_multiplier=3;level0_file_num_compaction_trigger=2;\
                 compression=kLZ4Compression",
        ..PLAIN
    },
    Profile {
        // As `converted`, with values left in the WAL.
        name: "referring",
        db: "log_file_bytes=64K;memtable_as_log_index=true;large_batch_bytes=4K",
        family: "write_buffer_size=64K;memtable_factory={id=trie;convert_to_sst=kFileMmap};target_file_size_base=16K;\
                 max_bytes_for_level_base=32K;max_bytes_for_level_multiplier=3;level0_file_num_compaction_trigger=3;\
                 compression=kNoCompression",
        ..PLAIN
    },
    Profile {
        // Memtables are dumped as tables. Few tables are open at a time; some move down unchanged.
        name: "dumped",
        db: "log_file_bytes=64K;max_open_files=4;large_batch_bytes=4K",
        family: "write_buffer_size=64K;memtable_factory={id=skip_list;convert_to_sst=kDumpMem};paranoid_file_checks=true;\
                 target_file_size_base=16K;max_bytes_for_level_base=32K;max_bytes_for_level_multiplier=3;\
                 level0_file_num_compaction_trigger=3;compression=kNoCompression",
        ..PLAIN
    },
    Profile {
        // Each level has its own table format; reads handle any.
        name: "dispatched",
        db: "log_file_bytes=64K;max_open_files=8",
        family: "write_buffer_size=64K;level_compaction_dynamic_level_bytes=false;num_levels=5;target_file_size_base=8K;\
                 max_bytes_for_level_base=16K;max_bytes_for_level_multiplier=2;level0_file_num_compaction_trigger=2;\
                 compression=kNoCompression;paranoid_file_checks=true;table_factory=DispatcherTable:{\"default\":\
                 \"SingleFastTable\",\"level_writers\":[\"SingleFastTable\",\"SingleFastTable\",\"BlockBasedTable\",\
                 \"ToplingZipTable\"]};block_based_table_factory={filter_policy=bloomfilter:10:false}",
        ..PLAIN
    },
    Profile {
        // Sorted runs; some move down unchanged.
        name: "universal",
        db: "log_file_bytes=64K;max_manifest_file_size=2048",
        family: "write_buffer_size=64K;compaction_style=kCompactionStyleUniversal;num_levels=4;target_file_size_base=16K;\
                 level0_file_num_compaction_trigger=3;compression=kNoCompression;\
                 compaction_options_universal={allow_trivial_move=true;size_ratio=10}",
        ..PLAIN
    },
    Profile {
        // Everything stays in level 0, and nothing is dropped.
        name: "fifo",
        db: "log_file_bytes=64K",
        family: "write_buffer_size=64K;compaction_style=kCompactionStyleFIFO;level0_file_num_compaction_trigger=3;\
                 compression=kNoCompression;compaction_options_fifo={allow_compaction=true}",
        ..PLAIN
    },
    Profile {
        // All families are flushed together.
        name: "atomic",
        db: "atomic_flush=true;log_file_bytes=64K;max_manifest_file_size=2048;large_batch_bytes=4K",
        family: "write_buffer_size=64K;min_write_buffer_number_to_merge=2;max_write_buffer_number=4;\
                 target_file_size_base=16K;max_bytes_for_level_base=32K;max_bytes_for_level_multiplier=3;\
                 level0_file_num_compaction_trigger=2;compression=kNoCompression",
        ..PLAIN
    },
    Profile {
        name: "defaults",
        db: "",
        family: "block_based_table_factory={filter_policy=bloomfilter:10:false;index_type=kBinarySearchWithFirstKey}",
        ..PLAIN
    },
];

/// Profile or variant of a name.
pub fn by_name(name: &str) -> Option<Profile> {
    let mut words = name.split_whitespace();
    let first = words.next()?;
    let plain = ALL.into_iter().find(|profile| profile.name == first)?;
    words.try_fold(plain, Profile::with)
}

/// Merge operator of a family: sums for `sum...`, else strings joined by commas.
pub fn merge_operator(family: &str) -> &'static str {
    if family.starts_with("sum") { "uint64add" } else { "stringappend" }
}

impl fmt::Display for Profile {
    /// A name for [`by_name`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if self.order != KeyOrder::default() {
            write!(f, " {}", self.order.word())?;
        }
        if let Some((word, _)) = self.memtable {
            write!(f, " {word}")?;
        }
        if self.behind { write!(f, " {BEHIND}") } else { Ok(()) }
    }
}

impl Profile {
    /// An unlisted profile with these options of the database and of each family.
    pub const fn of(name: &'static str, db: &'static str, family: &'static str) -> Profile {
        Profile { name, db, family, ..PLAIN }
    }

    /// Whether all families are flushed together.
    pub fn is_atomic(&self) -> bool {
        self.db.contains("atomic_flush=true")
    }

    /// Whether tables come to lie below level 0.
    pub fn fills_levels(&self) -> bool {
        !self.family.contains("kCompactionStyleFIFO")
    }

    /// The variant selected by a word of the name.
    fn with(self, word: &str) -> Option<Profile> {
        if word == BEHIND {
            return Some(Profile { behind: true, ..self });
        }
        if let Some(order) = KeyOrder::ALL.into_iter().find(|order| order.word() == word) {
            return Some(Profile { order, ..self });
        }
        let memtable = MEMTABLES.into_iter().find(|(name, _)| *name == word)?;
        Some(Profile { memtable: Some(memtable), ..self })
    }

    /// A random variant; few consecutive seeds cover them all.
    pub fn variant(self, seed: u64) -> Profile {
        let mut random = Random::new(seed);
        let order = match random.below(10) {
            0..5 => KeyOrder::Bytewise,
            5..8 => KeyOrder::Reverse,
            _ => KeyOrder::Shortlex,
        };
        let memtable = random.chance(60).then(|| *random.pick(&MEMTABLES));
        Profile { order, memtable, behind: random.chance(25), ..self }
    }

    pub fn db_options(&self) -> DbOptions {
        let mut options =
            DbOptions { create_if_missing: true, create_missing_column_families: true, ..DbOptions::default() };
        apply_string(&mut options, self.db).expect("a profile's options are right");
        options.allow_ingest_behind = self.behind;
        options.statistics = true;
        options
    }

    pub fn family_options(&self, family: &str) -> FamilyOptions {
        let mut options = FamilyOptions::default();
        apply_string(&mut options, self.family).expect("a profile's options are right");
        options.order = self.order.order();
        if let Some((_, memtable)) = self.memtable {
            options.memtable_factory = memtable.into();
        }
        if !self.order.keeps_prefixes_together() {
            options.prefix_extractor = None;
        }
        options.merge_operator = base::merge::by_name(merge_operator(family));
        options
    }

    /// Options for opening a database with these families.
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

    #[test]
    fn variants_have_names_and_few_seeds_meet_them_all() {
        let variants: Vec<Profile> = (0..24).map(|seed| ALL[0].variant(seed)).collect();
        for variant in &variants {
            assert_eq!(by_name(&variant.to_string()).unwrap().to_string(), variant.to_string());
            variant.family_options("sums").validate().unwrap();
        }
        assert!(KeyOrder::ALL.iter().all(|order| variants.iter().any(|variant| variant.order == *order)));
        assert!(MEMTABLES.iter().all(|of| variants.iter().any(|variant| variant.memtable == Some(*of))));
        assert!(variants.iter().any(|variant| variant.behind));
        assert!(by_name("tiny sideways").is_none());
    }
}
