//! LZ4. LZ4HC has the same format: only the compressor's effort differs, and ours is LZ4's.

use std::io;

use super::Dictionary;

pub(super) struct Encoder;

impl super::Encoder for Encoder {
    fn append(&mut self, block: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let start = out.len();
        out.resize(start + lz4_flex::block::get_maximum_output_size(block.len()), 0);
        let len = lz4_flex::block::compress_into(block, out.get_mut(start..).unwrap_or_default())
            .map_err(io::Error::other)?;
        out.truncate(start + len);
        Ok(())
    }
}

pub(super) fn decode(body: &[u8], size: usize, dictionary: Option<&Dictionary>) -> io::Result<Vec<u8>> {
    let mut out = vec![0; size];
    let len = match dictionary {
        None => lz4_flex::block::decompress_into(body, &mut out),
        Some(dictionary) => lz4_flex::block::decompress_into_with_dict(body, &mut out, &dictionary.bytes),
    }
    .map_err(io::Error::other)?;
    out.truncate(len);
    Ok(out)
}
