//! Opening a fast table: checks the tail and bounds its numbers. Other parts are checked when read.

use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use vfs::ReadMapping;

use super::FastTable;
use super::footer::{EXTENT_BYTES, FOOTER_BYTES, Footer};
use super::heads::Heads;
use crate::block::{Block, GlobalSeq};
use crate::extents::CheckedExtents;
use crate::filter::FilterQuestion;
use crate::reader::global_seq;
use crate::{Properties, TableContext, tombstones};

impl FastTable {
    /// Opens the table in `mapping`. `file_bytes` is the expected size. The file must not be written while the table is
    /// open.
    ///
    /// Takes time in proportion to the tail, an eight-thousandth of the file, and to the range tombstones.
    ///
    /// # Errors
    /// `Corruption`: damage, or a size other than `file_bytes`. `Unsupported`: a newer format. `InvalidArgument`: the
    /// key order differs from the order of `context`.
    pub fn open(
        mapping: Arc<dyn ReadMapping>,
        path: &Path,
        file_bytes: u64,
        context: &TableContext,
    ) -> Result<Arc<FastTable>> {
        Self::open_mapped(mapping, path, file_bytes, context).map_err(|e| e.at_path(path)).map(Arc::new)
    }

    fn open_mapped(
        mapping: Arc<dyn ReadMapping>,
        path: &Path,
        file_bytes: u64,
        context: &TableContext,
    ) -> Result<FastTable> {
        let actual = (*mapping).as_ref().len() as u64;
        if actual != file_bytes {
            return Err(Error::corruption(format!("the file has {actual} bytes instead of {file_bytes}")));
        }
        let (footer, properties) = read_tail((*mapping).as_ref())?;
        properties.check_order(&context.order.user)?;
        let heads = Heads::of(&context.order.user);
        if footer.heads != heads.number() {
            return Err(Error::corruption(format!("heads of kind {}, where the order has others", footer.heads)));
        }
        let mut table = FastTable {
            path: path.to_owned(),
            order: context.order.clone(),
            heads,
            global: global_seq(&properties, context)?,
            filter: (footer.filter_bytes > 0).then(|| FilterQuestion::new(&properties, context)),
            tombstones: None,
            extents: CheckedExtents::new(EXTENT_BYTES, footer.checksums_at()),
            statistics: context.statistics.clone(),
            mapping,
            footer,
            properties,
        };
        table.read_tombstones()?;
        Ok(table)
    }

    fn read_tombstones(&mut self) -> Result<()> {
        let (start, end) = (self.footer.tombstones_at() as usize, self.footer.checksums_at() as usize);
        if start < end {
            self.check_extents(start, end)?;
            let block = Block::parse(self.bytes().get(start..end).unwrap_or_default().to_vec())?;
            let tombstones = tombstones::decode(&block, self.global, &self.order.user);
            self.tombstones = tombstones.map_err(|e| e.at_offset(start as u64))?;
        }
        Ok(())
    }

    /// The sequence number of every key, if the table was ingested under one.
    pub(super) fn global(&self) -> GlobalSeq {
        self.global
    }
}

/// Footer and properties of a file.
///
/// # Errors
/// `Corruption`, `Unsupported`.
pub(super) fn read_tail(whole: &[u8]) -> Result<(Footer, Properties)> {
    let file_bytes = whole.len() as u64;
    let Some((_, stored)) = whole.split_last_chunk::<FOOTER_BYTES>() else {
        return Err(Error::corruption(format!("a fast table of {file_bytes} bytes is too short for a footer")));
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
