//! Names: directories, metadata and links.
#![allow(clippy::disallowed_methods, reason = "this is where the file system is called")]

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use base::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, CWD, FileType, OFlags, StatxFlags};
use rustix::io::{Errno, retry_on_intr};

use super::{open_fd, os_error};
use crate::{FileIdentity, FileKind, Metadata};

/// Does not follow a link: a symbolic link is `Other`, whatever it points at.
pub(super) fn metadata(path: &Path) -> Result<Metadata> {
    let stat = retry_on_intr(|| rustix::fs::lstat(path)).map_err(|e| os_error("examine", path, e))?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        _ => FileKind::Other,
    };
    // The types of these fields differ between architectures.
    let modified_us = i128::from(stat.st_mtime) * 1_000_000 + i128::from(stat.st_mtime_nsec) / 1000;
    let modified_us = u64::try_from(modified_us).unwrap_or(0);
    let bits = |number: i128| u64::try_from(number).unwrap_or(0);
    let identity = FileIdentity { device: bits(i128::from(stat.st_dev)), number: bits(i128::from(stat.st_ino)) };
    Ok(Metadata { kind, len: u64::try_from(stat.st_size).unwrap_or(0), modified_us, identity })
}

/// The mount that `path` lies in, by a number that the kernel gives no other before it stops; `None` where it does not tell
/// (Linux before 6.8). Its other numbers of mounts, in `/proc/self/mountinfo` too, go to the next mount once they are
/// free, so that a file system mounted again would pass for the one that was there.
pub(super) fn mount_id(path: &Path) -> Option<u64> {
    let stat = retry_on_intr(|| rustix::fs::statx(CWD, path, AtFlags::empty(), MOUNT_ID_UNIQUE)).ok()?;
    (stat.stx_mask & MOUNT_ID_UNIQUE.bits() != 0).then_some(stat.stx_mnt_id)
}

/// `STATX_MNT_ID_UNIQUE`.
const MOUNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// Names that are not UTF-8 are none of the engine's, and are left out.
pub(super) fn read_dir(path: &Path) -> Result<Vec<String>> {
    let failed = |e| Error::io("list", path, e);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

pub(super) fn create_dir_all(path: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path).map_err(|e| Error::io("create directory", path, e))
}

pub(super) fn sync_dir(path: &Path) -> Result<()> {
    let fd = open_fd("open directory", path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    retry_on_intr(|| rustix::fs::fsync(&fd)).map_err(|e| os_error("sync directory", path, e))
}

/// `Unsupported` where the file system refuses links of any kind or has no more for this file, so that the caller copies.
pub(super) fn hard_link(from: &Path, to: &Path) -> Result<()> {
    rustix::fs::link(from, to).map_err(|e| match e {
        Errno::PERM | Errno::MLINK => {
            Error::new(ErrorKind::Unsupported, "cannot link").at_path(from).with_source(std::io::Error::from(e))
        }
        _ => os_error("link", from, e).context(format!("to {}", to.display())),
    })
}
