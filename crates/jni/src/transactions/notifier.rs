//! `AbstractTransactionNotifier`: is told of a transaction's snapshot.

use std::sync::Arc;

use crate::boundary::argument::Closed;
use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::object::{Global, Value};
use crate::fault::Fault;

static NOTIFIER: Class = Class::new(c"org/rocksdb/AbstractTransactionNotifier");
static SNAPSHOT_CREATED: Method = Method::new(&NOTIFIER, c"snapshotCreated", c"(J)V");

/// The object with the callback. Transactions keep it beyond its close.
#[derive(Clone)]
pub struct Notifier(Arc<Global>);

impl Notifier {
    /// # Errors
    /// The callback threw.
    pub fn snapshot_created(&self, env: Env<'_>, snapshot: i64) -> Result<(), Fault> {
        SNAPSHOT_CREATED.call(env, self.0.object(), &[Value::Long(snapshot)])
    }
}

natives! { "AbstractTransactionNotifier";
    "createNewTransactionNotifier" => fn(env) -> Box<Notifier> {
        SNAPSHOT_CREATED.find(env)?;
        Ok(Box::new(Notifier(Arc::new(Global::new(env, env.this()?).ok_or(Fault::OutOfMemory)?))))
    }

    "disposeInternal" | "disposeInternalJni" => fn(_env, notifier: Closed<Notifier>) -> () {
        drop(notifier.0);
        Ok(())
    }
}
