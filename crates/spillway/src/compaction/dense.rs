//! Deletions that stand close together in a table being written, or are a large part of it: the table is marked for
//! compaction (`table_properties_collectors`).

use std::collections::VecDeque;

use base::ValueKind;
use base::options::CompactOnDeletion;

/// Counts the entries of one table.
pub(super) struct Density<'a> {
    collectors: &'a [CompactOnDeletion],
    /// Of each collector, the places of the last deletions, as many as mark a table.
    recent: Vec<VecDeque<u64>>,
    /// Of each collector, whether a window was full of deletions.
    was_full: Vec<bool>,
    entries: u64,
    deletions: u64,
}

impl<'a> Density<'a> {
    pub fn new(collectors: &'a [CompactOnDeletion]) -> Self {
        let (recent, was_full) = collectors.iter().map(|_| (VecDeque::new(), false)).unzip();
        Density { collectors, recent, was_full, entries: 0, deletions: 0 }
    }

    /// Counts the next entry by its kind's byte.
    #[inline]
    pub fn add(&mut self, kind: u8) {
        if self.collectors.is_empty() {
            return;
        }
        self.entries += 1;
        if kind == ValueKind::Deletion as u8 || kind == ValueKind::SingleDeletion as u8 {
            self.add_deletion();
        }
    }

    fn add_deletion(&mut self) {
        self.deletions += 1;
        let windows = self.recent.iter_mut().zip(&mut self.was_full).zip(self.collectors);
        for ((recent, was_full), collector) in windows {
            if *was_full || collector.window_size == 0 || collector.deletion_trigger == 0 {
                continue;
            }
            recent.push_back(self.entries);
            if recent.len() > collector.deletion_trigger {
                recent.pop_front();
            }
            let first = recent.front().copied().unwrap_or(self.entries);
            let is_within = self.entries - first < collector.window_size as u64;
            *was_full = is_within && recent.len() == collector.deletion_trigger;
        }
    }

    /// Whether a table of these entries and so many bytes is marked.
    pub fn marks(&self, file_bytes: u64) -> bool {
        let is_part = |ratio: f64| {
            ratio > 0.0 && ratio <= 1.0 && self.deletions > 0 && self.deletions as f64 >= ratio * self.entries as f64
        };
        let mut marks = self.collectors.iter().zip(&self.was_full);
        marks.any(|(of, was_full)| (*was_full || is_part(of.deletion_ratio)) && file_bytes >= of.min_file_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a table of these entries is marked; `d` and `s` are deletions.
    fn marks(collectors: &[CompactOnDeletion], entries: &str) -> bool {
        let mut density = Density::new(collectors);
        for entry in entries.chars() {
            density.add(match entry {
                'd' => ValueKind::Deletion as u8,
                's' => ValueKind::SingleDeletion as u8,
                _ => ValueKind::Value as u8,
            });
        }
        density.marks(1000)
    }

    #[test]
    fn deletions_count_within_a_window() {
        let collector = [CompactOnDeletion { window_size: 5, deletion_trigger: 3, ..CompactOnDeletion::default() }];
        assert!(marks(&collector, "vvdvdvdvv"), "three of five");
        assert!(marks(&collector, "dsd"));
        assert!(!marks(&collector, "dvvvddvvvvdd"), "three of six at most");
        assert!(!marks(&collector, "dd"));
        assert!(marks(&[CompactOnDeletion { deletion_trigger: 1, ..collector[0] }], "vvvvvvvvvd"));
        assert!(!marks(&[CompactOnDeletion { deletion_trigger: 0, ..collector[0] }], "ddddd"), "not looked at");
    }

    #[test]
    fn deletions_count_as_a_part_of_all_entries() {
        let half = CompactOnDeletion { deletion_ratio: 0.5, ..CompactOnDeletion::default() };
        assert!(marks(&[half], "vvvddd") && !marks(&[half], "vvvvddd"));
        assert!(!marks(&[CompactOnDeletion { deletion_ratio: 1.5, ..half }], "ddd"));
        assert!(!marks(&[half], ""));
    }

    #[test]
    fn small_tables_are_not_marked_and_any_collector_can_mark() {
        let half = CompactOnDeletion { deletion_ratio: 0.5, min_file_size: 1001, ..CompactOnDeletion::default() };
        assert!(!marks(&[half], "d") && marks(&[half, CompactOnDeletion { min_file_size: 1000, ..half }], "d"));
        assert!(!marks(&[], "ddd"));
    }
}
