//! `rocksdb_readoptions_t`.

use std::ffi::{c_int, c_uchar};

use spillway::internal::{Error, ReadOptions};

use crate::boundary::settings::settings;
use crate::boundary::{export, handles};
use crate::kept::number::CNumber;
use crate::kept::{Keeps, Kept, keeps_numbers};
use crate::snapshot::SnapshotHandle;

/// Options of a lookup or an iterator. They keep their snapshot alive, and copies of the bounds.
#[derive(Clone, Default)]
pub struct ReadSettings {
    pub options: ReadOptions,
    /// Seeks show new writes.
    pub tailing: bool,
    /// A timestamp was set: reads are refused.
    pub has_timestamp: bool,
    pub given: Given,
    pub kept: Kept,
}

/// The handles of bounds and snapshot, for Java's getters: 0 for none.
#[derive(Clone, Copy, Default)]
pub struct Given {
    pub upper_bound: i64,
    pub lower_bound: i64,
    pub snapshot: i64,
    pub timestamp: i64,
    pub start_timestamp: i64,
}

handles!(ReadSettings);

keeps_numbers!(ReadSettings);

settings! { ReadSettings, "rocksdb_readoptions_";
    verify_checksums: c_uchar => options.verify_checksums;
    fill_cache: c_uchar => options.fill_cache;
    prefix_same_as_start: c_uchar => options.prefix_same_as_start;
    total_order_seek: c_uchar => options.total_order_seek;
    readahead_size: usize => options.readahead_size;
    max_skippable_internal_keys: u64 => options.max_skippable_internal_keys;
    tailing: c_uchar => tailing;
    read_tier: c_int => options.read_tier;

    async_io: c_uchar = 0;
    background_purge_on_iterator_cleanup: c_uchar = 0;
    auto_readahead_size: c_uchar = 1;
    deadline: u64 = 0;
    ignore_range_deletions: c_uchar = 0;
    io_timeout: u64 = 0;
    pin_data: c_uchar = 0;
}

impl ReadSettings {
    /// True if no field outside `options` is set.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.has_timestamp && self.kept.is_empty()
    }

    /// # Errors
    /// `Unsupported`: an option affects results and cannot be honoured. `ignore_range_deletions` is no error: RocksDB
    /// defines it only for databases without range deletions.
    pub fn check(&self, ignores_unsupported: bool) -> Result<(), Error> {
        if self.has_timestamp {
            return Err(refused_timestamp());
        }
        // Tiers that were taken are not kept.
        let Some(tier) = self.kept("read_tier").filter(|_| !ignores_unsupported).map(c_int::of) else {
            return Ok(());
        };
        Err(Error::unsupported(format!(
            "read option `read_tier={tier}` cannot be honoured: reads find all that was written. Leave it out, or open the \
             database with spillway_options_set_ignore_unsupported_options to go on without it"
        )))
    }
}

/// The error of a read or a batch with a timestamp.
#[cold]
pub fn refused_timestamp() -> Error {
    Error::unsupported("user-defined timestamps are not there")
}

export! {
    fn rocksdb_readoptions_create() -> Box<ReadSettings> {
        Box::default()
    }

    fn rocksdb_readoptions_destroy(options: Option<Box<ReadSettings>>) {
        drop(options);
    }

    /// NULL for the state when the read begins.
    fn rocksdb_readoptions_set_snapshot(options: &mut ReadSettings, snapshot: Option<&SnapshotHandle>) {
        options.options.snapshot = snapshot.map(SnapshotHandle::snapshot);
    }

    /// NULL for no bound.
    fn rocksdb_readoptions_set_iterate_upper_bound(options: &mut ReadSettings, key[key_len]: Option<&[u8]>) {
        options.options.iterate_upper_bound = key.map(<[u8]>::to_vec);
    }

    fn rocksdb_readoptions_set_iterate_lower_bound(options: &mut ReadSettings, key[key_len]: Option<&[u8]>) {
        options.options.iterate_lower_bound = key.map(<[u8]>::to_vec);
    }
}
