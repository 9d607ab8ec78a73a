//! Linux.

use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::OnceLock;

use base::{Error, ErrorKind, Result};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FallocateFlags, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};
use rustix::rand::{GetRandomFlags, getrandom};

use super::{Advice, WriteBack};
use crate::Remains;
use crate::page::PAGE_BYTES;
use crate::real::os_error;
use crate::real::remains::NamelessFile;

/// An interrupted sync may have reported and cleared an error already: it is not retried (D4).
pub(crate) fn sync_data(fd: &OwnedFd) -> Result<(), Errno> {
    rustix::fs::fdatasync(fd)
}

/// Allocates blocks, and extends the file to their end.
pub(crate) fn allocate(fd: &OwnedFd, offset: u64, len: u64) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::fallocate(fd, FallocateFlags::empty(), offset, len))
}

/// A hint.
pub(crate) fn prefetch(fd: &OwnedFd, offset: u64, len: NonZeroU64) {
    let _ = rustix::fs::fadvise(fd, offset, Some(len), rustix::fs::Advice::WillNeed);
}

/// A hint.
pub(crate) fn expect_random(fd: &OwnedFd) {
    let _ = rustix::fs::fadvise(fd, 0, None, rustix::fs::Advice::Random);
}

/// Reads what is in the page cache. None where the file system or the kernel cannot tell: an error comes again, of a
/// read that waits.
pub(crate) fn read_cached(fd: &OwnedFd, offset: u64, buf: &mut [u8]) -> usize {
    let mut bufs = [IoSliceMut::new(buf)];
    rustix::io::preadv2(fd, &mut bufs, offset, ReadWriteFlags::NOWAIT).unwrap_or(0)
}

/// Not a sync. `len` is not zero: that would mean the whole rest of the file.
///
/// # Errors
/// Lost writes. The kernel reports them once per descriptor, so a later sync would miss them (D4).
pub(crate) fn write_back(fd: &OwnedFd, offset: i64, len: i64, what: WriteBack) -> Result<(), Errno> {
    use libc::{SYNC_FILE_RANGE_WAIT_AFTER, SYNC_FILE_RANGE_WAIT_BEFORE, SYNC_FILE_RANGE_WRITE};
    let flags = match what {
        WriteBack::Start => SYNC_FILE_RANGE_WRITE,
        WriteBack::Wait => SYNC_FILE_RANGE_WAIT_BEFORE,
        WriteBack::StartAndWait => SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER,
    };
    // SAFETY: the descriptor is open, and the call takes no address.
    if unsafe { libc::sync_file_range(fd.as_raw_fd(), offset, len, flags) } == 0 {
        return Ok(());
    }
    match Errno::from_io_error(&std::io::Error::last_os_error()) {
        // These lose no data: the call is not supported, or was interrupted.
        None | Some(Errno::NOSYS | Errno::OPNOTSUPP | Errno::SPIPE | Errno::INTR) => Ok(()),
        Some(errno) => Err(errno),
    }
}

/// Takes the record lock of the whole file, owned by the open file, without waiting. It conflicts with RocksDB's lock.
pub(crate) fn lock(fd: &OwnedFd) -> std::io::Result<()> {
    set_lock(fd, libc::F_WRLCK)
}

pub(crate) fn unlock(fd: &OwnedFd) {
    let _ = set_lock(fd, libc::F_UNLCK); // cannot fail; if it did, closing remains
}

fn set_lock(fd: &OwnedFd, kind: libc::c_int) -> std::io::Result<()> {
    // SAFETY: `flock` is plain integers, and zero is a valid value of each.
    let mut whole_file: libc::flock = unsafe { std::mem::zeroed() };
    whole_file.l_type = kind as libc::c_short;
    whole_file.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the descriptor is open, and the kernel only reads the struct, which outlives the call.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &raw const whole_file) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// This boot and the mount of `path`. See [`Vfs::page_cache_id`](crate::Vfs::page_cache_id).
pub(crate) fn page_cache_id(path: &Path) -> Option<String> {
    /// A process does not outlive a boot.
    static BOOT_ID: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned()).filter(|id| !id.is_empty())
    };
    Some(format!("{} {:x}", BOOT_ID.get_or_init(read).as_deref()?, mount_id(path)?))
}

/// `STATX_MNT_ID_UNIQUE`.
const MOUNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// The unique ID of the mount of `path`, never reused within a boot; `None` if the kernel lacks it (Linux before 6.8).
/// Other mount IDs, as in `/proc/self/mountinfo`, are reused after an unmount. A file system mounted again could then
/// pass for the earlier mount.
fn mount_id(path: &Path) -> Option<u64> {
    let stat = retry_on_intr(|| rustix::fs::statx(CWD, path, AtFlags::empty(), MOUNT_ID_UNIQUE)).ok()?;
    (stat.stx_mask & MOUNT_ID_UNIQUE.bits() != 0).then_some(stat.stx_mnt_id)
}

pub(crate) fn random_u64() -> u64 {
    let mut bytes = [0; 8];
    let got = retry_on_intr(|| getrandom(&mut bytes, GetRandomFlags::empty()));
    assert_eq!(got, Ok(bytes.len()), "the kernel gives eight random bytes at once");
    u64::from_ne_bytes(bytes)
}

/// Affects only the calling thread: Linux keeps the nice value per thread, contrary to POSIX (setpriority(2)).
pub(crate) fn lower_cpu_priority() -> bool {
    /// RocksDB's `kLow`.
    const LOWEST_NICE: i32 = 19;
    rustix::process::setpriority_process(None, LOWEST_NICE).is_ok()
}

/// # Errors
/// `Errno::INVAL` if the kernel does not know the advice.
///
/// # Safety
/// The range must be mapped, and `start` aligned to a page. For [`Advice::Unmap`], whole pages of a shared mapping of a
/// file.
pub(crate) unsafe fn advise(start: *mut u8, len: usize, advice: Advice) -> Result<(), Errno> {
    use rustix::mm::Advice as Linux;
    let advice = match advice {
        Advice::Unmap => Linux::LinuxDontNeed,
        Advice::HugePages => Linux::LinuxHugepage,
        Advice::SmallPages => Linux::LinuxNoHugepage,
        Advice::Populate => Linux::LinuxPopulateWrite,
    };
    // SAFETY: by the caller the range is mapped. No advice changes contents: those of a shared mapping are the page
    // cache's and stay.
    unsafe { rustix::mm::madvise(start.cast(), len, advice) }
}

/// `Unsupported` unless stores to allocated extents cannot fail: a failed store is a signal. Allocation must work, and
/// the file system must keep allocated extents. Copy-on-write file systems need new space for each store. Network and
/// user-space file systems fail with their server. So file systems known to be sound are listed.
pub(crate) fn check_mappable(fd: &OwnedFd, path: &Path) -> Result<()> {
    const EXT: u64 = 0xEF53;
    const XFS: u64 = 0x5846_5342;
    const TMPFS: u64 = 0x0102_1994;
    let unsupported = |why: &str| Error::new(ErrorKind::Unsupported, why).at_path(path);
    let stat = retry_on_intr(|| rustix::fs::fstatfs(fd)).map_err(|e| os_error("examine the file system", path, e))?;
    if ![EXT, XFS, TMPFS].contains(&(stat.f_type as u64)) {
        return Err(unsupported("mapped files need ext4, XFS or tmpfs"));
    }
    match retry_on_intr(|| rustix::fs::fallocate(fd, FallocateFlags::KEEP_SIZE, 0, PAGE_BYTES as u64)) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(unsupported("the file system cannot allocate ahead")),
        Err(e) => Err(os_error("allocate", path, e)),
    }
}

/// As [`Vfs::remove_in_steps`](crate::Vfs::remove_in_steps).
pub(crate) fn remove_in_steps(path: &Path) -> Result<Option<Box<dyn Remains>>> {
    Ok(NamelessFile::remove(path)?.map(|file| Box::new(file) as _))
}
