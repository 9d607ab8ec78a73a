//! `rocksdb_writeoptions_t`.

use std::ffi::{c_int, c_uchar};

use spillway::internal::WriteOptions;

use crate::boundary::settings::settings;
use crate::boundary::{export, handles};
use crate::kept::{Kept, keeps_numbers};

/// Options of a write.
#[derive(Clone, Default)]
pub struct WriteSettings {
    pub options: WriteOptions,
    pub kept: Kept,
}

handles!(WriteSettings);

keeps_numbers!(WriteSettings);

settings! { WriteSettings, "rocksdb_writeoptions_";
    sync: c_uchar => options.sync;
    no_slowdown: c_uchar => options.no_slowdown;
    ignore_missing_column_families: c_uchar => options.ignore_missing_column_families;

    low_pri: c_uchar = 0;
    memtable_insert_hint_per_batch: c_uchar = 0;
}

export! {
    fn rocksdb_writeoptions_create() -> Box<WriteSettings> {
        Box::default()
    }

    fn rocksdb_writeoptions_destroy(options: Option<Box<WriteSettings>>) {
        drop(options);
    }

    fn rocksdb_writeoptions_disable_WAL(options: &mut WriteSettings, disable: c_int) {
        options.options.disable_wal = disable != 0;
    }

    fn rocksdb_writeoptions_get_disable_WAL(options: &WriteSettings) -> bool {
        options.options.disable_wal
    }
}
