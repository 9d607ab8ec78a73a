//! The traits by which users extend the engine: merge operators, compaction filters, prefix extractors, listeners.
//! Comparators have a file of their own.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Error;
use crate::key::FileNumber;
use crate::options::InfoLogLevel;

/// Combines operands written by `merge` with the value below them.
pub trait MergeOperator: Send + Sync {
    /// Stored with the family and checked at open.
    fn name(&self) -> &str;

    /// How OPTIONS files and option strings spell it: the name, with parameters where there are any
    /// (`{id=StringAppendOperator;delimiter=\:;}`).
    fn option_string(&self) -> String {
        crate::options::string::escape(self.name())
    }

    /// The value that results from `existing` (`None` where there is none) and `operands`, oldest first. `None` means
    /// that the operands cannot be applied: the read that needed them fails with `Corruption`.
    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>>;

    /// One operand that does what `older` followed by `newer` would, or `None` where they are to be kept apart.
    fn partial_merge(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// What a compaction filter makes of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterDecision {
    Keep,
    Remove,
    ChangeValue(Vec<u8>),
    /// Drops this and every entry up to, not including, the given user key.
    RemoveAndSkipUntil(Vec<u8>),
}

/// Looks at values as compactions pass by. Entries that a snapshot can see are not shown to it.
pub trait CompactionFilter: Send + Sync {
    fn name(&self) -> &str;

    fn filter(&self, level: usize, key: &[u8], value: &[u8]) -> FilterDecision;

    /// The same for a merge operand; `ChangeValue` and `RemoveAndSkipUntil` are taken as `Keep`.
    fn filter_merge_operand(&self, _level: usize, _key: &[u8], _operand: &[u8]) -> FilterDecision {
        FilterDecision::Keep
    }
}

/// What is known of a compaction before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionFilterContext {
    /// It takes in every table of the family.
    pub is_full: bool,
    /// Somebody asked for it.
    pub is_manual: bool,
}

/// Makes a filter for each compaction, or for each part of one that runs beside others.
pub trait CompactionFilterFactory: Send + Sync {
    fn name(&self) -> &str;

    /// The filter, or `None` where the compaction needs none.
    fn create(&self, context: CompactionFilterContext) -> Option<Arc<dyn CompactionFilter>>;
}

/// The part of a key that prefix filters and prefix iteration go by.
pub trait PrefixExtractor: Send + Sync {
    /// Stored in every table; a filter made by another extractor is not consulted.
    fn name(&self) -> String;

    /// The prefix of `key`, or `None` where the key is outside the extractor's domain.
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]>;
}

/// `fixed:N` (exactly the first N bytes; shorter keys are out of domain) and `capped:N` (at most the first N bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltinPrefix {
    Fixed(usize),
    Capped(usize),
}

impl BuiltinPrefix {
    /// Reads RocksDB's spellings: `fixed:8`, `rocksdb.FixedPrefix.8`, `capped:8`, `rocksdb.CappedPrefix.8`.
    pub fn parse(text: &str) -> Option<BuiltinPrefix> {
        let number = |prefix: &str| text.strip_prefix(prefix).and_then(|n| n.parse().ok());
        if let Some(len) = number("fixed:").or_else(|| number("rocksdb.FixedPrefix.")) {
            return Some(BuiltinPrefix::Fixed(len));
        }
        let len = number("capped:").or_else(|| number("rocksdb.CappedPrefix."))?;
        Some(BuiltinPrefix::Capped(len))
    }
}

impl PrefixExtractor for BuiltinPrefix {
    fn name(&self) -> String {
        match self {
            BuiltinPrefix::Fixed(len) => format!("rocksdb.FixedPrefix.{len}"),
            BuiltinPrefix::Capped(len) => format!("rocksdb.CappedPrefix.{len}"),
        }
    }

    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        match *self {
            BuiltinPrefix::Fixed(len) => key.get(..len),
            BuiltinPrefix::Capped(len) => Some(key.get(..len).unwrap_or(key)),
        }
    }
}

/// What becomes of entries of a family's queue when they are flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushWay {
    /// They are written into a table.
    Rewrite,
    /// The memory of a memtable becomes a table.
    Convert,
    /// Ingested tables are given levels.
    Link,
}

impl FlushWay {
    pub fn name(self) -> &'static str {
        match self {
            FlushWay::Rewrite => "rewrite",
            FlushWay::Convert => "convert",
            FlushWay::Link => "link",
        }
    }
}

/// Something that happened. Listeners are called off every lock, by the thread it happened on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    FlushBegin {
        family: String,
    },
    FlushEnd {
        family: String,
        table: FileNumber,
        bytes: u64,
        duration_us: u64,
        way: FlushWay,
    },
    CompactionBegin {
        family: String,
        level: usize,
        output_level: usize,
        inputs: usize,
        bytes: u64,
    },
    CompactionEnd {
        family: String,
        output_level: usize,
        outputs: usize,
        bytes: u64,
        duration_us: u64,
    },
    /// Ingested tables are part of a family from now on, in its queue.
    Ingested {
        family: String,
        tables: usize,
        bytes: u64,
    },
    /// An ingested table was given a level, or, small and over a memtable, was written into a table of level 0 with it.
    TablePlaced {
        family: String,
        table: FileNumber,
        level: usize,
        bytes: u64,
    },
    TableCreated {
        path: PathBuf,
        bytes: u64,
    },
    FileDeleted {
        path: PathBuf,
    },
    StallChanged {
        family: String,
        cause: &'static str,
        delayed: bool,
        stopped: bool,
    },
    /// A job failed. After `NoSpace` [`RecoveryBegin`](Event::RecoveryBegin) follows; after others the database takes no more
    /// writes.
    BackgroundError {
        error: Error,
    },
    /// What failed for want of disk space is tried again until there is room. Writes go on, unless it was the MANIFEST that
    /// found none.
    RecoveryBegin {
        error: Error,
    },
    /// It succeeded, or is not wanted any more; `error` is what it had failed with.
    RecoveryEnd {
        error: Error,
    },
}

/// Hears of events while they happen.
///
/// # What a listener may do
/// Whatever called it goes on when it returns. A flush, a compaction or the upkeep that calls it may be what somebody waits
/// for: so from all events but `Ingested` it must not wait for the database. That rules out flushing, compacting, closing,
/// and writing: a write waits while flushes or compactions are behind, and while an ingest that stops writers waits for the
/// flush, which then waits for the listener, for ever. Reads are fine; so are writes with `no_slowdown`, which fail rather
/// than wait, and anything that is handed to another thread. `Ingested` comes from the thread that ingests, at its end:
/// there a listener may write as well.
pub trait EventListener: Send + Sync {
    fn on_event(&self, event: &Event);
}

/// Takes the lines of the event log, in place of the file `LOG`.
///
/// Called off every lock, by one thread at a time: by the one that does upkeep, by whoever opens or closes the database.
/// A slow logger holds up that thread. It must not wait for the database.
pub trait Logger: Send + Sync {
    /// Lines below it are not given, nor are those below the option `info_log_level`.
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Info
    }

    /// A line without its end. It says where it comes from, and neither when nor how much it matters.
    fn log(&self, level: InfoLogLevel, line: &str);
}

/// Takes nothing: a database with it writes no event log.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLog;

impl Logger for NoLog {
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Header
    }

    fn log(&self, _level: InfoLogLevel, _line: &str) {}
}

pub type Listeners = Vec<Arc<dyn EventListener>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_extractors_answer_to_rocksdbs_names() {
        let fixed = BuiltinPrefix::parse("rocksdb.FixedPrefix.3").expect("known");
        assert_eq!(fixed, BuiltinPrefix::Fixed(3));
        assert_eq!(fixed.prefix(b"ab"), None);
        assert_eq!(fixed.prefix(b"abcd"), Some(&b"abc"[..]));
        assert_eq!(BuiltinPrefix::parse("capped:3").expect("known").prefix(b"ab"), Some(&b"ab"[..]));
        assert_eq!(BuiltinPrefix::parse("noop"), None);
    }
}
