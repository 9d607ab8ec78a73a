//! Answers of keys looked up often: outcomes of lookups, in front of the tables.
//!
//! Answers are records in a circular log ([`log`]), found by an index that may forget ([`bucket`]), as in MICA (Lim et
//! al., NSDI 2014). A lookup reads one bucket and, for a hot key, one record: no lock, no shared count. Rows in a map, each in
//! allocations of their own, cost as many cache and TLB misses as a lookup in a cached table.
//!
//! The memory is a fixed share of the cache's. The buckets are made by the first lookup, the log by the first answer.
//!
//! *Thread safety*: lookups run beside each other and beside one append. Appends take a lock; one that finds it taken
//! gives up.

mod bucket;
mod log;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use base::{Pinned, SeqNo};
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use self::bucket::Bucket;
use self::log::{Log, Read};

/// Bytes of the log for each bucket: some four records.
const LOG_BYTES_PER_BUCKET: usize = 512;
/// Fewer keep too little.
const BUCKETS_MIN: usize = 4;
/// Most bytes of buckets and log.
const BYTES_MAX: usize = 1 << 30;
/// Longest key, and longest value, of an answer. A longer value pays for its walk through a table.
const PART_BYTES_MAX: usize = 1 << 10;

/// A lookup of `user_key` as of `seq`, in tables with this content.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Names the content of the tables, uniquely in the process. Not 0.
    pub content: u64,
    /// Compared byte by byte.
    pub user_key: &'a [u8],
    /// The lookup's number.
    pub seq: SeqNo,
}

/// What is known of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    Unknown,
    /// Nothing, and the answer is wanted, as the key is hot.
    Wanted(KeyHash),
    /// The value; `None`: the key does not exist.
    Known(Option<Pinned>),
}

/// Hash of a user key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(u64);

/// The answer to a question.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The newest number among the key's entries and tombstones; 0 without any. Lookups below it have other answers.
    pub decided_at: SeqNo,
    /// `None`: the key does not exist.
    pub value: Option<&'a [u8]>,
}

/// The answers of a cache.
pub(super) struct Answers {
    buckets: Box<[Bucket]>,
    log: OnceLock<Log>,
    log_bytes: usize,
    appending: Mutex<()>,
}

impl Answers {
    /// In at most so many bytes.
    pub(super) fn within(bytes: usize) -> Self {
        let buckets = bytes.min(BYTES_MAX) / (LOG_BYTES_PER_BUCKET + size_of::<Bucket>());
        let buckets = if buckets < BUCKETS_MIN { 0 } else { buckets };
        Answers {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            log: OnceLock::new(),
            log_bytes: buckets * LOG_BYTES_PER_BUCKET,
            appending: Mutex::default(),
        }
    }

    /// Bytes in use.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.buckets) + self.log.get().map_or(0, |_| self.log_bytes)
    }

    /// The answer, if it is kept. Counts the lookup.
    #[inline]
    pub(super) fn ask(&self, question: &Question<'_>) -> Reply {
        let hash = KeyHash(xxh3_64(question.user_key));
        match self.bucket(hash) {
            Some(bucket) if bucket.count(hash.0) => self.ask_for_hot(bucket, hash, question),
            _ => Reply::Unknown,
        }
    }

    fn ask_for_hot(&self, bucket: &Bucket, hash: KeyHash, question: &Question<'_>) -> Reply {
        let Some(log) = self.log.get() else { return Reply::Wanted(hash) };
        for at in bucket.positions(hash.0) {
            match log.read(at, question) {
                Read::Answer(value) => return Reply::Known(value.map(Pinned::from)),
                Read::Newer => return Reply::Unknown,
                Read::Nothing => {}
            }
        }
        Reply::Wanted(hash)
    }

    /// Keeps the answer to a wanted question. True if this call made the log.
    pub(super) fn keep(&self, hash: KeyHash, question: &Question<'_>, answer: &Answer<'_>) -> bool {
        let is_long = |bytes: &[u8]| bytes.len() > PART_BYTES_MAX;
        let Some(bucket) = self.bucket(hash) else { return false };
        if is_long(question.user_key) || answer.value.is_some_and(is_long) {
            return false;
        }
        let Some(_appending) = self.appending.try_lock() else { return false };
        let is_first = self.log.get().is_none();
        let log = self.log.get_or_init(|| Log::new(self.log_bytes));
        if let Some(at) = log.append(question, answer) {
            bucket.place(hash.0, at);
        }
        is_first
    }

    #[inline]
    fn bucket(&self, hash: KeyHash) -> Option<&Bucket> {
        // The lowest 32 bits of the hash, scaled.
        let at = u64::from(hash.0 as u32) * self.buckets.len() as u64;
        self.buckets.get((at >> 32) as usize)
    }
}
