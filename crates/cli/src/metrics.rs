//! `spillway metrics` and `spillway advise`.

use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;
use spillway::internal::ErrorKind;
use spillway::internal::vfs::RealVfs;
use spillway::observe::{Advice, AdviceSeverity, Attached, Observation};

use crate::database::{Access, DatabaseArgs, PlaceArgs};
use crate::failure::{Outcome, note};
use crate::json;

/// Prints the database's metrics as text for Prometheus.
///
/// A process that has the database open with observe_socket=true is asked; otherwise the files are read, which know neither
/// waits nor reads nor running jobs. The label observed_by of spillway_info says which: writer or reader.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway metrics --db /tmp/people
  spillway metrics --db /tmp/people --format prometheus > people.prom")]
pub struct MetricsArgs {
    /// Form of the text.
    #[arg(long, value_enum, default_value_t = Form::Openmetrics)]
    format: Form,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// OpenMetrics 1.0, for Prometheus itself.
    Openmetrics,
    /// Prometheus' text format 0.0.4, for node_exporter's textfile collector.
    Prometheus,
}

/// Says what could be better: what was seen, and the option to change.
///
/// A process that has the database open with observe_socket=true is asked, twice with --seconds between; otherwise the
/// files are read, which tell little.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway advise --db /tmp/people
  spillway advise --db /tmp/people --seconds 10 --json")]
pub struct AdviseArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Looks at so many seconds from now on, not at everything since the open.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=3600))]
    seconds: u64,
    /// Prints JSON: one line, described in docs/cli.md.
    #[arg(long)]
    pub json: bool,
}

/// The socket of the database's process; `None` without one.
fn attached(database: &DatabaseArgs) -> Outcome<Option<Attached>> {
    match Attached::connect(&database.locate()?.dir) {
        Ok(attached) => Ok(Some(attached)),
        // Without a socket, or with one of a process that has died, the files have it all.
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Busy) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn of_files(database: &DatabaseArgs) -> Outcome<Observation> {
    let db = database.open(Access::Read)?;
    note("read from the files: a process that has the database open with observe_socket=true would tell more");
    Ok(db.observe())
}

pub fn metrics(args: &MetricsArgs, out: &mut dyn Write) -> Outcome {
    let database = args.place.database();
    let text = match attached(&database)? {
        Some(mut attached) => attached.metrics()?,
        None => of_files(&database)?.to_metrics(),
    };
    match args.format {
        Form::Openmetrics => Ok(out.write_all(text.as_bytes())?),
        Form::Prometheus => Ok(out.write_all(plain_text(&text).as_bytes())?),
    }
}

/// OpenMetrics text in the older form: its kinds only, heads by the samples' names, without units, exemplars and end.
fn plain_text(text: &str) -> String {
    let kind_of = |line: &str| line.strip_prefix("# TYPE ")?.split_once(' ').map(|(_, kind)| kind.to_owned());
    let (mut plain, mut kind) = (String::with_capacity(text.len()), String::new());
    for line in text.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT ")) {
        kind = kind_of(line).unwrap_or(kind);
        let (suffix, known) = match kind.as_str() {
            "counter" => ("_total", "counter"),
            "info" => ("_info", "gauge"),
            "stateset" => ("", "gauge"),
            other => ("", other),
        };
        let head = ["# TYPE ", "# HELP "].into_iter().find_map(|word| Some((word, line.strip_prefix(word)?)));
        let _ = match head.map(|(word, rest)| (word, rest.split_once(' ').unwrap_or((rest, "")))) {
            Some((word @ "# TYPE ", (name, _))) => writeln!(plain, "{word}{name}{suffix} {known}"),
            Some((word, (name, help))) => writeln!(plain, "{word}{name}{suffix} {help}"),
            // Of buckets the labels are numbers: what looks like an exemplar is one.
            None if kind == "histogram" => writeln!(plain, "{}", line.split(" # {").next().unwrap_or(line)),
            None => writeln!(plain, "{line}"),
        };
    }
    plain
}

pub fn advise(args: &AdviseArgs, out: &mut dyn Write) -> Outcome {
    let database = args.place.database();
    let (observed, before) = match attached(&database)? {
        Some(mut attached) if args.seconds > 0 => {
            let before = attached.observe()?;
            RealVfs::new().sleep(Duration::from_secs(args.seconds));
            (Attached::connect(&database.locate()?.dir)?.observe()?, Some(before))
        }
        Some(mut attached) => (attached.observe()?, None),
        None => (of_files(&database)?, None),
    };
    let advice = observed.advice(before.as_ref());
    if args.json {
        let by = observed.process.observed_by;
        return json::print(&json!({ "observed_by": by, "advice": advice }), out);
    }
    if advice.is_empty() {
        return Ok(writeln!(out, "nothing to advise")?);
    }
    advice.iter().try_for_each(|advice| show(advice, out))
}

fn show(advice: &Advice, out: &mut dyn Write) -> Outcome {
    let severity = match advice.severity {
        AdviceSeverity::Urgent => "urgent",
        AdviceSeverity::Warning => "warning",
        _ => "note",
    };
    let family = advice.family.as_ref().map_or_else(String::new, |family| format!(" [{}]", family.escape_debug()));
    writeln!(out, "{severity}: {}{family}: {}", advice.rule, advice.seen)?;
    writeln!(out, "  {}", advice.advice)?;
    if let (Some(option), Some(to)) = (&advice.option, &advice.to) {
        let from = advice
            .from
            .as_deref()
            .filter(|from| !from.is_empty())
            .map_or_else(String::new, |from| format!("{from} -> "));
        let when = if advice.is_mutable { "at run time" } else { "at the next open" };
        writeln!(out, "  {option}: {from}{to} ({when})")?;
    }
    Ok(())
}
