//! Import of exported families as one new family: their tables become its tables, by hard link or copy, with their
//! levels, their order in level 0 and their sequence numbers. The database's numbers go on above theirs first, so every
//! entry is visible once the family is there (S2).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::key::{self, ParsedKey};
use base::note;
use base::options::FamilyOptions;
use base::{Error, InternalOrder, Result, SeqNo, ValueKind};
use table::{Table, TableReadOptions};
use vfs::{IfExists, IoClass, Vfs};

use crate::background::staging::scan;
use crate::batch::options::WriteOptions;
use crate::commit::Commit;
use crate::commit::admission::Waiter;
use crate::commit::committer::Committer;
use crate::core::Core;
use crate::core::family::Family;
use crate::core::live_file::LiveFile;
use crate::core::new_family::Shared;
use crate::ingest::RunningPrepare;
use crate::ingest::source::check_movable;
use crate::manage::catalog::Catalog;
use crate::version::span::{Span, widen};
use crate::version::table_file::FileMeta;
use crate::version::table_store::TableStore;

/// Epoch of tables below level 0. Those of level 0 have larger ones, the newer the larger; 1 is that of ingests behind.
const EPOCH_BELOW: u64 = 2;

/// Imports families.
pub(crate) struct Importer<'a> {
    pub core: &'a Arc<Core>,
    pub catalog: Catalog<'a>,
    pub committer: &'a Committer,
}

impl Importer<'_> {
    /// See [`Database::import_family`](crate::internal::Database::import_family).
    pub fn import(
        &self,
        name: &str,
        options: FamilyOptions,
        exports: &[&[LiveFile]],
        move_files: bool,
    ) -> Result<Arc<Family>> {
        self.core.check_writable()?;
        self.catalog.check_new_name(name)?;
        if move_files {
            let mut files = exports.iter().flat_map(|files| files.iter());
            files.try_for_each(|file| check_movable(&*self.core.context.vfs, &file.path))?;
        }
        let _running = RunningPrepare::begin(self.core)?;
        let mut brought = Brought { vfs: &*self.core.context.vfs, files: Vec::new() };
        let tables = self.bring(&options, exports, &mut brought)?;
        let made = self
            .number_above(&tables)
            .and_then(|()| self.core.sync_published())
            .and_then(|()| self.catalog.create_family_of(name, options, tables));
        // A failed edit may survive a restart.
        if made.is_ok() || self.core.check_writable().is_err() {
            brought.files.clear();
        }
        let family = made?;
        if move_files {
            exports.iter().flat_map(|files| files.iter()).for_each(|file| remove_moved(brought.vfs, &file.path));
        }
        Ok(family)
    }

    /// Brings the files into the directory. Returns their levels and metadata.
    ///
    /// # Errors
    /// `InvalidArgument`: there is none, the exports overlap, or a level is too deep. Of the files.
    fn bring(
        &self,
        options: &FamilyOptions,
        exports: &[&[LiveFile]],
        brought: &mut Brought<'_>,
    ) -> Result<Vec<(usize, FileMeta)>> {
        let order = InternalOrder::new(options.order.clone());
        let store = Shared::of(self.core).table_store(&self.core.context, options);
        let (mut tables, mut spans) = (Vec::new(), Vec::new());
        for files in exports {
            let mut span: Option<Span> = None;
            let has_epochs = files.iter().all(|file| file.epoch_number != 0);
            for file in *files {
                let mut meta = self.bring_one(&store, &order, options, file, brought)?;
                meta.epoch_number = if has_epochs { file.epoch_number } else { 0 };
                span.get_or_insert_with(|| Span::of_file(&meta)).include(&order.user, &meta);
                tables.push((file.level, meta));
            }
            spans.extend(span);
        }
        if tables.is_empty() {
            return Err(Error::invalid_argument("there are no tables to import; name at least one"));
        }
        spans.sort_by(|a, b| order.user.compare(&a.start, &b.start));
        if spans.windows(2).any(|pair| matches!(pair, [a, b] if a.overlaps(&order.user, b))) {
            let what = "CFs have overlapping ranges: the exports have keys of the same range; import them apart";
            return Err(Error::invalid_argument(what));
        }
        self.core.context.vfs.sync_dir(&self.core.context.dir)?;
        give_epochs(&mut tables);
        Ok(tables)
    }

    fn bring_one(
        &self,
        store: &Arc<TableStore>,
        order: &InternalOrder,
        options: &FamilyOptions,
        file: &LiveFile,
        brought: &mut Brought<'_>,
    ) -> Result<FileMeta> {
        if file.level >= options.num_levels {
            let what = format!("is of level {}, and the family has {} levels", file.level, options.num_levels);
            return Err(Error::invalid_argument(what).at_path(&file.path));
        }
        if file.is_virtual {
            let what = "the table is a part of its file: import what `export_family` makes \
                        (rocksdb_checkpoint_export_column_family), which writes such a part into a file of its own";
            return Err(Error::invalid_argument(what).at_path(&file.path));
        }
        let context = &self.core.context;
        let number = context.numbers.take();
        let to = context.table_path(number);
        let file_bytes = brought.bring(&file.path, &to)?;
        if file.bytes != 0 && file.bytes != file_bytes {
            let what =
                format!("has {file_bytes} bytes, and the export had {}: it is another file, or damaged", file.bytes);
            return Err(Error::corruption(what).at_path(&file.path));
        }
        let now_s = context.now_s();
        let meta = FileMeta {
            number,
            file_bytes,
            smallest_seq: file.smallest_seq,
            largest_seq: file.largest_seq,
            unique_id: file.unique_id,
            oldest_ancestor_time: now_s,
            file_creation_time: now_s,
            ..FileMeta::default()
        };
        let bounded = store.planned_file(meta.clone()).open().and_then(|table| bounded(&table, order, file, meta));
        bounded.map_err(|error| error.context(format!("while importing {}", file.path.display())))
    }

    /// Takes numbers until those of the tables are passed. Nothing has them.
    fn number_above(&self, tables: &[(usize, FileMeta)]) -> Result<()> {
        let largest = tables.iter().map(|(_, meta)| meta.largest_seq).max().unwrap_or_default();
        let last = self.core.commit.lock().last_seq;
        if last < largest {
            let waiter = Waiter::of_write(&WriteOptions::default());
            let mut commit = Commit::of_flushables(None, largest.0 - last.0, Vec::new(), waiter);
            let numbered = self.committer.number(&mut commit)?;
            self.committer.apply(&mut commit, numbered)?;
        }
        Ok(())
    }
}

/// Sets the table's id, and the bounds and numbers that its ends have.
///
/// # Errors
/// `Corruption`: an entry cannot be of the table that was exported. `InvalidArgument`: the table is empty, or its values lie in
/// logs.
fn bounded(table: &Arc<dyn Table>, order: &InternalOrder, file: &LiveFile, mut meta: FileMeta) -> Result<FileMeta> {
    if table.properties().leaves_values() {
        let what = "values of the table lie in its database's logs: import what `export_family` makes \
                    (rocksdb_checkpoint_export_column_family), which writes them into a table";
        return Err(Error::invalid_argument(what));
    }
    let options = TableReadOptions { fill_cache: false, class: IoClass::Ingest, ..TableReadOptions::default() };
    let mut cursor = table.clone().cursor(&options);
    let mut bounds = None;
    let mut seqs = vec![meta.smallest_seq, meta.largest_seq];
    let compare = |a: &[u8], b: &[u8]| order.compare(a, b);
    for to_end in [false, true] {
        let is_there = if to_end { cursor.seek_to_last() } else { cursor.seek_to_first() };
        cursor.status()?; // another seek forgets it
        if is_there {
            let key = ParsedKey::parse(cursor.key()).ok_or_else(|| Error::corruption("a key is malformed"))?;
            check_exported(file, order, &key)?;
            seqs.push(key.seq);
            widen(&mut bounds, cursor.key(), cursor.key(), compare);
        }
    }
    for fragment in table.tombstones().iter().flat_map(|tombstones| tombstones.fragments()) {
        seqs.extend(&fragment.seqs);
        let newest = fragment.seqs.iter().max().copied().unwrap_or_default();
        let start = key::encode(&fragment.start, newest, ValueKind::RangeDeletion);
        let end = key::encode(&fragment.end, SeqNo::MAX, ValueKind::RangeDeletion);
        widen(&mut bounds, &start, &end, compare);
    }
    meta.unique_id = table.properties().unique_id();
    (meta.smallest, meta.largest) = bounds.ok_or_else(|| Error::invalid_argument("the table is empty"))?;
    meta.smallest_seq = seqs.iter().min().copied().unwrap_or_default();
    meta.largest_seq = seqs.iter().max().copied().unwrap_or_default();
    Ok(meta)
}

/// Compares an entry with what the export says of its table. A caller that describes a table by hand may leave out numbers
/// and keys.
fn check_exported(file: &LiveFile, order: &InternalOrder, key: &ParsedKey<'_>) -> Result<()> {
    let compare = |a: &[u8], b: &[u8]| order.user.compare(a, b);
    let knows_keys = !file.largest.is_empty();
    let has_key = compare(&file.smallest, key.user_key).is_le() && compare(key.user_key, &file.largest).is_le();
    let knows_numbers = file.largest_seq > SeqNo::ZERO;
    let has_number = (file.smallest_seq..=file.largest_seq).contains(&key.seq);
    if (has_key || !knows_keys) && (has_number || !knows_numbers) {
        return Ok(());
    }
    let what = format!(
        "key '{}' with number {} is not of the exported table, which has keys '{}' to '{}' and numbers {} to {}: it is \
         another file, or wrongly described",
        key.user_key.escape_ascii(),
        key.seq,
        file.smallest.escape_ascii(),
        file.largest.escape_ascii(),
        file.smallest_seq,
        file.largest_seq
    );
    Err(Error::corruption(what))
}

/// Level 0 keeps its order, which sequence numbers need not tell: an ingest beneath older writes of other keys may be
/// merged with older tables of these keys (V4). Only an export without all epochs is ordered by numbers, as in RocksDB.
/// Exports share no keys, so only the order within each counts.
fn give_epochs(tables: &mut [(usize, FileMeta)]) {
    tables.sort_by_key(|(level, meta)| {
        (std::cmp::Reverse(*level), meta.epoch_number, meta.largest_seq, meta.smallest_seq)
    });
    let mut next = EPOCH_BELOW;
    for (level, meta) in tables {
        next += u64::from(*level == 0);
        meta.epoch_number = next;
    }
}

/// The files brought in. Removed on drop.
struct Brought<'a> {
    vfs: &'a dyn Vfs,
    files: Vec<PathBuf>,
}

impl Brought<'_> {
    /// Links or copies a file, and makes its contents durable. Returns its bytes.
    fn bring(&mut self, from: &Path, to: &Path) -> Result<u64> {
        self.files.push(to.to_owned());
        match self.vfs.hard_link(from, to) {
            Ok(()) => self.vfs.open_append(to)?.sync(IoClass::Ingest)?,
            Err(error) if error.is_not_found() => return Err(error),
            Err(_) => {
                let mut copy = self.vfs.create(to, IfExists::Fail)?;
                scan(self.vfs, from, None, &mut |block| copy.append(block, IoClass::Ingest))?;
                copy.sync(IoClass::Ingest)?;
            }
        }
        Ok(self.vfs.metadata(to)?.len)
    }
}

impl Drop for Brought<'_> {
    fn drop(&mut self) {
        for file in &self.files {
            if let Err(error) = self.vfs.remove_file(file).or_else(|e| if e.is_not_found() { Ok(()) } else { Err(e) }) {
                note::warn!(%error, "cannot remove a table that was not imported");
            }
        }
    }
}

fn remove_moved(vfs: &dyn Vfs, path: &Path) {
    if let Err(error) = vfs.remove_file(path) {
        note::warn!(%error, "a table was imported, but was not removed from where it was");
    }
}
