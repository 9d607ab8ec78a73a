//! Factory of sorted hashes: bucket counts, lengths of runs, and the hashable orders of keys.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::note;
use base::{Error, Result, UserOrder};
use serde_json::json;

use super::buckets::bytes_of;
use super::{LIST_ITEMS, NAME, SortedHash};
use crate::arena::{CAPACITY_MAX_BYTES, GRANULE_BYTES};
use crate::order::{Bytewise, Custom, ReverseBytewise};
use crate::registry::{Arguments, factory_from_option_string};
use crate::{Memtable, MemtableConfig, MemtableFactory, MemtableSizes, skiplist};

/// Arguments of RocksDB's hash memtables without a meaning here, accepted so that existing options can be read.
const MEANINGLESS: [&str; 6] =
    ["skiplist_height", "height", "branching_factor", "threshold", "huge_page_size", "logging_threshold"];

/// As above, but booleans. The second is Speedb's: runs are always merged here.
const MEANINGLESS_FLAGS: [&str; 2] = ["log_when_flash", "use_merge"];

/// The number of buckets, and Speedb's name for it.
const BUCKETS: &str = "bucket_count";
const SPEEDB_BUCKETS: &str = "hash_bucket_count";

const RUN_ENTRIES: &str = "run_entries";

/// The names of all arguments.
pub(crate) const ARGUMENTS: &[&str] = &[
    BUCKETS,
    SPEEDB_BUCKETS,
    RUN_ENTRIES,
    "skiplist_height",
    "height",
    "branching_factor",
    "threshold",
    "huge_page_size",
    "logging_threshold",
    "log_when_flash",
    "use_merge",
];

/// Arena bytes for each bucket if no number is given and no memtable was sealed yet: as many buckets as entries of
/// 16-byte keys and 60-byte values, for a sixteenth of the memory.
const BYTES_PER_BUCKET: usize = 128;

/// Most bytes for each bucket if no number is given. Memtables made before smaller entries begin have chains of a dozen.
const BYTES_PER_BUCKET_MAX: usize = 1024;

/// Entries from which a memtable tells their size.
const SAMPLE_MIN: u64 = 1000;

/// Buckets take at most one part in this many of a memtable's capacity, whatever number is given.
const PART_MAX: usize = 4;

/// Most buckets: the range of references.
const BUCKETS_MAX: usize = 1 << 32;

/// Entries of a writer that the background sorts together, if no number is given: a few hundred microseconds of sorting.
const RUN_ENTRIES_DEFAULT: usize = 10_000;

/// Shorter runs would have most writes wait for a hand-over. The longest take 4 GiB of items.
const RUN_ENTRIES_BOUNDS: RangeInclusive<usize> = LIST_ITEMS..=1 << 28;

/// Makes sorted hashes. RocksDB's `prefix_hash` and `hash_linkedlist` mean the same here: whole keys are hashed, so no
/// prefix extractor is needed, and cursors always see the total order.
pub(crate) struct Factory {
    /// Number of buckets; 0 derives it from the capacity, one for each entry expected.
    buckets: usize,
    /// Entries at which a writer's list is handed to the background.
    pub(super) run_entries: usize,
    pub(super) entry_bytes: Arc<EntryBytes>,
}

/// Arena bytes of an entry, on average, in the memtable sealed last; 0 before.
#[derive(Default)]
pub(super) struct EntryBytes(AtomicUsize);

impl EntryBytes {
    /// Notes a sealed memtable. One with few entries tells too little.
    pub(super) fn note(&self, bytes: usize, entries: u64) {
        if entries >= SAMPLE_MIN {
            self.0.store(bytes / entries as usize, Relaxed);
        }
    }

    /// Bytes of memtable for each bucket.
    fn per_bucket(&self) -> usize {
        match self.0.load(Relaxed) {
            0 => BYTES_PER_BUCKET,
            bytes => bytes.min(BYTES_PER_BUCKET_MAX),
        }
    }
}

impl Factory {
    pub(crate) fn from_arguments(arguments: &Arguments) -> Result<Arc<dyn MemtableFactory>> {
        for key in MEANINGLESS {
            if let Some(number) = arguments.number(key, 0..=usize::MAX)? {
                note::info!(memtable = NAME, key, number, "an argument that means nothing to this memtable");
            }
        }
        for key in MEANINGLESS_FLAGS {
            if let Some(flag) = arguments.flag(key)? {
                note::info!(memtable = NAME, key, flag, "an argument that means nothing to this memtable");
            }
        }
        let given = |key| arguments.number(key, 1..=BUCKETS_MAX);
        let buckets = match (given(BUCKETS)?, given(SPEEDB_BUCKETS)?) {
            (Some(_), Some(_)) => {
                let message = format!("{BUCKETS} of memtable {NAME} is given twice, also as {SPEEDB_BUCKETS}");
                return Err(Error::invalid_argument(message));
            }
            (buckets, speedbs) => buckets.or(speedbs).unwrap_or(0),
        };
        let run_entries = arguments.number(RUN_ENTRIES, RUN_ENTRIES_BOUNDS)?.unwrap_or(RUN_ENTRIES_DEFAULT);
        Ok(Arc::new(Factory { buckets, run_entries, entry_bytes: Arc::default() }))
    }

    /// Buckets for a memtable of this capacity, leaving `room_bytes` beside them.
    pub(super) fn buckets_for(&self, capacity_bytes: usize, room_bytes: usize) -> usize {
        let wanted = if self.buckets == 0 { capacity_bytes / self.entry_bytes.per_bucket() } else { self.buckets };
        let part = capacity_bytes / PART_MAX;
        // The null granule, and one for rounding.
        let reach = CAPACITY_MAX_BYTES.saturating_sub(room_bytes.saturating_add(2 * GRANULE_BYTES));
        wanted.clamp(1, (part.min(reach) / bytes_of(1)).max(1))
    }
}

impl MemtableFactory for Factory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn option_string(&self) -> String {
        match (self.buckets, self.run_entries) {
            (0, RUN_ENTRIES_DEFAULT) => NAME.to_owned(),
            (buckets, RUN_ENTRIES_DEFAULT) => format!("{NAME}:{buckets}"),
            (0, run_entries) => format!("{NAME}:{}", json!({ RUN_ENTRIES: run_entries })),
            (buckets, run_entries) => format!("{NAME}:{}", json!({ BUCKETS: buckets, RUN_ENTRIES: run_entries })),
        }
    }

    fn create(&self, config: &MemtableConfig) -> Result<Arc<dyn Memtable>> {
        Ok(match &config.order.user {
            UserOrder::Bytewise => Arc::new(SortedHash::new(config, Bytewise, self)?),
            UserOrder::ReverseBytewise => Arc::new(SortedHash::new(config, ReverseBytewise, self)?),
            order @ UserOrder::Custom(_) if order.equal_keys_can_differ() => {
                let (comparator, instead) = (order.name(), skiplist::NAME);
                note::warn!(memtable = NAME, comparator, instead, "equal keys can differ, so they cannot be hashed");
                return factory_from_option_string(skiplist::NAME)?.create(config);
            }
            UserOrder::Custom(c) => Arc::new(SortedHash::new(config, Custom::new(Arc::clone(c)), self)?),
        })
    }

    fn without_effect(&self, sizes: &MemtableSizes) -> Vec<String> {
        let (asked, made) = (self.buckets, self.buckets_for(sizes.capacity_bytes, 0));
        let cut = (made < asked).then(|| {
            format!("bucket_count ({asked}) is cut to {made}: buckets take a quarter of the memtable at most")
        });
        let filter = (sizes.bloom_ratio > 0.0).then(|| {
            format!("memtable_prefix_bloom_size_ratio has no effect: the buckets of a {NAME} find absent keys")
        });
        cut.into_iter().chain(filter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_the_capacity_and_never_take_more_than_a_quarter() {
        let factory = |buckets| Factory { buckets, run_entries: RUN_ENTRIES_DEFAULT, entry_bytes: Arc::default() };
        let buckets = |buckets, capacity| factory(buckets).buckets_for(capacity, 0);
        assert_eq!(buckets(0, 64 << 20), 1 << 19);
        assert_eq!(buckets(1000, 64 << 20), 1000);
        assert_eq!(buckets(1_000_000, 1 << 20), (1 << 20) / 32);
        assert_eq!(buckets(0, 0), 1);
        assert_eq!(buckets(BUCKETS_MAX, CAPACITY_MAX_BYTES), CAPACITY_MAX_BYTES / 32);
        let room = CAPACITY_MAX_BYTES - 4096;
        assert_eq!(factory(0).buckets_for(CAPACITY_MAX_BYTES, room), (4096 - 16) / 8, "the batch goes first");
    }

    #[test]
    fn buckets_follow_the_entries_of_the_memtable_sealed_last() {
        let after = |given, entry_bytes: usize, entries: u64| {
            let factory = Factory { buckets: given, run_entries: RUN_ENTRIES_DEFAULT, entry_bytes: Arc::default() };
            factory.entry_bytes.note(entry_bytes * entries as usize, entries);
            factory.buckets_for(64 << 20, 0)
        };
        assert_eq!(after(0, 256, 5000), 1 << 18);
        assert_eq!(after(0, 100_000, 5000), 1 << 16, "not for ever fewer");
        assert_eq!(after(0, 256, SAMPLE_MIN - 1), 1 << 19, "too few entries to tell");
        assert_eq!(after(0, 1, 5000), 1 << 21, "a quarter of the capacity");
        assert_eq!(after(7, 256, 5000), 7, "a given number stays");
    }

    #[test]
    fn the_names_that_users_write_are_understood() {
        for (option, canonical) in [
            ("sorted_hash", "sorted_hash"),
            ("speedb.HashSpdRepFactory", "sorted_hash"),
            ("speedb.HashSpdRepFactory:1000", "sorted_hash:1000"),
            ("hash_spdb", "sorted_hash"),
            ("hash_spdb:400000", "sorted_hash:400000"),
            ("prefix_hash:7", "sorted_hash:7"),
            ("hash_skiplist", "sorted_hash"),
            ("hash_linkedlist:12", "sorted_hash:12"),
            ("{id=HashSkipListRepFactory;bucket_count=50;skiplist_height=4;branching_factor=4}", "sorted_hash:50"),
            ("{id=HashLinkListRepFactory;bucket_count=50}", "sorted_hash:50"),
            (
                "{id=HashLinkListRep;threshold=256;huge_page_size=0;logging_threshold=4096;log_when_flash=true}",
                "sorted_hash",
            ),
            ("{id=HashSkipList;bucket_count=50;height=4}", "sorted_hash:50"),
            ("{id=HashSpdRepFactory}", "sorted_hash"),
            ("{id=speedb.HashSpdRepFactory;hash_bucket_count=400000;use_merge=true;}", "sorted_hash:400000"),
            ("{id=hash_spdb;bucket_count=1000;run_entries=500}", LONG),
            (r#"sorted_hash:{"bucket_count":"1000","run_entries":500}"#, LONG),
            (r#"hash_spdb:{"run_entries":"2K"}"#, r#"sorted_hash:{"run_entries":2048}"#),
            ("{id=hash_spdb;run_entries=10000}", "sorted_hash"),
        ] {
            assert_eq!(factory_from_option_string(option).expect(option).option_string(), canonical, "{option}");
            assert_eq!(factory_from_option_string(canonical).expect(canonical).option_string(), canonical);
        }
    }

    const LONG: &str = r#"sorted_hash:{"bucket_count":1000,"run_entries":500}"#;

    #[test]
    fn refusals_name_the_argument_and_its_bounds() {
        for (option, message) in [
            ("sorted_hash:0", r#"bucket_count of memtable sorted_hash is "0", not a number from 1 to 4294967296"#),
            ("sorted_hash:x", "bucket_count of memtable"),
            ("hash_spdb:-1", "bucket_count of memtable"),
            ("{id=HashSpdRepFactory;buckets=1}", r#"has no argument "buckets""#),
            ("{id=HashLinkList;log_when_flash=7}", "log_when_flash of memtable"),
            ("{id=hash_spdb;use_merge=maybe}", "use_merge of memtable"),
            ("{id=hash_spdb;bucket_count=7;hash_bucket_count=8}", "is given twice, also as hash_bucket_count"),
            (
                "{id=hash_spdb;run_entries=63}",
                r#"run_entries of memtable hash_spdb is "63", not a number from 64 to 2"#,
            ),
            ("{id=hash_spdb;run_entries=300000000}", "not a number from 64 to 268435456"),
            ("{id=hash_spdb;run_entrys=100}", r#"did you mean "run_entries"?"#),
        ] {
            let error = factory_from_option_string(option).err().expect(option);
            assert!(error.message().contains(message), "{option}: {error}");
        }
    }
}
