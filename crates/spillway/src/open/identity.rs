//! The ids of a database and its sessions. They identify the database and its tables to other tools.

use std::collections::BTreeSet;
use std::path::Path;

use base::options::whole;
use base::{FileNumber, Result};
use vfs::{IfExists, IoClass, Vfs, write_all};
use wal::DatabaseId;

use crate::version::current::read_current;
use crate::version::edit::LOG_DIR_OF_COPY;
use crate::version::file_name::{self, FileType};
use crate::version::recover::{Recovered, recover};

/// The id in the file IDENTITY; `None` if there is no id.
pub(super) fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<String>> {
    const IDENTITY_BYTES_MAX: u64 = 4096;
    let path = dir.join(file_name::format(FileType::Identity, FileNumber(0)));
    if !vfs.exists(&path)? {
        return Ok(None);
    }
    if vfs.metadata(&path)?.len > IDENTITY_BYTES_MAX {
        return Ok(None); // no id is so long
    }
    let bytes = vfs::read_all(vfs, &path, IDENTITY_BYTES_MAX, IoClass::Other)?;
    Ok(String::from_utf8(bytes).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// The id of the database in `dir`: from its MANIFEST, else from IDENTITY, else from its logs in `logs`. Under a new id
/// those logs would count as another database's.
///
/// # Errors
/// As reading IDENTITY or the log directory.
pub(super) fn find(vfs: &dyn Vfs, dir: &Path, logs: &Path, recovered: &Recovered) -> Result<Option<String>> {
    if let Some(id) = recovered.db_id.clone().map_or_else(|| read(vfs, dir), |id| Ok(Some(id)))? {
        return Ok(Some(id));
    }
    if recovered.wal_range.is_none() {
        return Ok(None); // a new database
    }
    let numbers = file_name::numbers_in(vfs, logs, FileType::Log)?;
    let owner = |number| wal::database_of(vfs, &logs.join(file_name::format(FileType::Log, number)), number).ok();
    let known = numbers.into_iter().rev().filter_map(owner).find(|id| id.is_known());
    Ok(known.map(|id| id.to_string()))
}

/// The database id to expect in the logs of `dir`; unknown if neither MANIFEST nor IDENTITY has one.
pub(crate) fn log_owner(vfs: &dyn Vfs, dir: &Path, recovered: Option<&Recovered>) -> DatabaseId {
    let id = recovered.and_then(|recovered| recovered.db_id.clone()).or_else(|| read(vfs, dir).ok()?);
    DatabaseId::new(&id.unwrap_or_default())
}

/// The ids that logs beside the tables of a database can have: its own, and where its logs lie there that of each log that it
/// names. What was a copy has logs with its original's id.
pub(crate) fn owners_beside(vfs: &dyn Vfs, dir: &Path, recovered: Option<&Recovered>) -> Vec<DatabaseId> {
    let is_beside = |recovered: &&Recovered| matches!(recovered.log_dir.as_deref(), None | Some("" | LOG_DIR_OF_COPY));
    let named = recovered.filter(is_beside).into_iter().flat_map(|recovered| {
        // A range of none names the last log that was, whose number a guest's may have.
        let range = recovered
            .wal_range
            .into_iter()
            .filter_map(|range| range.newest.map(|newest| [range.oldest, newest]))
            .flatten();
        range.chain(recovered.tables().flat_map(|table| &table.value_logs).map(|share| share.log))
    });
    let path = |log| dir.join(file_name::format(FileType::Log, log));
    let owners =
        named.collect::<BTreeSet<_>>().into_iter().filter_map(|log| wal::database_of(vfs, &path(log), log).ok());
    let mut owners: Vec<DatabaseId> =
        owners.chain([log_owner(vfs, dir, recovered)]).filter(|id| id.is_known()).collect();
    owners.dedup();
    owners
}

/// Whether the database in `dir` is ours: by its MANIFEST or, where that cannot be read, by a MANIFEST's copy or an OPTIONS file of ours.
/// The copy of a takeover that was cut off is of another MANIFEST than CURRENT names. RocksDB's database need not have an id, and a
/// log with one beside it is a guest's.
///
/// # Errors
/// As reading the directory.
pub(crate) fn is_ours(vfs: &dyn Vfs, dir: &Path, recovered: Option<&Recovered>) -> Result<bool> {
    if let Some(recovered) = recovered {
        return Ok(recovered.fenced);
    }
    let names = if vfs.exists(dir)? { vfs.read_dir(dir)? } else { Vec::new() };
    let current = read_current(vfs, dir).ok();
    Ok(names.iter().any(|name| match file_name::parse(name) {
        Some((FileType::ManifestCopy, number)) => current.is_none_or(|current| current == number),
        Some((FileType::Options, _)) => vfs::read_all(vfs, &dir.join(name), whole::BYTES_MAX, IoClass::Other)
            .is_ok_and(|text| whole::has_checksum(&text)),
        _ => false,
    }))
}

/// As [`log_owner`], by the directory's own MANIFEST, if it can be read.
pub(crate) fn directory_owner(vfs: &dyn Vfs, dir: &Path) -> DatabaseId {
    log_owner(vfs, dir, recover(vfs, dir).ok().as_ref())
}

/// Removes an IDENTITY with another id: it must not stand beside the MANIFEST that is written next.
pub(crate) fn remove_other(vfs: &dyn Vfs, dir: &Path, id: &str) -> Result<()> {
    match read(vfs, dir)? {
        Some(other) if other != id => vfs.remove_file(&dir.join(file_name::format(FileType::Identity, FileNumber(0)))),
        _ => Ok(()),
    }
}

/// Writes IDENTITY, unless it has the id already. The MANIFEST's id wins: a restored backup may have left another
/// database's IDENTITY.
pub(crate) fn write(vfs: &dyn Vfs, dir: &Path, id: &str) -> Result<()> {
    let path = dir.join(file_name::format(FileType::Identity, FileNumber(0)));
    if read(vfs, dir)?.as_deref() == Some(id) {
        return Ok(());
    }
    write_all(vfs, &path, IfExists::Truncate, id.as_bytes(), IoClass::Other)?;
    vfs.sync_dir(dir)
}
