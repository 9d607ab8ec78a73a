//! Event listeners of Java: `AbstractEventListener`.
//!
//! Events come on threads of the engine, or on the thread of the call that caused them; none comes from a write. File
//! operations are told to nobody: the engine has no such events.

mod events;
pub mod infos;
pub mod opening;
pub mod own_test;

use std::any::Any;
use std::sync::Arc;

use capi::family::FamilyHandle;
use capi::options::Options;
use spillway::internal::extend::EventListener;

use self::infos::{family_object, find_infos};
use self::opening::Home;
use super::Callback;
use crate::boundary::argument::{Closed, Handles};
use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::object::Value;
use crate::boundary::reply::ArrayOf;
use crate::boundary::{handle, natives};
use crate::fault::Fault;
use crate::files::compaction_info::JobInfo;

static LISTENER: Class = Class::new(c"org/rocksdb/AbstractEventListener");

/// A callback of Java's class.
pub struct Told {
    /// Its bit among the enabled callbacks.
    bit: u32,
    method: Method,
}

/// Callbacks by name: bit, method, descriptor.
macro_rules! callbacks {
    ($($name:ident = $bit:literal $method:literal $descriptor:literal;)+) => {
        $( pub static $name: Told = Told { bit: $bit, method: Method::new(&LISTENER, $method, $descriptor) }; )+
        static CALLBACKS: &[&Told] = &[$( &$name ),+];
    };
}

callbacks! {
    FLUSH_COMPLETED = 0 c"onFlushCompletedProxy" c"(JLorg/rocksdb/FlushJobInfo;)V";
    FLUSH_BEGIN = 1 c"onFlushBeginProxy" c"(JLorg/rocksdb/FlushJobInfo;)V";
    TABLE_DELETED = 2 c"onTableFileDeleted" c"(Lorg/rocksdb/TableFileDeletionInfo;)V";
    COMPACTION_BEGIN = 3 c"onCompactionBeginProxy" c"(JLorg/rocksdb/CompactionJobInfo;)V";
    COMPACTION_COMPLETED = 4 c"onCompactionCompletedProxy" c"(JLorg/rocksdb/CompactionJobInfo;)V";
    TABLE_CREATED = 5 c"onTableFileCreated" c"(Lorg/rocksdb/TableFileCreationInfo;)V";
    TABLE_BEGIN = 6 c"onTableFileCreationStarted" c"(Lorg/rocksdb/TableFileCreationBriefInfo;)V";
    MEMTABLE_SEALED = 7 c"onMemTableSealed" c"(Lorg/rocksdb/MemTableInfo;)V";
    FAMILY_CLOSED = 8 c"onColumnFamilyHandleDeletionStarted" c"(Lorg/rocksdb/ColumnFamilyHandle;)V";
    INGESTED = 9 c"onExternalFileIngestedProxy" c"(JLorg/rocksdb/ExternalFileIngestionInfo;)V";
    BACKGROUND_ERROR = 10 c"onBackgroundErrorProxy" c"(BLorg/rocksdb/Status;)V";
    STALL_CHANGED = 11 c"onStallConditionsChanged" c"(Lorg/rocksdb/WriteStallInfo;)V";
    FILE_READ = 12 c"onFileReadFinish" c"(Lorg/rocksdb/FileOperationInfo;)V";
    FILE_WRITTEN = 13 c"onFileWriteFinish" c"(Lorg/rocksdb/FileOperationInfo;)V";
    FILE_FLUSHED = 14 c"onFileFlushFinish" c"(Lorg/rocksdb/FileOperationInfo;)V";
    FILE_SYNCED = 15 c"onFileSyncFinish" c"(Lorg/rocksdb/FileOperationInfo;)V";
    FILE_RANGE_SYNCED = 16 c"onFileRangeSyncFinish" c"(Lorg/rocksdb/FileOperationInfo;)V";
    FILE_TRUNCATED = 17 c"onFileTruncateFinish" c"(Lorg/rocksdb/FileOperationInfo;)V";
    FILE_CLOSED = 18 c"onFileCloseFinish" c"(Lorg/rocksdb/FileOperationInfo;)V";
    WANTS_FILE_OPERATIONS = 19 c"shouldBeNotifiedOnFileIO" c"()Z";
    RECOVERY_BEGIN = 20 c"onErrorRecoveryBeginProxy" c"(BLorg/rocksdb/Status;)Z";
    RECOVERY_END = 21 c"onErrorRecoveryCompleted" c"(Lorg/rocksdb/Status;)V";
}

/// A listener. Options and databases keep it when the handle is closed.
pub struct Listener(Arc<JavaListener>);

pub struct JavaListener {
    object: Callback,
    /// A bit for each callback.
    enabled: u64,
}

impl JavaListener {
    fn is_enabled(&self, told: &Told) -> bool {
        self.enabled >> told.bit & 1 == 1
    }

    /// Calls Java, if the callback is enabled. `make` makes the arguments.
    pub fn tell(&self, told: &Told, make: impl for<'j> FnOnce(Env<'j>) -> Result<Vec<Value<'j>>, Fault>) {
        if self.is_enabled(told) {
            self.object.call(|env, object| env.framed(|env| told.method.call(env, object, &make(env)?)));
        }
    }

    /// As [`tell`](Self::tell), for a callback with an answer.
    pub fn ask(&self, told: &Told, make: impl for<'j> FnOnce(Env<'j>) -> Result<Vec<Value<'j>>, Fault>) {
        if self.is_enabled(told) {
            self.object.call(|env, object| env.framed(|env| told.method.boolean(env, object, &make(env)?)));
        }
    }

    /// Tells of a compaction. The report ends with the call.
    pub fn tell_compaction(&self, told: &Told, database: i64, info: JobInfo) {
        if self.is_enabled(told) {
            let report = handle::open(Box::new(info));
            self.tell(told, |env| Ok(vec![Value::Long(database), Value::Object(infos::job_object(env, report)?)]));
            drop(handle::close::<JobInfo>(report));
        }
    }

    /// Tells of the end of a family's handle.
    pub fn tell_family(&self, family: Option<&FamilyHandle>) {
        if !self.is_enabled(&FAMILY_CLOSED) {
            return;
        }
        let lent = family.map_or(0, |family| handle::open(Box::new(FamilyHandle(family.0.clone()))));
        self.tell(&FAMILY_CLOSED, |env| Ok(vec![Value::Object(family_object(env, lent)?)]));
        drop(handle::close::<FamilyHandle>(lent));
    }
}

/// A listener within options, or of a database.
pub struct Listening {
    listener: Arc<JavaListener>,
    home: Arc<Home>,
}

impl Listening {
    /// `None` for listeners of others.
    fn of(listener: &Arc<dyn EventListener>) -> Option<&Listening> {
        let listener: &dyn Any = &**listener;
        listener.downcast_ref()
    }
}

/// A handle of the family ends.
pub fn tell_family_closed(family: &FamilyHandle) {
    for listener in family.0.listeners() {
        if let Some(listening) = Listening::of(&listener) {
            listening.listener.tell_family(Some(family));
        }
    }
}

natives! { "AbstractEventListener";
    "createNewEventListener" => fn(env, enabled: i64) -> Box<Listener> {
        CALLBACKS.iter().try_for_each(|told| told.method.find(env))?;
        find_infos(env)?;
        Ok(Box::new(Listener(Arc::new(JavaListener { object: Callback::of_this(env)?, enabled: enabled as u64 }))))
    }

    "disposeInternal" => fn(_env, listener: Closed<Listener>) -> () {
        drop(listener.0);
        Ok(())
    }
}

/// The options.
pub mod set {
    use super::*;

    natives! { ["DBOptions", "Options"];
        "setEventListeners" => fn(_env, options: &mut Options, listeners: Handles) -> () {
            let of = |listener: &Listener| -> Arc<dyn EventListener> {
                Arc::new(Listening { listener: listener.0.clone(), home: Arc::default() })
            };
            options.db.listeners = listeners.get::<Listener>()?.into_iter().map(of).collect();
            Ok(())
        }

        "eventListeners" => fn(env, options: &Options) -> ArrayOf {
            let listeners: Vec<&Listening> = options.db.listeners.iter().filter_map(Listening::of).collect();
            Ok(env.new_array(&LISTENER, listeners.into_iter(), |listening| listening.listener.object.local(env))?.into())
        }
    }
}
