//! `bench-compare`: runs the same workloads on any number of libraries with RocksDB's C API, by turns, and compares the results.
//! Every run is a process of its own.

mod child;
mod flags;
#[path = "../library/mod.rs"]
#[allow(dead_code, reason = "each program has use for a part")]
mod library;
mod parent;
mod profile;
mod spec;
mod suite;
mod tasks;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let vfs = vfs::RealVfs::new();
    let given: Vec<String> = std::env::args().skip(1).collect();
    let ended = match given.as_slice() {
        [first, spec] if first == bench::child::CHILD => child::run(spec, &vfs),
        _ => parent::run(&flags::Flags::parse(), &vfs),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-compare: {error}");
            ExitCode::FAILURE
        }
    }
}
