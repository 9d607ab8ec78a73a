//! Rewrites tables unable to take a sequence number as they are: tables of a database, and external tables of version 1.
//! Also tables whose values lack the times that the family's have: they get that of the ingest. The new table holds
//! the entries visible to a reader of the old table alone.
//!
//! RocksDB keeps such tables' own numbers, so it accepts them only if nothing in the database overlaps them. A
//! rewritten table is an ingest like any other: newer than all existing data, and invisible to older snapshots.

use std::sync::Arc;

use base::key;
use base::tombstone::RangeTombstone;
use base::{Error, FileNumber, Result, SeqNo, ValueKind};
use table::{BlockBasedTable, Table};

use super::inspect::read_options;
use super::progress::FileProgress;
use crate::compaction::entries::{EntryRules, EntryStream};
use crate::compaction::output::FamilyRules;
use crate::core::context::Context;
use crate::core::family::Family;
use crate::cursor::snapshot::CapturedSnapshots;
use crate::ingest::table_writer::TableWriter;
use crate::ttl::Stamps;

/// Entries between two checks for a cancel.
const CHECK_ENTRIES: usize = 256;

/// Writes the entries of `from` into the table `to`. Returns its size in bytes; `None`, and no file, if nothing is
/// left.
///
/// # Errors
/// `InvalidArgument`: a key needs several versions. `Closed`: cancelled. Errors of reading and writing.
pub(super) fn rewrite(
    context: &Context,
    family: &Family,
    from: &Arc<BlockBasedTable>,
    to: FileNumber,
    stamps: Option<&Stamps>,
    progress: &FileProgress<'_>,
) -> Result<Option<u64>> {
    let rules = FamilyRules::of(family);
    let tombstones: Vec<_> = from.tombstones().into_iter().collect();
    // No snapshot reads the old table: only the newest version of a key counts.
    let snapshots = CapturedSnapshots { snapshots: Vec::new(), visible: SeqNo::MAX };
    let entry_rules = EntryRules::in_level0(&rules, snapshots);
    let mut stream = EntryStream::new(from.clone().cursor(&read_options()), &tombstones, entry_rules);
    let mut writer = TableWriter::create_at(context.vfs.clone(), &context.table_path(to), &rules)?;
    let mut last_key: Vec<u8> = Vec::new();
    let mut internal_key: Vec<u8> = Vec::new();
    let mut entries = 0;
    while stream.advance()? {
        if entries % CHECK_ENTRIES == 0 {
            progress.check()?;
        }
        let (user_key, trailer) = key::split(stream.key()).expect("the stream's keys are whole");
        if entries > 0 && rules.order.user.equal(user_key, &last_key) {
            return Err(several_versions(user_key));
        }
        entries += 1;
        last_key.clear();
        last_key.extend_from_slice(user_key);
        internal_key.clear();
        key::append(&mut internal_key, user_key, SeqNo::ZERO, trailer as u8);
        match stamps.filter(|_| trailer as u8 == ValueKind::Value as u8 || trailer as u8 == ValueKind::Merge as u8) {
            Some(stamps) => writer.add_internal(&internal_key, &stamps.stamped(stream.value()))?,
            None => writer.add_internal(&internal_key, stream.value())?,
        }
    }
    for tombstone in stream.tombstones_out(None, None) {
        writer.add_tombstone(&RangeTombstone { seq: SeqNo::ZERO, ..tombstone })?;
    }
    if writer.entries() == 0 {
        return Ok(None);
    }
    Ok(Some(writer.finish()?.file_bytes))
}

/// Error for merge operands the family's operator does not combine, and single deletions under a newer entry.
fn several_versions(user_key: &[u8]) -> Error {
    Error::invalid_argument(format!(
        "the table needs several versions of the key \"{}\" (merge operands, single deletions), and all of a table that is \
         ingested has one sequence number: compact the database that it comes from first",
        user_key.escape_ascii()
    ))
}
