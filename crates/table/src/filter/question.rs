//! Queries a table's filter by key, for every filter storage, and counts the answers.

use std::sync::Arc;

use base::extend::PrefixExtractor;
use base::metrics::{Statistics, Ticker, tick};
use base::{Result, UserOrder};
use vfs::perf::{self, Metric};

use crate::{Properties, TableContext};

/// Counts an answer of a filter for this thread.
#[inline]
fn count_of_thread(may_match: bool) {
    perf::count([(if may_match { Metric::BloomSstHitCount } else { Metric::BloomSstMissCount }, 1)]);
}

/// The parts of keys present in a filter.
pub(crate) struct FilterQuestion {
    whole_keys: bool,
    /// Extractor of the prefixes in the filter. `None` if the filter has no prefixes, or the family's extractor has
    /// changed.
    prefix_extractor: Option<Arc<dyn PrefixExtractor>>,
}

impl FilterQuestion {
    pub(crate) fn new(properties: &Properties, context: &TableContext) -> Self {
        let same = |extractor: &Arc<dyn PrefixExtractor>| extractor.name() == properties.prefix_extractor;
        FilterQuestion {
            whole_keys: properties.whole_key_filtering,
            prefix_extractor: context
                .prefix_extractor
                .clone()
                .filter(|extractor| properties.prefix_filtering && same(extractor)),
        }
    }

    pub(crate) fn by_whole_keys(&self) -> bool {
        self.whole_keys
    }

    /// False if the table certainly holds no entry of `user_key`. `ask` queries the filter itself.
    #[inline]
    pub(crate) fn may_hold_key(
        &self,
        user_key: &[u8],
        order: &UserOrder,
        statistics: &Option<Arc<Statistics>>,
        ask: impl FnOnce(&[u8]) -> Result<bool>,
    ) -> Result<bool> {
        if order.equal_keys_can_differ() {
            return Ok(true); // a filter goes by bytes
        }
        if !self.whole_keys {
            return self.may_hold_prefix(user_key, order, statistics, ask);
        }
        let may_match = ask(order.strip_timestamp(user_key))?;
        let ticker = if may_match { Ticker::BloomFilterFullPositive } else { Ticker::BloomFilterUseful };
        tick(statistics, ticker, 1);
        count_of_thread(may_match);
        Ok(may_match)
    }

    /// False if no key at or after `user_key` has its prefix.
    pub(crate) fn may_hold_prefix(
        &self,
        user_key: &[u8],
        order: &UserOrder,
        statistics: &Option<Arc<Statistics>>,
        ask: impl FnOnce(&[u8]) -> Result<bool>,
    ) -> Result<bool> {
        let user_key = order.strip_timestamp(user_key);
        let Some(prefix) = self.prefix_extractor.as_ref().and_then(|extractor| extractor.prefix(user_key)) else {
            return Ok(true);
        };
        let may_match = ask(prefix)?;
        count_of_thread(may_match);
        tick(statistics, Ticker::BloomFilterPrefixChecked, 1);
        tick(statistics, Ticker::BloomFilterPrefixUseful, u64::from(!may_match));
        Ok(may_match)
    }
}
