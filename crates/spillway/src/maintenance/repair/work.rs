//! A repair in progress: surveys all files, decides which belong to the database, and sets the rest aside.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, ErrorKind, FamilyId, FileNumber, InternalOrder, Result, SeqNo};
use log::DatabaseId;
use vfs::Vfs;

use super::families::Families;
use super::logs::LogSurvey;
use super::lost::Lost;
use super::manifest::OldManifest;
use super::order::{self, Unplaced};
use super::report::{LostTable, RepairReport, RepairedFamily};
use super::tables::{TableSource, WholeTable, lacks_number, path_of};
use crate::core::doubt::Doubt;
use crate::database::handle::OpenOptions;
use crate::version::file_name::{self, FileType, numbers_in};
use crate::version::manifest::manifest_path;
use crate::version::recover::Recovered;
use crate::version::span::widen;
use crate::version::table_file::FileMeta;

/// The name of the repair's report in `lost/`.
const REPORT: &str = "REPORT";

pub(super) struct Work<'a> {
    options: &'a OpenOptions,
    vfs: &'a Arc<dyn Vfs>,
    dir: &'a Path,
    log_dir: &'a Path,
    /// The database of the logs.
    own: DatabaseId,
    old: OldManifest,
    /// Whether the old MANIFEST is complete: files it does not name are superfluous.
    is_complete: bool,
    logs: LogSurvey,
    source: TableSource<'a>,
    families: Families,
    tables: Vec<Found>,
    /// Paths of tables to move to `lost/`.
    aside: BTreeSet<PathBuf>,
    next_file: FileNumber,
    /// The id of the database that made the tables; used if IDENTITY is missing.
    made_by: Option<String>,
    pub report: RepairReport,
}

/// A table of the repaired database.
struct Found {
    family: FamilyId,
    table: WholeTable,
    /// The level in the MANIFEST.
    level: Option<usize>,
}

/// An ingested table's entry in a log.
#[derive(Clone, Copy)]
struct Ingested {
    number: SeqNo,
    /// Not linked yet: replay adds the table.
    is_queued: bool,
}

impl<'a> Work<'a> {
    /// Reads the MANIFEST and the logs.
    ///
    /// # Errors
    /// As [`repair`](super::repair).
    pub fn begin(options: &'a OpenOptions, dir: &'a Path, log_dir: &'a Path) -> Result<Work<'a>> {
        let vfs = &options.vfs;
        let old = OldManifest::read(&**vfs, dir)?;
        check_owner(dir, log_dir, &old, options)?;
        let known = old.recovered.as_ref();
        let own = super::logs::owner(&**vfs, dir, log_dir, known)?;
        let mut logs = LogSurvey::of(&**vfs, log_dir, own, known)?;
        if old.damage.is_none() {
            logs.find_missing(&**vfs, log_dir, own, known)?;
        }
        let numbers =
            |record: &crate::queue::ingest_record::IngestRecord| (record.first.0..=record.last().0).map(SeqNo);
        let source = TableSource {
            vfs,
            dir,
            log_dir,
            orders: options.orders(),
            ingest_numbers: logs.ingests.iter().flat_map(numbers).collect(),
        };
        let families = Families::of(known.into_iter().flat_map(|old| old.families.clone()));
        let report = RepairReport { manifest: old.damage.clone(), ..RepairReport::default() };
        let (is_complete, next_file) = (old.damage.is_none(), FileNumber(0));
        let mut work = Work {
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
            next_file,
            made_by: None,
            report,
        };
        work.next_file = work.first_free_number()?;
        Ok(work)
    }

    /// Decides the database's new contents.
    ///
    /// # Errors
    /// As [`repair`](super::repair).
    pub fn plan(&mut self) -> Result<Recovered> {
        let files = numbers_in(&**self.vfs, self.dir, FileType::Table)?;
        self.check_end(&files)?;
        self.take_named()?;
        self.take_unnamed(&files)?;
        self.drop_broken_ingests(&files)?;
        if !self.is_complete {
            self.guess_numbers()?;
            self.families.name_the_rest(&**self.vfs, self.dir, &self.logs.families);
            self.guess_progress();
        }
        self.place()?;
        self.note_lost_batches();
        self.report.logs.extend(self.logs.damaged.values().cloned());
        self.report.doubts.append(&mut self.families.doubts);
        Ok(self.recovered())
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

    /// A MANIFEST cut off between two records looks whole. Symptom: it names missing tables, and newer unnamed tables
    /// exist.
    fn check_end(&mut self, files: &BTreeSet<FileNumber>) -> Result<()> {
        let Some(old) = self.old.recovered.as_ref().filter(|_| self.is_complete) else { return Ok(()) };
        let newest = old.tables().map(|meta| meta.physical_number().max(meta.number)).max().unwrap_or_default();
        let lacks = old.tables().any(|meta| !files.contains(&meta.physical_number()));
        let queued = self.ingested();
        let has_newer = files.range(newest..).any(|file| *file > newest && !queued.contains_key(file));
        if lacks && has_newer {
            self.is_complete = false;
            let what = "the MANIFEST names tables that are gone, and newer ones are there that it does not name: its end may be \
                        missing";
            self.report.manifest = Some(what.to_owned());
        }
        Ok(())
    }

    /// Takes the tables named by the MANIFEST.
    fn take_named(&mut self) -> Result<()> {
        let families = self.families.known.values().map(|family| (family.id, family.tables.clone()));
        for (family, tables) in families.collect::<Vec<_>>() {
            for (level, meta) in tables {
                let path = path_of(self.dir, meta.physical_number());
                match self.source.read_named(&meta, &path) {
                    Ok(table) => self.tables.push(Found { family, table, level: Some(level) }),
                    Err(error) if error.is_not_found() => self.note_missing(family, &meta)?,
                    Err(error) if error.kind() == ErrorKind::Corruption => {
                        self.salvage(family, level, &meta, &error)?;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn note_missing(&mut self, family: FamilyId, meta: &FileMeta) -> Result<()> {
        let name = file_name::format(FileType::Table, meta.physical_number());
        let path = Lost::new(&**self.vfs, self.dir).find(&name)?;
        let why = match (&path, self.is_complete) {
            (Some(_), _) => "an earlier repair moved it",
            (None, true) => "it is missing",
            (None, false) => {
                "it is missing; it may have been compacted after the part of the MANIFEST that can be read"
            }
        };
        let (family, keys) = (Some(self.name_of(family)), Some(keys_of(meta)));
        self.report.lost.push(LostTable { path, name, family, keys, why: why.to_owned() });
        Ok(())
    }

    /// Copies the readable part of a damaged table to another file.
    fn salvage(&mut self, family: FamilyId, level: usize, meta: &FileMeta, error: &Error) -> Result<()> {
        let path = path_of(self.dir, meta.physical_number());
        self.aside.insert(path.clone());
        let name = file_name::format(FileType::Table, meta.physical_number());
        let lost =
            |keys, why: String| LostTable { path: Some(path.clone()), name: name.clone(), family: None, keys, why };
        let number = self.next_file;
        match self.source.salvage(meta, &path, number)? {
            None => self.report.lost.push(lost(Some(keys_of(meta)), error.to_string())),
            Some(salvaged) => {
                self.next_file.0 += 1;
                let edge = |key: Option<Vec<u8>>, bound: &[u8]| key.unwrap_or_else(|| bound.to_vec());
                self.report.lost.extend(salvaged.skipped.into_iter().map(|skipped| {
                    let from = edge(skipped.from, meta.smallest_user_key());
                    let through = edge(skipped.through, meta.largest_user_key());
                    lost(Some((from, through)), skipped.error.to_string())
                }));
                self.tables.push(Found { family, table: salvaged.table, level: Some(level) });
            }
        }
        let name = self.name_of(family);
        let new = self.report.lost.iter_mut().filter(|lost| lost.family.is_none());
        new.for_each(|lost| lost.family = Some(name.clone()));
        Ok(())
    }

    fn name_of(&self, family: FamilyId) -> String {
        let name = self.families.known.get(&family).map(|family| family.name.clone());
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| super::unnamed(family))
    }

    /// Ingested tables in the logs.
    fn ingested(&self) -> BTreeMap<FileNumber, Ingested> {
        let mut ingested = BTreeMap::new();
        for record in &self.logs.ingests {
            for share in &record.families {
                let family = self.families.known.get(&share.family);
                let is_queued = !family.is_some_and(|family| family.has_linked(record.first, record.last()));
                for (i, layer) in share.layers.iter().enumerate() {
                    let number = record.shape().number_of_layer(record.first, i);
                    ingested.extend(layer.iter().map(|table| (table.meta.number, Ingested { number, is_queued })));
                }
            }
        }
        ingested
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
            let ingested = ingested.get(file).copied();
            let is_queued = ingested.is_some_and(|ingested| ingested.is_queued);
            if self.is_complete && !is_queued {
                self.aside.insert(path.clone());
                self.report.superfluous.push(path);
                continue;
            }
            match self.source.read_unnamed(*file, &path, ingested.map(|ingested| ingested.number)) {
                Ok(_) if self.is_complete => {} // replay adds it
                Ok(table) => self.take_guessed(table, path),
                Err(error) if error.kind() == ErrorKind::Corruption => {
                    let name = file_name::format(FileType::Table, *file);
                    let why = error.to_string();
                    self.report.lost.push(LostTable { path: Some(path.clone()), name, family: None, keys: None, why });
                    self.aside.insert(path);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Drops a queued ingest whole if one of its tables is missing or damaged (D3). Its other tables are set aside.
    fn drop_broken_ingests(&mut self, files: &BTreeSet<FileNumber>) -> Result<()> {
        let mut lost = Vec::new();
        for record in &self.logs.ingests {
            let is_linked = |family: &FamilyId| {
                self.families.known.get(family).is_some_and(|family| family.has_linked(record.first, record.last()))
            };
            let queued = record.families.iter().filter(|share| !is_linked(&share.family));
            let tables =
                queued.flat_map(|share| share.layers.iter().flatten().map(|table| (share.family, &table.meta)));
            let tables: Vec<_> = tables.collect();
            let is_gone = |number: &FileNumber| self.is_complete && !files.contains(number);
            let is_broken = |number: &FileNumber| is_gone(number) || self.aside.contains(&path_of(self.dir, *number));
            if tables.iter().any(|(_, meta)| is_broken(&meta.number)) {
                lost.extend(tables.iter().map(|(family, meta)| (*family, (*meta).clone())));
                let what = format!("the ingest at number {} lacks a table, and is left out whole", record.first);
                self.report.logs.push(what);
            }
        }
        for (family, meta) in lost {
            let path = path_of(self.dir, meta.number);
            let name = file_name::format(FileType::Table, meta.number);
            if !files.contains(&meta.number) {
                self.note_missing(family, &meta)?;
            } else if self.aside.insert(path.clone()) {
                let (family, keys) = (Some(self.name_of(family)), Some(keys_of(&meta)));
                let why = "it is of an ingest that lacks another table".to_owned();
                self.report.lost.push(LostTable { path: Some(path), name, family, keys, why });
            }
        }
        Ok(())
    }

    /// Notes large batches that are missing or damaged and not in tables yet. Without the MANIFEST a missing one may
    /// have been flushed before.
    fn note_lost_batches(&mut self) {
        let known = &self.families.known;
        let flushed_through = |id| known.get(&id).map(|family| family.flushed_through.unwrap_or_default());
        for (path, error) in self.logs.lost_batches(&**self.vfs, self.log_dir, self.own, flushed_through) {
            let why = if error.is_not_found() { format!("{} is missing", path.display()) } else { error.to_string() };
            let what = format!("{why}: the large batch in it is lost");
            if error.is_not_found() && !self.is_complete {
                self.report.doubts.push(Doubt::of_all(what + ", unless it was flushed before"));
            } else {
                self.logs.damaged.insert(path, what);
            }
        }
    }

    fn take_guessed(&mut self, table: WholeTable, path: PathBuf) {
        let id = FamilyId(table.properties.family_id.unwrap_or(0));
        if self.old.dropped.contains(&id) {
            self.aside.insert(path.clone());
            self.report.superfluous.push(path);
            return;
        }
        let family = self.families.note_table(&table);
        let properties = &table.properties;
        let is_own = properties.external.is_none() && !properties.db_id.is_empty();
        let has_identity = self.vfs.exists(&self.dir.join("IDENTITY")).unwrap_or(true);
        if is_own && !has_identity && self.made_by.is_none() {
            self.made_by = Some(properties.db_id.clone());
        }
        self.tables.push(Found { family, table, level: None });
    }

    /// Guesses an ingested table's sequence number if only the MANIFEST had it: the largest number in the family's
    /// earlier files.
    fn guess_numbers(&mut self) -> Result<()> {
        self.tables.sort_by_key(|found| found.table.meta.number);
        let ingested = self.ingested();
        let mut newest: BTreeMap<FamilyId, SeqNo> = BTreeMap::new();
        for found in &mut self.tables {
            let (number, before) = (found.table.meta.number, newest.entry(found.family).or_default());
            if found.level.is_none() && lacks_number(&found.table.properties) && !ingested.contains_key(&number) {
                let path = path_of(self.dir, number);
                found.table = self.source.read_unnamed(number, &path, Some(*before))?;
                let name = file_name::format(FileType::Table, number);
                let what = format!(
                    "{name} was ingested, and its sequence number is lost: by its file's number it is {before}"
                );
                let family = self.families.known.get(&found.family).map(|family| family.name.clone());
                let keys = Some(keys_of(&found.table.meta));
                self.report.doubts.push(Doubt { family, keys, why: what });
            }
            *before = (*before).max(found.table.meta.largest_seq);
        }
        Ok(())
    }

    /// Sets each family's `flushed_through` to its newest flushed entry (Q2). A logged ingest was linked if a table of
    /// it is gone (compacted) or named by the MANIFEST.
    fn guess_progress(&mut self) {
        for found in self.tables.iter().filter(|found| found.level.is_none()) {
            if let Some(family) = self.families.known.get_mut(&found.family) {
                family.flushed_through = family.flushed_through.max(Some(found.table.largest_flushed));
            }
        }
        // Compactions to the bottom zero sequence numbers, so the family may have been flushed further.
        for (id, family) in &self.families.known {
            let lacks_numbers = |found: &&Found| found.family == *id && found.table.meta.smallest_seq == SeqNo::ZERO;
            let is_unsure = self.tables.iter().filter(|found| found.level.is_none()).any(|found| lacks_numbers(&found));
            if is_unsure && self.logs.merges.get(id).copied() > family.flushed_through {
                let what = "how far it was flushed is not certain: merges that the logs hold may be applied twice";
                self.report.doubts.push(Doubt::of_family(&family.name, what));
            }
        }
        for record in &self.logs.ingests {
            for share in &record.families {
                let Some(family) = self.families.known.get_mut(&share.family) else { continue };
                let is_there = |number: FileNumber| self.vfs.exists(&path_of(self.dir, number)).unwrap_or(true);
                let is_named = |number| family.tables.iter().any(|(_, meta)| meta.number == number);
                let tables = || share.layers.iter().flatten().map(|table| table.meta.number);
                let was_linked = tables().any(|number| !is_there(number) || is_named(number));
                if share.excise.is_some() && (was_linked || family.has_linked(record.first, record.last())) {
                    let what =
                        "an excise took parts out of tables: where the MANIFEST does not tell which, they are back";
                    self.report.doubts.push(Doubt::of_family(&family.name, what));
                }
                if was_linked && !family.has_linked(record.first, record.last()) {
                    family.linked_ingests.push(record.first);
                    family.linked_ingests.sort_unstable();
                }
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
            self.note_family(id, tables);
        }
        Ok(())
    }

    fn place_anew(&mut self, id: FamilyId, found: Vec<Found>) -> Result<Vec<(usize, FileMeta)>> {
        let Some(first) = found.first() else { return Ok(Vec::new()) };
        let order: InternalOrder = first.table.order.clone();
        let mut unplaced = Vec::with_capacity(found.len());
        for Found { table, level, .. } in found {
            let path = path_of(self.dir, table.meta.physical_number());
            let opened = self.source.reopen(&table, &path)?;
            unplaced.push(Unplaced { meta: table.meta, table: opened, level });
        }
        let before = order::relations(&order, &unplaced)?;
        let num_levels = self.options.family_or_others(&self.name_of(id)).num_levels;
        let placed = order::levels(&order, &unplaced, &before, num_levels);
        let name = |meta: &FileMeta| file_name::format(FileType::Table, meta.number);
        let family = self.name_of(id);
        self.report.doubts.extend(placed.contradicting.iter().map(|meta| {
            let what = "has older and newer entries than others for the same keys; it is taken to be older";
            Doubt::of_keys(&family, keys_of(meta), format!("{} {what}", name(meta)))
        }));
        let mut tables: Vec<_> = unplaced
            .into_iter()
            .zip(placed.places)
            .map(|(table, place)| (place.level, FileMeta { epoch_number: place.epoch, ..table.meta }))
            .collect();
        tables.sort_by_key(|(level, meta)| (*level, meta.number));
        Ok(tables)
    }

    fn note_family(&mut self, id: FamilyId, tables: Vec<(usize, FileMeta)>) {
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
        let known = metas().map(|meta| meta.largest_seq).filter(|seq| *seq != SeqNo::MAX);
        let through = families.iter().filter_map(|family| family.flushed_through);
        let last_seq = known.chain(through).chain([self.logs.last_seq]).max().unwrap_or_default();
        let of_values = metas().flat_map(|meta| &meta.value_logs).map(|share| FileNumber(share.log.0 + 1));
        let next_file = of_values.fold(self.next_file, FileNumber::max);
        let largest_id = families.last().map_or(0, |family| family.id.0);
        let row = if self.is_complete { old.and_then(|old| old.log_row) } else { self.logs.row };
        let is_rocksdbs = old
            .map_or_else(|| self.logs.row.is_none() && has_rocksdb_logs(&**self.vfs, self.log_dir), |old| !old.fenced);
        Recovered {
            manifest: old.map_or(FileNumber(0), |old| old.manifest),
            next_file,
            last_seq: old.map_or(last_seq, |old| old.last_seq.max(last_seq)),
            last_written: SeqNo::ZERO, // for secondaries
            max_family: old.map_or(largest_id, |old| old.max_family.max(largest_id)),
            min_log_to_keep: old.map_or(FileNumber(0), |old| old.min_log_to_keep),
            log_ends: self.logs.ends.clone(),
            log_row: row,
            log_dir: Some(self.options.db.wal_dir.clone()),
            db_id: old.and_then(|old| old.db_id.clone()).or_else(|| self.made_by.clone()),
            fenced: !is_rocksdbs,
            warnings: Vec::new(),
            families,
        }
    }

    /// Whether some logs are damaged or missing.
    pub fn has_damaged_logs(&self) -> bool {
        !self.logs.damaged.is_empty()
    }

    /// Moves files set aside to `lost/`, and keeps files about to be replaced there. Repeating it is harmless.
    ///
    /// # Errors
    /// The file system's.
    pub fn set_aside(&mut self) -> Result<()> {
        let vfs = &**self.vfs;
        let lost = Lost::new(vfs, self.dir);
        for number in numbers_in(vfs, self.dir, FileType::MemtableImage)? {
            lost.take(&self.dir.join(file_name::format(FileType::MemtableImage, number)))?; // the logs have its entries
        }
        for path in &self.aside {
            let now = lost.take(path)?;
            let lost = self.report.lost.iter_mut().filter(|lost| lost.path.as_ref() == Some(path));
            lost.for_each(|lost| lost.path = Some(now.clone()));
            self.report.superfluous.iter_mut().filter(|other| *other == path).for_each(|other| other.clone_from(&now));
        }
        for log in self.logs.damaged.keys() {
            if vfs.exists(log)? {
                lost.keep(log)?;
            }
        }
        if !self.report.lost_nothing() {
            lost.write(REPORT, self.report.to_string().as_bytes())?;
        }
        if self.report.manifest.is_some() {
            for number in numbers_in(vfs, self.dir, FileType::Manifest)? {
                lost.keep(&manifest_path(self.dir, number))?;
            }
            let current = self.dir.join(file_name::format(FileType::Current, FileNumber(0)));
            if vfs.exists(&current)? {
                lost.copy(&current)?;
            }
        }
        lost.sync()?;
        vfs.sync_dir(self.dir)
    }
}

fn keys_of(meta: &FileMeta) -> (Vec<u8>, Vec<u8>) {
    (meta.smallest_user_key().to_vec(), meta.largest_user_key().to_vec())
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
