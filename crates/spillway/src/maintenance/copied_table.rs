//! Copies a table entry by entry into a block-based one: for an export, and to salvage a damaged table.

use std::path::Path;
use std::sync::Arc;

use base::features::check_compression;
use base::options::CompressionKind;
use base::tombstone::RangeTombstone;
use base::{Cursor, FamilyId, InternalOrder, Result, key};
use table::{
    BlockBasedTableBuilder, DamageSink, PassedOver, Properties, Table, TableBuilder, TableBuilderConfig, TableOrigin,
    TableReadOptions, TableSummary,
};
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
    builder: BlockBasedTableBuilder,
    skipped: Option<&Arc<SkippedDamage>>,
) -> Result<TableSummary> {
    copy(from, Some(meta), builder, skipped)
}

/// Copies everything readable, passing over damage, which is noted in `skipped`.
///
/// # Errors
/// Errors of the file system.
pub(super) fn copy_all(
    from: &Arc<dyn Table>,
    builder: BlockBasedTableBuilder,
    skipped: &Arc<SkippedDamage>,
) -> Result<TableSummary> {
    copy(from, None, builder, Some(skipped))
}

/// The configuration of a copy of a table: its origin, its merge operator, and its compression, if this build has that.
pub(super) fn config_like(properties: &Properties, order: &InternalOrder, path: &Path) -> TableBuilderConfig {
    let is_written = |kind: &CompressionKind| {
        !matches!(kind, CompressionKind::Bzip2 | CompressionKind::Disable) && check_compression(*kind).is_ok()
    };
    let compression = properties.compression_kind().filter(is_written);
    let origin = TableOrigin {
        family: properties.family_id.map(FamilyId),
        family_name: properties.family_name.clone(),
        db_id: properties.db_id.clone(),
        ..TableOrigin::default()
    };
    TableBuilderConfig {
        order: order.clone(),
        merge_operator: properties.merge_operator.clone(),
        compression: compression.unwrap_or_default(),
        origin,
        ..TableBuilderConfig::new(path.to_owned())
    }
}

fn copy(
    from: &Arc<dyn Table>,
    meta: Option<&FileMeta>,
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
            let through = meta.map(|meta| meta.largest_user_key().to_vec());
            skipped.passed_over(PassedOver::new(error, last, through));
        }
        (status, _) => status?,
    }
    let tombstones = from.tombstones().map(|all| meta.map_or(all.clone(), |meta| meta.tombstones_inside(&all)));
    for fragment in tombstones.iter().flat_map(|all| all.fragments().to_vec()) {
        for seq in fragment.seqs {
            let (start, end) = (fragment.start.clone(), fragment.end.clone());
            builder.add_tombstone(&RangeTombstone { start, end, seq })?;
        }
    }
    Box::new(builder).finish()
}
