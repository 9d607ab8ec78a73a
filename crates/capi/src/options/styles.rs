//! Unsupported options of compaction styles and tables, kept for getters.

use std::ffi::{c_double, c_int, c_uchar};

use crate::boundary::settings::settings;
use crate::boundary::{export, handles};
use crate::kept::number::CNumber;
use crate::kept::{Keeps, Kept, keeps_numbers};

/// Options of universal compaction.
#[derive(Default)]
pub struct Universal {
    kept: Kept,
}

/// Options of FIFO compaction.
#[derive(Default)]
pub struct Fifo {
    kept: Kept,
}

/// Options of cuckoo tables.
#[derive(Default)]
pub struct Cuckoo {
    kept: Kept,
}

handles!(Universal, Fifo, Cuckoo);

keeps_numbers!(Universal, Fifo, Cuckoo);

settings! { Universal, "rocksdb_universal_compaction_options_";
    size_ratio: c_int = 1;
    min_merge_width: c_int = 2;
    max_merge_width: c_int = UNLIMITED;
    max_size_amplification_percent: c_int = 200;
    compression_size_percent: c_int = -1;
    stop_style: c_int = 1;
}

/// Unsigned in RocksDB, `int` in C.
const UNLIMITED: c_int = -1;

settings! { Fifo, "rocksdb_fifo_compaction_options_";
    max_table_files_size: u64 = 1 << 30;
    allow_compaction: c_uchar = 0;
    max_data_files_size: u64 = 0;
    use_kv_ratio_compaction: c_uchar = 0;
}

settings! { Cuckoo, "rocksdb_cuckoo_options_";
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
