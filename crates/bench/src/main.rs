//! The benchmarks as a program of their own; `spillway bench` is the same.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "spillway-bench", version, about = "Benchmarks under db_bench's names and flags")]
struct Program {
    #[command(flatten)]
    args: bench::cli::Args,
}

fn main() -> ExitCode {
    match bench::cli::run(&Program::parse().args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("spillway-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
