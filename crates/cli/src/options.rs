//! `spillway options`.

use std::io::Write;

use base::name;
use clap::Subcommand;
use live::options::Shown;
use serde_json::json;
use spillway::internal::config::{Config, Start};
use spillway::internal::options::row::{Change, Home, OptionGroup, Row, Setting};
use spillway::internal::options::{AutoSortOptions, Documented, TableOptions, ZipTableOptions, rows};
use spillway::internal::vfs::RealVfs;
use spillway::internal::{DEFAULT_FAMILY, DbOptions, FamilyOptions};
use spillway::observe::{ObservedBy, ObservedOption};

use crate::bytes;
use crate::database::{name_parser, split_config};
use crate::failure::{Failure, Outcome};
use crate::json;
use crate::terminal::printable;
use crate::watched::{self, WatchedArgs};

/// Lists all options with name, type, default, bounds and meaning; shows those in force; or checks a configuration.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  spillway options\n  spillway options write_buffer\n  spillway options show /tmp/people\n  spillway options check app.yaml"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Lists only options with this text in their names.
    #[arg(value_name = "TEXT", default_value = "")]
    text: String,
    /// Prints JSON: one line, described in docs/cli.md.
    #[arg(long)]
    pub json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Reads a configuration and explains it: prints the options of each database different from the defaults, as option
    /// strings, and warns about settings without effect.
    #[command(
        after_help = "Examples:\n  spillway options check app.yaml\n  spillway options check app.yaml#users --all"
    )]
    Check {
        /// Configuration file in JSON or YAML; #NAME shows only this database.
        #[arg(value_name = "FILE[#NAME]", value_parser = name_parser())]
        config: String,
        /// Prints all options, including defaults.
        #[arg(long)]
        all: bool,
        /// Prints JSON: one line, described in docs/cli.md.
        #[arg(long)]
        json: bool,
    },
    /// Prints the options of a database that differ from their defaults: those in force in the process that has it open with
    /// observe_socket=true, else the stored ones.
    #[command(after_help = "Example:\n  spillway options show /tmp/people")]
    Show {
        #[command(flatten)]
        watched: WatchedArgs,
        /// Prints JSON: one line, described in docs/cli.md.
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    pub fn is_json(&self) -> bool {
        self.json || matches!(self.action, Some(Action::Check { json: true, .. } | Action::Show { json: true, .. }))
    }
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    match &args.action {
        Some(Action::Check { config, all, json: true }) => check_json(config, *all, out),
        Some(Action::Check { config, all, json: false }) => check(config, *all, out),
        Some(Action::Show { watched, json }) => show_in_force(watched, *json, out),
        None => list(args, out),
    }
}

fn show_in_force(watched: &WatchedArgs, as_json: bool, out: &mut dyn Write) -> Outcome {
    let mut seen = watched::open(watched)?.observe()?;
    if seen.process.observed_by != ObservedBy::Writer {
        let (stored, defaults) = (watched::stored_options(watched)?, DbOptions::default());
        let both = stored.settings().into_iter().zip(defaults.settings());
        // Without what this command opens by.
        let differing = both.filter(|((row, now), (_, default))| {
            row.name != "ignore_unsupported_options" && now.text() != default.text()
        });
        let option = |((row, now), (_, default)): ((&Row, &dyn Setting), (_, &dyn Setting))| {
            let mut option = ObservedOption::default();
            (option.name, option.value, option.default) = (row.name.to_owned(), now.text(), default.text());
            option.is_mutable = row.change == Change::Mutable;
            option
        };
        seen.options.retain(|option| option.family.is_some());
        seen.options.splice(0..0, differing.map(option));
    }
    if as_json {
        return json::print(&json!({ "observed_by": seen.process.observed_by, "options": seen.options }), out);
    }
    let differing = live::options::shown(&seen.options, &seen.options, &[], DEFAULT_FAMILY);
    if differing.is_empty() {
        return Ok(writeln!(out, "every option has its default")?);
    }
    let of = |option: &Shown| match &option.family {
        Some(family) => format!("family \"{}\"", bytes::text(&name::bytes(family))),
        None => "database".to_owned(),
    };
    let mut group = None;
    for option in &differing {
        if group.replace(of(option)).is_none_or(|before| before != of(option)) {
            writeln!(out, "{}", of(option))?;
        }
        let Shown { name, text, default, is_mutable, .. } = option;
        let text = printable(text);
        let default = if default.is_empty() { "nothing" } else { default };
        writeln!(out, "  {name} = {text} (default {default}; changes {})", live::options::when(*is_mutable))?;
    }
    Ok(())
}

fn check(config: &str, all: bool, out: &mut dyn Write) -> Outcome {
    let (path, name) = split_config(config);
    let path = path.as_path();
    let config = Config::from_file(&*RealVfs::new(), path, &Start::default())?;
    for warning in config.warnings() {
        writeln!(out, "warning: {warning}")?;
    }
    match name {
        Some(name) => {
            write!(out, "{}", config.database(Some(name)).map_err(|error| error.at_path(path))?.describe(all))?
        }
        None => config.databases().iter().try_for_each(|database| write!(out, "{}", database.describe(all)))?,
    }
    match config.database(None) {
        Ok(meant) if name.is_none() => writeln!(out, "opened where no name is given: {}", meant.name)?,
        _ if config.databases().is_empty() => writeln!(out, "no database is described")?,
        _ => {}
    }
    Ok(())
}

fn check_json(config: &str, all: bool, out: &mut dyn Write) -> Outcome {
    let (path, name) = split_config(config);
    let path = path.as_path();
    let config = Config::from_file(&*RealVfs::new(), path, &Start::default())?;
    let databases = match name {
        Some(name) => vec![config.database(Some(name)).map_err(|error| error.at_path(path))?],
        None => config.databases().iter().collect(),
    };
    json::print(&json::configuration(&config, &databases, all), out)
}

/// Options by group; a group's title begins with its name.
fn groups() -> [(&'static str, Vec<Documented>); 5] {
    [
        ("DBOptions: options of the whole database", rows::<DbOptions>()),
        ("CFOptions: options of a column family", rows::<FamilyOptions>()),
        ("BlockBasedTable: tables, inside block_based_table_factory={...}", rows::<TableOptions>()),
        ("ToplingZipTable: inside table_factory=ToplingZipTable:{...}", rows::<ZipTableOptions>()),
        ("VecAutoSortTable: inside table_factory=VecAutoSortTable:{...}", rows::<AutoSortOptions>()),
    ]
}

fn list(args: &Args, out: &mut dyn Write) -> Outcome {
    let mut shown = 0;
    let mut listed = Vec::new();
    for (title, rows) in groups() {
        let rows: Vec<_> = rows.into_iter().filter(|row| row.name.contains(&args.text)).collect();
        if args.json {
            let group = title.split(':').next().unwrap_or_default();
            listed.extend(rows.iter().map(|row| json::option(group, row)));
            continue;
        }
        if !rows.is_empty() {
            writeln!(out, "{}{title}", if shown > 0 { "\n" } else { "" })?;
        }
        shown += rows.len();
        rows.iter().try_for_each(|row| show(row, out))?;
    }
    if args.json {
        return json::print(&json!({ "options": listed }), out);
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
