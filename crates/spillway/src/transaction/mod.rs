//! Transactions: changes that are kept in a batch until the commit, and keys that must not change meanwhile.
//!
//! A transaction *tracks* a key when it writes it, or reads it for an update. An optimistic transaction remembers the
//! number at that time, and checks at the commit that the key has not changed since: [`ConflictCheck`] on the ordinary
//! commit path. A snapshot at the oldest number keeps the history which that check reads. A pessimistic transaction locks
//! the key first ([`locks`]): nobody who locks too can change it, and the commit is an ordinary write.
//!
//! [`ConflictCheck`]: crate::commit::ConflictCheck

pub mod indexed;
pub mod locks;
mod pessimistic;
mod prepared;
mod tracked;
mod validate;

use std::sync::Arc;

use base::{Error, Pinned, Result, SeqNo, ValueKind};
use vfs::Origin;

use self::indexed::{OverBase, SharedBatch};
use self::locks::Mode;
use self::pessimistic::Locking;
pub use self::pessimistic::{Pessimistic, lock_and_write};
pub use self::prepared::PreparedTransactions;
use self::prepared::TwoPhased;
use self::tracked::{Tracked, Use};
use self::validate::Unchanged;
use crate::batch::WriteBatch;
use crate::batch::options::WriteOptions;
use crate::core::family::Family;
use crate::cursor::options::ReadOptions;
use crate::cursor::snapshot::Snapshot;
use crate::database::handle::Database;
use crate::read::iterator::DbIterator;

/// How a transaction keeps other writes from its keys.
#[derive(Default)]
enum Concurrency {
    /// Not at all: the commit fails if a key has changed.
    #[default]
    Optimistic,
    /// By locks, which last to the commit or the rollback.
    Pessimistic(Locking),
}

/// Whether others may change a key that a transaction writes or reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Track {
    /// The commit fails if they did; a pessimistic transaction keeps them from it.
    Tracked,
    /// They may. A pessimistic transaction locks the key, but they may have changed it since its snapshot.
    Untracked,
}

/// A change of a key. A deletion has no value; a merge's is the operand.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// A value, a deletion or a merge.
    pub kind: ValueKind,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// Changes by kind, merges and deletions apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Puts.
    pub puts: u64,
    /// Deletions, single ones too.
    pub deletes: u64,
    /// Merges.
    pub merges: u64,
}

impl Counts {
    fn add(&mut self, kind: ValueKind) {
        let count = match kind {
            ValueKind::Merge => &mut self.merges,
            ValueKind::Deletion | ValueKind::SingleDeletion => &mut self.deletes,
            _ => &mut self.puts,
        };
        *count += 1;
    }
}

/// A transaction of one database; every call gets it. Reusable: after a commit or a rollback it is as new.
#[derive(Default)]
pub struct Transaction {
    origin: Origin,
    concurrency: Concurrency,
    batch: SharedBatch,
    tracked: Tracked,
    /// At or below every tracked number: keeps the history above.
    pin: Option<Snapshot>,
    shows: Shows,
    counts: Counts,
    savepoints: Vec<Savepoint>,
    /// Changes go to the batch only.
    is_unindexed: bool,
    two_phased: TwoPhased,
}

/// The state that a transaction depends on.
#[derive(Clone, Default)]
struct Shows {
    /// Tracked keys must not have changed since; `None`: since they were tracked.
    snapshot: Option<Snapshot>,
    /// The next tracked operation takes a snapshot.
    is_due: bool,
}

struct Savepoint {
    tracked: usize,
    shows: Shows,
    counts: Counts,
}

/// Snapshots and savepoints.
impl Transaction {
    /// Begins anew.
    pub fn begin(&mut self) {
        self.reset();
        self.is_unindexed = false;
    }

    /// Forgets changes, keys, savepoints and the snapshot, and gives all locks back.
    fn reset(&mut self) {
        self.unlock_from(0);
        if let Concurrency::Pessimistic(locking) = &mut self.concurrency {
            locking.end();
        }
        // Iterators may still show the batch of before.
        match Arc::get_mut(&mut self.batch) {
            Some(batch) => batch.get_mut().clear(),
            None => self.batch.write().clear(),
        }
        self.tracked.clear();
        (self.pin, self.shows) = (None, Shows::default());
        self.counts = Counts::default();
        self.savepoints.clear();
    }

    /// From now on tracked keys must not have changed since now.
    pub fn set_snapshot(&mut self, db: &Database) {
        self.shows = Shows { snapshot: Some(db.snapshot()), is_due: false };
    }

    /// As [`set_snapshot`](Self::set_snapshot), before the next operation that tracks a key.
    pub fn set_snapshot_on_next_operation(&mut self) {
        self.shows = Shows { snapshot: None, is_due: true };
    }

    /// Tracked keys must not have changed since they were tracked.
    pub fn clear_snapshot(&mut self) {
        self.shows = Shows::default();
    }

    /// The snapshot, if one was set.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.shows.snapshot.as_ref()
    }

    /// Sets a savepoint. Savepoints nest.
    pub fn set_savepoint(&mut self) {
        self.batch.write().set_savepoint();
        let (tracked, shows, counts) = (self.tracked.len(), self.shows.clone(), self.counts);
        self.savepoints.push(Savepoint { tracked, shows, counts });
    }

    /// Takes everything back since the last savepoint, and removes it: changes, tracked keys, the snapshot. False if there
    /// is none, or the transaction is prepared.
    pub fn rollback_to_savepoint(&mut self) -> bool {
        if self.is_prepared() {
            return false;
        }
        let Some(Savepoint { tracked, shows, counts }) = self.savepoints.pop() else { return false };
        self.batch.write().rollback_to_savepoint();
        self.unlock_from(tracked);
        self.tracked.truncate(tracked);
        (self.shows, self.counts) = (shows, counts);
        true
    }

    /// Removes the last savepoint, but keeps everything done since. False if there is none.
    pub fn pop_savepoint(&mut self) -> bool {
        self.savepoints.pop().is_some() && self.batch.write().pop_savepoint()
    }

    /// Whether changes are shown to the transaction's reads; they are at first.
    pub fn set_indexing(&mut self, is_on: bool) {
        self.is_unindexed = !is_on;
    }
}

/// Changes.
impl Transaction {
    /// Adds a change of a key: a value, a deletion or an operand.
    ///
    /// # Errors
    /// `InvalidArgument`: the family is of another database, or the transaction is prepared. `Closed`: it was dropped. Of
    /// a pessimistic transaction also as of [`lock`](Self::lock).
    pub fn write(&mut self, db: &Database, family: &Arc<Family>, change: Change<'_>, track: Track) -> Result<()> {
        let Change { kind, key, value } = change;
        db.check_family(family)?;
        if self.is_prepared() {
            return Err(Error::invalid_argument("the transaction is prepared, and takes no more changes"));
        }
        match (&self.concurrency, track) {
            (Concurrency::Optimistic, Track::Untracked) => {}
            (Concurrency::Optimistic, Track::Tracked) => self.remember(db, family, key, None, Use::Write),
            (Concurrency::Pessimistic(_), _) => self.lock(db, family, key, Mode::Exclusive, track)?,
        }
        self.counts.add(kind);
        let mut batch = self.batch.write();
        if self.is_unindexed {
            batch.add_unindexed(family.id(), kind, key, value);
        } else {
            batch.add(family.id(), || family.order().user.clone(), kind, key, value);
        }
        Ok(())
    }

    /// See [`WriteBatch::put_log_data`]. No effect once the transaction is prepared: its record is written.
    pub fn put_log_data(&mut self, blob: &[u8]) {
        if !self.is_prepared() {
            self.batch.write().put_log_data(blob);
        }
    }

    /// Adds the changes of a batch, as tracked ones.
    ///
    /// # Errors
    /// `InvalidArgument`: a family is not open; or a range deletion, which nothing tracks.
    pub fn rebuild_from(&mut self, db: &Database, batch: &WriteBatch) -> Result<()> {
        for record in batch.iter() {
            let record = record?;
            if record.kind == ValueKind::RangeDeletion {
                return Err(Error::invalid_argument("a transaction does not delete ranges"));
            }
            let family = db.family_by_id(record.family)?;
            let change = Change { kind: record.kind, key: record.key, value: record.value };
            self.write(db, &family, change, Track::Tracked)?;
        }
        Ok(())
    }

    /// Others may not change the key from now on, nor have changed it since the snapshot, or since `read_at`.
    fn track(
        &mut self,
        db: &Database,
        family: &Arc<Family>,
        key: &[u8],
        mode: Mode,
        read_at: Option<&Snapshot>,
    ) -> Result<()> {
        match self.concurrency {
            Concurrency::Optimistic => {
                self.remember(db, family, key, read_at, Use::Read);
                Ok(())
            }
            Concurrency::Pessimistic(_) => self.lock(db, family, key, mode, Track::Tracked),
        }
    }

    fn remember(&mut self, db: &Database, family: &Arc<Family>, key: &[u8], read_at: Option<&Snapshot>, to: Use) {
        if self.shows.is_due {
            self.set_snapshot(db);
        }
        let oldest = [self.shows.snapshot.as_ref(), read_at].into_iter().flatten().min_by_key(|given| given.seq());
        if let Some(given) = oldest {
            if self.pin.as_ref().is_none_or(|pin| given.seq() < pin.seq()) {
                self.pin = Some(given.clone());
            }
            return self.tracked.add(family, key, given.seq(), to);
        }
        let now = match self.pin {
            Some(_) => db.latest_sequence_number(),
            None => self.pin.insert(db.snapshot()).seq(),
        };
        self.tracked.add(family, key, now, to);
    }

    /// The changes are forgotten; others may write the keys.
    ///
    /// # Errors
    /// Of a prepared transaction, as of [`Database::write`]: it is prepared still. `InvalidArgument`: it was ended after
    /// the prepare.
    pub fn rollback(&mut self, db: &Database, options: &WriteOptions) -> Result<()> {
        self.rollback_prepared(db, options).unwrap_or_else(|| {
            self.reset();
            Ok(())
        })
    }

    /// Writes the changes if no tracked key has changed. The transaction is as new then, unless it was prepared; after an
    /// error it is as before.
    ///
    /// # Errors
    /// `Conflict`: a tracked key has changed; nothing was written. `Expired`: the locks are lost. `InvalidArgument`: it was
    /// ended after a prepare. Else as of [`Database::write`].
    pub fn commit(&mut self, db: &Database, options: &WriteOptions) -> Result<()> {
        if let Some(committed) = self.commit_prepared(db, options) {
            return committed;
        }
        let written = {
            let batch = self.batch.read();
            let check = Unchanged(&self.tracked);
            match &self.concurrency {
                Concurrency::Optimistic if self.tracked.len() > 0 => {
                    db.write_checked(batch.batch(), options, Some(&check))
                }
                Concurrency::Optimistic => db.write(batch.batch(), options),
                Concurrency::Pessimistic(locking) => {
                    locking.begin_commit()?;
                    db.write(batch.batch(), options)
                }
            }
        };
        written.map(|_| self.reset())
    }
}

/// Reads.
impl Transaction {
    /// The value of a key after the transaction's changes.
    ///
    /// # Errors
    /// As of [`Database::get`]; `InvalidArgument`: operands without a merge operator.
    pub fn get(
        &self,
        db: &Database,
        family: &Arc<Family>,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<Pinned>> {
        let batch = self.batch.read();
        if batch.batch().count() == 0 {
            return db.get(family, key, options);
        }
        batch.get_over(family.id(), key, &family.read_context().merge_operator, || db.get(family, key, options))
    }

    /// As [`get`](Self::get), and tracks the key: the commit fails if it has changed. `mode` is of a pessimistic
    /// transaction.
    ///
    /// # Errors
    /// As of [`get`](Self::get), and as of [`write`](Self::write).
    pub fn get_for_update(
        &mut self,
        db: &Database,
        family: &Arc<Family>,
        key: &[u8],
        mode: Mode,
        options: &ReadOptions,
    ) -> Result<Option<Pinned>> {
        db.check_family(family)?;
        // Before the read: a write between both is a conflict, though the read saw it.
        self.track(db, family, key, mode, options.snapshot.as_ref())?;
        self.get(db, family, key, options)
    }

    /// Takes one [`get_for_update`](Self::get_for_update) of a key back, unless it was before the last savepoint. Others
    /// may change the key then, if the transaction neither wrote it nor read it for another update. No effect on a
    /// pessimistic transaction: its locks stay to its end.
    pub fn undo_get_for_update(&mut self, family: &Family, key: &[u8]) {
        if matches!(self.concurrency, Concurrency::Optimistic) {
            let kept = self.savepoints.last().map_or(0, |savepoint| savepoint.tracked);
            self.tracked.undo_read(family.id(), key, kept);
        }
    }

    /// As [`get_for_update`](Self::get_for_update), but what a pessimistic transaction reads may have changed since its
    /// snapshot.
    ///
    /// # Errors
    /// As of [`get_for_update`](Self::get_for_update).
    pub fn get_for_update_unchecked(
        &mut self,
        db: &Database,
        family: &Arc<Family>,
        key: &[u8],
        mode: Mode,
        options: &ReadOptions,
    ) -> Result<Option<Pinned>> {
        if matches!(self.concurrency, Concurrency::Optimistic) {
            return self.get_for_update(db, family, key, mode, options);
        }
        db.check_family(family)?;
        self.lock(db, family, key, mode, Track::Untracked)?;
        self.get(db, family, key, options)
    }

    /// The values of many keys, as of one instant below the transaction's changes, in the order asked for.
    ///
    /// # Errors
    /// As of [`Database::multi_get_across`].
    pub fn multi_get(
        &self,
        db: &Database,
        keys: &[(&Arc<Family>, &[u8])],
        options: &ReadOptions,
    ) -> Result<Vec<Result<Option<Pinned>>>> {
        let batch = self.batch.read();
        let needs_below = |family: &Family, key: &[u8]| -> bool {
            let said = batch.get(family.id(), key);
            said.is_none_or(|said| said.needs_below())
        };
        let asked: Vec<(&Family, &[u8])> = keys
            .iter()
            .map(|&(family, key)| (&**family, key))
            .filter(|&(family, key)| needs_below(family, key))
            .collect();
        let mut found = db.multi_get_across(&asked, options)?.into_iter();
        let value = |&(family, key): &(&Arc<Family>, &[u8])| {
            let mut below = if needs_below(family, key) { found.next() } else { None };
            batch.get_over(family.id(), key, &family.read_context().merge_operator, || below.take().unwrap_or(Ok(None)))
        };
        Ok(keys.iter().map(value).collect())
    }

    /// As [`multi_get`](Self::multi_get), and tracks the keys.
    ///
    /// # Errors
    /// As of [`multi_get`](Self::multi_get).
    pub fn multi_get_for_update(
        &mut self,
        db: &Database,
        keys: &[(&Arc<Family>, &[u8])],
        options: &ReadOptions,
    ) -> Result<Vec<Result<Option<Pinned>>>> {
        keys.iter().try_for_each(|(family, _)| db.check_family(family))?;
        let read_at = options.snapshot.as_ref();
        keys.iter().try_for_each(|(family, key)| self.track(db, family, key, Mode::Exclusive, read_at))?;
        self.multi_get(db, keys, options)
    }

    /// An iterator over a family after the transaction's changes. Each move shows the present ones.
    ///
    /// # Errors
    /// As of [`Database::iter`].
    pub fn iter(&self, db: &Database, family: &Arc<Family>, options: &ReadOptions) -> Result<OverBase<DbIterator>> {
        Ok(self.over(db.iter(family, options)?, family, options))
    }

    /// The transaction's changes over an iterator of their family.
    pub fn over<B: indexed::Below>(&self, below: B, family: &Family, options: &ReadOptions) -> OverBase<B> {
        OverBase::new(
            below,
            &self.batch,
            family.id(),
            &family.order().user,
            family.read_context().merge_operator.clone(),
            options,
        )
    }

    /// The changes, shared with iterators.
    pub fn batch(&self) -> &SharedBatch {
        &self.batch
    }

    /// Number of changes by kind, untracked ones too.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of tracked keys.
    pub fn num_keys(&self) -> usize {
        self.tracked.len()
    }

    /// The number since which a key must not have changed; `None` if it is not tracked.
    pub fn tracked_since(&self, family: &Family, key: &[u8]) -> Option<SeqNo> {
        self.tracked.since(family.id(), key)
    }
}

#[cfg(test)]
mod tests;
