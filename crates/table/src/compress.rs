//! Compresses blocks as they are written. Format: docs/format/table.md, "Compression".

use base::coding::put_varint64;
use base::options::{CompressionKind, CompressionOptions};
use base::{Error, Result};

use crate::codec::{self, Encoder};

/// Larger blocks are stored raw: readers refuse compressed blocks claiming more.
pub const COMPRESSED_BLOCK_BYTES_MAX: usize = 256 << 20;

/// One compression at one level. Its state is reused from block to block.
pub struct Compressor {
    kind: CompressionKind,
    /// `None` if blocks stay raw.
    encoder: Option<Box<dyn Encoder>>,
    out: Vec<u8>,
}

impl Compressor {
    /// LZ4HC uses the LZ4 compressor: the format is the same, only the effort differs.
    ///
    /// # Errors
    /// `Unsupported`: bzip2, or a compression that this build lacks. `InvalidArgument`: a zlib window RocksDB could not
    /// read back.
    pub fn new(kind: CompressionKind, options: &CompressionOptions) -> Result<Compressor> {
        Self::with_dictionary(kind, options, &[])
    }

    /// The same with a dictionary; only ZSTD uses it.
    pub fn with_dictionary(kind: CompressionKind, options: &CompressionOptions, dictionary: &[u8]) -> Result<Self> {
        Ok(Compressor { kind, encoder: codec::encoder(kind, options, dictionary)?, out: Vec::new() })
    }

    /// The bytes to store for `block`, and their compression: raw if compression saves less than an eighth, as in
    /// RocksDB.
    pub fn compress<'a>(&'a mut self, block: &'a [u8]) -> Result<(&'a [u8], CompressionKind)> {
        let Some(encoder) = self.encoder.as_mut().filter(|_| block.len() <= COMPRESSED_BLOCK_BYTES_MAX) else {
            return Ok((block, CompressionKind::None));
        };
        self.out.clear();
        if self.kind != CompressionKind::Snappy {
            put_varint64(&mut self.out, block.len() as u64);
        }
        let kind = self.kind;
        encoder.append(block, &mut self.out).map_err(|e| failed(kind, e))?;
        if self.out.len() < block.len() - block.len() / 8 {
            Ok((&self.out, self.kind))
        } else {
            Ok((block, CompressionKind::None))
        }
    }
}

fn failed(kind: CompressionKind, source: std::io::Error) -> Error {
    Error::new(base::ErrorKind::Io, format!("cannot compress a block with {}", kind.name())).with_source(source)
}
