//! Checks a database's files without opening it: every checksum, and every invariant between files. Writes nothing and
//! takes no lock.

mod logs;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNo, UserOrder};
use vfs::Vfs;

use crate::core::context::check_log_dir;
use crate::core::lost::Lost;
use crate::core::unnamed::Logged;
use crate::maintenance::repair::{claim, report_on_unnamed};
use crate::open::options_file::{self, Survey};
use crate::open::restart;
use crate::records::ingest_record::IngestRecord;
use crate::version::current::read_current;
use crate::version::file_name::{self, FileType, LOAD_DIR};
use crate::version::incomplete;
use crate::version::manifest::manifest_path;
use crate::version::manifest_copy;
use crate::version::recover::{self, Pair, Recovered};
use crate::version::table_file::FileMeta;

/// Problems listed in a report; more are only counted.
const PROBLEMS_MAX: usize = 1000;

/// Options of a check.
#[derive(Clone)]
pub struct CheckOptions {
    /// Where the files are.
    pub vfs: Arc<dyn Vfs>,
    /// Key orders that are not built in.
    pub orders: Vec<UserOrder>,
    /// `wal_dir`: directory of the logs; the database's directory if `None`.
    pub log_dir: Option<PathBuf>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        CheckOptions { vfs: vfs::RealVfs::new(), orders: Vec::new(), log_dir: None }
    }
}

/// Progress of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckStep<'a> {
    /// The file to read next.
    pub path: &'a Path,
    /// Bytes read so far.
    pub bytes_done: u64,
    /// Bytes to read.
    pub bytes_total: u64,
}

/// A problem and its location.
#[derive(Clone, Debug)]
pub struct Problem(pub Error);

impl Problem {
    /// Whether the files use a feature unknown to this version, rather than being damaged.
    pub fn is_unsupported(&self) -> bool {
        self.0.kind() == ErrorKind::Unsupported
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = &self.0;
        match (error.path(), error.offset()) {
            (Some(path), Some(offset)) => write!(f, "{}, byte {offset}: {}", path.display(), error.message()),
            (Some(path), None) => write!(f, "{}: {}", path.display(), error.message()),
            (None, _) => f.write_str(error.message()),
        }?;
        match std::error::Error::source(error).map(ToString::to_string) {
            Some(source) if !error.message().contains(&source) => write!(f, ": {source}"),
            _ => Ok(()),
        }
    }
}

/// Result of a check.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// 0 if none could be read.
    pub manifest: FileNumber,
    /// RocksDB wrote the MANIFEST, or an export did.
    pub is_rocksdbs: bool,
    /// Number of families.
    pub families: usize,
    /// Number of tables that are there.
    pub tables: u64,
    /// Bytes of the tables.
    pub table_bytes: u64,
    /// Point entries and range tombstones in tables.
    pub table_entries: u64,
    /// Number of logs.
    pub logs: u64,
    /// Bytes of the logs.
    pub log_bytes: u64,
    /// Batches in the logs.
    pub log_batches: u64,
    /// Changes in the logs' batches.
    pub log_changes: u64,
    /// The last sequence number in tables and logs.
    pub last_seq: SeqNo,
    /// Unreferenced files; the next open for writing deletes them. Without tables that a damaged or missing log may have named.
    pub superfluous: Vec<PathBuf>,
    /// Harmless oddities.
    pub notes: Vec<String>,
    /// Empty if the database is whole.
    pub problems: Vec<Problem>,
    /// Problems beyond those listed.
    pub problems_left_out: u64,
    /// The MANIFEST changed during the check: the database is open for writing, and problems may be files created or
    /// deleted meanwhile.
    pub changed_meanwhile: bool,
    /// A repair runs, or was cut off.
    pub repair_has_not_ended: bool,
}

impl CheckReport {
    /// True if nothing is seen to be damaged.
    pub fn is_whole(&self) -> bool {
        self.problems.is_empty()
    }

    /// A log of RocksDB's, or its end, can be lost without a trace.
    pub fn may_lack_an_end(&self) -> bool {
        self.is_rocksdbs
    }

    /// What may be said of a database [without problems](Self::is_whole).
    pub fn claim(&self) -> &'static str {
        claim("the database is whole", self.may_lack_an_end())
    }

    fn problem(&mut self, error: Error) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem(error));
        } else {
            self.problems_left_out += 1;
        }
    }

    /// Lists the error, if any.
    fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.problem(error)).ok()
    }
}

/// Called with every file before it is read.
pub type Progress<'a> = &'a mut dyn FnMut(&CheckStep<'_>);

/// Checks the database at `dir`. Damage is returned in the report.
///
/// # Errors
/// `InvalidArgument`: there is no database at `dir`, or a copy in the making, or the logs lie in another directory than
/// `log_dir`, or this is missing. `Io`: the directory could not be read.
pub fn check(dir: &Path, options: &CheckOptions, progress: Progress<'_>) -> Result<CheckReport> {
    incomplete::check(&*options.vfs, dir)?;
    let mut report = CheckReport::default();
    let recovered = match recover_beside(&*options.vfs, dir) {
        Ok(recovered) => recovered,
        Err(error) if error.is_not_found() && was_database(options, dir)? => {
            report.problem(Error::corruption("CURRENT, which names the MANIFEST, is missing").at_path(dir));
            return Ok(report);
        }
        Err(error) if error.is_not_found() => {
            return Err(Error::invalid_argument("there is no database here").at_path(dir).with_source(error));
        }
        Err(error) => {
            report.problem(error);
            return Ok(report);
        }
    };
    if let Some(log_dir) = &options.log_dir {
        check_log_dir(&*options.vfs, log_dir)?;
    }
    report.manifest = recovered.manifest;
    report.is_rocksdbs = !recovered.fenced;
    report.families = recovered.families.len();
    report.notes.clone_from(&recovered.warnings);
    let lost = Lost::new(&*options.vfs, dir);
    if let Some(doubt) = lost.unfinished(Some(recovered.manifest))? {
        report.repair_has_not_ended = true;
        report.problem(Error::corruption(doubt.why).at_path(dir));
    }
    if let Some(earlier) = lost.report()? {
        report.notes.push(format!("an earlier repair lost or doubted something: {}", earlier.display()));
    }
    if let Some(earlier) = lost.report_of_options()? {
        report.notes.push(format!("an earlier repair found stored options lost: {}", earlier.display()));
    }
    let mut check = Check {
        dir,
        options,
        recovered: &recovered,
        report,
        progress,
        bytes_done: 0,
        bytes_total: 0,
        verified: BTreeSet::new(),
        queued: Vec::new(),
        prepared: BTreeMap::new(),
        logged: Logged::default(),
        largest_family: FamilyId::DEFAULT,
    };
    let has_copy = check.run()?;
    let mut report = check.report;
    let now = recover::recover(&*options.vfs, dir);
    let place = |read: &Recovered| (read.manifest, read.manifest_end);
    report.changed_meanwhile =
        now.as_ref().map_or(true, |now| place(now) != place(&recovered) || now.families != recovered.families);
    if let Some(now) = now.ok().filter(|_| report.changed_meanwhile) {
        let named: BTreeSet<_> = now.tables().map(FileMeta::physical_number).collect();
        report.problems.retain(|problem| !is_gone(&*options.vfs, problem, &named));
    }
    let copy = manifest_copy::copy_path(dir, recovered.manifest);
    if !has_copy && !report.changed_meanwhile && options.vfs.exists(&copy)? {
        let name = copy.file_name().unwrap_or_default().to_string_lossy();
        let what = format!(
            "{name} is damaged or lacks records: the MANIFEST has no second copy before the next open for writing"
        );
        report.notes.push(what);
    }
    Ok(report)
}

/// Whether a problem is of a table that a writer beside has deleted since: nothing names it any more.
fn is_gone(vfs: &dyn Vfs, problem: &Problem, named: &BTreeSet<FileNumber>) -> bool {
    let Some(path) = problem.0.path() else { return false };
    let number = path.file_name().and_then(|name| file_name::parse(name.to_str()?));
    matches!(number, Some((FileType::Table, number)) if !named.contains(&number))
        && vfs.exists(path).is_ok_and(|is| !is)
}

/// As [`recover::recover`], again whenever a writer beside has switched to another MANIFEST meanwhile.
fn recover_beside(vfs: &dyn Vfs, dir: &Path) -> Result<Recovered> {
    let mut named = read_current(vfs, dir).ok();
    loop {
        let recovered = recover::recover(vfs, dir);
        let now = read_current(vfs, dir).ok();
        if recovered.is_ok() || now == named {
            return recovered;
        }
        named = now;
    }
}

/// Whether a directory without CURRENT has tables or MANIFESTs.
fn was_database(options: &CheckOptions, dir: &Path) -> Result<bool> {
    if !options.vfs.exists(dir)? {
        return Ok(false);
    }
    let kinds = options.vfs.read_dir(dir)?.into_iter().filter_map(|name| file_name::parse(&name));
    Ok(kinds.into_iter().any(|(kind, _)| matches!(kind, FileType::Table | FileType::Manifest | FileType::ManifestCopy)))
}

/// A check under way.
struct Check<'a> {
    dir: &'a Path,
    options: &'a CheckOptions,
    recovered: &'a Recovered,
    report: CheckReport,
    progress: Progress<'a>,
    bytes_done: u64,
    bytes_total: u64,
    /// Table files read so far: virtual tables may share a file.
    verified: BTreeSet<FileNumber>,
    /// Ingests in the logs, linked or not.
    queued: Vec<IngestRecord>,
    /// Transactions prepared and not ended by the records read so far: names, and numbers of changes.
    prepared: BTreeMap<Vec<u8>, u32>,
    /// Numbers in the logs.
    logged: Logged,
    /// The largest family id in the logs.
    largest_family: FamilyId,
}

impl Check<'_> {
    /// Returns whether the MANIFEST has a right copy.
    fn run(&mut self) -> Result<bool> {
        let logs = self.find_logs()?;
        self.bytes_total = self.recovered.tables().map(|meta| meta.file_bytes).sum::<u64>() + logs.bytes;
        self.report.last_seq = self.recovered.last_seq;
        self.report.take(self.recovered.check_paths(self.dir));
        for family in &self.recovered.families {
            self.check_family(family);
        }
        self.check_logs(&logs);
        self.check_manifest(&logs);
        let queued = self.queued_tables();
        self.check_queued(&queued);
        self.check_options();
        let has_copy = Pair::has_right_copy(self.vfs(), self.dir, self.recovered.manifest)? || !self.is_current();
        if let Some((_, what)) =
            options_file::family_of_lost_end(self.vfs(), self.dir, self.recovered)?.filter(|_| !has_copy)
        {
            let what = format!("it has no second copy, and {what}");
            self.report.problem(Error::corruption(what).at_path(manifest_path(self.dir, self.recovered.manifest)));
        }
        self.find_superfluous(&logs, &queued, has_copy)?;
        Ok(has_copy)
    }

    /// Checks the logs' ends against memtables' images. What images hold is not read.
    fn check_images(&mut self) -> Result<()> {
        let (vfs, dir) = (self.vfs(), self.dir);
        let images = file_name::numbers_in(vfs, dir, FileType::MemtableImage)?.len();
        if images == 0 {
            return Ok(());
        }
        let lost = restart::lost_log_ends(vfs, dir, self.log_dir(), self.recovered)?;
        lost.into_iter().for_each(|error| self.report.problem(error));
        let what = format!(
            "{images} memtables' images: not read here; the next open for writing begins with them, or says what is damaged"
        );
        self.report.notes.push(what);
        Ok(())
    }

    /// Whether the MANIFEST is the last one still. A writer beside may have begun another, and deleted this one.
    fn is_current(&self) -> bool {
        let exists = self.vfs().exists(&manifest_path(self.dir, self.recovered.manifest));
        exists.unwrap_or(true) && read_current(self.vfs(), self.dir).is_ok_and(|now| now <= self.recovered.manifest)
    }

    /// Checks that the MANIFEST has its end: neither a log nor its copy knows a later one. A writer that is at work may add
    /// to the MANIFEST meanwhile; the report says so.
    fn check_manifest(&mut self, logs: &logs::FoundLogs) {
        let recovered = self.recovered;
        self.report.take(logs.range.check_manifest(self.dir, recovered));
        let path = manifest_path(self.dir, recovered.manifest);
        let largest = self.largest_family.0;
        if largest > recovered.max_family && !recovered.is_backups() {
            let what = format!("its end is missing: the logs hold writes of column family {largest}, which it lacks");
            self.report.problem(Error::corruption(what).at_path(&path));
        }
    }

    /// Reads the newest OPTIONS file. Objects that it names are the program's, and need not be known here.
    fn check_options(&mut self) {
        let found = match Survey::of(self.vfs(), self.dir, self.recovered) {
            Err(error) if error.is_not_found() => return,    // replaced meanwhile
            Err(error) => return self.report.problem(error), // unreadable
            Ok(found) => found,
        };
        self.report.notes.extend(found.lacking.into_iter().chain(found.note));
        found.damage.into_iter().for_each(|error| self.report.problem(error));
    }

    fn vfs(&self) -> &dyn Vfs {
        &*self.options.vfs
    }

    fn log_dir(&self) -> &Path {
        self.options.log_dir.as_deref().unwrap_or(self.dir)
    }

    fn begin_file(&mut self, path: &Path) {
        (self.progress)(&CheckStep { path, bytes_done: self.bytes_done, bytes_total: self.bytes_total });
    }

    /// Whether a log of ours is missing or damaged. What is lost of it may have named tables.
    fn lacks_logs(&self) -> bool {
        let names = self.report.problems.iter().filter_map(|problem| problem.0.path()?.file_name()?.to_str());
        names.into_iter().any(|name| matches!(file_name::parse(name), Some((FileType::Log, _))))
    }

    fn find_superfluous(
        &mut self,
        logs: &logs::FoundLogs,
        queued: &[tables::QueuedTable<'_>],
        has_copy: bool,
    ) -> Result<()> {
        let tables = self.recovered.tables().chain(queued.iter().map(|queued| &queued.meta));
        let tables: BTreeSet<FileNumber> = tables.map(FileMeta::physical_number).collect();
        let (lacks_logs, mut unnamed) = (self.lacks_logs(), 0);
        for name in self.options.vfs.read_dir(self.dir)? {
            let Some((kind, number)) = file_name::parse(&name) else { continue };
            let is_superfluous = match kind {
                FileType::Table if tables.contains(&number) => false,
                FileType::Table if !has_copy && self.check_unnamed(&self.dir.join(&name), number)? => false,
                FileType::Table => {
                    unnamed += usize::from(lacks_logs);
                    !lacks_logs
                }
                FileType::Manifest | FileType::ManifestCopy => number != self.recovered.manifest,
                FileType::RocksLog if self.recovered.fenced => {
                    let what = "has the form of RocksDB's logs, and is none of this database's: it is left alone";
                    self.report.notes.push(format!("{name} {what}"));
                    false
                }
                FileType::RocksLog => !logs.rocksdbs.contains(&number),
                FileType::Temp => true,
                _ => false,
            };
            if is_superfluous {
                self.report.superfluous.push(self.dir.join(name));
            }
        }
        if unnamed > 0 {
            self.report.notes.push(format!("{}; a repair keeps them in lost/", report_on_unnamed(unnamed)));
        }
        self.check_images()?;
        let load_dir = self.dir.join(LOAD_DIR);
        if self.vfs().exists(&load_dir)? {
            let left = self.vfs().read_dir(&load_dir)?;
            self.report.superfluous.extend(left.into_iter().map(|name| load_dir.join(name)));
        }
        Ok(())
    }
}
