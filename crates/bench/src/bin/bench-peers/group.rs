//! A memory group of the system (cgroup): the limit counts the heap of a process and the pages of files that it reads and writes. So
//! an engine with a cache of its own and one that leaves it to the system have equal memory.

use std::path::{Path, PathBuf};

use base::Result;
use vfs::{IoClass, Vfs};

/// A hierarchy of groups: where it is mounted, and its file of the limit.
struct Hierarchy {
    mount: &'static str,
    limit: &'static str,
}

/// Version 1 first: where both are mounted, memory belongs to it.
const HIERARCHIES: [Hierarchy; 2] = [
    Hierarchy { mount: "/sys/fs/cgroup/memory", limit: "memory.limit_in_bytes" },
    Hierarchy { mount: "/sys/fs/cgroup", limit: "memory.max" },
];

const MEMBERS: &str = "cgroup.procs";

/// A group, removed when dropped.
pub struct Group<'a> {
    vfs: &'a dyn Vfs,
    pub dir: PathBuf,
}

impl<'a> Group<'a> {
    /// Makes a group with a limit.
    ///
    /// # Errors
    /// The system has no groups of memory, or does not let us make one.
    pub fn make(vfs: &'a dyn Vfs, bytes: u64) -> Result<Group<'a>> {
        let name = format!("bench-peers-{:x}", vfs.random_u64());
        let mut made = Err(base::Error::unsupported("no groups of memory are mounted below /sys/fs/cgroup"));
        for Hierarchy { mount, limit } in HIERARCHIES {
            if !vfs.exists(&Path::new(mount).join(MEMBERS))? {
                continue;
            }
            let dir = Path::new(mount).join(&name);
            made = vfs.create_dir_all(&dir).and_then(|()| {
                // Dropped, and removed, if it takes no limit.
                let group = Group { vfs, dir };
                write(vfs, &group.dir.join(limit), &bytes.to_string())?;
                Ok(group)
            });
            if made.is_ok() {
                break;
            }
        }
        made
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        // A group that stays is empty and harmless.
        let _ = self.vfs.remove_dir(&self.dir);
    }
}

/// Puts this process into a group.
///
/// # Errors
/// `Io`: the system does not allow it.
pub fn enter(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    write(vfs, &dir.join(MEMBERS), &std::process::id().to_string())
}

fn write(vfs: &dyn Vfs, path: &Path, text: &str) -> Result<()> {
    vfs.open_append(path)?.append(text.as_bytes(), IoClass::Other)
}
