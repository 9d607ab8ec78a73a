//! Tables written outside a database for ingests, like RocksDB's `SstFileWriter`. Every entry has sequence number 0;
//! the ingesting database gives all of them one number. RocksDB ingests them too.
//! Format: docs/format/table.md.
//!
//! An unfinished table is removed after a dropped writer, an error or a failed sync.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::note;
use base::options::{AutoSortOptions, CompressionKind, FamilyOptions, TableKind};
use base::tombstone::RangeTombstone;
use base::{Error, FileNumber, InternalOrder, Result, SeqNo, ValueKind, key, limits};
use table::{TableBuilder, TableBuilderConfig, TableOrigin, new_builder, new_sorting_builder};
use vfs::{IfExists, IoClass, Origin, Vfs};

use crate::compaction::output::FamilyRules;
use crate::version::ids::new_session;
use crate::version::span::widen;

/// Stands in the properties in place of a database's id.
const MAKER: &str = "SST Writer";

/// Bytes between two starts of write-back, to leave little for the final sync.
const BYTES_PER_SYNC: u64 = 1 << 20;

/// Writes one table, always block-based: no other kind can be ingested. Keys ascend strictly in the family's order.
///
/// With [`TableKind::AutoSort`] as table factory (`VecAutoSortTable`), keys come in any order and any number of times:
/// the last entry of a key counts. They are sorted when the table is finished.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use spillway::internal::{FamilyOptions, TableWriter, vfs::RealVfs};
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
    /// Buffer for the internal key being added.
    next: Vec<u8>,
    /// The first start and the last end of the range deletions.
    deleted: Option<(Vec<u8>, Vec<u8>)>,
}

/// A finished table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenTable {
    /// The table's file.
    pub path: PathBuf,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Point entries and range deletions.
    pub entries: u64,
    /// The first user key; the start of a range deletion counts as one.
    pub smallest: Vec<u8>,
    /// The last user key, or the exclusive end of a range deletion.
    pub largest: Vec<u8>,
}

impl TableWriter {
    /// Begins a table at `path` for families with these options. No file may exist there. Any family with the same
    /// order of keys can ingest the table.
    ///
    /// # Errors
    /// `InvalidArgument`: the file exists, or the options contradict each other. `Io`, `NoSpace`.
    pub fn create(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>, options: &FamilyOptions) -> Result<TableWriter> {
        let sorting = match options.table_factory.without_level() {
            TableKind::AutoSort(sorting) => Some(sorting),
            _ => None,
        };
        Self::begin(vfs, path.as_ref(), options, TableOrigin::default(), sorting)
    }

    /// As [`create`](Self::create), for one family and ascending keys.
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
            // One per table: with the file's number it identifies the table in caches.
            session_id: new_session(&*vfs),
            file_number: FileNumber(1),
            creation_time_s: now_s,
            file_creation_time_s: now_s,
            value_times: *options.value_times,
            ..family
        };
        let config = config(path, options, origin);
        let order = config.order.clone();
        let created = vfs.create(path, IfExists::Fail)?;
        let file = Unfinished { vfs, origin: Origin::here(), path: path.to_owned(), finished: false };
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
    /// `InvalidArgument`: the key is not above the last one, or the entry is too large; the table is unchanged. `Io`,
    /// `NoSpace`: the table can no longer be finished.
    pub fn put(&mut self, user_key: &[u8], value: &[u8]) -> Result<()> {
        self.add(user_key, ValueKind::Value, value)
    }

    /// Adds a key with an operand for the family's merge operator. Errors as of [`put`](Self::put).
    pub fn merge(&mut self, user_key: &[u8], operand: &[u8]) -> Result<()> {
        self.add(user_key, ValueKind::Merge, operand)
    }

    /// Deletes a key from the data under the ingested table. Errors as of [`put`](Self::put).
    pub fn delete(&mut self, user_key: &[u8]) -> Result<()> {
        self.add(user_key, ValueKind::Deletion, &[])
    }

    /// Deletes a key that was put exactly once since its last deletion. Errors as of [`put`](Self::put).
    ///
    /// RocksDB's `SstFileWriter` has no such entries. RocksDB builds with assertions (Debian's tools) abort when they
    /// read one from an ingested table: use [`delete`](Self::delete) in tables for RocksDB.
    pub fn single_delete(&mut self, user_key: &[u8]) -> Result<()> {
        self.add(user_key, ValueKind::SingleDeletion, &[])
    }

    /// Deletes the keys in `[start, end)` from the data under the ingested table; the table's own entries stay. Ranges
    /// may come in any order, and overlap.
    ///
    /// # Errors
    /// As of [`put`](Self::put); `InvalidArgument` if `start` is above `end`. An empty range is ignored, as in RocksDB.
    pub fn delete_range(&mut self, start: &[u8], end: &[u8]) -> Result<()> {
        match self.order.user.compare(start, end) {
            Ordering::Greater => {
                let what = "end key comes before start key";
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

    /// Adds an entry by its internal key, with sequence number zero. Errors as of [`put`](Self::put).
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

    /// Adds a range deletion with sequence number zero. Errors as of [`put`](Self::put).
    pub(crate) fn add_tombstone(&mut self, tombstone: &RangeTombstone) -> Result<()> {
        self.builder.add_tombstone(tombstone)?;
        let order = &self.order.user;
        widen(&mut self.deleted, &tombstone.start, &tombstone.end, |a, b| order.compare(a, b));
        Ok(())
    }

    /// Rejects descending and repeated keys. The builder accepts repeated keys, for a database's tables; here they
    /// would share one sequence number.
    fn check_order(&self, user_key: &[u8]) -> Result<()> {
        self.file.check_origin()?;
        if self.sorts || self.last.is_empty() || self.order.user.compare(user_key, key::user_key(&self.last)).is_gt() {
            return Ok(());
        }
        let (last, next) = (key::user_key(&self.last).escape_ascii(), user_key.escape_ascii());
        let what = format!("Keys must be added in strict ascending order. \"{next}\" was added after \"{last}\"");
        Err(Error::invalid_argument(what).at_path(&self.file.path))
    }

    /// Point entries and range deletions so far, including entries of repeated keys.
    pub fn entries(&self) -> u64 {
        self.builder.entries()
    }

    /// Approximate size of the file if it were finished now, in bytes.
    pub fn estimated_bytes(&self) -> u64 {
        self.builder.estimated_bytes()
    }

    /// Finishes and syncs the table: its contents survive a power loss. Its name does so once the caller syncs the
    /// directory, once for all tables in it.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no entry. `Io`, `NoSpace`. The file is removed.
    pub fn finish(self) -> Result<WrittenTable> {
        let TableWriter { mut file, order, builder, deleted, .. } = self;
        file.check_origin()?;
        if builder.entries() == 0 {
            return Err(Error::invalid_argument("Cannot create sst file with no entries").at_path(&file.path));
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
    // The level is not known yet. Most ingested tables get the last one with data.
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

/// The file of a table being written; removed if dropped unfinished.
struct Unfinished {
    vfs: Arc<dyn Vfs>,
    origin: Origin,
    path: PathBuf,
    finished: bool,
}

impl Unfinished {
    /// # Errors
    /// `Closed`: the file is of the process that this one was forked from.
    fn check_origin(&self) -> Result<()> {
        if self.origin.is_here() {
            return Ok(());
        }
        Err(Error::closed("the table was begun before a fork, and is the parent process's").at_path(&self.path))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished
            && self.origin.is_here()
            && let Err(error) = self.vfs.remove_file(&self.path)
        {
            note::warn!(%error, "cannot remove a table that was not finished");
        }
    }
}

#[cfg(test)]
mod tests;
