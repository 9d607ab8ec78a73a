//! Random lives of databases: their files, what a plain open reads of them, and every state that was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{ErrorKind, Result as EngineResult, UserOrder};
use vfs::{CrashPolicy, MemoryVfs, Vfs};

use crate::engine::export::ExportOptions;
use crate::engine::{Db, OpenOptions, OtherFamilies};
use crate::generate;
use crate::model::Model;
use crate::ops::{Change, Durability, Key, Op, Script};
use crate::profile::{self, Profile};
use crate::random::Random;
use crate::run::{DIR, Failure, Runner};

use super::reading::{Contents, read};

/// Files of a directory with their bytes.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Directory of a copy that becomes the life's directory.
const COPY_DIR: &str = "/copy";

/// Operations of the lives. Short ones find most and shrink fast.
const OPERATIONS: [usize; 4] = [12, 30, 60, 150];

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The process is killed: iterators keep tables that no version has.
    Killed,
    Closed,
    /// The directory is a checkpoint of the database.
    Checkpoint,
    /// The directory is in RocksDB's form.
    Export,
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
    /// The directory at earlier instants, oldest first.
    pub earlier: Vec<Files>,
    /// What a plain open reads of the undamaged files.
    pub reference: Contents,
    /// Tables of the undamaged database, queued ones included. A file can hold several.
    pub tables: Vec<Span>,
    model: Model,
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
            return Err(Failure::Difference(format!("no profile {}", script.profile)));
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
        let mut life = Life {
            seed,
            ending,
            profile,
            files,
            earlier,
            reference: Contents::new(),
            tables: Vec::new(),
            model,
            unlogged: unlogged_families(&script),
            has_behind: script.ops.iter().any(is_behind),
            script,
        };
        life.look()?;
        Ok(life)
    }

    /// Reads the undamaged database, and compares it with the model.
    fn look(&mut self) -> Result<(), Failure> {
        let vfs = self.mount(&self.files);
        let db = Db::open(DIR, &self.options_for_open(&vfs)?)?;
        self.reference = read(&db)?;
        let span = |file: crate::engine::report::LiveFile| Span {
            path: file.path,
            family: file.family,
            from: file.smallest,
            through: file.largest,
        };
        drop(db);
        let vfs = self.mount(&self.files);
        let reader = Db::open(DIR, &OpenOptions { read_only: true, ..self.options_for_open(&vfs)? })?;
        self.tables = reader.live_files().into_iter().map(span).collect();
        match self.has_behind || self.point_of(|_, _| true, &self.reference) == Some(self.model.now()) {
            true => Ok(()),
            false => Err(Failure::Difference("a plain open of the undamaged files reads another state".to_owned())),
        }
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

    /// Options for a repair: they cover every family that can be there.
    pub fn options(&self, vfs: &Arc<MemoryVfs>, families: &[String]) -> OpenOptions {
        let mut options = self.profile.open_options(vfs.clone(), families);
        options.db.create_if_missing = false;
        options.db.create_missing_column_families = false;
        options.other_families = OtherFamilies::OpenWith(Box::new(self.profile.family_options("")));
        options.adopt_rocksdb = self.ending == Ending::Export;
        options
    }

    /// Options for a repair: every family that the life ever had.
    pub fn options_for_repair(&self, vfs: &Arc<MemoryVfs>) -> OpenOptions {
        let named = |op: &Op| match op {
            Op::Create(name) | Op::Import { name, .. } => Some(name.clone()),
            _ => None,
        };
        let names: BTreeSet<String> = self.script.ops.iter().filter_map(named).collect();
        self.options(vfs, &names.into_iter().collect::<Vec<_>>())
    }

    /// Options for an open: the families that the MANIFEST names.
    ///
    /// # Errors
    /// The MANIFEST is damaged.
    pub fn options_for_open(&self, vfs: &Arc<MemoryVfs>) -> EngineResult<OpenOptions> {
        let as_vfs: Arc<dyn Vfs> = vfs.clone();
        Ok(self.options(vfs, &Db::list_families(DIR, &as_vfs)?))
    }

    /// Whether the directory is in our own form, with our evidence in it.
    pub fn is_own(&self) -> bool {
        self.ending != Ending::Export
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

    /// Whether every prefix of the history is a state that a lost end of the log can explain.
    pub fn has_prefixes(&self) -> bool {
        // An export's log has its writes in another order.
        !self.has_behind && self.is_own()
    }

    /// The directory of another life of the same options.
    ///
    /// # Errors
    /// As of [`of`](Life::of).
    pub fn stranger(&self) -> Result<Files, Failure> {
        let script = generate::life(!self.seed, &self.profile, self.script.ops.len());
        Life::of(!self.seed, script).map(|life| life.files)
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
        Ending::Export => (runner.abandon(), files_of(vfs, COPY_DIR)),
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
