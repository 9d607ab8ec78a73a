//! The parent: starts a child for every engine and round, by turns, and keeps the printed records.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use base::{Error, ErrorKind, Result};
use bench::flags::name_of;
use bench::folder;
use bench::machine::Setting;
use bench::report::{Better, Figure, Spec as Table};
use bench::sides::SideRecord;
use bench::sinks::Output;
use vfs::Vfs;

use crate::flags::Flags;
use crate::group::Group;
use crate::peers::Kind;
use crate::spec::{Line, Set, Spec};

/// Shared by the runs.
struct Comparison<'a> {
    flags: &'a Flags,
    vfs: &'a dyn Vfs,
    out: Output<'a>,
    setting: Setting,
    /// The first record of each workload with a checksum: every engine must have read the same.
    read: BTreeMap<String, SideRecord>,
    failures: Vec<String>,
}

/// Runs the comparison of the command line, and prints the table.
///
/// # Errors
/// `InvalidArgument`: the command line is wrong, or runs failed; the message names them.
pub fn run(flags: &Flags, vfs: &Arc<dyn Vfs>) -> Result<()> {
    flags.check()?;
    let vfs = vfs.as_ref();
    let made_dir = !vfs.exists(&flags.db)?;
    vfs.create_dir_all(&flags.db)?;
    let mut stdout = std::io::stdout();
    let mut comparison = Comparison {
        flags,
        vfs,
        out: Output::new(&mut stdout, vfs, flags.json.as_deref())?,
        setting: Setting::now(kind(flags.set), flags.conditions(), vfs, &flags.db),
        read: BTreeMap::new(),
        failures: Vec::new(),
    };
    let (mut peers, left_out) = flags.chosen();
    if left_out {
        eprintln!("SKIPPED: RocksDB takes no part; --rocksdb names its library");
    }
    if let Err(error) = Group::make(vfs, flags.memory_mib << 20) {
        eprintln!(
            "WARNING: no memory group can be made ({error}): the page cache has no limit, and engines that rely on it have more \
             memory than the others. Run it as root, where the system has cgroups of memory."
        );
    }
    let (total, began) = (peers.len() as u32 * flags.rounds, vfs.now());
    for round in 0..flags.rounds {
        for (nth, peer) in peers.iter().enumerate() {
            let done = round * peers.len() as u32 + nth as u32;
            say_progress(done, total, vfs.now().saturating_sub(began), &name_of(*peer));
            comparison.take_turn(*peer, round)?;
        }
        // The first engine finds the disk as a different one left it, so each goes first in turn.
        peers.rotate_left(1);
    }
    if made_dir {
        vfs.remove_dir(&flags.db)?;
    }
    comparison.conclude()
}

/// The value of `kind` in the records.
fn kind(set: Set) -> &'static str {
    match set {
        Set::Suite => "peers",
        Set::Ycsb => "ycsb",
    }
}

fn say_progress(done: u32, total: u32, spent: Duration, peer: &str) {
    let left = match done {
        0 => String::new(),
        done => format!(", about {} s left", spent.as_secs() * u64::from(total - done) / u64::from(done)),
    };
    eprintln!("[{}/{total}] {peer} ({} s so far{left})", done + 1, spent.as_secs());
}

impl Comparison<'_> {
    /// One run. A failure is recorded, and the next run goes on.
    fn take_turn(&mut self, peer: Kind, round: u32) -> Result<()> {
        let dir = self.flags.db.join(name_of(peer));
        folder::remove(self.vfs, &dir)?;
        let group = Group::make(self.vfs, self.flags.memory_mib << 20).ok();
        let spec = self.spec(peer, &dir, group.as_ref())?;
        let ended = self.follow(&spec, round);
        folder::remove(self.vfs, &dir)?;
        match ended {
            Ok(()) => Ok(()),
            Err(error) => self.fail(format!("{} in round {round}: {error}", name_of(peer))),
        }
    }

    fn spec(&self, peer: Kind, dir: &Path, group: Option<&Group<'_>>) -> Result<Spec> {
        let flags = self.flags;
        let library = flags.rocksdb.as_ref().map(|path| self.vfs.canonicalize(path)).transpose()?;
        Ok(Spec {
            set: flags.set,
            peer,
            library,
            db: dir.to_owned(),
            group: group.map(|group| group.dir.clone()),
            memory_bytes: flags.memory_mib << 20,
            num: flags.num,
            value_bytes: flags.value_size,
            ops: flags.ops,
            writes: flags.writes,
            threads: flags.threads,
            durable: flags.durable,
            seconds: flags.seconds,
            seed: flags.seed,
        })
    }

    /// Runs a child, and keeps its records as they come. Its standard error is ours.
    fn follow(&mut self, spec: &Spec, round: u32) -> Result<()> {
        let program = Path::new("/proc/self/exe");
        let mut command = bench::child::command(spec)?;
        let mut child = command.envs(spec.peer.environment()).spawn().map_err(|e| Error::io("start", program, e))?;
        let told = self.listen(&mut child, spec.peer, round);
        let status = child.wait().map_err(|e| Error::io("wait for", program, e))?;
        told?;
        match status.signal() {
            None if status.success() => Ok(()),
            Some(9) => Err(Error::new(
                ErrorKind::Io,
                format!("killed; {} MiB may be too little memory (--memory_mib)", self.flags.memory_mib),
            )),
            _ => Err(Error::new(ErrorKind::Io, format!("ended with {status}"))),
        }
    }

    fn listen(&mut self, child: &mut Child, peer: Kind, round: u32) -> Result<()> {
        let Some(stdout) = child.stdout.take() else { return Ok(()) };
        for line in BufReader::new(stdout).lines() {
            let line = line.map_err(|e| Error::io("read the output of", Path::new("/proc/self/exe"), e))?;
            match serde_json::from_str(&line).map_err(|e| Error::invalid_argument(format!("{line:?}: {e}")))? {
                Line::Record(record) => {
                    let (lib, setting) = (name_of(peer), self.setting.clone());
                    self.keep(SideRecord { lib, round, setting, ..*record })?;
                }
                Line::Failed(message) => return Err(Error::new(ErrorKind::Io, message)),
            }
        }
        Ok(())
    }

    fn fail(&mut self, failure: String) -> Result<()> {
        self.out.say(&format!("FAILED: {failure}"))?;
        self.failures.push(failure);
        Ok(())
    }

    /// Keeps a record. With the same seeds every engine must find as many entries and the same sum of values.
    fn keep(&mut self, record: SideRecord) -> Result<()> {
        self.out.keep(&record.text(), &record)?;
        if record.checksum.is_none() {
            return Ok(());
        }
        let first = self.read.entry(record.name()).or_insert_with(|| record.clone());
        if (first.found, first.checksum) == (record.found, record.checksum) {
            return Ok(());
        }
        let failure = format!(
            "{}: {} read {:?} entries with sum {:?}, {} {:?} with {:?}",
            record.name(),
            first.lib,
            first.found,
            first.checksum,
            record.lib,
            record.found,
            record.checksum
        );
        self.fail(failure)
    }

    /// Prints medians of all workloads, with ratios to the first engine.
    fn conclude(mut self) -> Result<()> {
        let table = Table {
            rows: vec!["workload".to_owned(), "mode".to_owned()],
            across: "lib".to_owned(),
            figures: vec![Figure::new("figure", "", 1)],
            base: self.flags.chosen().0.first().copied().map_or_else(String::new, name_of),
            better: Better::Unit,
            ..Table::default()
        };
        if !self.out.records.is_empty() {
            self.out.say("")?;
            self.out.show(&table)?;
        }
        if self.failures.is_empty() {
            return Ok(());
        }
        Err(Error::invalid_argument(format!("runs failed:\n{}", self.failures.join("\n"))))
    }
}
