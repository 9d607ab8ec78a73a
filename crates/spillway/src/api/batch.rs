//! Batches: changes committed together.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use base::{Error, Result};

use crate::api::Shared;
use crate::api::family::Family;
use crate::api::options::WriteOptions;
use crate::batch::WriteBatch;
use crate::batch::options::WriteOptions as EngineWriteOptions;
use crate::database::handle::Database;

/// Changes of any families of one database, committed together: all of them or none, whatever happens.
///
/// Adding a change does not fail. A wrong one (too large, of a dropped family, of another database) is kept as the
/// batch's error: [`commit`](Self::commit) returns it, and writes nothing. A batch does not look at what the program has
/// read: to change what was read, use a [`Transaction`](crate::Transaction), or [`merge`](Self::merge). Families are given as `&Family`, or as
/// `&AsyncFamily` (feature `tokio`).
///
/// ```
/// # fn main() -> spillway::Result<()> {
/// # let db = spillway::Db::open_with("/db", &spillway::Options::in_memory())?;
/// let accounts = db.family("accounts")?;
/// let mut batch = db.batch();
/// batch.put(&accounts, "alice", "60").put(&accounts, "bob", "40");
/// batch.delete(db.default_family(), "transfer/17");
/// batch.commit()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a batch does nothing until it is committed"]
pub struct Batch {
    changes: WriteBatch,
    /// The first wrong change, and the savepoints set before it.
    wrong: Option<Wrong>,
    savepoints: usize,
    shared: Arc<Shared>,
}

struct Wrong {
    error: Error,
    savepoints: usize,
}

impl Batch {
    pub(super) fn new(shared: Arc<Shared>) -> Batch {
        Batch { changes: WriteBatch::new(), wrong: None, savepoints: 0, shared }
    }

    pub(super) fn of_bytes(shared: Arc<Shared>, bytes: Vec<u8>) -> Result<Batch> {
        Ok(Batch { changes: WriteBatch::from_bytes(bytes)?, wrong: None, savepoints: 0, shared })
    }

    /// Sets the value of a key.
    pub fn put(&mut self, family: &impl AsRef<Family>, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.add(family, |batch, family| batch.put(family.inner.id(), key.as_ref(), &family.stored(value.as_ref())))
    }

    /// Deletes a key.
    pub fn delete(&mut self, family: &impl AsRef<Family>, key: impl AsRef<[u8]>) -> &mut Self {
        self.add(family, |batch, family| batch.delete(family.inner.id(), key.as_ref()))
    }

    /// See [`Family::single_delete`].
    pub fn single_delete(&mut self, family: &impl AsRef<Family>, key: impl AsRef<[u8]>) -> &mut Self {
        self.add(family, |batch, family| batch.single_delete(family.inner.id(), key.as_ref()))
    }

    /// See [`Family::delete_range`].
    pub fn delete_range<K: AsRef<[u8]>>(&mut self, family: &impl AsRef<Family>, range: Range<K>) -> &mut Self {
        self.add(family, |batch, family| {
            batch.delete_range(family.inner.id(), range.start.as_ref(), range.end.as_ref())
        })
    }

    /// See [`Family::merge`].
    pub fn merge(
        &mut self,
        family: &impl AsRef<Family>,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.add(family, |batch, family| batch.merge(family.inner.id(), key.as_ref(), &family.stored(operand.as_ref())))
    }

    fn add(&mut self, family: &impl AsRef<Family>, add: impl FnOnce(&mut WriteBatch, &Family)) -> &mut Self {
        let family = family.as_ref();
        if self.wrong.is_none() {
            match self.shared.database.check_family(&family.inner) {
                Ok(()) => add(&mut self.changes, family),
                Err(error) => self.wrong = Some(Wrong { error, savepoints: self.savepoints }),
            }
        }
        self
    }

    /// Sets a savepoint for [`rollback`](Self::rollback). Savepoints nest.
    pub fn savepoint(&mut self) -> &mut Self {
        self.changes.set_savepoint();
        self.savepoints += 1;
        self
    }

    /// Removes the last savepoint and all that was added since, a wrong change too. False, and no change, if there is
    /// none.
    pub fn rollback(&mut self) -> bool {
        if !self.changes.rollback_to_savepoint() {
            return false;
        }
        if self.wrong.as_ref().is_some_and(|wrong| wrong.savepoints >= self.savepoints) {
            self.wrong = None;
        }
        self.savepoints -= 1;
        true
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.changes.count() as usize
    }

    /// True without changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Bytes of the batch in the log.
    pub fn bytes(&self) -> usize {
        self.changes.len()
    }

    /// Writes the changes, with the database's write options.
    ///
    /// # Errors
    /// The error of a wrong change; `InvalidArgument`: the batch is too large ([`limits`](crate::limits)); else as of
    /// [`Family`]. Nothing was written.
    pub fn commit(self) -> Result<()> {
        let options = self.shared.write;
        self.commit_by(&options)
    }

    /// As [`commit`](Self::commit), with options.
    pub fn commit_with(self, options: &WriteOptions) -> Result<()> {
        self.commit_by(&options.0)
    }

    fn commit_by(self, options: &EngineWriteOptions) -> Result<()> {
        let (changes, shared) = self.into_changes()?;
        match shared.database.write(&changes, options) {
            Ok(_) => Ok(()),
            Err(error) if names_dropped_family(&changes, &shared.database) => {
                Err(Error::closed("a column family of the batch was dropped").with_source(error))
            }
            Err(error) => Err(error),
        }
    }

    /// # Errors
    /// That of a wrong change.
    pub(super) fn into_changes(self) -> Result<(WriteBatch, Arc<Shared>)> {
        match self.wrong {
            Some(wrong) => Err(wrong.error),
            None => Ok((self.changes, self.shared)),
        }
    }
}

/// Whether the batch changes a family that is open no more.
#[cold]
fn names_dropped_family(changes: &WriteBatch, database: &Database) -> bool {
    let families = database.families();
    let is_open = |id| families.iter().any(|family| family.id() == id);
    changes.iter().filter_map(Result::ok).any(|change| !is_open(change.family))
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrong = self.wrong.as_ref().map(|wrong| &wrong.error);
        f.debug_struct("Batch")
            .field("changes", &self.len())
            .field("bytes", &self.bytes())
            .field("wrong", &wrong)
            .finish()
    }
}
