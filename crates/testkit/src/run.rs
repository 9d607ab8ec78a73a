//! Runs scripts on the engine and on the model, and compares the results.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::compaction::{BottommostLevelCompaction, CompactRangeOptions};
use crate::engine::{Db, Family, ReadOptions, SeqNo, Snapshot, WriteBatch, WriteOptions};
use base::{Error, ErrorKind, Result as EngineResult};
use vfs::{MemoryVfs, Vfs};

use self::ingest::HeldIngest;
use self::transaction::{Prepared, TwoPhase};
use crate::ingest::Ingest;
use crate::iterate::{Expected, HeldIterator};
use crate::model::{Contents, Incarnation, Model, State};
use crate::ops::{Action, Change, Durability, Key, Op, Range, Script};
use crate::profile::{self, Profile};

mod ingest;
mod look;
mod transaction;

/// Database directory of scripts.
pub const DIR: &str = "/db";

/// Failure of a run.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The engine returned an error.
    Engine(Error),
    /// The engine's behaviour differs from the model.
    Difference(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Engine(error) => write!(f, "the engine failed: {error:?}"),
            Failure::Difference(what) => f.write_str(what),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Engine(error)
    }
}

/// Fails with a difference.
pub(crate) fn differ<T>(what: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Difference(what.into()))
}

/// A snapshot and the state it must keep showing.
struct HeldSnapshot {
    snapshot: Snapshot,
    state: State,
}

/// A database under test and its model.
pub struct Runner {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    profile: Profile,
    /// `None` during a reopen, and after a failed one.
    db: Option<Db>,
    pub model: Model,
    snapshots: BTreeMap<String, HeldSnapshot>,
    iterators: BTreeMap<String, HeldIterator>,
    prepared: BTreeMap<String, HeldIngest>,
    /// `None` during a reopen.
    two_phase: Option<TwoPhase>,
    /// Of the prepared transactions.
    prepared_changes: BTreeMap<String, Prepared>,
    /// Tables made for ingests so far.
    tables_made: u64,
    /// Contents of the last ingest, whether or not it succeeded.
    pub(crate) attempted: Option<Ingest>,
    /// Families with writes possibly in neither WAL nor tables.
    unlogged: BTreeSet<Incarnation>,
    /// Writes and ingests refused because of their options.
    refusals: u64,
}

impl Runner {
    /// Opens or creates the database in [`DIR`]. `model` is its expected contents, in the profile's key order.
    ///
    /// # Errors
    /// Errors of opening.
    pub fn open(vfs: Arc<dyn Vfs>, profile: Profile, model: Model) -> EngineResult<Runner> {
        let dir = PathBuf::from(DIR);
        let db = open_with(&vfs, &dir, profile, model.names())?;
        let (snapshots, iterators, prepared) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let two_phase = Some(TwoPhase::of(&db)?);
        Ok(Runner {
            vfs,
            dir,
            profile,
            db: Some(db),
            model: model.ordered(profile.order.order()),
            snapshots,
            iterators,
            prepared,
            two_phase,
            prepared_changes: BTreeMap::new(),
            tables_made: 0,
            attempted: None,
            unlogged: BTreeSet::new(),
            refusals: 0,
        })
    }

    /// False after a failed reopen.
    pub fn is_open(&self) -> bool {
        self.db.is_some()
    }

    /// Number of permitted refusals by the engine.
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    pub fn db(&self) -> &Db {
        self.db.as_ref().expect("open, or `is_open` was not asked")
    }

    fn family(&self, name: &str) -> Result<Option<(Arc<Family>, Incarnation)>, Failure> {
        let Some(incarnation) = self.model.family(name) else { return Ok(None) };
        match self.db().family(name) {
            Some(family) => Ok(Some((family, incarnation))),
            None => differ(format!("the family {name} is not there")),
        }
    }

    /// Runs one operation on both and compares the results.
    ///
    /// # Errors
    /// An error of the engine, or a difference from the model. The model is then unchanged.
    pub fn step(&mut self, op: &Op) -> Result<(), Failure> {
        match op {
            Op::Single(change, durability) => self.single(change, *durability),
            Op::Batch(changes, durability) => self.batch(changes, *durability),
            Op::Ingest(ingest) => self.ingest(ingest),
            Op::Prepare(name, ingest) => self.prepare(name, ingest),
            Op::Commit(name) => self.commit(name),
            Op::Abandon(name) => self.abandon_prepared(name),
            Op::Sync => {
                self.db().sync_log()?;
                self.model.sync();
                Ok(())
            }
            Op::Snapshot(name) => {
                let held = HeldSnapshot { snapshot: self.db().snapshot(), state: self.model.state().clone() };
                self.snapshots.insert(name.clone(), held);
                Ok(())
            }
            Op::Release(name) => {
                self.snapshots.remove(name);
                Ok(())
            }
            Op::Flush(names) => self.flush(names),
            Op::Compact { family, from, to, force } => {
                let Some((family, _)) = self.family(family)? else { return Ok(()) };
                Ok(self.db().compact_range(&family, from.as_deref(), to.as_deref(), &compact_options(*force))?)
            }
            Op::Checkpoint => self.checkpoint(),
            Op::Create(name) => self.create(name),
            Op::Drop(name) => self.drop_family(name),
            Op::Import { family, name } => self.import(family, name),
            Op::Begin(name, changes) => self.begin(name, changes),
            Op::End(name) => self.end(name, true),
            Op::Undo(name) => self.end(name, false),
            Op::Reopen => self.reopen(|_| Ok(())),
            Op::ReadOnly { closed: false } => self.look_read_only(),
            Op::ReadOnly { closed: true } => self.reopen(Runner::look_read_only),
            Op::Get(name, key) => self.get(name, std::slice::from_ref(key)),
            Op::MultiGet(name, keys) => self.get(name, keys),
            Op::Scan { family, range, reverse } => self.scan(family, range, *reverse),
            Op::Iterate { name, family, range } => self.iterate(name, family, range),
            Op::Move(name, step) => match self.iterators.get_mut(name) {
                Some(iterator) => iterator.step(step),
                None => Ok(()),
            },
            Op::Close(name) => {
                self.iterators.remove(name);
                Ok(())
            }
            Op::Check => self.check(),
        }
    }

    fn single(&mut self, change: &Change, durability: Durability) -> Result<(), Failure> {
        let applicable = self.model.applicable(std::slice::from_ref(change));
        let (Some(change), Some((family, _))) = (applicable.first(), self.family(&change.family)?) else {
            return Ok(());
        };
        let (db, options) = (self.db(), write_options(durability));
        let before = db.latest_sequence_number();
        let written = match &change.action {
            Action::Put(key, value) => db.put(&family, key, &value.bytes(), &options),
            Action::Delete(key) => db.delete(&family, key, &options),
            Action::SingleDelete(key) => db.single_delete(&family, key, &options),
            Action::Merge(key, operand) => db.merge(&family, key, &operand.bytes(), &options),
            Action::DeleteRange(start, end) => db.delete_range(&family, start, end, &options),
        };
        self.written(written, &applicable, durability, before)
    }

    /// Records a write or its refusal.
    fn written(
        &mut self,
        written: EngineResult<()>,
        changes: &[Change],
        durability: Durability,
        before: SeqNo,
    ) -> Result<(), Failure> {
        match written {
            Ok(()) => {}
            Err(error) if durability.hasty && error.kind() == ErrorKind::Busy => {
                return self.refused(before);
            }
            Err(error) => return Err(error.into()),
        }
        self.model.write(changes, durability);
        for family in changes.iter().filter_map(|change| self.model.family(&change.family)) {
            match durability {
                Durability { flush: true, .. } => drop(self.unlogged.remove(&family)),
                Durability { disable_wal: true, .. } => drop(self.unlogged.insert(family)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that a refused operation had no effect; `before` was visible before it.
    fn refused(&mut self, before: SeqNo) -> Result<(), Failure> {
        self.refusals += 1;
        let after = self.db().latest_sequence_number();
        if after != before {
            return differ(format!("{} was visible, now {} is, after what was refused", before.0, after.0));
        }
        self.check().map_err(|e| e.context("after what was refused"))
    }

    fn batch(&mut self, changes: &[Change], durability: Durability) -> Result<(), Failure> {
        let applicable = self.model.applicable(changes);
        if applicable.is_empty() {
            return Ok(());
        }
        let mut batch = WriteBatch::new();
        for change in &applicable {
            let Some((family, _)) = self.family(&change.family)? else { continue };
            add(&mut batch, &family, &change.action);
        }
        let before = self.db().latest_sequence_number();
        let written = self.db().write(&batch, &write_options(durability));
        self.written(written.map(drop), &applicable, durability, before)
    }

    fn flush(&mut self, names: &[String]) -> Result<(), Failure> {
        let mut families = Vec::new();
        for name in names {
            families.extend(self.family(name)?.map(|(family, _)| family));
        }
        self.db().flush(&families.iter().collect::<Vec<_>>())?;
        for name in names {
            self.model.flushed(name);
            self.model.family(name).map(|family| self.unlogged.remove(&family));
        }
        Ok(())
    }

    fn create(&mut self, name: &str) -> Result<(), Failure> {
        if self.model.family(name).is_none() {
            self.db().create_family(name, self.profile.family_options(name))?;
            self.model.create(name);
        }
        Ok(())
    }

    fn drop_family(&mut self, name: &str) -> Result<(), Failure> {
        if let Some((family, _)) = self.family(name)?
            && name != crate::engine::DEFAULT_FAMILY
        {
            self.db().drop_family(&family)?;
            self.model.drop(name);
        }
        Ok(())
    }

    /// Closes and reopens. Snapshots, iterators and prepared ingests end. `meanwhile` sees the closed database.
    fn reopen(&mut self, meanwhile: impl FnOnce(&Runner) -> Result<(), Failure>) -> Result<(), Failure> {
        self.let_go();
        if let Some(db) = self.db.take() {
            db.close()?;
        }
        self.unlogged.clear(); // closing flushed them
        meanwhile(self)?;
        self.db = Some(open_with(&self.vfs, &self.dir, self.profile, self.model.names())?);
        self.find_prepared()?;
        self.model.sync(); // closing syncs the WAL and flushes unlogged writes
        Ok(())
    }

    fn get(&self, name: &str, keys: &[Key]) -> Result<(), Failure> {
        let Some((family, incarnation)) = self.family(name)? else { return Ok(()) };
        self.expected(&family, &self.model.state().contents(incarnation)).compare_gets(keys, None)
    }

    fn expected<'a>(&'a self, family: &'a Family, contents: &'a Contents) -> Expected<'a> {
        Expected { db: self.db(), family, order: self.model.order(), contents }
    }

    /// State and options for reading a range; `None` if its snapshot is gone.
    fn read_at(&self, range: &Range) -> Option<(State, ReadOptions)> {
        let mut options = ReadOptions {
            iterate_lower_bound: range.from.clone(),
            iterate_upper_bound: range.to.clone(),
            prefix_same_as_start: range.prefix,
            ..ReadOptions::default()
        };
        let Some(name) = &range.snapshot else { return Some((self.model.state().clone(), options)) };
        let held = self.snapshots.get(name)?;
        options.snapshot = Some(held.snapshot.clone());
        Some((held.state.clone(), options))
    }

    fn scan(&self, name: &str, range: &Range, reverse: bool) -> Result<(), Failure> {
        let (Some((family, incarnation)), Some((state, options))) = (self.family(name)?, self.read_at(range)) else {
            return Ok(());
        };
        let options = ReadOptions { prefix_same_as_start: false, ..options }; // all keys
        self.expected(&family, &state.contents(incarnation)).compare_scan(&options, reverse)
    }

    fn iterate(&mut self, name: &str, family: &str, range: &Range) -> Result<(), Failure> {
        let (Some((family, incarnation)), Some((state, options))) = (self.family(family)?, self.read_at(range)) else {
            return Ok(());
        };
        let iterator = self.db().iter(&family, &options)?;
        let prefixes = family.options().prefix_extractor().filter(|_| range.prefix);
        let held = self.expected(&family, &state.contents(incarnation)).hold(iterator, range, prefixes);
        self.iterators.insert(name.to_owned(), held);
        Ok(())
    }

    /// Drops what keeps the database's state. Prepared transactions stay in the log.
    fn let_go(&mut self) {
        self.prepared.clear();
        self.two_phase = None;
        self.snapshots.clear();
        self.iterators.clear();
    }

    /// Closes the database. What it holds is durable then.
    ///
    /// # Errors
    /// Errors of the close.
    pub fn close(mut self) -> EngineResult<Model> {
        self.let_go();
        if let Some(db) = self.db.take() {
            db.close()?;
        }
        Ok(std::mem::take(&mut self.model))
    }

    /// Drops the database without closing it, after a simulated crash or a fault.
    pub fn abandon(mut self) -> Model {
        self.let_go();
        self.db = None;
        std::mem::take(&mut self.model)
    }
}

impl Failure {
    pub(crate) fn context(self, place: &str) -> Self {
        match self {
            Failure::Engine(error) => Failure::Engine(error.context(place)),
            Failure::Difference(what) => Failure::Difference(format!("{place}: {what}")),
        }
    }
}

fn open_with(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    profile: Profile,
    names: &BTreeMap<String, Incarnation>,
) -> EngineResult<Db> {
    Db::open(dir, &profile.open_options(vfs.clone(), names.keys()))
}

fn write_options(durability: Durability) -> WriteOptions {
    let Durability { sync, disable_wal, flush, hasty } = durability;
    WriteOptions { sync, disable_wal, flush_after: flush, no_slowdown: hasty, ..WriteOptions::default() }
}

fn compact_options(force: bool) -> CompactRangeOptions {
    let forced = if force { BottommostLevelCompaction::Force } else { BottommostLevelCompaction::default() };
    CompactRangeOptions { bottommost_level_compaction: forced, ..CompactRangeOptions::default() }
}

/// Adds a change of a family to a batch.
pub fn add(batch: &mut WriteBatch, family: &Family, action: &Action) {
    let id = family.id();
    match action {
        Action::Put(key, value) => batch.put(id, key, &value.bytes()),
        Action::Delete(key) => batch.delete(id, key),
        Action::SingleDelete(key) => batch.single_delete(id, key),
        Action::Merge(key, operand) => batch.merge(id, key, &operand.bytes()),
        Action::DeleteRange(start, end) => batch.delete_range(id, start, end),
    }
}

/// Runs a script on a fresh in-memory file system and compares everything at the end.
///
/// # Errors
/// The first failure, with its operation. A panic of the engine counts as one.
pub fn run_script(script: &Script) -> Result<(), String> {
    run_and_look(script, |_| ())
}

/// As [`run_script`]; `look` sees the database at the end.
///
/// # Errors
/// As [`run_script`].
pub fn run_and_look<T>(script: &Script, look: impl FnOnce(&Runner) -> T) -> Result<T, String> {
    let profile = profile::by_name(&script.profile).ok_or_else(|| format!("no profile {}", script.profile))?;
    let last = std::cell::Cell::new(0);
    let run = || -> Result<T, Failure> {
        let mut runner = Runner::open(MemoryVfs::new(1), profile, Model::default())?;
        for (number, op) in script.ops.iter().enumerate() {
            last.set(number);
            runner.step(op)?;
        }
        last.set(script.ops.len());
        runner.check()?;
        let seen = look(&runner);
        runner.check_files()?;
        Ok(seen)
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    let place = || match script.ops.get(last.get()) {
        Some(op) => format!("at operation {} ({op})", last.get() + 1),
        None => "at the end".to_owned(),
    };
    match outcome {
        Ok(Ok(seen)) => Ok(seen),
        Ok(Err(failure)) => Err(format!("{}: {failure}", place())),
        Err(panic) => Err(format!("{}: the engine panicked: {}", place(), panic_message(&*panic))),
    }
}

/// Message of a panic.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}
