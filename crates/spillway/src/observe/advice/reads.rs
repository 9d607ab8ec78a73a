//! Rules for reads. They need `statistics`.

use super::{Advice, AdviceSeverity, Scene, percent};
use crate::observe::{Observation, ObservedReads};

/// Fewer lookups, or looks into filters, prove nothing.
const LOOKS_MIN: u64 = 10_000;

/// Part of lookups that find nothing from which filters are worth their memory.
const MISSING_MIN: f64 = 0.2;

/// Part of a filter's looks in vain that its size should prevent.
const FALSE_MAX: f64 = 0.05;

/// Filters that do not help: none where they would, too small ones, or needless ones.
pub(super) fn filters(scene: &Scene<'_>) -> Vec<Advice> {
    let grown = |of: fn(&ObservedReads) -> u64| scene.grown(|seen: &Observation| seen.reads.as_ref().map_or(0, of));
    let lookups = grown(|reads| reads.gets + reads.multi_get_keys);
    let nowhere = grown(|reads| reads.answers.nowhere);
    let (useful, passed) = (grown(|reads| reads.filters.useful), grown(|reads| reads.filters.passed));
    let in_vain = grown(|reads| reads.filters.false_positives());
    let largest = scene.now.families.iter().max_by_key(|family| family.table_bytes);
    let Some(family) = largest.filter(|_| lookups >= LOOKS_MIN) else { return Vec::new() };
    let advise = |severity, seen: String, what: &str| Advice::new("filters", severity, seen, what).of(family);
    if useful + passed == 0 && nowhere as f64 > MISSING_MIN * lookups as f64 {
        let seen = format!(
            "{} of {lookups} lookups find nothing, and no table has a filter",
            percent(nowhere as f64, lookups as f64)
        );
        let what = "A filter spares them the reads of tables. New tables get it; old ones when they are compacted.";
        let advice = advise(AdviceSeverity::Warning, seen, what);
        return vec![advice.option("filter_policy", "nullptr".to_owned(), "bloomfilter:10:false".to_owned())];
    }
    let looks = useful + passed;
    if looks < LOOKS_MIN {
        return Vec::new();
    }
    let missed = useful + in_vain;
    if missed > LOOKS_MIN / 10 && in_vain as f64 > FALSE_MAX * missed as f64 {
        let seen = format!(
            "{} of the tables without the key are read in spite of their filter",
            percent(in_vain as f64, missed as f64)
        );
        let what = "The filters have too few bits for each key, or tables without one are among them: compact those.";
        let advice = advise(AdviceSeverity::Note, seen, what);
        return vec![advice.option("filter_policy", String::new(), "bloomfilter:14:false".to_owned())];
    }
    if (useful as f64) < 0.02 * looks as f64 {
        let seen = format!("filters spare {useful} of {looks} reads of tables");
        let what = "Nearly every key that is looked up exists: filters of the last level only take memory.";
        let advice = advise(AdviceSeverity::Note, seen, what);
        return vec![advice.option("optimize_filters_for_hits", "false".to_owned(), "true".to_owned())];
    }
    Vec::new()
}

/// Hidden entries for each step of an iterator from which scans are slow.
const HIDDEN_MIN: f64 = 10.0;

/// Fewer hidden entries cost nothing.
const SKIPPED_MIN: u64 = 100_000;

/// Iterators that pass more deleted entries than they show.
pub(super) fn tombstones(scene: &Scene<'_>) -> Vec<Advice> {
    let grown = |of: fn(&ObservedReads) -> u64| scene.grown(|seen: &Observation| seen.reads.as_ref().map_or(0, of));
    let (skipped, moves) = (grown(|reads| reads.skipped), grown(|reads| reads.seeks + reads.steps));
    if skipped < SKIPPED_MIN || (skipped as f64) < HIDDEN_MIN * moves as f64 {
        return Vec::new();
    }
    let each = skipped as f64 / moves.max(1) as f64;
    let seen = format!("iterators passed {skipped} deleted or overwritten entries, {each:.0} for each step");
    let what = "Give iterators bounds, delete ranges by one delete_range, and have tables with many deletions compacted \
                first. An old snapshot keeps what is deleted.";
    let advice = Advice::new("tombstones", AdviceSeverity::Warning, seen, what);
    vec![advice.option("table_properties_collectors", String::new(), "CompactOnDeletionCollector".to_owned())]
}
