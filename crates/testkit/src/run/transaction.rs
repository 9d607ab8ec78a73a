//! Prepared transactions and imports of a script.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::engine::{
    Change as EngineChange, Db, Family, LockLimits, LockTable, Patience, Pessimistic, PreparedTransactions, Track,
    Transaction, ValueKind, WriteOptions,
};
use base::{ErrorKind, Result as EngineResult};

use super::{Failure, Runner, differ};
use crate::model::Incarnation;
use crate::ops::{Action, Change, Durability};

/// Directory of a script's exported family.
const EXPORT_DIR: &str = "/exported";

/// The transactions of an open database.
pub(super) struct TwoPhase {
    locks: Arc<LockTable>,
    /// Takes prepared transactions when they are dropped.
    pool: Arc<PreparedTransactions>,
    held: BTreeMap<String, Transaction>,
}

/// Changes of a prepared transaction, and their families.
pub(super) struct Prepared {
    changes: Vec<Change>,
    families: BTreeMap<String, Incarnation>,
}

const LOCKING: Pessimistic =
    Pessimistic { patience: Patience { wait_max: Some(Duration::ZERO), deadlock_depth: None }, expires_after: None };

impl TwoPhase {
    pub fn of(db: &Db) -> EngineResult<TwoPhase> {
        let locks = Arc::new(LockTable::of(db, LockLimits::default()));
        let pool = PreparedTransactions::of(db, &locks, LOCKING)?;
        let named = |transaction: Transaction| (String::from_utf8_lossy(transaction.name()).into_owned(), transaction);
        let held = pool.take_all().into_iter().map(named).collect();
        Ok(TwoPhase { locks, pool, held })
    }
}

impl Runner {
    /// Prepares a transaction, unless one of its name is prepared or a key is locked.
    pub(super) fn begin(&mut self, name: &str, changes: &[Change]) -> Result<(), Failure> {
        let is_point = |change: &Change| !matches!(change.action, Action::SingleDelete(_) | Action::DeleteRange(..));
        let changes: Vec<Change> =
            self.model.applicable(changes).into_iter().filter(|change| is_point(change)).collect();
        let Some(two_phase) = self.two_phase.as_ref().filter(|open| !open.held.contains_key(name)) else {
            return Ok(());
        };
        let mut transaction = Transaction::pessimistic(&two_phase.locks, LOCKING).in_pool(&two_phase.pool);
        let mut families = BTreeMap::new();
        for change in &changes {
            let Some((family, incarnation)) = self.family(&change.family)? else { continue };
            families.insert(change.family.clone(), incarnation);
            match write(&mut transaction, self.db(), &family, &change.action) {
                Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(()),
                written => written?,
            }
        }
        transaction.set_name(self.db(), name.as_bytes())?;
        transaction.prepare(self.db(), &WriteOptions::default())?;
        self.prepared_changes.insert(name.to_owned(), Prepared { changes, families });
        self.two_phase.as_mut().map(|open| open.held.insert(name.to_owned(), transaction));
        Ok(())
    }

    /// Ends a prepared transaction.
    pub(super) fn end(&mut self, name: &str, commits: bool) -> Result<(), Failure> {
        let held = self.two_phase.as_mut().and_then(|open| open.held.remove(name));
        let (transaction, prepared) = (held, self.prepared_changes.remove(name));
        let (Some(mut transaction), Some(Prepared { changes, families })) = (transaction, prepared) else {
            return Ok(());
        };
        let is_there = |(family, incarnation): (&String, &Incarnation)| self.model.family(family) == Some(*incarnation);
        if !commits || !families.iter().all(is_there) {
            return Ok(transaction.rollback(self.db(), &WriteOptions::default())?);
        }
        transaction.commit(self.db(), &WriteOptions::default())?;
        self.model.write(&changes, Durability::default());
        Ok(())
    }

    /// Takes over what an open found prepared: exactly the transactions that were.
    pub(super) fn find_prepared(&mut self) -> Result<(), Failure> {
        let two_phase = TwoPhase::of(self.db())?;
        let (found, expected) = (two_phase.held.keys(), self.prepared_changes.keys());
        if !found.clone().eq(expected.clone()) {
            return differ(format!(
                "{:?} are prepared, and should be {:?}",
                Vec::from_iter(found),
                Vec::from_iter(expected)
            ));
        }
        self.two_phase = Some(two_phase);
        Ok(())
    }

    pub(super) fn import(&mut self, family: &str, name: &str) -> Result<(), Failure> {
        let Some((exported, _)) = self.family(family)? else { return Ok(()) };
        if self.model.family(name).is_some() || !self.snapshots.is_empty() {
            return Ok(());
        }
        let files = self.db().export_family(&exported, EXPORT_DIR)?;
        self.model.flushed(family);
        if !files.is_empty() {
            drop(self.db().import_family(name, self.profile.family_options(name), &[&files], false)?);
            self.model.import(family, name);
        }
        let left: Vec<PathBuf> =
            self.vfs.read_dir(Path::new(EXPORT_DIR))?.iter().map(|name| Path::new(EXPORT_DIR).join(name)).collect();
        left.iter().try_for_each(|path| self.vfs.remove_file(path))?;
        Ok(self.vfs.remove_dir(Path::new(EXPORT_DIR))?)
    }
}

fn write(transaction: &mut Transaction, db: &Db, family: &Arc<Family>, action: &Action) -> EngineResult<()> {
    let (kind, key, value) = match action {
        Action::Put(key, value) => (ValueKind::Value, key, value.bytes()),
        Action::Merge(key, operand) => (ValueKind::Merge, key, operand.bytes()),
        point => (ValueKind::Deletion, point.key(), Vec::new()),
    };
    transaction.write(db, family, EngineChange { kind, key, value: &value }, Track::Untracked)
}
