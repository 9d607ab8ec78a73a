//! `spillway table`.

mod build;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Subcommand, ValueEnum};
use spillway::internal::dump::{self, DumpPart};
use spillway::internal::vfs::{RealVfs, Vfs};

use crate::failure::{Failure, Outcome};
use crate::human;

/// Makes, shows and verifies table files (.sst), of Spillway and of RocksDB.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway table build people.csv --format csv --key id --to /tmp/tables
  spillway table dump /tmp/people/000012.sst --part properties
  spillway table verify /tmp/people/*.sst")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Build(Box<build::Args>),
    /// Prints the content of a table.
    Dump {
        /// Table file (.sst).
        file: PathBuf,
        /// Part to print; all parts if not given.
        #[arg(long)]
        part: Option<Part>,
    },
    /// Reads every block of tables; checks checksums, order, index, filter and counts.
    Verify {
        /// Table files (.sst).
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    Layout,
    Properties,
    Index,
    Entries,
    Tombstones,
}

impl Part {
    fn of_table(self) -> DumpPart {
        match self {
            Part::Layout => DumpPart::Layout,
            Part::Properties => DumpPart::Properties,
            Part::Index => DumpPart::Index,
            Part::Entries => DumpPart::Entries,
            Part::Tombstones => DumpPart::Tombstones,
        }
    }
}

/// Prints lines until one cannot be written.
pub fn show(out: &mut dyn Write, dump: impl FnOnce(dump::Line<'_>) -> spillway::internal::Result<()>) -> Outcome {
    let mut written: io::Result<()> = Ok(());
    let dumped = dump(&mut |line| {
        written = writeln!(out, "{line}");
        written.is_ok()
    });
    written?;
    Ok(dumped?)
}

impl Args {
    pub fn is_json(&self) -> bool {
        matches!(&self.action, Action::Build(args) if args.json)
    }
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    match &args.action {
        Action::Build(args) => build::run(args, out),
        Action::Dump { file, part } => {
            let table = dump::open_table(&(RealVfs::new() as Arc<dyn Vfs>), file)?;
            if let Some(part) = part {
                return show(out, |line| dump::dump_table(&table, part.of_table(), line));
            }
            for part in Part::value_variants() {
                let name = part.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
                writeln!(out, "== {name}")?;
                show(out, |line| dump::dump_table(&table, part.of_table(), line))?;
            }
            Ok(())
        }
        Action::Verify { files } => verify(files, out),
    }
}

fn verify(files: &[PathBuf], out: &mut dyn Write) -> Outcome {
    let mut damaged = 0u64;
    for file in files {
        match dump::open_table(&(RealVfs::new() as Arc<dyn Vfs>), file)
            .and_then(|table| table.table().verify().map(|()| table))
        {
            Ok(table) => {
                let entries = human::counted(table.table().properties().entries, "entry", "entries");
                writeln!(out, "{}: whole, {entries}", file.display())?;
            }
            Err(error) => {
                damaged += 1;
                writeln!(out, "{}: {error}", file.display())?;
            }
        }
    }
    if damaged == 0 {
        return Ok(());
    }
    let (tables, of) = (human::counted(damaged, "table", "tables"), human::count(files.len() as u64));
    Err(Failure::refused(format!("{tables} of {of} cannot be read in full; restore them from a copy")))
}
