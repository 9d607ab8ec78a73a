//! How much memory the process may take.
#![allow(clippy::disallowed_methods, reason = "the system's own files, of no database")]

use std::path::{Path, PathBuf};

/// Bytes of the smallest limit of the process's groups (cgroups), as a container has one; `None` without a limit, and where the
/// system has no groups.
pub fn limit_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_below(Path::new("/sys/fs/cgroup"), &groups)
}

/// As [`limit_bytes`]. `groups` is the text of `/proc/self/cgroup`: a line is a number, controllers and a path, separated by colons.
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
