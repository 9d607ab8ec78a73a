//! Export: a copy of the database for RocksDB to open, while writes go on. Omits the MANIFEST's fence and all tags but one that RocksDB passes over; rewrites
//! tables of formats unknown to RocksDB; what no table has goes into a log of RocksDB's format.

use base::name;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base::options::ini;
use base::{Error, FileNumber, Result, SeqNo};

use crate::background::staging::Staging;
use crate::compaction::output::FamilyRules;
use crate::manage::checkpoint::Copier;
use crate::manage::export::instant::Instant;
use crate::manage::export::tables::TableExport;
use crate::version::edit::VersionEdit;
use crate::version::file_name::{self, FileType};
use crate::version::ids::new_identity;
use crate::version::manifest::write_alone;
use crate::version::snapshot::ManifestKind;

mod family;
mod instant;
mod log;
mod tables;

/// Options of an export.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions {
    /// Copies tables instead of linking: for a directory to be moved to another disk or changed in place.
    pub copy_tables: bool,
    /// Looks at the tables' ends only, not at every block: damage goes along.
    pub skip_verification: bool,
    /// Memtables are flushed first if the WAL has as many bytes. Else its batches go into the export's log, those of
    /// unlogged writes excepted. 0: always (RocksDB: `log_size_for_flush`).
    pub flush_from_log_bytes: u64,
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
    /// Tables written anew; all others are links or copies.
    pub rewritten_tables: usize,
    /// The last write's sequence number.
    pub last_seq: SeqNo,
}

impl Copier<'_> {
    /// See [`Database::export`](crate::internal::Database::export).
    pub fn export(&self, dir: &Path, options: ExportOptions) -> Result<ExportSummary> {
        let core = self.core;
        self.check_copied()?;
        let staging = Staging::begin(core.context.vfs.clone(), dir, "export")?;
        let instant = Instant::capture(self, options)?;
        let summary = self.fill_export(&staging, instant, options)?;
        staging.commit()?;
        Ok(summary)
    }

    fn fill_export(&self, staging: &Staging, instant: Instant, options: ExportOptions) -> Result<ExportSummary> {
        let Instant { mut snapshot, families, rest } = instant;
        let mut summary =
            ExportSummary { families: snapshot.families.len(), last_seq: snapshot.last_seq, ..Default::default() };
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
            summary.rewritten_tables += changed.len();
            family.version = Arc::new(family.version.with_copies(&changed));
        }
        if summary.rewritten_tables > 0 {
            self.keep_numbers_taken()?;
        }
        let numbers = &self.core.context.numbers;
        let (log, manifest, description) = (numbers.take(), numbers.take(), numbers.take());
        let log_bytes = rest.write(self.core, &staging.dir().join(file_name::format(FileType::RocksLog, log)))?;
        snapshot.min_log_to_keep = log;
        snapshot.families.iter_mut().for_each(|family| family.log_number = log);
        snapshot.next_file = numbers.peek();
        // Logs of a later takeover must not pass for those of the database that is exported.
        let identity = new_identity(&*self.core.context.vfs);
        snapshot.db_id = Some(identity.clone());
        let text = self.describe_options(&families, &identity, description, ini::Audience::RocksDb);
        staging.write(&file_name::format(FileType::Options, description), &name::bytes(&text))?;
        staging.write(&file_name::format(FileType::Identity, FileNumber(0)), identity.as_bytes())?;
        let kind = ManifestKind::Export { log_bytes };
        write_alone(&*self.core.context.vfs, staging.dir(), manifest, &snapshot, kind)?;
        Ok(summary)
    }

    /// Notes the file numbers taken so far in the MANIFEST. After a crash no table gets the name of another in a copy.
    fn keep_numbers_taken(&self) -> Result<()> {
        let mut manifest = self.installer.manifest.lock();
        let writer = manifest.as_mut().ok_or_else(closed)?;
        let edit = VersionEdit { next_file: Some(self.core.context.numbers.peek()), ..VersionEdit::default() };
        self.core.append_edits(writer, vec![edit])
    }
}

fn closed() -> Error {
    Error::closed("the database is closed")
}
