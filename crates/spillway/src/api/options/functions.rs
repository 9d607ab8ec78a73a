//! Extension traits by closures.

use std::cmp::Ordering;

use base::Comparator;
use base::extend::{CompactionFilter, FilterDecision, MergeOperator};

pub(super) struct MergeFn<F> {
    pub name: String,
    pub merge: F,
}

impl<F> MergeOperator for MergeFn<F>
where
    F: Fn(&[u8], Option<&[u8]>, &[&[u8]]) -> Option<Vec<u8>> + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        (self.merge)(key, existing, operands)
    }
}

pub(super) struct CompactionFilterFn<F> {
    pub name: String,
    pub filter: F,
}

impl<F> CompactionFilter for CompactionFilterFn<F>
where
    F: Fn(usize, &[u8], &[u8]) -> FilterDecision + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, level: usize, key: &[u8], value: &[u8]) -> FilterDecision {
        (self.filter)(level, key, value)
    }
}

pub(super) struct ComparatorFn<F> {
    pub name: String,
    pub compare: F,
}

impl<F> Comparator for ComparatorFn<F>
where
    F: Fn(&[u8], &[u8]) -> Ordering + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (self.compare)(a, b)
    }
}
