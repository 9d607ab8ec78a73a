//! Benchmarks of memtables alone, with the names and flags of RocksDB's `memtablerep_bench`. Each benchmark runs on all memtables
//! before the next one: a change of the machine's speed meets all memtables.

mod flags;
mod keys;
mod record;
mod run;
mod work;

use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use memtable::factory_from_option_string;
use vfs::Vfs;

pub use flags::MemtableFlags;
use record::KIND;

use self::run::{Contender, Runner};
use self::work::{BENCHMARKS, Benchmark};
use crate::flags::name_of;
use crate::machine::Setting;
use crate::report::{Figure, Spec};
use crate::sinks::Output;

/// A line for each benchmark.
pub fn help() -> String {
    BENCHMARKS.iter().map(|benchmark| format!("  {:<16}  {}\n", benchmark.name, benchmark.about)).collect()
}

/// Runs the benchmarks named by the flags: a line for each result, medians at the end.
///
/// # Errors
/// `InvalidArgument`: a flag's value is not allowed, a benchmark or memtable is unknown, or a benchmark reads before one fills.
pub fn run(flags: &MemtableFlags, vfs: &Arc<dyn Vfs>, out: &mut Output<'_>) -> Result<()> {
    flags.check()?;
    let benchmarks = named_benchmarks(flags)?;
    let made = |name: &str| Ok(Contender::new(name, factory_from_option_string(&flags.option_of(name))?));
    let mut contenders = flags.memtables().into_iter().map(made).collect::<Result<Vec<_>>>()?;
    let setting = Setting::now(KIND, flags.conditions(), vfs.as_ref(), Path::new("."));
    let mut runner = Runner::new(flags, vfs.as_ref());
    let (version, shape) = (env!("CARGO_PKG_VERSION"), name_of(flags.key_shape));
    out.say(&format!("Spillway {version}: {shape} keys; {}\n", flags.conditions()))?;
    for flag in flags.without_effect() {
        out.say(&format!("{flag} changes nothing; --help says why"))?;
    }
    for round in 0..flags.rounds {
        if flags.rounds > 1 {
            out.say(&format!("round {} of {}", round + 1, flags.rounds))?;
        }
        for benchmark in &benchmarks {
            let keys = runner.prepare(benchmark);
            for contender in &mut contenders {
                let Some(mut record) = runner.measure(benchmark, &keys, contender)? else {
                    let name = benchmark.name;
                    out.say(&format!("{name}: nothing to do; readwrite has readers with --num_threads=2 and more"))?;
                    continue;
                };
                (record.round, record.setting) = (round, setting.clone());
                out.keep(&record.text(), &record)?;
            }
        }
        // The first memtable finds the caches as a different benchmark left them, so each goes first in turn.
        contenders.rotate_left(1);
    }
    if out.records.is_empty() { Ok(()) } else { out.show(&summary()) }
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

/// The benchmarks in the order of the flag; a fill must come first.
fn named_benchmarks(flags: &MemtableFlags) -> Result<Vec<&'static Benchmark>> {
    let mut named: Vec<&Benchmark> = Vec::new();
    for name in flags.benchmarks.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let refuse = |why: &str| Err(Error::invalid_argument(format!("benchmark {name:?} {why}")));
        let Some(benchmark) = BENCHMARKS.iter().find(|benchmark| benchmark.name == name) else {
            let known: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
            return refuse(&format!("does not exist; known are {}", known.join(", ")));
        };
        if !benchmark.is_new() && named.is_empty() {
            return refuse("needs a filled memtable: name fillrandom or fillseq before it");
        }
        named.push(benchmark);
    }
    Ok(named)
}

#[cfg(test)]
mod tests;
