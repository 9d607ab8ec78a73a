//! Deletes a database.

use base::name;
use std::path::Path;
use std::sync::Arc;

use base::{FileNumber, Result, note};
use vfs::Vfs;

use super::replay::rocksdb_logs::check_place;
use super::{is_ours, log_owner, owners_beside};
use crate::core::context::is_same_dir;
use crate::core::lost::Lost;
use crate::core::open_options::lock_path;
use crate::info_log::names::Names;
use crate::log_files::archive::ARCHIVE_DIR;
use crate::open::replay::wal_range;
use crate::version::file_name::{self, FileType, LOAD_DIR};
use crate::version::recover::{Recovered, recover_proven};
use crate::version::{backup_dirs, incomplete};

/// The mark of a directory whose deletion was cut off.
const DELETED: &str = "what a deletion of the database left that was cut off; delete it again\n";

/// `info_dir`: the option `db_log_dir`. `log_dir`: the log directory, if not `dir`. The caller passes it: the options
/// file of a copied database still names the original's log directory.
pub(crate) fn destroy(dir: &Path, log_dir: Option<&Path>, info_dir: &str, vfs: &Arc<dyn Vfs>) -> Result<()> {
    if !vfs.exists(dir)? {
        return Ok(());
    }
    backup_dirs::check_is_outside(&**vfs, dir)?;
    let lock = vfs.lock(&lock_path(dir))?;
    Lost::new(&**vfs, dir).check_place()?; // before anything is deleted
    let recovered = recover_proven(&**vfs, dir).ok();
    let own = log_owner(&**vfs, dir, recovered.as_ref());
    let owners = owners_beside(&**vfs, dir, recovered.as_ref());
    let apart = match log_dir {
        Some(logs) if !is_same_dir(&**vfs, logs, dir)? => Some(logs),
        _ => None,
    };
    let earlier = incomplete::read(&**vfs, dir)?;
    let known = match (&earlier, apart) {
        (_, None) => false,
        (Some(mark), Some(logs)) => mark.strip_prefix(DELETED).is_some_and(|known| known == name::of_path(logs)),
        (None, Some(logs)) => {
            recovered.as_ref().map_or(Ok(false), |recovered| has_logs_in(&**vfs, dir, logs, recovered))?
        }
    };
    if let Some(logs) = apart.filter(|_| !known) {
        note::warn!(path = %logs.display(), "the logs there stay: nothing tells that they are of the database that is deleted");
    }
    let is_ours = is_ours(&**vfs, dir, recovered.as_ref())?;
    let is_rocksdbs = recovered.is_some_and(|recovered| !recovered.fenced);
    let apart = apart.filter(|_| known && (own.is_known() || is_rocksdbs));
    let mark = format!("{DELETED}{}", apart.map(name::of_path).unwrap_or_default());
    if earlier.is_none()
        && let Err(error) = incomplete::mark(&**vfs, dir, &mark)
    {
        note::warn!(%error, "a deletion that is cut off will not be known as one"); // a full disk is no reason to keep it
    }
    let is_its = |kind| is_rocksdbs == (kind == FileType::RocksLog);
    for logs in apart.iter().flat_map(|logs| [logs.join(ARCHIVE_DIR), logs.to_path_buf()]) {
        let is_own = |kind, path: &Path| is_its(kind) && !wal_range::may_be_of_another(&**vfs, dir, path, own);
        remove_logs(&**vfs, &logs, is_own)?;
    }
    // The logs go before IDENTITY. Where that is gone, in a deletion that was cut off, a log with an id is a guest's, and one of
    // RocksDB's; and so is that beside our files.
    let is_rest = |kind: FileType| !kind.is_log() && !matches!(kind, FileType::Lock | FileType::Incomplete);
    let names = vfs.read_dir(dir)?;
    let is_gone =
        earlier.is_some() || !names.iter().filter_map(|name| file_name::parse(name)).any(|(kind, _)| is_rest(kind));
    let is_here = |kind, path: &Path| match wal_range::database_of(&**vfs, path) {
        _ if kind == FileType::RocksLog => !is_ours && (is_rocksdbs || !is_gone),
        Some(other) if own.is_known() || earlier.is_some() || !is_ours => owners.contains(&other) || !other.is_known(),
        _ => true,
    };
    for logs in [&dir.join(ARCHIVE_DIR), dir] {
        remove_logs(&**vfs, logs, is_here)?;
    }
    // The mark stays until nothing else is left.
    remove_files(&**vfs, dir, |kind, _| is_rest(kind))?;
    remove_load_dir(&**vfs, dir)?;
    Lost::new(&**vfs, dir).retire_reports()?;
    vfs.sync_dir(dir)?; // a power loss must not bring files back without their mark
    remove_files(&**vfs, dir, |kind, _| kind == FileType::Incomplete)?;
    for info_dir in ["", info_dir] {
        remove_event_logs(&**vfs, &Names::new(&**vfs, dir, info_dir))?;
    }
    drop(lock);
    vfs.remove_file(&lock_path(dir))?;
    let _ = vfs.remove_dir(dir); // other files may be in it
    Ok(())
}

/// Whether the database itself tells that its logs lie in `logs`, and not beside its tables. A copy has its original's id; in a
/// directory that several databases share, RocksDB's logs are told by nothing. Logs that stay are no loss.
pub(crate) fn has_logs_in(vfs: &dyn Vfs, dir: &Path, logs: &Path, recovered: &Recovered) -> Result<bool> {
    match recovered.log_dir.as_deref() {
        _ if !recovered.fenced => Ok(matches!(check_place(vfs, dir, Some(logs), recovered), Ok(None))),
        _ if recovered.is_copy() || wal_range::original_of(vfs, dir, recovered).is_some() => Ok(false),
        Some("") => Ok(false),
        Some(noted) => is_same_dir(vfs, &name::path(noted), logs),
        None => Ok(true), // an early version notes none
    }
}

/// Removes a directory's logs that are the database's, and tells of the others; and the directory, if it is empty then.
fn remove_logs(vfs: &dyn Vfs, dir: &Path, is_own: impl Fn(FileType, &Path) -> bool) -> Result<()> {
    if !vfs.exists(dir)? {
        return Ok(());
    }
    remove_files(vfs, dir, |kind, number| {
        let path = dir.join(file_name::format(kind, number));
        let goes = kind.is_log() && is_own(kind, &path);
        if kind.is_log() && !goes {
            note::warn!(path = %path.display(), "left alone: a log of another database, or one that cannot be read");
        }
        goes
    })?;
    vfs.sync_dir(dir)?; // a power loss must not bring them back once the mark is gone
    let _ = vfs.remove_dir(dir); // other files may be in it
    Ok(())
}

fn remove_event_logs(vfs: &dyn Vfs, names: &Names) -> Result<()> {
    if !vfs.exists(&names.dir)? {
        return Ok(());
    }
    let logs = vfs.read_dir(&names.dir)?.into_iter().filter(|name| names.is_one(name));
    logs.map(|name| names.dir.join(name)).try_for_each(|path| vfs.remove_file(&path))
}

/// Removes the leftovers of a killed load. The caller holds the database's lock.
pub(crate) fn remove_load_dir(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let dir = dir.join(LOAD_DIR);
    if !vfs.exists(&dir)? {
        return Ok(());
    }
    for name in vfs.read_dir(&dir)? {
        vfs.remove_file(&dir.join(name))?;
    }
    vfs.remove_dir(&dir)
}

/// Removes the files of a database in `dir` for which `is_ours` returns true.
pub(crate) fn remove_files(vfs: &dyn Vfs, dir: &Path, is_ours: impl Fn(FileType, FileNumber) -> bool) -> Result<()> {
    for name in vfs.read_dir(dir)? {
        if file_name::parse(&name).is_some_and(|(kind, number)| is_ours(kind, number)) {
            vfs.remove_file(&dir.join(name))?;
        }
    }
    Ok(())
}
