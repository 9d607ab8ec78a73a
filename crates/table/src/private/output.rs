//! The file of a fast or zip table under construction.

use base::Result;
use vfs::AppendFile;

use super::extents::ExtentSums;
use super::footer::Footer;
use super::tail::encode_tail;
use crate::properties::Properties;
use crate::writer::{Sink, TableBuilderConfig};

/// Sizes of the parts after a kind's own sections, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MetaSizes {
    pub(crate) filter_bytes: u64,
    pub(crate) tombstones_bytes: u64,
    pub(crate) properties_bytes: u64,
}

/// The file, and the checksums of its extents.
pub(crate) struct Output {
    sink: Sink,
    sums: ExtentSums,
}

impl Output {
    /// # Errors
    /// `InvalidArgument`: the file is not empty.
    pub(crate) fn new<F: Footer>(file: Box<dyn AppendFile>, config: &TableBuilderConfig) -> Result<Output> {
        Ok(Output { sink: Sink::new(file, config)?, sums: ExtentSums::new(F::FORMAT.extent_bytes) })
    }

    pub(crate) fn offset(&self) -> u64 {
        self.sink.offset()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.sums.memory_bytes()
    }

    /// Appends a part of a section. Returns its bytes.
    pub(crate) fn append(&mut self, part: &[u8]) -> Result<u64> {
        self.sums.add(part);
        self.sink.append(part)?;
        Ok(part.len() as u64)
    }

    /// Writes the tail and syncs. Returns the file's bytes.
    pub(crate) fn finish<F: Footer>(self, properties: &Properties, footer: impl FnOnce(u64) -> F) -> Result<u64> {
        self.sink.finish(&encode_tail(self.sums.finish(), properties, footer)?)
    }
}
