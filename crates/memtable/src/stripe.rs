//! Hot writer state, divided by thread so that concurrent writers do not contend for one cache line: counts of inserted
//! entries, and the representation's own state beside them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use base::ValueKind;

use crate::Entry;

/// Stripes of one memtable. More writing threads than stripes share them: slower, still correct.
pub(crate) const STRIPES: usize = 8;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD_INDEX: usize = THREADS.fetch_add(1, Relaxed);
}

/// The calling thread's number, from 0 in order of first use.
#[inline]
pub(crate) fn thread_index() -> usize {
    THREAD_INDEX.with(|index| *index)
}

/// Counts of the threads of one stripe.
#[repr(align(128))]
pub(crate) struct Stripe<T> {
    entries: AtomicU64,
    deletions: AtomicU64,
    payload_bytes: AtomicU64,
    key_bytes: AtomicU64,
    merge_operands: AtomicU64,
    range_deletions: AtomicU64,
    pub(crate) own: T,
}

pub(crate) struct Stripes<T> {
    stripes: [Stripe<T>; STRIPES],
}

/// Totals over a set of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of entries.
    pub entries: u64,
    /// Of every kind, range deletions among them.
    pub deletions: u64,
    /// Of keys and values.
    pub payload_bytes: u64,
    /// Bytes of keys.
    pub key_bytes: u64,
    /// Number of merge operands.
    pub merge_operands: u64,
    /// Number of range deletions.
    pub range_deletions: u64,
}

impl Counts {
    #[inline]
    pub(crate) fn note(&mut self, entry: &Entry<'_>) {
        let deletes = matches!(entry.kind, ValueKind::Deletion | ValueKind::SingleDeletion | ValueKind::RangeDeletion);
        self.entries += 1;
        self.deletions += u64::from(deletes);
        self.payload_bytes += (entry.user_key.len() + entry.value.len()) as u64;
        self.key_bytes += entry.user_key.len() as u64;
        self.merge_operands += u64::from(entry.kind == ValueKind::Merge);
        self.range_deletions += u64::from(entry.kind == ValueKind::RangeDeletion);
    }

    /// True if any count is set that is zero for most entries.
    fn has_rare_kinds(&self) -> bool {
        (self.deletions | self.merge_operands) != 0
    }
}

impl<T> Stripe<T> {
    /// Adds `counts` and returns the entries counted before.
    #[inline]
    pub(crate) fn add(&self, counts: Counts) -> u64 {
        if counts.has_rare_kinds() {
            self.deletions.fetch_add(counts.deletions, Relaxed);
            self.merge_operands.fetch_add(counts.merge_operands, Relaxed);
            self.range_deletions.fetch_add(counts.range_deletions, Relaxed);
        }
        self.payload_bytes.fetch_add(counts.payload_bytes, Relaxed);
        self.key_bytes.fetch_add(counts.key_bytes, Relaxed);
        self.entries.fetch_add(counts.entries, Relaxed)
    }

    /// As [`add`](Stripe::add), if all callers hold the same lock of the stripe: loads and stores suffice.
    #[inline]
    pub(crate) fn add_alone(&self, counts: Counts) {
        let add = |count: &AtomicU64, more| count.store(count.load(Relaxed) + more, Relaxed);
        if counts.has_rare_kinds() {
            add(&self.deletions, counts.deletions);
            add(&self.merge_operands, counts.merge_operands);
            add(&self.range_deletions, counts.range_deletions);
        }
        add(&self.payload_bytes, counts.payload_bytes);
        add(&self.key_bytes, counts.key_bytes);
        add(&self.entries, counts.entries);
    }
}

impl<T> Stripes<T> {
    pub(crate) fn new(own: impl Fn() -> T) -> Self {
        let stripe = |_| Stripe {
            entries: AtomicU64::new(0),
            deletions: AtomicU64::new(0),
            payload_bytes: AtomicU64::new(0),
            key_bytes: AtomicU64::new(0),
            merge_operands: AtomicU64::new(0),
            range_deletions: AtomicU64::new(0),
            own: own(),
        };
        Stripes { stripes: std::array::from_fn(stripe) }
    }

    /// The stripe of the calling thread.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "the remainder by STRIPES is below the array's length")]
    pub(crate) fn mine(&self) -> &Stripe<T> {
        &self.stripes[thread_index() % STRIPES]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stripe<T>> {
        self.stripes.iter()
    }

    pub(crate) fn totals(&self) -> Counts {
        self.iter().fold(Counts::default(), |sum, stripe| Counts {
            entries: sum.entries + stripe.entries.load(Relaxed),
            deletions: sum.deletions + stripe.deletions.load(Relaxed),
            payload_bytes: sum.payload_bytes + stripe.payload_bytes.load(Relaxed),
            key_bytes: sum.key_bytes + stripe.key_bytes.load(Relaxed),
            merge_operands: sum.merge_operands + stripe.merge_operands.load(Relaxed),
            range_deletions: sum.range_deletions + stripe.range_deletions.load(Relaxed),
        })
    }
}
