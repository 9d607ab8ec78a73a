//! The machine, and the resources used by this process, from Linux's `/proc`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base::Result;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use vfs::{IoClass, Vfs};

/// Bytes read of a file in `/proc`; such files report no length.
const PROC_FILE_BYTES_MAX: usize = 1 << 16;

/// Where a measurement was taken.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_gib: u64,
    pub kernel: String,
    pub file_system: String,
}

impl Machine {
    /// This machine, with the file system of `dir`. Unknown fields stay empty.
    pub fn describe(vfs: &dyn Vfs, dir: &Path) -> Machine {
        let cpuinfo = proc_text(vfs, "/proc/cpuinfo").unwrap_or_default();
        let models: Vec<&str> = cpuinfo.lines().filter_map(|line| field(line, "model name")).collect();
        let memory_kib = proc_text(vfs, "/proc/meminfo").ok().and_then(|text| {
            let total = text.lines().find_map(|line| field(line, "MemTotal"))?;
            total.split_whitespace().next()?.parse::<u64>().ok()
        });
        Machine {
            cpu: models.first().copied().unwrap_or_default().to_owned(),
            cores: models.len(),
            memory_gib: memory_kib.unwrap_or_default() >> 20,
            kernel: proc_text(vfs, "/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            file_system: file_system(vfs, dir).unwrap_or_default(),
        }
    }
}

/// Place, time and conditions of a run: the last fields of a line of JSON.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Setting {
    /// The benchmark, as a key among the lines in `bench/results`.
    pub kind: String,
    pub flags: String,
    pub machine: Machine,
    pub commit: String,
    pub unix_time_s: u64,
}

impl Setting {
    /// Here and now, with the file system of `dir`.
    pub fn now(kind: &str, flags: String, vfs: &dyn Vfs, dir: &Path) -> Setting {
        let (machine, unix_time_s) = (Machine::describe(vfs, dir), vfs.unix_time_us() / 1_000_000);
        Setting { kind: kind.to_owned(), flags, machine, commit: commit(), unix_time_s }
    }
}

/// Processor time of this process so far, all threads together.
pub fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Peak resident memory of this process since [`reset_peak`]; 0 if unknown.
pub fn peak_resident_bytes(vfs: &dyn Vfs) -> u64 {
    let status = proc_text(vfs, "/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| field(line, "VmHWM")?.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() << 10
}

/// Resets [`peak_resident_bytes`] to the memory resident now.
///
/// # Errors
/// `Io`: the system does not allow it; the peak stays the one of the process's whole life.
pub fn reset_peak(vfs: &dyn Vfs) -> Result<()> {
    // See proc_pid_clear_refs(5): 5 resets the high-water mark and nothing else.
    vfs.open_append(Path::new("/proc/self/clear_refs"))?.append(b"5", IoClass::Other)
}

/// Bytes this process made the kernel store so far: pages made dirty, less pages discarded before they were written. None for
/// file systems in memory; 0 if unknown.
pub fn storage_bytes(vfs: &dyn Vfs) -> u64 {
    io_count(vfs, "write_bytes").saturating_sub(io_count(vfs, "cancelled_write_bytes"))
}

/// Bytes this process passed to writing system calls. Stores into mappings do not count. 0 if unknown.
pub fn written_bytes(vfs: &dyn Vfs) -> u64 {
    io_count(vfs, "wchar")
}

fn io_count(vfs: &dyn Vfs, name: &str) -> u64 {
    let io = proc_text(vfs, "/proc/self/io").unwrap_or_default();
    io.lines().find_map(|line| field(line, name)?.parse::<u64>().ok()).unwrap_or_default()
}

/// The type of the file system of `dir`: the one with the longest mount point above it.
fn file_system(vfs: &dyn Vfs, dir: &Path) -> Option<String> {
    let dir = vfs.canonicalize(dir).ok()?;
    let mounts = proc_text(vfs, "/proc/mounts").ok()?;
    let fields = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let above = fields.filter(|(mount, _)| dir.starts_with(mount));
    above.max_by_key(|(mount, _)| mount.len()).map(|(_, kind)| kind.to_owned())
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.strip_prefix(name).and_then(|rest| rest.split_once(':')).map(|(_, value)| value.trim())
}

fn proc_text(vfs: &dyn Vfs, path: &str) -> Result<String> {
    let mut bytes = vec![0; PROC_FILE_BYTES_MAX];
    let read = vfs.open(Path::new(path))?.read_at(0, &mut bytes, IoClass::Other)?;
    bytes.truncate(read);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The commit of the working directory, with `+` if files differ from it; empty outside a repository.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return String::new();
    };
    let changed = git(&["status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock"]);
    if changed.is_some_and(|files| !files.is_empty()) { commit + "+" } else { commit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cores_and_this_process_uses_them() {
        let vfs = vfs::RealVfs::new();
        let machine = Machine::describe(vfs.as_ref(), Path::new("/"));
        assert!(machine.cores > 0 && !machine.kernel.is_empty() && !machine.file_system.is_empty(), "{machine:?}");
        reset_peak(vfs.as_ref()).expect("allowed to a process of itself");
        assert!(peak_resident_bytes(vfs.as_ref()) > 1 << 20);
    }
}
