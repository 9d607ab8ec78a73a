//! Secondary instances: readers that follow the database of another process. A catch-up reads what was added to the
//! MANIFEST and to the logs, and then shows all of it at once.
//!
//! Working copies of the families' states take the news; readers see nothing of it. Records go into the memtables of
//! readers above their visible number, or into new ones. A view that readers need a larger number for says so
//! ([`ReadView::readable_from`](crate::queue::view::ReadView)): compactions have dropped what lower numbers show. So all
//! families change at one number (V1), and a reader sees a prefix of the primary's history (D2).
//!
//! The primary deletes files at any time. Tables are opened with the version that has them. A file that is gone before
//! leads to another try, with a newer MANIFEST.

mod trim;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNo, note};
use parking_lot::Mutex;
use wal::{LogReader, Position};

use super::reading::{self, Attempt};
use super::replay::LogReplay;
use super::replay::prepared::ReplayedPrepares;
use super::restart::Restored;
use crate::core::{Core, FamilyState};
use crate::engine::{Following, Lag};
use crate::queue::flushable::Flushable;
use crate::queue::ingest::QueuedIngest;
use crate::version::builder::VersionBuilder;
use crate::version::edit::VersionEdit;
use crate::version::file_name::{self, FileType};
use crate::version::recover::Recovered;
use crate::version::replay::RecoveredFamily;
use crate::version::table_file::TableFile;
use crate::version::tailing::{ManifestTail, News};

/// Follows the primary.
pub(crate) struct Follower {
    core: Arc<Core>,
    /// Held during a catch-up.
    place: Mutex<Place>,
}

/// How far the primary was read.
struct Place {
    tail: ManifestTail,
    /// The MANIFEST's state, without families.
    recovered: Recovered,
    /// Working copies; what readers see is in [`Core::state`].
    families: BTreeMap<FamilyId, FamilyState>,
    /// Where the next log record begins. `None`: in the oldest log that is needed.
    log: Option<Position>,
    /// The last number of all log records read.
    applied: SeqNo,
    /// Of records read. Their commits are still to come.
    prepares: ReplayedPrepares,
}

impl Following for Follower {
    fn catch_up(&self) -> Result<()> {
        self.core.check_open()?;
        let _noting = self.core.context.noting();
        let mut place = self.place.lock();
        let context = &self.core.context;
        if self.attempt(&mut place).is_ok() {
            return Ok(());
        }
        let caught_up = reading::open_steadily(&*context.vfs, &context.dir, &context.log_dir(), || {
            self.attempt(&mut place).map(|()| Attempt { opened: (), notices_missing_logs: true })
        });
        caught_up.map_err(|error| {
            let is_gone = error.is_not_found() && !context.vfs.exists(&context.dir).unwrap_or(true);
            let error = if is_gone { error.context("the primary database is gone") } else { error };
            note::warn!(%error, "cannot catch up with the primary");
            error
        })
    }

    fn lag(&self) -> Result<Lag> {
        let (context, place) = (&self.core.context, self.place.lock());
        let dir = context.log_dir();
        let needed = place.recovered.wal_range.map_or(FileNumber(0), |range| range.oldest);
        let from = place.log.unwrap_or_default();
        let mut bytes = 0;
        for number in file_name::numbers_in(&*context.vfs, &dir, FileType::Log)?.range(from.log.max(needed)..) {
            let path = dir.join(file_name::format(FileType::Log, *number));
            let Some(mut reader) = LogReader::open(&*context.vfs, &path, *number)? else { continue };
            if *number == from.log {
                reader.go_on_at(from.offset);
            }
            let start = reader.offset();
            while reader.read()?.is_some() {}
            bytes += reader.offset() - start;
        }
        Ok(Lag { visible: self.core.pipeline.visible(), bytes })
    }
}

impl Follower {
    /// `applied`: the last number of the records in the families' memtables, `prepares` those among them.
    pub fn new(core: Arc<Core>, recovered: &Recovered, applied: SeqNo, prepares: ReplayedPrepares) -> Self {
        let copy = |family: &FamilyState| {
            let mut copy = FamilyState::new(family.family.clone(), &family.family.view_full(), family.flushed_through);
            copy.linked_ingests.clone_from(&family.linked_ingests);
            copy
        };
        let families = core.state.lock().families.iter().map(|(id, family)| (*id, copy(family))).collect();
        let recovered = Recovered { families: Vec::new(), ..recovered.clone() };
        let place = Place { tail: ManifestTail::default(), recovered, families, log: None, applied, prepares };
        Follower { core, place: Mutex::new(place) }
    }

    fn attempt(&self, place: &mut Place) -> Result<()> {
        let caught_up = self.read_news(place);
        if caught_up.is_err() {
            place.tail = ManifestTail::default(); // the edits read count only as a whole
        }
        caught_up
    }

    /// The MANIFEST first: logs that it excludes may be gone.
    fn read_news(&self, place: &mut Place) -> Result<()> {
        let context = &self.core.context;
        self.read_manifest(place)?;
        let Place { recovered, families, log, applied, prepares, .. } = &mut *place;
        let restored = Restored::default();
        LogReplay::new(context, false, families, recovered, &restored).read_on(log, applied, prepares)?;
        families.values().try_for_each(|family| self.open_for_good(&tables_of_ingests(&family.queue)))?;
        // Records above it are still to come: readers must not see them one by one.
        let last = recovered.last_written.max(*applied).max(self.core.pipeline.visible());
        self.publish(place, last);
        Ok(())
    }

    fn read_manifest(&self, place: &mut Place) -> Result<()> {
        let context = &self.core.context;
        match place.tail.read(&*context.vfs, &context.dir)? {
            News::Edits(edits) => {
                edits.iter().for_each(|edit| record_edit(&mut place.recovered, edit));
                for (id, family) in &mut place.families {
                    let of_family = |edit: &&VersionEdit| edit.family == *id && !edit.drop_family;
                    self.apply(family, &edits.iter().filter(of_family).collect::<Vec<_>>())?;
                }
            }
            News::Replaced(recovered) => {
                self.check_primary(&place.recovered, &recovered)?;
                for family in place.families.values_mut() {
                    let is_it = |stored: &&RecoveredFamily| stored.id == family.family.id();
                    // A family that the primary dropped stays as it was.
                    let Some(stored) = recovered.families.iter().find(is_it) else { continue };
                    let edit = difference(stored, family);
                    self.apply(family, &[&edit])?;
                }
                place.recovered = Recovered { families: Vec::new(), ..*recovered };
            }
        }
        Ok(())
    }

    /// # Errors
    /// `InvalidArgument`: this is not the database that was opened, or not any more.
    fn check_primary(&self, before: &Recovered, now: &Recovered) -> Result<()> {
        check_format(now).map_err(|error| error.at_path(&self.core.context.dir))?;
        let own = &self.core.context.db_id;
        let what = match &now.db_id {
            Some(id) if id != own => format!("the primary is another database now, {id} instead of {own}"),
            _ if now.last_written < before.last_written => {
                format!("the primary went back from number {} to {}", before.last_written, now.last_written)
            }
            _ => return Ok(()),
        };
        Err(Error::invalid_argument(what + "; open the secondary again").at_path(&self.core.context.dir))
    }

    /// Applies edits to a family's working copy, and opens its new tables.
    ///
    /// # Errors
    /// `InvalidArgument`: values end with times by now, and this open shows them as if they did not.
    fn apply(&self, family: &mut FamilyState, edits: &[&VersionEdit]) -> Result<()> {
        let is_noted = family.family.has_value_times() || self.core.context.raw_values;
        if !is_noted && edits.iter().any(|edit| edit.value_times) {
            let what = format!("values of column family \"{}\" end with times now", family.family.name());
            let error = Error::invalid_argument(what).advise("open the secondary again");
            return Err(error.at_path(&self.core.context.dir));
        }
        if edits.iter().any(|edit| !edit.added.is_empty() || !edit.deleted.is_empty()) {
            let queued = tables_of_ingests(&family.queue);
            let mut builder = VersionBuilder::new(&family.version, family.family.tables()).adopting(&queued);
            edits.iter().try_for_each(|edit| builder.apply(edit))?;
            let version = builder.build()?.version;
            let tables: Vec<_> = version.all_files().map(|(_, file)| file.clone()).collect();
            self.open_for_good(&tables)?;
            family.install_version(version, true);
        }
        let through = edits.iter().filter_map(|edit| edit.flushed_through).fold(family.flushed_through, SeqNo::max);
        family.linked_ingests.extend(edits.iter().flat_map(|edit| &edit.linked_ingests));
        family.linked_ingests.retain(|first| *first > through);
        family.flushed_through = through;
        trim::trim(through, &self.core.context, family)
    }

    /// Opens tables, and the logs with values of theirs: the primary may delete the files. Damage shows when the damaged
    /// part is read.
    fn open_for_good(&self, tables: &[Arc<TableFile>]) -> Result<()> {
        for file in tables.iter().filter(|file| !file.is_open()) {
            match file.open() {
                Err(error) if error.kind() == ErrorKind::Corruption => {}
                opened => drop(opened?),
            }
            for share in &file.meta.value_logs {
                self.core.context.logs.of_log(share.log).values()?;
            }
        }
        Ok(())
    }

    /// Shows the working copies at `last`: views first, then the number.
    fn publish(&self, place: &Place, last: SeqNo) {
        let mut replaced = Vec::new();
        let mut state = self.core.state.lock();
        for (id, from) in &place.families {
            let Some(family) = state.families.get_mut(id) else { continue };
            (family.flushed_through, family.linked_ingests) = (from.flushed_through, from.linked_ingests.clone());
            if family.shows_as(from) {
                continue;
            }
            (family.mutable, family.version) = (from.mutable.clone(), from.version.clone());
            family.queue.clone_from(&from.queue);
            replaced.push(family.publish_view_from(last));
        }
        self.core.commit.lock().last_seq = last;
        drop(state);
        self.core.pipeline.follow_to(last);
        drop(replaced); // off the lock
    }
}

/// # Errors
/// `Unsupported`: RocksDB's MANIFEST, which does not say how far tables go.
pub(super) fn check_format(recovered: &Recovered) -> Result<()> {
    if recovered.fenced {
        return Ok(());
    }
    let what = "a directory that RocksDB writes cannot be followed; open it for reading only, or for writing, which takes it over";
    Err(Error::unsupported(what))
}

fn tables_of_ingests(queue: &[Arc<dyn Flushable>]) -> Vec<Arc<TableFile>> {
    queue.iter().filter_map(|entry| entry.as_ingest()).flat_map(QueuedIngest::files).cloned().collect()
}

/// Adds what an edit says of the whole database.
fn record_edit(recovered: &mut Recovered, edit: &VersionEdit) {
    recovered.last_seq = recovered.last_seq.max(edit.last_seq.unwrap_or_default());
    recovered.last_written = recovered.last_written.max(edit.last_seq.unwrap_or_default());
    recovered.log_ends.extend(&edit.log_ends);
    recovered.wal_range = edit.wal_range.or(recovered.wal_range);
}

/// The edit from a working copy to the stored state.
fn difference(stored: &RecoveredFamily, family: &FamilyState) -> VersionEdit {
    let before: BTreeMap<FileNumber, (usize, &Arc<TableFile>)> =
        family.version.all_files().map(|(level, file)| (file.number(), (level, file))).collect();
    let mut edit = VersionEdit::new(stored.id);
    let mut kept = 0;
    for (level, meta) in &stored.tables {
        match before.get(&meta.number) {
            Some((at, file)) if at == level && file.meta == *meta => kept += 1,
            Some((at, _)) => {
                edit.deleted.push((*at, meta.number));
                edit.added.push((*level, meta.clone()));
                kept += 1;
            }
            None => edit.added.push((*level, meta.clone())),
        }
    }
    if kept < before.len() {
        let numbers: std::collections::BTreeSet<_> = stored.tables.iter().map(|(_, meta)| meta.number).collect();
        let gone = before.iter().filter(|(number, _)| !numbers.contains(number));
        edit.deleted.extend(gone.map(|(number, (level, _))| (*level, *number)));
    }
    edit.value_times = stored.value_times;
    edit.flushed_through = stored.flushed_through;
    edit.linked_ingests.clone_from(&stored.linked_ingests);
    edit
}
