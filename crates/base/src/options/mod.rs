//! Options: one table of rows per struct ([`row`]), read and written as option strings, JSON, YAML and RocksDB's OPTIONS
//! files.
//!
//! No option is ignored silently: an unknown name is an error (or, on request, a warning). A RocksDB option without
//! effect here ([`known`]) is kept with a warning if it only changes how something is done. If it changes the data
//! stored, kept or found, it is an error unless the caller sets `ignore_unsupported_options`.

mod apply;
mod cache_size;
mod choices;
mod collector;
mod compression;
mod db;
pub mod dispatcher;
pub mod document;
mod family;
mod file_mode;
mod filter;
pub mod ini;
pub mod kept;
pub mod known;
mod level_base;
mod members;
mod memtable;
mod parse;
mod partitioner;
pub mod row;
mod setting;
pub mod string;
mod styles;
mod suggest;
mod table;
mod table_factory;
mod table_kind;
#[cfg(test)]
mod tests;
pub mod tree;
mod value_times;
pub mod whole;
#[cfg(feature = "config")]
mod yaml;

pub use apply::{apply_both, apply_document, apply_string, apply_value, differences, keep_both, set_at_runtime};
pub use cache_size::CacheSize;
pub use choices::{
    ChecksumKind, CompactionPri, CompactionStopStyle, CompactionStyle, CompressionKind, CpuPriority,
    DataBlockIndexType, IndexType, InfoLogLevel, LogBacking, WalRecoveryMode,
};
pub use collector::{Collectors, CompactOnDeletion};
pub use compression::{CompressionList, CompressionOptions};
pub use db::DbOptions;
pub use document::{Syntax, to_value};
pub use family::{AgeLimits, FamilyOptions};
pub use file_mode::FileMode;
pub use filter::FilterPolicy;
pub use ini::{Audience, OptionsFile};
pub use level_base::LevelBase;
pub use members::Members;
pub use memtable::MemtableChoice;
pub use partitioner::SstPartitioner;
pub use row::{Documented, OptionGroup, rows};
pub use styles::{FifoOptions, UniversalOptions};
pub use suggest::nearest;
pub use table::TableOptions;
pub use table_factory::TableFactory;
pub use table_kind::{AutoSortOptions, TableClass, TableKind, ZipTableOptions};
pub use value_times::ValueTimes;
