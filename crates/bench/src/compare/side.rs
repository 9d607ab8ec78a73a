//! One of the two programs: how it is started, and what is seen of it from outside while it runs.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base::{Error, ErrorKind, Result};
use vfs::{IoClass, Vfs};

use super::output::{DistributionReader, Line};
use crate::harness::HEADER_END;
use crate::latency::Distributions;
use crate::machine::{processor_time_of, this_program};

/// RocksDB's event log, at most: it grows by a few hundred bytes per table.
const EVENT_LOG_BYTES_MAX: u64 = 256 << 20;

/// RocksDB's default, and the only one that takes concurrent writers.
const ROCKSDB_MEMTABLE: &str = "skip_list";

const MEMTABLE_FLAG: &str = "--memtablerep=";

/// Lines kept to explain a failure.
const LAST_WORDS: usize = 5;

/// A benchmark as it was seen from outside.
#[derive(Clone, Debug)]
pub struct Section {
    pub line: Line,
    pub distributions: Distributions,
    /// Processor time of all threads from the end of the section before to the line's arrival.
    pub cpu: Duration,
    /// What `waitforcompaction` behind it added.
    pub idle: Option<Idle>,
    /// When the line arrived, microseconds since the epoch.
    arrived_us: u64,
}

/// The work that was left in the background when a fill had been acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    pub wall: Duration,
    pub cpu: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    RocksDb,
    Spillway,
}

/// A program to compare.
pub struct Side {
    engine: Engine,
    pub version: String,
    /// The memtable's option string.
    pub memtable: String,
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Side {
    /// # Errors
    /// `Unsupported`: there is no such program.
    pub fn rocksdb(db_bench: &Path) -> Result<Side> {
        let output = Command::new(db_bench).arg("--version").output();
        let output = output.map_err(|e| {
            Error::unsupported(format!("{} cannot be run ({e}); Debian has it in rocksdb-tools", db_bench.display()))
        })?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        // Without a terminal, the C library holds output back in blocks: lines must arrive when they are printed.
        let arguments = vec!["-oL".into(), db_bench.into(), "--progress_reports=false".into()];
        let memtable = ROCKSDB_MEMTABLE.to_owned();
        Ok(Side { engine: Engine::RocksDb, version, memtable, program: "stdbuf".into(), arguments })
    }

    /// The program that is running.
    ///
    /// # Errors
    /// `Io`: the system does not tell where it lies.
    pub fn spillway(memtable: &str) -> Result<Side> {
        let (program, arguments) = this_program("db")?;
        let version = format!("spillway {}", env!("CARGO_PKG_VERSION"));
        Ok(Side { engine: Engine::Spillway, version, memtable: memtable.to_owned(), program, arguments })
    }

    /// Puts this side's memtable in the place of the one that the flags name.
    pub fn choose_memtable(&self, flags: &mut Vec<String>) {
        flags.retain(|flag| !flag.starts_with(MEMTABLE_FLAG));
        flags.push(format!("{MEMTABLE_FLAG}{}", self.memtable));
    }

    pub fn name(&self) -> &'static str {
        match self.engine {
            Engine::RocksDb => "rocksdb",
            Engine::Spillway => "spillway",
        }
    }

    /// Runs the program on a database in `dir`, and watches.
    ///
    /// # Errors
    /// `Io`: it could not be started, or failed; the message has its last words.
    pub fn run(&self, vfs: &dyn Vfs, dir: &Path, flags: &[String]) -> Result<Vec<Section>> {
        vfs.create_dir_all(dir)?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(flags).arg(format!("--db={}", dir.display()));
        command.stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| Error::io("start", &self.program, e))?;
        let mut watch = Watch::new(vfs, child.id());
        let last_words = watch.follow(&mut child)?;
        let status = child.wait().map_err(|e| Error::io("wait for", &self.program, e))?;
        if !status.success() {
            let message = format!("{command:?} ended with {status}; its last words: {last_words:?}");
            return Err(Error::new(ErrorKind::Io, message));
        }
        let mut sections = watch.sections;
        if self.engine == Engine::RocksDb {
            correct_idle_times(vfs, dir, &mut sections)?;
        }
        Ok(sections)
    }
}

/// Follows a process's output.
struct Watch<'a> {
    vfs: &'a dyn Vfs,
    process: u32,
    sections: Vec<Section>,
    distributions: DistributionReader,
    /// Processor time when the last section's output ended.
    cpu_before: Duration,
    in_header: bool,
}

impl<'a> Watch<'a> {
    fn new(vfs: &'a dyn Vfs, process: u32) -> Self {
        let distributions = DistributionReader::default();
        Watch { vfs, process, sections: Vec::new(), distributions, cpu_before: Duration::ZERO, in_header: true }
    }

    /// Reads until the output ends. Returns its last lines.
    fn follow(&mut self, child: &mut Child) -> Result<Vec<String>> {
        let mut last_words = Vec::new();
        let Some(stdout) = child.stdout.take() else {
            return Ok(last_words);
        };
        for line in BufReader::new(stdout).lines() {
            let line = line.map_err(|e| Error::io("read", Path::new("the benchmark's output"), e))?;
            self.see(&line);
            if last_words.len() == LAST_WORDS {
                last_words.remove(0);
            }
            last_words.push(line);
        }
        Ok(last_words)
    }

    fn see(&mut self, text: &str) {
        let cpu = processor_time_of(self.vfs, self.process).unwrap_or(self.cpu_before);
        if self.in_header {
            self.in_header = text != HEADER_END;
            self.cpu_before = cpu;
            return;
        }
        if let Some(line) = Line::parse(text) {
            let arrived_us = self.vfs.unix_time_us();
            let cpu = cpu.saturating_sub(self.cpu_before);
            let distributions = Distributions::new();
            self.sections.push(Section { line, distributions, cpu, idle: None, arrived_us });
            self.distributions = DistributionReader::default();
        } else if text.starts_with("waitforcompaction") && text.ends_with("finished") {
            let now_us = self.vfs.unix_time_us();
            if let Some(section) = self.sections.last_mut().filter(|section| section.idle.is_none()) {
                let wall = Duration::from_micros(now_us.saturating_sub(section.arrived_us));
                section.idle = Some(Idle { wall, cpu: cpu.saturating_sub(self.cpu_before) });
            }
        } else if let Some(section) = self.sections.last_mut() {
            self.distributions.read(text);
            section.distributions.clone_from(&self.distributions.found);
        }
        // db_bench announces a benchmark at its end: what came before belongs to it.
        if !text.is_empty() && !text.starts_with("DB path:") && !text.ends_with(": started") {
            self.cpu_before = self.cpu_before.max(processor_time_of(self.vfs, self.process).unwrap_or(cpu));
        }
    }
}

/// db_bench waits in steps of seconds. Its event log says when the last flush or compaction really ended.
fn correct_idle_times(vfs: &dyn Vfs, dir: &Path, sections: &mut [Section]) -> Result<()> {
    let log = vfs::read_all(vfs, &dir.join("LOG"), EVENT_LOG_BYTES_MAX, IoClass::Other)?;
    let ends: Vec<u64> = String::from_utf8_lossy(&log).lines().filter_map(work_ended_us).collect();
    for section in sections {
        let arrived_us = section.arrived_us;
        if let Some(idle) = &mut section.idle {
            let given_up_us = arrived_us + idle.wall.as_micros() as u64;
            let last = ends.iter().copied().filter(|end| (arrived_us..=given_up_us).contains(end)).max();
            idle.wall = Duration::from_micros(last.map_or(0, |last| last - arrived_us));
        }
    }
    Ok(())
}

/// When a flush or compaction ended, in microseconds since the epoch, out of a line of RocksDB's event log.
fn work_ended_us(line: &str) -> Option<u64> {
    let (_, event) = line.split_once("EVENT_LOG_v1 ")?;
    let event: serde_json::Value = serde_json::from_str(event).ok()?;
    let ended = matches!(event.get("event")?.as_str()?, "flush_finished" | "compaction_finished");
    ended.then(|| event.get("time_micros")?.as_u64()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_has_its_memtable() {
        let mut flags = vec!["--memtablerep=skip_list".to_owned(), "--num=1".to_owned()];
        Side::spillway("vector:7").unwrap().choose_memtable(&mut flags);
        assert_eq!(flags, ["--num=1", "--memtablerep=vector:7"]);
    }

    #[test]
    fn ends_of_background_work_are_found_in_the_event_log() {
        let line = |event: &str| {
            format!(
                "2026/11/21-10:46:12.221 26708 EVENT_LOG_v1 {{\"time_micros\": 1795257972221966, \"job\": 11, \"event\": \"{event}\"}}"
            )
        };
        assert_eq!(work_ended_us(&line("compaction_finished")), Some(1795257972221966));
        assert_eq!(work_ended_us(&line("table_file_deletion")), None);
        assert_eq!(work_ended_us("2026/11/21-10:46:12.221 26708 Options.x: 1"), None);
    }

    #[test]
    fn processor_time_goes_to_the_section_whose_line_it_precedes() {
        let vfs = vfs::RealVfs::new();
        let mut watch = Watch::new(vfs.as_ref(), std::process::id());
        for text in [
            "Keys:       16 bytes each",
            HEADER_END,
            "fillseq      :       4.174 micros/op 239386 ops/sec 0.084 seconds 20000 operations;   26.5 MB/s",
            "Microseconds per write:",
            "Count: 20000 Average: 3.9277  StdDev: 100.50",
            "waitforcompaction(/x): started",
            "waitforcompaction(/x): finished",
        ] {
            watch.see(text);
        }
        let [section] = watch.sections.as_slice() else { panic!("{:?}", watch.sections) };
        assert_eq!((section.line.ops, section.distributions["write"].count), (20000, 20000));
        assert!(section.idle.is_some());
    }
}
