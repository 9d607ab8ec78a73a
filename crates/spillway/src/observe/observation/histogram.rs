//! Histograms of a reading.

use base::metrics::Distribution;

use super::plain;

plain! {
    /// A histogram. Its unit is in the name of its field: `_us` is microseconds.
    pub struct ObservedHistogram {
        /// Number of records.
        pub count: u64,
        /// Sum of all records.
        pub sum: u64,
        /// The largest record; 0 without any.
        pub max: u64,
        /// The buckets with records, ascending.
        pub buckets: Vec<ObservedBucket>,
    }

    /// A bucket of a histogram.
    pub struct ObservedBucket {
        /// The largest value that falls into it. The smallest is one above the next smaller limit of all histograms.
        pub up_to: u64,
        /// Number of records in this bucket alone.
        pub count: u64,
    }
}

impl From<&Distribution> for ObservedHistogram {
    fn from(values: &Distribution) -> Self {
        let filled = values.buckets().filter(|(_, count)| *count > 0);
        let buckets = filled.map(|(up_to, count)| ObservedBucket { up_to, count });
        ObservedHistogram { count: values.count(), sum: values.sum(), max: values.max(), buckets: buckets.collect() }
    }
}

impl ObservedHistogram {
    /// The mean; 0 without records.
    pub fn average(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The upper limit of the bucket with the `percent` percentile, at most the largest record; 0 without records.
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = (self.count as f64 * percent / 100.0).max(1.0);
        let mut below = 0;
        for bucket in &self.buckets {
            below += bucket.count;
            if below as f64 >= wanted {
                return bucket.up_to.min(self.max);
            }
        }
        self.max
    }

    /// Number of records at or below `value`, as far as buckets tell.
    pub fn count_up_to(&self, value: u64) -> u64 {
        self.buckets.iter().take_while(|bucket| bucket.up_to <= value).map(|bucket| bucket.count).sum()
    }

    /// The records after `before`, an earlier reading of the same histogram. `max` is that of all.
    #[must_use]
    pub fn since(&self, before: &ObservedHistogram) -> ObservedHistogram {
        let earlier =
            |up_to: u64| before.buckets.iter().find(|bucket| bucket.up_to == up_to).map_or(0, |old| old.count);
        let newer = self.buckets.iter().map(|bucket| ObservedBucket {
            up_to: bucket.up_to,
            count: bucket.count.saturating_sub(earlier(bucket.up_to)),
        });
        ObservedHistogram {
            count: self.count.saturating_sub(before.count),
            sum: self.sum.saturating_sub(before.sum),
            max: self.max,
            buckets: newer.filter(|bucket| bucket.count > 0).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::metrics::{Histogram, Statistics};

    use super::*;

    #[test]
    fn buckets_add_up_and_subtract() {
        let statistics = Statistics::default();
        let read = || ObservedHistogram::from(&statistics.distribution(Histogram::DbWrite));
        assert_eq!((read(), read().percentile(99.0)), (ObservedHistogram::default(), 0));
        [1, 2, 2, 100].iter().for_each(|value| statistics.record(Histogram::DbWrite, *value));
        let first = read();
        assert_eq!((first.count, first.sum, first.max, first.buckets.len()), (4, 105, 100, 3));
        assert_eq!((first.percentile(50.0), first.percentile(100.0), first.count_up_to(2)), (2, 100, 3));
        statistics.record(Histogram::DbWrite, 2);
        let newer = read().since(&first);
        assert_eq!((newer.count, newer.sum, newer.buckets), (1, 2, vec![ObservedBucket { up_to: 2, count: 1 }]));
    }
}
