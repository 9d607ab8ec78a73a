//! A table's properties. Format and names: docs/format/table.md, "Properties".

mod coded;
mod unique_id;

use std::collections::BTreeMap;

use base::options::{CompressionKind, IndexType};
use base::{Error, Result, UserOrder, ValueKind};

use crate::TableOrigin;

/// The name of the block in the metaindex.
pub const BLOCK_NAME: &str = "rocksdb.properties";
/// The property RocksDB patches in place when it ingests a table.
pub const GLOBAL_SEQNO_NAME: &str = "rocksdb.external_sst_file.global_seqno";

/// Property of tables whose values and operands end with the times of their writes. RocksDB passes over it.
const VALUE_TIMES: &str = "spillway.value.times";

/// Suffix of the names of RocksDB's comparators with timestamps.
const TIMESTAMPED: &str = ".u64ts";

/// A table's properties. Sizes are bytes, times seconds since the epoch. A name is empty if the table has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// Bytes of data blocks.
    pub data_bytes: u64,
    /// Bytes of index blocks.
    pub index_bytes: u64,
    /// Number of partitions of the index.
    pub index_partitions: u64,
    /// Bytes of the index over the partitions.
    pub top_level_index_bytes: u64,
    /// The kind of index.
    pub index_type: IndexType,
    /// Index keys are user keys.
    pub index_key_is_user_key: bool,
    /// Index values are differences.
    pub index_value_is_delta: bool,
    /// Bytes of the filter.
    pub filter_bytes: u64,
    /// Keys and prefixes in the filter.
    pub filter_entries: u64,
    /// The filter has whole keys.
    pub whole_key_filtering: bool,
    /// The filter has prefixes.
    pub prefix_filtering: bool,
    /// Bytes of keys, uncompressed.
    pub raw_key_bytes: u64,
    /// Bytes of values, uncompressed.
    pub raw_value_bytes: u64,
    /// Number of data blocks.
    pub data_blocks: u64,
    /// Point entries and range tombstones.
    pub entries: u64,
    /// Deletions of every kind, range tombstones included.
    pub deletions: u64,
    /// Number of merge operands.
    pub merge_operands: u64,
    /// Number of range deletions.
    pub range_deletions: u64,
    /// Version of the format.
    pub format_version: u64,
    /// Number of the family.
    pub family_id: Option<u32>,
    /// Name of the family.
    pub family_name: String,
    /// Name of the order of keys.
    pub comparator: String,
    /// Name of the merge operator.
    pub merge_operator: String,
    /// Name of the prefix extractor.
    pub prefix_extractor: String,
    /// Name of the filter's policy.
    pub filter_policy: String,
    /// Name of the compression.
    pub compression: String,
    /// Options of the compression, as text.
    pub compression_options: String,
    /// When the table's data was first written, in seconds since 1970.
    pub creation_time_s: u64,
    /// When the oldest key was written, in seconds since 1970.
    pub oldest_key_time_s: u64,
    /// When the file was made, in seconds since 1970.
    pub file_creation_time_s: u64,
    /// Id of the database.
    pub db_id: String,
    /// Id of the database's open.
    pub session_id: String,
    /// Name of the host.
    pub host_id: String,
    /// Number of the file when it was made.
    pub original_file_number: u64,
    /// Set in tables made for ingestion.
    pub external: Option<ExternalFile>,
    /// Every other property, as stored.
    pub other: BTreeMap<String, Vec<u8>>,
}

/// Properties of a table made for ingestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExternalFile {
    /// Version of the properties of an ingested table.
    pub version: u32,
    /// The number patched into the file; 0 if none.
    pub global_seqno: u64,
}

impl ExternalFile {
    /// The version written, and the only one with a global sequence number.
    pub const VERSION: u32 = 2;
}

impl Properties {
    /// The compression of the blocks: of a table with several the first. `None` if the name is unknown.
    pub fn compression_kind(&self) -> Option<CompressionKind> {
        match self.compression.strip_prefix("BuiltinV2;") {
            // The numbers of all compressions used, two hexadecimal digits each.
            Some(set) => match set.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                Some(number) => CompressionKind::from_number(number),
                None => Some(CompressionKind::None),
            },
            None => match self.compression.as_str() {
                "NoCompression" => Some(CompressionKind::None),
                "Snappy" => Some(CompressionKind::Snappy),
                "Zlib" => Some(CompressionKind::Zlib),
                "LZ4" => Some(CompressionKind::Lz4),
                "LZ4HC" => Some(CompressionKind::Lz4hc),
                "ZSTD" => Some(CompressionKind::Zstd),
                _ => None,
            },
        }
    }

    /// Counts an entry or a range tombstone.
    #[inline]
    pub(crate) fn count(&mut self, kind: ValueKind, key_bytes: usize, value_bytes: usize) {
        self.entries += 1;
        self.raw_key_bytes += key_bytes as u64;
        self.raw_value_bytes += value_bytes as u64;
        match kind {
            ValueKind::Value => {}
            ValueKind::Deletion | ValueKind::SingleDeletion => self.deletions += 1,
            ValueKind::Merge => self.merge_operands += 1,
            ValueKind::RangeDeletion => {
                self.deletions += 1;
                self.range_deletions += 1;
            }
        }
    }

    /// # Errors
    /// `InvalidArgument`: the table's keys are in another order. `Unsupported`: they also carry timestamps.
    pub(crate) fn check_order(&self, order: &UserOrder) -> Result<()> {
        let expected = order.name();
        if self.comparator.is_empty() || self.comparator == expected {
            return Ok(());
        }
        let message = format!("{expected}: does not match existing comparator {}", self.comparator);
        Err(match self.comparator.ends_with(TIMESTAMPED) {
            true => Error::unsupported(format!("{message}: keys with user-defined timestamps are not read")),
            false => Error::invalid_argument(message),
        })
    }

    /// Records the table's origin and the meaning of its keys and operands.
    pub(crate) fn set_origin(&mut self, origin: &TableOrigin, order: &UserOrder, merge_operator: &str) {
        self.family_id = origin.family.map(|family| family.0);
        self.family_name.clone_from(&origin.family_name);
        self.comparator = order.name().to_owned();
        self.merge_operator = merge_operator.to_owned();
        self.creation_time_s = origin.creation_time_s;
        self.oldest_key_time_s = origin.oldest_key_time_s;
        self.file_creation_time_s = origin.file_creation_time_s;
        self.db_id.clone_from(&origin.db_id);
        self.session_id.clone_from(&origin.session_id);
        self.host_id.clone_from(&origin.host_id);
        self.original_file_number = origin.file_number.0;
        if origin.value_times {
            self.other.insert(VALUE_TIMES.to_owned(), vec![1]);
        }
    }

    /// Whether values and operands end with the times of their writes. RocksDB's tables do not say so.
    pub fn has_value_times(&self) -> bool {
        self.other.contains_key(VALUE_TIMES)
    }

    /// The properties of a part of the table: counts and sizes times `part / whole`, rounded up. Other fields, such as
    /// `index_partitions`, stay as they are.
    pub(crate) fn in_proportion(&self, part: u64, whole: u64) -> Properties {
        let mut properties = self.clone();
        let (part, whole) = (u128::from(part.min(whole)), u128::from(whole.max(1)));
        for number in [
            &mut properties.data_bytes,
            &mut properties.index_bytes,
            &mut properties.filter_bytes,
            &mut properties.filter_entries,
            &mut properties.raw_key_bytes,
            &mut properties.raw_value_bytes,
            &mut properties.data_blocks,
            &mut properties.entries,
            &mut properties.deletions,
            &mut properties.merge_operands,
            &mut properties.range_deletions,
        ] {
            // At most the old number, as the part is at most the whole.
            *number = (u128::from(*number) * part).div_ceil(whole) as u64;
        }
        properties
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_round_trip() {
        let properties = Properties {
            data_bytes: 1 << 40,
            index_type: IndexType::TwoLevel,
            index_key_is_user_key: true,
            index_value_is_delta: true,
            whole_key_filtering: true,
            entries: 300,
            deletions: 7,
            range_deletions: 1,
            format_version: 5,
            family_id: Some(3),
            family_name: "second".into(),
            comparator: "leveldb.BytewiseComparator".into(),
            merge_operator: "uint64add".into(),
            external: Some(ExternalFile { version: 2, global_seqno: 0 }),
            other: BTreeMap::from([("mine".to_string(), vec![1, 2, 3])]),
            ..Properties::default()
        };
        let block = crate::block::Block::parse(properties.encode()).expect("well formed");
        assert_eq!(Properties::decode(&block).expect("well formed"), properties);
    }
}
