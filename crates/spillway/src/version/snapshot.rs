//! The full initial state of a new MANIFEST, as edits.

use std::sync::Arc;

use base::{FamilyId, FileNumber, SeqNo};
use wal::Frontiers;

use super::edit::{LogEnd, VersionEdit, WalRange};
use super::session::Session;
use super::version::Version;

/// Tables in one edit of a snapshot. Bounds a record to some tens of KiB, and below the 4 GiB limit even with two keys
/// of maximum length per table.
const EDIT_TABLES_MAX: usize = 100;

/// One family, as in the MANIFEST.
#[derive(Clone)]
pub struct FamilySnapshot {
    pub id: FamilyId,
    pub name: String,
    /// The name of its comparator.
    pub comparator: String,
    /// RocksDB's WALs below this number hold only entries already in tables.
    pub log_number: FileNumber,
    /// Values end with their times.
    pub value_times: bool,
    /// T (F2).
    pub flushed_through: SeqNo,
    /// Ingests above T with tables already linked (F2).
    pub linked_ingests: Vec<SeqNo>,
    pub version: Arc<Version>,
}

/// Full state recorded by a MANIFEST.
#[derive(Clone)]
pub struct ManifestSnapshot {
    pub db_id: Option<String>,
    pub next_file: FileNumber,
    pub last_seq: SeqNo,
    pub min_log_to_keep: FileNumber,
    pub max_family: u32,
    pub log_ends: Vec<LogEnd>,
    pub wal_range: Option<WalRange>,
    pub log_frontiers: Option<Frontiers>,
    /// The option `wal_dir`.
    pub log_dir: String,
    /// The database's directory, where `log_dir` is another one; else empty.
    pub home: String,
    /// The opens for writing.
    pub sessions: Vec<Session>,
    /// Number of the last OPTIONS file.
    pub options_file: Option<FileNumber>,
    /// Live families, the default one first.
    pub families: Vec<FamilySnapshot>,
}

/// Intended reader of a MANIFEST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestKind {
    /// Spillway: fenced, with our private tags.
    Fenced,
    /// RocksDB: only tags that 7.8 knows, or may skip. Only for a directory without private files, whose log,
    /// `min_log_to_keep`, has so many bytes.
    Export { log_bytes: u64 },
}

impl ManifestSnapshot {
    /// The edits leading from the empty state to this one, in order.
    pub fn edits(&self, kind: ManifestKind) -> impl Iterator<Item = VersionEdit> + '_ {
        let fenced = kind == ManifestKind::Fenced;
        let fence = fenced.then(VersionEdit::fence);
        let families = self.families.iter().flat_map(move |family| family.edits(kind));
        let database = VersionEdit {
            prev_log: Some(FileNumber(0)),
            next_file: Some(self.next_file),
            last_seq: Some(self.last_seq),
            min_log_to_keep: Some(self.min_log_to_keep),
            max_family: Some(self.max_family),
            tracked_logs: match kind {
                ManifestKind::Export { log_bytes } if log_bytes > 0 => vec![(self.min_log_to_keep, log_bytes)],
                _ => Vec::new(),
            },
            log_ends: if fenced { self.log_ends.clone() } else { Vec::new() },
            wal_range: self.wal_range.filter(|_| fenced),
            log_frontiers: self.log_frontiers.filter(|_| fenced),
            log_dir: fenced.then(|| self.log_dir.clone()),
            home: Some(self.home.clone()).filter(|home| fenced && !home.is_empty()),
            sessions: Some(self.sessions.clone()).filter(|sessions| fenced && !sessions.is_empty()),
            options_file: self.options_file.filter(|_| fenced),
            ..VersionEdit::default()
        };
        let id = self.db_id.clone().map(|id| VersionEdit { db_id: Some(id), ..VersionEdit::default() });
        fence.into_iter().chain(id).chain(families).chain(std::iter::once(database))
    }
}

impl FamilySnapshot {
    fn edits(&self, kind: ManifestKind) -> impl Iterator<Item = VersionEdit> + '_ {
        let fenced = kind == ManifestKind::Fenced;
        let head = VersionEdit {
            comparator: Some(self.comparator.clone()),
            add_family: (self.id != FamilyId::DEFAULT).then(|| self.name.clone()),
            value_times: self.value_times,
            ..VersionEdit::new(self.id)
        };
        let state = VersionEdit {
            log_number: Some(self.log_number),
            flushed_through: fenced.then_some(self.flushed_through),
            linked_ingests: if fenced { self.linked_ingests.clone() } else { Vec::new() },
            ..VersionEdit::new(self.id)
        };
        [head, state].into_iter().chain(self.table_edits())
    }

    fn table_edits(&self) -> impl Iterator<Item = VersionEdit> + '_ {
        let mut files = self.version.all_files().peekable();
        std::iter::from_fn(move || {
            files.peek()?;
            let added = files.by_ref().take(EDIT_TABLES_MAX).map(|(level, file)| (level, file.meta.clone())).collect();
            Some(VersionEdit { added, ..VersionEdit::new(self.id) })
        })
    }
}
