//! Proof of the MANIFEST's end, and the guesses of a repair without it.
//!
//! Files of every age look alike: a table may be live, or may wait for its deletion since a compaction. So a guess leaves
//! every key in doubt (R2).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use base::note;
use base::options::CompactionStyle;
use base::{ErrorKind, FamilyId, FileNumber, InternalOrder, Result, SeqNo};

use super::order::{self, Unplaced};
use super::tables::{WholeTable, lacks_number, path_of};
use super::work::{Found, Repairing, keys_of};
use crate::compaction::CompactFilesOptions;
use crate::compaction::manual::{BottommostLevelCompaction, CompactRangeOptions};
use crate::core::doubt::Doubt;
use crate::core::unnamed::Accounted;
use crate::database::handle::Database;
use crate::open::options_file;
use crate::version::file_name::{self, FileType};
use crate::version::table_file::FileMeta;

impl Repairing<'_> {
    /// Looks for a log, family or number newer than the MANIFEST's last record explains (R1). If there is one, the MANIFEST
    /// is incomplete.
    pub(super) fn prove_end(&mut self, files: &BTreeSet<FileNumber>) -> Result<()> {
        let Some(old) = self.old.recovered.as_ref().filter(|_| self.is_complete) else { return Ok(()) };
        let by_logs = self.logs.found.as_ref().map_or(Ok(()), |found| found.check_manifest(self.dir, old));
        let missing = match by_logs {
            Err(error) if error.kind() == ErrorKind::Corruption => Some(error.message().to_owned()),
            Err(error) => return Err(error),
            Ok(()) => self.unknown_family().or(self.unknown_writer()),
        };
        let missing = match missing {
            None if !self.old.is_named || !self.old.is_confirmed => self.newer_tables(files)?,
            missing => missing,
        };
        if let Some(what) = missing {
            self.is_complete = false;
            self.report.manifest = Some(what);
        }
        Ok(())
    }

    /// A family's creation is durable before the first write to it.
    fn unknown_family(&self) -> Option<String> {
        let old = self.old.recovered.as_ref()?;
        let largest = self.logs.families.last().filter(|id| id.0 > old.max_family && !old.is_backups())?;
        Some(format!("its end is missing: the logs hold writes of column family {}, which it lacks", largest.0))
    }

    /// Earlier versions write no copy, and note no MANIFEST in their logs. If one of them made a log since, the copy of a
    /// lost MANIFEST is out of date.
    fn unknown_writer(&self) -> Option<String> {
        let old = self.old.recovered.as_ref().filter(|_| self.report.manifest.is_some() && self.old.has_copy)?;
        let found = self.logs.found.as_ref()?;
        let unnoted = found.unnoted.filter(|log| *log > old.manifest)?;
        Some(format!("its copy may be out of date: log {unnoted} was made by an earlier version of this program"))
    }

    /// Signs of a lost end without a confirming copy, or of a lost later MANIFEST: a later OPTIONS file has other families; the
    /// MANIFEST names missing tables, and newer unnamed tables exist; or an unnamed table is not explained. A MANIFEST that
    /// neither CURRENT nor a log names may be an earlier one, as a whole pair.
    fn newer_tables(&self, files: &BTreeSet<FileNumber>) -> Result<Option<String>> {
        let Some(old) = self.old.recovered.as_ref() else { return Ok(None) };
        let newest = old.tables().map(|meta| meta.physical_number().max(meta.number)).max().unwrap_or_default();
        let lacks = old.tables().any(|meta| !files.contains(&meta.physical_number()));
        // A process that ran has a log, and leaves tables in the making when it is killed.
        let noted = self.logs.found.as_ref().and_then(|found| found.manifest);
        let is_noted = noted.is_some_and(|noted| noted.bytes_of(old.manifest).is_some());
        let is_unknown = self.old.has_copy && !self.old.is_named && !is_noted;
        let ingested = self.ingested();
        if let Some((_, what)) = options_file::family_of_lost_end(&**self.vfs, self.dir, old)? {
            return Ok(Some(what));
        }
        let named: BTreeSet<_> = old.tables().flat_map(|meta| [meta.number, meta.physical_number()]).collect();
        let (logged, orders) = (&self.logs.logged, &self.source.orders);
        let (dir, is_confirmed) = (self.dir, self.old.is_confirmed);
        for file in files.iter().filter(|file| !named.contains(file) && !ingested.contains_key(file)) {
            if lacks && *file > newest {
                let what = "its end may be missing: it names tables that are gone, and newer ones are there";
                return Ok(Some(what.to_owned()));
            }
            let path = path_of(dir, *file);
            // A later MANIFEST's tables have later numbers.
            let is_confirmed = is_confirmed && !(is_unknown && *file >= old.noted_next);
            let accounted = Accounted { recovered: old, dir, logged, orders, is_confirmed };
            if let Some(found) = accounted.find_unexplained(&**self.vfs, &path, *file, self.source.values())? {
                let name = file_name::format(FileType::Table, *file);
                return Ok(Some(format!("its end may be missing: {name}: {}", found.error.message())));
            }
        }
        Ok(None)
    }

    /// Doubts every key.
    pub(super) fn doubt_all(&mut self) {
        let what = "the MANIFEST's last state is unknown: obsolete tables look like live ones, and tables do not tell which \
                    writes of the logs they hold";
        self.report.doubts.push(Doubt::of_all(what));
    }

    /// Takes a table whose family is only known by `logged`, the log's record of its ingest, or by its properties.
    pub(super) fn take_guessed(&mut self, table: WholeTable, path: PathBuf, logged: Option<FamilyId>) {
        let id = logged.unwrap_or(FamilyId(table.properties.family_id.unwrap_or(0)));
        if self.old.dropped.contains(&id) {
            self.aside.insert(path.clone());
            self.report.superfluous.push(path);
            return;
        }
        let family = self.families.record_table(id, &table);
        let properties = &table.properties;
        let is_own = properties.external.is_none() && !properties.db_id.is_empty();
        let has_identity = self.vfs.exists(&self.dir.join("IDENTITY")).unwrap_or(true);
        if is_own && !has_identity && self.made_by.is_none() {
            self.made_by = Some(properties.db_id.clone());
        }
        self.tables.push(Found { family, table, level: None });
    }

    /// Guesses an ingested table's sequence number if only the MANIFEST had it: the one above the largest number in the
    /// family's earlier files.
    pub(super) fn guess_numbers(&mut self) -> Result<()> {
        let made_as = |number: FileNumber| self.salvaged.get(&number).copied().unwrap_or(number);
        self.tables.sort_by_key(|found| made_as(found.table.meta.number));
        let ingested = self.ingested();
        let mut newest: BTreeMap<FamilyId, SeqNo> = BTreeMap::new();
        for found in &mut self.tables {
            let (number, before) = (found.table.meta.number, newest.entry(found.family).or_default());
            if found.level.is_none() && lacks_number(&found.table.properties) && !ingested.contains_key(&number) {
                let (path, guess) = (path_of(self.dir, number), SeqNo(before.0 + 1));
                found.table = self.source.read_unnamed(number, &path, Some(guess))?;
                let name = file_name::format(FileType::Table, number);
                let what =
                    format!("{name} was ingested, and its sequence number is lost: by its file's number it is {guess}");
                let family = self.families.known.get(&found.family).map(|family| family.name.clone());
                let keys = Some(keys_of(&found.table.meta));
                self.report.doubts.push(Doubt { family, keys, ..Doubt::of_all(what) });
            }
            *before = (*before).max(found.table.meta.largest_seq);
        }
        Ok(())
    }

    /// Sets each family's `flushed_through` to its newest flushed entry (Q2). A logged ingest was linked if a table of
    /// it is gone (compacted) or named by the MANIFEST.
    pub(super) fn guess_progress(&mut self) {
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
                let is_within =
                    family.flushed_through.is_some_and(|through| (record.first..record.last()).contains(&through));
                if is_within || tables().any(|number| !is_there(number)) {
                    // Only its link writes its numbers to tables, and links all of it. Or a compaction rewrote it; the flush
                    // before took what it was queued above.
                    family.flushed_through = family.flushed_through.max(Some(record.last()));
                } else if was_linked && !family.has_linked(record.first, record.last()) {
                    family.linked_ingests.push(record.first);
                    family.linked_ingests.sort_unstable();
                }
            }
        }
    }

    pub(super) fn place_anew(&mut self, id: FamilyId, found: Vec<Found>) -> Result<Vec<(usize, FileMeta)>> {
        let Some(first) = found.first() else { return Ok(Vec::new()) };
        let order: InternalOrder = first.table.order.clone();
        // A guessed number can be one of the logs', too.
        let has_guessed = found.iter().any(|found| found.level.is_none() && lacks_number(&found.table.properties));
        let mut unplaced = Vec::with_capacity(found.len());
        for Found { table, level, .. } in found {
            let path = path_of(self.dir, table.meta.physical_number());
            let opened = self.source.reopen(&table, &path)?;
            unplaced.push(Unplaced { meta: table.meta, table: opened, level });
        }
        let before = order::relations(&order, &unplaced)?;
        let mut options = self.options.family_or_others(&self.name_of(id));
        options.cf_allow_ingest_behind |= self.options.db.allow_ingest_behind;
        let placed = order::levels(&order, &unplaced, &before, &options);
        let name = |meta: &FileMeta| file_name::format(FileType::Table, meta.number);
        let family = self.name_of(id);
        self.to_compact.insert(family.clone(), has_guessed || !placed.contradicting.is_empty());
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

    /// Merges the tables of families in a guessed order: lookups and scans agree from then on. FIFO compaction merges nothing on
    /// request, and deletes whole tables: its tables are merged only if they contradict each other. On a full disk they stay.
    ///
    /// # Errors
    /// As of a compaction.
    pub fn merge_guesses(&self, db: &Database) -> Result<()> {
        for (name, contradicts) in &self.to_compact {
            let Some(family) = db.family(name) else { continue };
            let how = BottommostLevelCompaction::Force;
            let how = CompactRangeOptions { bottommost_level_compaction: how, ..CompactRangeOptions::default() };
            let merged = db.compact_range(&family, None, None, &how).and_then(|()| {
                let is_fifo = family.options().compaction_style == CompactionStyle::Fifo;
                if !(is_fifo && *contradicts) {
                    return Ok(());
                }
                let tables = family.view_full();
                let tables: BTreeSet<_> = tables.version.level(0).iter().map(|table| table.number()).collect();
                match tables.len() {
                    0 | 1 => Ok(()),
                    _ => db.compact_files(&family, &tables, 0, &CompactFilesOptions::default()).map(drop),
                }
            });
            match merged {
                Err(error) if error.kind() == ErrorKind::NoSpace => {
                    note::warn!(%error, "a guessed order stays as it is")
                }
                merged => merged?,
            }
        }
        Ok(())
    }
}
