//! Opening a zip table: checks the tail, bounds its numbers, reads index, codes and dictionary whole.

use std::path::Path;
use std::sync::Arc;

use base::Result;
use vfs::ReadMapping;

use super::ZipTable;
use super::footer::{Footer, INDEX, SHARED};
use super::index::GroupIndex;
use super::shared;
use crate::TableContext;
use crate::private::MappedTable;

impl ZipTable {
    /// Opens the table in `mapping`. `file_bytes` is the expected size. The file must not be written while the table
    /// is open.
    ///
    /// Takes time in proportion to the number of groups, one per 16 entries.
    ///
    /// # Errors
    /// `Corruption`: damage, or a size other than `file_bytes`. `Unsupported`: a newer format. `InvalidArgument`: the
    /// key order differs from the order of `context`.
    pub fn open(
        mapping: Arc<dyn ReadMapping>,
        path: &Path,
        file_bytes: u64,
        context: &TableContext,
    ) -> Result<Arc<ZipTable>> {
        let file = MappedTable::open(mapping, path, file_bytes, context);
        file.and_then(Self::with).map_err(|e| e.at_path(path)).map(Arc::new)
    }

    fn with(file: MappedTable<Footer>) -> Result<ZipTable> {
        let footer = &file.footer;
        let index = file.read_section(INDEX, |stored| {
            let index = shared::load(stored, footer.index_compression)?;
            GroupIndex::decode(&index, footer.groups(), footer.groups_bytes, &file.order.user)
        })?;
        let (values, keys) = file
            .read_section(SHARED, |stored| shared::decode(&shared::load(stored, footer.shared_compression)?, footer))?;
        let mut table = ZipTable { file, index, keys, values, last_key: None };
        table.last_key = table.read_last_key()?;
        Ok(table)
    }

    /// The user key of the last point entry.
    fn read_last_key(&self) -> Result<Option<Vec<u8>>> {
        let Some(group) = self.index.len().checked_sub(1) else { return Ok(None) };
        let place = self.index.place(group).start;
        let mut entries = self.group(group, true)?;
        let mut key = self.index.separator(group).to_vec();
        while entries.next(&mut key).map_err(|e| self.damaged(e, place))?.is_some() {}
        Ok(Some(key))
    }
}
