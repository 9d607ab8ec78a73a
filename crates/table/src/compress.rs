//! Compresses blocks as they are written. Format: docs/format/table.md, "Compression".

use base::coding::put_varint64;
use base::options::{CompressionKind, CompressionOptions};
use base::{Error, Result};

/// Larger blocks are stored raw: readers refuse compressed blocks claiming more.
pub const COMPRESSED_BLOCK_BYTES_MAX: usize = 256 << 20;

const ZSTD_LEVEL_DEFAULT: i32 = 3;

/// One compression at one level. Its state is reused from block to block.
pub struct Compressor {
    kind: CompressionKind,
    codec: Codec,
    out: Vec<u8>,
}

enum Codec {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Zlib(Box<flate2::Compress>),
    Lz4,
    Zstd(Box<zstd::bulk::Compressor<'static>>),
}

impl Compressor {
    /// LZ4HC uses the LZ4 compressor: the format is the same, only the effort differs.
    ///
    /// # Errors
    /// `Unsupported`: bzip2. `InvalidArgument`: a zlib window RocksDB could not read back.
    pub fn new(kind: CompressionKind, options: &CompressionOptions) -> Result<Compressor> {
        Self::with_dictionary(kind, options, &[])
    }

    /// The same with a dictionary; only ZSTD uses it.
    pub fn with_dictionary(kind: CompressionKind, options: &CompressionOptions, dictionary: &[u8]) -> Result<Self> {
        let codec = match kind {
            CompressionKind::None | CompressionKind::Disable => Codec::None,
            CompressionKind::Snappy => Codec::Snappy(Box::new(snap::raw::Encoder::new())),
            CompressionKind::Zlib => Codec::Zlib(Box::new(deflater(options)?)),
            CompressionKind::Lz4 | CompressionKind::Lz4hc => Codec::Lz4,
            CompressionKind::Zstd => {
                let level = options.level().unwrap_or(ZSTD_LEVEL_DEFAULT);
                let compressor =
                    zstd::bulk::Compressor::with_dictionary(level, dictionary).map_err(|e| failed(kind, e))?;
                Codec::Zstd(Box::new(compressor))
            }
            CompressionKind::Bzip2 => return Err(Error::unsupported("bzip2 is not written")),
        };
        Ok(Compressor { kind, codec, out: Vec::new() })
    }

    /// The bytes to store for `block`, and their compression: raw if compression saves less than an eighth, as in
    /// RocksDB.
    pub fn compress<'a>(&'a mut self, block: &'a [u8]) -> Result<(&'a [u8], CompressionKind)> {
        if matches!(self.codec, Codec::None) || block.len() > COMPRESSED_BLOCK_BYTES_MAX {
            return Ok((block, CompressionKind::None));
        }
        self.out.clear();
        if self.kind != CompressionKind::Snappy {
            put_varint64(&mut self.out, block.len() as u64);
        }
        let kind = self.kind;
        self.codec.append(block, &mut self.out).map_err(|e| failed(kind, e))?;
        if self.out.len() < block.len() - block.len() / 8 {
            Ok((&self.out, self.kind))
        } else {
            Ok((block, CompressionKind::None))
        }
    }
}

impl Codec {
    /// Appends `block`, compressed, to `out`.
    fn append(&mut self, block: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        let start = out.len();
        match self {
            Codec::None => out.extend_from_slice(block),
            Codec::Snappy(encoder) => {
                out.resize(start + snap::raw::max_compress_len(block.len()), 0);
                let len = encoder.compress(block, out.get_mut(start..).unwrap_or_default())?;
                out.truncate(start + len);
            }
            Codec::Lz4 => {
                out.resize(start + lz4_flex::block::get_maximum_output_size(block.len()), 0);
                let len = lz4_flex::block::compress_into(block, out.get_mut(start..).unwrap_or_default())
                    .map_err(std::io::Error::other)?;
                out.truncate(start + len);
            }
            Codec::Zlib(deflate) => {
                deflate.reset();
                // Deflate's stored blocks bound the growth; 64 bytes cover its headers for small inputs.
                out.reserve(block.len() + block.len() / 64 + 64);
                let status =
                    deflate.compress_vec(block, out, flate2::FlushCompress::Finish).map_err(std::io::Error::other)?;
                if status != flate2::Status::StreamEnd {
                    return Err(std::io::Error::other("deflate output exceeds its bound"));
                }
            }
            Codec::Zstd(compressor) => {
                let mut compressed = compressor.compress(block)?;
                out.append(&mut compressed);
            }
        }
        Ok(())
    }
}

fn deflater(options: &CompressionOptions) -> Result<flate2::Compress> {
    let window = match options.window_bits {
        bits @ -14..=-9 => bits.unsigned_abs() as u8,
        bits => {
            let message = format!("window_bits={bits}: RocksDB reads raw deflate of windows -14 to -9 only");
            return Err(Error::invalid_argument(message));
        }
    };
    let level = match options.level() {
        None | Some(i32::MIN..0) => flate2::Compression::default(),
        Some(level) => flate2::Compression::new(level.min(9) as u32),
    };
    Ok(flate2::Compress::new_with_window_bits(level, false, window))
}

fn failed(kind: CompressionKind, source: std::io::Error) -> Error {
    Error::new(base::ErrorKind::Io, format!("cannot compress a block with {}", kind.name())).with_source(source)
}
