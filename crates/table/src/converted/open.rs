//! Opening a converted table: checks the whole file first (B1, B2).

use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use memtable::image::{Expected, Report, reopen};
use vfs::{RandomFile, ReadMapping};

use super::tail::Tail;
use super::{ConvertedTable, Parts};
use crate::{Properties, TableContext};

impl ConvertedTable {
    /// Opens the table in `file`; `mapping` maps all of it, and `file_bytes` is its expected size. The file must not be
    /// written while the table is open.
    ///
    /// Takes time in proportion to the file: compares all checksums and follows every reference.
    ///
    /// # Errors
    /// `Corruption`: damage, or a size other than `file_bytes`. `Unsupported`: a newer format. `InvalidArgument`: the
    /// key order differs from the order of `context`.
    pub fn open(
        file: Arc<dyn RandomFile>,
        mapping: Arc<dyn ReadMapping>,
        path: &Path,
        file_bytes: u64,
        context: &TableContext,
    ) -> Result<Arc<ConvertedTable>> {
        Self::open_mapped(file, mapping, path, file_bytes, context).map_err(|e| e.at_path(path)).map(Arc::new)
    }

    fn open_mapped(
        file: Arc<dyn RandomFile>,
        mapping: Arc<dyn ReadMapping>,
        path: &Path,
        file_bytes: u64,
        context: &TableContext,
    ) -> Result<ConvertedTable> {
        let whole = (*mapping).as_ref();
        if whole.len() as u64 != file_bytes {
            return Err(Error::corruption(format!("the file has {} bytes instead of {file_bytes}", whole.len())));
        }
        let read = |at: u64, len: usize| part_of(whole, at, len);
        let tail = Tail::read(file_bytes, read)?;
        tail.check_image(path, read)?;
        let expected = Expected { representation: None, order: context.order.user.clone() };
        let image_bytes = tail.footer.image_bytes;
        let reopened = reopen(mapping, image_bytes, &expected)?;
        check_counts(&tail.properties, &reopened.report)?;
        let parts = Parts {
            file,
            path: path.to_owned(),
            file_bytes,
            properties: tail.properties,
            order: context.order.clone(),
            values: context.values.clone(),
        };
        Self::with(reopened.memtable, parts)
    }
}

fn part_of(whole: &[u8], at: u64, len: usize) -> Result<&[u8]> {
    let start = usize::try_from(at).ok();
    let part = start.and_then(|start| whole.get(start..start.checked_add(len)?));
    part.ok_or_else(|| Error::corruption(format!("the file ends before byte {at} and {len} more")))
}

/// # Errors
/// `Corruption`: the properties do not match the image.
pub(super) fn check_counts(properties: &Properties, report: &Report) -> Result<()> {
    let pairs = [
        ("entries", report.entries, properties.entries),
        ("deletions", report.deletions, properties.deletions),
        ("merge operands", report.merge_operands, properties.merge_operands),
        ("range deletions", report.range_deletions, properties.range_deletions),
    ];
    for (what, counted, stored) in pairs {
        if counted != stored {
            return Err(Error::corruption(format!("the image has {counted} {what}, its properties say {stored}")));
        }
    }
    Ok(())
}
