//! Runs scripts on the engine and on the model, and compares what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, Result as EngineResult};
use spillway::compaction::{BottommostLevelCompaction, CompactRangeOptions};
use spillway::{Db, Family, ReadOptions, Snapshot, WriteBatch, WriteOptions};
use vfs::{MemoryVfs, Vfs};

use self::ingest::HeldIngest;
use crate::iterate::{self, HeldIterator};
use crate::model::{Incarnation, Model, State};
use crate::ops::{Action, Change, Durability, Key, Op, Range, Script};
use crate::profile::{self, Profile};

mod ingest;

/// Where scripts run in a file system.
pub const DIR: &str = "/db";

/// Where a script's checkpoint is while it is looked at.
const CHECKPOINT_DIR: &str = "/checkpoint";

/// What went wrong.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The engine said that it could not do it.
    Engine(Error),
    /// The engine did something else than it should have.
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

/// A snapshot, and the state that it must go on showing.
struct HeldSnapshot {
    snapshot: Snapshot,
    state: State,
}

/// A database under test beside its model.
pub struct Runner {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    profile: Profile,
    /// `None` while it is reopened, and where that failed.
    db: Option<Db>,
    pub model: Model,
    snapshots: BTreeMap<String, HeldSnapshot>,
    iterators: BTreeMap<String, HeldIterator>,
    prepared: BTreeMap<String, HeldIngest>,
    /// Tables that were made to be ingested.
    tables_made: u64,
    /// What the last ingest is to change, whether or not it came about.
    pub(crate) attempted: Vec<Change>,
}

impl Runner {
    /// Opens, or creates, the database in [`DIR`]; `model` says what it should hold.
    ///
    /// # Errors
    /// What opening says.
    pub fn open(vfs: Arc<dyn Vfs>, profile: Profile, model: Model) -> EngineResult<Runner> {
        let dir = PathBuf::from(DIR);
        let db = open_with(&vfs, &dir, profile, model.names())?;
        let (snapshots, iterators, prepared) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Runner {
            vfs,
            dir,
            profile,
            db: Some(db),
            model,
            snapshots,
            iterators,
            prepared,
            tables_made: 0,
            attempted: Vec::new(),
        })
    }

    /// False where reopening failed.
    pub fn is_open(&self) -> bool {
        self.db.is_some()
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

    /// Does one operation on both, and compares what it shows.
    ///
    /// # Errors
    /// What the engine said, or where it differs from the model. The model has then not taken the operation.
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
            Op::Reopen => self.reopen(),
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
        match &change.action {
            Action::Put(key, value) => db.put(&family, key, &value.bytes(), &options),
            Action::Delete(key) => db.delete(&family, key, &options),
            Action::SingleDelete(key) => db.single_delete(&family, key, &options),
            Action::Merge(key, operand) => db.merge(&family, key, &operand.bytes(), &options),
            Action::DeleteRange(start, end) => db.delete_range(&family, start, end, &options),
        }?;
        self.model.write(&applicable, durability);
        Ok(())
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
        self.db().write(&batch, &write_options(durability))?;
        self.model.write(&applicable, durability);
        Ok(())
    }

    fn flush(&mut self, names: &[String]) -> Result<(), Failure> {
        let mut families = Vec::new();
        for name in names {
            families.extend(self.family(name)?.map(|(family, _)| family));
        }
        self.db().flush(&families.iter().collect::<Vec<_>>())?;
        names.iter().for_each(|name| self.model.flushed(name));
        Ok(())
    }

    /// Makes a checkpoint that no other has overlapped, and compares it.
    fn checkpoint(&mut self) -> Result<(), Failure> {
        let dir = Path::new(CHECKPOINT_DIR);
        self.db().checkpoint(dir)?;
        let db = open_with(&self.vfs, dir, self.profile, self.model.names())?;
        for (name, &incarnation) in self.model.names() {
            let Some(family) = db.family(name) else { return differ(format!("the checkpoint has no family {name}")) };
            iterate::compare_all(&db, &family, &self.model.state().contents(incarnation), None)
                .map_err(|e| e.context(&format!("checkpoint, {name}")))?;
        }
        db.close()?;
        Ok(Db::destroy(dir, None, &self.vfs)?)
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
            && name != spillway::DEFAULT_FAMILY
        {
            self.db().drop_family(&family)?;
            self.model.drop(name);
        }
        Ok(())
    }

    /// Closes and opens again; snapshots, iterators and what was prepared end.
    fn reopen(&mut self) -> Result<(), Failure> {
        self.prepared.clear();
        self.snapshots.clear();
        self.iterators.clear();
        if let Some(db) = self.db.take() {
            db.close()?;
        }
        self.db = Some(open_with(&self.vfs, &self.dir, self.profile, self.model.names())?);
        self.model.sync(); // closing syncs the log and flushes what it does not hold
        Ok(())
    }

    fn get(&self, name: &str, keys: &[Key]) -> Result<(), Failure> {
        let Some((family, incarnation)) = self.family(name)? else { return Ok(()) };
        iterate::compare_gets(self.db(), &family, &self.model.state().contents(incarnation), keys, None)
    }

    /// The state a range is read from, and the options to read it with; `None` where its snapshot is gone.
    fn read_at(&self, range: &Range) -> Option<(State, ReadOptions)> {
        let mut options = ReadOptions {
            iterate_lower_bound: range.from.clone(),
            iterate_upper_bound: range.to.clone(),
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
        iterate::compare_scan(self.db(), &family, &state.contents(incarnation), &options, reverse)
    }

    fn iterate(&mut self, name: &str, family: &str, range: &Range) -> Result<(), Failure> {
        let (Some((family, incarnation)), Some((state, options))) = (self.family(family)?, self.read_at(range)) else {
            return Ok(());
        };
        let iterator = self.db().iter(&family, &options)?;
        self.iterators.insert(name.to_owned(), HeldIterator::new(iterator, &state.contents(incarnation), range));
        Ok(())
    }

    /// Compares the whole database with the model.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self) -> Result<(), Failure> {
        let names: Vec<_> = self.db().families().iter().map(|family| family.name().to_owned()).collect();
        let expected: Vec<_> = self.model.names().iter().map(|(name, id)| (id, name.clone())).collect();
        let mut expected_names: Vec<_> = expected.iter().map(|(_, name)| name.clone()).collect();
        let mut found_names = names;
        expected_names.sort();
        found_names.sort();
        if found_names != expected_names {
            return differ(format!("the families are {found_names:?}, and should be {expected_names:?}"));
        }
        for (&incarnation, name) in expected {
            let family = self.family(&name)?.map(|(family, _)| family).expect("the model has it");
            iterate::compare_all(self.db(), &family, &self.model.state().contents(incarnation), None)
                .map_err(|e| e.context(&name))?;
            for (snapshot, held) in &self.snapshots {
                let (contents, snapshot_now) = (held.state.contents(incarnation), Some(&held.snapshot));
                iterate::compare_all(self.db(), &family, &contents, snapshot_now)
                    .map_err(|e| e.context(&format!("{name} @{snapshot}")))?;
            }
        }
        Ok(())
    }

    /// Whether the directory has the tables that the database knows, and no others. Snapshots and iterators end, so that
    /// nothing keeps more.
    ///
    /// # Errors
    /// The tables that are too many or too few.
    pub fn check_files(&mut self) -> Result<(), Failure> {
        self.snapshots.clear();
        self.iterators.clear();
        self.prepared.clear();
        // Has what nobody reads any more deleted.
        self.db().flush(&self.db().families().iter().collect::<Vec<_>>())?;
        self.compare_files()
    }

    /// As [`check_files`](Self::check_files), where nothing is kept.
    pub(crate) fn compare_files(&self) -> Result<(), Failure> {
        let live: BTreeSet<PathBuf> = self.db().live_files().into_iter().map(|file| file.path).collect();
        let names = self.vfs.read_dir(&self.dir)?;
        let tables = names.iter().filter(|name| name.ends_with(".sst"));
        let found: BTreeSet<PathBuf> = tables.map(|name| self.dir.join(name)).collect();
        if found == live {
            return Ok(());
        }
        let gone: Vec<_> = live.difference(&found).collect();
        let extra: Vec<_> = found.difference(&live).collect();
        differ(format!("tables that are gone: {gone:?}; that nobody knows: {extra:?}"))
    }

    /// Ends the life of the database without closing it in order: for after a simulated crash, or a fault.
    pub fn abandon(mut self) -> Model {
        self.prepared.clear();
        self.snapshots.clear();
        self.iterators.clear();
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
    let Durability { sync, disable_wal, flush } = durability;
    WriteOptions { sync, disable_wal, flush_after: flush, ..WriteOptions::default() }
}

fn compact_options(force: bool) -> CompactRangeOptions {
    let forced = if force { BottommostLevelCompaction::Force } else { BottommostLevelCompaction::default() };
    CompactRangeOptions { bottommost_level_compaction: forced, ..CompactRangeOptions::default() }
}

pub(crate) fn add(batch: &mut WriteBatch, family: &Family, action: &Action) {
    let id = family.id();
    match action {
        Action::Put(key, value) => batch.put(id, key, &value.bytes()),
        Action::Delete(key) => batch.delete(id, key),
        Action::SingleDelete(key) => batch.single_delete(id, key),
        Action::Merge(key, operand) => batch.merge(id, key, &operand.bytes()),
        Action::DeleteRange(start, end) => batch.delete_range(id, start, end),
    }
}

/// Runs a whole script on a fresh file system in memory, and compares everything at the end.
///
/// # Errors
/// The first failure, with the operation it came at. A panic of the engine is one.
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

/// The words of a panic.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}
