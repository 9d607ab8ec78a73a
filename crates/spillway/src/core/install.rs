//! The last step of every job: recheck the inputs, make the edit durable, install the view. Keeps V1-V3, F2, D4.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::metrics::Histogram;
use base::note;
use base::{Error, FamilyId, FileNumber, Result, SeqNo};
use parking_lot::MutexGuard;

use crate::core::progress::Unneeded;
use crate::core::{Core, FamilyState};
use crate::log_files::logs::WalFiles;
use crate::queue::flushable::Flushable;
use crate::version::builder::VersionBuilder;
use crate::version::edit::{LogEnd, VersionEdit, WalRange};
use crate::version::file_name::FileType;
use crate::version::manifest::ManifestWriter;
use crate::version::purge::ObsoleteFile;
use crate::version::snapshot::ManifestSnapshot;
use crate::version::table_file::TableFile;
use crate::version::table_store::TableStore;
use crate::version::version::Version;
use parking_lot::Mutex;

/// Result of a job, to be installed in its family.
pub(crate) struct Change<'a> {
    /// Changes to the family's tables.
    pub edit: VersionEdit,
    /// Tables required to be still in place (V2).
    pub inputs: &'a [(usize, FileNumber)],
    /// The compaction ended by this change.
    pub compaction: Option<u64>,
    /// Entries leaving the family's queue, oldest first. They must still be queued (V2).
    pub flushed: &'a [Arc<dyn Flushable>],
    /// Existing handles of tables added by the edit.
    pub adopted: &'a [Arc<TableFile>],
    /// Hidden entries may show again at older numbers, as when tables with deletions are dropped (G1).
    pub uncovers: bool,
    /// Every reader finds the same in the tables as before: a merge of tables that leaves out only hidden entries.
    pub keeps_content: bool,
}

/// A change with its inputs in place, and its base version.
struct Standing<'a> {
    change: Change<'a>,
    base: Arc<Version>,
    tables: Arc<TableStore>,
}

/// Jobs and entries to end once a change is installed.
struct Ended<'a> {
    compaction: Option<u64>,
    /// Queue entries now in tables.
    entries: &'a [Arc<dyn Flushable>],
    unneeded: Unneeded,
    uncovers: bool,
}

/// Makes table changes durable, and then visible. Owns the MANIFEST; its lock comes before the state lock.
pub(crate) struct Installer {
    core: Arc<Core>,
    /// `None` if the database is open for reading only, or closed.
    pub manifest: Mutex<Option<ManifestWriter>>,
}

impl Installer {
    pub fn new(core: Arc<Core>) -> Arc<Self> {
        Arc::new(Installer { core, manifest: Mutex::default() })
    }

    /// Installs one change; see [`install_all`](Self::install_all).
    pub fn install(&self, change: Change<'_>) -> Result<bool> {
        Ok(self.install_all(vec![change])?.contains(&true))
    }

    /// Installs changes to different families in one edit of the MANIFEST: after a crash all of them count or none.
    /// Returns false for a change if its inputs no longer stand or its family is gone; the caller drops its output.
    ///
    /// # Errors
    /// A failure of the MANIFEST; the database is read-only then (D4).
    pub fn install_all(&self, changes: Vec<Change<'_>>) -> Result<Vec<bool>> {
        let manifest = self.manifest.lock();
        // Only the holder of the manifest lock changes versions, so standing changes stay valid until the exchange.
        let (standing, stood) = self.standing(changes);
        self.install_standing(manifest, standing, &mut || {})?;
        Ok(stood)
    }

    /// As [`install_all`](Self::install_all), but returns false and installs none unless all changes stand. `writes`
    /// is called right before the MANIFEST is written, and only then. From then on the MANIFEST may name the added
    /// tables, whatever error is returned.
    ///
    /// # Errors
    /// As [`install_all`](Self::install_all).
    pub fn install_all_or_none(&self, changes: Vec<Change<'_>>, writes: &mut dyn FnMut()) -> Result<bool> {
        let manifest = self.manifest.lock();
        let (standing, stood) = self.standing(changes);
        let all_stand = !stood.contains(&false);
        if all_stand {
            self.install_standing(manifest, standing, writes)?;
        }
        Ok(all_stand)
    }

    /// Installs standing changes. The manifest lock was held since they were checked.
    fn install_standing(
        &self,
        mut manifest: MutexGuard<'_, Option<ManifestWriter>>,
        standing: Vec<Standing<'_>>,
        writes: &mut dyn FnMut(),
    ) -> Result<()> {
        if standing.is_empty() {
            return Ok(());
        }
        let wal_range = self.core.logs.range_after(self.needed_once_installed(&standing));
        let mut edits = Vec::with_capacity(standing.len());
        let mut built = Vec::with_capacity(standing.len());
        for Standing { change, base, tables } in standing {
            let Change { mut edit, compaction, flushed, adopted, uncovers, keeps_content, .. } = change;
            edit.next_file = Some(self.core.context.numbers.peek());
            edit.last_seq = Some(self.core.pipeline.visible());
            let mut builder = VersionBuilder::new(&base, &tables).adopting(adopted);
            builder.apply(&edit)?;
            let mut version = builder.build()?;
            if keeps_content {
                version.version.keep_content_of(&base);
            }
            let ended = Ended { compaction, entries: flushed, unneeded: Unneeded::of(&edit), uncovers };
            built.push((edit.family, version, ended));
            edits.push(edit);
        }
        if let Some(edit) = edits.first_mut() {
            edit.wal_range = Some(wal_range);
        }
        let writer = manifest.as_mut().ok_or_else(|| Error::closed("the database is closed"))?;
        writes();
        self.core.append_edits(writer, edits)?;
        for file in built.iter().flat_map(|(_, built, _)| &built.removed) {
            file.mark_obsolete(); // the edit is durable (V3)
        }
        self.record_queue_times(built.iter().flat_map(|(_, _, ended)| ended.entries));
        let mut left = Vec::with_capacity(built.len());
        let now_s = self.core.context.now_s();
        let mut guard = self.core.state.lock();
        let state = &mut *guard;
        for (id, built, ended) in built {
            let old_view = state.families.get_mut(&id).map(|family| {
                state.table_bytes -= family.version.total_bytes();
                state.table_bytes += built.version.total_bytes();
                state.has_long_lists |= !ended.unneeded.linked.is_empty();
                family.install_version(built.version, ended.uncovers);
                if let Some(id) = ended.compaction {
                    family.compactions.end(id);
                }
                family.refresh_pending_bytes();
                family.end_flush(ended.entries, &ended.unneeded);
                ended.entries.iter().for_each(|entry| entry.mark_flushed()); // the edit is durable (V3)
                family.publish_view()
            });
            state.record_age(id, now_s);
            left.push((old_view, built.removed));
        }
        self.core.refresh_debt(state);
        let needed_after = state.needed_after();
        drop(guard);
        self.core.logs.release_through(needed_after);
        self.core.logs.record_durable(wal_range);
        let rolled = self.roll_manifest_if_long(&mut manifest);
        drop(manifest);
        drop(left); // off the locks
        rolled?;
        self.core.state_changed.notify_all();
        self.core.upkeep.raise();
        Ok(())
    }

    /// Records how long ingests among the entries were queued. Their tables are in levels now.
    fn record_queue_times<'a>(&self, entries: impl Iterator<Item = &'a Arc<dyn Flushable>>) {
        let Some(statistics) = &self.core.context.statistics else { return };
        let now_us = self.core.context.vfs.unix_time_us();
        let ingests = entries.filter_map(|entry| entry.as_ingest());
        ingests.for_each(|ingest| statistics.record(Histogram::IngestQueued, ingest.queued_for_us(now_us)));
    }

    /// The standing changes with their base versions; and for each given change, whether it stands. Edits ending
    /// flushes get the flush progress of their family (F2).
    fn standing<'a>(&self, changes: Vec<Change<'a>>) -> (Vec<Standing<'a>>, Vec<bool>) {
        let mut standing = Vec::with_capacity(changes.len());
        let mut stood = Vec::with_capacity(changes.len());
        let state = self.core.state.lock();
        for mut change in changes {
            let Change { inputs, flushed, .. } = change;
            let stands = |family: &&FamilyState| family.has_in_place(inputs) && family.may_leave(flushed);
            let family = state.families.get(&change.edit.family).filter(stands);
            stood.push(family.is_some());
            let Some(family) = family else { continue };
            if !flushed.is_empty() {
                self.advance_if_unused(family);
                let unneeded = family.unneeded_without(flushed);
                change.edit.flushed_through = Some(unneeded.through);
                change.edit.linked_ingests = unneeded.linked;
            }
            let (base, tables) = (family.version.clone(), family.family.tables().clone());
            standing.push(Standing { change, base, tables });
        }
        (standing, stood)
    }

    /// The number through which no family needs the WAL once these changes are installed: the entry after a flush in
    /// its family's queue begins where the flush ended.
    fn needed_once_installed(&self, standing: &[Standing<'_>]) -> SeqNo {
        let state = self.core.state.lock();
        let needed_by = |(id, family): (&FamilyId, &FamilyState)| {
            let edits = standing.iter().map(|standing| &standing.change.edit).filter(|edit| edit.family == *id);
            edits.filter_map(|edit| edit.flushed_through).fold(family.needed_after(), SeqNo::max)
        };
        state.families.iter().map(needed_by).min().unwrap_or(SeqNo::MAX)
    }

    /// Rolls over to a new MANIFEST if the present one is long. The caller holds the manifest lock, so nothing is
    /// installed meanwhile.
    fn roll_manifest_if_long(&self, manifest: &mut Option<ManifestWriter>) -> Result<()> {
        let Some(writer) = manifest.as_mut().filter(|writer| writer.wants_roll_over()) else { return Ok(()) };
        let snapshot = self.manifest_snapshot(self.core.logs.recovered_ends());
        let old = match writer.roll_over(self.core.context.numbers.take(), &snapshot) {
            Ok(old) => old,
            Err(error) if error.is_lack() && writer.failure().is_none() => {
                note::warn!(%error, "the MANIFEST goes on, though it is long");
                return Ok(());
            }
            Err(error) => {
                self.core.fail(&error);
                return Err(error);
            }
        };
        self.core.logs.record_manifest(writer.noted());
        self.record_new_manifest(old, &snapshot);
        Ok(())
    }

    /// Replaces the MANIFEST if appending to it failed for lack of space. Tables of the lost edits are deleted once
    /// CURRENT names the new MANIFEST (V3).
    ///
    /// # Errors
    /// The new MANIFEST could not be written; the database stays read-only.
    pub(crate) fn replace_failed_manifest(&self) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let Some(writer) = manifest.as_mut().filter(|writer| writer.failure().is_some()) else { return Ok(()) };
        let snapshot = self.manifest_snapshot(self.core.logs.recovered_ends());
        let (old, lost) = writer.replace(self.core.context.numbers.take(), &snapshot)?;
        self.core.logs.record_manifest(writer.noted());
        self.record_new_manifest(old, &snapshot);
        let tables: BTreeSet<FileNumber> = {
            let state = self.core.state.lock();
            state.families.values().flat_map(FamilyState::tables).map(|file| file.number()).collect()
        };
        for number in lost.into_iter().filter(|number| !tables.contains(number)) {
            match self.core.context.vfs.remove_file(&self.core.context.table_path(number)) {
                Err(error) if !error.is_not_found() => {
                    note::warn!(%error, "cannot delete a table that does not count")
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn record_new_manifest(&self, old: FileNumber, snapshot: &ManifestSnapshot) {
        if let Some(row) = snapshot.wal_range {
            self.core.logs.record_durable(row);
        }
        for file_type in [FileType::Manifest, FileType::ManifestCopy] {
            self.core.purge.push(ObsoleteFile { file_type, path_id: 0, number: old });
        }
    }

    /// Records the live WAL range in the MANIFEST if the record is out of date. The next open then notices a missing
    /// log, and unneeded logs may be deleted (V3). Jobs' edits record the range as well; this call is for changes
    /// followed by no edit.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    pub fn record_logs(&self) -> Result<()> {
        if self.core.logs.unnoted_range().is_none() {
            return Ok(());
        }
        self.record_logs_as(|logs| logs.unnoted_range())
    }

    /// As [`record_logs`](Self::record_logs), at a close: also how far the last log was synced, if the next open needs it.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    pub fn record_last_log(&self) -> Result<()> {
        self.record_logs_as(|logs| {
            let row = logs.range_after(SeqNo::ZERO);
            logs.unnoted_range().or(Some(row).filter(|row| row.newest.is_some()))
        })
    }

    /// Records that `number` is the last OPTIONS file, which is durable. Does nothing once the database is closed.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    pub fn record_options_file(&self, number: FileNumber) -> Result<()> {
        let mut manifest = self.manifest.lock();
        self.core.context.last_options_file.store(number.0, Ordering::Release);
        let Some(writer) = manifest.as_mut() else { return Ok(()) };
        let (options_file, next_file) = (Some(number), Some(self.core.context.numbers.peek()));
        self.core.append_edits(writer, vec![VersionEdit { options_file, next_file, ..VersionEdit::default() }])
    }

    fn record_logs_as(&self, row: impl Fn(&WalFiles) -> Option<WalRange>) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let Some(row) = row(&self.core.logs) else { return Ok(()) };
        let writer = manifest.as_mut().ok_or_else(|| Error::closed("the database is closed"))?;
        self.core.append_edits(writer, vec![VersionEdit { wal_range: Some(row), ..VersionEdit::default() }])?;
        self.core.logs.record_durable(row);
        Ok(())
    }

    /// Advances families holding nothing unflushed for free (F3), then releases unneeded logs.
    pub fn release_logs(&self) {
        let needed_after = {
            let state = self.core.state.lock();
            let commit = self.core.commit.lock();
            for family in state.families.values() {
                if family.mutable.is_unused() {
                    family.mutable.advance_empty_to(commit.last_seq);
                }
            }
            drop(commit);
            state.needed_after()
        };
        self.core.logs.release_through(needed_after);
        self.core.upkeep.raise();
    }

    /// Advances one family if it holds nothing unflushed, as [`release_logs`](Self::release_logs). Called under the
    /// state lock.
    fn advance_if_unused(&self, family: &FamilyState) {
        let commit = self.core.commit.lock();
        if family.mutable.is_unused() {
            family.mutable.advance_empty_to(commit.last_seq);
        }
    }

    /// Contents of a new MANIFEST. If the caller holds the manifest lock, exactly the state of the old one.
    pub(crate) fn manifest_snapshot(&self, log_ends: Vec<LogEnd>) -> ManifestSnapshot {
        // All RocksDB logs found at open are in tables before a MANIFEST is written.
        let log_number = self.core.first_own_file;
        let [log_dir, home] = self.core.context.noted_places();
        let state = self.core.state.lock();
        let through = |family: &FamilyState| family.needed_after().max(family.flushed_through);
        let family = |family: &FamilyState| family.snapshot(log_number, through(family));
        ManifestSnapshot {
            db_id: Some(self.core.context.db_id.clone()),
            next_file: self.core.context.numbers.peek(),
            last_seq: self.core.pipeline.visible(),
            min_log_to_keep: log_number,
            max_family: state.max_family,
            log_ends,
            wal_range: Some(self.core.logs.range_after(SeqNo::ZERO)),
            log_frontiers: Some(self.core.logs.known_frontiers()),
            log_dir,
            home,
            sessions: self.core.context.sessions.clone(),
            options_file: Some(self.core.context.options_file()).filter(|number| number.0 > 0),
            families: state.families.values().map(family).collect(),
        }
    }
}
