//! Decompresses blocks read from tables. Claimed sizes are untrusted (B2): they are bounded, absolutely and by the
//! compression's maximum ratio, before any allocation. Format: docs/format/table.md, "Compression".

use base::coding::Reader;
use base::options::CompressionKind;
use base::{Error, Result, features};

use crate::codec::{self, Dictionary};
use crate::compress::COMPRESSED_BLOCK_BYTES_MAX;

/// Decompresses `stored` by `kind`, the compression type in its trailer. `None` if it is stored raw.
///
/// # Errors
/// `Unsupported`: bzip2, or a compression that this build lacks. `Corruption`: everything else.
pub fn decompress(kind: u8, stored: &[u8], dictionary: Option<&Dictionary>) -> Result<Option<Vec<u8>>> {
    let known = match CompressionKind::from_number(kind) {
        Some(CompressionKind::None) => return Ok(None),
        Some(CompressionKind::Bzip2) => return Err(Error::unsupported("block compressed with bzip2")),
        None | Some(CompressionKind::Disable) => {
            return Err(Error::corruption(format!("unknown compression type {kind}")));
        }
        Some(known) => known,
    };
    features::check_compression(known)?;
    let (size, behind_size) = claimed_size(stored, codec::ratio_max(known))?;
    let body = if known == CompressionKind::Snappy { stored } else { behind_size };
    let out = codec::decode(known, body, size, dictionary).map_err(|e| damaged(known, e))?;
    if out.len() != size {
        let message = format!("{} bytes came out instead of {size}", out.len());
        return Err(damaged(known, std::io::Error::other(message)));
    }
    Ok(Some(out))
}

/// The size in front of the compressed bytes, bounded by `ratio_max`, and the bytes behind it.
fn claimed_size(stored: &[u8], ratio_max: usize) -> Result<(usize, &[u8])> {
    let mut reader = Reader::new(stored);
    let size = reader.varint32("uncompressed size")? as usize;
    let compressed = reader.len();
    let most = compressed.saturating_mul(ratio_max).min(COMPRESSED_BLOCK_BYTES_MAX);
    if size > most {
        let message = format!("{compressed} compressed bytes claim to hold {size} (at most {most} are believed)");
        return Err(Error::corruption(message));
    }
    Ok((size, reader.rest()))
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
