//! `ReadOptions`.

use capi::boundary::settings::Row;
use capi::read_options::{ROWS, ReadSettings};
use capi::snapshot::SnapshotHandle;

use crate::boundary::argument::Given;
use crate::boundary::natives;
use crate::boundary::settings::{kept, settings};
use crate::objects::slice::Slice;

/// Without effect here, and without setters in C.
const WITHOUT_EFFECT: &[Row<ReadSettings>] = kept! { ReadSettings;
    "auto_prefix_mode": bool = false;
    "managed": bool = false;
    "value_size_soft_limit": i64 = -1;
};

settings! { ["ReadOptions"], ReadSettings, [ROWS, WITHOUT_EFFECT];
    bool, set "setVerifyChecksums", get "verifyChecksums" => "verify_checksums";
    bool, set "setFillCache", get "fillCache" => "fill_cache";
    i8, set "setReadTier", get "readTier" => "read_tier";
    bool, set "setTailing", get "tailing" => "tailing";
    bool, set "setManaged", get "managed" => "managed";
    bool, set "setTotalOrderSeek", get "totalOrderSeek" => "total_order_seek";
    bool, set "setPrefixSameAsStart", get "prefixSameAsStart" => "prefix_same_as_start";
    bool, set "setPinData", get "pinData" => "pin_data";
    bool, set "setBackgroundPurgeOnIteratorCleanup", get "backgroundPurgeOnIteratorCleanup"
        => "background_purge_on_iterator_cleanup";
    i64, set "setReadaheadSize", get "readaheadSize" => "readahead_size";
    i64, set "setMaxSkippableInternalKeys", get "maxSkippableInternalKeys" => "max_skippable_internal_keys";
    bool, set "setIgnoreRangeDeletions", get "ignoreRangeDeletions" => "ignore_range_deletions";
    bool, set "setAutoPrefixMode", get "autoPrefixMode" => "auto_prefix_mode";
    i64, set "setDeadline", get "deadline" => "deadline";
    i64, set "setIoTimeout", get "ioTimeout" => "io_timeout";
    i64, set "setValueSizeSoftLimit", get "valueSizeSoftLimit" => "value_size_soft_limit";
    bool, set "setAsyncIo", get "asyncIo" => "async_io";
}

fn bytes(slice: &Given<'_, Slice>) -> Option<Vec<u8>> {
    slice.object.map(|slice| slice.bytes().to_vec())
}

pub mod others {
    use super::*;

    natives! { "ReadOptions";
        "newReadOptions__ZZ" => fn(_env, verify_checksums: bool, fill_cache: bool) -> Box<ReadSettings> {
            let mut settings = Box::<ReadSettings>::default();
            settings.options.verify_checksums = verify_checksums;
            settings.options.fill_cache = fill_cache;
            Ok(settings)
        }

        "copyReadOptions" => fn(_env, options: &ReadSettings) -> Box<ReadSettings> {
            Ok(Box::new(options.clone()))
        }

        "setSnapshot" => fn(_env, options: &mut ReadSettings, snapshot: Given<'_, SnapshotHandle>) -> () {
            options.options.snapshot = snapshot.object.map(SnapshotHandle::snapshot);
            options.given.snapshot = snapshot.handle;
            Ok(())
        }

        "snapshot" => fn(_env, options: &ReadSettings) -> i64 {
            Ok(options.given.snapshot)
        }

        /// The bytes are copied.
        "setIterateUpperBound" => fn(_env, options: &mut ReadSettings, slice: Given<'_, Slice>) -> () {
            options.options.iterate_upper_bound = bytes(&slice);
            options.given.upper_bound = slice.handle;
            Ok(())
        }

        "iterateUpperBound" => fn(_env, options: &ReadSettings) -> i64 {
            Ok(options.given.upper_bound)
        }

        "setIterateLowerBound" => fn(_env, options: &mut ReadSettings, slice: Given<'_, Slice>) -> () {
            options.options.iterate_lower_bound = bytes(&slice);
            options.given.lower_bound = slice.handle;
            Ok(())
        }

        "iterateLowerBound" => fn(_env, options: &ReadSettings) -> i64 {
            Ok(options.given.lower_bound)
        }

        /// Reads with a timestamp are refused.
        "setTimestamp" => fn(_env, options: &mut ReadSettings, slice: Given<'_, Slice>) -> () {
            options.given.timestamp = slice.handle;
            options.has_timestamp = slice.handle != 0 || options.given.start_timestamp != 0;
            Ok(())
        }

        "timestamp" => fn(_env, options: &ReadSettings) -> i64 {
            Ok(options.given.timestamp)
        }

        "setIterStartTs" => fn(_env, options: &mut ReadSettings, slice: Given<'_, Slice>) -> () {
            options.given.start_timestamp = slice.handle;
            options.has_timestamp = slice.handle != 0 || options.given.timestamp != 0;
            Ok(())
        }

        "iterStartTs" => fn(_env, options: &ReadSettings) -> i64 {
            Ok(options.given.start_timestamp)
        }
    }
}
