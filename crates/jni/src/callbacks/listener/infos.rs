//! What listeners are told, as Java's objects.

use spillway::internal::Error;

use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::object::{Object, Value};
use crate::collections;
use crate::fault::{self, Fault, Outcome};
use crate::files::properties::{self, Facts};

/// Classes with their constructors.
macro_rules! constructors {
    ($($name:ident = $class:literal $descriptor:literal;)+) => {
        $( static $name: Method = {
            static CLASS: Class = Class::new($class);
            Method::constructor(&CLASS, $descriptor)
        }; )+
        static CONSTRUCTORS: &[&Method] = &[$( &$name ),+];
    };
}

constructors! {
    FLUSH = c"org/rocksdb/FlushJobInfo" c"(JLjava/lang/String;Ljava/lang/String;JIZZJJLorg/rocksdb/TableProperties;B)V";
    DELETION = c"org/rocksdb/TableFileDeletionInfo" c"(Ljava/lang/String;Ljava/lang/String;ILorg/rocksdb/Status;)V";
    CREATION = c"org/rocksdb/TableFileCreationInfo"
        c"(JLorg/rocksdb/TableProperties;Lorg/rocksdb/Status;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;IB)V";
    CREATION_BEGIN = c"org/rocksdb/TableFileCreationBriefInfo"
        c"(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;IB)V";
    MEMTABLE = c"org/rocksdb/MemTableInfo" c"(Ljava/lang/String;JJJJ)V";
    STALL = c"org/rocksdb/WriteStallInfo" c"(Ljava/lang/String;BB)V";
    INGESTION = c"org/rocksdb/ExternalFileIngestionInfo"
        c"(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;JLorg/rocksdb/TableProperties;)V";
    OPERATION = c"org/rocksdb/FileOperationInfo" c"(Ljava/lang/String;JJJJLorg/rocksdb/Status;)V";
    JOB = c"org/rocksdb/CompactionJobInfo" c"(J)V";
    FAMILY = c"org/rocksdb/ColumnFamilyHandle" c"(J)V";
}

/// Looks up the classes that callbacks need on threads of ours (J5).
pub fn find_infos(env: Env<'_>) -> Result<(), Fault> {
    CONSTRUCTORS.iter().try_for_each(|constructor| constructor.find(env))?;
    fault::find_status(env)?;
    properties::find_properties(env)?;
    collections::find_maps(env)
}

/// `FlushJobInfo`. Job and thread are not told, nor whether the flush holds writers up.
#[derive(Default)]
pub struct Flush {
    pub family_id: i64,
    pub family: String,
    pub path: String,
    pub thread: i64,
    pub job: i32,
    pub slows_writers: bool,
    pub stops_writers: bool,
    pub smallest_seq: i64,
    pub largest_seq: i64,
    pub table: Facts,
    pub reason: i8,
}

impl Flush {
    pub fn object<'j>(&self, env: Env<'j>) -> Result<Object<'j>, Fault> {
        let values = [
            Value::Long(self.family_id),
            Value::Object(env.new_text(&self.family)?),
            Value::Object(env.new_text(&self.path)?),
            Value::Long(self.thread),
            Value::Int(self.job),
            Value::Bool(self.slows_writers),
            Value::Bool(self.stops_writers),
            Value::Long(self.smallest_seq),
            Value::Long(self.largest_seq),
            Value::Object(self.table.object(env)?),
            Value::Byte(self.reason),
        ];
        FLUSH.make(env, &values)
    }
}

/// A table's file that is begun, finished or deleted.
#[derive(Default)]
pub struct TableFile {
    pub database: String,
    /// Not told of a deletion.
    pub family: String,
    pub path: String,
    pub job: i32,
    /// Of a creation: 0 for a flush, 1 for a compaction.
    pub reason: i8,
}

impl TableFile {
    pub fn begun<'j>(&self, env: Env<'j>) -> Result<Object<'j>, Fault> {
        let [database, family, path] = self.texts(env)?;
        CREATION_BEGIN.make(env, &[database, family, path, Value::Int(self.job), Value::Byte(self.reason)])
    }

    pub fn created<'j>(&self, env: Env<'j>, bytes: i64, table: &Facts, outcome: &Outcome) -> Result<Object<'j>, Fault> {
        let [database, family, path] = self.texts(env)?;
        let (table, status) = (Value::Object(table.object(env)?), Value::Object(outcome.object(env)?));
        let (job, reason) = (Value::Int(self.job), Value::Byte(self.reason));
        CREATION.make(env, &[Value::Long(bytes), table, status, database, family, path, job, reason])
    }

    pub fn deleted<'j>(&self, env: Env<'j>, outcome: &Outcome) -> Result<Object<'j>, Fault> {
        let [database, _, path] = self.texts(env)?;
        DELETION.make(env, &[database, path, Value::Int(self.job), Value::Object(outcome.object(env)?)])
    }

    fn texts<'j>(&self, env: Env<'j>) -> Result<[Value<'j>; 3], Fault> {
        let text = |text: &str| env.new_text(text).map(Value::Object);
        Ok([text(&self.database)?, text(&self.family)?, text(&self.path)?])
    }
}

/// `MemTableInfo`: sequence numbers, entries, deletions.
pub struct Memtable {
    pub family: String,
    pub first_seq: i64,
    pub earliest_seq: i64,
    pub entries: i64,
    pub deletions: i64,
}

impl Memtable {
    pub fn object<'j>(&self, env: Env<'j>) -> Result<Object<'j>, Fault> {
        let family = Value::Object(env.new_text(&self.family)?);
        let numbers = [self.first_seq, self.earliest_seq, self.entries, self.deletions].map(Value::Long);
        MEMTABLE.make(env, &[&[family][..], &numbers].concat())
    }
}

/// `WriteStallInfo`. Conditions by number: 0 delayed, 1 stopped, 2 normal.
pub fn stall_object<'j>(env: Env<'j>, family: &str, now: i8, before: i8) -> Result<Object<'j>, Fault> {
    let family = Value::Object(env.new_text(family)?);
    STALL.make(env, &[family, Value::Byte(now), Value::Byte(before)])
}

/// `ExternalFileIngestionInfo`.
pub struct Ingestion {
    pub family: String,
    pub external_path: String,
    pub internal_path: String,
    pub seq: i64,
    pub table: Facts,
}

impl Ingestion {
    pub fn object<'j>(&self, env: Env<'j>) -> Result<Object<'j>, Fault> {
        let text = |text: &str| env.new_text(text).map(Value::Object);
        let (family, outside, inside) = (text(&self.family)?, text(&self.external_path)?, text(&self.internal_path)?);
        let table = Value::Object(self.table.object(env)?);
        INGESTION.make(env, &[family, outside, inside, Value::Long(self.seq), table])
    }
}

/// `FileOperationInfo`. Times in nanoseconds.
pub struct Operation {
    pub path: String,
    pub offset: i64,
    pub len: i64,
    pub started_ns: i64,
    pub duration_ns: i64,
    pub outcome: Outcome,
}

impl Operation {
    pub fn object<'j>(&self, env: Env<'j>) -> Result<Object<'j>, Fault> {
        let path = Value::Object(env.new_text(&self.path)?);
        let numbers = [self.offset, self.len, self.started_ns, self.duration_ns].map(Value::Long);
        let outcome = Value::Object(self.outcome.object(env)?);
        OPERATION.make(env, &[&[path][..], &numbers, &[outcome]].concat())
    }
}

/// `CompactionJobInfo`, over a report's handle.
pub fn job_object<'j>(env: Env<'j>, report: i64) -> Result<Object<'j>, Fault> {
    JOB.make(env, &[Value::Long(report)])
}

/// `ColumnFamilyHandle`, over a handle of the family.
pub fn family_object<'j>(env: Env<'j>, family: i64) -> Result<Object<'j>, Fault> {
    FAMILY.make(env, &[Value::Long(family)])
}

pub fn outcome_of(error: &Error) -> Outcome {
    Outcome::of(&error.clone().into())
}
