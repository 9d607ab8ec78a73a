//! `spillway top`.

mod screen;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use live::Source;
use live::history::{History, Minutes, Point};
use live::verdict::Judge;
use serde_json::json;
use spillway::internal::vfs::RealVfs;
use spillway::internal::{Error, ErrorKind};

use self::screen::Screen;
use crate::failure::{Failure, Outcome, note};
use crate::interrupt::Interrupt;
use crate::json;
use crate::watched::{self, WatchedArgs};

/// Shows a database live in the terminal: health, writes and their waits, reads, memory, levels and jobs. Ctrl-C ends.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway top --db /tmp/people
  spillway top --db /tmp/people --json --count 10 | jq .point.writes

Debt: how far compactions are behind; from 0 % on writers are slowed down, at 100 % stopped.

The process that has the database open shows itself if its option observe_socket is set; else the figures are those of the
directory's files: families, levels and logs. Where the process ends, the next one is waited for, but with --count.")]
pub struct Args {
    #[command(flatten)]
    watched: WatchedArgs,
    /// Seconds between two readings, 0.1 at least.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Ends after so many readings.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Prints JSON: a line for each reading, with the rates since the one before, the verdict and the reading.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    if !(0.1..=3600.0).contains(&args.interval) {
        return Err(Failure::refused("--interval: 0.1 to 3600 seconds"));
    }
    let source = watched::open(&args.watched)?;
    let interrupt = Interrupt::default();
    interrupt.listen()?;
    match args.json || !io::stdout().is_terminal() {
        true => print_lines(args, &*source, &interrupt, out),
        false => show(args, &*source, &interrupt),
    }
}

/// Time between two looks for the next process.
const AWAY_INTERVAL: Duration = Duration::from_millis(200);

/// Takes readings until the end, and hands each to `see`.
fn follow(
    args: &Args,
    source: &dyn Source,
    interrupt: &Interrupt,
    see: &mut dyn FnMut(&screen::Seen<'_>) -> Outcome,
) -> Outcome {
    let vfs = RealVfs::new();
    let (mut history, mut judge) = (History::default(), Judge::default());
    let (mut last, mut minutes) = (None, Minutes::default());
    let mut taken = 0;
    loop {
        let now = match source.observe() {
            Ok(now) => now,
            // Without an end of its own the command waits for the next process. Its readings begin anew.
            Err(error) if last.is_some() && args.count.is_none() && is_gone(&error) => {
                note(&format!("{error}; waiting for the next process"));
                vfs.sleep(AWAY_INTERVAL);
                if interrupt.is_asked() {
                    return Ok(());
                }
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let point = last.as_ref().and_then(|before| Point::between(before, &now));
        if let Some(point) = point.clone() {
            history.push(point);
        }
        let verdict = judge.judge(&now, &history, &now.advice(minutes.earlier()));
        see(&screen::Seen { now: &now, point: point.as_ref(), history: &history, verdict: &verdict })?;
        minutes.note(&now);
        last = Some(now);
        taken += 1;
        let ends = vfs.now() + Duration::from_secs_f64(args.interval);
        while vfs.now() < ends {
            if interrupt.is_asked() || args.count == Some(taken) {
                return Ok(());
            }
            vfs.sleep(Duration::from_millis(50).min(ends.saturating_sub(vfs.now())));
        }
    }
}

/// Whether the process that was asked has gone, or its database was closed.
fn is_gone(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Closed | ErrorKind::Unsupported | ErrorKind::Busy)
}

fn print_lines(args: &Args, source: &dyn Source, interrupt: &Interrupt, out: &mut dyn Write) -> Outcome {
    follow(args, source, interrupt, &mut |seen| {
        if args.json {
            json::print(&json!({ "point": seen.point, "verdict": seen.verdict, "observation": seen.now }), out)?;
        } else {
            let screen = Screen { width: 100, height: usize::MAX, colours: false };
            screen.lines(seen).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            writeln!(out)?;
        }
        Ok(out.flush()?)
    })
}

/// The other screen of the terminal, until it is dropped.
struct OtherScreen;

impl OtherScreen {
    fn enter() -> io::Result<Self> {
        write!(io::stdout(), "\x1b[?1049h\x1b[?25l")?;
        Ok(OtherScreen)
    }
}

impl Drop for OtherScreen {
    fn drop(&mut self) {
        let _ = write!(io::stdout(), "\x1b[?25h\x1b[?1049l"); // nobody is left to be told
        let _ = io::stdout().flush();
    }
}

fn show(args: &Args, source: &dyn Source, interrupt: &Interrupt) -> Outcome {
    let _other = OtherScreen::enter()?;
    let colours = crate::colours(&io::stdout());
    follow(args, source, interrupt, &mut |seen| {
        let (height, width) = console::Term::stdout().size();
        let screen = Screen { width: width.into(), height: height.into(), colours };
        let text: Vec<_> = screen.lines(seen).iter().map(|line| format!("{line}\x1b[K")).collect();
        let mut stdout = io::stdout().lock();
        write!(stdout, "\x1b[H{}\x1b[J", text.join("\r\n"))?;
        Ok(stdout.flush()?)
    })
}
