//! Memtables by themselves, under the names and flags of RocksDB's `memtablerep_bench`: each benchmark on each memtable
//! before the next, so that a change of the machine's pace meets all of them.

mod filled;
mod flags;
mod keys;
mod record;
mod run;
mod work;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use memtable::factory_from_option_string;
use vfs::Vfs;

pub use flags::MemtableFlags;
use record::KIND;

use self::run::{Contender, Runner};
use self::work::{BENCHMARKS, Benchmark, Work};
use crate::machine::{Occasion, Setting};
use crate::report::{Figure, Spec, drawn};
use crate::sinks::{JsonLine, json_of, value_of, with_sinks, write_text};

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
    let setting = Setting::new(KIND, &Occasion::now(vfs.as_ref(), Path::new(".")), flags.conditions());
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
                (record.round, record.setting) = (round, setting.clone());
                write_text(text, &record.text())?;
                json(&json_of(&record)?)?;
                records.push(value_of(&record)?);
            }
        }
    }
    write_text(text, &drawn(&summary(), &records)?)
}

/// Medians by benchmark and memtable.
fn summary() -> Spec {
    Spec {
        rows: vec!["bench".to_owned()],
        across: "memtable".to_owned(),
        figures: vec![Figure { times: Some(1000.0), ..Figure::new("us_per_op", "ns", 1) }],
        ..Spec::default()
    }
}

/// The benchmarks in the order asked for, which must make sense.
fn named_benchmarks(flags: &MemtableFlags) -> Result<Vec<&'static Benchmark>> {
    let mut named: Vec<&Benchmark> = Vec::new();
    for name in flags.benchmarks.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let refuse = |why: &str| Err(Error::invalid_argument(format!("benchmark {name:?} {why}")));
        let Some(benchmark) = BENCHMARKS.iter().find(|benchmark| benchmark.name == name) else {
            return refuse("does not exist; --help lists them");
        };
        match benchmark.work {
            Work::Read { .. } | Work::First if named.is_empty() => {
                return refuse("works on a memtable that another made: name fillrandom or fillseq before it");
            }
            _ => named.push(benchmark),
        }
    }
    Ok(named)
}

#[cfg(test)]
mod tests;
