//! Tables of every kind: which reader a file needs, its last eight bytes tell.

use std::path::Path;
use std::sync::Arc;

use base::Result;
use vfs::{IoClass, RandomFile, Vfs};

use crate::converted;
use crate::{BlockBasedTable, ConvertedTable, Table, TableContext};

/// An open table of some kind.
#[derive(Clone)]
pub enum AnyTable {
    BlockBased(Arc<BlockBasedTable>),
    Converted(Arc<ConvertedTable>),
}

impl AnyTable {
    /// The table as readers see it.
    pub fn into_table(self) -> Arc<dyn Table> {
        match self {
            AnyTable::BlockBased(table) => table,
            AnyTable::Converted(table) => table,
        }
    }

    pub fn table(&self) -> &dyn Table {
        match self {
            AnyTable::BlockBased(table) => &**table,
            AnyTable::Converted(table) => &**table,
        }
    }
}

/// Opens the table in `file`, whose name is `path` and which has `file_bytes` bytes as far as the caller knows. A
/// converted table is mapped, by way of `vfs`.
///
/// # Errors
/// As [`BlockBasedTable::open`] and [`ConvertedTable::open`].
pub fn open_any(
    vfs: &dyn Vfs,
    file: Arc<dyn RandomFile>,
    path: &Path,
    file_bytes: u64,
    context: &TableContext,
) -> Result<AnyTable> {
    if magic_of(&*file, file_bytes, context.class).map_err(|e| e.at_path(path))? == Some(converted::MAGIC) {
        let mapping = vfs.map_read(path)?;
        return Ok(AnyTable::Converted(ConvertedTable::open(file, mapping, path, file_bytes, context)?));
    }
    Ok(AnyTable::BlockBased(BlockBasedTable::open(file, path, file_bytes, context)?))
}

/// The last eight bytes; `None` of a shorter file.
fn magic_of(file: &dyn RandomFile, file_bytes: u64, class: IoClass) -> Result<Option<u64>> {
    let mut magic = [0; 8];
    let Some(at) = file_bytes.checked_sub(magic.len() as u64) else { return Ok(None) };
    let read = file.read_at(at, &mut magic, class)?;
    Ok((read == magic.len()).then(|| u64::from_le_bytes(magic)))
}
