//! RocksDB's own test of listeners: every callback, with values that the test knows.

use std::collections::BTreeMap;

use super::infos::{self, Flush, Ingestion, Memtable, Operation, TableFile};
use super::{
    BACKGROUND_ERROR, COMPACTION_BEGIN, COMPACTION_COMPLETED, FILE_CLOSED, FILE_FLUSHED, FILE_RANGE_SYNCED, FILE_READ,
    FILE_SYNCED, FILE_TRUNCATED, FILE_WRITTEN, FLUSH_BEGIN, FLUSH_COMPLETED, INGESTED, JavaListener, Listener,
    MEMTABLE_SEALED, RECOVERY_BEGIN, RECOVERY_END, STALL_CHANGED, TABLE_BEGIN, TABLE_CREATED, TABLE_DELETED, Told,
    WANTS_FILE_OPERATIONS,
};
use crate::boundary::natives;
use crate::boundary::object::Value;
use crate::fault::Outcome;
use crate::files::compaction_info::JobInfo;
use crate::files::properties::Facts;

/// The largest unsigned number, as Java's `long`.
const ALL_BITS: i64 = -1;
const NONE: Value<'static> = Value::Long(0);

fn pairs() -> BTreeMap<String, String> {
    BTreeMap::from([("key".to_owned(), "value".to_owned())])
}

fn table() -> Facts {
    Facts {
        numbers: [ALL_BITS; 22],
        family: "columnFamilyName".to_owned(),
        filter_policy: "filterPolicyName".to_owned(),
        comparator: "comparatorName".to_owned(),
        merge_operator: "mergeOperatorName".to_owned(),
        prefix_extractor: "prefixExtractorName".to_owned(),
        collectors: "propertyCollectorsNames".to_owned(),
        compression: "compressionName".to_owned(),
        user: pairs(),
        readable: pairs(),
    }
}

/// Incomplete, for lack of space.
fn outcome() -> Outcome {
    Outcome::by_code(7, 4)
}

fn tell_flushes(listener: &JavaListener) {
    let flush = Flush {
        family_id: i64::from(i32::MAX),
        family: "testColumnFamily".to_owned(),
        path: "/file/path".to_owned(),
        thread: ALL_BITS,
        job: i32::MAX,
        slows_writers: true,
        stops_writers: true,
        smallest_seq: ALL_BITS,
        largest_seq: ALL_BITS,
        table: table(),
        reason: 10,
    };
    for told in [&FLUSH_COMPLETED, &FLUSH_BEGIN] {
        listener.tell(told, |env| Ok(vec![NONE, Value::Object(flush.object(env)?)]));
    }
    let sealed = Memtable {
        family: "columnFamilyName".to_owned(),
        first_seq: ALL_BITS,
        earliest_seq: ALL_BITS,
        entries: ALL_BITS,
        deletions: ALL_BITS,
    };
    listener.tell(&MEMTABLE_SEALED, |env| Ok(vec![Value::Object(sealed.object(env)?)]));
}

fn tell_compactions(listener: &JavaListener) {
    for told in [&COMPACTION_BEGIN, &COMPACTION_COMPLETED] {
        let info = JobInfo {
            family: "compactionColumnFamily".to_owned(),
            outcome: outcome(),
            thread: ALL_BITS,
            job: i32::MAX,
            base_input_level: i32::MAX,
            output_level: i32::MAX,
            inputs: vec!["inputFile.sst".to_owned()],
            outputs: vec!["outputFile.sst".to_owned()],
            tables: vec![("tableProperties".to_owned(), table())],
            reason: 12,
            compression: 1,
            ..JobInfo::default()
        };
        listener.tell_compaction(told, 0, info);
    }
}

fn tell_tables(listener: &JavaListener) {
    let file = TableFile {
        database: "dbName".to_owned(),
        family: "columnFamilyName".to_owned(),
        path: "/file/path".to_owned(),
        job: i32::MAX,
        reason: 3,
    };
    listener.tell(&TABLE_DELETED, |env| Ok(vec![Value::Object(file.deleted(env, &outcome())?)]));
    listener.tell(&TABLE_CREATED, |env| Ok(vec![Value::Object(file.created(env, ALL_BITS, &table(), &outcome())?)]));
    listener.tell(&TABLE_BEGIN, |env| Ok(vec![Value::Object(file.begun(env)?)]));
    let ingestion = Ingestion {
        family: "columnFamilyName".to_owned(),
        external_path: "/external/file/path".to_owned(),
        internal_path: "/internal/file/path".to_owned(),
        seq: ALL_BITS,
        table: table(),
    };
    listener.tell(&INGESTED, |env| Ok(vec![NONE, Value::Object(ingestion.object(env)?)]));
}

fn tell_operations(listener: &JavaListener) {
    let operation = Operation {
        path: "/file/path".to_owned(),
        offset: ALL_BITS,
        len: 4096,
        started_ns: 1_600_699_420_000_000_000,
        duration_ns: 5_000_000_000,
        outcome: outcome(),
    };
    let all: [&Told; 7] =
        [&FILE_READ, &FILE_WRITTEN, &FILE_FLUSHED, &FILE_SYNCED, &FILE_RANGE_SYNCED, &FILE_TRUNCATED, &FILE_CLOSED];
    for told in all {
        listener.tell(told, |env| Ok(vec![Value::Object(operation.object(env)?)]));
    }
    listener.ask(&WANTS_FILE_OPERATIONS, |_env| Ok(Vec::new()));
}

fn tell_errors(listener: &JavaListener) {
    let reason = Value::Byte(0);
    listener.tell(&BACKGROUND_ERROR, |env| Ok(vec![reason, Value::Object(outcome().object(env)?)]));
    listener.ask(&RECOVERY_BEGIN, |env| Ok(vec![reason, Value::Object(outcome().object(env)?)]));
    listener.tell(&RECOVERY_END, |env| Ok(vec![Value::Object(outcome().object(env)?)]));
    listener.tell(&STALL_CHANGED, |env| Ok(vec![Value::Object(infos::stall_object(env, "columnFamilyName", 0, 1)?)]));
}

natives! { "test_TestableEventListener";
    "invokeAllCallbacks" => fn(_env, listener: &Listener) -> () {
        let listener = &*listener.0;
        tell_flushes(listener);
        tell_compactions(listener);
        tell_tables(listener);
        tell_operations(listener);
        tell_errors(listener);
        listener.tell_family(None);
        Ok(())
    }
}
