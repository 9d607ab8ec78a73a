//! Tables of every kind: a file's last eight bytes select its reader.

use std::path::Path;
use std::sync::Arc;

use base::Result;
#[cfg(not(feature = "topling"))]
use base::features;
use vfs::{IoClass, RandomFile, Vfs};

use crate::private::{FAST, ZIP};
use crate::{BlockBasedTable, ConvertedTable, Table, TableContext, converted};
#[cfg(feature = "topling")]
use crate::{FastTable, ZipTable};

/// The kind of a table's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Also of a file without a known magic.
    BlockBased,
    /// A memtable's image.
    Converted,
    /// A mapped table with an index to every entry.
    Fast,
    /// Values compressed one by one.
    Zip,
}

impl TableFormat {
    /// The format of a file expected to have `file_bytes` bytes. Reads only the magic and checks nothing.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn of(file: &dyn RandomFile, file_bytes: u64, class: IoClass) -> Result<TableFormat> {
        Ok(match magic_of(file, file_bytes, class)? {
            Some(magic) if magic == converted::FORMAT.magic => TableFormat::Converted,
            Some(magic) if magic == FAST.magic => TableFormat::Fast,
            Some(magic) if magic == ZIP.magic => TableFormat::Zip,
            _ => TableFormat::BlockBased,
        })
    }

    /// Whether RocksDB reads such tables.
    pub fn is_rocksdbs(self) -> bool {
        self == TableFormat::BlockBased
    }
}

/// An open table of some kind.
#[derive(Clone)]
pub enum AnyTable {
    /// RocksDB's format.
    BlockBased(Arc<BlockBasedTable>),
    /// A memtable's image.
    Converted(Arc<ConvertedTable>),
    /// A mapped table.
    #[cfg(feature = "topling")]
    Fast(Arc<FastTable>),
    /// Values compressed one by one.
    #[cfg(feature = "topling")]
    Zip(Arc<ZipTable>),
}

impl AnyTable {
    /// The table as readers see it.
    pub fn into_table(self) -> Arc<dyn Table> {
        match self {
            AnyTable::BlockBased(table) => table,
            AnyTable::Converted(table) => table,
            #[cfg(feature = "topling")]
            AnyTable::Fast(table) => table,
            #[cfg(feature = "topling")]
            AnyTable::Zip(table) => table,
        }
    }

    /// The table, whatever its kind.
    pub fn table(&self) -> &dyn Table {
        match self {
            AnyTable::BlockBased(table) => &**table,
            AnyTable::Converted(table) => &**table,
            #[cfg(feature = "topling")]
            AnyTable::Fast(table) => &**table,
            #[cfg(feature = "topling")]
            AnyTable::Zip(table) => &**table,
        }
    }
}

/// Opens the table in `file`, named `path` and expected to have `file_bytes` bytes. Converted, fast and zip tables are
/// mapped through `vfs`.
///
/// # Errors
/// As the `open` of the kind's table. `Unsupported`: a fast or zip table, and this build lacks the feature.
pub fn open_any(
    vfs: &dyn Vfs,
    file: Arc<dyn RandomFile>,
    path: &Path,
    file_bytes: u64,
    context: &TableContext,
) -> Result<AnyTable> {
    Ok(match TableFormat::of(&*file, file_bytes, context.class).map_err(|e| e.at_path(path))? {
        TableFormat::Converted => {
            let mapping = vfs.map_read(path)?;
            AnyTable::Converted(ConvertedTable::open(file, mapping, path, file_bytes, context)?)
        }
        #[cfg(feature = "topling")]
        TableFormat::Fast => AnyTable::Fast(FastTable::open(vfs.map_read(path)?, path, file_bytes, context)?),
        #[cfg(feature = "topling")]
        TableFormat::Zip => AnyTable::Zip(ZipTable::open(vfs.map_read(path)?, path, file_bytes, context)?),
        TableFormat::BlockBased => {
            let mapping = if context.maps_reads { Some(vfs.map_guarded(path)?) } else { None };
            let context = TableContext { mapping, ..context.clone() };
            AnyTable::BlockBased(BlockBasedTable::open(file, path, file_bytes, &context)?)
        }
        #[cfg(not(feature = "topling"))]
        TableFormat::Fast => return Err(features::missing(FAST.name, features::TOPLING).at_path(path)),
        #[cfg(not(feature = "topling"))]
        TableFormat::Zip => return Err(features::missing(ZIP.name, features::TOPLING).at_path(path)),
    })
}

/// The last eight bytes; `None` if the file is shorter.
fn magic_of(file: &dyn RandomFile, file_bytes: u64, class: IoClass) -> Result<Option<u64>> {
    let mut magic = [0; 8];
    let Some(at) = file_bytes.checked_sub(magic.len() as u64) else { return Ok(None) };
    let read = file.read_at(at, &mut magic, class)?;
    Ok((read == magic.len()).then(|| u64::from_le_bytes(magic)))
}
