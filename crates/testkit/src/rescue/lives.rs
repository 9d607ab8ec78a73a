//! Random lives of databases: their files, what a plain open reads of them, and every state that was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{ErrorKind, Result as EngineResult, UserOrder, merge};
use vfs::{CrashPolicy, MemoryVfs, Vfs};

use crate::engine::export::ExportOptions;
use crate::engine::{Db, OpenOptions, OtherFamilies};
use crate::generate;
use crate::model::Model;
use crate::ops::{Action, Change, Durability, Key, Op, Script};
use crate::profile::{self, Profile};
use crate::random::Random;
use crate::run::{DIR, Failure, Runner, differ};

use super::reading::{Contents, read};

/// Files of a directory with their bytes.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Directory of a copy that becomes the life's directory.
const COPY_DIR: &str = "/copy";

/// Operations of the lives. Short ones find most and shrink fast.
const OPERATIONS: [usize; 4] = [12, 30, 60, 150];

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// The process is killed: iterators keep tables that no version has.
    Killed,
    Closed,
    /// The directory is a checkpoint of the database.
    Checkpoint,
    /// The directory is an export of the database, in RocksDB's form.
    Export,
    /// RocksDB wrote the directory. The model does not know its past, and its default family adds numbers.
    Rocksdb,
}

/// The keys of a table, in its family's order.
#[derive(Clone, Debug)]
pub struct Span {
    pub path: PathBuf,
    pub family: String,
    pub from: Key,
    pub through: Key,
}

/// A life that has ended.
pub struct Life {
    pub seed: u64,
    pub script: Script,
    pub ending: Ending,
    profile: Profile,
    /// The directory at the end.
    pub files: Files,
    /// The directory at earlier instants, oldest first. A copy has none.
    pub earlier: Vec<Files>,
    /// What a plain open reads of the undamaged files.
    pub reference: Contents,
    /// Tables of the undamaged database, queued ones included. A file can hold several.
    pub tables: Vec<Span>,
    model: Model,
    written: Written,
    /// Families with an unlogged write, at any time.
    unlogged: BTreeSet<String>,
    /// Tables came from behind: they survive earlier writes.
    has_behind: bool,
}

/// The script of a seed.
pub fn script(seed: u64) -> Script {
    let mut random = Random::new(seed);
    let profile = random.pick(&profile::ALL).variant(seed);
    let len = *random.pick(&OPERATIONS);
    let mut script = generate::life(seed, &profile, len);
    if random.chance(60) {
        script.ops.iter_mut().for_each(log_it);
    }
    script
}

fn log_it(op: &mut Op) {
    if let Op::Single(_, durability) | Op::Batch(_, durability) = op {
        durability.disable_wal = false;
    }
}

impl Life {
    /// Runs a script to its end, which the seed determines.
    ///
    /// # Errors
    /// The script fails, or a plain open of the undamaged files does not read the model's state.
    pub fn of(seed: u64, script: Script) -> Result<Life, Failure> {
        let Some(profile) = profile::by_name(&script.profile) else {
            return differ(format!("no profile {}", script.profile));
        };
        let vfs = MemoryVfs::new(seed);
        let mut runner = Runner::open(vfs.clone(), profile, Model::default())?;
        let mut earlier = Vec::new();
        let instants = [script.ops.len() / 3, script.ops.len() * 2 / 3];
        for (step, op) in script.ops.iter().enumerate() {
            runner.step(op).map_err(|failure| failure.context(&op.to_string()))?;
            if instants.contains(&step) {
                earlier.push(files_of(&vfs, DIR));
            }
        }
        let (ending, model, files) = end(seed, runner, &vfs)?;
        if !matches!(ending, Ending::Killed | Ending::Closed) {
            earlier.clear();
        }
        let life = Life { earlier, model, ..Life::ended(seed, script, profile, (ending, files)) };
        life.looked_at()
    }

    /// A directory that RocksDB wrote.
    ///
    /// # Errors
    /// A plain open fails.
    pub fn of_rocksdb(seed: u64, files: Files) -> Result<Life, Failure> {
        let [.., profile] = profile::ALL;
        let script = Script { profile: profile.to_string(), ops: Vec::new() };
        Life::ended(seed, script, profile, (Ending::Rocksdb, files)).looked_at()
    }

    fn ended(seed: u64, script: Script, profile: Profile, (ending, files): (Ending, Files)) -> Life {
        Life {
            seed,
            ending,
            profile,
            files,
            earlier: Vec::new(),
            reference: Contents::new(),
            tables: Vec::new(),
            model: Model::default(),
            written: Written::by(&script),
            unlogged: unlogged_families(&script),
            has_behind: script.ops.iter().any(is_behind),
            script,
        }
    }

    /// Reads the undamaged database, and compares it with the model.
    fn looked_at(mut self) -> Result<Life, Failure> {
        let vfs: Arc<dyn Vfs> = self.mount(&self.files);
        let db = Db::open(DIR, &self.options_for_open(&vfs)?)?;
        self.reference = read(&db)?;
        let span = |file: crate::engine::report::LiveFile| Span {
            path: file.path,
            family: file.family,
            from: file.smallest,
            through: file.largest,
        };
        drop(db);
        let vfs: Arc<dyn Vfs> = self.mount(&self.files);
        let reader = Db::open(DIR, &OpenOptions { read_only: true, ..self.options_for_open(&vfs)? })?;
        self.tables = reader.live_files().into_iter().map(span).collect();
        let is_known = !self.has_behind && self.ending != Ending::Rocksdb;
        if is_known && self.point_of(|_, _| true, &self.reference) != Some(self.model.now()) {
            return differ("a plain open of the undamaged files reads another state");
        }
        Ok(self)
    }

    pub fn order(&self) -> UserOrder {
        self.profile.order.order()
    }

    /// A file system with these files. Its random numbers differ from the life's: new identities are new.
    pub fn mount(&self, files: &Files) -> Arc<MemoryVfs> {
        let vfs = MemoryVfs::new(!self.seed);
        for (path, bytes) in files {
            vfs.write_file(path, bytes).expect("a memory file system takes any file");
        }
        vfs
    }

    /// Options that cover these families, and create nothing.
    pub fn options(&self, vfs: &Arc<dyn Vfs>, families: &[String]) -> OpenOptions {
        let mut options = self.profile.open_options(vfs.clone(), families);
        options.db.create_if_missing = false;
        options.db.create_missing_column_families = false;
        options.other_families = OtherFamilies::OpenWith(Box::new(self.profile.family_options("")));
        options.adopt_rocksdb = !self.is_own();
        if self.ending == Ending::Rocksdb {
            options.families.iter_mut().for_each(|(_, family)| family.merge_operator = merge::by_name("uint64add"));
        }
        options
    }

    /// Options for a repair: every family that the life ever had.
    pub fn options_for_repair(&self, vfs: &Arc<dyn Vfs>) -> OpenOptions {
        let named = |op: &Op| match op {
            Op::Create(name) | Op::Import { name, .. } => Some(name.clone()),
            _ => None,
        };
        let held = self.reference.keys().cloned();
        let names: BTreeSet<String> = self.script.ops.iter().filter_map(named).chain(held).collect();
        self.options(vfs, &names.into_iter().collect::<Vec<_>>())
    }

    /// Options for an open: the families that the MANIFEST names.
    ///
    /// # Errors
    /// The MANIFEST is damaged.
    pub fn options_for_open(&self, vfs: &Arc<dyn Vfs>) -> EngineResult<OpenOptions> {
        Ok(self.options(vfs, &Db::list_families(DIR, vfs)?))
    }

    /// Whether the directory is in our own form, with our evidence in it.
    pub fn is_own(&self) -> bool {
        !matches!(self.ending, Ending::Export | Ending::Rocksdb)
    }

    /// The last point of the history that `found` agrees with, in all keys for which `counts` holds. Families with
    /// unlogged writes do not count.
    pub fn point_of(&self, counts: impl Fn(&str, &[u8]) -> bool, found: &Contents) -> Option<usize> {
        let names: Vec<_> = self.model.names().iter().filter(|(name, _)| !self.unlogged.contains(*name)).collect();
        let empty = BTreeMap::new();
        let agrees = |point: usize| {
            let Some(point) = self.model.history().get(point) else { return false };
            names.iter().all(|&(name, &incarnation)| {
                let (held, contents) = (found.get(name).unwrap_or(&empty), point.state.contents(incarnation));
                let of_held = held.iter().filter(|(key, _)| counts(name, key));
                let of_state = contents.iter().filter(|(key, _)| counts(name, key));
                of_held.map(|(key, value)| (key, &**value)).eq(of_state.map(|(key, entry)| (key, &*entry.value)))
            })
        };
        (0..=self.model.now()).rev().find(|&point| agrees(point))
    }

    /// Whether the value was ever put at the key, in any family. Merged keys may hold anything.
    pub fn ever_held(&self, key: &[u8], value: &[u8]) -> bool {
        let put = self.written.puts.get(key);
        self.written.merged.contains(key) || put.is_some_and(|values| values.contains(value))
    }

    /// Whether every prefix of the history is a state that a lost end of the log can explain.
    pub fn has_prefixes(&self) -> bool {
        // An export's log has its writes in another order.
        !self.has_behind && self.is_own()
    }

    /// The directory of another life of the same options. It does not depend on the script.
    ///
    /// # Errors
    /// As of [`of`](Life::of).
    pub fn stranger(&self) -> Result<Files, Failure> {
        const STRANGERS_OPERATIONS: usize = 60;
        let script = generate::life(!self.seed, &self.profile, STRANGERS_OPERATIONS);
        Life::of(!self.seed, script).map(|life| life.files)
    }
}

/// What a script writes, in any family.
#[derive(Default)]
struct Written {
    puts: BTreeMap<Key, BTreeSet<Vec<u8>>>,
    merged: BTreeSet<Key>,
}

impl Written {
    fn by(script: &Script) -> Written {
        let mut written = Written::default();
        for op in &script.ops {
            match op {
                Op::Single(change, _) => written.note(&change.action),
                Op::Batch(changes, _) | Op::Begin(_, changes) => {
                    changes.iter().for_each(|change| written.note(&change.action));
                }
                Op::Ingest(ingest) | Op::Prepare(_, ingest) => {
                    ingest.files.iter().flat_map(|file| &file.entries).for_each(|action| written.note(action));
                    ingest.batch.iter().for_each(|change| written.note(&change.action));
                }
                _ => {}
            }
        }
        written
    }

    fn note(&mut self, action: &Action) {
        match action {
            Action::Put(key, value) => drop(self.puts.entry(key.clone()).or_default().replace(value.bytes())),
            Action::Merge(key, _) => drop(self.merged.replace(key.clone())),
            Action::Delete(_) | Action::SingleDelete(_) | Action::DeleteRange(..) => {}
        }
    }
}

/// Ends the life in a way that the seed determines.
fn end(seed: u64, runner: Runner, vfs: &Arc<MemoryVfs>) -> Result<(Ending, Model, Files), Failure> {
    let export = ExportOptions {
        skip_verification: true,
        flush_from_log_bytes: if seed.is_multiple_of(2) { 0 } else { u64::MAX },
        ..ExportOptions::default()
    };
    let ending = match Random::new(!seed).below(20) {
        0..10 => Ending::Killed,
        10..16 => Ending::Closed,
        16..18 => Ending::Checkpoint,
        _ => match runner.db().export(COPY_DIR, &export) {
            Ok(_) => Ending::Export,
            Err(error) if error.kind() == ErrorKind::Busy => Ending::Killed, // a transaction is prepared
            Err(error) => return Err(error.into()),
        },
    };
    let (model, files) = match ending {
        Ending::Killed => {
            let image = vfs.crash_clone(seed, CrashPolicy::ProcessKilled);
            (runner.abandon(), files_of(&image, DIR))
        }
        Ending::Closed => (runner.close()?, files_of(vfs, DIR)),
        Ending::Checkpoint => {
            runner.db().checkpoint(COPY_DIR)?;
            (runner.abandon(), files_of(vfs, COPY_DIR))
        }
        Ending::Export | Ending::Rocksdb => (runner.abandon(), files_of(vfs, COPY_DIR)),
    };
    Ok((ending, model, files))
}

/// The files in a directory, as files of [`DIR`].
pub fn files_of(vfs: &MemoryVfs, dir: &str) -> Files {
    let of_dir = |path: PathBuf| {
        let inside = Path::new(DIR).join(path.strip_prefix(dir).ok()?);
        Some((inside, vfs.read_file(&path).ok()?))
    };
    vfs.all_files().into_iter().filter_map(of_dir).collect()
}

/// Families with a write that is not logged, and their imports.
fn unlogged_families(script: &Script) -> BTreeSet<String> {
    let family = |change: &Change| change.family.clone();
    let of_op = |op: &Op| match op {
        Op::Single(change, Durability { disable_wal: true, .. }) => vec![family(change)],
        Op::Batch(changes, Durability { disable_wal: true, .. }) => changes.iter().map(family).collect(),
        _ => Vec::new(),
    };
    let mut unlogged: BTreeSet<String> = script.ops.iter().flat_map(of_op).collect();
    for op in &script.ops {
        if let Op::Import { family, name } = op
            && unlogged.contains(family)
        {
            unlogged.insert(name.clone());
        }
    }
    unlogged
}

fn is_behind(op: &Op) -> bool {
    matches!(op, Op::Ingest(ingest) | Op::Prepare(_, ingest) if ingest.demands.behind)
}
