//! `rocksdb.stats` and its parts, in RocksDB's form for parsers: the table of levels with W-Amp, uptime, cumulative and
//! interval figures. An interval begins at the last read of the same text.
//!
//! Not measured here, and 0: processor time, bytes before compression, blob files. Keys of ingested tables are left
//! out. Stalls are of writers of all families. There are no commit groups: each write is one.

use std::fmt::Write;
use std::time::Duration;

use super::properties::Reported;
use super::text;
use crate::compaction::levels::pending_bytes;
use crate::engine::reported::{ReportedDatabase, ReportedFamily, Writes};
use crate::order::stall::StallCause;
use crate::version::work::{LevelWork, WorkDone};

const MIB: f64 = (1 << 20) as f64;
const GIB: f64 = (1 << 30) as f64;

/// One row of the table of levels.
struct Row<'a> {
    name: &'a str,
    files: usize,
    busy: usize,
    bytes: u64,
    score: f64,
    write_amplification: f64,
    work: LevelWork,
}

/// Counts shortened as in RocksDB.
fn short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{}K", number / 1_000),
        10_000_000..10_000_000_000 => format!("{}M", number / 1_000_000),
        _ => format!("{}G", number / 1_000_000_000),
    }
}

/// Bytes shortened as in RocksDB.
pub(super) fn short_bytes(bytes: u64) -> String {
    let mut size = bytes as f64 / 1024.0;
    for unit in ["KB", "MB", "GB"] {
        if size < 1024.0 {
            return format!("{size:.2} {unit}");
        }
        size /= 1024.0;
    }
    format!("{size:.2} TB")
}

fn clock(micros: u64) -> String {
    let (hours, minutes, seconds) = (micros / 3_600_000_000, micros / 60_000_000 % 60, micros % 60_000_000);
    format!("{hours:02}:{minutes:02}:{:.3} H:M:S", seconds as f64 / 1e6)
}

/// A ratio; 0 if the divisor is 0.
fn ratio(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

fn per_second(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / MIB / time.as_secs_f64().max(0.001)
}

fn heading(family: &str, first: &str) -> String {
    let columns = "    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) WPreComp(GB) Wnew(GB) Moved(GB) W-Amp \
                   Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop Rblob(GB) Wblob(GB)";
    let line = "-".repeat(first.len() + columns.len());
    format!("\n** Compaction Stats [{family}] **\n{first}{columns}\n{line}\n")
}

impl Row<'_> {
    fn line(&self) -> String {
        let work = &self.work;
        let seconds = work.micros as f64 / 1e6;
        let rate = |bytes: u64| bytes as f64 / MIB / ((work.micros + 1) as f64 / 1e6);
        let new_bytes = work.written_bytes as f64 - work.read_level_bytes as f64;
        let mut line = format!("{:>4} {:6}/{:<3} {:>10} ", self.name, self.files, self.busy, short_bytes(self.bytes));
        let _ = write!(line, "{:5.1} {:8.1} ", self.score, work.read_bytes() as f64 / GIB);
        let _ = write!(line, "{:7.1} ", work.read_above_bytes as f64 / GIB);
        let _ = write!(line, "{:8.1} ", work.read_level_bytes as f64 / GIB);
        let _ = write!(line, "{:9.1} {:9.1} ", work.written_bytes as f64 / GIB, 0.0);
        let _ = write!(line, "{:8.1} {:9.1} ", new_bytes / GIB, work.moved_bytes as f64 / GIB);
        let _ = write!(line, "{:5.1} ", self.write_amplification);
        let _ = write!(line, "{:8.1} {:8.1} ", rate(work.read_bytes()), rate(work.written_bytes));
        let _ = write!(line, "{seconds:9.2} {:17.2} {:9} ", 0.0, work.jobs);
        let _ = write!(line, "{:8.3} ", ratio(work.micros, work.jobs) / 1e6);
        let _ = write!(line, "{:>7} {:>6} ", short(work.entries_read), short(work.entries_dropped));
        let _ = writeln!(line, "{:9.1} {:9.1}", 0.0, 0.0);
        line
    }
}

/// The rows of levels with tables or writes, and their sum.
fn level_rows(source: &Reported<'_>, done: &WorkDone) -> String {
    let version = &source.view.version;
    let incoming = done.flushes.written_bytes + done.ingested_bytes;
    let mut text = String::new();
    let (mut files, mut busy_files) = (0, 0);
    for level in super::levels_of(source.core, source.family) {
        let work = done.of_level(level.level);
        if level.files == 0 && work.jobs == 0 {
            continue;
        }
        let busy = source.busy_files(level.level);
        let input = if level.level == 0 { incoming } else { work.read_above_bytes };
        (files, busy_files) = (files + level.files, busy_files + busy);
        let row = Row {
            name: &format!("L{}", level.level),
            files: level.files,
            busy,
            bytes: level.bytes,
            score: level.score.unwrap_or(0.0),
            write_amplification: ratio(work.written_bytes, input),
            work,
        };
        text += &row.line();
    }
    let work = done.all();
    let write_amplification = ratio(work.written_bytes, incoming);
    let bytes = version.total_bytes();
    text + &Row { name: "Sum", files, busy: busy_files, bytes, score: 0.0, write_amplification, work }.line()
}

/// The same work by thread priority: flushes high, compactions low.
fn priority_rows(done: &WorkDone) -> String {
    let rows = [("Low", done.of_compactions()), ("High", done.flushes)].into_iter().filter(|(_, work)| work.jobs > 0);
    let row = |(name, work)| Row { name, files: 0, busy: 0, bytes: 0, score: 0.0, write_amplification: 0.0, work };
    rows.map(|named| row(named).line()).collect()
}

/// All of a family's figures.
pub(super) fn of_family(source: &Reported<'_>) -> String {
    let (done, uptime) = (source.family.work().done(), source.core.uptime());
    let waits: u64 = source.core.stall.counts().iter().map(|(_, waits, _)| *waits).sum();
    let now = ReportedFamily { uptime, work: done, waits };
    let before = source.engine.reported.lock().families.insert(source.family.id(), now).unwrap_or_default();
    let name = source.family.name();
    let mut text = heading(name, "Level") + &level_rows(source, &done);
    let (flushed, ingested) = (done.flushes.written_bytes, done.ingested_bytes);
    let new_flushed = flushed.saturating_sub(before.work.flushes.written_bytes);
    let new_ingested = ingested.saturating_sub(before.work.ingested_bytes);
    let work = done.all().since(&before.work.all());
    let write_amplification = ratio(work.written_bytes, new_flushed + new_ingested);
    text += &Row { name: "Int", files: 0, busy: 0, bytes: 0, score: 0.0, write_amplification, work }.line();
    text += &(heading(name, "Priority") + &priority_rows(&done));
    text += "\nBlob file count: 0, total size: 0.0 GB, garbage size: 0.0 GB, space amp: 0.0\n\n";
    let interval = uptime.saturating_sub(before.uptime);
    text += &uptime_line(uptime, interval);
    let gib = |bytes: u64| bytes as f64 / GIB;
    let _ = writeln!(text, "Flush(GB): cumulative {:.3}, interval {:.3}", gib(flushed), gib(new_flushed));
    let _ = writeln!(text, "AddFile(GB): cumulative {:.3}, interval {:.3}", gib(ingested), gib(new_ingested));
    let mut count = |what: &str, now: u64, before: u64| {
        let _ = writeln!(text, "AddFile({what}): cumulative {now}, interval {}", now.saturating_sub(before));
    };
    count("Total Files", done.ingested.iter().sum(), before.work.ingested.iter().sum());
    count("L0 Files", done.ingested(0), before.work.ingested(0));
    text += &compaction_line("Cumulative", &done.all(), uptime);
    text += &compaction_line("Interval", &work, interval);
    let pending = pending_bytes(&source.view.version, &source.family.options());
    let _ = writeln!(text, "Estimated pending compaction bytes: {pending}");
    text += &family_waits(source);
    if waits > 0 {
        let _ = writeln!(text, "interval: {} total count", waits.saturating_sub(before.waits));
    }
    text + &text::memtables(source)
}

fn uptime_line(uptime: Duration, interval: Duration) -> String {
    let (total, interval) = (uptime.as_secs_f64(), interval.as_secs_f64());
    format!("Uptime(secs): {total:.1} total, {interval:.1} interval\n")
}

fn compaction_line(which: &str, work: &LevelWork, time: Duration) -> String {
    let (read, written) = (work.read_bytes(), work.written_bytes);
    format!(
        "{which} compaction: {:.2} GB write, {:.2} MB/s write, {:.2} GB read, {:.2} MB/s read, {:.1} seconds\n",
        written as f64 / GIB,
        per_second(written, time),
        read as f64 / GIB,
        per_second(read, time),
        work.micros as f64 / 1e6
    )
}

/// Counts of delayed and stopped writers, by cause.
pub(super) fn family_waits(source: &Reported<'_>) -> String {
    let stall = &source.core.stall;
    let causes = [
        ("l0-file-count-limit", StallCause::Level0),
        ("memtable-limit", StallCause::Memtables),
        ("pending-compaction-bytes", StallCause::PendingCompaction),
    ];
    let (mut text, mut all_delays, mut all_stops) = (String::from("Write Stall (count): "), 0, 0);
    for (name, cause) in causes {
        let (delays, stops) = stall.delays_and_stops(cause);
        (all_delays, all_stops) = (all_delays + delays, all_stops + stops);
        let _ = write!(text, "{name}-delays: {delays}, {name}-stops: {stops}, ");
    }
    text + &format!("total-delays: {all_delays}, total-stops: {all_stops}\n")
}

pub(super) fn database_waits(source: &Reported<'_>) -> String {
    let (_, stops) = source.core.stall.delays_and_stops(StallCause::Memory);
    format!("Write Stall (count): write-buffer-manager-limit-stops: {stops}\n")
}

/// The figures of the whole database.
pub(super) fn of_database(source: &Reported<'_>) -> String {
    let core = source.core;
    let [writes, keys, bytes, logged, logged_bytes] = source.engine.committer.counts.sums();
    let writes = Writes { writes, keys, bytes, logged, logged_bytes, syncs: core.logs.syncs() };
    let stalled_us = core.stall.counts().iter().map(|(_, _, micros)| *micros).sum();
    let now = ReportedDatabase { uptime: core.uptime(), writes, stalled_us };
    let before = std::mem::replace(&mut source.engine.reported.lock().database, now);
    let interval = ReportedDatabase {
        uptime: now.uptime.saturating_sub(before.uptime),
        writes: now.writes.since(&before.writes),
        stalled_us: stalled_us.saturating_sub(before.stalled_us),
    };
    let mut text = String::from("\n** DB Stats **\n") + &uptime_line(now.uptime, interval.uptime);
    text += &now.lines("Cumulative", GIB, "GB");
    text += &interval.lines("Interval", MIB, "MB");
    text + &database_waits(source) + &text::database(source)
}

impl ReportedDatabase {
    fn lines(&self, which: &str, unit: f64, unit_name: &str) -> String {
        let Writes { writes, keys, bytes, logged, logged_bytes, syncs } = self.writes;
        let each = if writes == 0 { 0.0 } else { 1.0 };
        let mut text = format!(
            "{which} writes: {0} writes, {1} keys, {0} commit groups, {each:.1} writes per commit group, ",
            short(writes),
            short(keys)
        );
        let ingested = bytes as f64 / unit;
        let _ = writeln!(text, "ingest: {ingested:.2} {unit_name}, {:.2} MB/s", per_second(bytes, self.uptime));
        let _ = writeln!(
            text,
            "{which} WAL: {} writes, {} syncs, {:.2} writes per sync, written: {:.2} GB, {:.2} MB/s",
            short(logged),
            short(syncs),
            logged as f64 / (syncs as f64).max(1.0),
            logged_bytes as f64 / GIB,
            per_second(logged_bytes, self.uptime)
        );
        let percent = self.stalled_us as f64 / 1e4 / self.uptime.as_secs_f64().max(0.001);
        let _ = writeln!(text, "{which} stall: {}, {percent:.1} percent", clock(self.stalled_us));
        text
    }
}

impl Writes {
    fn since(&self, before: &Writes) -> Writes {
        Writes {
            writes: self.writes.saturating_sub(before.writes),
            keys: self.keys.saturating_sub(before.keys),
            bytes: self.bytes.saturating_sub(before.bytes),
            logged: self.logged.saturating_sub(before.logged),
            logged_bytes: self.logged_bytes.saturating_sub(before.logged_bytes),
            syncs: self.syncs.saturating_sub(before.syncs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shortened_as_rocksdb_does() {
        assert_eq!([9_999, 10_000, 12_345_678, 99_999_999_999].map(short), ["9999", "10K", "12M", "99G"]);
        let sizes = [0, 1298, 4 << 20, 3 << 40].map(short_bytes);
        assert_eq!(sizes, ["0.00 KB", "1.27 KB", "4.00 MB", "3.00 TB"]);
        assert_eq!(clock(3_723_004_000), "01:02:3.004 H:M:S");
    }

    /// Each figure stands under its heading, as RocksDB's own table has it.
    #[test]
    fn a_row_has_rocksdbs_layout() {
        let work = LevelWork {
            jobs: 4,
            micros: 2_000_000,
            read_above_bytes: 1 << 30,
            read_level_bytes: 2 << 30,
            written_bytes: 3 << 30,
            moved_bytes: 0,
            entries_read: 20_000,
            entries_dropped: 7,
        };
        let row = Row { name: "L1", files: 5, busy: 2, bytes: 1 << 20, score: 0.5, write_amplification: 3.0, work };
        let expected = "  L1      5/2      1.00 MB   0.5      3.0     1.0      2.0       3.0       0.0      1.0       0.0   3.0 \
                        \u{20} 1536.0   1536.0      2.00              0.00         4    0.500     20K      7       0.0       0.0\n";
        assert_eq!(row.line(), expected);
        let headings = heading("default", "Level");
        let columns = headings.lines().nth(2).map(|line| line.split_whitespace().count());
        assert_eq!(columns, Some(22));
        // "1.00 MB" is two words, "5/2" one.
        assert_eq!(row.line().split_whitespace().count(), 23);
    }
}
