//! Decompresses blocks read from tables. Claimed sizes are untrusted (B2): they are bounded, absolutely and by the
//! compression's maximum ratio, before any allocation. Format: docs/format/table.md, "Compression".

use std::cell::RefCell;

use base::coding::Reader;
use base::options::CompressionKind;
use base::{Error, Result};
use parking_lot::Mutex;

use crate::compress::COMPRESSED_BLOCK_BYTES_MAX;

/// Maximum output bytes per input byte of each format. A block claiming more is corrupt.
const SNAPPY_RATIO_MAX: usize = 64;
const LZ4_RATIO_MAX: usize = 256;
const ZLIB_RATIO_MAX: usize = 1100;
const ZSTD_RATIO_MAX: usize = 64 << 10;

/// Contexts kept for reuse by a table with a dictionary. Further concurrent readers make their own.
const CONTEXTS_MAX: usize = 16;

/// A table's compression dictionary.
pub struct Dictionary {
    bytes: Vec<u8>,
    /// Contexts with the dictionary loaded. The lock is held only to take or return one.
    zstd: Mutex<Vec<zstd::bulk::Decompressor<'static>>>,
}

impl Dictionary {
    pub fn new(bytes: Vec<u8>) -> Self {
        Dictionary { bytes, zstd: Mutex::new(Vec::new()) }
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

thread_local! {
    static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Decompresses `stored` by `kind`, the compression type in its trailer. `None` if it is stored raw.
///
/// # Errors
/// `Unsupported`: bzip2, or a compression this version does not know. `Corruption`: everything else.
pub fn decompress(kind: u8, stored: &[u8], dictionary: Option<&Dictionary>) -> Result<Option<Vec<u8>>> {
    let Some(known) = CompressionKind::from_number(kind) else {
        return Err(Error::corruption(format!("unknown compression type {kind}")));
    };
    let out = match known {
        CompressionKind::None => return Ok(None),
        CompressionKind::Snappy => snappy(stored)?,
        CompressionKind::Zlib => {
            let (size, body) = claimed_size(stored, ZLIB_RATIO_MAX)?;
            zlib(body, size, dictionary).map_err(|e| damaged(known, e))?
        }
        CompressionKind::Lz4 | CompressionKind::Lz4hc => {
            let (size, body) = claimed_size(stored, LZ4_RATIO_MAX)?;
            lz4(body, size, dictionary).map_err(|e| damaged(known, e))?
        }
        CompressionKind::Zstd => {
            let (size, body) = claimed_size(stored, ZSTD_RATIO_MAX)?;
            zstd(body, size, dictionary).map_err(|e| damaged(known, e))?
        }
        CompressionKind::Bzip2 => return Err(Error::unsupported("block compressed with bzip2")),
        CompressionKind::Disable => return Err(Error::corruption(format!("unknown compression type {kind}"))),
    };
    Ok(Some(out))
}

/// The size in front of the compressed bytes, bounded by `ratio_max`.
fn claimed_size(stored: &[u8], ratio_max: usize) -> Result<(usize, &[u8])> {
    let mut reader = Reader::new(stored);
    let size = reader.varint32("uncompressed size")? as usize;
    check_size(size, reader.len(), ratio_max)?;
    Ok((size, reader.rest()))
}

fn check_size(size: usize, compressed: usize, ratio_max: usize) -> Result<()> {
    let most = compressed.saturating_mul(ratio_max).min(COMPRESSED_BLOCK_BYTES_MAX);
    if size > most {
        let message = format!("{compressed} compressed bytes claim to hold {size} (at most {most} are believed)");
        return Err(Error::corruption(message));
    }
    Ok(())
}

fn snappy(stored: &[u8]) -> Result<Vec<u8>> {
    let damage = |e: snap::Error| damaged(CompressionKind::Snappy, e.into());
    let size = snap::raw::decompress_len(stored).map_err(damage)?;
    check_size(size, stored.len(), SNAPPY_RATIO_MAX)?;
    let mut out = vec![0; size];
    let len = snap::raw::Decoder::new().decompress(stored, &mut out).map_err(damage)?;
    out.truncate(len);
    Ok(out)
}

fn lz4(body: &[u8], size: usize, dictionary: Option<&Dictionary>) -> std::io::Result<Vec<u8>> {
    let mut out = vec![0; size];
    let len = match dictionary {
        None => lz4_flex::block::decompress_into(body, &mut out),
        Some(dictionary) => lz4_flex::block::decompress_into_with_dict(body, &mut out, &dictionary.bytes),
    }
    .map_err(std::io::Error::other)?;
    exactly(out, len, size)
}

fn zlib(body: &[u8], size: usize, dictionary: Option<&Dictionary>) -> std::io::Result<Vec<u8>> {
    let mut inflate = flate2::Decompress::new(false);
    if let Some(dictionary) = dictionary {
        inflate.set_dictionary(&dictionary.bytes).map_err(std::io::Error::other)?;
    }
    let mut out = Vec::with_capacity(size);
    let status =
        inflate.decompress_vec(body, &mut out, flate2::FlushDecompress::Finish).map_err(std::io::Error::other)?;
    if status != flate2::Status::StreamEnd {
        return Err(std::io::Error::other("the stream does not end where its size says"));
    }
    let len = out.len();
    exactly(out, len, size)
}

fn zstd(body: &[u8], size: usize, dictionary: Option<&Dictionary>) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(size);
    let len = match dictionary {
        None => ZSTD.with_borrow_mut(|context| {
            let context = match context {
                Some(context) => context,
                none => none.insert(zstd::bulk::Decompressor::new()?),
            };
            context.decompress_to_buffer(body, &mut out)
        })?,
        Some(dictionary) => {
            let idle = dictionary.zstd.lock().pop();
            let mut context = match idle {
                Some(context) => context,
                None => zstd::bulk::Decompressor::with_dictionary(&dictionary.bytes)?,
            };
            let result = context.decompress_to_buffer(body, &mut out);
            let mut idle = dictionary.zstd.lock();
            if idle.len() < CONTEXTS_MAX {
                idle.push(context);
            }
            result?
        }
    };
    exactly(out, len, size)
}

fn exactly(out: Vec<u8>, len: usize, size: usize) -> std::io::Result<Vec<u8>> {
    if len != size || out.len() != size {
        return Err(std::io::Error::other(format!("{len} bytes came out instead of {size}")));
    }
    Ok(out)
}

fn damaged(kind: CompressionKind, source: std::io::Error) -> Error {
    Error::corruption(format!("cannot decompress a {} block", kind.name())).with_source(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::Compressor;
    use base::coding::put_varint64;
    use base::options::CompressionOptions;

    const WRITTEN: [CompressionKind; 5] = [
        CompressionKind::Snappy,
        CompressionKind::Zlib,
        CompressionKind::Lz4,
        CompressionKind::Lz4hc,
        CompressionKind::Zstd,
    ];

    fn compressible(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i / 7 % 13) as u8).collect()
    }

    #[test]
    fn every_compression_round_trips() {
        for kind in WRITTEN {
            let mut compressor = Compressor::new(kind, &CompressionOptions::default()).expect("supported");
            for len in [0, 1, 100, 4096, 100_000] {
                let block = compressible(len);
                let (stored, used) = compressor.compress(&block).expect("compresses");
                assert_eq!(used == kind, len >= 100, "{kind:?} {len}");
                let stored = stored.to_vec();
                let out = decompress(used.number(), &stored, None).expect("decompresses");
                assert_eq!(out.unwrap_or(stored), block, "{kind:?} {len}");
            }
        }
    }

    #[test]
    fn noise_is_stored_raw() {
        let mut state = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        })
        .take(5000)
        .collect();
        for kind in WRITTEN {
            let mut compressor = Compressor::new(kind, &CompressionOptions::default()).expect("supported");
            assert_eq!(compressor.compress(&noise).expect("compresses"), (&noise[..], CompressionKind::None));
        }
    }

    #[test]
    fn a_lying_size_is_refused_before_allocation() {
        for kind in [CompressionKind::Zlib, CompressionKind::Lz4, CompressionKind::Zstd, CompressionKind::Snappy] {
            for claim in [1 << 20, (300 << 20), u64::from(u32::MAX)] {
                let mut bomb = Vec::new();
                put_varint64(&mut bomb, claim);
                bomb.extend_from_slice(b"xxxx");
                let error = decompress(kind.number(), &bomb, None).expect_err("a lie");
                assert_eq!(error.kind(), base::ErrorKind::Corruption, "{kind:?}");
            }
        }
        assert_eq!(decompress(3, b"BZh", None).expect_err("bzip2").kind(), base::ErrorKind::Unsupported);
    }

    #[test]
    fn a_dictionary_is_honoured() {
        let dictionary = compressible(3000);
        let block = dictionary[500..2500].to_vec();
        let with_size = |body: &[u8]| {
            let mut stored = Vec::new();
            put_varint64(&mut stored, block.len() as u64);
            stored.extend_from_slice(body);
            stored
        };
        let mut deflate = flate2::Compress::new_with_window_bits(flate2::Compression::default(), false, 14);
        deflate.set_dictionary(&dictionary).expect("set");
        let mut zlib = Vec::with_capacity(4000);
        deflate.compress_vec(&block, &mut zlib, flate2::FlushCompress::Finish).expect("compresses");
        let mut lz4 = vec![0; 4000];
        let len = lz4_flex::block::compress_into_with_dict(&block, &mut lz4, &dictionary).expect("compresses");
        lz4.truncate(len);
        let zstd = zstd::bulk::Compressor::with_dictionary(3, &dictionary).expect("made").compress(&block).expect("ok");
        let known = Dictionary::new(dictionary);
        for (kind, body) in [(2, zlib), (4, lz4), (7, zstd)] {
            let stored = with_size(&body);
            let out = decompress(kind, &stored, Some(&known)).expect("decompresses");
            assert_eq!(out.as_deref(), Some(&block[..]), "{kind}");
        }
    }
}
