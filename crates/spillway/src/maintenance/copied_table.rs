//! Copies a table entry by entry into a block-based one: for an export, and to salvage a damaged table.

use std::sync::Arc;

use base::tombstone::RangeTombstone;
use base::{Cursor, Result, key};
use table::{BlockBasedTableBuilder, DamageSink, PassedOver, Table, TableBuilder, TableReadOptions, TableSummary};
use vfs::IoClass;

use crate::read::damage::SkippedDamage;
use crate::version::table_file::FileMeta;

/// Copies all entries and range tombstones inside the bounds of `meta`. With `skipped`, passes over damage and notes it
/// there.
///
/// # Errors
/// Without `skipped`, damage. Errors of the file system.
pub(super) fn copy_table(
    from: &Arc<dyn Table>,
    meta: &FileMeta,
    mut builder: BlockBasedTableBuilder,
    skipped: Option<&Arc<SkippedDamage>>,
) -> Result<TableSummary> {
    let options = TableReadOptions {
        fill_cache: false,
        class: IoClass::Other,
        skip_damaged: skipped.map(|skipped| skipped.clone() as _),
        ..TableReadOptions::default()
    };
    let mut cursor = from.clone().cursor(&options);
    let mut valid = cursor.seek_to_first();
    let mut last = None;
    while valid {
        builder.add(cursor.key(), cursor.value())?;
        if skipped.is_some() {
            last = Some(key::user_key(cursor.key()).to_vec());
        }
        valid = cursor.next();
    }
    match (cursor.status(), skipped) {
        (Err(error), Some(skipped)) => {
            let through = Some(meta.largest_user_key().to_vec());
            skipped.passed_over(PassedOver::new(error, last, through));
        }
        (status, _) => status?,
    }
    for fragment in from.tombstones().iter().flat_map(|all| meta.tombstones_inside(all).fragments().to_vec()) {
        for seq in fragment.seqs {
            let (start, end) = (fragment.start.clone(), fragment.end.clone());
            builder.add_tombstone(&RangeTombstone { start, end, seq })?;
        }
    }
    Box::new(builder).finish()
}
