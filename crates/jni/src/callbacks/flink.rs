//! `FlinkCompactionFilter`: drops expired state of Flink's.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use spillway::internal::extend::{CompactionFilter, FilterDecision};

use super::Callback;
use super::filter::Filter;
use super::logger::Logger;
use crate::boundary::argument::Closed;
use crate::boundary::class::{Class, Method};
use crate::boundary::natives;
use crate::boundary::object::{Object, Value};
use crate::fault::Fault;

/// The settings of a state's filters: given once, perhaps after its database was opened.
pub struct ConfigHolder(Arc<OnceLock<Config>>);

struct Config {
    state: StateType,
    /// Place of the timestamp in a value or element.
    timestamp_offset: usize,
    /// Milliseconds.
    ttl_ms: i64,
    query_time_after_entries: i64,
    elements: Elements,
}

#[derive(Clone, Copy, PartialEq)]
enum StateType {
    Disabled,
    Value,
    List,
}

/// How a list's elements are told apart.
enum Elements {
    Fixed(usize),
    /// By an object of Java's, one for each filter.
    ByJava(Callback),
}

static TIME: Class = Class::new(c"org/rocksdb/FlinkCompactionFilter$TimeProvider");
static NOW: Method = Method::new(&TIME, c"currentTimestamp", c"()J");
static LIST_FACTORY: Class = Class::new(c"org/rocksdb/FlinkCompactionFilter$ListElementFilterFactory");
static LIST_FILTER: Class = Class::new(c"org/rocksdb/FlinkCompactionFilter$ListElementFilter");
static CREATE: Method =
    Method::new(&LIST_FACTORY, c"createListElementFilter", c"()Lorg/rocksdb/FlinkCompactionFilter$ListElementFilter;");
static NEXT_UNEXPIRED: Method = Method::new(&LIST_FILTER, c"nextUnexpiredOffset", c"([BJJ)I");

const TIMESTAMP_BYTES: usize = 8;

/// A filter of one compaction.
struct FlinkFilter {
    config: Arc<OnceLock<Config>>,
    time: Callback,
    /// Java's filter of list elements, made at the first list.
    list: OnceLock<Option<Callback>>,
    /// Milliseconds since 1970 at the last query.
    now_ms: AtomicI64,
    /// Entries since then; the first entry asks.
    entries: AtomicI64,
}

impl Config {
    /// An entry without room for a timestamp has none, and stays.
    fn is_expired(&self, bytes: &[u8], now_ms: i64) -> bool {
        let end = self.timestamp_offset.saturating_add(TIMESTAMP_BYTES);
        let Some(timestamp) = bytes.get(self.timestamp_offset..end).and_then(|bytes| bytes.try_into().ok()) else {
            return false;
        };
        let written_ms = i64::from_be_bytes(timestamp);
        let room = if written_ms > 0 { i64::MAX - written_ms } else { i64::MAX };
        written_ms + self.ttl_ms.min(room) <= now_ms
    }

    /// Offset of the first element that has not expired; the list's length if none.
    fn first_unexpired(&self, list: &[u8], element_bytes: usize, now_ms: i64) -> usize {
        let mut at = 0;
        while let Some(rest) = list.get(at..).filter(|rest| !rest.is_empty()) {
            if !self.is_expired(rest, now_ms) {
                return at;
            }
            at += element_bytes.max(1);
        }
        list.len()
    }
}

impl FlinkFilter {
    /// The time as of some entries ago.
    fn now_ms(&self, config: &Config) -> Option<i64> {
        let entries = self.entries.fetch_add(1, Ordering::Relaxed);
        if entries == 0 || entries >= config.query_time_after_entries {
            self.entries.store(1, Ordering::Relaxed);
            let now_ms = self.time.call(|env, object| NOW.long(env, object, &[]))?;
            self.now_ms.store(now_ms, Ordering::Relaxed);
        }
        Some(self.now_ms.load(Ordering::Relaxed))
    }

    fn list_filter(&self, factory: &Callback) -> Option<&Callback> {
        let make = || {
            factory.call(|env, factory| {
                let made = CREATE.object(env, factory, &[])?;
                let made = made.ok_or_else(|| Fault::illegal("createListElementFilter() is null"))?;
                let filter = Callback::of(env, made);
                env.delete(made);
                filter
            })
        };
        self.list.get_or_init(make).as_ref()
    }

    fn list_decision(&self, config: &Config, list: &[u8], now_ms: i64) -> Option<FilterDecision> {
        let unexpired = match &config.elements {
            Elements::Fixed(bytes) => config.first_unexpired(list, *bytes, now_ms),
            Elements::ByJava(factory) => {
                let offset = self.list_filter(factory)?.call(|env, filter| {
                    let array = env.new_bytes(list)?;
                    let arguments = [Value::Object(array), Value::Long(config.ttl_ms), Value::Long(now_ms)];
                    let offset = NEXT_UNEXPIRED.int(env, filter, &arguments);
                    env.delete(array);
                    offset
                })?;
                usize::try_from(offset).ok()?
            }
        };
        Some(match list.get(unexpired..) {
            _ if unexpired == 0 => FilterDecision::Keep,
            Some(rest) if !rest.is_empty() => FilterDecision::ChangeValue(rest.to_vec()),
            _ => FilterDecision::Remove,
        })
    }

    /// Entries stay where Java did not answer.
    fn decide(&self, bytes: &[u8], is_operand: bool) -> FilterDecision {
        let Some(config) = self.config.get().filter(|config| config.state != StateType::Disabled) else {
            return FilterDecision::Keep;
        };
        if is_operand && config.state != StateType::List {
            return FilterDecision::Keep;
        }
        let Some(now_ms) = self.now_ms(config) else { return FilterDecision::Keep };
        match config.state {
            StateType::List => self.list_decision(config, bytes, now_ms).unwrap_or(FilterDecision::Keep),
            _ if config.is_expired(bytes, now_ms) => FilterDecision::Remove,
            _ => FilterDecision::Keep,
        }
    }
}

impl CompactionFilter for FlinkFilter {
    fn name(&self) -> &str {
        "FlinkCompactionFilter"
    }

    fn filter(&self, _level: usize, _key: &[u8], value: &[u8]) -> FilterDecision {
        self.decide(value, false)
    }

    fn filter_merge_operand(&self, _level: usize, _key: &[u8], operand: &[u8]) -> FilterDecision {
        self.decide(operand, true)
    }
}

fn state_type(number: i32) -> Result<StateType, Fault> {
    match number {
        0 => Ok(StateType::Disabled),
        1 => Ok(StateType::Value),
        2 => Ok(StateType::List),
        _ => Err(Fault::illegal(format!("FlinkCompactionFilter: state type {number}"))),
    }
}

natives! { "FlinkCompactionFilter";
    "createNewFlinkCompactionFilterConfigHolder" => fn(_env) -> Box<ConfigHolder> {
        Ok(Box::new(ConfigHolder(Arc::default())))
    }

    "disposeFlinkCompactionFilterConfigHolder" => fn(_env, holder: Closed<ConfigHolder>) -> () {
        drop(holder.0);
        Ok(())
    }

    /// The filter's own log lines are RocksDB's for debugging: there are none.
    "createNewFlinkCompactionFilter0" =>
    fn(env, holder: &ConfigHolder, time: Object<'_>, _logger: Option<&Logger>) -> Box<Filter> {
        NOW.find(env)?;
        let filter = FlinkFilter {
            config: holder.0.clone(),
            time: Callback::of(env, time)?,
            list: OnceLock::new(),
            now_ms: AtomicI64::new(0),
            entries: AtomicI64::new(0),
        };
        Ok(Box::new(Filter(Arc::new(filter))))
    }

    /// False if it was configured before.
    "configureFlinkCompactionFilter" => fn(
        env,
        holder: &ConfigHolder,
        state: i32,
        timestamp_offset: i32,
        ttl_ms: i64,
        query_time_after_entries: i64,
        element_bytes: i32,
        list_factory: Option<Object<'_>>,
    ) -> bool {
        let elements = match list_factory {
            Some(factory) => {
                CREATE.find(env)?;
                NEXT_UNEXPIRED.find(env)?;
                Elements::ByJava(Callback::of(env, factory)?)
            }
            None => Elements::Fixed(usize::try_from(element_bytes).unwrap_or(0)),
        };
        let config = Config {
            state: state_type(state)?,
            timestamp_offset: usize::try_from(timestamp_offset).unwrap_or(0),
            ttl_ms,
            query_time_after_entries,
            elements,
        };
        Ok(holder.0.set(config).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(timestamp_offset: usize, ttl_ms: i64) -> Config {
        let (state, elements) = (StateType::List, Elements::Fixed(12));
        Config { state, timestamp_offset, ttl_ms, query_time_after_entries: 1000, elements }
    }

    fn element(timestamp: i64) -> Vec<u8> {
        [&timestamp.to_be_bytes()[..], b"data"].concat()
    }

    #[test]
    fn values_expire_at_their_time() {
        let config = config(0, 100);
        assert!(config.is_expired(&element(1000), 1100) && !config.is_expired(&element(1000), 1099));
        assert!(!config.is_expired(b"short", 5000), "no room for a timestamp");
        assert!(!config.is_expired(&element(i64::MAX - 1), i64::MAX - 1), "the sum stays within a long");
        assert!(config.is_expired(&element(-1000), -900));
    }

    #[test]
    fn lists_lose_their_expired_head() {
        let config = config(0, 100);
        let list = [element(1), element(2), element(1000), element(3)].concat();
        assert_eq!(config.first_unexpired(&list, 12, 500), 24);
        assert_eq!(config.first_unexpired(&list, 12, 5000), list.len());
        assert_eq!(config.first_unexpired(&list, 12, 50), 0);
    }
}
