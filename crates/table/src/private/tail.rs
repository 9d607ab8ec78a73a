//! The tail: checksums of extents, properties, footer.

use base::coding::{put_u32, put_u64};
use base::{Error, Result};

use super::extents;
use super::footer::{END_BYTES, Footer, Format, PROPERTIES_BYTES_MAX};
use crate::Properties;
use crate::block::Block;

/// A decoded tail in bytes `B`.
pub(crate) struct Tail<F, B> {
    pub(crate) footer: F,
    pub(crate) properties: Properties,
    /// From the checksums to the end of the file.
    bytes: B,
}

/// The tail of a table: `sums`, properties, and the footer `make` gives for the bytes of the properties.
///
/// # Errors
/// `InvalidArgument`: properties above the readers' limit.
pub(crate) fn encode_tail<F: Footer>(
    sums: Vec<u8>,
    properties: &Properties,
    make: impl FnOnce(u64) -> F,
) -> Result<Vec<u8>> {
    let properties = properties.encode();
    let bytes = properties.len() as u64;
    if bytes > PROPERTIES_BYTES_MAX {
        return Err(Error::invalid_argument(format!("properties of {bytes} bytes")));
    }
    let mut tail = sums;
    tail.extend_from_slice(&properties);
    tail.extend_from_slice(&make(bytes).encode_covered());
    let crc = extents::checksum(&tail);
    put_u32(&mut tail, crc);
    put_u32(&mut tail, F::FORMAT.version);
    put_u64(&mut tail, F::FORMAT.magic);
    Ok(tail)
}

/// `len` bytes of a mapped file at `at`.
///
/// # Errors
/// `Corruption`: the file ends before.
pub(crate) fn part_of(whole: &[u8], at: u64, len: usize) -> Result<&[u8]> {
    let start = usize::try_from(at).ok();
    let part = start.and_then(|start| whole.get(start..start.checked_add(len)?));
    part.ok_or_else(|| Error::corruption(format!("the file ends before byte {at} and {len} more")))
}

impl<F: Footer, B: AsRef<[u8]>> Tail<F, B> {
    /// Reads the tail of a file of `file_bytes`. `read` returns the bytes at an offset, of the given length.
    ///
    /// # Errors
    /// `Corruption`, `Unsupported`. Errors of `read`.
    pub(crate) fn read(file_bytes: u64, read: impl Fn(u64, usize) -> Result<B>) -> Result<Self> {
        let Format { name, footer_bytes, .. } = F::FORMAT;
        let footer_at = file_bytes
            .checked_sub(footer_bytes as u64)
            .ok_or_else(|| Error::corruption(format!("{name} of {file_bytes} bytes is too short for a footer")))?;
        let footer = read(footer_at, footer_bytes)?;
        let (footer, crc) = F::decode(footer.as_ref(), file_bytes).map_err(|e| e.at_offset(footer_at))?;
        let at = footer.checksums_at();
        let len = usize::try_from(file_bytes - at)
            .map_err(|e| Error::unsupported("a table larger than the address space").with_source(e))?;
        let bytes = read(at, len)?;
        let covered = bytes.as_ref().get(..len.saturating_sub(END_BYTES)).unwrap_or_default();
        extents::check_tail(covered, crc).map_err(|e| e.at_offset(at))?;
        let properties_at = footer.properties_at();
        let properties = part_of(bytes.as_ref(), properties_at - at, footer.properties_bytes() as usize)?;
        let properties = Block::parse(properties.to_vec()).and_then(|block| Properties::decode(&block));
        let properties = properties.map_err(|e| e.at_offset(properties_at))?;
        Ok(Tail { footer, properties, bytes })
    }

    /// Checks all sections extent by extent, through `read`.
    ///
    /// # Errors
    /// `Corruption`, with the extent's offset. Errors of `read`.
    pub(crate) fn check_extents(&self, read: impl Fn(u64, usize) -> Result<B>) -> Result<()> {
        let (covered, step) = (self.footer.covered_bytes(), F::FORMAT.extent_bytes);
        let sums = self.bytes.as_ref().as_chunks::<4>().0;
        for (at, sum) in (0..covered).step_by(step).zip(sums) {
            let len = (covered - at).min(step as u64) as usize;
            extents::check(read(at, len)?.as_ref(), at, u32::from_le_bytes(*sum))?;
        }
        Ok(())
    }
}
