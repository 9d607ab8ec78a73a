//! RocksDB's `best_efforts_recovery`: the newest point of a MANIFEST at which all tables exist.
//!
//! The point covers the whole database. If all logs exist, they are replayed on it and nothing is lost (D2). If a log
//! is missing, no log is replayed, as in RocksDB: each family then has the state of its tables, and a family's tables
//! may be newer than lost writes of other families. Unused files are moved to `lost/`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use base::note;
use base::{Error, ErrorKind, FileNumber, Result};
use log::framed::FramedReader;
use vfs::{IoClass, Vfs};

use super::log_owner;
use crate::maintenance::repair::lost::Lost;
use crate::open::replay::row;
use crate::version::edit_codec;
use crate::version::file_name::{self, FileType, numbers_in};
use crate::version::manifest::manifest_path;
use crate::version::recover::{Recovered, recover};
use crate::version::replay::Replay;
use crate::version::table_file::FileMeta;

/// As [`recover`], but goes back to the newest complete point if recovery fails or tables are missing.
///
/// # Errors
/// As [`recover`], if there is no such point. The file system's.
pub(super) fn recover_best(vfs: &dyn Vfs, dir: &Path, log_dir: &Path) -> Result<Recovered> {
    let mut sizes = Sizes { vfs, dir, known: HashMap::new() };
    let error = match recover(vfs, dir) {
        Ok(recovered) if sizes.have_all(recovered.tables())? => return Ok(recovered),
        Ok(_) => Error::corruption("tables are missing that the MANIFEST names").at_path(dir),
        Err(error) if error.kind() == ErrorKind::Corruption => error,
        Err(error) if error.is_not_found() && !numbers_in(vfs, dir, FileType::Manifest)?.is_empty() => error,
        Err(error) => return Err(error),
    };
    note::warn!(%error, "going back to the newest point at which all tables are there");
    for number in numbers_in(vfs, dir, FileType::Manifest)?.into_iter().rev() {
        if let Some(mut recovered) = newest_point(&mut sizes, number)? {
            recovered.pass_numbers_in(vfs, dir)?;
            set_aside(vfs, dir, log_dir, &mut recovered)?;
            return Ok(recovered);
        }
    }
    Err(error)
}

/// Existing tables and their sizes in bytes.
struct Sizes<'a> {
    vfs: &'a dyn Vfs,
    dir: &'a Path,
    known: HashMap<FileNumber, Option<u64>>,
}

impl Sizes<'_> {
    fn have_all<'t>(&mut self, mut tables: impl Iterator<Item = &'t FileMeta>) -> Result<bool> {
        tables.try_fold(true, |all, meta| Ok(all && self.of(meta.physical_number())? == Some(meta.physical_bytes())))
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

/// Reads the MANIFEST twice: to find the point, and to replay up to it.
fn newest_point(sizes: &mut Sizes<'_>, number: FileNumber) -> Result<Option<Recovered>> {
    let path = manifest_path(sizes.dir, number);
    let vfs = sizes.vfs;
    let (mut records, mut best) = (0usize, None);
    let mut replay = Replay::default();
    read_whole_records(vfs, &path, |payload| {
        if !add(&mut replay, payload)? {
            return Ok(false);
        }
        records += 1;
        if replay.is_whole_state() && sizes.have_all(replay.tables())? {
            best = Some(records);
        }
        Ok(true)
    })?;
    let Some(best) = best else { return Ok(None) };
    let (mut records, mut replay) = (0, Replay::default());
    read_whole_records(vfs, &path, |payload| {
        records += 1;
        Ok(records <= best && add(&mut replay, payload)?)
    })?;
    replay.finish(number).map(Some).map_err(|error| error.at_path(path))
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

/// Stops at the first damaged record, or when `visit` returns false.
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

/// Moves tables newer than the point to `lost/`, and the logs if one is missing.
fn set_aside(vfs: &dyn Vfs, dir: &Path, log_dir: &Path, recovered: &mut Recovered) -> Result<()> {
    let lost = Lost::new(vfs, dir);
    let mut kept: BTreeSet<FileNumber> = recovered.tables().map(FileMeta::physical_number).collect();
    let head = |path: &Path, number| Ok(log::read_head(vfs, path, number).unwrap_or_default());
    let own = log_owner(vfs, dir, Some(recovered));
    let row = row::find(vfs, log_dir, own, recovered.noted_logs(), head)?;
    if row.missing.is_empty() {
        kept.extend(crate::maintenance::repair::queued_tables(vfs, log_dir, own, recovered)?);
    } else {
        let of_values: BTreeSet<FileNumber> =
            recovered.tables().flat_map(|meta| &meta.value_logs).map(|share| share.log).collect();
        let logs = row.logs.iter().map(|log| log.number).filter(|log| !of_values.contains(log));
        for log in logs.collect::<Vec<_>>() {
            lost.take(&log_dir.join(file_name::format(FileType::Log, log)))?;
        }
        recovered.log_row = None;
        note::warn!("the logs do not hold all that followed, and are not replayed; they are in lost/");
    }
    let others = numbers_in(vfs, dir, FileType::Table)?;
    let others: Vec<PathBuf> =
        others.difference(&kept).map(|number| dir.join(file_name::format(FileType::Table, *number))).collect();
    others.iter().try_for_each(|path| lost.take(path).map(drop))?;
    lost.sync()
}
