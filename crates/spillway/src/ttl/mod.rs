//! Values with a time to live: RocksDB's `DBWithTTL`, and `FamilyOptions::ttl` of the Rust API. The engine notes in the
//! MANIFEST that a family's values have stamps, and keeps stamps from merge operators and filters. The interfaces stamp what
//! they write, and remove stamps from what they read.
//!
//! Every value and merge operand ends with the second of its write: four bytes, little endian, as seconds since the
//! epoch. Reads remove the stamp. Compactions drop values older than their family's time to live. Until then old values
//! stay readable in C, as in RocksDB; the Rust API hides them. RocksDB's `ldb --ttl` reads an export of such a database.

mod filter;
mod merge;

use std::borrow::Cow;
use std::sync::Arc;

use base::options::FamilyOptions;
use base::{Error, Pinned, Result, ValueKind};
use vfs::Vfs;

use crate::batch::WriteBatch;

use self::filter::{Expiry, ExpiryFactory};
use self::merge::StampedMerge;
pub use self::merge::{MergeName, STAMPED_MERGE};

const STAMP_BYTES: usize = 4;

/// RocksDB's lowest valid stamp: it wrote none earlier. A lower number is no stamp.
const FIRST_STAMP: i32 = 1_368_146_402;

/// Appends stamps to values, and removes them.
#[derive(Clone)]
pub struct Stamps {
    clock: Arc<dyn Vfs>,
}

impl Stamps {
    /// Stamps by this clock.
    pub fn new(clock: Arc<dyn Vfs>) -> Stamps {
        Stamps { clock }
    }

    /// Options of a family whose values have stamps. Has compactions drop values older than `ttl_s` seconds, if `ttl_s` is
    /// above 0. Hides the stamps from the options' filter and operator.
    pub fn wrap(&self, options: &mut FamilyOptions, ttl_s: i32, name: MergeName) {
        match (options.compaction_filter.take(), options.compaction_filter_factory.take()) {
            (Some(filter), factory) => {
                options.compaction_filter = Some(Arc::new(Expiry::new(self.clone(), ttl_s, Some(filter))));
                options.compaction_filter_factory = factory;
            }
            (None, None) if ttl_s <= 0 => {}
            (None, inner) => {
                options.compaction_filter_factory = Some(Arc::new(ExpiryFactory::new(self.clone(), ttl_s, inner)));
            }
        }
        if let Some(operator) = options.merge_operator.take() {
            options.merge_operator = Some(Arc::new(StampedMerge::new(self.clone(), operator, name)));
        }
    }

    /// Seconds since the epoch, as in a stamp.
    fn now_s(&self) -> i64 {
        i64::try_from(self.clock.unix_time_us() / 1_000_000).unwrap_or(i64::MAX)
    }

    /// The value with a stamp of now behind it.
    pub fn stamped(&self, value: &[u8]) -> Vec<u8> {
        let mut stamped = Vec::with_capacity(value.len() + STAMP_BYTES);
        stamped.extend_from_slice(value);
        self.stamp(&mut stamped);
        stamped
    }

    fn stamp(&self, value: &mut Vec<u8>) {
        let seconds = i32::try_from(self.now_s()).unwrap_or(i32::MAX);
        value.extend_from_slice(&seconds.to_le_bytes());
    }

    /// The batch with a stamp behind every value and operand. Log data changes nothing, and is left out.
    pub fn stamped_batch(&self, batch: &WriteBatch) -> Result<WriteBatch> {
        let mut stamped = WriteBatch::new();
        for record in batch.iter() {
            let record = record?;
            let (family, key) = (record.family, record.key);
            match record.kind {
                ValueKind::Value => stamped.put(family, key, &self.stamped(record.value)),
                ValueKind::Merge => stamped.merge(family, key, &self.stamped(record.value)),
                ValueKind::Deletion => stamped.delete(family, key),
                ValueKind::SingleDeletion => stamped.single_delete(family, key),
                ValueKind::RangeDeletion => stamped.delete_range(family, key, record.value),
            }
        }
        Ok(stamped)
    }
}

/// How to write and show the values of a family that have stamps.
#[derive(Clone)]
pub struct Times {
    stamps: Stamps,
    /// 0: nothing expires.
    ttl_s: u32,
}

impl Times {
    /// `None`: values have no stamps.
    pub fn of(clock: &Arc<dyn Vfs>, options: &FamilyOptions) -> Option<Times> {
        (*options.value_times).then(|| Times { stamps: Stamps::new(clock.clone()), ttl_s: options.value_ttl_s })
    }

    /// A value or operand as it is stored.
    pub fn stored<'a>(times: Option<&Times>, value: &'a [u8]) -> Cow<'a, [u8]> {
        match times {
            None => Cow::Borrowed(value),
            Some(times) => Cow::Owned(times.stamps.stamped(value)),
        }
    }

    /// A looked up value as the caller wrote it. `None`: it has expired.
    ///
    /// # Errors
    /// `Corruption`: the value has no stamp.
    pub fn shown(&self, stamped: Pinned) -> Result<Option<Pinned>> {
        if self.is_expired(&stamped) { Ok(None) } else { unstamp(stamped).map(Some) }
    }

    /// Whether a value has outlived its time. False if it has no stamp.
    pub fn is_expired(&self, stamped: &[u8]) -> bool {
        let is_old = |stamp_s| i64::from(stamp_s) + i64::from(self.ttl_s) < self.stamps.now_s();
        self.ttl_s > 0 && timed(stamped).is_ok_and(|(_, stamp_s)| is_old(stamp_s))
    }
}

/// A value and its stamp, in seconds; `None` if it is too short for one.
pub fn split(stamped: &[u8]) -> Option<(&[u8], i32)> {
    let (value, stamp) = stamped.split_last_chunk::<STAMP_BYTES>()?;
    Some((value, i32::from_le_bytes(*stamp)))
}

/// The value before the stamp; all of it if it is too short for one.
pub fn unstamped(stamped: &[u8]) -> &[u8] {
    split(stamped).map_or(stamped, |(value, _)| value)
}

/// The value and its stamp, compared with the first that there can be.
///
/// # Errors
/// `Corruption`: the value was written without a stamp.
pub fn timed(stamped: &[u8]) -> Result<(&[u8], i32)> {
    let what = match split(stamped) {
        None => "Error: value's length less than timestamp's",
        Some((_, stamp)) if stamp < FIRST_STAMP => "Error: Timestamp < ttl feature release time!",
        Some(timed) => return Ok(timed),
    };
    Err(Error::corruption(what).advise(WITHOUT_TIME))
}

/// The advice for a value without a stamp.
pub const WITHOUT_TIME: &str =
    "the value was written without a time, by an open without a ttl, and such an open shows it";

/// The value before the stamp, of a looked up value.
///
/// # Errors
/// As [`timed`].
pub fn unstamp(value: Pinned) -> Result<Pinned> {
    let len = timed(&value)?.0.len();
    let shared = value.as_shared().map(|(owner, start)| Pinned::shared(owner.clone(), start..start + len));
    Ok(shared.unwrap_or_else(|| {
        let mut bytes = value.into_vec();
        bytes.truncate(len);
        bytes.into()
    }))
}
