//! The workloads: task, database and size of each.

use base::{Error, Result};
use bench::work::BENCHMARKS;

use crate::flags::Flags;
use crate::tasks::overlap::Ground;

/// The database at the start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// An empty folder.
    Empty,
    /// The filled database, shared by all runs of a library: the run writes nothing.
    Filled,
    /// A copy of the filled database, deleted afterwards.
    Copy,
}

/// The task of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// One of db_bench's, by its name.
    Benchmark(&'static str),
    Compact,
    Ingest,
    Overlap(Ground),
    IngestAndFlush(Ground),
    Disk,
    Batches,
    Flush,
    Load,
    Queue,
    Restart,
    Space,
    Transactions,
    Indexed,
}

/// A workload.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub name: &'static str,
    about: &'static str,
    pub task: Task,
    pub start: Start,
    /// Modes, each a run of its own.
    pub modes: &'static [&'static str],
    /// More modes, of Spillway's libraries alone.
    pub own_modes: &'static [&'static str],
    threads: Option<usize>,
    /// db_bench's flags.
    flags: &'static str,
    /// Options for all libraries.
    pub options: &'static str,
}

/// One of db_bench's under its own name.
const fn of(name: &'static str, start: Start) -> Workload {
    task(name, "", Task::Benchmark(name), start)
}

const fn task(name: &'static str, about: &'static str, task: Task, start: Start) -> Workload {
    Workload { name, about, task, start, modes: &[""], own_modes: &[], threads: None, flags: "", options: "" }
}

/// So many memtables stay in memory, and nothing but the ingest flushes them.
const OVERLAP: &str = "min_write_buffer_number_to_merge=12;max_write_buffer_number=24;disable_auto_compactions=true";

const fn overlap(name: &'static str, about: &'static str, ground: Ground) -> Workload {
    let modes = &["1", "2", "3", "4", "8"];
    Workload { modes, options: OVERLAP, ..task(name, about, Task::Overlap(ground), Start::Empty) }
}

const fn ingest_and_flush(name: &'static str, about: &'static str, ground: Ground) -> Workload {
    let (modes, options) = (&["0", "1", "2", "3"], "disable_auto_compactions=true");
    Workload { modes, options, ..task(name, about, Task::IngestAndFlush(ground), Start::Empty) }
}

/// The workloads in the order of their runs.
pub const WORKLOADS: &[Workload] = &[
    of("fillseq", Start::Empty),
    of("fillrandom", Start::Empty),
    of("fillbatch", Start::Empty),
    of("fillsync", Start::Empty),
    of("overwrite", Start::Copy),
    of("readrandom", Start::Filled),
    of("readhot", Start::Filled),
    of("readmissing", Start::Filled),
    Workload { flags: "--batch_size=32", ..of("multireadrandom", Start::Filled) },
    // Without timing each step: clock readings would be a large part of the time.
    Workload { flags: "--histogram=false", ..of("readseq", Start::Filled) },
    Workload { flags: "--seek_nexts=10", ..of("seekrandom", Start::Filled) },
    // With a writer at full speed, the library with faster writes would have slower reads.
    Workload { flags: "--benchmark_write_rate_limit=10485760", ..of("readwhilewriting", Start::Copy) },
    Workload {
        flags: "--benchmark_write_rate_limit=10485760 --seek_nexts=10",
        ..of("seekrandomwhilewriting", Start::Copy)
    },
    of("readrandomwriterandom", Start::Copy),
    Workload {
        flags: "--readwritepercent=50",
        ..task(
            "half-reads",
            "looks up and writes random keys, half of each",
            Task::Benchmark("readrandomwriterandom"),
            Start::Copy,
        )
    },
    Workload {
        options: "disable_auto_compactions=true",
        ..task("compact", "compacts a database with every key overwritten", Task::Compact, Start::Copy)
    },
    Workload {
        modes: &["none", "default", "flush-first"],
        threads: Some(2),
        ..task(
            "ingest",
            "writes at a fixed rate beside ingests of overlapping tables: none; in the library's default way; or after a \
            flush, with the ingest not allowed to block writers for one",
            Task::Ingest,
            Start::Copy,
        )
    },
    Workload {
        modes: &["none", "default", "flush-first"],
        own_modes: &["direct", "blocking"],
        threads: Some(2),
        ..task("ingest-modes", "the same, and in all modes of Spillway", Task::Ingest, Start::Copy)
    },
    Workload {
        modes: &["tables", "puts", "batches"],
        ..task(
            "load",
            "loads rows in key order: as ingested tables, one put each, or in batches of 1000",
            Task::Load,
            Start::Empty,
        )
    },
    overlap("overlap", "ingests a table over 1 to 8 memtables with keys in its range", Ground::Unsynced),
    overlap("overlap-bytes", "the same with wal_bytes_per_sync", Ground::WrittenBack),
    overlap("overlap-synced", "the same after a sync of the log", Ground::Synced),
    overlap(
        "overlap-memory",
        "the same after a sync of the log in the library's file system in memory",
        Ground::Memory,
    ),
    ingest_and_flush("ingest-flush", "ingests 0 to 3 tables over a memtable, and flushes", Ground::Unsynced),
    ingest_and_flush("ingest-flush-memory", "the same in memory", Ground::Memory),
    task("fdatasync", "writes 4 KiB to a file and syncs it, without a library", Task::Disk, Start::Empty),
    Workload {
        modes: &["written", "flushed"],
        ..task(
            "batches",
            "writes batches of 200,000 entries; with flushed, waits for a flush of each",
            Task::Batches,
            Start::Empty,
        )
    },
    Workload {
        modes: &["clean", "dead", "clean-back", "dead-back"],
        ..task(
            "queue",
            "scans ten entries from the front of a queue: with none deleted before, or with as many as --num; backward with \
            -back",
            Task::Queue,
            Start::Empty,
        )
    },
    task("flush", "flushes a full memtable", Task::Flush, Start::Empty),
    task(
        "restart",
        "opens a database after a kill, with most of its entries in the log only",
        Task::Restart,
        Start::Empty,
    ),
    task("space", "writes everything twice at random, compacts, and measures the files", Task::Space, Start::Empty),
    Workload {
        modes: &["batch", "batch-hot", "optimistic", "optimistic-hot", "pessimistic", "pessimistic-hot"],
        ..task(
            "transactions",
            "commits transactions of two puts, or writes them as a batch; with -hot, 20 of 100 keys are of sixteen",
            Task::Transactions,
            Start::Empty,
        )
    },
    Workload {
        modes: &["build", "read"],
        ..task(
            "indexed",
            "fills batches of 1000 entries with an index, or looks keys up in one",
            Task::Indexed,
            Start::Empty,
        )
    },
];

/// A line for each workload.
pub fn help() -> String {
    let about = |workload: &Workload| match workload.task {
        Task::Benchmark(name) if workload.about.is_empty() => {
            BENCHMARKS.iter().find(|benchmark| benchmark.name == name).map_or("", |benchmark| benchmark.about)
        }
        _ => workload.about,
    };
    WORKLOADS.iter().map(|workload| format!("  {:<22}  {}\n", workload.name, about(workload))).collect()
}

/// The workloads with these names, in the order of the table; all without names.
///
/// # Errors
/// `InvalidArgument`: a name is not in the table.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Workload>> {
    if let Some(name) = names.iter().find(|name| !WORKLOADS.iter().any(|workload| workload.name == name.as_str())) {
        return Err(Error::invalid_argument(format!("unknown workload {name:?}; --help lists them")));
    }
    let wanted = |workload: &&Workload| names.is_empty() || names.iter().any(|name| name == workload.name);
    Ok(WORKLOADS.iter().filter(wanted).collect())
}

impl Workload {
    /// db_bench's flags for a run: the common ones, then the workload's own, which override them.
    pub fn flags(&self, flags: &Flags) -> Vec<String> {
        let threads = self.threads.unwrap_or(flags.threads);
        let num = flags.num;
        let per_thread = |count: u64| count.div_ceil(threads as u64);
        let mut line = vec![
            format!("--num={num}"),
            format!("--key_size={}", flags.key_size),
            format!("--value_size={}", flags.value_size),
            format!("--threads={threads}"),
            format!("--writes={}", per_thread(num)),
            format!("--reads={}", per_thread(flags.reads())),
            format!("--seed={}", flags.seed),
            format!("--readwritepercent={}", flags.readwritepercent),
            "--histogram=true".to_owned(),
        ];
        // A thread with reads and writes does the larger number of the two.
        if self.task == Task::Benchmark("readrandomwriterandom") {
            line.push(format!("--writes={}", per_thread(flags.reads())));
        }
        // Each write waits for the disk: as many as in db_bench, but 200 to 5000: some seconds at most.
        if self.task == Task::Benchmark("fillsync") {
            line.push(format!("--writes={}", per_thread((num / 1000).clamp(200, 5000).min(num))));
        }
        // A walk goes over everything.
        if self.task == Task::Benchmark("readseq") {
            line.push(format!("--reads={num}"));
        }
        line.extend(self.flags.split_whitespace().map(str::to_owned));
        line
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn every_workload_has_flags_that_are_understood_and_a_benchmark_that_is_there() {
        let flags = Flags::try_parse_from(["x", "--lib=a=/a", "--num=1040", "--threads=2"]).unwrap();
        for workload in WORKLOADS {
            let mut given = workload.flags(&flags);
            given.push("--db=/x".to_owned());
            let parsed = bench::Flags::parse(&given).unwrap_or_else(|e| panic!("{}: {e}", workload.name));
            assert_eq!((parsed.num, parsed.value_size), (1040, 100), "{}", workload.name);
            if let Task::Benchmark(name) = workload.task {
                let benchmark = BENCHMARKS.iter().find(|benchmark| benchmark.name == name).unwrap();
                assert_eq!(benchmark.fresh, workload.start == Start::Empty, "{name}");
            }
        }
    }

    #[test]
    fn workloads_are_chosen_by_name_in_the_tables_order() {
        let names = |given: &[&str]| -> Result<Vec<&str>> {
            let given: Vec<String> = given.iter().map(|name| (*name).to_owned()).collect();
            Ok(chosen(&given)?.iter().map(|workload| workload.name).collect())
        };
        assert_eq!(names(&["readseq", "fillseq"]).unwrap(), ["fillseq", "readseq"]);
        assert_eq!(names(&[]).unwrap().len(), WORKLOADS.len());
        assert!(names(&["fillsek"]).unwrap_err().to_string().contains("fillsek"));
    }
}
