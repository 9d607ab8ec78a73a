//! Writes the properties block.

use std::collections::BTreeMap;

use base::coding::put_varint64;

use super::{Properties, names};
use crate::block::BlockBuilder;

/// RocksDB's name for an absent object.
pub(super) const NO_NAME: &str = "nullptr";

/// Stands for "no family" in the file.
const NO_FAMILY: u64 = i32::MAX as u64;

impl Properties {
    /// The contents of the block: every property, sorted by name.
    pub fn encode(&self) -> Vec<u8> {
        let mut block = BlockBuilder::new(1);
        for (name, value) in self.encoded_values() {
            block.add(name.as_bytes(), &value);
        }
        block.finish().to_vec()
    }

    fn encoded_values(&self) -> BTreeMap<String, Vec<u8>> {
        let mut all = self.other.clone();
        self.put_numbers(&mut all);
        self.put_texts(&mut all);
        let flag = |set: bool| vec![if set { b'1' } else { b'0' }];
        all.insert(names::INDEX_TYPE.into(), u32::from(self.index_type.number()).to_le_bytes().to_vec());
        all.insert(names::PREFIX_FILTERING.into(), flag(self.prefix_filtering));
        all.insert(names::WHOLE_KEY_FILTERING.into(), flag(self.whole_key_filtering));
        if let Some(external) = self.external {
            all.insert(names::EXTERNAL_VERSION.into(), external.version.to_le_bytes().to_vec());
            all.insert(names::GLOBAL_SEQNO.into(), external.global_seqno.to_le_bytes().to_vec());
        }
        all
    }

    fn put_numbers(&self, all: &mut BTreeMap<String, Vec<u8>>) {
        let mut put = |name: &str, number: u64| {
            let mut value = Vec::new();
            put_varint64(&mut value, number);
            all.insert(name.to_string(), value);
        };
        put(names::DATA_SIZE, self.data_bytes);
        put(names::INDEX_SIZE, self.index_bytes);
        if self.index_partitions > 0 {
            put(names::INDEX_PARTITIONS, self.index_partitions);
            put(names::TOP_LEVEL_INDEX_SIZE, self.top_level_index_bytes);
        }
        put(names::INDEX_KEY_IS_USER_KEY, u64::from(self.index_key_is_user_key));
        put(names::INDEX_VALUE_IS_DELTA, u64::from(self.index_value_is_delta));
        put(names::FILTER_SIZE, self.filter_bytes);
        put(names::FILTER_ENTRIES, self.filter_entries);
        put(names::RAW_KEY_SIZE, self.raw_key_bytes);
        put(names::RAW_VALUE_SIZE, self.raw_value_bytes);
        put(names::DATA_BLOCKS, self.data_blocks);
        put(names::ENTRIES, self.entries);
        put(names::DELETED_KEYS, self.deletions);
        put(names::MERGE_OPERANDS, self.merge_operands);
        put(names::RANGE_DELETIONS, self.range_deletions);
        put(names::FORMAT_VERSION, self.format_version);
        put(names::FIXED_KEY_LENGTH, 0);
        put(names::FAMILY_ID, self.family_id.map_or(NO_FAMILY, u64::from));
        put(names::CREATION_TIME, self.creation_time_s);
        put(names::OLDEST_KEY_TIME, self.oldest_key_time_s);
        if self.file_creation_time_s > 0 {
            put(names::FILE_CREATION_TIME, self.file_creation_time_s);
        }
        put(names::ORIGINAL_FILE_NUMBER, self.original_file_number);
    }

    fn put_texts(&self, all: &mut BTreeMap<String, Vec<u8>>) {
        let mut put = |name: &str, text: &str| all.insert(name.to_string(), text.as_bytes().to_vec());
        let or_none = |name: &'_ str| if name.is_empty() { NO_NAME.to_string() } else { name.to_string() };
        put(names::COMPARATOR, &self.comparator);
        put(names::MERGE_OPERATOR, &or_none(&self.merge_operator));
        put(names::PREFIX_EXTRACTOR, &or_none(&self.prefix_extractor));
        put(names::PROPERTY_COLLECTORS, "[]");
        put(names::COMPRESSION, &self.compression);
        put(names::COMPRESSION_OPTIONS, &self.compression_options);
        let optional = [
            (names::FAMILY_NAME, &self.family_name),
            (names::FILTER_POLICY, &self.filter_policy),
            (names::DB_ID, &self.db_id),
            (names::SESSION_ID, &self.session_id),
            (names::HOST_ID, &self.host_id),
        ];
        for (name, text) in optional {
            if !text.is_empty() {
                put(name, text);
            }
        }
    }
}
