//! The compaction filter of expired values.

use std::sync::Arc;

use base::extend::{CompactionFilter, CompactionFilterContext, CompactionFilterFactory, FilterDecision};

use super::{Stamps, split};

/// Drops expired values, and passes the rest without stamps to the caller's filter, if there is one. Merge operands
/// stay, however old, as in RocksDB: a merge's result is as young as the merge.
pub struct Expiry {
    stamps: Stamps,
    /// 0 or less: no expiry.
    ttl_s: i32,
    inner: Option<Arc<dyn CompactionFilter>>,
}

impl Expiry {
    pub fn new(stamps: Stamps, ttl_s: i32, inner: Option<Arc<dyn CompactionFilter>>) -> Expiry {
        Expiry { stamps, ttl_s, inner }
    }

    fn is_old(&self, stamp_s: i32) -> bool {
        self.ttl_s > 0 && i64::from(stamp_s) + i64::from(self.ttl_s) < self.stamps.now_s()
    }
}

impl CompactionFilter for Expiry {
    fn name(&self) -> &str {
        "TtlCompactionFilter"
    }

    /// A value too short for a stamp is kept: reads report it.
    fn filter(&self, level: usize, key: &[u8], stamped: &[u8]) -> FilterDecision {
        let Some((value, stamp_s)) = split(stamped) else { return FilterDecision::Keep };
        if self.is_old(stamp_s) {
            return FilterDecision::Remove;
        }
        match self.inner.as_ref().map(|inner| inner.filter(level, key, value)) {
            Some(FilterDecision::ChangeValue(mut changed)) => {
                changed.extend_from_slice(&stamp_s.to_le_bytes());
                FilterDecision::ChangeValue(changed)
            }
            Some(decision) => decision,
            None => FilterDecision::Keep,
        }
    }
}

/// Makes one for each compaction, around the filter of the caller's factory.
pub struct ExpiryFactory {
    stamps: Stamps,
    ttl_s: i32,
    inner: Option<Arc<dyn CompactionFilterFactory>>,
}

impl ExpiryFactory {
    pub fn new(stamps: Stamps, ttl_s: i32, inner: Option<Arc<dyn CompactionFilterFactory>>) -> ExpiryFactory {
        ExpiryFactory { stamps, ttl_s, inner }
    }
}

impl CompactionFilterFactory for ExpiryFactory {
    fn name(&self) -> &str {
        "TtlCompactionFilterFactory"
    }

    fn create(&self, context: CompactionFilterContext) -> Option<Arc<dyn CompactionFilter>> {
        let inner = self.inner.as_ref().and_then(|factory| factory.create(context));
        Some(Arc::new(Expiry::new(self.stamps.clone(), self.ttl_s, inner)))
    }
}
