//! Reading the tail of a converted table: checksums of its image, properties and footer.

use std::path::Path;

use base::{Error, Result};

use super::footer::{EXTENT_BYTES, FOOTER_BYTES, Footer};
use crate::block::Block;
use crate::{Properties, extents};

/// A decoded tail.
pub(super) struct Tail {
    pub(super) footer: Footer,
    /// Of the image's extents.
    checksums: Vec<u32>,
    pub(super) properties: Properties,
}

impl Tail {
    /// Reads the tail of a file of `file_bytes`. `read` returns the bytes at an offset, of the given length.
    ///
    /// # Errors
    /// `Corruption`, `Unsupported`. Errors of `read`.
    pub(super) fn read<B: AsRef<[u8]>>(file_bytes: u64, read: impl Fn(u64, usize) -> Result<B>) -> Result<Tail> {
        let footer_at = file_bytes.checked_sub(FOOTER_BYTES as u64);
        let footer_at = footer_at.ok_or_else(|| {
            Error::corruption(format!("a converted table of {file_bytes} bytes is too short for a footer"))
        })?;
        let stored = read(footer_at, FOOTER_BYTES)?;
        let stored = stored.as_ref().first_chunk().ok_or_else(|| Error::corruption("a footer that ends early"))?;
        let (footer, crc) = Footer::decode(stored, file_bytes).map_err(|e| e.at_offset(footer_at))?;
        let len = usize::try_from(file_bytes - footer.checksums_at)
            .map_err(|e| Error::unsupported("a table larger than the address space").with_source(e))?;
        let tail = read(footer.checksums_at, len)?;
        Self::parse(footer, tail.as_ref(), crc).map_err(|e| e.at_offset(footer.checksums_at))
    }

    fn parse(footer: Footer, tail: &[u8], crc: u32) -> Result<Tail> {
        Footer::check_tail(tail, crc)?;
        let short = || Error::corruption("the table's tail ends early");
        let checksums_bytes = (footer.properties_at - footer.checksums_at) as usize;
        let (checksums, rest) = tail.split_at_checked(checksums_bytes).ok_or_else(short)?;
        let (properties, _) = rest.split_at_checked(footer.properties_bytes as usize).ok_or_else(short)?;
        let checksums = checksums.as_chunks::<4>().0.iter().map(|crc| u32::from_le_bytes(*crc)).collect();
        let properties = Properties::decode(&Block::parse(properties.to_vec())?)?;
        Ok(Tail { footer, checksums, properties })
    }

    /// Checks the image extent by extent, through `read`.
    ///
    /// # Errors
    /// `Corruption`, with the extent's offset. Errors of `read`.
    pub(super) fn check_image<B: AsRef<[u8]>>(
        &self,
        path: &Path,
        mut read: impl FnMut(u64, usize) -> Result<B>,
    ) -> Result<()> {
        let offsets = (0u64..).step_by(EXTENT_BYTES);
        for (&stored, at) in self.checksums.iter().zip(offsets) {
            let len = (self.footer.image_bytes - at).min(EXTENT_BYTES as u64) as usize;
            extents::check(read(at, len)?.as_ref(), at, stored).map_err(|e| e.at_path(path))?;
        }
        Ok(())
    }
}
