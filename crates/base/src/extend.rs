//! Extension traits: merge operators, compaction filters, prefix extractors, listeners and loggers.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Error;
use crate::key::{FileNumber, SeqNo};
use crate::options::InfoLogLevel;

/// Combines operands written by `merge` with the value below them.
pub trait MergeOperator: Send + Sync {
    /// Stored with the family and checked at open.
    fn name(&self) -> &str;

    /// Spelling in OPTIONS files and option strings: the name, with any parameters
    /// (`{id=StringAppendOperator;delimiter=\:;}`).
    fn option_string(&self) -> String {
        crate::options::string::escape(self.name())
    }

    /// Applies `operands`, oldest first, to `existing` (`None`: no value) and returns the result. `None` if the
    /// operands cannot be applied; the read then fails with `Corruption`.
    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>>;

    /// Combines `older` and `newer` into one equivalent operand. `None` keeps both.
    fn partial_merge(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// Whether a result depends on the arguments alone, not for example on the time of day. Only then reads keep
    /// results in the cache.
    fn is_pure(&self) -> bool {
        false
    }
}

impl<T: MergeOperator + ?Sized> MergeOperator for Arc<T> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn option_string(&self) -> String {
        (**self).option_string()
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        (**self).full_merge(key, existing, operands)
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        (**self).partial_merge(key, older, newer)
    }

    fn is_pure(&self) -> bool {
        (**self).is_pure()
    }
}

/// A compaction filter's verdict on an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterDecision {
    /// The entry stays as it is.
    Keep,
    /// The entry is dropped, as by a deletion.
    Remove,
    /// The entry gets this value.
    ChangeValue(Vec<u8>),
    /// Drops this and every entry up to, not including, the given user key.
    RemoveAndSkipUntil(Vec<u8>),
}

/// Filters values during compactions. Entries visible to a snapshot bypass the filter.
pub trait CompactionFilter: Send + Sync {
    /// For the event log.
    fn name(&self) -> &str;

    /// The verdict on a value. `level`: the level of the compaction's output.
    fn filter(&self, level: usize, key: &[u8], value: &[u8]) -> FilterDecision;

    /// Filters a merge operand. `ChangeValue` changes it before operands are merged; `RemoveAndSkipUntil` counts as `Keep`.
    fn filter_merge_operand(&self, _level: usize, _key: &[u8], _operand: &[u8]) -> FilterDecision {
        FilterDecision::Keep
    }
}

/// Properties of a compaction, known before it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionFilterContext {
    /// The inputs are all tables of the family.
    pub is_full: bool,
    /// Requested by a caller.
    pub is_manual: bool,
}

/// Makes one filter per compaction, or per parallel subcompaction.
pub trait CompactionFilterFactory: Send + Sync {
    /// For the event log.
    fn name(&self) -> &str;

    /// The filter, or `None` for an unfiltered compaction.
    fn create(&self, context: CompactionFilterContext) -> Option<Arc<dyn CompactionFilter>>;
}

/// Extracts the prefix of a key for prefix filters and prefix iteration.
pub trait PrefixExtractor: Send + Sync {
    /// Stored in every table; filters of other extractors are ignored.
    fn name(&self) -> String;

    /// The prefix of `key`, or `None` if the key is outside the extractor's domain.
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]>;
}

/// `fixed:N` (exactly the first N bytes; shorter keys are out of domain), `capped:N` (at most the first N bytes) and
/// `rocksdb.Noop` (the whole key).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuiltinPrefix {
    /// The first bytes, so many; shorter keys have no prefix.
    Fixed(usize),
    /// The first bytes, at most so many.
    Capped(usize),
    /// The whole key.
    Noop,
}

impl BuiltinPrefix {
    const NOOP: &str = "rocksdb.Noop";

    /// Reads RocksDB's spellings: `fixed:8`, `rocksdb.FixedPrefix.8`, `capped:8`, `rocksdb.CappedPrefix.8`, `rocksdb.Noop`.
    pub fn parse(text: &str) -> Option<BuiltinPrefix> {
        if text == Self::NOOP {
            return Some(BuiltinPrefix::Noop);
        }
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
            BuiltinPrefix::Noop => Self::NOOP.to_owned(),
        }
    }

    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        match *self {
            BuiltinPrefix::Fixed(len) => key.get(..len),
            BuiltinPrefix::Capped(len) => Some(key.get(..len).unwrap_or(key)),
            BuiltinPrefix::Noop => Some(key),
        }
    }
}

/// Flush method for the flushables of a family's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlushWay {
    /// Entries are written to a table.
    Rewrite,
    /// The memtable's memory becomes a table.
    Convert,
    /// Ingested tables are assigned levels.
    Link,
}

impl FlushWay {
    /// The name in messages and events.
    pub fn name(self) -> &'static str {
        match self {
            FlushWay::Rewrite => "rewrite",
            FlushWay::Convert => "convert",
            FlushWay::Link => "link",
        }
    }
}

/// An event. Listeners run without any lock held, on the thread of the event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A flush begins.
    FlushBegin {
        /// Name of the family.
        family: String,
        /// A caller asked for it.
        by_hand: bool,
    },
    /// A flush ended with a table.
    FlushEnd {
        /// Name of the family.
        family: String,
        /// Number of the table.
        table: FileNumber,
        /// Bytes of the table.
        bytes: u64,
        /// Time of the flush, in microseconds.
        duration_us: u64,
        /// How the table was made.
        way: FlushWay,
        /// A caller asked for the flush.
        by_hand: bool,
        /// No entry of the table has a smaller sequence number.
        smallest_seq: SeqNo,
        /// The largest sequence number in the table.
        largest_seq: SeqNo,
    },
    /// A compaction begins.
    CompactionBegin {
        /// Name of the family.
        family: String,
        /// Uppermost level of the inputs.
        level: usize,
        /// Level of the new tables.
        output_level: usize,
        /// Number of input tables.
        inputs: usize,
        /// Bytes of the inputs.
        bytes: u64,
        /// The reason's name: `level0`, `level-size`, `manual`, and so on.
        reason: &'static str,
        /// The input tables, level by level.
        input_tables: Vec<FileNumber>,
    },
    /// A compaction ended.
    CompactionEnd {
        /// Name of the family.
        family: String,
        /// Level of the new tables.
        output_level: usize,
        /// Number of new tables.
        outputs: usize,
        /// Bytes of the new tables.
        bytes: u64,
        /// Time of the compaction, in microseconds.
        duration_us: u64,
        /// The reason's name.
        reason: &'static str,
        /// Uppermost level of the inputs.
        level: usize,
        /// The input tables, level by level.
        input_tables: Vec<FileNumber>,
        /// The new tables. Empty if the compaction was given up.
        output_tables: Vec<FileNumber>,
    },
    /// Ingested tables are now part of a family, in its queue.
    Ingested {
        /// Name of the family.
        family: String,
        /// Number of tables.
        tables: usize,
        /// Bytes of the tables.
        bytes: u64,
        /// Time of the ingest, its files' preparation included, in microseconds. Of all its families together.
        duration_us: u64,
        /// The caller's files, with the numbers of their tables. Files without entries have none.
        files: Vec<(PathBuf, FileNumber)>,
        /// The first sequence number of the ingest; 0 if it took none.
        first_seq: SeqNo,
    },
    /// An ingested table was assigned a level, or, if small and over a memtable, merged with it into a level-0 table.
    TablePlaced {
        /// Name of the family.
        family: String,
        /// Number of the table.
        table: FileNumber,
        /// Its level; 0 for a merged one.
        level: usize,
        /// Bytes of the table.
        bytes: u64,
    },
    /// A flush or compaction begins a table's file.
    TableBegin {
        /// Name of the family.
        family: String,
        /// The file.
        path: PathBuf,
        /// Written by a flush; else by a compaction.
        by_flush: bool,
    },
    /// A table's file was finished.
    TableCreated {
        /// Name of the family.
        family: String,
        /// The file.
        path: PathBuf,
        /// Bytes of the file.
        bytes: u64,
        /// Written by a flush; else by a compaction.
        by_flush: bool,
    },
    /// A memtable takes no more writes. Told by upkeep a moment later: its flush may have begun.
    MemtableSealed {
        /// Name of the family.
        family: String,
        /// No entry has a smaller sequence number.
        first_seq: SeqNo,
        /// Point entries, deletions included, and range deletions.
        entries: u64,
        /// Deletions of every kind.
        deletions: u64,
    },
    /// A file was deleted.
    FileDeleted {
        /// The file.
        path: PathBuf,
    },
    /// A write took longer than `slow_operation_micros`. Ten a second at most are told, on the writing thread, after the
    /// write: the listener delays that thread alone, and must neither write nor use the transaction
    /// that was committed.
    SlowWrite {
        /// Name of the first family that it wrote to.
        family: String,
        /// Bytes of the write.
        bytes: u64,
        /// Its time, in microseconds.
        duration_us: u64,
        /// Where the time went: a stall's cause or a step of the write, and microseconds.
        parts: Vec<(&'static str, u64)>,
        /// Slow writes that were left out since the one told before.
        left_out: u64,
        /// The trace that the thread worked for.
        trace_id: Option<String>,
    },
    /// Writers of a family are slowed down or stopped, or no longer are.
    StallChanged {
        /// Name of the family.
        family: String,
        /// The cause's name: `memtable-limit`, `l0-file-count`, and so on.
        cause: &'static str,
        /// Writers are slowed down.
        delayed: bool,
        /// Writers are stopped.
        stopped: bool,
        /// Writers were slowed down before.
        was_delayed: bool,
        /// Writers were stopped before.
        was_stopped: bool,
    },
    /// A job failed. [`RecoveryBegin`](Event::RecoveryBegin) follows `NoSpace`; after other errors the database refuses
    /// writes.
    BackgroundError {
        /// The failure.
        error: Error,
    },
    /// Work failed for lack of disk space and is retried until there is room. Writes go on, unless the MANIFEST write
    /// failed.
    RecoveryBegin {
        /// The failure.
        error: Error,
    },
    /// The retry succeeded or is no longer needed; `error` is the original failure.
    RecoveryEnd {
        /// The original failure.
        error: Error,
    },
}

/// Receives events as they happen.
///
/// # Restrictions
/// The calling thread blocks until the listener returns, and other threads may wait for its flush, compaction or
/// upkeep. On all events but `Ingested` a listener must not wait for the database: no flush, compaction, close or
/// write. A write waits while flushes or compactions are behind. It also waits during a writer-blocking ingest; if the
/// ingest waits for the listener's own flush, the result is a deadlock. Reads are fine, and so is work handed to
/// another thread. Writes with `no_slowdown` are fine: they fail instead of waiting. `Ingested` comes from the
/// ingesting thread at the end of the ingest; the listener may write there.
pub trait EventListener: Any + Send + Sync {
    /// Called for each event, in order of the events of one thread.
    fn on_event(&self, event: &Event);
}

/// Takes the lines of the event log, in place of the file `LOG`.
///
/// Called without any lock held, by one thread at a time: the upkeep thread, or a thread opening or closing the
/// database. A slow logger delays the thread. It must not wait for the database.
pub trait Logger: Send + Sync {
    /// Lowest level to log, asked for each line. The option `info_log_level` is of the file alone.
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Info
    }

    /// Logs `line`, without a line end. The line includes the source position, but neither time nor level.
    fn log(&self, level: InfoLogLevel, line: &str);
}

/// Discards every line: the database writes no event log.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLog;

impl Logger for NoLog {
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Header
    }

    fn log(&self, _level: InfoLogLevel, _line: &str) {}
}

/// Listeners, told in this order.
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
        let noop = BuiltinPrefix::parse("rocksdb.Noop").expect("known");
        assert_eq!((noop.name().as_str(), noop.prefix(b"abcd")), ("rocksdb.Noop", Some(&b"abcd"[..])));
        assert_eq!(BuiltinPrefix::parse("noop"), None);
    }
}
