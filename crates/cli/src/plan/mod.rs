//! `spillway plan`.

mod model;

use std::io::Write;
use std::time::Duration;

use serde_json::json;
use spillway::internal::options::CompactionStyle;

use self::model::{Load, Needs};
use crate::failure::{Failure, Outcome};
use crate::{human, json};

/// Estimates memory, disk, bytes written and processors for a load, and prints options for it. Opens no database.
///
/// The figures are arithmetic over constants that were measured with random keys; docs/operations.md has both. Sizes are of
/// one column family on one disk.
#[derive(clap::Args)]
#[command(
    group(clap::ArgGroup::new("kept").args(["entries", "keep"]).required(true).multiple(true)),
    after_help = "Examples:
  spillway plan --writes 20K --entries 500M
  spillway plan --writes 20K --keep 30d --value 400 --ratio 0.5
  spillway plan --writes 200K --keep 3d --style fifo --json"
)]
pub struct Args {
    /// Writes a second, on average. K, M and G are powers of 1000.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    writes: f64,
    /// Different keys at most: further writes are updates.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    entries: Option<f64>,
    /// Time that an entry is kept: 90m, 12h, 30d.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    keep: Option<Duration>,
    /// Bytes of a key.
    #[arg(long, value_name = "SIZE", default_value = "16", value_parser = human::parse_bytes)]
    key: u64,
    /// Bytes of a value.
    #[arg(long, value_name = "SIZE", default_value = "100", value_parser = human::parse_bytes)]
    value: u64,
    /// Compressed size over size, from 0.01 to 1; 1 for no compression.
    #[arg(long, value_name = "RATIO", default_value_t = 1.0, value_parser = |text: &str| parse_part(text, 0.01, 1.0))]
    ratio: f64,
    /// Part of the data that most reads ask for, in percent: what the block cache should hold.
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = |text: &str| parse_part(text, 0.0, 100.0))]
    hot: f64,
    /// Compaction style.
    #[arg(long, value_enum, default_value_t = Style::Level)]
    style: Style,
    /// Bytes of a memtable. By default it is full in ten seconds, within 64 MiB and 1 GiB.
    #[arg(long, value_name = "SIZE", value_parser = human::parse_bytes)]
    write_buffer: Option<u64>,
    /// Prints JSON: one line, described in docs/cli.md.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Style {
    Level,
    Universal,
    Fifo,
}

/// A positive number, with a suffix for thousands.
fn parse_count(text: &str) -> Result<f64, String> {
    const COUNT_MAX: f64 = 1e18;
    let upper = text.to_ascii_uppercase();
    let suffixes = [('K', 1e3), ('M', 1e6), ('G', 1e9)];
    let split = suffixes.iter().find_map(|&(suffix, factor)| Some((upper.strip_suffix(suffix)?, factor)));
    let (digits, factor) = split.unwrap_or((&upper, 1.0));
    let number = digits.parse::<f64>().map(|number| number * factor).ok();
    let number = number.filter(|number| (1e-3..=COUNT_MAX).contains(number));
    number.ok_or_else(|| "it is a number above 0, such as 20000, 20K or 1.5M".to_owned())
}

fn parse_time(text: &str) -> Result<Duration, String> {
    const YEARS_100_S: f64 = 100.0 * 366.0 * 86_400.0;
    let wrong = || "it is a number and a unit, s, m, h or d, such as 12h or 30d; a hundred years at most".to_owned();
    let units = [('s', 1.0), ('m', 60.0), ('h', 3600.0), ('d', 86_400.0)];
    let split = units.iter().find_map(|&(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let (digits, seconds_per) = split.ok_or_else(wrong)?;
    let number = digits.parse::<f64>().map_err(|_| wrong())?;
    let seconds = Some(number * seconds_per).filter(|seconds| (1.0..=YEARS_100_S).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(wrong)
}

fn parse_part(text: &str, min: f64, max: f64) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("it is a number from {min} to {max}"))
}

impl Args {
    fn load(&self) -> Result<Load, Failure> {
        const KEY_BYTES_MAX: u64 = 8 << 20;
        const VALUE_BYTES_MAX: u64 = 3 << 30;
        const BUFFER_BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=64 << 30;
        let refused = |what: &str| Err(Failure::refused(what.to_owned()));
        if self.style == Style::Fifo && self.keep.is_none() {
            return refused("FIFO compaction deletes by age: it needs --keep");
        }
        if !(1..=KEY_BYTES_MAX).contains(&self.key) || self.value > VALUE_BYTES_MAX {
            return refused("a key has 1 byte to 8 MiB, a value 3 GiB at most");
        }
        if self.write_buffer.is_some_and(|bytes| !BUFFER_BYTES.contains(&bytes)) {
            return refused("--write-buffer is from 64 KiB to 64 GiB");
        }
        Ok(Load {
            writes: self.writes,
            key_bytes: self.key as f64,
            value_bytes: self.value as f64,
            entries: self.entries,
            keep: self.keep,
            style: match self.style {
                Style::Level => CompactionStyle::Level,
                Style::Universal => CompactionStyle::Universal,
                Style::Fifo => CompactionStyle::Fifo,
            },
            ratio: self.ratio,
            hot: self.hot / 100.0,
            write_buffer_bytes: self.write_buffer.map(|bytes| bytes as f64),
        })
    }
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let load = args.load()?;
    let needs = load.needs();
    if args.json {
        return show_json(&load, &needs, out);
    }
    show(&load, &needs, out)
}

fn bytes(number: f64) -> String {
    human::bytes(number.round() as u64)
}

/// `51,840,000`, `51.84 billion`.
fn many(number: f64) -> String {
    match number {
        ..1e9 => human::count(number.round() as u64),
        ..1e12 => format!("{:.2} billion", number / 1e9),
        _ => format!("{:.2} trillion", number / 1e12),
    }
}

fn show(load: &Load, needs: &Needs, out: &mut dyn Write) -> Outcome {
    let (disk, memory, writes) = (&needs.disk, &needs.memory, &needs.writes);
    let stored_per_s = needs.data_per_s * writes.total();
    let mut line = |name: &str, total: String, parts: String| writeln!(out, "{name:<16} {total:>12}   {parts}");
    line("data", bytes(needs.data_bytes), format!("keys and values of {} entries", many(needs.entries)))?;
    line(
        "disk",
        bytes(disk.total()),
        parts(&[
            ("tables", disk.tables),
            ("compactions under way", disk.compactions),
            ("logs", disk.logs),
            ("reserve", disk.reserve),
        ]),
    )?;
    line(
        "memory",
        bytes(memory.needed()),
        parts(&[("memtables", memory.memtables), ("indexes", memory.indexes), ("filters", memory.filters)]),
    )?;
    let hot = format!("to keep {}% of the data in the block cache (--hot)", load.hot * 100.0);
    line("  for reads", bytes(memory.blocks), hot)?;
    let of_each = format!(
        "{:.1} bytes for each of {}/s: log {:.1}, flushes {:.1}, compactions {:.1}",
        writes.total(),
        bytes(needs.data_per_s),
        writes.log,
        writes.flushes,
        writes.compactions
    );
    line("written to disk", format!("{}/s", bytes(stored_per_s)), of_each)?;
    line("  in a day", bytes(stored_per_s * 86_400.0), "for the disk's endurance".to_owned())?;
    line("processors", format!("{:.2}", needs.compaction_processors), "kept busy by compactions".to_owned())?;
    line("opening", human::seconds(needs.replay), "after a crash, at most: the log is replayed".to_owned())?;
    writeln!(out, "\noptions: {}", options(load, needs))?;
    for note in notes(load, needs) {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

fn parts(parts: &[(&str, f64)]) -> String {
    let shown = parts.iter().filter(|(_, number)| *number >= 0.5);
    shown.map(|(name, number)| format!("{name} {}", bytes(*number))).collect::<Vec<_>>().join(", ")
}

/// Threads for flushes and compactions: twice what is busy on average.
fn jobs(needs: &Needs) -> u64 {
    const JOBS_MIN: f64 = 2.0;
    const JOBS_MAX: f64 = 64.0;
    (needs.compaction_processors * 2.0 + 1.0).ceil().clamp(JOBS_MIN, JOBS_MAX) as u64
}

/// The options that the figures stand on, as an option string.
fn options(load: &Load, needs: &Needs) -> String {
    let buffer = needs.write_buffer_bytes.round() as u64;
    let mut text = format!(
        "write_buffer_size={buffer};max_background_jobs={};block_based_table_factory={{block_cache={};\
         filter_policy=bloomfilter:10:false;cache_index_and_filter_blocks=true}}",
        jobs(needs),
        needs.memory.cache().round() as u64
    );
    let ttl_s = load.keep.map(|keep| keep.as_secs());
    match (load.style, ttl_s) {
        (CompactionStyle::Fifo, Some(ttl_s)) => {
            // By age, not by size.
            let most = (needs.disk.tables * 2.0).round() as u64;
            text += &format!(
                ";compaction_style=kCompactionStyleFIFO;ttl={ttl_s};compaction_options_fifo={{max_table_files_size={most}}}"
            );
        }
        (CompactionStyle::Universal, _) => text += ";compaction_style=kCompactionStyleUniversal",
        _ => text += &format!(";max_bytes_for_level_base={}", 4 * buffer),
    }
    text
}

/// What a reader of the figures should not miss.
fn notes(load: &Load, needs: &Needs) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if load.keep.is_some() && load.style != CompactionStyle::Fifo {
        notes.push(
            "old entries are taken to be deleted by the program, or by a compaction filter; deletions are writes too",
        );
    }
    if needs.compaction_processors > 8.0 {
        notes.push("so many compactions want several databases, larger memtables, or universal compaction");
    }
    notes
}

fn show_json(load: &Load, needs: &Needs, out: &mut dyn Write) -> Outcome {
    let whole = |number: f64| number.round() as u64;
    let (disk, memory, writes) = (&needs.disk, &needs.memory, &needs.writes);
    let value = json!({
        "entries": whole(needs.entries),
        "data_bytes": whole(needs.data_bytes),
        "disk_bytes": whole(disk.total()),
        "disk": {
            "tables": whole(disk.tables), "compactions": whole(disk.compactions), "logs": whole(disk.logs),
            "reserve": whole(disk.reserve),
        },
        "memory_bytes": whole(memory.needed() + memory.blocks),
        "memory": {
            "memtables": whole(memory.memtables), "indexes": whole(memory.indexes), "filters": whole(memory.filters),
            "blocks": whole(memory.blocks),
        },
        "data_bytes_per_s": whole(needs.data_per_s),
        "written_bytes_per_s": whole(needs.data_per_s * writes.total()),
        "written_per_byte": writes.total(),
        "written_per_byte_by": { "log": writes.log, "flushes": writes.flushes, "compactions": writes.compactions },
        "compaction_processors": needs.compaction_processors,
        "levels": needs.levels,
        "replay_s": needs.replay.as_secs_f64(),
        "options": options(load, needs),
        "notes": notes(load, needs),
    });
    json::print(&value, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times_have_units() {
        assert_eq!(["20000", "20K", "1.5m", "2G"].map(|text| parse_count(text).unwrap()), [2e4, 2e4, 1.5e6, 2e9]);
        assert!(
            ["", "0", "-1", "K", "NaN", "inf", "1T", "1e30", "5é"].into_iter().all(|text| parse_count(text).is_err())
        );
        let seconds = ["90m", "12h", "30d", "1.5s"].map(|text| parse_time(text).unwrap().as_secs_f64());
        assert_eq!(seconds, [5400.0, 43_200.0, 2_592_000.0, 1.5]);
        assert!(["", "30", "0d", "-1d", "1e9d", "d", "NaNd", "5é"].into_iter().all(|text| parse_time(text).is_err()));
        assert!(parse_part("0", 0.01, 1.0).is_err() && parse_part("1", 0.01, 1.0).is_ok());
    }
}
