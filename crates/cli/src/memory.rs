//! How much memory the process may take.
#![allow(clippy::disallowed_methods, reason = "the system's own files, of no database")]

use std::path::{Path, PathBuf};

use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use spillway::internal::vfs::share_heap;

/// Bytes that the process may take: the smallest limit of its groups (cgroups), as a container has one, or what is left of its
/// address space (`ulimit -v`). `None` without a limit.
pub fn limit_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok();
    let of_groups = groups.and_then(|groups| limit_below(Path::new("/sys/fs/cgroup"), &groups));
    of_groups.into_iter().chain(addresses_left()).min()
}

/// Has a limited address space go to what is stored in it.
pub fn spare_addresses() {
    if getrlimit(Resource::As).current.is_some() {
        share_heap();
    }
}

/// Bytes left of the limited address space.
fn addresses_left() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let taken: u64 = pages.and_then(|pages| pages.split(' ').next()?.parse().ok()).unwrap_or(0);
    Some(limit.saturating_sub(taken * page_size() as u64))
}

/// The smallest limit of the groups below a mount. `groups` is the text of `/proc/self/cgroup`: a line is a number, controllers and a path, separated by colons.
fn limit_below(mount: &Path, groups: &str) -> Option<u64> {
    let limits = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => (mount.to_owned(), "memory.max"),
            all if all.split(',').any(|one| one == "memory") => (mount.join("memory"), "memory.limit_in_bytes"),
            _ => return None,
        };
        // In a container the path may be the host's: then only the mount's own file is there.
        let groups = Path::new(path).ancestors().map(|group| root.join(group.strip_prefix("/").unwrap_or(group)));
        groups.filter_map(|group| number_in(group.join(file))).min()
    };
    groups.lines().filter_map(limits).min()
}

/// No number where there is no limit ("max").
fn number_in(path: PathBuf) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_of_the_groups_above_counts() {
        let mount = tempfile::tempdir().expect("a directory");
        let put = |path: &str, text: &str| {
            let path = mount.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        put("a/b/memory.max", "max\n");
        put("a/memory.max", "1000\n");
        put("memory/docker/x/memory.limit_in_bytes", "9223372036854771712\n");
        put("memory/docker/memory.limit_in_bytes", "500\n");
        let limit = |groups| limit_below(mount.path(), groups);
        assert_eq!(limit("0::/a/b\n"), Some(1000));
        assert_eq!(limit("0::/\n"), None);
        assert_eq!(limit("4:cpu,cpuacct:/docker/x\n5:memory:/docker/x\n0::/a/b\n"), Some(500));
        assert_eq!(limit("5:memory:/elsewhere/x\n"), None);
        put("memory.max", "70\n");
        assert_eq!(limit("0::/../host\n"), Some(70), "the host's path, as a container sees it");
        assert_eq!(limit("nonsense"), None);
    }
}
