//! Zlib: raw deflate, as RocksDB writes it.

use std::io;

use base::options::CompressionOptions;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::Dictionary;

pub(super) fn encoder(options: &CompressionOptions) -> Compress {
    let level = match options.level() {
        None | Some(i32::MIN..0) => Compression::default(),
        Some(level) => Compression::new(level.min(9) as u32),
    };
    Compress::new_with_window_bits(level, false, options.raw_window_bits())
}

impl super::Encoder for Compress {
    fn append(&mut self, block: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.reset();
        // Deflate's stored blocks bound the growth; 64 bytes cover its headers for small inputs.
        out.reserve(block.len() + block.len() / 64 + 64);
        let status = self.compress_vec(block, out, FlushCompress::Finish).map_err(io::Error::other)?;
        if status != Status::StreamEnd {
            return Err(io::Error::other("deflate output exceeds its bound"));
        }
        Ok(())
    }
}

pub(super) fn decode(body: &[u8], size: usize, dictionary: Option<&Dictionary>) -> io::Result<Vec<u8>> {
    let mut inflate = Decompress::new(false);
    if let Some(dictionary) = dictionary {
        inflate.set_dictionary(&dictionary.bytes).map_err(io::Error::other)?;
    }
    let mut out = Vec::with_capacity(size);
    let status = inflate.decompress_vec(body, &mut out, FlushDecompress::Finish).map_err(io::Error::other)?;
    if status != Status::StreamEnd {
        return Err(io::Error::other("the stream does not end where its size says"));
    }
    Ok(out)
}
