//! The parent: starts a child for every run, the libraries by turns, and keeps the printed records.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, Result};
use bench::folder;
use bench::machine::Setting;
use bench::report::{Better, Figure, Spec as Table};
use bench::sides::{KIND, SideRecord};
use bench::sinks::Output;
use vfs::Vfs;

use crate::flags::{Flags, Named};
use crate::profile;
use crate::spec::{Role, Spec};
use crate::suite::{Start, Workload, chosen};

/// A library to compare.
struct Side {
    lib: String,
    path: PathBuf,
    version: String,
    options: Vec<String>,
}

impl Side {
    fn has(&self, workload: &Workload, mode: &str) -> bool {
        workload.modes.contains(&mode) || self.version.starts_with("Spillway")
    }
}

/// Shared by the runs.
struct Comparison<'a> {
    flags: &'a Flags,
    vfs: &'a dyn Vfs,
    out: Output<'a>,
    setting: Setting,
    /// Filled databases, by library.
    filled: BTreeMap<String, PathBuf>,
    /// The first record of each read-only workload and mode: every library must find as many keys.
    found: BTreeMap<String, SideRecord>,
    failures: Vec<String>,
}

/// Runs the comparison of the command line, and prints the tables.
///
/// # Errors
/// `InvalidArgument`: the command line is wrong, or runs failed; the message names them. Otherwise a library cannot be loaded.
pub fn run(flags: &Flags, vfs: &Arc<dyn Vfs>) -> Result<()> {
    flags.check()?;
    let workloads = chosen(&flags.workloads)?;
    let vfs = vfs.as_ref();
    let made_dir = !vfs.exists(&flags.db)?;
    vfs.create_dir_all(&flags.db)?;
    let mut stdout = std::io::stdout();
    let mut comparison = Comparison {
        flags,
        vfs,
        out: Output::new(&mut stdout, vfs, flags.json.as_deref())?,
        setting: Setting::now(KIND, flags.conditions(), vfs, &flags.db),
        filled: BTreeMap::new(),
        found: BTreeMap::new(),
        failures: Vec::new(),
    };
    let mut sides = flags.lib.iter().map(|lib| comparison.side(lib)).collect::<Result<Vec<Side>>>()?;
    for round in 0..flags.rounds {
        for workload in &workloads {
            for mode in workload.modes.iter().chain(workload.own_modes) {
                for side in sides.iter().filter(|side| side.has(workload, mode)) {
                    comparison.take_turn(side, workload, mode, round)?;
                }
            }
        }
        // The first library finds the disk and the page cache as a different one left them, so each goes first in turn.
        sides.rotate_left(1);
    }
    for dir in comparison.filled.values() {
        folder::remove(vfs, dir)?;
    }
    if made_dir {
        vfs.remove_dir(&flags.db)?;
    }
    comparison.conclude()
}

impl Comparison<'_> {
    /// Asks a library for its name and version.
    fn side(&mut self, lib: &Named) -> Result<Side> {
        let path = self.vfs.canonicalize(Path::new(&lib.value))?;
        let dir = self.flags.db.join(format!("{}.probe", lib.name));
        let spec = Spec { role: Role::Probe, ..self.spec(&path, &dir, &[]) };
        let probed = spec.run::<String>().map_err(|e| e.context(format!("--lib {}", lib.name)));
        folder::remove(self.vfs, &dir)?;
        let (version, options) = (probed?, profile::options(self.flags, &lib.name));
        self.out.say(&format!("{:<14} {version}, {}\n{:<14} {}", lib.name, path.display(), "", options.join("; ")))?;
        Ok(Side { lib: lib.name.clone(), path, version, options })
    }

    fn spec(&self, library: &Path, db: &Path, flags: &[String]) -> Spec {
        let db_flag = format!("--db={}", db.display());
        Spec {
            role: Role::Measure,
            library: library.to_owned(),
            db: db.to_owned(),
            options: vec!["create_if_missing=true".to_owned()],
            workload: String::new(),
            mode: String::new(),
            flags: flags.iter().cloned().chain([db_flag]).collect(),
            write_buffer_bytes: self.flags.write_buffer_size,
            compacted: self.flags.compacted,
            plan: self.flags.plan(),
        }
    }

    /// One run. A failure is recorded, and the next run goes on.
    fn take_turn(&mut self, side: &Side, workload: &Workload, mode: &str, round: u32) -> Result<()> {
        match self.measure(side, workload, mode) {
            Ok(mut record) => {
                record.lib.clone_from(&side.lib);
                record.version.clone_from(&side.version);
                record.round = round;
                record.options = side.options.join("; ");
                record.setting = self.setting.clone();
                self.keep(record)
            }
            Err(error) => self.fail(format!("{} {mode} with {} in round {round}: {error}", workload.name, side.lib)),
        }
    }

    fn fail(&mut self, failure: String) -> Result<()> {
        self.out.say(&format!("FAILED: {failure}"))?;
        self.failures.push(failure);
        Ok(())
    }

    /// Keeps a record. Without writes, the same seeds must find as many keys in every library; otherwise the work differed.
    fn keep(&mut self, record: SideRecord) -> Result<()> {
        self.out.keep(&record.text(), &record)?;
        if record.background_writes.is_some() || record.latency.contains_key("write") {
            return Ok(());
        }
        let first = self.found.entry(record.name()).or_insert_with(|| record.clone());
        if first.found == record.found {
            return Ok(());
        }
        let (theirs, ours) = (first.found.unwrap_or_default(), record.found.unwrap_or_default());
        let failure = format!("{}: {} found {theirs} keys, {} {ours}", record.name(), first.lib, record.lib);
        self.fail(failure)
    }

    /// Prints medians of all workloads, with ratios to the first library.
    fn conclude(mut self) -> Result<()> {
        let table = Table {
            rows: vec!["workload".to_owned(), "mode".to_owned()],
            across: "lib".to_owned(),
            figures: vec![Figure::new("figure", "", 1)],
            base: self.flags.lib.first().map_or_else(String::new, |first| first.name.clone()),
            better: Better::Unit,
            behind_first: true,
            ..Table::default()
        };
        if !self.out.records.is_empty() {
            self.out.say("")?;
            self.out.show(&table)?;
        }
        if self.failures.is_empty() {
            return Ok(());
        }
        Err(Error::invalid_argument(format!("runs failed:\n{}", self.failures.join("\n"))))
    }

    fn measure(&mut self, side: &Side, workload: &Workload, mode: &str) -> Result<SideRecord> {
        let flags = workload.flags(self.flags);
        let dir = match workload.start {
            Start::Filled => self.filled(side, workload)?,
            Start::Empty | Start::Copy => self.flags.db.join(format!("{}.run", side.lib)),
        };
        if workload.start == Start::Copy {
            let from = self.filled(side, workload)?;
            folder::remove(self.vfs, &dir)?;
            folder::copy(self.vfs, &from, &dir)?;
        }
        let spec = Spec {
            options: side
                .options
                .iter()
                .cloned()
                .chain([workload.options.to_owned()])
                .filter(|text| !text.is_empty())
                .collect(),
            workload: workload.name.to_owned(),
            mode: mode.to_owned(),
            ..self.spec(&side.path, &dir, &flags)
        };
        let measured = spec.run::<SideRecord>();
        if workload.start != Start::Filled {
            folder::remove(self.vfs, &dir)?;
        }
        measured
    }

    /// The filled database of a library, made when it is first asked for.
    fn filled(&mut self, side: &Side, workload: &Workload) -> Result<PathBuf> {
        if let Some(dir) = self.filled.get(&side.lib) {
            return Ok(dir.clone());
        }
        let dir = self.flags.db.join(format!("{}.filled", side.lib));
        folder::remove(self.vfs, &dir)?;
        let flags = ["--threads=1".to_owned(), format!("--writes={}", self.flags.num)];
        let flags: Vec<String> = workload.flags(self.flags).into_iter().chain(flags).collect();
        let options = side.options.clone();
        let spec = Spec { role: Role::Fill, options, ..self.spec(&side.path, &dir, &flags) };
        spec.run::<u64>().map_err(|e| e.context(format!("filling a database with {}", side.lib)))?;
        self.filled.insert(side.lib.clone(), dir.clone());
        Ok(dir)
    }
}
