//! One level's tables, with cached totals and a dense array for key search.

use std::cmp::Ordering;
use std::sync::Arc;

use base::{SeqNo, UserOrder};

use super::table_file::{FileMeta, TableFile};

/// The tables of one level. Immutable once built.
#[derive(Default)]
pub struct Level {
    files: Vec<Arc<TableFile>>,
    /// The [`rank`] of each file's largest user key: a search touches one array instead of every file.
    ranks: Vec<u64>,
    bytes: u64,
    max_epoch: u64,
    /// The oldest known time of a table's data, and of a table; 0 for none.
    oldest_data_s: u64,
    oldest_file_s: u64,
    largest_seq: SeqNo,
}

impl Level {
    pub(super) fn with_capacity(files: usize) -> Self {
        Level { files: Vec::with_capacity(files), ranks: Vec::with_capacity(files), ..Level::default() }
    }

    /// Appends a file; the caller keeps the level's order.
    pub(super) fn push(&mut self, order: &UserOrder, file: Arc<TableFile>) {
        let rank = order.rank(file.largest_user_key());
        self.push_ranked(file, rank);
    }

    /// Appends a file of a different version of this level.
    pub(super) fn push_from(&mut self, other: &Level, index: usize) {
        if let (Some(file), Some(&rank)) = (other.files.get(index), other.ranks.get(index)) {
            self.push_ranked(file.clone(), rank);
        }
    }

    fn push_ranked(&mut self, file: Arc<TableFile>, rank: u64) {
        self.bytes = self.bytes.saturating_add(file.meta.file_bytes);
        self.max_epoch = self.max_epoch.max(file.meta.epoch_number);
        self.oldest_data_s = older(self.oldest_data_s, file.meta.oldest_ancestor_time);
        self.oldest_file_s = older(self.oldest_file_s, file.meta.file_creation_time);
        self.largest_seq = self.largest_seq.max(file.meta.largest_seq);
        self.files.push(file);
        self.ranks.push(rank);
    }

    pub fn files(&self) -> &[Arc<TableFile>] {
        &self.files
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn max_epoch(&self) -> u64 {
        self.max_epoch
    }

    /// The oldest known time of data in a table, in seconds since the epoch; 0 for none.
    pub fn oldest_data_s(&self) -> u64 {
        self.oldest_data_s
    }

    /// The oldest known creation of a table, in seconds since the epoch; 0 for none.
    pub fn oldest_file_s(&self) -> u64 {
        self.oldest_file_s
    }

    /// The largest number in any of the tables.
    pub fn largest_seq(&self) -> SeqNo {
        self.largest_seq
    }

    /// Sorted level: tables with keys in `start..=end`.
    pub fn overlapping_sorted(&self, order: &UserOrder, start: Option<&[u8]>, end: Option<&[u8]>) -> &[Arc<TableFile>] {
        let first = start.map_or(0, |start| self.first_not_before(order, start));
        let rest = self.files.get(first..).unwrap_or(&[]);
        let Some(end) = end else {
            return rest;
        };
        // A point lookup nearly always ends after one file: look there before searching.
        let starts_in = |file: &Arc<TableFile>| order.compare(file.smallest_user_key(), end) != Ordering::Greater;
        let count = match rest {
            [] => 0,
            [only] => usize::from(starts_in(only)),
            [first, second, ..] => match (starts_in(first), starts_in(second)) {
                (false, _) => 0,
                (true, false) => 1,
                (true, true) => rest.partition_point(starts_in),
            },
        };
        rest.get(..count).unwrap_or(&[])
    }

    /// Index of the first file not ending before `user_key`.
    fn first_not_before(&self, order: &UserOrder, user_key: &[u8]) -> usize {
        let rank = order.rank(user_key);
        let low = self.ranks.partition_point(|&r| r < rank);
        let ties = self.ranks.get(low..).map_or(0, |ranks| ranks.partition_point(|&r| r == rank));
        let tied = self.files.get(low..low + ties).unwrap_or(&[]);
        low + tied.partition_point(|file| ends_before(order, &file.meta, user_key))
    }

    /// Level 0: tables with keys in `start..=end`. The span grows with each table found, until no more overlap.
    pub fn overlapping_unsorted(
        &self,
        order: &UserOrder,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Vec<Arc<TableFile>> {
        let (mut start, mut end) = (start, end);
        let mut taken = vec![false; self.files.len()];
        loop {
            let mut grown = false;
            for (file, taken) in self.files.iter().zip(&mut taken) {
                if *taken || !overlaps(order, &file.meta, start, end) {
                    continue;
                }
                *taken = true;
                if start.is_some_and(|start| order.compare(file.smallest_user_key(), start) == Ordering::Less) {
                    start = Some(file.smallest_user_key());
                    grown = true;
                }
                if end.is_some_and(|end| order.compare(file.largest_user_key(), end) == Ordering::Greater) {
                    end = Some(file.largest_user_key());
                    grown = true;
                }
            }
            if !grown {
                break;
            }
        }
        self.files.iter().zip(taken).filter(|(_, taken)| *taken).map(|(file, _)| file.clone()).collect()
    }

    /// Level 0: whether any table has keys in `start..=end`.
    pub fn any_overlap_unsorted(&self, order: &UserOrder, start: Option<&[u8]>, end: Option<&[u8]>) -> bool {
        self.files.iter().any(|file| overlaps(order, &file.meta, start, end))
    }
}

/// The older of two times; 0 is unknown.
fn older(a: u64, b: u64) -> u64 {
    if a == 0 || b == 0 { a.max(b) } else { a.min(b) }
}

/// Whether all keys of a table are below `user_key`.
pub fn ends_before(order: &UserOrder, meta: &FileMeta, user_key: &[u8]) -> bool {
    match order.compare(meta.largest_user_key(), user_key) {
        Ordering::Less => true,
        Ordering::Equal => meta.largest_is_exclusive(),
        Ordering::Greater => false,
    }
}

/// Whether a table has keys in `start..=end`; `None` is unbounded.
pub fn overlaps(order: &UserOrder, meta: &FileMeta, start: Option<&[u8]>, end: Option<&[u8]>) -> bool {
    let before = start.is_some_and(|start| ends_before(order, meta, start));
    let after = end.is_some_and(|end| order.compare(meta.smallest_user_key(), end) == Ordering::Greater);
    !before && !after
}
