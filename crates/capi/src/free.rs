//! `rocksdb_free`: for callers with a C library of their own.

use crate::boundary::export;
use crate::boundary::reply::Freed;

export! {
    fn rocksdb_free(memory: Freed) {
        drop(memory);
    }
}
