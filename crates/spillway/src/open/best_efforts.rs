//! RocksDB's `best_efforts_recovery`: the newest point of a MANIFEST at which all tables exist.
//!
//! The point covers the whole database. If all logs exist, they are replayed on it. If a log is missing, no log is
//! replayed, as in RocksDB: each family then has the state of its tables, and a family's tables may be newer than lost
//! writes of other families. Before the new MANIFEST counts, unused files are kept in `lost/`.
//!
//! The way back loses what only the lost tables held: unlogged writes, writes of deleted logs, new and dropped families.
//! The MANIFEST's records behind the point bound them by family and keys; these are doubts.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use base::note;
use base::{Error, ErrorKind, FileNumber, Result, UserOrder};
use vfs::{IoClass, UnreadableVfs, Vfs};
use wal::NotedManifest;
use wal::framed::FramedReader;

use super::{families, log_owner, options_file};
use crate::core::doubt::Doubt;
use crate::core::open_options::OpenOptions;
use crate::open::replay::own_logs::was_let_go;
use crate::open::replay::wal_range::{self, LogPlaces};
use crate::version::current::read_current;
use crate::version::edit::{NotedLogs, VersionEdit, WalRange};
use crate::version::edit_codec;
use crate::version::file_name::{self, FileType, numbers_in};
use crate::version::manifest::manifest_path;
use crate::version::manifest_copy::copy_path;
use crate::version::recover::{Pair, ReadManifest, Recovered, recover};
use crate::version::replay::{RecoveredFamily, Replay};
use crate::version::span::Span;
use crate::version::span::merged;
use crate::version::table_file::FileMeta;

/// As [`recover`], but goes back to the newest complete point if recovery fails or tables are missing. Adds to `doubts`.
///
/// # Errors
/// As [`recover`], if there is no such point. The file system's.
pub(super) fn recover_best(
    dir: &Path,
    log_dir: &Path,
    options: &OpenOptions,
    doubts: &mut Vec<Doubt>,
) -> Result<Recovered> {
    let vfs = &*UnreadableVfs::new(options.vfs.clone());
    let mut sizes = Sizes { vfs, dir, known: HashMap::new() };
    let error = match recover(vfs, dir).and_then(|found| found.check_paths(dir).map(|()| found)) {
        Ok(recovered) => match sizes.first_missing(recovered.tables())? {
            None => return Ok(recovered),
            Some(number) => {
                let what = "the MANIFEST names this table, which is missing or has another length: \
                            restore the table from a copy, or keep what can be read with `spillway repair` (rocksdb_repair_db)";
                Error::corruption(what).at_path(dir.join(file_name::format(FileType::Table, number)))
            }
        },
        Err(error) if error.kind() == ErrorKind::Corruption => error,
        Err(error) if error.is_not_found() && has_manifest(vfs, dir)? => error,
        Err(error) => return Err(error),
    };
    note::warn!(%error, "going back to the newest point at which all tables are there");
    let mut manifests = numbers_in(vfs, dir, FileType::Manifest)?;
    manifests.extend(numbers_in(vfs, dir, FileType::ManifestCopy)?);
    for &number in manifests.iter().rev() {
        let Some(mut point) = newest_point_of_pair(&mut sizes, number)? else { continue };
        point.last.check_paths(dir)?;
        let named = read_current(vfs, dir).ok();
        point.is_whole &= Some(&number) == manifests.last();
        point.recovered.see_files_in(vfs, dir)?;
        families::check_named(dir, options, &point.recovered.families)?;
        let is_dropped = options_file::family_of_lost_end(vfs, dir, &point.last)?.is_some();
        let logs = look_at_logs(vfs, dir, log_dir, &mut point, options)?;
        // Nor that it is the last one, if neither CURRENT nor a log names it. No log of RocksDB's names one, and it keeps only the last.
        let is_only = !point.recovered.fenced && manifests.len() == 1;
        let is_noted = is_only || logs.manifest.is_some_and(|noted| noted.bytes_of(number).is_some());
        point.is_whole &= !logs.prove_a_lost_end && (point.is_confirmed || !(logs.are_tables_unnamed || is_dropped));
        point.is_whole &= match named {
            Some(named) if named >= number => named == number,
            Some(_) => is_noted,
            None => is_noted || point.is_confirmed && !logs.are_tables_unnamed && !is_dropped,
        };
        doubts.extend(point.doubts(logs.are_all_there, &options.orders()));
        return Ok(point.recovered);
    }
    Err(error.context("no point of a MANIFEST is whole"))
}

fn has_manifest(vfs: &dyn Vfs, dir: &Path) -> Result<bool> {
    let has = |kind| numbers_in(vfs, dir, kind).map(|numbers| !numbers.is_empty());
    Ok(has(FileType::Manifest)? || has(FileType::ManifestCopy)?)
}

/// Existing tables and their sizes in bytes.
struct Sizes<'a> {
    vfs: &'a dyn Vfs,
    dir: &'a Path,
    known: HashMap<FileNumber, Option<u64>>,
}

impl Sizes<'_> {
    /// The first table whose file is missing, or has another length.
    fn first_missing<'t>(&mut self, tables: impl Iterator<Item = &'t FileMeta>) -> Result<Option<FileNumber>> {
        for meta in tables {
            if self.of(meta.physical_number())? != Some(meta.physical_bytes()) {
                return Ok(Some(meta.physical_number()));
            }
        }
        Ok(None)
    }

    fn of(&mut self, number: FileNumber) -> Result<Option<u64>> {
        if let Some(known) = self.known.get(&number) {
            return Ok(*known);
        }
        let found = match self.vfs.metadata(&self.dir.join(file_name::format(FileType::Table, number))) {
            Ok(metadata) => Some(metadata.len),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        self.known.insert(number, found);
        Ok(found)
    }
}

/// A point of a MANIFEST, and what the MANIFEST has behind it.
struct Point {
    recovered: Recovered,
    /// The state after the last record.
    last: Recovered,
    /// The edits behind the point.
    later: Vec<VersionEdit>,
    /// The MANIFEST's last state is known, and no newer MANIFEST is there.
    is_whole: bool,
    /// The other file of the pair proves it, too.
    is_confirmed: bool,
    /// Where its records end then, in bytes.
    end: u64,
    /// Whole records in the MANIFEST.
    records: usize,
}

impl Point {
    /// The logs that were in use, at the point or later.
    fn wal_range(&self) -> Option<WalRange> {
        let (range, last) = (self.recovered.wal_range?, self.last.wal_range?.last());
        Some(WalRange { newest: if last > range.last() { Some(last) } else { range.newest }, ..range })
    }

    fn doubts(&self, has_logs: bool, orders: &[UserOrder]) -> Vec<Doubt> {
        if !has_logs {
            let what = "logs are missing that held what followed the point at which all tables are there";
            return vec![Doubt::of_all(what)];
        }
        if !self.is_whole {
            return vec![Doubt::of_all("the MANIFEST cannot be read to its end, which may have changed any table")];
        }
        let mut doubts = Vec::new();
        for family in &self.recovered.families {
            match self.last.family(family.id) {
                Some(last) => doubts.extend(self.lost_keys(family, last, orders)),
                None => doubts.push(Doubt::of_family(&family.name, "it was dropped, and is back")),
            }
        }
        let new = self.last.families.iter().filter(|family| self.recovered.family(family.id).is_none());
        doubts.extend(new.map(|family| Doubt::of_family(&family.name, "it was made later, and is lost")));
        doubts
    }

    /// The key ranges of the family's tables that came or went behind the point. Every write that only tables held lies in
    /// them.
    fn lost_keys(&self, family: &RecoveredFamily, last: &RecoveredFamily, orders: &[UserOrder]) -> Vec<Doubt> {
        let is_in = |tables: &[(usize, FileMeta)], meta: &FileMeta| {
            let is_it = |other: &FileMeta| {
                other.number == meta.number && other.smallest == meta.smallest && other.largest == meta.largest
            };
            tables.iter().any(|(_, other)| is_it(other))
        };
        let edits = self.later.iter().filter(|edit| edit.family == family.id);
        let came = edits.flat_map(|edit| &edit.added).filter(|(_, meta)| !is_in(&family.tables, meta));
        let gone = family.tables.iter().filter(|(_, meta)| !is_in(&last.tables, meta));
        let spans: Vec<_> = came.chain(gone).map(|(_, meta)| Span::of_file(meta)).collect();
        let why = "tables are lost that held newer writes; logged ones are replayed";
        match orders.iter().find(|order| order.name() == family.comparator) {
            _ if spans.is_empty() => Vec::new(),
            // RocksDB deletes logs that the point needs, and nothing tells.
            Some(order) if self.recovered.fenced => {
                let ranges = merged(order, spans).into_iter();
                ranges.map(|span| Doubt::of_keys(&family.name, (span.start, span.end), why)).collect()
            }
            _ => vec![Doubt::of_family(&family.name, why)],
        }
    }
}

/// The point of a MANIFEST or of its copy: of the one that proves the last state, or of the one with more records (R1).
fn newest_point_of_pair(sizes: &mut Sizes<'_>, number: FileNumber) -> Result<Option<Point>> {
    let owner = log_owner(sizes.vfs, sizes.dir, None);
    let (Pair { proven, is_confirmed, .. }, is_certain) = Pair::of_owner(sizes.vfs, sizes.dir, number, owner)?;
    if let Some(ReadManifest { path, end, .. }) = proven {
        let point = newest_point(sizes, number, &path)?;
        return Ok(point.map(|point| Point { is_whole: is_certain, is_confirmed, end, ..point }));
    }
    let mut points = Vec::new();
    for path in [manifest_path(sizes.dir, number), copy_path(sizes.dir, number)] {
        if sizes.vfs.exists(&path)? {
            points.extend(newest_point(sizes, number, &path)?);
        }
    }
    Ok(points.into_iter().max_by_key(|point| point.records))
}

/// Reads a MANIFEST, or its copy, twice: to find the point, and to replay up to it. `None` without a point.
fn newest_point(sizes: &mut Sizes<'_>, number: FileNumber, path: &Path) -> Result<Option<Point>> {
    let vfs = sizes.vfs;
    let (mut records, mut best) = (0usize, None);
    let mut replay = Replay::default();
    read_whole_records(vfs, path, |payload| {
        if !add(&mut replay, payload)? {
            return Ok(false);
        }
        records += 1;
        if replay.is_whole_state() && sizes.first_missing(replay.tables())?.is_none() {
            best = Some(records);
        }
        Ok(true)
    })?;
    let Some(best) = best else { return Ok(None) };
    let (all, mut records, mut later) = (records, 0, Vec::new());
    let (last, mut replay) = (replay, Replay::default());
    read_whole_records(vfs, path, |payload| {
        records += 1;
        match records <= best {
            true => add(&mut replay, payload),
            false => {
                later.extend(edit_codec::decode_record(payload)?);
                Ok(records < all)
            }
        }
    })?;
    let recovered = replay.finish(number).map_err(|error| error.at_path(path))?;
    let last = match last.finish(number) {
        Err(error) if error.kind() == ErrorKind::Corruption => recovered.clone(),
        last => last.map_err(|error| error.at_path(path))?,
    };
    Ok(Some(Point { recovered, last, later, is_whole: false, is_confirmed: false, end: 0, records: all }))
}

/// Returns false if the record cannot follow the records before it.
fn add(replay: &mut Replay, payload: &[u8]) -> Result<bool> {
    let added =
        edit_codec::decode_record(payload).and_then(|edits| edits.into_iter().try_for_each(|edit| replay.add(edit)));
    match added {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Corruption => Ok(false),
        Err(error) => Err(error),
    }
}

/// Stops at the end, at the first damaged record, or when `visit` returns false.
fn read_whole_records(vfs: &dyn Vfs, path: &Path, mut visit: impl FnMut(&[u8]) -> Result<bool>) -> Result<()> {
    let mut reader = FramedReader::open(vfs, path, None, IoClass::Manifest)?;
    loop {
        match reader.next() {
            Ok(Some(record)) if visit(&record.payload)? => {}
            Err(error) if error.kind() != ErrorKind::Corruption => return Err(error),
            _ => return Ok(()),
        }
    }
}

/// Findings about the logs of a point.
struct FoundLogs {
    /// With the tables and batches that they refer to.
    are_all_there: bool,
    /// The MANIFEST that the last one noted.
    manifest: Option<NotedManifest>,
    /// The MANIFEST had come farther, or a later one was current.
    prove_a_lost_end: bool,
    /// Neither the MANIFEST's last state nor a log names some table that is there.
    are_tables_unnamed: bool,
}

/// Has the tables newer than the point not count, nor the logs if one of them, or a file of theirs, is missing. Nothing is moved or
/// deleted before the open's own MANIFEST counts: an open that fails and is repeated finds the same.
///
/// # Errors
/// `InvalidArgument`: logs lie in another directory. The file system's.
fn look_at_logs(
    vfs: &dyn Vfs,
    dir: &Path,
    log_dir: &Path,
    point: &mut Point,
    options: &OpenOptions,
) -> Result<FoundLogs> {
    let (range, frontiers) = (point.wal_range(), point.last.log_frontiers);
    let recovered = &mut point.recovered;
    let noted = NotedLogs { range, frontiers, ..recovered.noted_logs() };
    let head = |path: &Path, number| Ok(wal::read_head(vfs, path, number).unwrap_or_default());
    let own = log_owner(vfs, dir, Some(recovered));
    let range = wal_range::find(vfs, log_dir, own, noted, head)?;
    if recovered.fenced {
        let places = LogPlaces::new(vfs, dir, log_dir, point.last.log_dir.as_deref(), Some(&point.last))?;
        let (noted, mode) = (recovered.noted_by_logs(), options.db.wal_recovery_mode);
        places.check(vfs, own, &range, noted, recovered.let_go_through(), mode)?; // the open doubts as well
    }
    let queued = crate::open::log_survey::queued_files(vfs, log_dir, own, recovered)?;
    let there = numbers_in(vfs, dir, FileType::Table)?;
    let named: BTreeSet<FileNumber> = point.last.tables().map(FileMeta::physical_number).collect();
    let are_tables_unnamed = there.iter().any(|number| !named.contains(number) && !queued.tables.contains(number));
    // Replay passes over an ingest without its tables, and doubts it.
    let let_go = recovered.let_go_through();
    let is_lost = |log: &wal_range::MissingLog| !was_let_go(vfs, log_dir, log.number, &range.logs, let_go);
    let are_all_there = !range.missing.iter().any(is_lost) && !queued.lacks_batch;
    let prove_a_lost_end = !recovered.is_backups() && range.lost_end(recovered.manifest, point.end).is_some();
    if !are_all_there {
        recovered.forget_logs();
        recovered.wal_range = range.logs.last().map(|last| WalRange::none_through(last.number));
        note::warn!("the logs do not hold all that followed, and are not replayed");
    }
    Ok(FoundLogs { are_all_there, manifest: range.manifest, prove_a_lost_end, are_tables_unnamed })
}
