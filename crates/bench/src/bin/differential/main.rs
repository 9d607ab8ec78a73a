//! `differential`: runs random histories of calls on two libraries with RocksDB's C API, ours and RocksDB's, in this process, and
//! compares the result of every call. One seed makes one history; a difference is shrunk and printed. What the libraries promise
//! differently (docs/compat.md) is left out where the steps are drawn or done, by name.

mod care;
mod draw;
#[path = "../library/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each program has use for a part")]
mod library;
mod life;
mod reads;
mod shape;
mod shrink;
mod step;
mod view;
mod world;
mod writes;

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bench::folder;
use clap::Parser;

use crate::draw::History;
use crate::library::whole::{Answer, Library};
use crate::life::{Difference, Ground};

/// Runs random histories of calls on Spillway's and RocksDB's library, and compares every result.
#[derive(Debug, Parser)]
#[command(name = "differential", version, rename_all = "snake_case")]
struct Flags {
    /// Spillway's library.
    #[arg(long, default_value = "target/release/librocksdb.so")]
    ours: PathBuf,
    /// RocksDB's library; `scripts/setup.sh compare` fetches it.
    #[arg(long, default_value = "target/rocksdb-11.8.1/librocksdbjni-linux64.so")]
    theirs: PathBuf,
    /// Seed of the first history.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of histories, of successive seeds.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Steps of a history.
    #[arg(long, default_value_t = 1000)]
    ops: usize,
    /// Begins no history after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Numbers of the only steps to do, separated by commas: a smallest history.
    #[arg(long, value_delimiter = ',')]
    only: Vec<usize>,
    /// Leaves the folder as a single history left it.
    #[arg(long)]
    keep: bool,
    /// Goes on after a difference.
    #[arg(long)]
    keep_going: bool,
    /// Prints every history's shape before it runs.
    #[arg(long)]
    verbose: bool,
    /// Prints every history's steps too.
    #[arg(long, requires = "verbose")]
    steps: bool,
    /// Folder to work in, emptied for each history; best in memory.
    #[arg(long, default_value = "differential.work")]
    dir: PathBuf,
}

fn main() -> ExitCode {
    match run(&Flags::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("differential: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the number of histories with a difference.
fn run(flags: &Flags) -> Answer<u64> {
    let vfs = vfs::RealVfs::new();
    let ours = care::text(Library::load(&flags.ours))?;
    let theirs = care::text(Library::load(&flags.theirs))?;
    let ground = Ground { vfs: vfs.clone(), ours, theirs, dir: flags.dir.clone(), tally: RefCell::default() };
    let (begun, mut failed, mut ran) = (vfs.now(), 0, 0);
    for seed in flags.seed..flags.seed.saturating_add(flags.seeds) {
        let limit = flags.seconds.map(Duration::from_secs);
        if limit.is_some_and(|limit| vfs.now().saturating_sub(begun) > limit) {
            break;
        }
        let mut history = History::draw(seed, flags.ops);
        if !flags.only.is_empty() {
            history.kept.clone_from(&flags.only);
        }
        if flags.verbose {
            println!("seed {seed}: {:?}", history.shape);
            for (at, step) in history.steps.iter().enumerate().filter(|_| flags.steps) {
                println!("  {at} {step:?}");
            }
        }
        ran += 1;
        if let Some(difference) = life::run(&ground, &history, &history.kept)? {
            failed += 1;
            match flags.only.is_empty() {
                true => report(&ground, seed, flags.ops, &history, difference)?,
                false => tell(&difference),
            }
            if !flags.keep_going {
                break;
            }
        }
    }
    if !flags.keep {
        care::text(folder::remove(vfs.as_ref(), &ground.dir))?;
    }
    for (came, times) in ground.tally.borrow().iter().filter(|_| flags.verbose) {
        println!("  {came}: {times}");
    }
    let took = vfs.now().saturating_sub(begun).as_secs();
    println!("{ran} histories of {} steps in {took} s: {failed} with a difference", flags.ops);
    Ok(failed)
}

/// Steps told of where a difference was found, before it is made smaller.
const TOLD_MAX: usize = 10;

/// Prints a difference, and the smallest history that has one.
fn report(ground: &Ground, seed: u64, ops: usize, history: &History, found: Difference) -> Answer<()> {
    println!("DIFFERENCE: --seed {seed} --ops {ops}, step {}", found.at);
    tell(&found);
    println!("the steps before it:");
    for (at, step) in history.steps.iter().enumerate().take(found.at + 1).skip((found.at + 1).saturating_sub(TOLD_MAX))
    {
        println!("  {at} {step:?}");
    }
    let (steps, found) = shrink::shrink(ground, history, found)?;
    println!("smallest history found, {:?}:", history.shape);
    for &number in &steps {
        println!("  {number} {:?}", history.steps.get(number));
    }
    let numbers: Vec<String> = steps.iter().map(usize::to_string).collect();
    println!("run it again: --seed {seed} --ops {ops} --only {}", numbers.join(","));
    tell(&found);
    Ok(())
}

fn tell(found: &Difference) {
    println!("  ours:   {}\n  theirs: {}", found.ours, found.theirs);
}
