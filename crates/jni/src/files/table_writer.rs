//! `SstFileWriter`: tables made outside of a database, for ingests.

use std::path::PathBuf;

use capi::options::Options;
use capi::table_writer::TableMaker;

use crate::boundary::argument::{Closed, Direct, Whole};
use crate::boundary::natives;
use crate::callbacks::comparator::Order;
use crate::objects::slice::Slice;

natives! { "SstFileWriter";
    "newSstFileWriter__JJ" => fn(_env, _env_options: i64, options: &Options) -> Box<TableMaker> {
        Ok(Box::new(TableMaker::new(options)))
    }

    "newSstFileWriter__JJJB" =>
    fn(_env, _env_options: i64, options: &Options, comparator: &Order, _kind: i8) -> Box<TableMaker> {
        let mut writer = TableMaker::new(options);
        writer.options.order = comparator.order.clone();
        Ok(Box::new(writer))
    }

    "open" => fn(_env, writer: &mut TableMaker, path: String) -> () {
        Ok(writer.open(PathBuf::from(path))?)
    }

    "put__J_3B_3B" => fn(_env, writer: &mut TableMaker, key: Whole, value: Whole) -> () {
        Ok(writer.table()?.put(&key, &value)?)
    }

    "putDirect" => fn(_env, writer: &mut TableMaker, key[offset, len]: Direct<'_>, value[at, size]: Direct<'_>) -> () {
        Ok(writer.table()?.put(&key, &value)?)
    }

    "merge__J_3B_3B" => fn(_env, writer: &mut TableMaker, key: Whole, operand: Whole) -> () {
        Ok(writer.table()?.merge(&key, &operand)?)
    }

    "delete__J_3B" => fn(_env, writer: &mut TableMaker, key: Whole) -> () {
        Ok(writer.table()?.delete(&key)?)
    }

    "put__JJJ" => fn(_env, writer: &mut TableMaker, key: &Slice, value: &Slice) -> () {
        Ok(writer.table()?.put(key.bytes(), value.bytes())?)
    }

    "merge__JJJ" => fn(_env, writer: &mut TableMaker, key: &Slice, operand: &Slice) -> () {
        Ok(writer.table()?.merge(key.bytes(), operand.bytes())?)
    }

    "delete__JJ" => fn(_env, writer: &mut TableMaker, key: &Slice) -> () {
        Ok(writer.table()?.delete(key.bytes())?)
    }

    "finish" => fn(_env, writer: &mut TableMaker) -> () {
        Ok(writer.finish()?)
    }

    "fileSize" => fn(_env, writer: &TableMaker) -> i64 {
        Ok(writer.bytes() as i64)
    }

    /// Removes an unfinished table.
    "disposeInternal" | "disposeInternalJni" => fn(_env, writer: Closed<TableMaker>) -> () {
        drop(writer.0);
        Ok(())
    }
}
