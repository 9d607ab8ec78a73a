//! Errors of natives, as the exceptions that RocksDB's Java code expects.

use std::fmt::Display;

use capi::failure::{Code, Failure};

use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::object::{Object, Value};

/// Why a native has no result.
pub enum Fault {
    /// `RocksDBException` with a `Status`.
    Status(Failure),
    /// `RocksDBException` with a message alone.
    Message(String),
    /// The exception with a status without a message, and perhaps one beside it.
    Told(Option<&'static str>, Code),
    /// `IllegalArgumentException`.
    Illegal(String),
    /// `IllegalStateException`: the use of a closed object.
    State(String),
    OutOfMemory,
    /// An exception is pending in the JVM.
    Pending,
}

static STATUS: Class = Class::new(c"org/rocksdb/Status");
static EXCEPTION: Class = Class::new(c"org/rocksdb/RocksDBException");
static NEW_STATUS: Method = Method::constructor(&STATUS, c"(BBLjava/lang/String;)V");
static OF_STATUS: Method = Method::constructor(&EXCEPTION, c"(Lorg/rocksdb/Status;)V");
static OF_BOTH: Method = Method::constructor(&EXCEPTION, c"(Ljava/lang/String;Lorg/rocksdb/Status;)V");
static OF_MESSAGE: Method = Method::constructor(&EXCEPTION, c"(Ljava/lang/String;)V");

/// A `Status` object. An empty message is none: Java shows the code then.
pub fn status<'j>(env: Env<'j>, failure: Option<&Failure>) -> Result<Object<'j>, Fault> {
    let Some(failure) = failure else {
        return NEW_STATUS.make(env, &[Value::Byte(0), Value::Byte(0), Value::Null]);
    };
    status_of(env, failure.code(), Some(failure.message()).filter(|message| !message.is_empty()))
}

/// A status that callbacks tell. By default it is no error.
#[derive(Clone)]
pub struct Outcome {
    code: Code,
    state: Option<String>,
}

impl Default for Outcome {
    fn default() -> Outcome {
        Outcome::by_code(0, 0)
    }
}

impl Outcome {
    pub fn by_code(code: u8, subcode: u8) -> Outcome {
        Outcome { code: Code { code, subcode }, state: None }
    }

    pub fn of(failure: &Failure) -> Outcome {
        Outcome { code: failure.code(), state: Some(failure.message().to_owned()) }
    }

    pub fn object<'j>(&self, env: Env<'j>) -> Result<Object<'j>, Fault> {
        status_of(env, self.code, self.state.as_deref())
    }
}

/// Looks the class up, for callbacks (J5).
pub fn find_status(env: Env<'_>) -> Result<(), Fault> {
    NEW_STATUS.find(env)
}

fn status_of<'j>(env: Env<'j>, code: Code, state: Option<&str>) -> Result<Object<'j>, Fault> {
    let state = state.map(|state| env.new_text(state)).transpose()?;
    let arguments = [Value::Byte(code.code as i8), Value::Byte(code.subcode as i8), state.into()];
    let made = NEW_STATUS.make(env, &arguments)?;
    if let Some(state) = state {
        env.delete(state);
    }
    Ok(made)
}

impl Fault {
    pub fn illegal(what: impl Into<String>) -> Fault {
        Fault::Illegal(what.into())
    }

    /// More bytes or elements than Java's arrays have.
    #[cold]
    pub fn too_long() -> Fault {
        Fault::Message("Requested array size exceeds VM limit".to_owned())
    }

    /// A native or an option that is not there.
    #[cold]
    pub fn not_implemented(what: impl Display) -> Fault {
        Fault::Status(Failure::not_implemented(format!("{what} is not there in Spillway")))
    }

    pub fn not_found() -> Fault {
        Fault::Status(Failure::not_found(""))
    }

    /// Leaves the exception pending.
    #[cold]
    pub fn throw(&self, env: Env<'_>) {
        let thrown = match self {
            Fault::Status(failure) => {
                status(env, Some(failure)).and_then(|status| OF_STATUS.make(env, &[Value::Object(status)]))
            }
            Fault::Told(what, code) => status_of(env, *code, None).and_then(|status| match what {
                Some(what) => OF_BOTH.make(env, &[Value::Object(env.new_text(what)?), Value::Object(status)]),
                None => OF_STATUS.make(env, &[Value::Object(status)]),
            }),
            Fault::Message(what) => env.new_text(what).and_then(|what| OF_MESSAGE.make(env, &[Value::Object(what)])),
            Fault::Illegal(what) => return env.throw_named(c"java/lang/IllegalArgumentException", what),
            Fault::State(what) => return env.throw_named(c"java/lang/IllegalStateException", what),
            Fault::OutOfMemory => return env.throw_named(c"java/lang/OutOfMemoryError", "no memory for a reference"),
            Fault::Pending => return,
        };
        // Without the exception's class or memory for it, the JVM's own exception is pending.
        if let Ok(exception) = thrown {
            env.throw_object(exception);
        }
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Fault {
        Fault::Status(failure)
    }
}

impl From<spillway::internal::Error> for Fault {
    fn from(error: spillway::internal::Error) -> Fault {
        Fault::Status(error.into())
    }
}
