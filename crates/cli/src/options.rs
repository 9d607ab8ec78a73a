//! `spillway options`.

use std::io::Write;

use spillway::options::{Documented, TableOptions, row::Home, rows};
use spillway::{DbOptions, FamilyOptions};

use crate::failure::{Failure, Outcome};

/// Lists the options: name, type, default, bounds, and what each does.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  spillway options\n  spillway options write_buffer")]
pub struct Args {
    /// Only options whose names contain this.
    #[arg(value_name = "TEXT", default_value = "")]
    text: String,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let groups = [
        ("DBOptions: options of the whole database", rows::<DbOptions>()),
        ("CFOptions: options of a column family", rows::<FamilyOptions>()),
        ("BlockBasedTable: tables, inside block_based_table_factory={...}", rows::<TableOptions>()),
    ];
    let mut shown = 0;
    for (title, rows) in groups {
        let rows: Vec<_> = rows.into_iter().filter(|row| row.name.contains(&args.text)).collect();
        if !rows.is_empty() {
            writeln!(out, "{}{title}", if shown > 0 { "\n" } else { "" })?;
        }
        shown += rows.len();
        rows.iter().try_for_each(|row| show(row, out))?;
    }
    match shown {
        0 => Err(Failure::refused(format!("there is no option whose name contains \"{}\"", args.text))),
        _ => Ok(()),
    }
}

fn show(row: &Documented, out: &mut dyn Write) -> Outcome {
    let default = if row.default.is_empty() { "nothing" } else { &row.default };
    let mut facts = vec![row.kind.clone()];
    if row.home != Home::Section {
        facts.push(format!("default {default}"));
    }
    if !row.bounds.is_empty() {
        facts.push(row.bounds.clone());
    }
    facts.extend(row.mutable.then(|| "can change while open".to_owned()));
    facts.extend((row.home == Home::Spillway).then(|| "not RocksDB's".to_owned()));
    writeln!(out, "  {} ({})", row.name, facts.join("; "))?;
    Ok(writeln!(out, "      {}", row.doc)?)
}
