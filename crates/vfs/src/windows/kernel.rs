//! The calls that the standard library does not have.

use std::fs::OpenOptions;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, RawHandle};
use std::path::Path;

use crate::FileIdentity;

/// `BY_HANDLE_FILE_INFORMATION`.
#[repr(C)]
#[derive(Default)]
struct FileInformation {
    attributes: u32,
    times: [[u32; 2]; 3],
    volume: u32,
    bytes: [u32; 2],
    links: u32,
    /// The high half first.
    index: [u32; 2],
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GetFileInformationByHandle(file: RawHandle, information: *mut FileInformation) -> i32;
    fn GetDiskFreeSpaceExW(dir: *const u16, for_caller: *mut u64, total: *mut u64, free: *mut u64) -> i32;
}

#[link(name = "advapi32")]
unsafe extern "system" {
    /// `RtlGenRandom`.
    #[link_name = "SystemFunction036"]
    fn fill_with_random(bytes: *mut u8, len: u32) -> u8;
}

/// Of a file or directory; a symbolic link's own.
pub(super) fn identity(path: &Path) -> std::io::Result<FileIdentity> {
    /// `FILE_FLAG_BACKUP_SEMANTICS`, which directories need, and `FILE_FLAG_OPEN_REPARSE_POINT`.
    const ANY_KIND: u32 = 0x0200_0000 | 0x0020_0000;
    let file = OpenOptions::new().access_mode(0).custom_flags(ANY_KIND).open(path)?;
    let mut found = FileInformation::default();
    // SAFETY: the handle is open, and the struct has the layout that the call fills.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) } == 0 {
        return Err(std::io::Error::last_os_error());
    }
    let [high, low] = found.index;
    Ok(FileIdentity { device: u64::from(found.volume), number: u64::from(high) << 32 | u64::from(low) })
}

/// Bytes available to the user on the volume of a directory, or of a file's directory.
pub(super) fn free_bytes(path: &Path) -> Option<u64> {
    let dir = if path.is_dir() { path } else { path.parent()? };
    let name: Vec<u16> = dir.as_os_str().encode_wide().chain([0]).collect();
    let mut for_caller = 0;
    let unused = std::ptr::null_mut();
    // SAFETY: the name ends with a zero, and the number outlives the call; the others may be null.
    let result = unsafe { GetDiskFreeSpaceExW(name.as_ptr(), &raw mut for_caller, unused, unused) };
    (result != 0).then_some(for_caller)
}

pub(super) fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer has the eight bytes.
    let result = unsafe { fill_with_random(bytes.as_mut_ptr(), bytes.len() as u32) };
    assert_ne!(result, 0, "the system gives eight random bytes at once");
    u64::from_ne_bytes(bytes)
}
