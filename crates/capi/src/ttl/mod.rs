//! Databases whose values grow old: RocksDB's `DBWithTTL`.
//!
//! Every value and merge operand ends with the second at which it was written: four bytes, little endian, as seconds since
//! the epoch. Reads take the stamp off. Compactions drop what is older than its family's time to live; until one passes
//! by, old values stay readable, as in RocksDB. Its `ldb --ttl` reads what is exported from such a database.

mod filter;
mod merge;

use std::sync::Arc;

use spillway::vfs::Vfs;
use spillway::{Error, FamilyOptions, Pinned, ValueKind, WriteBatch};

use self::filter::{Expiry, ExpiryFactory};
pub use self::merge::STAMPED_MERGE;
use self::merge::StampedMerge;
use crate::failure::Failure;

const STAMP_BYTES: usize = 4;

/// The first second that RocksDB takes for a stamp: it had none before. What is less was not written with one.
const FIRST_STAMP: i32 = 1_368_146_402;

/// Puts stamps behind values, and takes them off.
#[derive(Clone)]
pub struct Stamps {
    clock: Arc<dyn Vfs>,
}

impl Stamps {
    pub fn new(clock: Arc<dyn Vfs>) -> Stamps {
        Stamps { clock }
    }

    /// Has a family's compactions drop what is older than `ttl_s` seconds, if that is above 0, and hides the stamps from the
    /// filter and the operator that the options have.
    pub fn wrap(&self, options: &mut FamilyOptions, ttl_s: i32) {
        match options.compaction_filter.take() {
            Some(filter) => {
                options.compaction_filter = Some(Arc::new(Expiry::new(self.clone(), ttl_s, Some(filter))));
            }
            None => {
                let inner = options.compaction_filter_factory.take();
                options.compaction_filter_factory = Some(Arc::new(ExpiryFactory::new(self.clone(), ttl_s, inner)));
            }
        }
        if let Some(operator) = options.merge_operator.take() {
            options.merge_operator = Some(Arc::new(StampedMerge::new(self.clone(), operator)));
        }
    }

    /// Seconds since the epoch, as a stamp holds them.
    fn now_s(&self) -> i64 {
        i64::try_from(self.clock.unix_time_us() / 1_000_000).unwrap_or(i64::MAX)
    }

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

    /// The batch with a stamp behind every value and operand. Log data, which changes nothing, is left out.
    pub fn stamped_batch(&self, batch: &WriteBatch) -> Result<WriteBatch, Failure> {
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

/// A value and its stamp, in seconds; `None` where it is too short for one.
fn split(stamped: &[u8]) -> Option<(&[u8], i32)> {
    let (value, stamp) = stamped.split_last_chunk::<STAMP_BYTES>()?;
    Some((value, i32::from_le_bytes(*stamp)))
}

/// The value before the stamp; all of it where there is no room for one.
pub fn unstamped(stamped: &[u8]) -> &[u8] {
    split(stamped).map_or(stamped, |(value, _)| value)
}

/// The same for a value that was looked up.
///
/// # Errors
/// `Corruption`: the value was written without a stamp.
pub fn unstamp(value: Pinned) -> Result<Pinned, Error> {
    let len = match split(&value) {
        None => return Err(Error::corruption("Error: value's length less than timestamp's")),
        Some((_, stamp)) if stamp < FIRST_STAMP => {
            return Err(Error::corruption("Error: Timestamp < ttl feature release time!"));
        }
        Some((value, _)) => value.len(),
    };
    let shared = value.as_shared().map(|(owner, start)| Pinned::shared(owner.clone(), start..start + len));
    Ok(shared.unwrap_or_else(|| {
        let mut bytes = value.into_vec();
        bytes.truncate(len);
        bytes.into()
    }))
}
