//! Opening a converted table: checks the whole file first (B1, B2).

use std::path::Path;
use std::sync::Arc;

use base::Result;
use memtable::Counts;
use memtable::image::reopen;
use vfs::{RandomFile, ReadMapping};

use super::ConvertedTable;
use super::footer::Footer;
use crate::private::{Tail, check_size, part_of};
use crate::verify::compare_counts;
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
        check_size(whole.len() as u64, file_bytes)?;
        let read = |at: u64, len: usize| part_of(whole, at, len);
        let tail = Tail::<Footer, _>::read(file_bytes, read)?;
        tail.check_extents(read)?;
        let Tail { footer: Footer { image_bytes, .. }, properties, .. } = tail;
        // The image begins the file.
        let reopened = reopen(mapping, image_bytes, &context.order.user).map_err(|e| e.at_offset(0))?;
        check_counts(&properties, &reopened.report.counts).map_err(|e| e.at_offset(0))?;
        Self::with(reopened.memtable, file, path, file_bytes, properties, context)
    }
}

/// # Errors
/// `Corruption`: the properties do not match the image.
pub(super) fn check_counts(properties: &Properties, counts: &Counts) -> Result<()> {
    compare_counts(
        "the image",
        &[
            ("entries", counts.entries, properties.entries),
            ("deletions", counts.deletions, properties.deletions),
            ("merge operands", counts.merge_operands, properties.merge_operands),
            ("range deletions", counts.range_deletions, properties.range_deletions),
        ],
    )
}
