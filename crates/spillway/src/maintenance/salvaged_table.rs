//! The readable part of a damaged table file, as a new file: for an ingest of what is left.

use std::path::Path;
use std::sync::Arc;

use base::options::FamilyOptions;
use base::{ErrorKind, Result};
use table::{BlockBasedTableBuilder, PassedOver, Properties, TableBuilderConfig, TableContext};
use vfs::{IfExists, IoClass, UnreadableVfs, Vfs};

use crate::core::tables::open_in_any;
use crate::cursor::damage::SkippedDamage;
use crate::manage::copied_table::{config_like, copy_all};

/// What a salvage brought back.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SalvagedTable {
    /// Entries in the new file, range deletions included. 0: nothing could be read, and there is no new file.
    pub entries: u64,
    /// Entries of the damaged file, by its properties; `None` if those cannot be read.
    pub entries_before: Option<u64>,
    /// The damage. Keys in these parts are not in the new file.
    pub left_out: Vec<PassedOver>,
}

/// Reads every block of the table `from`. If it is damaged, writes its readable entries to the new file `to`. `None`
/// if it is whole. `options` are of the family whose keys it holds.
///
/// # Errors
/// `InvalidArgument`: its keys have another order. `Unsupported`: this version cannot read it. The file system's.
pub fn salvage_table(
    vfs: &Arc<dyn Vfs>,
    from: &Path,
    to: &Path,
    options: &FamilyOptions,
) -> Result<Option<SalvagedTable>> {
    let context = TableContext {
        prefix_extractor: options.prefix_extractor(),
        class: IoClass::Ingest,
        ..TableContext::default()
    };
    let source = UnreadableVfs::new(vfs.clone()); // what a device cannot read is damage
    let bytes = source.metadata(from)?.len;
    let opened = open_in_any(&*source, from, bytes, &context, [&options.order]);
    let (table, order) = match opened {
        Ok((any, order)) => (any.into_table(), order),
        Err(error) if error.kind() == ErrorKind::Corruption => {
            let left_out = vec![PassedOver::new(error.at_path(from), None, None)];
            return Ok(Some(SalvagedTable { entries: 0, entries_before: None, left_out }));
        }
        Err(error) => return Err(error),
    };
    let damage = match table.verify() {
        Ok(()) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::Corruption => error.at_path(from),
        Err(error) => return Err(error),
    };
    let properties = table.properties().clone();
    let config = TableBuilderConfig {
        options: options.table.clone(),
        prefix_extractor: options.prefix_extractor(),
        ingestable: is_ingestable(&properties),
        class: IoClass::Ingest,
        ..config_like(&properties, &order, to)
    };
    let builder = BlockBasedTableBuilder::new(vfs.create(to, IfExists::Fail)?, config)?;
    let skipped = SkippedDamage::new();
    let entries = copy_all(&table, &order, builder, &skipped)?.properties.entries;
    if entries == 0 {
        vfs.remove_file(to)?;
    }
    let mut left_out = skipped.list();
    if left_out.is_empty() {
        left_out.push(PassedOver::new(damage, None, None)); // of a filter, an index or the counts: no entry is missing
    }
    Ok(Some(SalvagedTable { entries, entries_before: Some(properties.entries), left_out }))
}

/// Whether the table was made to be ingested, and has no number yet.
fn is_ingestable(properties: &Properties) -> bool {
    properties.external.is_some_and(|external| external.global_seqno == 0)
}
