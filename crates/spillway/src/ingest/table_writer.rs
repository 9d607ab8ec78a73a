//! Tables made outside a database, to be ingested: what RocksDB's `SstFileWriter` makes. Every entry has sequence
//! number 0; the database that takes the table in gives all of them one number. RocksDB ingests them too.
//! Format: docs/format/table.md.
//!
//! A table that is not finished is removed again, whatever ended it: a writer dropped, an error, a failed sync.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::note;
use base::options::{AutoSortOptions, CompressionKind, FamilyOptions, TableKind};
use base::tombstone::RangeTombstone;
use base::{Error, FileNumber, InternalOrder, Result, SeqNo, ValueKind, key, limits};
use table::{TableBuilder, TableBuilderConfig, TableOrigin, new_builder, new_sorting_builder};
use vfs::{IfExists, IoClass, Vfs};

use crate::compaction::output::FamilyRules;
use crate::open::new_session;

/// Stands in the properties where a table of a database has the database's id.
const MAKER: &str = "SST Writer";

/// Write-back is started whenever so many bytes were written, so that the sync at the end finds little to do.
const BYTES_PER_SYNC: u64 = 1 << 20;

/// Writes one table, block-based whatever else the family writes: only such tables can be ingested. Keys ascend strictly in
/// the family's order.
///
/// Where the options have [`TableKind::AutoSort`] as table factory (`VecAutoSortTable`), keys come in any order, and any
/// number of times: what was added last counts. They are sorted when the table is finished.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use spillway::{FamilyOptions, TableWriter, vfs::RealVfs};
///
/// let path = dir.path().join("fruit.sst");
/// let mut table = TableWriter::create(RealVfs::new(), &path, &FamilyOptions::default())?;
/// table.put(b"apple", b"green")?;
/// table.put(b"pear", b"yellow")?;
/// table.delete_range(b"plum", b"quince")?;
/// let written = table.finish()?;
/// assert_eq!((written.entries, &written.smallest[..], &written.largest[..]), (3, &b"apple"[..], &b"quince"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TableWriter {
    file: Unfinished,
    order: InternalOrder,
    builder: Box<dyn TableBuilder>,
    /// The builder takes keys in any order.
    sorts: bool,
    /// The internal key of the last point entry; empty before the first.
    last: Vec<u8>,
    /// Memory for that of the one being added.
    next: Vec<u8>,
    /// The first start and the last end of the range deletions.
    deleted: Option<(Vec<u8>, Vec<u8>)>,
}

/// A table that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenTable {
    pub path: PathBuf,
    pub file_bytes: u64,
    /// Point entries and range deletions.
    pub entries: u64,
    /// The first user key; the start of a range deletion counts as one.
    pub smallest: Vec<u8>,
    /// The last user key, or the end of a range deletion, which is outside.
    pub largest: Vec<u8>,
}

impl TableWriter {
    /// Begins a table at `path`, where there must be nothing, for families with these options. Any family that has the
    /// same order of keys can take it in.
    ///
    /// # Errors
    /// `InvalidArgument`: there is a file, or the options contradict each other. `Io`, `NoSpace`.
    pub fn create(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>, options: &FamilyOptions) -> Result<TableWriter> {
        let sorting = match options.table_factory.without_level() {
            TableKind::AutoSort(sorting) => Some(sorting),
            _ => None,
        };
        Self::begin(vfs, path.as_ref(), options, TableOrigin::default(), sorting)
    }

    /// As [`create`](Self::create), for one family and keys that come in order.
    pub(crate) fn create_at(vfs: Arc<dyn Vfs>, path: &Path, rules: &FamilyRules) -> Result<TableWriter> {
        let origin = TableOrigin { family: Some(rules.id), family_name: rules.name.clone(), ..TableOrigin::default() };
        Self::begin(vfs, path, &rules.options, origin, None)
    }

    fn begin(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        options: &FamilyOptions,
        family: TableOrigin,
        sorting: Option<&AutoSortOptions>,
    ) -> Result<TableWriter> {
        let now_s = vfs.unix_time_us() / 1_000_000;
        let origin = TableOrigin {
            db_id: MAKER.to_owned(),
            // One for each table: with the file's number it makes the id by which caches know the table.
            session_id: new_session(&*vfs),
            file_number: FileNumber(1),
            creation_time_s: now_s,
            file_creation_time_s: now_s,
            ..family
        };
        let config = config(path, options, origin);
        let order = config.order.clone();
        let created = vfs.create(path, IfExists::Fail)?;
        let file = Unfinished { vfs, path: path.to_owned(), finished: false };
        let builder = match sorting {
            Some(sorting) => new_sorting_builder(sorting, &file.vfs, created, config),
            None => new_builder(&TableKind::BlockBased, &file.vfs, created, config),
        };
        let builder = builder.map_err(|e| e.at_path(path))?;
        let sorts = sorting.is_some();
        Ok(TableWriter { file, order, builder, sorts, last: Vec::new(), next: Vec::new(), deleted: None })
    }

    /// Adds a key with its value.
    ///
    /// # Errors
    /// `InvalidArgument`: the key does not stand after the last one, or the entry is too large; the table is as it was.
    /// `Io`, `NoSpace`: the table cannot be finished any more.
    pub fn put(&mut self, user_key: &[u8], value: &[u8]) -> Result<()> {
        self.add(user_key, ValueKind::Value, value)
    }

    /// Adds a key with an operand for the family's merge operator. Errors as of [`put`](Self::put).
    pub fn merge(&mut self, user_key: &[u8], operand: &[u8]) -> Result<()> {
        self.add(user_key, ValueKind::Merge, operand)
    }

    /// Deletes a key from what the table is ingested over. Errors as of [`put`](Self::put).
    pub fn delete(&mut self, user_key: &[u8]) -> Result<()> {
        self.add(user_key, ValueKind::Deletion, &[])
    }

    /// Deletes a key that was put exactly once since its last deletion. Errors as of [`put`](Self::put).
    ///
    /// RocksDB's `SstFileWriter` has no such entries, and builds of RocksDB with assertions (Debian's tools) abort when
    /// they read them from a table that was ingested: [`delete`](Self::delete) is for tables that RocksDB takes in.
    pub fn single_delete(&mut self, user_key: &[u8]) -> Result<()> {
        self.add(user_key, ValueKind::SingleDeletion, &[])
    }

    /// Deletes the keys in `[start, end)` from what the table is ingested over; the table's own entries stay. Ranges can
    /// come in any order, and overlap.
    ///
    /// # Errors
    /// As of [`put`](Self::put); `InvalidArgument` where `start` is behind `end`. An empty range is none, as in RocksDB.
    pub fn delete_range(&mut self, start: &[u8], end: &[u8]) -> Result<()> {
        match self.order.user.compare(start, end) {
            Ordering::Greater => {
                let what = "a range to delete must not end before it starts";
                return Err(Error::invalid_argument(what).at_path(&self.file.path));
            }
            Ordering::Equal => return Ok(()),
            Ordering::Less => {}
        }
        limits::check_change(ValueKind::RangeDeletion, start, end).map_err(|error| error.at_path(&self.file.path))?;
        self.add_tombstone(&RangeTombstone { start: start.to_vec(), end: end.to_vec(), seq: SeqNo::ZERO })
    }

    fn add(&mut self, user_key: &[u8], kind: ValueKind, value: &[u8]) -> Result<()> {
        limits::check_key(user_key).map_err(|error| error.at_path(&self.file.path))?;
        self.next.clear();
        key::append(&mut self.next, user_key, SeqNo::ZERO, kind as u8);
        self.add_next(value)
    }

    /// Adds an entry by its internal key, whose number must be zero. Errors as of [`put`](Self::put).
    pub(crate) fn add_internal(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        self.next.clear();
        self.next.extend_from_slice(internal_key);
        self.add_next(value)
    }

    fn add_next(&mut self, value: &[u8]) -> Result<()> {
        self.check_order(key::user_key(&self.next))?;
        self.builder.add(&self.next, value)?;
        std::mem::swap(&mut self.last, &mut self.next);
        Ok(())
    }

    /// Adds a range deletion whose number is zero. Errors as of [`put`](Self::put).
    pub(crate) fn add_tombstone(&mut self, tombstone: &RangeTombstone) -> Result<()> {
        self.builder.add_tombstone(tombstone)?;
        let order = &self.order.user;
        let (first, last) = self.deleted.get_or_insert_with(|| (tombstone.start.clone(), tombstone.end.clone()));
        if order.compare(&tombstone.start, first).is_lt() {
            first.clone_from(&tombstone.start);
        }
        if order.compare(&tombstone.end, last).is_gt() {
            last.clone_from(&tombstone.end);
        }
        Ok(())
    }

    /// The builder takes several entries of one key, as tables of a database have them; here none could be told from
    /// another, since all have the same number.
    fn check_order(&self, user_key: &[u8]) -> Result<()> {
        if self.sorts || self.last.is_empty() || self.order.user.compare(user_key, key::user_key(&self.last)).is_gt() {
            return Ok(());
        }
        let (last, next) = (key::user_key(&self.last).escape_ascii(), user_key.escape_ascii());
        let what = format!("keys of a table must ascend, each once: \"{next}\" was added after \"{last}\"");
        Err(Error::invalid_argument(what).at_path(&self.file.path))
    }

    /// Point entries and range deletions so far, those included whose key was added again.
    pub fn entries(&self) -> u64 {
        self.builder.entries()
    }

    /// Bytes that the file would have if it ended now, about.
    pub fn estimated_bytes(&self) -> u64 {
        self.builder.estimated_bytes()
    }

    /// Ends the table and makes its contents survive a power loss. That its name does too takes a sync of the directory,
    /// which is the caller's to do, once for all tables in it.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no entry. `Io`, `NoSpace`. The file is removed.
    pub fn finish(self) -> Result<WrittenTable> {
        let TableWriter { mut file, order, builder, deleted, .. } = self;
        if builder.entries() == 0 {
            return Err(Error::invalid_argument("a table without entries cannot be ingested").at_path(&file.path));
        }
        let summary = builder.finish()?;
        file.finished = true;
        let points = summary.point_bounds.map(|(first, last)| {
            let user_key = |internal: &[u8]| key::user_key(internal).to_vec();
            (user_key(&first), user_key(&last))
        });
        let (firsts, lasts): (Vec<_>, Vec<_>) = points.into_iter().chain(deleted).unzip();
        let order = &order.user;
        Ok(WrittenTable {
            path: file.path.clone(),
            file_bytes: summary.file_bytes,
            entries: summary.properties.entries,
            smallest: firsts.into_iter().min_by(|a, b| order.compare(a, b)).unwrap_or_default(),
            largest: lasts.into_iter().max_by(|a, b| order.compare(a, b)).unwrap_or_default(),
        })
    }
}

fn config(path: &Path, options: &FamilyOptions, origin: TableOrigin) -> TableBuilderConfig {
    // No level is known yet. Most tables that are ingested are given the last one that holds anything.
    let compression = options.compression_at(options.num_levels.saturating_sub(1), true);
    let mut compression_options = options.compression_opts.clone();
    if compression != CompressionKind::Zstd {
        compression_options.max_dict_bytes = 0; // no other compressor writes dictionaries
    }
    TableBuilderConfig {
        order: InternalOrder::new(options.order.clone()),
        options: options.table.clone(),
        compression,
        compression_options,
        prefix_extractor: options.prefix_extractor(),
        merge_operator: options.merge_operator.as_ref().map_or_else(String::new, |m| m.name().to_owned()),
        origin,
        ingestable: true,
        path: path.to_owned(),
        class: IoClass::Ingest,
        bytes_per_sync: BYTES_PER_SYNC,
    }
}

/// The file of a table being written; removed when dropped before it is finished.
struct Unfinished {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    finished: bool,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished
            && let Err(error) = self.vfs.remove_file(&self.path)
        {
            note::warn!(%error, "cannot remove a table that was not finished");
        }
    }
}

#[cfg(test)]
mod tests;
