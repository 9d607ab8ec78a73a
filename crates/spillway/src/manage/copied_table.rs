//! Copies a table entry by entry into a block-based one: for an export, and to salvage a damaged table.

use std::path::Path;
use std::sync::Arc;

use base::features::check_compression;
use base::key::{self, ParsedKey};
use base::options::CompressionKind;
use base::tombstone::RangeTombstone;
use base::{Cursor, Error, FamilyId, InternalOrder, Result};
use table::{
    BlockBasedTableBuilder, DamageSink, PassedOver, Properties, Table, TableBuilder, TableBuilderConfig, TableOrigin,
    TableReadOptions, TableSummary,
};
use vfs::IoClass;

use crate::cursor::damage::SkippedDamage;
use crate::version::table_file::FileMeta;

/// Copies all entries and range tombstones inside the bounds of `meta`. With `skipped`, passes over damage, and over entries that
/// cannot be the table's, and notes it there.
///
/// # Errors
/// Without `skipped`, damage. Errors of the file system.
pub(crate) fn copy_table(
    from: &Arc<dyn Table>,
    meta: &FileMeta,
    order: &InternalOrder,
    builder: BlockBasedTableBuilder,
    skipped: Option<&Arc<SkippedDamage>>,
) -> Result<TableSummary> {
    copy(from, &Own { meta: Some(meta), order }, builder, skipped)
}

/// Copies everything readable, passing over damage, which is noted in `skipped`.
///
/// # Errors
/// Errors of the file system.
pub(crate) fn copy_all(
    from: &Arc<dyn Table>,
    order: &InternalOrder,
    builder: BlockBasedTableBuilder,
    skipped: &Arc<SkippedDamage>,
) -> Result<TableSummary> {
    copy(from, &Own { meta: None, order }, builder, Some(skipped))
}

/// The configuration of a copy of a table: its origin, its merge operator, and its compression, if this build has that.
pub(crate) fn config_like(properties: &Properties, order: &InternalOrder, path: &Path) -> TableBuilderConfig {
    let is_written = |kind: &CompressionKind| {
        !matches!(kind, CompressionKind::Bzip2 | CompressionKind::Disable) && check_compression(*kind).is_ok()
    };
    let compression = properties.compression_kind().filter(is_written);
    let origin = TableOrigin {
        family: properties.family_id.map(FamilyId),
        family_name: properties.family_name.clone(),
        value_times: properties.has_value_times(),
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

/// Tells a table's own entries from those of a block that a disk put in a wrong place: its checksum is right, too.
struct Own<'a> {
    meta: Option<&'a FileMeta>,
    order: &'a InternalOrder,
}

impl Own<'_> {
    /// `last`: the key before, or none.
    ///
    /// # Errors
    /// `Corruption`: the entry cannot be the table's.
    fn check(&self, last: &[u8], key: &[u8]) -> Result<()> {
        let another = |what| Err(Error::corruption(what));
        let Some(entry) = ParsedKey::parse(key) else { return another("an entry of an unknown kind") };
        if !last.is_empty() && self.order.compare(last, key).is_ge() {
            return another("keys are out of order");
        }
        let Some(meta) = self.meta else { return Ok(()) };
        // A virtual table is cut to its bounds.
        if self.order.compare(key, &meta.smallest).is_lt() || self.order.compare(&meta.largest, key).is_lt() {
            return another("a key lies outside of the bounds that the MANIFEST gives");
        }
        meta.check_number(entry.seq)
    }
}

fn copy(
    from: &Arc<dyn Table>,
    own: &Own<'_>,
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
    let (mut last, mut another) = (Vec::new(), Ok(()));
    while valid {
        let checked = if skipped.is_some() { own.check(&last, cursor.key()) } else { Ok(()) };
        if checked.is_ok() {
            builder.add(cursor.key(), cursor.value())?;
            last.clear();
            last.extend_from_slice(cursor.key());
        }
        another = another.and(checked);
        valid = cursor.next();
    }
    let meta = own.meta;
    match (cursor.status(), skipped) {
        (Err(error), Some(skipped)) => {
            let through = meta.map(|meta| meta.largest_user_key().to_vec());
            let read_to = (!last.is_empty()).then(|| key::user_key(&last).to_vec());
            skipped.passed_over(PassedOver::new(error, read_to, through));
        }
        (status, _) => status?,
    }
    let tombstones = from.tombstones().map(|all| meta.map_or(all.clone(), |meta| meta.tombstones_inside(&all)));
    for fragment in tombstones.iter().flat_map(|all| all.fragments().to_vec()) {
        for seq in fragment.seqs {
            let checked = meta.filter(|_| skipped.is_some()).map_or(Ok(()), |meta| meta.check_number(seq));
            if checked.is_ok() {
                let (start, end) = (fragment.start.clone(), fragment.end.clone());
                builder.add_tombstone(&RangeTombstone { start, end, seq })?;
            }
            another = another.and(checked);
        }
    }
    if let (Err(error), Some(skipped)) = (another, skipped) {
        // Which keys the table had in their place is unknown, and so is the origin of the other entries.
        skipped.passed_over(PassedOver::new(error.advise("entries of another table are left out"), None, None));
    }
    Box::new(builder).finish()
}
