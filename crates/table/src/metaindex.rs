//! The block of handles of all other meta blocks, by name. Format: docs/format/table.md, "Metaindex".

use base::Result;
use base::coding::Reader;

use crate::block::{Block, BlockBuilder, walk};
use crate::handle::BlockHandle;

pub const FULL_FILTER: &str = "fullfilter.rocksdb.BuiltinBloomFilter";
pub const PARTITIONED_FILTER: &str = "partitionedfilter.rocksdb.BuiltinBloomFilter";
pub const COMPRESSION_DICT: &str = "rocksdb.compression_dict";
pub const RANGE_DEL: &str = "rocksdb.range_del";
/// From format version 6 on, instead of the footer's handle.
pub const INDEX: &str = "rocksdb.index";

/// Meta blocks by name, ascending as in the block: a handful.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metaindex(Vec<(String, BlockHandle)>);

impl Metaindex {
    pub fn insert(&mut self, name: &str, handle: BlockHandle) {
        let place = self.0.partition_point(|(there, _)| there.as_str() < name);
        self.0.insert(place, (name.to_owned(), handle));
    }

    pub fn get(&self, name: &str) -> Option<BlockHandle> {
        self.0.iter().find(|(there, _)| there == name).map(|(_, handle)| *handle)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, BlockHandle)> {
        self.0.iter().map(|(name, handle)| (name.as_str(), *handle))
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut block = BlockBuilder::new(1);
        let mut value = Vec::new();
        for (name, handle) in &self.0 {
            value.clear();
            handle.encode_to(&mut value);
            block.add(name.as_bytes(), &value);
        }
        block.finish().to_vec()
    }

    /// Reads the block's contents; handles must lie below `limit`.
    pub fn decode(block: &Block, limit: u64) -> Result<Metaindex> {
        let mut all = Metaindex::default();
        walk(block, &mut |name, value| {
            let handle = BlockHandle::decode(&mut Reader::new(block.bytes().get(value).unwrap_or_default()))?;
            handle.check_within(limit)?;
            all.0.push((String::from_utf8_lossy(name).into_owned(), handle));
            Ok(())
        })?;
        Ok(all)
    }
}
