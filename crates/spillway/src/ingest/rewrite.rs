//! Tables that cannot be given a number as they are, because they come from a database or are of the first version of
//! tables for ingest: what a reader of them alone would see is written into one that can.
//!
//! RocksDB keeps such tables' own numbers, and so takes them only where nothing in the database overlaps them. Rewritten
//! they are an ingest like any other: newer than all there is, and seen by no older snapshot.

use std::sync::Arc;

use base::key;
use base::tombstone::RangeTombstone;
use base::{Error, FileNumber, Result, SeqNo};
use table::{BlockBasedTable, Table};

use super::inspect::read_options;
use super::progress::FileProgress;
use crate::compaction::entries::{EntryRules, EntryStream};
use crate::compaction::output::FamilyRules;
use crate::core::context::Context;
use crate::core::family::Family;
use crate::ingest::table_writer::TableWriter;
use crate::read::level::UserBounds;
use crate::read::snapshot::CapturedSnapshots;

/// Entries between two looks at whether the ingest goes on.
const CHECK_ENTRIES: usize = 256;

/// Writes what a table holds into the table `to`. Returns its size; `None` where nothing is left, and no file then.
///
/// # Errors
/// `InvalidArgument`: a key needs several versions. `Closed`: cancelled. What reading and writing yields.
pub(super) fn rewrite(
    context: &Context,
    family: &Family,
    from: &Arc<BlockBasedTable>,
    to: FileNumber,
    progress: &FileProgress<'_>,
) -> Result<Option<u64>> {
    let rules = FamilyRules::of(family);
    let tombstones: Vec<_> = from.tombstones().into_iter().collect();
    let entry_rules = EntryRules {
        order: rules.order.clone(),
        // Nobody reads the table as it was at some number: of each key the newest counts.
        snapshots: CapturedSnapshots { snapshots: Vec::new(), visible: SeqNo::MAX },
        merge_operator: rules.options.merge_operator.clone(),
        filter: None,
        level: 0,
        bottommost: false,
        key_not_below: None,
        range: UserBounds::default(),
        beneath: None,
    };
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
        writer.add_internal(&internal_key, stream.value())?;
    }
    for tombstone in stream.tombstones_out(None, None) {
        writer.add_tombstone(&RangeTombstone { seq: SeqNo::ZERO, ..tombstone })?;
    }
    if writer.entries() == 0 {
        return Ok(None);
    }
    Ok(Some(writer.finish()?.file_bytes))
}

/// Operands that the family's operator does not combine, and single deletions under a newer entry.
fn several_versions(user_key: &[u8]) -> Error {
    Error::invalid_argument(format!(
        "the table needs several versions of the key \"{}\" (merge operands, single deletions), and all of a table that is \
         ingested has one sequence number: compact the database that it comes from first",
        user_key.escape_ascii()
    ))
}
