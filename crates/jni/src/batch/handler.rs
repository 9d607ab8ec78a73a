//! `WriteBatch.Handler`: shows a batch's changes to Java.

use spillway::internal::batch::{BatchItem, BatchRecord};
use spillway::internal::{ValueKind, WriteBatch};

use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::object::{Global, Value};
use crate::fault::Fault;

static HANDLER: Class = Class::new(c"org/rocksdb/WriteBatch$Handler");
static PUT: Method = Method::new(&HANDLER, c"put", c"(I[B[B)V");
static MERGE: Method = Method::new(&HANDLER, c"merge", c"(I[B[B)V");
static DELETE: Method = Method::new(&HANDLER, c"delete", c"(I[B)V");
static SINGLE_DELETE: Method = Method::new(&HANDLER, c"singleDelete", c"(I[B)V");
static DELETE_RANGE: Method = Method::new(&HANDLER, c"deleteRange", c"(I[B[B)V");
static LOG_DATA: Method = Method::new(&HANDLER, c"logData", c"([B)V");
static SHOULD_CONTINUE: Method = Method::new(&HANDLER, c"shouldContinue", c"()Z");

/// Every method that a batch calls.
static METHODS: [&Method; 7] = [&PUT, &MERGE, &DELETE, &SINGLE_DELETE, &DELETE_RANGE, &LOG_DATA, &SHOULD_CONTINUE];

/// The object with the callbacks.
pub struct Handler(Global);

fn method(kind: ValueKind) -> &'static Method {
    match kind {
        ValueKind::Value => &PUT,
        ValueKind::Merge => &MERGE,
        ValueKind::Deletion => &DELETE,
        ValueKind::SingleDeletion => &SINGLE_DELETE,
        ValueKind::RangeDeletion => &DELETE_RANGE,
    }
}

impl Handler {
    /// Shows every record, until the object wants no more.
    ///
    /// # Errors
    /// A callback threw.
    pub fn show(&self, env: Env<'_>, batch: &WriteBatch) -> Result<(), Fault> {
        for item in batch.iter().with_log_data() {
            if !SHOULD_CONTINUE.boolean(env, self.0.object(), &[])? {
                break;
            }
            match item? {
                BatchItem::Change(record) => self.show_change(env, record)?,
                BatchItem::LogData(blob) => {
                    let blob = env.new_bytes(blob)?;
                    LOG_DATA.call(env, self.0.object(), &[Value::Object(blob)])?;
                    env.delete(blob);
                }
            }
        }
        Ok(())
    }

    fn show_change(&self, env: Env<'_>, record: BatchRecord<'_>) -> Result<(), Fault> {
        let family = Value::Int(record.family.0 as i32);
        let key = env.new_bytes(record.key)?;
        if matches!(record.kind, ValueKind::Deletion | ValueKind::SingleDeletion) {
            method(record.kind).call(env, self.0.object(), &[family, Value::Object(key)])?;
        } else {
            let value = env.new_bytes(record.value)?;
            method(record.kind).call(env, self.0.object(), &[family, Value::Object(key), Value::Object(value)])?;
            env.delete(value);
        }
        env.delete(key);
        Ok(())
    }
}

natives! { "WriteBatch_00024Handler";
    "createNewHandler0" => fn(env) -> Box<Handler> {
        METHODS.iter().try_for_each(|method| method.find(env))?;
        Ok(Box::new(Handler(Global::new(env, env.this()?).ok_or(Fault::OutOfMemory)?)))
    }
}
