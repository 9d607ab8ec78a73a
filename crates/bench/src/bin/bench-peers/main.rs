//! `bench-peers`: the same workloads on Spillway, RocksDB, LMDB, redb and fjall, by turns, with equal memory. Every run is a process
//! of its own.

mod child;
mod entries;
mod flags;
mod group;
#[path = "../library/mod.rs"]
#[allow(dead_code, reason = "each program has use for a part")]
mod library;
mod parent;
mod peers;
mod progress;
mod spec;
mod suite;
mod versions;
mod ycsb;
mod zipf;

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
            eprintln!("bench-peers: {error}");
            ExitCode::FAILURE
        }
    }
}
