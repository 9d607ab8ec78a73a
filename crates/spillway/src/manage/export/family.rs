//! Exports one family's tables to a directory, for another database to ingest.

use std::path::Path;
use std::sync::Arc;

use base::Result;

use super::ExportOptions;
use super::tables::TableExport;
use crate::background::staging::Staging;
use crate::compaction::output::FamilyRules;
use crate::core::family::Family;
use crate::core::live_file::LiveFile;
use crate::manage::checkpoint::Copier;
use crate::version::file_name::{self, FileType};

impl Copier<'_> {
    /// See [`Database::export_family`](crate::internal::Database::export_family).
    pub fn export_family(&self, family: &Arc<Family>, dir: &Path) -> Result<Vec<LiveFile>> {
        let core = self.core;
        self.check_copied()?;
        core.check_family(family)?;
        let staging = Staging::begin(core.context.vfs.clone(), dir, "export")?;
        self.flusher.flush_families(&[family])?;
        // Pins the tables (Q3).
        let version = family.view_full().version.clone();
        let export = TableExport {
            context: &core.context,
            staging: &staging,
            family: FamilyRules::of(family),
            options: ExportOptions::default(),
        };
        let (mut files, mut is_any_rewritten) = (Vec::new(), false);
        for (level, table) in version.all_files() {
            let rewritten = export.bring(level, table)?;
            is_any_rewritten |= rewritten.is_some();
            let number = rewritten.as_ref().map_or(table.number(), |meta| meta.number);
            let mut file = LiveFile::of(family, level, table, dir.join(file_name::format(FileType::Table, number)));
            if let Some(meta) = rewritten {
                (file.bytes, file.unique_id) = (meta.file_bytes, meta.unique_id);
            }
            file.is_virtual = false;
            files.push(file);
        }
        if is_any_rewritten {
            self.keep_numbers_taken()?;
        }
        staging.commit()?;
        Ok(files)
    }
}
