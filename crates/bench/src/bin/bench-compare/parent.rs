//! The parent: starts a child for every run, library by library in turns, and keeps what they print.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, Result};
use bench::folder;
use bench::machine::{Occasion, Setting};
use bench::report::{Better, Figure, Spec as Table, drawn};
use bench::sides::{KIND, SideRecord};
use bench::sinks::{json_of, value_of};
use vfs::{AppendFile, IfExists, IoClass, Vfs};

use crate::child::Probed;
use crate::flags::Flags;
use crate::option_text::OptionText;
use crate::profile;
use crate::spec::{Ingest, Role, Spec};
use crate::suite::{Start, Workload, chosen};

/// A library to compare.
struct Side {
    lib: String,
    path: PathBuf,
    version: String,
    options: OptionText,
}

/// What the runs share.
struct Comparison<'a> {
    flags: &'a Flags,
    vfs: &'a dyn Vfs,
    setting: Setting,
    /// Filled databases, by library.
    filled: BTreeMap<String, PathBuf>,
    json: Option<Box<dyn AppendFile>>,
    records: Vec<SideRecord>,
    failures: Vec<String>,
}

/// Runs what the command line asks for, and prints the tables.
///
/// # Errors
/// `InvalidArgument`: the command line. `Io`: a library cannot be loaded, or runs failed, which are named.
pub fn run(flags: &Flags, vfs: &Arc<dyn Vfs>) -> Result<()> {
    flags.check()?;
    let workloads = chosen(&flags.workloads)?;
    let vfs = vfs.as_ref();
    let made_dir = !vfs.exists(&flags.db)?;
    vfs.create_dir_all(&flags.db)?;
    let mut comparison = Comparison::new(flags, vfs)?;
    let sides = flags.lib.iter().map(|lib| comparison.side(&lib.lib, &lib.path)).collect::<Result<Vec<Side>>>()?;
    for side in &sides {
        println!("{:<14} {}, {}\n{:<14} {}", side.lib, side.version, side.path.display(), "", side.options);
    }
    for round in 0..flags.rounds {
        for (workload, mode) in
            workloads.iter().flat_map(|workload| workload.modes.iter().map(move |mode| (workload, mode)))
        {
            for turn in turns(sides.len(), round) {
                if let Some(side) = sides.get(turn) {
                    comparison.take_turn(side, workload, mode, round)?;
                }
            }
        }
    }
    for dir in comparison.filled.values() {
        folder::remove(vfs, dir)?;
    }
    if made_dir {
        vfs.remove_dir(&flags.db)?;
    }
    println!("\n{}", comparison.summary()?);
    if comparison.failures.is_empty() {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("runs failed:\n{}", comparison.failures.join("\n"))))
}

/// The order of the libraries in a round. Whoever goes first finds the disk and the page cache as another left them: they take turns.
fn turns(sides: usize, round: u32) -> impl Iterator<Item = usize> {
    (0..sides).map(move |turn| (turn + round as usize) % sides)
}

impl<'a> Comparison<'a> {
    fn new(flags: &'a Flags, vfs: &'a dyn Vfs) -> Result<Self> {
        let conditions = format!(
            "--num={} --reads={} --key_size={} --value_size={} --threads={} --seed={} --ingest_rate={} \
             --ingest_interval_ms={}",
            flags.num,
            flags.reads(),
            flags.key_size,
            flags.value_size,
            flags.threads,
            flags.seed,
            flags.ingest_rate,
            flags.ingest_interval_ms,
        );
        let setting = Setting::new(KIND, &Occasion::now(vfs, &flags.db), conditions.to_lowercase());
        let json = flags.json.as_ref().map(|path| vfs.create(path, IfExists::Truncate)).transpose()?;
        Ok(Comparison { flags, vfs, setting, filled: BTreeMap::new(), json, records: Vec::new(), failures: Vec::new() })
    }

    /// Asks a library what it is.
    fn side(&self, lib: &str, path: &Path) -> Result<Side> {
        let path = self.vfs.canonicalize(path)?;
        let dir = self.flags.db.join(format!("{lib}.probe"));
        let spec = Spec { role: Role::Probe, ..self.spec(&path, &dir, &[]) };
        let probed = spec.run::<Probed>().map_err(|e| e.context(format!("--lib {lib}")));
        folder::remove(self.vfs, &dir)?;
        let probed = probed?;
        let options = profile::options(self.flags, lib)?;
        Ok(Side { lib: lib.to_owned(), path, version: probed.version, options })
    }

    fn spec(&self, library: &Path, db: &Path, flags: &[String]) -> Spec {
        let db_flag = format!("--db={}", db.display());
        Spec {
            role: Role::Measure,
            library: library.to_owned(),
            db: db.to_owned(),
            options: "create_if_missing=true".to_owned(),
            workload: String::new(),
            mode: String::new(),
            flags: flags.iter().cloned().chain([db_flag]).collect(),
            write_buffer_bytes: self.flags.write_buffer_size,
            ingest: Ingest {
                rate: self.flags.ingest_rate,
                seconds: self.flags.ingest_seconds,
                interval_ms: self.flags.ingest_interval_ms,
            },
        }
    }

    /// One run. Its failure does not end the others'.
    fn take_turn(&mut self, side: &Side, workload: &Workload, mode: &str, round: u32) -> Result<()> {
        match self.measure(side, workload, mode) {
            Ok(mut record) => {
                record.lib.clone_from(&side.lib);
                record.version.clone_from(&side.version);
                record.round = round;
                record.options = side.options.to_string();
                record.setting = self.setting.clone();
                println!("{}", record.text());
                self.keep(record)
            }
            Err(error) => {
                let failure = format!("{} {mode} with {} in round {round}: {error}", workload.name, side.lib);
                println!("FAILED: {failure}");
                self.failures.push(failure);
                Ok(())
            }
        }
    }

    fn keep(&mut self, record: SideRecord) -> Result<()> {
        if let Some(failure) = self.difference(&record) {
            println!("FAILED: {failure}");
            self.failures.push(failure);
        }
        if let Some(json) = &mut self.json {
            json.append(format!("{}\n", json_of(&record)?).as_bytes(), IoClass::Other)?;
        }
        self.records.push(record);
        Ok(())
    }

    /// Medians of all workloads, with ratios to the first library.
    fn summary(&self) -> Result<String> {
        let records = self.records.iter().map(value_of).collect::<Result<Vec<_>>>()?;
        let table = Table {
            rows: vec!["workload".to_owned(), "mode".to_owned()],
            across: "lib".to_owned(),
            figures: vec![Figure::new("figure", "", 1)],
            base: self.flags.lib.first().map_or_else(String::new, |first| first.lib.clone()),
            better: Better::Unit,
            behind_first: true,
            ..Table::default()
        };
        if records.is_empty() { Ok(String::new()) } else { drawn(&table, &records) }
    }

    /// Where nobody writes, the same seeds find the same keys in every library: else the work was not the same.
    fn difference(&self, record: &SideRecord) -> Option<String> {
        let same = |other: &&SideRecord| other.workload == record.workload && other.background_writes.is_none();
        let first = self.records.iter().find(same)?;
        let differs = !record.latency.contains_key("write") && first.found != record.found;
        differs.then(|| {
            let (theirs, ours) = (first.found.unwrap_or_default(), record.found.unwrap_or_default());
            format!("{}: {} found {theirs} keys, {} {ours}", record.name(), first.lib, record.lib)
        })
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
            options: side.options.clone().overlaid(&OptionText::parse(workload.options)?).to_string(),
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
        let options = side.options.to_string();
        let spec = Spec { role: Role::Fill, options, ..self.spec(&side.path, &dir, &flags) };
        spec.run::<u64>().map_err(|e| e.context(format!("filling a database with {}", side.lib)))?;
        self.filled.insert(side.lib.clone(), dir.clone());
        Ok(dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_goes_first_changes() {
        assert_eq!(turns(3, 0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(turns(3, 4).collect::<Vec<_>>(), [1, 2, 0]);
    }
}
