//! `SstFileReader`: a table file by itself.

use std::path::Path;
use std::sync::Arc;

use capi::failure::Failure;
use capi::options::Options;
use capi::read_options::ReadSettings;
use spillway::internal::dump::{Table, open_table_in};
use spillway::internal::extend::MergeOperator;
use spillway::internal::vfs::Vfs;
use spillway::internal::{TableWalk, UserOrder};

use super::properties::properties;
use crate::boundary::argument::Closed;
use crate::boundary::natives;
use crate::boundary::reply::Made;
use crate::fault::Fault;

/// A reader, with the options that it opens its table by.
pub struct TableReader {
    vfs: Arc<dyn Vfs>,
    order: UserOrder,
    operator: Option<Arc<dyn MergeOperator>>,
    table: Option<Arc<dyn Table>>,
}

impl TableReader {
    fn table(&self) -> Result<&Arc<dyn Table>, Fault> {
        self.table.as_ref().ok_or_else(|| Failure::invalid_argument("File is not opened").into())
    }
}

natives! { "SstFileReader";
    "newSstFileReader" => fn(_env, options: &Options) -> Box<TableReader> {
        let (order, operator) = (options.family.order.clone(), options.family.merge_operator.clone());
        Ok(Box::new(TableReader { vfs: options.vfs(), order, operator, table: None }))
    }

    "open" => fn(_env, reader: &mut TableReader, path: String) -> () {
        let table = open_table_in(&reader.vfs, Path::new(&path), reader.order.clone())?;
        reader.table = Some(table.into_table());
        Ok(())
    }

    /// Keys as of the whole table, each with its newest value. The table's range tombstones hide nothing, as in RocksDB.
    "newIterator" => fn(_env, reader: &TableReader, options: &ReadSettings) -> Box<TableWalk> {
        let walk = TableWalk::new(reader.table()?.clone(), reader.order.clone(), reader.operator.clone());
        let read = &options.options;
        Ok(Box::new(walk.within(read.iterate_lower_bound.clone(), read.iterate_upper_bound.clone())))
    }

    "verifyChecksum" => fn(_env, reader: &TableReader) -> () {
        Ok(reader.table()?.verify()?)
    }

    "getTableProperties" => fn(env, reader: &TableReader) -> Made {
        Ok(properties(env, reader.table()?.properties())?.into())
    }

    "disposeInternal" | "disposeInternalJni" => fn(_env, reader: Closed<TableReader>) -> () {
        drop(reader.0);
        Ok(())
    }
}

/// `SstFileReaderIterator`.
pub mod iterator {
    use capi::snapshot::SnapshotHandle;

    use super::*;
    use crate::boundary::argument::{Bytes, Direct, DirectRoom, Head, Room};
    use crate::boundary::reply::ByteArray;

    fn no_refresh() -> Fault {
        Failure::not_implemented("Refresh() is not supported").into()
    }

    natives! { "SstFileReaderIterator";
        "disposeInternal" | "disposeInternalJni" => fn(_env, walk: Closed<TableWalk>) -> () {
            drop(walk.0);
            Ok(())
        }

        "isValid0" | "isValid0Jni" => fn(_env, walk: &TableWalk) -> bool {
            Ok(walk.valid())
        }

        "seekToFirst0" | "seekToFirst0Jni" => fn(_env, walk: &mut TableWalk) -> () {
            walk.seek_to_first();
            Ok(())
        }

        "seekToLast0" | "seekToLast0Jni" => fn(_env, walk: &mut TableWalk) -> () {
            walk.seek_to_last();
            Ok(())
        }

        "next0" | "next0Jni" => fn(_env, walk: &mut TableWalk) -> () {
            walk.next();
            Ok(())
        }

        "prev0" | "prev0Jni" => fn(_env, walk: &mut TableWalk) -> () {
            walk.prev();
            Ok(())
        }

        "seek0" | "seek0Jni" => fn(_env, walk: &mut TableWalk, key[len]: Head) -> () {
            walk.seek(&key);
            Ok(())
        }

        "seekForPrev0" | "seekForPrev0Jni" => fn(_env, walk: &mut TableWalk, key[len]: Head) -> () {
            walk.seek_for_prev(&key);
            Ok(())
        }

        "seekByteArray0" | "seekByteArray0Jni" => fn(_env, walk: &mut TableWalk, key[offset, len]: Bytes) -> () {
            walk.seek(&key);
            Ok(())
        }

        "seekForPrevByteArray0" | "seekForPrevByteArray0Jni" =>
        fn(_env, walk: &mut TableWalk, key[offset, len]: Bytes) -> () {
            walk.seek_for_prev(&key);
            Ok(())
        }

        "seekDirect0" | "seekDirect0Jni" => fn(_env, walk: &mut TableWalk, key[offset, len]: Direct<'_>) -> () {
            walk.seek(&key);
            Ok(())
        }

        "seekForPrevDirect0" | "seekForPrevDirect0Jni" =>
        fn(_env, walk: &mut TableWalk, key[offset, len]: Direct<'_>) -> () {
            walk.seek_for_prev(&key);
            Ok(())
        }

        "key0" => fn(env, walk: &TableWalk) -> ByteArray {
            ByteArray::of(env, walk.key())
        }

        "value0" => fn(env, walk: &TableWalk) -> ByteArray {
            ByteArray::of(env, walk.value())
        }

        "keyDirect0" => fn(_env, walk: &TableWalk, room[at, size]: DirectRoom) -> i32 {
            room.fill(walk.key())
        }

        "valueDirect0" => fn(_env, walk: &TableWalk, room[at, size]: DirectRoom) -> i32 {
            room.fill(walk.value())
        }

        "keyByteArray0" => fn(env, walk: &TableWalk, room[at, size]: Room<'_>) -> i32 {
            room.fill(env, walk.key())
        }

        "valueByteArray0" => fn(env, walk: &TableWalk, room[at, size]: Room<'_>) -> i32 {
            room.fill(env, walk.value())
        }

        "status0" | "status0Jni" => fn(_env, walk: &TableWalk) -> () {
            Ok(walk.status()?)
        }

        "refresh0" | "refresh0Jni" => fn(_env, _walk: &TableWalk) -> () {
            Err(no_refresh())
        }

        "refresh1" => fn(_env, _walk: &TableWalk, _snapshot: Option<&SnapshotHandle>) -> () {
            Err(no_refresh())
        }
    }
}
