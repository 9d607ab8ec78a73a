//! `WriteBatch`, and `WriteBatchWithIndex` in `indexed`.

pub mod changes;
pub mod contents;
pub mod handler;
pub mod indexed;
pub mod walk;
pub mod writes;

use capi::failure::Failure;
use capi::family::FamilyHandle;
use spillway::internal::indexed::SharedBatch;
use spillway::internal::{Error, FamilyId, SeqNo, ValueKind, WriteBatch};

use crate::fault::Fault;

/// A batch. If made of malformed bytes, it is empty and cannot be written.
#[derive(Default)]
pub struct Batch {
    changes: Changes,
    damage: Option<Error>,
    /// 0: no limit.
    bytes_max: usize,
    /// Of the first change, in a batch out of the WAL.
    seq: u64,
    wal_end: WalEnd,
}

enum Changes {
    Own(WriteBatch),
    /// Those of a batch with an index, or of a transaction. Changes made here are not indexed.
    Indexed(SharedBatch),
}

impl Default for Changes {
    fn default() -> Changes {
        Changes::Own(WriteBatch::new())
    }
}

/// Java's `SavePoint` of a batch: its changes behind it need no log. They are logged all the same.
#[derive(Clone, Copy, Default)]
pub struct WalEnd {
    pub bytes: u64,
    pub count: u32,
    /// RocksDB's bits of kinds.
    pub contents: u32,
}

/// RocksDB's bit for batches with a change of this kind.
fn content_bit(kind: ValueKind) -> u32 {
    match kind {
        ValueKind::Value => 1 << 1,
        ValueKind::Deletion => 1 << 2,
        ValueKind::SingleDeletion => 1 << 3,
        ValueKind::Merge => 1 << 4,
        ValueKind::RangeDeletion => 1 << 9,
    }
}

/// Adds a change of any kind. For a range deletion `value` is the end.
fn add(batch: &mut WriteBatch, family: FamilyId, kind: ValueKind, key: &[u8], value: &[u8]) {
    match kind {
        ValueKind::Value => batch.put(family, key, value),
        ValueKind::Merge => batch.merge(family, key, value),
        ValueKind::Deletion => batch.delete(family, key),
        ValueKind::SingleDeletion => batch.single_delete(family, key),
        ValueKind::RangeDeletion => batch.delete_range(family, key, value),
    }
}

pub fn id_of(family: Option<&FamilyHandle>) -> FamilyId {
    family.map_or(FamilyId::DEFAULT, |family| family.0.id())
}

pub fn no_savepoint() -> Fault {
    Failure::not_found("the batch has no save point").into()
}

/// The error of a batch with a limit set by `setMaxBytes`.
pub fn check_limit(bytes: usize, bytes_max: usize) -> Result<(), Fault> {
    if bytes_max == 0 || bytes <= bytes_max {
        return Ok(());
    }
    Err(Failure::memory_limit(format!("the batch would have {bytes} bytes, and its limit is {bytes_max}")).into())
}

impl Batch {
    pub fn of_bytes(bytes: Vec<u8>) -> Box<Batch> {
        Box::new(match WriteBatch::from_bytes(bytes) {
            Ok(batch) => Batch { changes: Changes::Own(batch), ..Batch::default() },
            Err(error) => Batch { damage: Some(error), ..Batch::default() },
        })
    }

    /// A batch out of the WAL.
    pub fn logged(bytes: Vec<u8>, seq: SeqNo) -> Box<Batch> {
        Box::new(Batch { seq: seq.0, ..*Batch::of_bytes(bytes) })
    }

    /// The changes of a batch with an index.
    pub fn view(batch: &SharedBatch) -> Box<Batch> {
        Box::new(Batch { changes: Changes::Indexed(batch.clone()), ..Batch::default() })
    }

    /// Calls `read` with the batch.
    pub fn read<R>(&self, read: impl FnOnce(&WriteBatch) -> R) -> R {
        match &self.changes {
            Changes::Own(batch) => read(batch),
            Changes::Indexed(batch) => read(batch.read().batch()),
        }
    }

    /// As [`read`](Self::read), to write the batch.
    ///
    /// # Errors
    /// `Corruption`: it was made of malformed bytes.
    pub fn written<R>(&self, write: impl FnOnce(&WriteBatch) -> Result<R, Fault>) -> Result<R, Fault> {
        match &self.damage {
            Some(error) => Err(error.clone().into()),
            None => self.read(write),
        }
    }

    /// # Errors
    /// The limit of bytes: the batch is as before.
    pub fn change(
        &mut self,
        family: Option<&FamilyHandle>,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Fault> {
        self.add(id_of(family), kind, key, value)
    }

    fn add(&mut self, family: FamilyId, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        match &mut self.changes {
            Changes::Own(batch) if self.bytes_max == 0 => add(batch, family, kind, key, value),
            Changes::Own(batch) => {
                batch.set_savepoint();
                add(batch, family, kind, key, value);
                let fits = check_limit(batch.len(), self.bytes_max);
                if fits.is_ok() {
                    batch.pop_savepoint()
                } else {
                    batch.rollback_to_savepoint()
                };
                return fits;
            }
            Changes::Indexed(batch) => batch.write().add_unindexed(family, kind, key, value),
        }
        Ok(())
    }

    pub fn put_log_data(&mut self, blob: &[u8]) {
        match &mut self.changes {
            Changes::Own(batch) => batch.put_log_data(blob),
            Changes::Indexed(batch) => batch.write().put_log_data(blob),
        }
    }

    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    pub fn clear(&mut self) {
        match &mut self.changes {
            Changes::Own(batch) => batch.clear(),
            Changes::Indexed(batch) => batch.write().clear(),
        }
        (self.damage, self.wal_end) = (None, WalEnd::default());
    }

    pub fn set_savepoint(&mut self) {
        match &mut self.changes {
            Changes::Own(batch) => batch.set_savepoint(),
            Changes::Indexed(batch) => batch.write().set_savepoint(),
        }
    }

    pub fn rollback_to_savepoint(&mut self) -> Result<(), Fault> {
        let rolled_back = match &mut self.changes {
            Changes::Own(batch) => batch.rollback_to_savepoint(),
            Changes::Indexed(batch) => batch.write().rollback_to_savepoint(),
        };
        if rolled_back { Ok(()) } else { Err(no_savepoint()) }
    }

    pub fn pop_savepoint(&mut self) -> Result<(), Fault> {
        let popped = match &mut self.changes {
            Changes::Own(batch) => batch.pop_savepoint(),
            Changes::Indexed(batch) => batch.write().pop_savepoint(),
        };
        if popped { Ok(()) } else { Err(no_savepoint()) }
    }

    /// The bits of RocksDB for the kinds of changes in it.
    fn contents(&self) -> u32 {
        self.read(|batch| batch.iter().flatten().fold(0, |bits, record| bits | content_bit(record.kind)))
    }

    /// The encoded batch, with its sequence number.
    fn encoded(&self) -> Vec<u8> {
        let mut bytes = self.read(|batch| batch.as_bytes().to_vec());
        if let Some(seq) = bytes.get_mut(..size_of::<u64>()) {
            seq.copy_from_slice(&self.seq.to_le_bytes());
        }
        bytes
    }
}
