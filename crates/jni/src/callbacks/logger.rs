//! Loggers of Java, and the one to standard error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use capi::options::Options;
use spillway::internal::extend;
use spillway::internal::options::InfoLogLevel;

use super::Callback;
use crate::boundary::argument::Closed;
use crate::boundary::class::{Class, Constant, Method};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::object::Value;
use crate::fault::Fault;

/// A logger. Databases keep it when the handle is closed.
pub struct Logger(Arc<Leveled>);

struct Leveled {
    /// Changed by Java at any time.
    level: AtomicU8,
    to: To,
}

enum To {
    Java(Callback),
    /// With this before each line.
    Stderr(String),
}

static LOGGER: Class = Class::new(c"org/rocksdb/Logger");
static LOG: Method = Method::new(&LOGGER, c"log", c"(Lorg/rocksdb/InfoLogLevel;Ljava/lang/String;)V");
static LEVEL: Class = Class::new(c"org/rocksdb/InfoLogLevel");

macro_rules! levels {
    ($($name:literal),+) => { [$( Constant::new(&LEVEL, $name, c"Lorg/rocksdb/InfoLogLevel;") ),+] };
}

/// By number.
static LEVELS: [Constant; 6] =
    levels!(c"DEBUG_LEVEL", c"INFO_LEVEL", c"WARN_LEVEL", c"ERROR_LEVEL", c"FATAL_LEVEL", c"HEADER_LEVEL");

fn level(number: u8) -> InfoLogLevel {
    InfoLogLevel::from_number(number).unwrap_or(InfoLogLevel::Header)
}

impl extend::Logger for Leveled {
    fn level(&self) -> InfoLogLevel {
        level(self.level.load(Ordering::Relaxed))
    }

    /// Headers are informative lines, as for RocksDB's loggers.
    fn log(&self, level: InfoLogLevel, line: &str) {
        let is_header = level == InfoLogLevel::Header;
        if is_header && self.level.load(Ordering::Relaxed) > InfoLogLevel::Info.number() {
            return;
        }
        let level = if is_header { InfoLogLevel::Info } else { level };
        let object = match &self.to {
            To::Java(object) => object,
            To::Stderr(prefix) => return eprintln!("{prefix}{}{line}", if prefix.is_empty() { "" } else { " " }),
        };
        object.call(|env, object| {
            let constant = LEVELS.get(usize::from(level.number())).ok_or_else(|| Fault::illegal("no such level"))?;
            let (level, text) = (constant.get(env)?, env.new_text(line)?);
            let logged = LOG.call(env, object, &[Value::Object(level), Value::Object(text)]);
            // An exception is pending perhaps: ending references is allowed then.
            env.delete(level);
            env.delete(text);
            logged
        });
    }
}

impl Logger {
    /// Of the object whose native is called.
    fn of_this(env: Env<'_>, number: u8) -> Result<Box<Logger>, Fault> {
        LOG.find(env)?;
        for constant in &LEVELS {
            env.delete(constant.get(env)?);
        }
        Ok(Logger::to(To::Java(Callback::of_this(env)?), number))
    }

    fn to(to: To, number: u8) -> Box<Logger> {
        Box::new(Logger(Arc::new(Leveled { level: AtomicU8::new(number), to })))
    }

    fn level(&self) -> i8 {
        self.0.level.load(Ordering::Relaxed) as i8
    }

    fn set_level(&self, number: i8) {
        self.0.level.store(number as u8, Ordering::Relaxed);
    }

    pub fn shared(&self) -> Arc<dyn extend::Logger> {
        self.0.clone()
    }
}

natives! { "Logger";
    "newLogger" => fn(env, level: i64) -> Box<Logger> {
        Logger::of_this(env, level.clamp(0, 5) as u8)
    }

    /// With the level of the options.
    "createNewLoggerOptions" | "createNewLoggerDbOptions" => fn(env, options: &Options) -> Box<Logger> {
        Logger::of_this(env, options.db.info_log_level.number())
    }

    "infoLogLevel" => fn(_env, logger: &Logger) -> i8 {
        Ok(logger.level())
    }

    "setInfoLogLevel" => fn(_env, logger: &Logger, level: i8) -> () {
        logger.set_level(level);
        Ok(())
    }

    "disposeInternal" => fn(_env, logger: Closed<Logger>) -> () {
        drop(logger.0);
        Ok(())
    }
}

pub mod to_stderr {
    use super::*;

    natives! { "util_StdErrLogger";
        "newStdErrLogger" => fn(_env, level: i8, prefix: Option<String>) -> Box<Logger> {
            Ok(Logger::to(To::Stderr(prefix.unwrap_or_default()), level as u8))
        }

        "infoLogLevel" => fn(_env, logger: &Logger) -> i8 {
            Ok(logger.level())
        }

        "setInfoLogLevel" => fn(_env, logger: &Logger, level: i8) -> () {
            logger.set_level(level);
            Ok(())
        }

        "disposeInternal" => fn(_env, logger: Closed<Logger>) -> () {
            drop(logger.0);
            Ok(())
        }
    }
}

/// The setters: two forms for jars of other versions.
macro_rules! setters {
    ($module:ident, $class:literal) => {
        pub mod $module {
            use super::*;

            natives! { $class;
                "setLogger__JJ" => fn(_env, options: &mut Options, logger: &Logger) -> () {
                    options.db.info_log = Some(logger.shared());
                    Ok(())
                }

                "setLogger__JJB" => fn(_env, options: &mut Options, logger: &Logger, _kind: i8) -> () {
                    options.db.info_log = Some(logger.shared());
                    Ok(())
                }
            }
        }
    };
}

setters!(of_options, "Options");
setters!(of_database_options, "DBOptions");
