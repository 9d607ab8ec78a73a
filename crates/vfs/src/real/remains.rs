//! Files without a name, whose space is freed in steps.

use std::os::fd::AsRawFd;
use std::path::Path;

use base::Result;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::io::retry_on_intr;

use super::{open_fd, os_error};
use crate::Remains;

/// From `asm-generic/fcntl.h`.
const F_SETSIG: libc::c_int = 10;

#[derive(Debug)]
pub(super) struct NamelessFile {
    fd: OwnedFd,
    bytes: u64,
    /// The file is not open elsewhere, and cannot be opened again without a name.
    is_ours_alone: bool,
}

impl NamelessFile {
    /// Removes the name. `None` if the space cannot be freed in steps: the file has another name or no bytes, or its
    /// file system does not report other openers.
    pub fn remove(path: &Path) -> Result<Option<NamelessFile>> {
        let open = || open_fd("open", path, OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK).ok();
        let opened = tells_who_reads(path).then(open).flatten();
        rustix::fs::unlink(path).map_err(|e| os_error("remove", path, e))?;
        // The name is gone, as requested. Without a descriptor the kernel frees the space alone.
        let Some(fd) = opened else { return Ok(None) };
        let Ok(found) = rustix::fs::fstat(&fd) else { return Ok(None) };
        let bytes = u64::try_from(found.st_size).unwrap_or(0);
        Ok((found.st_nlink == 0 && bytes > 0).then_some(NamelessFile { fd, bytes, is_ours_alone: false }))
    }

    /// True if no other open file or mapping of any process refers to this file. The kernel grants a lease only then.
    fn is_open_once(&self) -> bool {
        let fd = self.fd.as_raw_fd();
        // SAFETY: the descriptor is open, and the arguments are integers.
        let control = |command, argument: libc::c_int| unsafe { libc::fcntl(fd, command, argument) } == 0;
        // The lease's signal, sent if another process opens the file. Without a name only detours such as `/proc` can
        // open it, and an unhandled SIGURG is ignored.
        let is_alone = control(F_SETSIG, libc::SIGURG) && control(libc::F_SETLEASE, libc::F_WRLCK);
        is_alone && control(libc::F_SETLEASE, libc::F_UNLCK)
    }
}

/// True if the file system refuses a lease while the file is open or mapped elsewhere. Stacked file systems map files
/// other than their own, and network file systems do not know of other machines. So file systems known to be sound are
/// listed.
fn tells_who_reads(path: &Path) -> bool {
    const EXT: u64 = 0xEF53;
    const XFS: u64 = 0x5846_5342;
    const BTRFS: u64 = 0x9123_683E;
    const F2FS: u64 = 0xF2F5_2010;
    const TMPFS: u64 = 0x0102_1994;
    // Asks the directory, since opening the file for writing may copy it.
    let Some(dir) = path.parent() else { return false };
    let found = retry_on_intr(|| rustix::fs::statfs(dir));
    found.is_ok_and(|found| [EXT, XFS, BTRFS, F2FS, TMPFS].contains(&(found.f_type as u64)))
}

impl Remains for NamelessFile {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn cut(&mut self, bytes: u64) -> bool {
        self.is_ours_alone = self.is_ours_alone || self.is_open_once();
        let left = self.bytes.saturating_sub(bytes);
        if left == 0 || !self.is_ours_alone || retry_on_intr(|| rustix::fs::ftruncate(&self.fd, left)).is_err() {
            return false;
        }
        self.bytes = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{hard_link, write};
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::real::RealVfs;

    const BYTES: u64 = 1 << 20;

    /// A directory on a file system that tells who reads: `/tmp` need not be.
    fn dir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        if tells_who_reads(&dir.path().join("file")) { dir } else { tempfile::tempdir_in("/dev/shm").unwrap() }
    }

    fn made(dir: &tempfile::TempDir) -> std::path::PathBuf {
        let path = dir.path().join("file");
        write(&path, vec![7; BYTES as usize]).unwrap();
        path
    }

    #[test]
    fn a_file_that_nobody_reads_is_cut_step_by_step() {
        let dir = dir();
        let path = made(&dir);
        let mut file = NamelessFile::remove(&path).unwrap().unwrap();
        assert!(!path.exists() && file.bytes() == BYTES);
        assert!(file.cut(BYTES / 4) && file.cut(BYTES / 4) && file.bytes() == BYTES / 2);
        assert_eq!(rustix::fs::fstat(&file.fd).unwrap().st_size as u64, BYTES / 2);
        assert!(!file.cut(BYTES / 2), "the rest goes with the file");
        NamelessFile::remove(&path).expect_err("it is not there");
    }

    #[test]
    fn what_others_read_is_never_cut() {
        let dir = dir();
        let path = made(&dir);
        let reader = RealVfs::new().open(&path).unwrap();
        let mut file = NamelessFile::remove(&path).unwrap().unwrap();
        assert!(!file.cut(1) && reader.len().unwrap() == BYTES, "an open file");

        let path = made(&dir);
        let mapped = RealVfs::new().map_read(&path).unwrap();
        let mut file = NamelessFile::remove(&path).unwrap().unwrap();
        assert!(!file.cut(1), "a mapping");
        assert!((*mapped).as_ref().iter().all(|byte| *byte == 7));
        drop(mapped);
        assert!(file.cut(1), "nobody any more");

        let path = made(&dir);
        hard_link(&path, dir.path().join("other")).unwrap();
        assert!(NamelessFile::remove(&path).unwrap().is_none(), "another name");
        assert_eq!(dir.path().join("other").metadata().unwrap().size(), BYTES);
    }

    #[test]
    fn where_nobody_tells_who_reads_names_go_with_their_space() {
        assert!(!tells_who_reads(Path::new("/proc/self/status")));
        assert!(!tells_who_reads(Path::new("/no such directory/file")));
        assert!(tells_who_reads(&dir().path().join("file")));
    }
}
