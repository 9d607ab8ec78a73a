//! Opening a zip table: checks the tail, bounds its numbers, reads index, codes and dictionary whole.

use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use vfs::ReadMapping;

use super::ZipTable;
use super::footer::{EXTENT_BYTES, FOOTER_BYTES, Footer};
use super::index::GroupIndex;
use super::shared;
use crate::block::Block;
use crate::extents::CheckedExtents;
use crate::filter::FilterQuestion;
use crate::reader::global_seq;
use crate::{Properties, TableContext, tombstones};

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
        Self::open_mapped(mapping, path, file_bytes, context).map_err(|e| e.at_path(path)).map(Arc::new)
    }

    fn open_mapped(
        mapping: Arc<dyn ReadMapping>,
        path: &Path,
        file_bytes: u64,
        context: &TableContext,
    ) -> Result<ZipTable> {
        let whole = (*mapping).as_ref();
        if whole.len() as u64 != file_bytes {
            return Err(Error::corruption(format!("the file has {} bytes instead of {file_bytes}", whole.len())));
        }
        let (footer, properties) = read_tail(whole)?;
        let order = &context.order.user;
        properties.check_order(order)?;
        let parts = Parts { whole, extents: CheckedExtents::new(EXTENT_BYTES, footer.checksums_at()) };
        let index = parts.read(footer.index_at(), footer.index_bytes, |stored| {
            let index = shared::load(stored, footer.index_compression)?;
            GroupIndex::decode(&index, footer.groups(), footer.groups_bytes, order)
        })?;
        let (values, keys) = parts.read(footer.shared_at(), footer.shared_bytes, |stored| {
            shared::decode(&shared::load(stored, footer.shared_compression)?, &footer)
        })?;
        let global = global_seq(&properties, context)?;
        let tombstones = match footer.tombstones_bytes {
            0 => None,
            bytes => parts.read(footer.tombstones_at(), bytes, |stored| {
                tombstones::decode(&Block::parse(stored.to_vec())?, global, order)
            })?,
        };
        let mut table = ZipTable {
            path: path.to_owned(),
            order: context.order.clone(),
            global,
            filter: (footer.filter_bytes > 0).then(|| FilterQuestion::new(&properties, context)),
            tombstones,
            extents: parts.extents,
            index,
            keys,
            values,
            last_key: None,
            statistics: context.statistics.clone(),
            mapping,
            footer,
            properties,
        };
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

/// The parts of a file during open.
struct Parts<'a> {
    whole: &'a [u8],
    extents: CheckedExtents,
}

impl Parts<'_> {
    fn read<T>(&self, at: u64, len: u64, parse: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let range = at as usize..(at + len) as usize;
        self.extents.check(self.whole, range.clone())?;
        let part = self.whole.get(range).unwrap_or_default();
        parse(part).map_err(|e| e.at_offset(at))
    }
}

/// Footer and properties of a file.
///
/// # Errors
/// `Corruption`, `Unsupported`.
pub(super) fn read_tail(whole: &[u8]) -> Result<(Footer, Properties)> {
    let file_bytes = whole.len() as u64;
    let Some((_, stored)) = whole.split_last_chunk::<FOOTER_BYTES>() else {
        return Err(Error::corruption(format!("a zip table of {file_bytes} bytes is too short for a footer")));
    };
    let footer_at = file_bytes - FOOTER_BYTES as u64;
    let (footer, crc) = Footer::decode(stored, file_bytes).map_err(|e| e.at_offset(footer_at))?;
    let at = footer.checksums_at();
    let tail = whole.get(at as usize..).unwrap_or_default();
    Footer::check_tail(tail, crc).map_err(|e| e.at_offset(at))?;
    let properties_at = footer.properties_at();
    let properties = whole.get(properties_at as usize..footer_at as usize).unwrap_or_default();
    let properties = Block::parse(properties.to_vec()).and_then(|block| Properties::decode(&block));
    Ok((footer, properties.map_err(|e| e.at_offset(properties_at))?))
}
