//! `spillway metrics` and `spillway advise`.

use std::io::Write;
use std::time::Duration;

use serde_json::json;
use spillway::internal::ErrorKind;
use spillway::internal::vfs::RealVfs;
use spillway::observe::{Advice, AdviceSeverity, Attached, Observation};

use crate::database::{Access, DatabaseArgs};
use crate::failure::{Outcome, note};
use crate::json;

/// Prints the database's metrics as OpenMetrics text, for Prometheus.
///
/// A process that has the database open with observe_socket=true is asked; otherwise the files are read, which know neither
/// waits nor reads nor running jobs. The label observed_by of spillway_info says which: writer or reader.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  spillway metrics --db /tmp/people > people.prom")]
pub struct MetricsArgs {
    #[command(flatten)]
    database: DatabaseArgs,
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
    database: DatabaseArgs,
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
    let text = match attached(&args.database)? {
        Some(mut attached) => attached.metrics()?,
        None => of_files(&args.database)?.to_metrics(),
    };
    Ok(out.write_all(text.as_bytes())?)
}

pub fn advise(args: &AdviseArgs, out: &mut dyn Write) -> Outcome {
    let (observed, before) = match attached(&args.database)? {
        Some(mut attached) if args.seconds > 0 => {
            let before = attached.observe()?;
            RealVfs::new().sleep(Duration::from_secs(args.seconds));
            (Attached::connect(&args.database.locate()?.dir)?.observe()?, Some(before))
        }
        Some(mut attached) => (attached.observe()?, None),
        None => (of_files(&args.database)?, None),
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
