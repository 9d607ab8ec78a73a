//! Snappy. Its blocks begin with their own size.

use std::io;

impl super::Encoder for snap::raw::Encoder {
    fn append(&mut self, block: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let start = out.len();
        out.resize(start + snap::raw::max_compress_len(block.len()), 0);
        let len = self.compress(block, out.get_mut(start..).unwrap_or_default())?;
        out.truncate(start + len);
        Ok(())
    }
}

pub(super) fn decode(body: &[u8], size: usize) -> io::Result<Vec<u8>> {
    let mut out = vec![0; size];
    let len = snap::raw::Decoder::new().decompress(body, &mut out)?;
    out.truncate(len);
    Ok(out)
}
