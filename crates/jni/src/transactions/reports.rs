//! The locks of a `TransactionDB`, and the deadlocks found.

use spillway::internal::LockMode;

use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::object::{Object, Value};
use crate::boundary::reply::{ArrayOf, Made};
use crate::collections::map;
use crate::database::Db;
use crate::fault::Fault;

static KEY_LOCK_INFO: Class = Class::new(c"org/rocksdb/TransactionDB$KeyLockInfo");
static NEW_KEY_LOCK_INFO: Method = Method::constructor(&KEY_LOCK_INFO, c"(Ljava/lang/String;[JZ)V");
static DEADLOCK_INFO: Class = Class::new(c"org/rocksdb/TransactionDB$DeadlockInfo");
static NEW_DEADLOCK_INFO: Method = Method::constructor(&DEADLOCK_INFO, c"(JJLjava/lang/String;Z)V");
static DEADLOCK_PATH: Class = Class::new(c"org/rocksdb/TransactionDB$DeadlockPath");
static NEW_DEADLOCK_PATH: Method =
    Method::constructor(&DEADLOCK_PATH, c"([Lorg/rocksdb/TransactionDB$DeadlockInfo;Z)V");
static LONG: Class = Class::new(c"java/lang/Long");
static LONG_OF: Method = Method::fixed(&LONG, c"valueOf", c"(J)Ljava/lang/Long;");

/// A `Long`.
fn long(env: Env<'_>, number: i64) -> Result<Object<'_>, Fault> {
    LONG_OF.object_fixed(env, &[Value::Long(number)])?.ok_or(Fault::OutOfMemory)
}

/// Keys are bytes, and Java shows them as text.
fn text<'j>(env: Env<'j>, key: &[u8]) -> Result<Object<'j>, Fault> {
    env.new_text(&String::from_utf8_lossy(key))
}

natives! { "TransactionDB";
    /// By column family. Of several locks in a family the map shows one: it has one value for each key.
    "getLockStatusData" => fn(env, database: &Db) -> Made {
        let held = database.locks()?.locks.held();
        let locks = map(env, held.iter(), |lock| {
            let owners: Vec<i64> = lock.owners.iter().map(|owner| *owner as i64).collect();
            let (key, owners) = (text(env, &lock.key)?, env.new_longs(&owners)?);
            let is_exclusive = Value::Bool(lock.mode == LockMode::Exclusive);
            let info = NEW_KEY_LOCK_INFO.make(env, &[Value::Object(key), Value::Object(owners), is_exclusive])?;
            env.delete(key);
            env.delete(owners);
            Ok((long(env, lock.family.0.into())?, info))
        })?;
        Ok(locks.into())
    }

    "getDeadlockInfoBuffer" => fn(env, database: &Db) -> ArrayOf {
        let cycles = database.locks()?.locks.deadlocks();
        let paths = env.new_array(&DEADLOCK_PATH, cycles.iter(), |cycle| {
            let waits = env.new_array(&DEADLOCK_INFO, cycle.waits.iter(), |wait| {
                let key = text(env, &wait.key)?;
                let (owner, family) = (Value::Long(wait.owner as i64), Value::Long(wait.family.0.into()));
                let is_exclusive = Value::Bool(wait.mode == LockMode::Exclusive);
                let info = NEW_DEADLOCK_INFO.make(env, &[owner, family, Value::Object(key), is_exclusive])?;
                env.delete(key);
                Ok(Some(info))
            })?;
            let path = NEW_DEADLOCK_PATH.make(env, &[Value::Object(waits), Value::Bool(cycle.is_guess)])?;
            env.delete(waits);
            Ok(Some(path))
        })?;
        Ok(paths.into())
    }

    "setDeadlockInfoBufferSize" => fn(_env, database: &Db, most: i32) -> () {
        database.locks()?.locks.set_deadlocks_max(usize::try_from(most).unwrap_or(0));
        Ok(())
    }
}
