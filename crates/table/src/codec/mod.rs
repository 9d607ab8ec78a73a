//! The compressions that are built in, each behind the Cargo feature of its name.

#[cfg(feature = "lz4")]
mod lz4;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "zlib")]
mod zlib;
#[cfg(feature = "zstd")]
mod zstd;

use std::io;

use base::options::{CompressionKind, CompressionOptions};
use base::{Error, Result, features};

/// Compresses blocks. State is reused from block to block.
pub(crate) trait Encoder: Send {
    /// Appends `block`, compressed, to `out`.
    fn append(&mut self, block: &[u8], out: &mut Vec<u8>) -> io::Result<()>;
}

/// The encoder of `kind`; `None` if blocks stay raw. Only ZSTD uses the dictionary.
///
/// # Errors
/// `Unsupported`: bzip2, or a compression that this build lacks. `InvalidArgument`: a zlib window RocksDB could not read
/// back.
#[cfg_attr(
    not(all(feature = "zlib", feature = "zstd")),
    allow(unused_variables, reason = "LZ4 and Snappy use neither")
)]
pub(crate) fn encoder(
    kind: CompressionKind,
    options: &CompressionOptions,
    dictionary: &[u8],
) -> Result<Option<Box<dyn Encoder>>> {
    features::check_compression(kind)?;
    match kind {
        #[cfg(feature = "snappy")]
        CompressionKind::Snappy => Ok(Some(Box::new(snap::raw::Encoder::new()))),
        #[cfg(feature = "zlib")]
        CompressionKind::Zlib => Ok(Some(Box::new(zlib::encoder(options)))),
        #[cfg(feature = "lz4")]
        CompressionKind::Lz4 | CompressionKind::Lz4hc => Ok(Some(Box::new(lz4::Encoder))),
        #[cfg(feature = "zstd")]
        CompressionKind::Zstd => Ok(Some(Box::new(zstd::encoder(options, dictionary)?))),
        CompressionKind::Bzip2 => Err(Error::unsupported("bzip2 is not written")),
        _ => Ok(None),
    }
}

/// A table's compression dictionary.
pub struct Dictionary {
    bytes: Vec<u8>,
    #[cfg(feature = "zstd")]
    zstd: zstd::Contexts,
}

impl Dictionary {
    pub fn new(bytes: Vec<u8>) -> Self {
        Dictionary {
            bytes,
            #[cfg(feature = "zstd")]
            zstd: zstd::Contexts::default(),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Most output bytes per input byte; a block claiming more is corrupt.
pub(crate) fn ratio_max(kind: CompressionKind) -> usize {
    match kind {
        CompressionKind::Snappy => 64,
        CompressionKind::Lz4 | CompressionKind::Lz4hc => 256,
        CompressionKind::Zlib => 1100,
        CompressionKind::Zstd => 64 << 10,
        _ => 1,
    }
}

/// Decompresses `body`, which holds `size` bytes. The result may have another size: the caller compares.
///
/// # Errors
/// Bad bytes. The caller checks first that `kind` is built in.
#[cfg_attr(
    not(any(feature = "lz4", feature = "zlib", feature = "zstd")),
    expect(unused_variables, reason = "Snappy has no dictionary")
)]
pub(crate) fn decode(
    kind: CompressionKind,
    body: &[u8],
    size: usize,
    dictionary: Option<&Dictionary>,
) -> io::Result<Vec<u8>> {
    match kind {
        #[cfg(feature = "snappy")]
        CompressionKind::Snappy => snappy::decode(body, size),
        #[cfg(feature = "zlib")]
        CompressionKind::Zlib => zlib::decode(body, size, dictionary),
        #[cfg(feature = "lz4")]
        CompressionKind::Lz4 | CompressionKind::Lz4hc => lz4::decode(body, size, dictionary),
        #[cfg(feature = "zstd")]
        CompressionKind::Zstd => zstd::decode(body, size, dictionary),
        other => Err(io::Error::other(format!("{} is not built in", other.name()))),
    }
}

/// A dictionary for ZSTD; empty if the samples are too few to train on.
pub(crate) fn train(samples: &[impl AsRef<[u8]>], dictionary_bytes: usize) -> Vec<u8> {
    #[cfg(feature = "zstd")]
    return zstd::train(samples, dictionary_bytes);
    #[cfg(not(feature = "zstd"))]
    {
        let _ = (samples, dictionary_bytes);
        Vec::new()
    }
}
