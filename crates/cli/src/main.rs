//! `spillway`: the database on the command line. One file per command, with its arguments and its output.
#![forbid(unsafe_code)]

mod backup;
mod bytes;
mod check;
mod checkpoint;
mod compact;
mod completions;
mod database;
mod delete;
mod delimited;
mod destroy;
mod export;
mod failure;
mod families;
mod get;
mod human;
mod ingest;
mod input;
mod interrupt;
mod json;
mod load;
mod log;
mod long;
mod make;
mod man;
mod manifest;
mod memory;
mod metrics;
mod options;
mod plan;
mod progress;
mod put;
mod repair;
mod scan;
mod sentences;
mod serve;
mod settings;
mod sort;
mod staging;
mod stats;
mod table;
mod terminal;
mod threads;
mod top;
mod watched;

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use tracing_subscriber::filter::LevelFilter;

use crate::failure::{Failure, Outcome, is_in_doubt, tell_as_json};
use crate::sentences::Sentences;
use crate::terminal::{Output, Shown, watched};

/// An embedded key-value database in a directory: load, read, inspect, check and repair it; exchange it with RocksDB.
#[derive(Parser)]
#[command(name = "spillway", version, max_term_width = 110, after_help = EXAMPLES)]
struct Program {
    /// Least level of the engine's messages shown on standard error.
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn")]
    log_level: LogLevel,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  spillway load people.csv --db /tmp/people --format csv --key id
  spillway get 42 --db /tmp/people
  spillway scan --db /tmp/people --prefix 4 --limit 10
  spillway check --db /tmp/people

To name the database once for all commands: export SPILLWAY_DB=/tmp/people

Exit status:
  0    done
  1    not done, or damage or a missing key was found, or keys are in doubt after a salvage
  2    the command line is not understood
  130  ended by Ctrl-C, SIGTERM or a closed terminal";

#[derive(Clone, Copy, ValueEnum)]
enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Subcommand)]
enum Command {
    Load(Box<load::Args>),
    Ingest(Box<ingest::Args>),
    Get(get::Args),
    Put(put::Args),
    Delete(delete::Args),
    Scan(scan::Args),
    Stats(stats::Args),
    Top(top::Args),
    Serve(serve::Args),
    Metrics(metrics::MetricsArgs),
    Advise(metrics::AdviseArgs),
    Plan(plan::Args),
    Families(families::Args),
    Compact(compact::Args),
    Check(check::Args),
    Repair(repair::Args),
    Checkpoint(checkpoint::Args),
    Backup(backup::Args),
    Export(export::Args),
    Table(table::Args),
    Log(log::Args),
    Manifest(manifest::Args),
    Options(options::Args),
    Destroy(destroy::Args),
    Completions(completions::Args),
    Man(man::Args),
    /// Runs benchmarks, with the names and flags of RocksDB's db_bench.
    Bench(bench::cli::Args),
}

impl Command {
    /// Whether the command prints JSON.
    fn is_json(&self) -> bool {
        match self {
            Command::Load(args) => args.json,
            Command::Ingest(args) => args.json,
            Command::Scan(args) => args.json,
            Command::Stats(args) => args.json,
            Command::Top(args) => args.json,
            Command::Advise(args) => args.json,
            Command::Plan(args) => args.json,
            Command::Families(args) => args.is_json(),
            Command::Check(args) => args.json,
            Command::Repair(args) => args.json,
            Command::Backup(args) => args.json,
            Command::Table(args) => args.is_json(),
            Command::Options(args) => args.is_json(),
            _ => false,
        }
    }

    fn run(&self, out: &mut dyn Write) -> Outcome {
        match self {
            Command::Load(args) => load::run(args, out),
            Command::Ingest(args) => ingest::run(args, out),
            Command::Get(args) => get::run(args, out),
            Command::Put(args) => put::run(args),
            Command::Delete(args) => delete::run(args),
            Command::Scan(args) => scan::run(args, out),
            Command::Stats(args) => stats::run(args, out),
            Command::Top(args) => top::run(args, out),
            Command::Serve(args) => serve::run(args, out),
            Command::Metrics(args) => metrics::metrics(args, out),
            Command::Advise(args) => metrics::advise(args, out),
            Command::Plan(args) => plan::run(args, out),
            Command::Families(args) => families::run(args, out),
            Command::Compact(args) => compact::run(args, out),
            Command::Check(args) => check::run(args, out),
            Command::Repair(args) => repair::run(args, out),
            Command::Checkpoint(args) => checkpoint::run(args, out),
            Command::Backup(args) => backup::run(args, out),
            Command::Export(args) => export::run(args, out),
            Command::Table(args) => table::run(args, out),
            Command::Log(args) => log::run(args, out),
            Command::Manifest(args) => manifest::run(args, out),
            Command::Options(args) => options::run(args, out),
            Command::Destroy(args) => destroy::run(args, out),
            Command::Completions(args) => completions::run(args, Program::command(), out),
            Command::Man(args) => man::run(args, Program::command(), out),
            Command::Bench(args) => watched(out, |out| bench::cli::run(args, out)),
        }
    }
}

/// Whether a stream shows colours: a capable terminal, and no user setting against them.
fn colours(stream: &impl IsTerminal) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !is_set("NO_COLOR") && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

fn main() -> ExitCode {
    memory::spare_addresses();
    let program = match Program::try_parse_from(words(std::env::args_os())) {
        Ok(program) => program,
        Err(said) => return tell(&said),
    };
    let level = match program.log_level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).event_format(Sentences).init();
    if program.command.is_json() {
        tell_as_json();
    }
    let mut stdout = BufWriter::new(Output);
    let mut out = Shown::new(&mut stdout);
    let result = program.command.run(&mut out).and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => verdict(),
        // The reader closed the pipe (`| head`).
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => verdict(),
        Err(failure) => {
            let _ = out.flush(); // findings before the failure are printed first
            failure.tell();
            ExitCode::from(failure.status())
        }
    }
}

/// The command line. `help --help` is `help`: clap would look for a command of that name.
fn words(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<_> = all.collect();
    if all.get(1).is_some_and(|command| command == "help") {
        all.retain(|word| word != "--help" && word != "-h");
    }
    all
}

/// Prints a help text, or what is wrong with the command line.
fn tell(said: &clap::Error) -> ExitCode {
    let printed = match said.use_stderr() {
        true => said.print(),
        false => Output.check().and_then(|()| said.print()).and_then(|()| io::stdout().flush()),
    };
    match printed {
        Err(error) if !said.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => {
            let failure = Failure::Output(error);
            failure.tell();
            ExitCode::from(failure.status())
        }
        _ => ExitCode::from(u8::try_from(said.exit_code()).unwrap_or(1)),
    }
}

/// The status of a command that did its work.
fn verdict() -> ExitCode {
    if is_in_doubt() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
