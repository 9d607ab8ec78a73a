//! The two meta blocks of index type "hash": the index entries of each key prefix. The index itself is binary, so
//! readers may ignore them. Format: docs/format/table.md, "Hash index".

use base::coding::put_varint64;

/// Metaindex names.
pub const PREFIXES_NAME: &str = "rocksdb.hashindex.prefixes";
pub const METADATA_NAME: &str = "rocksdb.hashindex.metadata";

/// Collects prefixes as keys are added.
#[derive(Debug, Default)]
pub struct PrefixBlocks {
    prefixes: Vec<u8>,
    metadata: Vec<u8>,
    pending: Vec<u8>,
    first_block: u64,
    blocks: u64,
}

impl PrefixBlocks {
    /// A key with `prefix` goes into data block number `block`.
    pub fn add(&mut self, prefix: &[u8], block: u64) {
        if self.blocks == 0 || self.pending != prefix {
            self.flush();
            self.pending.clear();
            self.pending.extend_from_slice(prefix);
            self.first_block = block;
        }
        self.blocks = block - self.first_block + 1;
    }

    fn flush(&mut self) {
        if self.blocks > 0 {
            self.prefixes.extend_from_slice(&self.pending);
            put_varint64(&mut self.metadata, self.pending.len() as u64);
            put_varint64(&mut self.metadata, self.first_block);
            put_varint64(&mut self.metadata, self.blocks);
            self.blocks = 0;
        }
    }

    /// The contents of the two blocks: concatenated prefixes, and their metadata.
    pub fn finish(mut self) -> (Vec<u8>, Vec<u8>) {
        self.flush();
        (self.prefixes, self.metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_counts_the_blocks_it_spans() {
        let mut blocks = PrefixBlocks::default();
        for (prefix, block) in [("aa", 0), ("aa", 0), ("aa", 1), ("b", 1), ("c", 3), ("c", 5)] {
            blocks.add(prefix.as_bytes(), block);
        }
        let (prefixes, metadata) = blocks.finish();
        assert_eq!(prefixes, b"aabc");
        assert_eq!(metadata, [2, 0, 2, 1, 1, 1, 1, 3, 3]);
    }
}
