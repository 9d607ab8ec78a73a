//! Export: a copy of the database for RocksDB to open. Omits our WAL and the MANIFEST's fence and tags; rewrites tables
//! of formats unknown to RocksDB.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base::options::ini;
use base::{Error, FileNumber, Result};

use crate::background::staging::Staging;
use crate::compaction::output::FamilyRules;
use crate::core::family::Family;
use crate::maintenance::checkpoint::Copier;
use crate::maintenance::export::tables::TableExport;
use crate::version::file_name::{self, FileType};
use crate::version::manifest::write_export;
use crate::version::snapshot::ManifestSnapshot;

mod family;
mod tables;

/// Flushes tried before giving up on an instant with empty memtables.
const ATTEMPTS_MAX: usize = 10;

/// Options of an export.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions {
    /// Copies tables instead of linking: for a directory to be moved to another disk or changed in place.
    pub copy_tables: bool,
}

/// Totals of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportSummary {
    /// Number of families.
    pub families: usize,
    /// Number of tables.
    pub tables: usize,
    /// Bytes of the tables.
    pub bytes: u64,
}

impl Copier<'_> {
    /// See [`Database::export`](crate::internal::Database::export).
    pub fn export(&self, dir: &Path, options: ExportOptions) -> Result<ExportSummary> {
        let core = self.core;
        core.check_writable()?;
        let staging = Staging::begin(core.context.vfs.clone(), dir)?;
        let (snapshot, families) = self.capture_flushed()?;
        let summary = self.fill_export(&staging, &snapshot, &families, options)?;
        staging.commit()?;
        Ok(summary)
    }

    /// Captures an instant with every family in tables only. Its versions pin the tables (Q3).
    fn capture_flushed(&self) -> Result<(ManifestSnapshot, Vec<Arc<Family>>)> {
        let prepared = self.core.logs.prepared.count();
        if prepared > 0 {
            let what = format!(
                "{prepared} transactions are prepared, which an export cannot hold; commit them or roll them back"
            );
            return Err(Error::busy(what).at_path(&self.core.context.dir));
        }
        for _ in 0..ATTEMPTS_MAX {
            let families: Vec<_> = self.core.families.load().iter().cloned().collect();
            self.flusher.flush_families(&families.iter().collect::<Vec<_>>())?;
            // The manifest lock freezes versions: a write after the check changes memtables only.
            let manifest = self.installer.manifest.lock();
            if self.core.is_all_in_tables() {
                let mut snapshot = self.installer.manifest_snapshot(Vec::new());
                let families = self.core.families.load().iter().cloned().collect();
                drop(manifest);
                // Logs are not exported.
                snapshot.min_log_to_keep = FileNumber(0);
                snapshot.families.iter_mut().for_each(|family| family.log_number = FileNumber(0));
                return Ok((snapshot, families));
            }
        }
        let what = "writes kept coming during the export; stop them, or make a checkpoint and export that";
        Err(Error::busy(what).at_path(&self.core.context.dir))
    }

    fn fill_export(
        &self,
        staging: &Staging,
        snapshot: &ManifestSnapshot,
        families: &[Arc<Family>],
        options: ExportOptions,
    ) -> Result<ExportSummary> {
        let mut summary = ExportSummary { families: snapshot.families.len(), ..ExportSummary::default() };
        let mut snapshot = snapshot.clone();
        for family in &mut snapshot.families {
            let known = families.iter().find(|known| known.id() == family.id);
            let known = known.ok_or_else(|| Error::busy("column families came or went during the export"))?;
            let family_rules = FamilyRules::of(known);
            let export = TableExport { context: &self.core.context, staging, family: family_rules, options };
            let mut changed = BTreeMap::new();
            for (level, table) in family.version.all_files() {
                let meta = export.bring(level, table)?;
                summary.tables += 1;
                summary.bytes += meta.as_ref().unwrap_or(&table.meta).file_bytes;
                changed.extend(meta.map(|meta| (table.number(), meta)));
            }
            family.version = Arc::new(family.version.with_metas(&changed));
        }
        let (manifest, description) = (self.core.context.numbers.take(), self.core.context.numbers.take());
        snapshot.next_file = self.core.context.numbers.peek();
        let text = self.describe_options(families, ini::Audience::RocksDb);
        staging.write(&file_name::format(FileType::Options, description), text.as_bytes())?;
        let identity = snapshot.db_id.as_deref().unwrap_or_default();
        staging.write(&file_name::format(FileType::Identity, FileNumber(0)), identity.as_bytes())?;
        write_export(&*self.core.context.vfs, staging.dir(), manifest, &snapshot)?;
        Ok(summary)
    }
}
