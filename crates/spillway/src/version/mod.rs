//! Versions of a family's tables: edits, versions, the MANIFEST, and obsolete files.
//!
//! An edit ([`edit`]) is one change; a version ([`version`]) is the set of tables at one instant. The MANIFEST
//! ([`manifest`], [`recover`]) is the list of edits on disk. Format: docs/format/manifest.md. Keeps V1, V3, F2, Q3, D2
//! and the fence.

pub mod backup_dirs;
pub mod builder;
pub mod current;
pub mod dump;
pub mod edit;
pub mod edit_codec;
pub mod excise;
pub mod file_meta_codec;
pub mod file_name;
pub mod hot_reads;
pub(crate) mod ids;
pub mod incomplete;
pub mod level;
pub mod log_life;
pub mod manifest;
pub(crate) mod manifest_copy;
pub mod numbers;
pub mod purge;
pub mod recover;
pub mod replay;
pub mod session;
pub mod snapshot;
pub(crate) mod span;
pub mod table_file;
mod table_life;
pub mod table_store;
mod tail;
pub(crate) mod tailing;
#[expect(clippy::module_inception, reason = "the folder is named for what it revolves around")]
pub mod version;
pub(crate) mod work;

#[cfg(test)]
mod tests;
