//! A real file system that stops in the midst of writing back, is unmounted, and is mounted again on the same boot. Skipped,
//! with a note, where this process may not mount.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::engine::vfs::{MemoryVfs, RealVfs};
use testkit::engine::{Db, WriteOptions};

use crate::common::{Contents, MEMTABLES, batch, contents, options, property};

/// What tells the child where its database lies.
const DIR_VARIABLE: &str = "SPILLWAY_REMOUNTED_DIR";
const MEMTABLE_VARIABLE: &str = "SPILLWAY_REMOUNTED_MEMTABLE";

/// Past the mark that memtables are told after so many bytes of log.
const WRITES: u64 = 500;
const WRITES_BEHIND: u64 = 100;

/// Writes back three of four pages of the files that end so, and has the journal note it.
const WRITE_BACK: &str = "
import ctypes, os, sys
folder, end = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
offset = ctypes.c_int64
for name in os.listdir(folder):
    if name.endswith(end):
        file = os.open(os.path.join(folder, name), os.O_RDONLY)
        for at in range(0, os.fstat(file).st_size, 16384):
            assert libc.sync_file_range(file, offset(at), offset(12288), 7) == 0, ctypes.get_errno()
other = os.open(os.path.join(folder, 'other'), os.O_CREAT | os.O_WRONLY)
os.write(other, b'x')
os.fsync(other)
";

/// `EXT4_IOC_SHUTDOWN`, the journal not flushed.
const SHUT_DOWN: &str = "
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))
";

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{program} {arguments:?}: {said}")) }
}

/// A file system in a file; unmounted when it is dropped.
struct Disk {
    image: PathBuf,
    mounted: PathBuf,
    _dir: tempfile::TempDir,
}

impl Disk {
    fn new() -> Result<Disk, String> {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let disk = Disk { image: dir.path().join("image"), mounted: dir.path().join("mounted"), _dir: dir };
        std::fs::create_dir(&disk.mounted).unwrap();
        run("truncate", &["-s", "96M", disk.image.to_str().unwrap()])?;
        run("mkfs.ext4", &["-q", disk.image.to_str().unwrap()])?;
        disk.mount()?;
        Ok(disk)
    }

    fn mount(&self) -> Result<(), String> {
        run("mount", &["-o", "loop", self.image.to_str().unwrap(), self.mounted.to_str().unwrap()])
    }

    fn unmount(&self) -> Result<(), String> {
        run("umount", &[self.mounted.to_str().unwrap()])
    }

    fn script(&self, script: &str, arguments: &[&str]) {
        let path = self.mounted.join("db");
        run("python3", &[&["-c", script, path.to_str().unwrap()], arguments].concat()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.unmount());
    }
}

fn write(db: &Db, numbers: std::ops::Range<u64>) {
    for n in numbers {
        db.write(&batch(db, n), &WriteOptions::default()).unwrap();
    }
}

/// What the killed process does; nothing where it is run as a test.
#[test]
fn child_that_is_remounted() {
    let (Ok(dir), Ok(memtable)) = (std::env::var(DIR_VARIABLE), std::env::var(MEMTABLE_VARIABLE)) else { return };
    let db = Db::open(dir, &options(RealVfs::new(), &memtable, false)).unwrap();
    let say_and_wait = || {
        println!("\nwritten");
        std::io::stdin().read_line(&mut String::new()).unwrap();
    };
    write(&db, 0..WRITES);
    say_and_wait();
    db.write(&batch(&db, WRITES), &WriteOptions::synced()).unwrap();
    say_and_wait();
    write(&db, WRITES + 1..WRITES + WRITES_BEHIND);
    say_and_wait();
}

/// What must be there, and what may: after the synced write and each one behind it.
fn states(memtable: &str) -> Vec<Contents> {
    let db = Db::open("/db", &options(MemoryVfs::new(1), memtable, false)).unwrap();
    write(&db, 0..WRITES);
    let state = |n| {
        write(&db, n..n + 1);
        contents(&db)
    };
    (WRITES..WRITES + WRITES_BEHIND).map(state).collect()
}

fn start(dir: &Path, memtable: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "ext4::child_that_is_remounted", "--nocapture"]);
    command.env(DIR_VARIABLE, dir).env(MEMTABLE_VARIABLE, memtable);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Writes as the child does, and stops the file system when some of it has reached the disk: of the images, and where
/// `tears_log`, of the log behind what is synced.
fn live(disk: &Disk, memtable: &str, tears_log: bool) {
    let mut child = start(&disk.mounted.join("db"), memtable);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut await_writes = || assert!(lines.by_ref().any(|line| line.unwrap() == "written"), "the child failed");
    let mut stdin = child.stdin.take().unwrap();
    let mut go_on = || stdin.write_all(b"go on\n").unwrap();
    await_writes();
    disk.script(WRITE_BACK, &[".spmem"]);
    go_on();
    await_writes();
    if tears_log {
        go_on();
        await_writes();
        disk.script(WRITE_BACK, &[".splog"]);
    }
    disk.script(SHUT_DOWN, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_remounted_ext4_has_what_was_synced() {
    for (memtable, tears_log) in MEMTABLES.into_iter().zip([false, true]) {
        let disk = match Disk::new() {
            Ok(disk) => disk,
            Err(why) => {
                println!("skipped: nothing can be mounted here: {why}");
                return;
            }
        };
        live(&disk, memtable, tears_log);
        disk.unmount().unwrap();
        disk.mount().unwrap();
        let db = Db::open(disk.mounted.join("db"), &options(RealVfs::new(), memtable, false)).unwrap();
        assert!(states(memtable).contains(&contents(&db)), "{memtable}");
        assert_eq!(property(&db, "spillway.memtables-restored"), 0);
        db.close().unwrap();
    }
}
