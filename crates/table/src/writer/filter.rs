//! Collects a table's filter: one for the whole table, or one per run of data blocks.

use std::sync::Arc;

use base::UserOrder;
use base::extend::PrefixExtractor;
use base::options::IndexType;

use super::TableBuilderConfig;
use crate::filter::BloomBuilder;

/// A finished filter partition and the separator of its last data block.
pub(crate) struct FilterPart {
    pub separator: Vec<u8>,
    pub contents: Vec<u8>,
}

pub(crate) struct FilterCollector {
    bloom: BloomBuilder,
    order: UserOrder,
    whole_keys: bool,
    prefix_extractor: Option<Arc<dyn PrefixExtractor>>,
    /// The last prefix added to this partition, if `has_prefix`.
    last_prefix: Vec<u8>,
    has_prefix: bool,
    /// Bytes at which a partition ends; `None` for one filter over all.
    partition_bytes: Option<usize>,
    parts: Vec<FilterPart>,
    parts_bytes: usize,
    entries: u64,
}

impl FilterCollector {
    /// `None` if the options ask for no filter.
    pub(crate) fn new(config: &TableBuilderConfig) -> Option<FilterCollector> {
        let is_partitioned = config.options.partition_filters && config.options.index_type == IndexType::TwoLevel;
        Some(FilterCollector {
            bloom: BloomBuilder::new(config.filter_bits()?),
            order: config.order.user.clone(),
            whole_keys: config.options.whole_key_filtering,
            prefix_extractor: config.prefix_extractor.clone(),
            last_prefix: Vec::new(),
            has_prefix: false,
            partition_bytes: is_partitioned.then_some(config.options.metadata_block_size),
            parts: Vec::new(),
            parts_bytes: 0,
            entries: 0,
        })
    }

    /// Adds a user key; its versions within one data block count once.
    #[inline]
    pub(crate) fn add(&mut self, user_key: &[u8]) {
        let key = self.order.strip_timestamp(user_key);
        if self.whole_keys {
            self.bloom.add(key);
        }
        if self.prefix_extractor.is_some() {
            self.add_prefix(key);
        }
    }

    fn add_prefix(&mut self, key: &[u8]) {
        let Some(prefix) = self.prefix_extractor.as_ref().and_then(|extractor| extractor.prefix(key)) else {
            return;
        };
        if !self.has_prefix || self.last_prefix != prefix {
            self.has_prefix = true;
            self.last_prefix.clear();
            self.last_prefix.extend_from_slice(prefix);
            self.bloom.add(prefix);
        }
    }

    /// Called when a data block ends with `separator` and `next_key` (a user key) begins the next block. Ends the
    /// partition if it is large enough. The next key's prefix goes into both partitions, as a seek can land between
    /// them.
    pub(crate) fn end_block(&mut self, separator: &[u8], next_key: &[u8]) {
        if self.partition_bytes.is_some_and(|bytes| self.bloom.filter_bytes() >= bytes) {
            let next = self.order.strip_timestamp(next_key).to_vec();
            self.add_prefix(&next);
            self.cut(separator);
        }
    }

    fn cut(&mut self, separator: &[u8]) {
        self.entries += self.bloom.len() as u64;
        let part = FilterPart { separator: separator.to_vec(), contents: self.bloom.finish() };
        self.parts_bytes += part.contents.len();
        self.parts.push(part);
        self.has_prefix = false;
    }

    /// Approximate size of the filter if it ended now, in bytes.
    pub(crate) fn estimated_bytes(&self) -> usize {
        self.parts_bytes + self.bloom.filter_bytes()
    }

    pub(crate) fn is_partitioned(&self) -> bool {
        self.partition_bytes.is_some()
    }

    /// The partitions or the single filter, and the number of keys and prefixes. `separator` is the last block's.
    pub(crate) fn finish(mut self, separator: &[u8]) -> (Vec<FilterPart>, u64) {
        if !self.bloom.is_empty() {
            self.cut(separator);
        }
        (self.parts, self.entries)
    }
}
