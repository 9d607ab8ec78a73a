//! The last 53 bytes of a table: checksum kind, format version, and the first handles to read.
//! Format: docs/format/table.md, "Footer".

use std::path::Path;

use base::coding::{Reader, put_u32, put_u64};
use base::options::ChecksumKind;
use base::{Error, Result};

use crate::converted;
use crate::handle::{BLOCK_TRAILER_BYTES, BlockHandle};
use crate::private::{FAST, Format, ZIP};

pub const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
/// LevelDB's magic, kept by format versions 0 and 1's oldest files.
const LEGACY_MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// RocksDB's plain tables, without blocks.
const PLAIN_MAGICS: [u64; 2] = [0x8242_2296_63bf_9564, 0x4f34_18eb_7a8f_13b8];

pub const FOOTER_BYTES: usize = 53;
pub const FORMAT_VERSION_MIN: u32 = 2;
pub const FORMAT_VERSION_MAX: u32 = 7;
/// A larger version is damage: RocksDB adds one in some years.
const FORMAT_VERSION_PLAUSIBLE_MAX: u32 = 15;
/// From here on the footer is checksummed, block checksums depend on their offset, and the metaindex names the index.
pub const FORMAT_VERSION_CONTEXT: u32 = 6;
/// From here on the properties name the compressions by number.
pub const FORMAT_VERSION_COMPRESSION_SET: u32 = 7;

const EXTENDED_MAGIC: [u8; 4] = [0x3e, 0x00, 0x7a, 0x00];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    pub checksum: ChecksumKind,
    pub format_version: u32,
    pub metaindex: BlockHandle,
    /// `None` from version 6 on: the metaindex names it.
    pub index: Option<BlockHandle>,
    /// Mixed into every block's checksum together with its offset; 0 for none, and before version 6.
    pub base_context_checksum: u32,
}

/// Whether a version that is not read cannot be the table's own. Version 0 has another magic number. From version 6 on a footer has an
/// extended magic number and a checksum, which matches under the right version.
fn is_version_damaged(footer: &[u8; FOOTER_BYTES], handles: &[u8], version: u32, file_bytes: u64) -> bool {
    if (FORMAT_VERSION_MIN..=FORMAT_VERSION_MAX).contains(&version) {
        return false;
    }
    let has_version = |version: u32| {
        let mut footer = *footer;
        footer.iter_mut().skip(41).zip(version.to_le_bytes()).for_each(|(to, from)| *to = from);
        Footer::decode(&footer, file_bytes, Path::new("")).is_ok()
    };
    let is_extended = handles.starts_with(&EXTENDED_MAGIC);
    let is_late = version > FORMAT_VERSION_MAX;
    version == 0 || is_late && !is_extended || (FORMAT_VERSION_CONTEXT..=FORMAT_VERSION_MAX).any(has_version)
}

impl Footer {
    /// Decodes the footer of a table of `file_bytes` bytes from `tail`, the end of the file at `path`.
    ///
    /// # Errors
    /// `Unsupported`: a table of another kind or of a version outside 2 to 7. `Corruption`: anything else.
    pub fn decode(tail: &[u8], file_bytes: u64, path: &Path) -> Result<Footer> {
        let Some((_, bytes)) = tail.split_last_chunk::<FOOTER_BYTES>() else {
            return Err(short_file(tail, path));
        };
        let footer_at = file_bytes.saturating_sub(FOOTER_BYTES as u64);
        let mut reader = Reader::new(bytes);
        let checksum = reader.u8("footer")?;
        let handles = reader.bytes(40, "footer")?;
        let format_version = reader.u32("footer")?;
        check_magic(reader.u64("footer")?, path).map_err(|e| e.at_offset(footer_at))?;
        if format_version > FORMAT_VERSION_PLAUSIBLE_MAX
            || is_version_damaged(bytes, handles, format_version, file_bytes)
        {
            let message = format!("the footer is damaged: table format version {format_version}");
            return Err(Error::corruption(message).at_offset(footer_at));
        }
        if !(FORMAT_VERSION_MIN..=FORMAT_VERSION_MAX).contains(&format_version) {
            let message = format!(
                "table format version {format_version} (versions {FORMAT_VERSION_MIN} to {FORMAT_VERSION_MAX} are read)"
            );
            return Err(Error::unsupported(message).at_offset(footer_at));
        }
        let Some(checksum) = ChecksumKind::from_number(checksum) else {
            return Err(Error::corruption(format!("unknown checksum type {checksum}")).at_offset(footer_at));
        };
        let footer = Footer {
            checksum,
            format_version,
            metaindex: BlockHandle::default(),
            index: None,
            base_context_checksum: 0,
        };
        let footer = if format_version < FORMAT_VERSION_CONTEXT {
            footer.with_handles(handles)
        } else {
            footer.with_context(handles, bytes, footer_at)
        }
        .map_err(|e| e.at_offset(footer_at))?;
        footer.metaindex.check_within(footer_at)?;
        if let Some(index) = footer.index {
            index.check_within(footer_at)?;
        }
        Ok(footer)
    }

    fn with_handles(self, handles: &[u8]) -> Result<Footer> {
        let mut reader = Reader::new(handles);
        let metaindex = BlockHandle::decode(&mut reader)?;
        let index = BlockHandle::decode(&mut reader)?;
        if reader.rest().iter().any(|&byte| byte != 0) {
            return Err(Error::corruption("the footer's padding is not zero"));
        }
        Ok(Footer { metaindex, index: Some(index), ..self })
    }

    fn with_context(self, part: &[u8], footer: &[u8; FOOTER_BYTES], footer_at: u64) -> Result<Footer> {
        let mut reader = Reader::new(part);
        if reader.bytes(4, "footer")? != EXTENDED_MAGIC {
            return Err(Error::corruption("bad extended magic in the footer"));
        }
        let stored = reader.u32("footer")?;
        let base_context_checksum = reader.u32("footer")?;
        let size = u64::from(reader.u32("footer")?);
        if reader.rest().iter().any(|&byte| byte != 0) {
            return Err(Error::corruption("the footer's reserved bytes are not zero"));
        }
        let mut zeroed = *footer;
        if let Some(field) = zeroed.get_mut(5..9) {
            field.fill(0);
        }
        let computed =
            self.checksum.of_buffer(&zeroed).wrapping_add(context_modifier(base_context_checksum, footer_at));
        if self.checksum != ChecksumKind::None && computed != stored {
            return Err(Error::corruption(format!("footer checksum is {stored:#x}, computed {computed:#x}")));
        }
        let Some(offset) = footer_at.checked_sub(size + BLOCK_TRAILER_BYTES) else {
            return Err(Error::corruption(format!("metaindex of {size} bytes is larger than the file")));
        };
        Ok(Footer { metaindex: BlockHandle { offset, size }, base_context_checksum, ..self })
    }

    /// The addend to the checksum of a block at `offset`.
    pub fn context_modifier(&self, offset: u64) -> u32 {
        context_modifier(self.base_context_checksum, offset)
    }

    /// Encodes the footer. It follows the metaindex.
    ///
    /// # Errors
    /// `InvalidArgument`: from version 6 on, a metaindex of 4 GiB or more.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        out.push(self.checksum as u8);
        if self.format_version < FORMAT_VERSION_CONTEXT {
            self.metaindex.encode_to(&mut out);
            self.index.unwrap_or_default().encode_to(&mut out);
        } else {
            let Ok(size) = u32::try_from(self.metaindex.size) else {
                return Err(Error::invalid_argument("the metaindex of a table has 4 GiB or more"));
            };
            out.extend_from_slice(&EXTENDED_MAGIC);
            put_u32(&mut out, 0);
            put_u32(&mut out, self.base_context_checksum);
            put_u32(&mut out, size);
        }
        out.resize(41, 0);
        put_u32(&mut out, self.format_version);
        put_u64(&mut out, MAGIC);
        if self.format_version >= FORMAT_VERSION_CONTEXT {
            let context = self.context_modifier(self.metaindex.end());
            let sum = self.checksum.of_buffer(&out).wrapping_add(context);
            if let Some(field) = out.get_mut(5..9) {
                field.copy_from_slice(&sum.to_le_bytes());
            }
        }
        Ok(out)
    }
}

/// The addend to a checksum at `offset`, given a table's base.
pub fn context_modifier(base: u32, offset: u64) -> u32 {
    if base == 0 { 0 } else { base ^ (offset as u32).wrapping_add((offset >> 32) as u32) }
}

fn check_magic(magic: u64, path: &Path) -> Result<()> {
    let private = [converted::FORMAT, FAST, ZIP].into_iter().find(|format| format.magic == magic);
    if let Some(Format { name, .. }) = private {
        return Err(Error::unsupported(format!("{name}, not a block-based table")));
    }
    match magic {
        MAGIC => Ok(()),
        LEGACY_MAGIC => {
            Err(Error::unsupported("table of format version 0 (LevelDB's); rewrite it with RocksDB 7 or 8"))
        }
        _ if PLAIN_MAGICS.contains(&magic) => Err(Error::unsupported("plain table; only block-based tables are read")),
        _ => Err(Error::corruption(format!(
            "Bad table magic number: expected {MAGIC}, found {magic} in {}",
            path.display()
        ))),
    }
}

/// The error for a file too short for the footer: a legacy table's footer is 48 bytes.
fn short_file(tail: &[u8], path: &Path) -> Error {
    match tail.split_last_chunk::<8>() {
        Some((_, magic)) if u64::from_le_bytes(*magic) == LEGACY_MAGIC => {
            Error::unsupported("table of format version 0 (LevelDB's)")
        }
        _ => {
            Error::corruption(format!("file is too short ({} bytes) to be an sstable: {}", tail.len(), path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ErrorKind;

    fn footer() -> Footer {
        Footer {
            checksum: ChecksumKind::Xxh3,
            format_version: 5,
            metaindex: BlockHandle { offset: 700, size: 50 },
            index: Some(BlockHandle { offset: 300, size: 395 }),
            base_context_checksum: 0,
        }
    }

    #[test]
    fn a_footer_round_trips() {
        let with_context = Footer { format_version: 6, index: None, base_context_checksum: 0xabcd_ef01, ..footer() };
        for footer in [footer(), with_context] {
            let bytes = footer.encode().expect("small");
            assert_eq!(bytes.len(), FOOTER_BYTES);
            assert_eq!(Footer::decode(&bytes, 755 + 53, Path::new("t.sst")).expect("good"), footer);
            assert!(
                Footer::decode(&bytes, 754 + 53, Path::new("t.sst")).is_err(),
                "the metaindex would overlap the footer"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let kind = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = footer().encode().expect("small");
            change(&mut bytes);
            Footer::decode(&bytes, 1000, Path::new("t.sst")).expect_err("changed").kind()
        };
        assert_eq!(kind(&|b| b[45..].copy_from_slice(&LEGACY_MAGIC.to_le_bytes())), ErrorKind::Unsupported);
        assert_eq!(kind(&|b| b[45..].copy_from_slice(&PLAIN_MAGICS[0].to_le_bytes())), ErrorKind::Unsupported);
        assert_eq!(kind(&|b| b[45] ^= 1), ErrorKind::Corruption);
        assert_eq!(kind(&|b| b[41] = 1), ErrorKind::Unsupported);
        // Where nothing contradicts the version: a later footer has a checksum that only its reader knows.
        assert_eq!(kind(&|b| b[41] = 8), ErrorKind::Corruption);
        assert_eq!(kind(&|b| b[41] = 0), ErrorKind::Corruption);
        assert_eq!(kind(&|b| b[..45].fill(0)), ErrorKind::Corruption);
        let with_context = Footer { format_version: 7, index: None, base_context_checksum: 0xabcd_ef01, ..footer() };
        let bytes = with_context.encode().expect("small");
        let kind = |version: u8, change: u8| {
            let mut bytes = bytes.clone();
            (bytes[41], bytes[9]) = (version, bytes[9] ^ change);
            Footer::decode(&bytes, 755 + 53, Path::new("t.sst")).expect_err("changed").kind()
        };
        assert_eq!((kind(15, 0), kind(1, 0), kind(0, 0)), [ErrorKind::Corruption; 3].into());
        assert_eq!(kind(8, 1), ErrorKind::Unsupported);
        let kind = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = footer().encode().expect("small");
            change(&mut bytes);
            Footer::decode(&bytes, 1000, Path::new("t.sst")).expect_err("changed").kind()
        };
        assert_eq!(kind(&|b| b[0] = 9), ErrorKind::Corruption);
        assert_eq!(kind(&|b| b.truncate(20)), ErrorKind::Corruption);
        assert_eq!(kind(&|b| b[40] = 1), ErrorKind::Corruption);
    }

    #[test]
    fn a_context_modifier_mixes_both_halves_of_the_offset() {
        assert_eq!(context_modifier(0, 0x1234), 0);
        assert_eq!(context_modifier(0xff00, 0x3_0000_0001), 0xff00 ^ 4);
    }
}
