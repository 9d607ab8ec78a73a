//! Memtables by themselves, under the names and flags of RocksDB's `memtablerep_bench`: each benchmark on each memtable
//! before the next, so that a change of the machine's pace meets all of them.

mod filled;
mod flags;
mod keys;
mod record;
mod run;
mod summary;
mod twister;
mod work;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use memtable::factory_from_option_string;
use vfs::Vfs;

pub use flags::MemtableFlags;
pub use record::{KIND, MemtableRecord};

use self::run::{Contender, Runner};
use self::work::{BENCHMARKS, Benchmark, Work};
use crate::machine::Occasion;
use crate::sinks::{JsonLine, json_of, with_sinks, write_text};

/// A line for each benchmark.
pub fn help() -> String {
    BENCHMARKS.iter().map(|benchmark| format!("  {:<16}  {}\n", benchmark.name, benchmark.about)).collect()
}

/// Runs the benchmarks that the flags name; text goes to standard output, or to standard error where JSON goes there.
///
/// # Errors
/// As [`run_benchmarks`].
pub fn run(flags: &MemtableFlags, vfs: &Arc<dyn Vfs>) -> Result<()> {
    with_sinks(vfs, &flags.json, |text, json| run_benchmarks(flags, vfs, text, json))
}

/// Runs the benchmarks that the flags name: a line of text and one of JSON for each result, medians at the end.
///
/// # Errors
/// `InvalidArgument`: a benchmark or memtable that does not exist, a benchmark that reads before one that fills, or a
/// memtable too small for its entries.
pub fn run_benchmarks(
    flags: &MemtableFlags,
    vfs: &Arc<dyn Vfs>,
    text: &mut dyn Write,
    json: &mut JsonLine<'_>,
) -> Result<()> {
    let benchmarks = named_benchmarks(flags)?;
    let mut contenders = Vec::new();
    for option in flags.memtablerep.options() {
        // memtablerep_bench's own name for it.
        let known = if option == "skiplist" { "skip_list" } else { option };
        contenders.push(Contender::new(option, factory_from_option_string(known)?));
    }
    let occasion = Occasion::now(vfs.as_ref(), Path::new("."));
    let runner = Runner::new(flags, vfs.as_ref());
    write_text(text, &format!("{}\n", runner.header()))?;
    let mut records = Vec::new();
    for round in 0..flags.rounds {
        if flags.rounds > 1 {
            write_text(text, &format!("round {} of {}", round + 1, flags.rounds))?;
        }
        for benchmark in &benchmarks {
            let prepared = runner.prepare(benchmark);
            // Whoever goes first finds the caches as another benchmark left them: they take turns.
            let count = contenders.len();
            for turn in 0..count {
                let Some(contender) = contenders.get_mut((turn + round as usize) % count) else { continue };
                let mut record = runner.measure(benchmark, &prepared, contender)?;
                record.round = round;
                occasion.put_into(&mut record.machine, &mut record.commit, &mut record.unix_time_s);
                write_text(text, &record.text())?;
                json(&json_of(&record)?)?;
                records.push(record);
            }
        }
    }
    write_text(text, &summary::draw(&records))
}

/// The benchmarks in the order asked for, which must make sense.
fn named_benchmarks(flags: &MemtableFlags) -> Result<Vec<&'static Benchmark>> {
    let mut named: Vec<&Benchmark> = Vec::new();
    for name in flags.benchmarks.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let refuse = |why: &str| Err(Error::invalid_argument(format!("benchmark {name:?} {why}")));
        let Some(benchmark) = BENCHMARKS.iter().find(|benchmark| benchmark.name == name) else {
            return refuse("does not exist; --help lists them");
        };
        let sealed = named.iter().rev().take_while(|b| !b.makes_memtable()).any(|b| matches!(b.work, Work::Seal));
        match benchmark.work {
            Work::ReadBesideWriter { .. } if flags.num_threads < 2 => {
                return refuse("has a writer beside readers and needs --num_threads of 2 or more");
            }
            Work::Read { .. } | Work::First | Work::Seal if named.is_empty() => {
                return refuse("works on a memtable that another made: name fillrandom or fillseq before it");
            }
            Work::Seal if sealed => return refuse("can be done once to a memtable"),
            _ => named.push(benchmark),
        }
    }
    Ok(named)
}

#[cfg(test)]
mod tests;
