//! Ingesting *behind*: tables go under all existing data, into the last level, kept for such ingests. They have
//! sequence number 0, so they need no order and no WAL record: their MANIFEST edit is the commit. Keeps Q1, V2, V3, D3.

use std::sync::Arc;

use base::{Error, ErrorKind, FileNumber, Result, SeqNo};

use super::prepare::PreparedIngest;
use crate::core::Core;
use crate::core::family::Family;
use crate::core::install::Change;
use crate::ingest::levels::Placer;
use crate::records::ingest_record::{FamilyIngest, numbered};
use crate::version::edit::VersionEdit;
use crate::version::span::Span;
use crate::version::table_file::FileMeta;

/// Reserved spans of last levels, released on drop.
struct Reserved<'a> {
    core: &'a Core,
    places: Vec<(Arc<Family>, u64)>,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut state = self.core.state.lock();
        for (family, id) in &self.places {
            if let Some(family) = state.families.get_mut(&family.id()) {
                family.compactions.end_reservation(*id);
            }
        }
        drop(state);
        self.core.state_changed.notify_all();
    }
}

impl Placer {
    /// Puts prepared tables into the last levels of their families, all at once.
    ///
    /// # Errors
    /// `InvalidArgument`: they do not fit there. `Busy`: another job is bringing tables there. `Closed`: a family was
    /// dropped meanwhile. Nothing was done in these cases.
    pub(super) fn place_behind(&self, prepared: &mut PreparedIngest) -> Result<()> {
        let mut reserved = Reserved { core: &self.core, places: Vec::new() };
        for (family, share) in prepared.shares() {
            let id = self.reserve_behind(family, share)?;
            reserved.places.push((family.clone(), id));
        }
        self.core.sync_published()?;
        let changes = prepared.shares().iter().map(|(family, share)| change_of(family, share)).collect();
        // Kept once the MANIFEST write begins: it may name the tables even after an error.
        if !self.installer.install_all_or_none(changes, &mut || prepared.keep())? {
            return Err(Error::closed("a column family was dropped while tables were ingested behind it"));
        }
        drop(reserved);
        self.tell_placed_behind(prepared);
        Ok(())
    }

    fn tell_placed_behind(&self, prepared: &PreparedIngest) {
        for (family, share) in prepared.shares() {
            let levels = family.options().num_levels;
            for table in share.layers.iter().flatten() {
                self.core.context.notify(&self.linker.count_placed(family, levels - 1, levels, &table.meta));
            }
        }
    }

    fn reserve_behind(&self, family: &Arc<Family>, share: &FamilyIngest) -> Result<u64> {
        let refused = |why: &str| {
            let name = family.name();
            Err(Error::invalid_argument(format!("column family \"{name}\" cannot be ingested behind: {why}")))
        };
        let [layer] = share.layers.as_slice() else { return refused("the ingested files overlap each other") };
        let spans: Vec<Span> = layer.iter().map(|table| Span::of_file(&table.meta)).collect();
        let order = &family.order().user;
        let mut state = self.core.state.lock();
        let state = self.core.family_state(&mut state, family.id())?;
        let last = state.version.num_levels() - 1;
        if spans.iter().any(|span| state.version.overlapping_span(last, span).next().is_some()) {
            return refused("a table of the last level overlaps them");
        }
        if state.version.has_zeros_above(last) {
            return refused("compactions made entries final before allow_ingest_behind was set; compact them first");
        }
        if spans.iter().any(|span| state.compactions.writes_into(order, last, span)) {
            return Err(Error::new(
                ErrorKind::Busy,
                "another ingest is bringing tables into the last level; try again",
            ));
        }
        Ok(state.compactions.reserve(spans.into_iter().map(|span| (last, span)).collect()))
    }
}

/// Epoch of tables from behind, as in RocksDB. Without one, the next open would take the MANIFEST for an old RocksDB's
/// and order level 0 by sequence numbers.
const EPOCH_BEHIND: u64 = 1;

fn change_of<'a>(family: &Arc<Family>, share: &FamilyIngest) -> Change<'a> {
    const NO_INPUTS: &[(usize, FileNumber)] = &[];
    let last = family.options().num_levels - 1;
    let mut edit = VersionEdit::new(family.id());
    let metas = share.layers.iter().flatten().map(|table| numbered(table.meta.clone(), SeqNo::ZERO));
    edit.added.extend(metas.map(|meta| (last, FileMeta { epoch_number: EPOCH_BEHIND, ..meta })));
    Change {
        edit,
        inputs: NO_INPUTS,
        compaction: None,
        flushed: &[],
        adopted: &[],
        uncovers: true,
        keeps_content: false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use vfs::{Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule, Vfs};

    use super::*;
    use crate::internal::{
        Database, FamilyOptions, IngestOptions, IngestProgress, IngestRequest, OpenOptions, PreparedIngest, TableWriter,
    };

    /// A database, and a table that is prepared to come in behind it.
    fn prepared(vfs: &Arc<FaultVfs>) -> (Database, PreparedIngest) {
        let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        options.db.allow_ingest_behind = true;
        let db = Database::open("/db", &options).expect("a new database");
        let file = PathBuf::from("/one.sst");
        let mut table = TableWriter::create(vfs.clone(), &file, &FamilyOptions::default()).expect("new");
        table.put(b"key", b"behind").expect("a key");
        table.finish().expect("a table");
        let request = IngestRequest::new(db.default_family(), vec![file]);
        let options = IngestOptions { ingest_behind: true, ..IngestOptions::default() };
        let prepared = db.prepare_ingest(&[request], &options, &IngestProgress::default()).expect("prepared");
        (db, prepared)
    }

    fn tables(vfs: &FaultVfs) -> usize {
        vfs.read_dir(Path::new("/db")).expect("listed").iter().filter(|name| name.ends_with(".sst")).count()
    }

    /// Level 0 would be ordered anew at the next open.
    #[test]
    fn what_comes_from_behind_has_an_epoch() {
        let (db, prepared) = prepared(&FaultVfs::new(MemoryVfs::new(1)));
        db.commit_ingest(prepared).expect("committed");
        let epochs = |db: &Database| {
            let view = db.default_family().view_full();
            view.version.all_files().map(|(_, file)| file.meta.epoch_number).collect::<Vec<_>>()
        };
        assert_eq!(epochs(&db), [EPOCH_BEHIND]);
    }

    #[test]
    fn nothing_is_left_where_the_manifest_was_not_written() {
        let vfs = FaultVfs::new(MemoryVfs::new(1));
        let (db, prepared) = prepared(&vfs);
        assert_eq!(tables(&vfs), 1);
        *db.engine().installer.manifest.lock() = None; // as a close leaves it
        let error = db.commit_ingest(prepared).expect_err("closed");
        assert_eq!((error.kind(), tables(&vfs)), (ErrorKind::Closed, 0), "{error}");
    }

    #[test]
    fn tables_stay_where_nobody_knows_whether_the_manifest_names_them() {
        for fault in [Fault::Error(FaultCode::Io), Fault::ErrorAfter(FaultCode::Io)] {
            for operation in [Operation::Write, Operation::Sync] {
                let vfs = FaultVfs::new(MemoryVfs::new(1));
                let (db, prepared) = prepared(&vfs);
                vfs.inject(Rule::new(fault).on(operation).path("MANIFEST"));
                let error = db.commit_ingest(prepared).expect_err("the MANIFEST cannot be written");
                assert_eq!((error.kind(), tables(&vfs)), (ErrorKind::Io, 1), "{fault:?} {operation:?}: {error}");
            }
        }
    }
}
