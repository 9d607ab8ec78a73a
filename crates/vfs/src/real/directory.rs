//! Names: directories, metadata and links.
#![allow(clippy::disallowed_methods, reason = "this is where the file system is called")]

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use base::{Error, ErrorKind, Result};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::{open_fd, os_error};
use crate::{FileIdentity, FileKind, Metadata};

/// Does not follow symbolic links: a link is `Other`, whatever its target.
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

/// Those who read the files of `mode` enter the directory, too.
pub(super) fn create_dir_all(path: &Path, mode: Mode) -> Result<()> {
    let mode = mode.as_raw_mode();
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(mode | (mode & 0o444) >> 2);
    builder.create(path).map_err(|e| Error::io("create directory", path, e))
}

pub(super) fn sync_dir(path: &Path) -> Result<()> {
    let fd = open_fd("open directory", path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    retry_on_intr(|| rustix::fs::fsync(&fd)).map_err(|e| os_error("sync directory", path, e))
}

/// `Unsupported` if the file system has no links or the file has too many, so the caller copies.
pub(super) fn hard_link(from: &Path, to: &Path) -> Result<()> {
    rustix::fs::link(from, to).map_err(|e| match e {
        Errno::PERM | Errno::MLINK => {
            Error::new(ErrorKind::Unsupported, "cannot link").at_path(from).with_source(std::io::Error::from(e))
        }
        _ => os_error("link", from, e).context(format!("to {}", to.display())),
    })
}
