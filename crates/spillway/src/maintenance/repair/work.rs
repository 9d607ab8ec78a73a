//! A repair in progress: surveys all files, decides which belong to the database, and sets the rest aside. What is
//! decided without a complete MANIFEST is in [`super::guess`], damaged tables are in [`super::damaged`], and ingests in the
//! queue in [`super::queued`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNo};
use vfs::Vfs;
use wal::DatabaseId;

use super::families::Families;
use super::manifest::OldManifest;
use super::report::{RepairReport, RepairedFamily};
use super::tables::{TableSource, WholeTable, path_of};
use crate::core::context::named_log_dir;
use crate::core::doubt::Doubt;
use crate::core::lost::Lost;
use crate::core::open_options::OpenOptions;
use crate::open::log_survey::{self, LogSurvey};
use crate::open::replay::rocksdb_logs;
use crate::open::replay::wal_range::{self, LogPlaces};
use crate::open::{options_file, restart};
use crate::version::current::set_current;
use crate::version::file_name::{self, FileType, numbers_in};
use crate::version::recover::Recovered;
use crate::version::replay::RecoveredFamily;
use crate::version::span::widen;
use crate::version::table_file::FileMeta;

pub(super) struct Repairing<'a> {
    pub(super) options: &'a OpenOptions,
    pub(super) vfs: &'a Arc<dyn Vfs>,
    pub(super) dir: &'a Path,
    log_dir: &'a Path,
    /// The database of the logs.
    own: DatabaseId,
    pub(super) old: OldManifest,
    /// Whether the old MANIFEST is complete: files it does not name are superfluous.
    pub(super) is_complete: bool,
    pub(super) logs: LogSurvey,
    pub(super) source: TableSource<'a>,
    pub(super) families: Families,
    pub(super) tables: Vec<Found>,
    /// Paths of tables to move to `lost/`.
    pub(super) aside: BTreeSet<PathBuf>,
    /// What stands in for damaged tables of queued ingests; `None` for a lost table.
    pub(super) substitutes: BTreeMap<FileNumber, Option<FileMeta>>,
    /// Copies of the readable parts of damaged tables that no MANIFEST or log names, with the tables' numbers.
    pub(super) salvaged: BTreeMap<FileNumber, FileNumber>,
    pub(super) next_file: FileNumber,
    /// The first number of files that this repair makes.
    pub first_new: FileNumber,
    /// The id of the database that made the tables; used if IDENTITY is missing.
    pub(super) made_by: Option<String>,
    pub report: RepairReport,
    /// Families whose order of tables and writes is a guess, and whether tables contradict each other. A compaction makes
    /// lookups and scans agree.
    pub to_compact: BTreeMap<String, bool>,
}

/// A table of the repaired database.
pub(super) struct Found {
    pub family: FamilyId,
    pub table: WholeTable,
    /// The level in the MANIFEST.
    pub level: Option<usize>,
}

impl<'a> Repairing<'a> {
    /// Reads the MANIFEST and the logs.
    ///
    /// # Errors
    /// As [`repair`](super::repair).
    pub fn begin(options: &'a OpenOptions, dir: &'a Path, log_dir: &'a Path) -> Result<Repairing<'a>> {
        let vfs = &options.vfs;
        let old = OldManifest::read(&**vfs, dir)?;
        check_owner(dir, log_dir, &old, options)?;
        let known = old.recovered.as_ref();
        known.map_or(Ok(()), |old| old.check_paths(dir))?;
        let own = log_survey::owner(&**vfs, dir, log_dir, known)?;
        let named = known.iter().flat_map(|old| old.tables()).map(FileMeta::physical_number).collect();
        let superfluous = Lost::new(&**vfs, dir).clear_cut_off(own, log_dir, &named)?;
        let salvages = options.db.wal_recovery_mode == WalRecoveryMode::SkipAnyCorruptedRecords;
        let logs = LogSurvey::of(&**vfs, log_dir, own, known, salvages)?;
        let doubt = check_log_dir(dir, log_dir, own, known, &logs, options)?;
        let source = TableSource { vfs, dir, log_dir, orders: options.orders() };
        let families = Families::of(known.into_iter().flat_map(|old| old.families.clone()));
        let doubts = Vec::from_iter(doubt);
        let report = RepairReport { manifest: old.damage.clone(), doubts, superfluous, ..RepairReport::default() };
        let (is_complete, next_file) = (old.is_complete, FileNumber(0));
        let mut work = Repairing {
            options,
            vfs,
            dir,
            log_dir,
            own,
            old,
            is_complete,
            logs,
            source,
            families,
            tables: Vec::new(),
            aside: BTreeSet::new(),
            substitutes: BTreeMap::new(),
            salvaged: BTreeMap::new(),
            next_file,
            first_new: next_file,
            made_by: None,
            report,
            to_compact: BTreeMap::new(),
        };
        work.next_file = work.first_free_number()?;
        work.first_new = work.next_file;
        Ok(work)
    }

    /// Decides the database's new contents.
    ///
    /// # Errors
    /// As [`repair`](super::repair).
    pub fn plan(&mut self) -> Result<Recovered> {
        let files = numbers_in(&**self.vfs, self.dir, FileType::Table)?;
        self.prove_end(&files)?;
        if let Some(old) = self.old.recovered.as_ref().filter(|_| self.is_complete) {
            self.logs.report_missing(&**self.vfs, self.log_dir, old);
        }
        if !self.is_complete {
            // A repetition must not take this guess's copies of tables for the newest tables.
            Lost::new(&**self.vfs, self.dir).mark(self.first_new)?;
        }
        self.take_named()?;
        self.take_unnamed(&files)?;
        if self.is_complete {
            self.report_gone_ingests(&files)?;
        } else {
            self.guess_numbers()?;
            self.families.name_the_rest(&**self.vfs, self.dir, &self.logs.families);
            self.guess_progress();
            self.doubt_all();
        }
        self.place()?;
        self.report_lost_batches();
        self.report.notes.append(&mut self.logs.notes);
        self.aside.extend(self.logs.left_out.iter().cloned());
        self.report.logs.extend(self.logs.damaged.values().cloned());
        self.report.doubts.append(&mut self.families.doubts);
        let recovered = self.recovered();
        self.report_images(&recovered)?;
        Ok(recovered)
    }

    /// Notes what is lost with the memtables' images: the open does not use them.
    fn report_images(&mut self, recovered: &Recovered) -> Result<()> {
        let vfs = &**self.vfs;
        for error in restart::lost_log_ends(vfs, self.dir, self.log_dir, recovered)? {
            self.report.doubts.push(Doubt::of_all(format!("{error}; the image is kept in lost/")));
        }
        let images = numbers_in(vfs, self.dir, FileType::MemtableImage)?;
        let (logged, orders) = (&self.logs.logged, &self.source.orders);
        let unlogged = restart::unlogged(vfs, self.dir, images, recovered, logged, orders)?;
        self.report.doubts.extend(unlogged);
        Ok(())
    }

    /// Returns a number above all files and references.
    fn first_free_number(&self) -> Result<FileNumber> {
        let mut next = self.old.recovered.as_ref().map_or(FileNumber(1), |old| old.next_file);
        for dir in [self.dir, self.log_dir] {
            if self.vfs.exists(dir)? {
                next = next.max(file_name::next_number(&**self.vfs, dir)?);
            }
        }
        Ok(next.max(Lost::new(&**self.vfs, self.dir).next_file()?))
    }

    /// Takes the tables named by the MANIFEST.
    fn take_named(&mut self) -> Result<()> {
        let families = self.families.known.values().map(|family| (family.id, family.tables.clone()));
        for (family, tables) in families.collect::<Vec<_>>() {
            for (level, meta) in tables {
                let table = self.read_or_mend(family, &meta)?;
                self.tables.extend(table.map(|table| Found { family, table, level: Some(level) }));
            }
        }
        Ok(())
    }

    pub(super) fn name_of(&self, family: FamilyId) -> String {
        let name = self.families.known.get(&family).map(|family| family.name.clone());
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| super::unnamed(family))
    }

    /// Takes or sets aside the tables not named by the MANIFEST.
    fn take_unnamed(&mut self, files: &BTreeSet<FileNumber>) -> Result<()> {
        let named: BTreeSet<FileNumber> = self
            .families
            .known
            .values()
            .flat_map(|family| &family.tables)
            .flat_map(|(_, meta)| [meta.number, meta.physical_number()])
            .collect();
        let ingested = self.ingested();
        for file in files.difference(&named) {
            let path = path_of(self.dir, *file);
            let ingested = ingested.get(file).cloned();
            let is_queued = ingested.as_ref().is_some_and(|ingested| ingested.is_queued);
            if self.is_complete && !is_queued {
                self.aside.insert(path.clone());
                self.report.superfluous.push(path);
                continue;
            }
            let queued = ingested.as_ref().filter(|_| is_queued);
            if let Some(queued) = queued.filter(|_| self.is_complete) {
                self.mend_queued(queued)?; // replay adds it
                continue;
            }
            match self.source.read_unnamed(*file, &path, ingested.as_ref().map(|ingested| ingested.number)) {
                Ok(table) => self.take_guessed(table, path, ingested.map(|ingested| ingested.family)),
                Err(error) if error.kind() == ErrorKind::Corruption => match queued {
                    Some(queued) => self.mend_queued(queued)?,
                    None => self.salvage_unnamed(*file, &path, ingested.as_ref(), &error)?,
                },
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Notes large batches that are missing or damaged and not in tables yet. Without the MANIFEST a missing one may
    /// have been flushed before.
    fn report_lost_batches(&mut self) {
        let known = &self.families.known;
        let flushed_through = |id| known.get(&id).map(|family| family.flushed_through.unwrap_or_default());
        let old = self.old.recovered.as_ref();
        for (path, error) in self.logs.lost_batches(&**self.vfs, self.log_dir, self.own, old, flushed_through) {
            let why = if error.is_not_found() { format!("{} is missing", path.display()) } else { error.to_string() };
            let what = format!("{why}: the large batch in it is lost");
            if error.is_not_found() && !self.is_complete {
                self.report.doubts.push(Doubt::of_all(what + ", unless it was flushed before"));
            } else {
                self.logs.damaged.insert(path, what);
            }
        }
    }

    /// Assigns each table its level.
    fn place(&mut self) -> Result<()> {
        let queued = self.ingested();
        let is_queued = |meta: &FileMeta| queued.get(&meta.number).is_some_and(|ingested| ingested.is_queued);
        let mut by_family: BTreeMap<FamilyId, Vec<Found>> = BTreeMap::new();
        for found in std::mem::take(&mut self.tables) {
            if found.level.is_some() || !is_queued(&found.table.meta) {
                by_family.entry(found.family).or_default().push(found);
            }
        }
        for id in self.families.known.keys().copied().collect::<Vec<_>>() {
            let found = by_family.remove(&id).unwrap_or_default();
            let tables = match self.is_complete {
                true => found.into_iter().map(|found| (found.level.unwrap_or(0), found.table.meta)).collect(),
                false => self.place_anew(id, found)?,
            };
            self.record_family(id, tables);
        }
        Ok(())
    }

    fn record_family(&mut self, id: FamilyId, tables: Vec<(usize, FileMeta)>) {
        let name = self.name_of(id);
        let Some(family) = self.families.known.get_mut(&id) else { return };
        let order =
            self.source.orders.iter().find(|order| order.name() == family.comparator).cloned().unwrap_or_default();
        let mut keys = None;
        for (_, meta) in &tables {
            widen(&mut keys, meta.smallest_user_key(), meta.largest_user_key(), |a, b| order.compare(a, b));
        }
        let bytes = tables.iter().map(|(_, meta)| meta.file_bytes).sum();
        self.report.families.push(RepairedFamily { id, name, tables: tables.len(), bytes, keys });
        family.tables = tables;
    }

    fn recovered(&self) -> Recovered {
        let old = self.old.recovered.as_ref();
        let families: Vec<_> = self.families.known.values().cloned().collect();
        let metas = || families.iter().flat_map(|family| &family.tables).map(|(_, meta)| meta);
        let last_seq = self.last_seen(&families);
        let of_values = metas().flat_map(|meta| &meta.value_logs).map(|share| FileNumber(share.log.0 + 1));
        let next_file = of_values.fold(self.next_file, FileNumber::max);
        let largest_id = families.last().map_or(0, |family| family.id.0);
        let range = if self.is_complete { old.and_then(|old| old.wal_range) } else { self.logs.range };
        let is_rocksdbs = self.is_rocksdbs();
        let copied = old.filter(|old| old.is_copy());
        // Tables of a copy can have been made under its original's id.
        let of_logs = || Some(self.own.to_string()).filter(|_| self.own.is_known());
        Recovered {
            manifest: old.map_or(FileNumber(0), |old| old.manifest),
            next_file,
            noted_next: next_file,
            last_seq: old.map_or(last_seq, |old| old.last_seq.max(last_seq)),
            last_written: SeqNo::ZERO, // for secondaries
            max_family: old.map_or(largest_id, |old| old.max_family.max(largest_id)),
            min_log_to_keep: old.map_or(FileNumber(0), |old| old.min_log_to_keep),
            rocksdb_logs: old.map(|old| old.rocksdb_logs.clone()).unwrap_or_default(),
            log_ends: self.logs.ends.clone(),
            wal_range: range,
            log_frontiers: old.filter(|_| self.is_complete).map(|old| old.log_frontiers).unwrap_or_default(),
            manifest_end: None,
            is_writers: !self.is_complete || old.is_none_or(|old| old.is_writers),
            log_dir: copied.and_then(|copy| copy.log_dir.clone()).or_else(|| Some(self.options.db.wal_dir.clone())),
            home: None,
            sessions: old.map(|old| old.sessions.clone()).unwrap_or_default(),
            options_file: old.and_then(|old| old.options_file),
            db_id: old.and_then(|old| old.db_id.clone()).or_else(of_logs).or_else(|| self.made_by.clone()),
            fenced: !is_rocksdbs,
            substitutes: self.substitutes.clone(),
            warnings: Vec::new(),
            families,
        }
    }

    /// The last number that tables, T or logs have.
    pub fn last_seen(&self, families: &[RecoveredFamily]) -> SeqNo {
        let metas = families.iter().flat_map(|family| &family.tables).map(|(_, meta)| meta);
        let known = metas.map(|meta| meta.largest_seq).filter(|seq| *seq != SeqNo::MAX);
        let through = families.iter().filter_map(|family| family.flushed_through);
        known.chain(through).fold(self.logs.last_seq, SeqNo::max)
    }

    pub fn is_rocksdbs(&self) -> bool {
        let by_logs = || self.logs.range.is_none() && has_rocksdb_logs(&**self.vfs, self.log_dir);
        self.old.recovered.as_ref().map_or_else(by_logs, |old| !old.fenced)
    }

    /// Whether some logs are damaged or missing.
    pub fn has_damaged_logs(&self) -> bool {
        !self.logs.damaged.is_empty()
    }

    /// Keeps files set aside, and files about to be replaced, in `lost/`: the open deletes what the new MANIFEST does not name.
    /// Repeating it is harmless.
    ///
    /// # Errors
    /// The file system's.
    pub fn set_aside(&mut self) -> Result<()> {
        let vfs = &**self.vfs;
        let lost = Lost::new(vfs, self.dir);
        for number in numbers_in(vfs, self.dir, FileType::MemtableImage)? {
            lost.keep(&self.dir.join(file_name::format(FileType::MemtableImage, number)))?; // the logs have its entries, or the report tells
        }
        for path in &self.aside {
            let now = lost.keep(path)?;
            let lost = self.report.lost.iter_mut().filter(|lost| lost.path.as_ref() == Some(path));
            lost.for_each(|lost| lost.path = Some(now.clone()));
            self.report.superfluous.iter_mut().filter(|other| *other == path).for_each(|other| other.clone_from(&now));
        }
        if self.is_rocksdbs() {
            // The takeover deletes RocksDB's logs.
            for number in numbers_in(vfs, self.log_dir, FileType::RocksLog)? {
                lost.keep(&self.log_dir.join(file_name::format(FileType::RocksLog, number)))?;
            }
        }
        for log in self.logs.damaged.keys() {
            if vfs.exists(log)? {
                lost.keep(log)?;
            }
        }
        match self.is_complete {
            false => self.keep_all(&lost)?,
            true if !self.report.found_every_key() || self.has_damaged_logs() => self.keep_values(&lost)?,
            true => {}
        }
        if self.report.manifest.is_some() || !self.report.lost.is_empty() {
            lost.keep_manifests()?; // a lost table may come back, and they know its place
            let current = self.dir.join(file_name::format(FileType::Current, FileNumber(0)));
            if vfs.exists(&current)? {
                lost.copy(&current)?;
            }
        }
        lost.sync()?;
        vfs.sync_dir(self.dir)
    }

    /// Has CURRENT name the MANIFEST that counts. The new MANIFEST then takes over as at every open: if it is cut off, CURRENT
    /// tells that it is not the last one.
    ///
    /// # Errors
    /// The file system's.
    pub fn mend_current(&self) -> Result<()> {
        match &self.old.recovered {
            Some(old) if self.is_complete && !self.old.is_named => {
                Ok(set_current(&**self.vfs, self.dir, old.manifest)?)
            }
            _ => Ok(()),
        }
    }
}

impl Repairing<'_> {
    /// Keeps what a guess reads. It takes one of two values of a key for the newer one, and its compaction drops the other.
    fn keep_all(&self, lost: &Lost<'_>) -> Result<()> {
        let vfs = &**self.vfs;
        for number in numbers_in(vfs, self.dir, FileType::Table)? {
            lost.keep(&path_of(self.dir, number))?;
        }
        let logs = self.logs.found.iter().flat_map(|found| &found.logs).map(|log| log.number);
        self.keep_logs(FileType::Log, logs, lost)?;
        self.keep_logs(FileType::LargeBatch, numbers_in(vfs, self.log_dir, FileType::LargeBatch)?, lost)
    }

    /// Keeps what belongs to lost tables and lost records: the logs with the tables' values, and large batches.
    fn keep_values(&self, lost: &Lost<'_>) -> Result<()> {
        let tables = self.families.known.values().flat_map(|family| &family.tables);
        let left: BTreeSet<_> = tables.map(|(_, meta)| meta.physical_number()).collect();
        let named = self.old.recovered.iter().flat_map(Recovered::tables);
        let gone = named.filter(|meta| !left.contains(&meta.physical_number()));
        let logs: BTreeSet<_> = gone.flat_map(|meta| &meta.value_logs).map(|share| share.log).collect();
        let there = numbers_in(&**self.vfs, self.log_dir, FileType::Log)?;
        self.keep_logs(FileType::Log, logs.intersection(&there).copied(), lost)?;
        self.keep_logs(FileType::LargeBatch, numbers_in(&**self.vfs, self.log_dir, FileType::LargeBatch)?, lost)
    }

    /// Keeps such files of this database, but for damaged ones, which are kept anyway.
    fn keep_logs(&self, kind: FileType, numbers: impl IntoIterator<Item = FileNumber>, lost: &Lost<'_>) -> Result<()> {
        let paths = numbers.into_iter().map(|number| self.log_dir.join(file_name::format(kind, number)));
        let is_ours = |path: &PathBuf| !wal_range::may_be_of_another(&**self.vfs, self.dir, path, self.own);
        let mut kept = paths.filter(|path| is_ours(path) && !self.logs.damaged.contains_key(path));
        kept.try_for_each(|path| lost.keep(&path).map(drop))
    }
}

pub(super) fn keys_of(meta: &FileMeta) -> (Vec<u8>, Vec<u8>) {
    (meta.smallest_user_key().to_vec(), meta.largest_user_key().to_vec())
}

/// Makes sure that the logs are where this repair looks for them. Elsewhere they would count as lost. If the MANIFEST is
/// lost, the OPTIONS file knows the log directory. The doubt is of [`LogPlaces::check`].
///
/// # Errors
/// `InvalidArgument`: logs lie in another directory. The file system's.
fn check_log_dir(
    dir: &Path,
    log_dir: &Path,
    own: DatabaseId,
    old: Option<&Recovered>,
    logs: &LogSurvey,
    options: &OpenOptions,
) -> Result<Option<Doubt>> {
    let vfs = &*options.vfs;
    // Without a MANIFEST and logs of ours it may be RocksDB's. Where the place cannot be known, replay doubts.
    if old.map_or(logs.range.is_none(), |old| !old.fenced) {
        rocksdb_logs::check_place(vfs, dir, named_log_dir(&options.db).as_deref(), old)?;
    }
    let Some(found) = logs.found.as_ref().filter(|_| old.is_none_or(|old| old.fenced)) else { return Ok(None) };
    let noted = old.and_then(|old| old.log_dir.clone());
    let last = noted.or_else(|| options_file::wal_dir(vfs, dir).ok().flatten());
    let let_go = old.and_then(Recovered::let_go_through);
    let places = LogPlaces::new(vfs, dir, log_dir, last.as_deref(), old)?;
    places.check(vfs, own, found, old.and_then(Recovered::noted_by_logs), let_go, options.db.wal_recovery_mode)
}

fn has_rocksdb_logs(vfs: &dyn Vfs, dir: &Path) -> bool {
    numbers_in(vfs, dir, FileType::RocksLog).is_ok_and(|logs| !logs.is_empty())
}

/// # Errors
/// `InvalidArgument`: there is no database, or it is RocksDB's and may not be taken over.
fn check_owner(dir: &Path, log_dir: &Path, old: &OldManifest, options: &OpenOptions) -> Result<()> {
    let vfs = &*options.vfs;
    let rocksdb_logs = || has_rocksdb_logs(vfs, log_dir);
    let is_rocksdbs = match &old.recovered {
        Some(old) => !old.fenced,
        None => numbers_in(vfs, log_dir, FileType::Log)?.is_empty() && rocksdb_logs(),
    };
    if is_rocksdbs && !options.adopt_rocksdb {
        let what = "RocksDB wrote this database; a repair takes it over, and RocksDB refuses it from then on. Set adopt_rocksdb \
                    if this is wanted, or use RocksDB's own repair (ldb repair)";
        return Err(Error::invalid_argument(what).at_path(dir));
    }
    let is_empty = old.recovered.is_none()
        && numbers_in(vfs, dir, FileType::Table)?.is_empty()
        && numbers_in(vfs, log_dir, FileType::Log)?.is_empty()
        && !rocksdb_logs();
    if is_empty {
        return Err(Error::invalid_argument("there is no database to repair: no MANIFEST, table or log").at_path(dir));
    }
    Ok(())
}
