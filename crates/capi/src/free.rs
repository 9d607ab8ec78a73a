//! `rocksdb_free`: for callers that do not share this library's C library.

use crate::boundary::export;
use crate::boundary::reply::Freed;

export! {
    fn rocksdb_free(memory: Freed) {
        drop(memory);
    }
}
