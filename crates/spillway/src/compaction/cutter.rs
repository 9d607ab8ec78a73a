//! Cuts output files: at a target size, before a file overlaps too many bytes of grandparents, and where the partitioner
//! says. Never between versions of one user key.

use std::sync::Arc;

use base::UserOrder;
use base::options::SstPartitioner;

use crate::version::level::ends_before;
use crate::version::table_file::TableFile;

/// Entry bytes between two checks of the file's size.
const SIZE_CHECK_BYTES_MAX: u64 = 4096;

/// A file may end early at a grandparent's end from this percentage of the target size, so fewer files overlap it.
/// Each grandparent passed raises the percentage by the step.
const EARLY_CUT_PERCENT: u64 = 50;
const EARLY_CUT_STEP_PERCENT: u64 = 5;
const EARLY_CUT_PERCENT_MAX: u64 = 90;

/// Limits of a cutter, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct CutLimits {
    pub target_bytes: u64,
    /// Grandparent bytes overlapped by one file, at most.
    pub grandparent_bytes_max: u64,
}

/// Follows the written user keys and decides the cuts.
pub struct Cutter {
    order: UserOrder,
    limits: CutLimits,
    grandparents: Vec<Arc<TableFile>>,
    /// First grandparent not ending before the last key seen.
    at: usize,
    /// Grandparents passed since the file began, and their bytes.
    passed: u64,
    passed_bytes: u64,
    unchecked_bytes: u64,
    file_bytes: u64,
    /// The file is full and ends after this user key.
    full_at: Option<Vec<u8>>,
    partitioner: SstPartitioner,
    /// The last user key written, for the partitioner.
    last: Vec<u8>,
}

impl Cutter {
    pub fn new(order: UserOrder, limits: CutLimits, grandparents: Vec<Arc<TableFile>>) -> Self {
        Cutter {
            order,
            limits,
            grandparents,
            at: 0,
            passed: 0,
            passed_bytes: 0,
            unchecked_bytes: 0,
            file_bytes: 0,
            full_at: None,
            partitioner: SstPartitioner::None,
            last: Vec::new(),
        }
    }

    /// Also cuts where `partitioner` says.
    #[must_use]
    pub fn partitioned(self, partitioner: SstPartitioner) -> Self {
        Cutter { partitioner, ..self }
    }

    /// Whether the file being written ends before an entry of this user key. Called for every entry, in order.
    #[inline]
    pub fn cuts_before(&mut self, user_key: &[u8]) -> bool {
        let crossed = self.at < self.grandparents.len() && self.pass_grandparents(user_key);
        // Different bytes may be one user key to its order.
        if self.partitioner.cuts_between(&self.last, user_key) && !self.order.equal(&self.last, user_key) {
            return true;
        }
        if let Some(last) = &self.full_at {
            return !self.order.equal(last, user_key);
        }
        // Grandparents end between user keys, so the cut separates no versions.
        crossed && self.is_good_end()
    }

    /// Passes the grandparents ending before the key; true if there were any.
    fn pass_grandparents(&mut self, user_key: &[u8]) -> bool {
        let before = self.at;
        let nothing_written = self.file_bytes + self.unchecked_bytes == 0;
        while let Some(file) = self.grandparents.get(self.at)
            && ends_before(&self.order, &file.meta, user_key)
        {
            self.at += 1;
            self.passed += 1;
            self.passed_bytes += file.meta.file_bytes;
        }
        if nothing_written {
            (self.passed, self.passed_bytes) = (0, 0);
        }
        self.at > before
    }

    fn is_good_end(&self) -> bool {
        let next = self.grandparents.get(self.at).map_or(0, |file| file.meta.file_bytes);
        if self.passed_bytes.saturating_add(next) > self.limits.grandparent_bytes_max {
            return true;
        }
        let percent = (EARLY_CUT_PERCENT + EARLY_CUT_STEP_PERCENT * self.passed).min(EARLY_CUT_PERCENT_MAX);
        let written = self.file_bytes + self.unchecked_bytes;
        written >= self.limits.target_bytes.div_ceil(100).saturating_mul(percent)
    }

    /// Records a written entry. `file_bytes` returns the file's size; it is called now and then only.
    #[inline]
    pub fn wrote(&mut self, user_key: &[u8], entry_bytes: usize, file_bytes: impl FnOnce() -> u64) {
        self.unchecked_bytes += entry_bytes as u64;
        if self.partitioner != SstPartitioner::None {
            self.last.clear();
            self.last.extend_from_slice(user_key);
        }
        if self.unchecked_bytes >= SIZE_CHECK_BYTES_MAX.min(self.limits.target_bytes / 16) {
            self.unchecked_bytes = 0;
            self.file_bytes = file_bytes();
            if self.full_at.is_none() && self.file_bytes >= self.full_bytes() {
                self.full_at = Some(user_key.to_vec());
            }
        }
    }

    /// With grandparents left, a file may grow to twice its target to end at a grandparent's end.
    fn full_bytes(&self) -> u64 {
        if self.at < self.grandparents.len() {
            self.limits.target_bytes.saturating_mul(2)
        } else {
            self.limits.target_bytes
        }
    }

    /// Resets for a new file.
    pub fn begin_file(&mut self) {
        self.full_at = None;
        self.passed = 0;
        self.passed_bytes = 0;
        self.unchecked_bytes = 0;
        self.file_bytes = 0;
    }
}
