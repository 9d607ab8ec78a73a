//! Export: another directory, which RocksDB opens. Tables are RocksDB's already; what is left out is everything private:
//! our log, and the MANIFEST's fence and tags.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use base::options::ini;
use base::{Error, FileNumber, Result};
use table::TableFormat;
use vfs::IoClass;

use crate::compaction::{BottommostLevelCompaction, CompactRangeOptions};
use crate::core::{Core, FamilyState};
use crate::db::Db;
use crate::family::Family;
use crate::staging::Staging;
use crate::version::file_name::{self, FileType};
use crate::version::manifest::write_export;
use crate::version::snapshot::ManifestSnapshot;
use crate::version::table_file::TableFile;

/// Flushes tried before an export gives up finding an instant at which nothing is in memory.
const ATTEMPTS_MAX: usize = 10;

/// How an export is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions {
    /// Copies tables even where they could be linked: for a directory that is to be moved to another disk or changed in
    /// place.
    pub copy_tables: bool,
}

/// What was exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    pub families: usize,
    pub tables: usize,
    pub bytes: u64,
}

impl Db {
    /// Makes a database in `dir`, which must not exist, that RocksDB 7.8 and later open: all families as they are at one
    /// instant during the call. Memtables are flushed first, in this database, and what an excise left as parts of files
    /// is compacted, as are memtables that became tables: RocksDB knows no such tables.
    ///
    /// # Errors
    /// `Busy`: writes or excises kept coming, so that no instant was found; stop them, or export a checkpoint. `InvalidArgument`:
    /// there is something at `dir`. On any error nothing is left there.
    pub fn export(&self, dir: impl AsRef<Path>, options: &ExportOptions) -> Result<ExportSummary> {
        let core = self.core();
        core.check_writable()?;
        let staging = Staging::begin(core.context.vfs.clone(), dir.as_ref())?;
        let (snapshot, families) = core.capture_flushed()?;
        let summary = core.fill_export(&staging, &snapshot, &families, *options)?;
        staging.commit()?;
        Ok(summary)
    }
}

impl Core {
    /// The state at an instant at which every family is in tables only. Its versions pin the tables (Q3).
    fn capture_flushed(&self) -> Result<(ManifestSnapshot, Vec<Arc<Family>>)> {
        let mut readable = BTreeSet::new();
        for _ in 0..ATTEMPTS_MAX {
            let families: Vec<_> = self.families.load().iter().cloned().collect();
            self.flush_families(&families.iter().collect::<Vec<_>>())?;
            families.iter().try_for_each(|family| self.rewrite_private_tables(family, &mut readable))?;
            // The manifest lock keeps versions as they are; a write after the test goes to memtables, not to them.
            let manifest = self.manifest.lock();
            if self.is_all_in(&readable) {
                let mut snapshot = self.manifest_snapshot(Vec::new());
                let families = self.families.load().iter().cloned().collect();
                drop(manifest);
                // No log comes along.
                snapshot.min_log_to_keep = FileNumber(0);
                snapshot.families.iter_mut().for_each(|family| family.log_number = FileNumber(0));
                return Ok((snapshot, families));
            }
        }
        let what = "writes or excises kept coming during the export; stop them, or make a checkpoint and export that";
        Err(Error::busy(what).at_path(&self.context.dir))
    }

    /// Compacts what lies in tables of the family that RocksDB cannot read. The tables that it can are added to `readable`,
    /// those aside that come of the compactions.
    fn rewrite_private_tables(&self, family: &Arc<Family>, readable: &mut BTreeSet<FileNumber>) -> Result<()> {
        let force = BottommostLevelCompaction::ForceOptimized; // or they might be moved as they are
        let options = CompactRangeOptions { bottommost_level_compaction: force, ..CompactRangeOptions::default() };
        let version = family.view_full().version.clone();
        for (_, file) in version.all_files() {
            if readable.contains(&file.number()) || file.is_obsolete() {
                continue; // a compaction before may have taken it along
            }
            if self.is_rocksdbs(file)? {
                readable.insert(file.number());
                continue;
            }
            self.compact_range(family, Some(file.smallest_user_key()), Some(file.largest_user_key()), &options)?;
        }
        Ok(())
    }

    fn is_rocksdbs(&self, table: &TableFile) -> Result<bool> {
        if table.meta.is_virtual() {
            return Ok(false);
        }
        let path = self.context.table_path(table.number());
        let format = TableFormat::of(&*self.context.vfs.open(&path)?, table.meta.file_bytes, IoClass::Other);
        Ok(format.map_err(|e| e.at_path(path))?.is_rocksdbs())
    }

    /// Whether nothing is in memory, and every table one of these.
    fn is_all_in(&self, readable: &BTreeSet<FileNumber>) -> bool {
        let state = self.state.lock();
        // No write is numbered while the commit lock is held, so all families are seen at one instant.
        let _commit = self.commit.lock();
        let is_empty = |family: &FamilyState| family.queue.is_empty() && family.mutable.is_unused();
        let has_these = |family: &FamilyState| family.version.all_files().all(|(_, f)| readable.contains(&f.number()));
        state.families.values().all(|family| is_empty(family) && has_these(family))
    }

    fn fill_export(
        &self,
        staging: &Staging,
        snapshot: &ManifestSnapshot,
        families: &[Arc<Family>],
        options: ExportOptions,
    ) -> Result<ExportSummary> {
        let mut summary = ExportSummary { families: snapshot.families.len(), ..ExportSummary::default() };
        for (_, table) in snapshot.families.iter().flat_map(|family| family.version.all_files()) {
            let path = self.context.table_path(table.number());
            match options.copy_tables {
                true => staging.copy(&path, Some(table.meta.file_bytes))?,
                false => staging.link_or_copy(&path)?,
            }
            summary.tables += 1;
            summary.bytes += table.meta.file_bytes;
        }
        let (manifest, description) = (self.context.numbers.take(), self.context.numbers.take());
        let snapshot = ManifestSnapshot { next_file: self.context.numbers.peek(), ..snapshot.clone() };
        self.write_description(staging, families, ini::Audience::RocksDb, description)?;
        let identity = snapshot.db_id.as_deref().unwrap_or_default();
        staging.write(&file_name::format(FileType::Identity, FileNumber(0)), identity.as_bytes())?;
        write_export(&*self.context.vfs, staging.dir(), manifest, &snapshot)?;
        Ok(summary)
    }
}
