//! Options of compaction styles; those of cuckoo tables are unsupported, kept for getters.

use std::ffi::{c_double, c_int, c_uchar};

use spillway::internal::options::{FifoOptions, UniversalOptions};

use crate::boundary::settings::settings;
use crate::boundary::{export, handles};
use crate::kept::number::CNumber;
use crate::kept::{Keeps, Kept, keeps_numbers};

/// Options of universal compaction.
#[derive(Default)]
pub struct Universal {
    pub group: UniversalOptions,
    kept: Kept,
}

/// Options of FIFO compaction.
#[derive(Default)]
pub struct Fifo {
    pub group: FifoOptions,
    kept: Kept,
}

/// Options of cuckoo tables.
#[derive(Default)]
pub struct Cuckoo {
    kept: Kept,
}

handles!(Universal, Fifo, Cuckoo);

keeps_numbers!(Universal, Fifo, Cuckoo);

settings! { Universal as UNIVERSAL_ROWS, "rocksdb_universal_compaction_options_";
    size_ratio: c_int => group.size_ratio;
    min_merge_width: c_int => group.min_merge_width;
    max_size_amplification_percent: c_int => group.max_size_amplification_percent;
    compression_size_percent: c_int => group.compression_size_percent;
    stop_style: c_int => group.stop_style;
    allow_trivial_move: c_uchar => group.allow_trivial_move;
    max_read_amp: c_int => group.max_read_amp;

    incremental: c_uchar = 0;
    reduce_file_locking: c_uchar = 1;
}

settings! { Fifo as FIFO_ROWS, "rocksdb_fifo_compaction_options_";
    max_table_files_size: u64 => group.max_table_files_size;
    allow_compaction: c_uchar => group.allow_compaction;
    max_data_files_size: u64 => group.max_data_files_size;

    age_for_warm: u64 = 0;
    allow_trivial_copy_when_change_temperature: c_uchar = 0;
    trivial_copy_buffer_size: u64 = 4096;
    use_kv_ratio_compaction: c_uchar = 0;
}

settings! { Cuckoo as CUCKOO_ROWS, "rocksdb_cuckoo_options_";
    hash_table_ratio: c_double = CUCKOO_HASH_RATIO;
    max_search_depth: u32 = 100;
    cuckoo_block_size: u32 = 5;
    identity_as_first_hash: c_uchar = 0;
    use_module_hash: c_uchar = 1;
}

const CUCKOO_HASH_RATIO: c_double = 0.9;

export! {
    fn rocksdb_cuckoo_options_create() -> Box<Cuckoo> {
        Box::default()
    }

    fn rocksdb_cuckoo_options_destroy(options: Option<Box<Cuckoo>>) {
        drop(options);
    }

    /// An older name of `set_hash_table_ratio`.
    fn rocksdb_cuckoo_options_set_hash_ratio(options: &mut Cuckoo, ratio: c_double) {
        options.keep("hash_table_ratio", ratio.number(), CUCKOO_HASH_RATIO.number());
    }

    fn rocksdb_universal_compaction_options_create() -> Box<Universal> {
        Box::default()
    }

    /// Unsigned in RocksDB, `int` in C: -1 is its largest value, no limit.
    fn rocksdb_universal_compaction_options_set_max_merge_width(options: &mut Universal, value: c_int) {
        options.group.max_merge_width = value as u32;
    }

    fn rocksdb_universal_compaction_options_get_max_merge_width(options: &Universal) -> c_int {
        options.group.max_merge_width as c_int
    }

    fn rocksdb_universal_compaction_options_destroy(options: Option<Box<Universal>>) {
        drop(options);
    }

    fn rocksdb_fifo_compaction_options_create() -> Box<Fifo> {
        Box::default()
    }

    fn rocksdb_fifo_compaction_options_destroy(options: Option<Box<Fifo>>) {
        drop(options);
    }
}
