//! A table as reports and exports tell of it.

use std::path::PathBuf;

use base::{FileNumber, SeqNo};
use table::Properties;

use crate::core::family::Family;
use crate::version::table_file::TableFile;

/// A table of the current version, or an ingested one without a level yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveFile {
    /// Name of the family.
    pub family: String,
    /// 0 for a table without a level.
    pub level: usize,
    /// The table was ingested, and has no level until the next flush.
    pub is_queued: bool,
    /// The table's number.
    pub number: FileNumber,
    /// The table's file.
    pub path: PathBuf,
    /// Bytes of the file; for a virtual table roughly its share of them.
    pub bytes: u64,
    /// Entries and, among them, deletions, by the file's properties; 0 if they could not be read.
    pub entries: u64,
    /// Deletions among the entries.
    pub deletions: u64,
    /// The table is a part of the file, between the keys below; the file can hold several tables.
    pub is_virtual: bool,
    /// User keys, both inclusive, save for a range tombstone's end.
    pub smallest: Vec<u8>,
    /// The last key.
    pub largest: Vec<u8>,
    /// The smallest sequence number of an entry.
    pub smallest_seq: SeqNo,
    /// The largest sequence number of an entry.
    pub largest_seq: SeqNo,
    /// Orders level 0: the larger, the newer. 0 if unknown.
    pub epoch_number: u64,
    /// RocksDB's internal unique id. An import compares it with the file's. `None` if unknown.
    pub unique_id: Option<(u64, u64)>,
}

impl LiveFile {
    /// A table of `level` in the file at `path`.
    pub(crate) fn of(family: &Family, level: usize, table: &TableFile, path: PathBuf) -> LiveFile {
        LiveFile {
            entries: counted(table, |properties| properties.entries),
            deletions: counted(table, |properties| properties.deletions),
            family: family.name().to_owned(),
            level,
            is_queued: false,
            number: table.number(),
            path,
            bytes: table.meta.file_bytes,
            is_virtual: table.meta.is_virtual(),
            smallest: table.smallest_user_key().to_vec(),
            largest: table.largest_user_key().to_vec(),
            smallest_seq: table.meta.smallest_seq,
            largest_seq: table.meta.largest_seq,
            epoch_number: table.meta.epoch_number,
            unique_id: table.meta.unique_id,
        }
    }
}

fn counted(file: &TableFile, count: fn(&Properties) -> u64) -> u64 {
    file.with(|table| Ok(count(table.properties()))).unwrap_or(0)
}
