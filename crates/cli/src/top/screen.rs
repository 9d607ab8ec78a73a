//! A reading as lines of text, from 80 columns and 24 lines upwards.

use live::history::{History, Point};
use live::units::{Age, Bytes, Count, Micros};
use live::verdict::{Level, Sentence, Verdict};
use spillway::observe::{Observation, ObservedFamily, ObservedJobKind, WriteGate};

use crate::terminal::printable;

/// What is shown.
pub struct Seen<'a> {
    pub now: &'a Observation,
    /// `None` with the first reading.
    pub point: Option<&'a Point>,
    pub history: &'a History,
    pub verdict: &'a Verdict,
}

pub struct Screen {
    pub width: usize,
    pub height: usize,
    pub colours: bool,
}

const RED: &str = "31";
const YELLOW: &str = "33";
const GREEN: &str = "32";
const DIM: &str = "2";
const BOLD: &str = "1";

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Screen {
    pub fn lines(&self, seen: &Seen<'_>) -> Vec<String> {
        let mut lines = vec![self.heading(seen.now)];
        lines.extend(self.verdict(seen.verdict));
        lines.push(String::new());
        lines.extend(self.rates(seen));
        lines.extend(self.stocks(seen.now));
        lines.push(String::new());
        let jobs = self.jobs(seen.now);
        let room = self.height.saturating_sub(lines.len() + jobs.len() + 2).max(1);
        lines.extend(self.families(seen.now, room));
        lines.extend(jobs);
        lines.truncate(self.height);
        lines
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    fn cut(&self, text: &str) -> String {
        fit(text, self.width).trim_end().to_string()
    }

    fn heading(&self, now: &Observation) -> String {
        let process = &now.process;
        let right = format!("process {}, open for {}", process.pid, Age(process.uptime_us / 1_000_000));
        let left =
            fit(&format!("Spillway  {}", printable(&process.directory)), self.width.saturating_sub(right.len() + 2));
        self.paint(BOLD, &self.cut(&format!("{left}  {right}")))
    }

    /// The worst things: the first one whole, more of them in a third of the height.
    fn verdict(&self, verdict: &Verdict) -> Vec<String> {
        let room = (self.height / 3).max(3);
        let mut lines: Vec<String> = Vec::new();
        for (at, sentence) in verdict.sentences.iter().enumerate() {
            let more = self.sentence(sentence);
            if at > 0 && lines.len() + more.len() > room {
                let left = verdict.sentences.len() - at;
                lines.push(self.paint(DIM, &self.cut(&format!("      and {left} more"))));
                break;
            }
            lines.extend(more);
        }
        lines
    }

    /// A trouble and its remedy, wrapped.
    fn sentence(&self, sentence: &Sentence) -> Vec<String> {
        let (mark, code) = match sentence.level {
            Level::Good => ("well", GREEN),
            Level::Attention => ("LOOK", YELLOW),
            _ => ("BAD", RED),
        };
        let columns = self.width.saturating_sub(6);
        let text = wrap(&printable(&sentence.text), columns).into_iter().enumerate();
        let text = text.map(|(at, line)| (code, format!("{:<4}  {line}", if at == 0 { mark } else { "" })));
        let remedy = wrap(&printable(&sentence.remedy), columns).into_iter().map(|line| (DIM, format!("      {line}")));
        text.chain(remedy).map(|(code, line)| self.paint(code, &self.cut(&line))).collect()
    }

    fn rates(&self, seen: &Seen<'_>) -> Vec<String> {
        let Some(point) = seen.point else { return vec![self.paint(DIM, "rates come with the second reading")] };
        let us = |us: Option<u64>| us.map_or_else(|| "-".to_string(), |us| Micros(us).to_string());
        let line = |name: &str, text: String, value: &dyn Fn(&Point) -> f64| {
            let columns = if self.is_wide() { 24 } else { 10 };
            let spark = spark(seen.history, value, columns);
            let text = fit(&text, self.width.saturating_sub(10 + columns + 1));
            format!("{} {text} {spark}", self.paint(BOLD, &fit(name, 9)))
        };
        let mut waits: Vec<_> = point.stall_ms.iter().collect();
        waits.sort_by(|a, b| b.1.total_cmp(a.1));
        let causes: Vec<_> = waits.iter().take(2).map(|(cause, ms)| format!("{cause} {ms:.0}")).collect();
        // The median has no place in 80 columns.
        let median = if self.is_wide() { format!("  p50 {}", us(point.write_p50_us)) } else { String::new() };
        let writes = format!(
            "{:>8}/s {:>10}/s{median}  p99 {}  p99.9 {}",
            Count(point.writes).to_string(),
            Bytes(point.write_bytes as u64).to_string(),
            us(point.write_p99_us),
            us(point.write_p999_us)
        );
        let how = match point.stops > 0.0 {
            true => format!("; stopped {}/s", Count(point.stops.ceil())),
            false if !causes.is_empty() => "; slowed".to_string(),
            false => String::new(),
        };
        let stalls: Vec<_> = seen.now.writes.iter().flat_map(|writes| &writes.stalls).collect();
        let first = || Micros(stalls.iter().map(|stall| stall.waiting_us).max().unwrap_or_default());
        // A wait is in the sum once it has ended.
        let now = match stalls.iter().map(|stall| stall.waiting).sum::<u64>() {
            0 => String::new(),
            1 => format!("1 waits now, for {}  ", first()),
            waiting => format!("{waiting} wait now, the first for {}  ", first()),
        };
        let waits = format!("{:>8} ms/s  {now}{}{how}", Count(point.stalled_ms()).to_string(), causes.join(", "));
        let cache =
            point.cache_hit_rate.map_or_else(String::new, |rate| format!("  cache finds {:.0} %", rate * 100.0));
        let reads = match point.reads {
            Some(reads) => format!(
                "{:>8}/s  p99 {}  p99.9 {}{cache}",
                Count(reads).to_string(),
                us(point.get_p99_us),
                us(point.get_p999_us)
            ),
            None => format!("not counted without the option statistics{cache}"),
        };
        let bytes = |bytes: f64| format!("{}/s", Bytes(bytes as u64));
        let tables = format!(
            "flushed {}  compacted {}  ingested {}",
            bytes(point.flushed_bytes),
            bytes(point.compacted_bytes),
            bytes(point.ingested_bytes)
        );
        vec![
            line("writes", writes, &|point| point.writes),
            line("waits", waits, &Point::stalled_ms),
            line("reads", reads, &|point| point.reads.unwrap_or(0.0)),
            line("tables", tables, &|point| point.compacted_bytes),
        ]
    }

    /// What can fill up.
    fn stocks(&self, now: &Observation) -> Vec<String> {
        let (memory, logs, cache) = (&now.memory, &now.logs, &now.cache);
        let of = |value: u64, limit: u64| format!("{} {} of {}", gauge(value, limit, 10), Bytes(value), Bytes(limit));
        let memtables = match (memory.charged_bytes, memory.budget_bytes) {
            (Some(charged), Some(budget)) => of(charged, budget),
            _ => format!("{} without a limit", Bytes(memory.memtables_bytes)),
        };
        let lines = [
            ("memory", format!("memtables {memtables}  open tables {}", Bytes(memory.table_readers_bytes))),
            ("cache", of(cache.usage_bytes, cache.capacity_bytes)),
            ("logs", format!("{} in {}", of(logs.live_bytes, logs.limit_bytes), logs.live)),
            ("kept", kept(now)),
        ];
        let shown = |(name, text): (&str, String)| {
            format!("{} {}", self.paint(BOLD, &fit(name, 9)), fit(&text, self.width.saturating_sub(10)).trim_end())
        };
        lines.into_iter().chain(queued_ingests(now).map(|text| ("ingests", text))).map(shown).collect()
    }

    fn families(&self, now: &Observation, room: usize) -> Vec<String> {
        let name_width = if self.is_wide() { 24 } else { 14 };
        let levels = if self.is_wide() { "tables by level" } else { "(levels below)" };
        let head = format!("{} memtable          full      debt   gate     {levels}", fit("family", name_width));
        let mut lines = vec![self.paint(DIM, &self.cut(&head))];
        let mut sorted: Vec<_> = now.families.iter().collect();
        let urgency = |family: &ObservedFamily| {
            (family.gate != WriteGate::Free, family.memtables.total_bytes + family.table_bytes)
        };
        sorted.sort_by_key(|family| std::cmp::Reverse(urgency(family)));
        let shown = sorted.len().min((room / if self.is_wide() { 1 } else { 2 }).max(1));
        for family in sorted.iter().take(shown) {
            lines.extend(self.family(family, name_width));
        }
        if sorted.len() > shown {
            lines.push(self.paint(DIM, &format!("and {} smaller ones", sorted.len() - shown)));
        }
        lines
    }

    /// One line; in few columns the levels have a second one.
    fn family(&self, family: &ObservedFamily, name_width: usize) -> Vec<String> {
        let memtables = &family.memtables;
        let gate = match family.gate {
            WriteGate::Free => "free",
            WriteGate::Delayed => "slowed",
            WriteGate::Stopped => "STOPPED",
            _ => "refused",
        };
        let filled = family.levels.iter().filter(|level| level.tables > 0);
        let levels: Vec<_> =
            filled.map(|level| format!("L{} {}·{}", level.level, level.tables, Bytes(level.bytes))).collect();
        let text = format!(
            "{} {} {:>3} % {:>2} of {:<2} {:>4.0} %  {gate:<8} ",
            fit(&printable(&family.name).replace(['\n', '\t'], " "), name_width),
            gauge(memtables.mutable_bytes, memtables.capacity_bytes, 9),
            memtables.mutable_bytes * 100 / memtables.capacity_bytes.max(1),
            memtables.sealed,
            memtables.number_max.saturating_sub(1),
            family.debt * 100.0,
        );
        let lines = if self.is_wide() {
            let columns = self.width.saturating_sub(console::measure_text_width(&text));
            vec![text + &whole(&levels, columns)]
        } else if levels.is_empty() {
            vec![text]
        } else {
            vec![text, format!("  {}", whole(&levels, self.width.saturating_sub(2)))]
        };
        let paint = |line: String| match family.gate {
            WriteGate::Free => self.cut(&line),
            WriteGate::Delayed => self.paint(YELLOW, &self.cut(&line)),
            _ => self.paint(RED, &self.cut(&line)),
        };
        lines.into_iter().map(paint).collect()
    }

    fn is_wide(&self) -> bool {
        self.width >= 100
    }

    fn jobs(&self, now: &Observation) -> Vec<String> {
        let mut lines: Vec<_> = now
            .jobs
            .iter()
            .take(4)
            .map(|job| {
                let what = match job.kind {
                    ObservedJobKind::Flush => "flush".to_string(),
                    ObservedJobKind::Compaction => {
                        let level =
                            |level: Option<u32>| level.map_or_else(|| "?".to_string(), |level| level.to_string());
                        format!("compaction {}-{}", level(job.level), level(job.output_level))
                    }
                    _ => "ingest".to_string(),
                };
                let done = gauge(job.done_bytes, job.total_bytes, 10);
                let family = printable(&job.family).replace(['\n', '\t'], " ");
                self.cut(&format!(
                    "{what:<16} {done} {} of {}  {} {family}, {}",
                    Bytes(job.done_bytes),
                    Bytes(job.total_bytes),
                    Age(job.running_us / 1_000_000),
                    job.reason
                ))
            })
            .collect();
        if lines.is_empty() {
            lines.push(self.paint(DIM, "no job runs"));
        } else if now.jobs.len() > lines.len() {
            lines.push(self.paint(DIM, &format!("and {} more jobs", now.jobs.len() - lines.len())));
        }
        lines
    }
}

fn kept(now: &Observation) -> String {
    let mut parts = Vec::new();
    if let Some(oldest) = &now.snapshots.oldest {
        parts.push(format!("{} snapshots, the oldest {}", now.snapshots.count, Age(oldest.age_s)));
    }
    if let Some(oldest) = now.kept.iter().max_by_key(|kept| kept.age_us) {
        let sum = |of: fn(&spillway::observe::ObservedKept) -> u64| Bytes(now.kept.iter().map(of).sum());
        let (memory, disk) = (sum(|kept| kept.memtable_bytes), sum(|kept| kept.table_bytes));
        let readers: u64 = now.kept.iter().map(|kept| kept.readers).sum();
        let age = Age(oldest.age_us / 1_000_000);
        parts.push(format!("{readers} iterators, the oldest {age}, keep {memory} of memory and {disk} of disk"));
    }
    if parts.is_empty() { "nothing for old readers".to_string() } else { parts.join("; ") }
}

/// `None` if none is queued.
fn queued_ingests(now: &Observation) -> Option<String> {
    let ingests = &now.ingests;
    let age = Age(ingests.oldest_queued_s);
    (ingests.queued > 0)
        .then(|| format!("{} without a level, of {} tables, the oldest {age}", ingests.queued, ingests.queued_tables))
}

/// As many of the parts as there is room for, none cut.
fn whole(parts: &[String], columns: usize) -> String {
    let text = |shown: usize| {
        let left = parts.len() - shown;
        let more = if left > 0 { vec![format!("+{left}")] } else { Vec::new() };
        parts.iter().take(shown).cloned().chain(more).collect::<Vec<_>>().join("  ")
    };
    let shown = (1..=parts.len()).rev().find(|shown| console::measure_text_width(&text(*shown)) <= columns);
    text(shown.unwrap_or(0))
}

/// Lines of whole words, of at most `width` columns; a longer word stays whole.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if console::measure_text_width(line) + 1 + console::measure_text_width(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

/// Exactly `width` columns; what is longer ends with an ellipsis.
fn fit(text: &str, width: usize) -> String {
    let shown = console::truncate_str(text, width, "…");
    console::pad_str(&shown, width, console::Alignment::Left, None).into_owned()
}

fn gauge(value: u64, limit: u64, width: usize) -> String {
    let full = if limit == 0 { 0 } else { (value.min(limit) as f64 / limit as f64 * width as f64).round() as usize };
    format!("[{}{}]", "#".repeat(full), "-".repeat(width - full))
}

/// The newest values, each against the largest of them.
fn spark(history: &History, value: &dyn Fn(&Point) -> f64, columns: usize) -> String {
    let mut values: Vec<_> = history.points().rev().take(columns).map(value).collect();
    values.reverse();
    let most = values.iter().copied().fold(0.0, f64::max);
    let step = |value: f64| match most > 0.0 {
        true => STEPS.get(((value / most * 7.0).round() as usize).min(7)).copied().unwrap_or(' '),
        false => '▁',
    };
    let drawn: String = values.into_iter().map(step).collect();
    format!("{}{drawn}", " ".repeat(columns - drawn.chars().count()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use live::verdict::Judge;

    use super::*;

    /// Two readings of a database with a hostile name, under writes.
    fn readings() -> (Observation, Observation) {
        let dir = tempfile::tempdir().unwrap();
        let db = spillway::Db::open(dir.path().join("db")).unwrap();
        let family = db.family("\x1b[31mred\nnext").unwrap();
        let before = db.observe();
        for n in 0..100u8 {
            family.put([n], [0; 100]).unwrap();
        }
        db.flush().unwrap();
        // A flush is listed until its memory is freed, a moment after it was waited for.
        loop {
            spillway::internal::vfs::RealVfs::new().sleep(Duration::from_millis(2));
            let now = db.observe();
            if now.jobs.is_empty() {
                return (before, now);
            }
        }
    }

    #[test]
    fn a_screen_fits_and_escapes() {
        let (before, now) = readings();
        let point = Point::between(&before, &now).unwrap();
        let mut history = History::default();
        history.push(point.clone());
        let verdict = Judge::default().judge(&now, &history, &[]);
        for (width, height) in [(30, 40), (80, 24), (100, 30), (200, 60)] {
            let screen = Screen { width, height, colours: false };
            let lines = screen.lines(&Seen { now: &now, point: Some(&point), history: &history, verdict: &verdict });
            assert!(lines.len() <= height, "{lines:#?}");
            assert!(lines.iter().all(|line| console::measure_text_width(line) <= width), "{lines:#?}");
            assert!(lines.iter().all(|line| !line.contains(char::is_control)), "{lines:#?}");
            let text = lines.join("\n");
            assert!(text.contains("\\x1b[31mred n"), "{text}");
            assert!(text.contains("All is well") && text.contains("no job runs"), "{text}");
        }
    }

    #[test]
    fn a_remedy_is_wrapped_and_waits_tell_stopped_from_slowed() {
        let (before, mut now) = readings();
        now.health.gate = WriteGate::Stopped;
        now.health.gate_cause = Some("pending-compaction-bytes".into());
        let mut point = Point::between(&before, &now).unwrap();
        point.stall_ms = [("pending-compaction-bytes".to_string(), 900.0)].into();
        let history = History::default();
        let verdict = Judge::default().judge(&now, &history, &[]);
        let screen = Screen { width: 80, height: 24, colours: false };
        let mut shown = |stops| {
            point.stops = stops;
            screen.lines(&Seen { now: &now, point: Some(&point), history: &history, verdict: &verdict })
        };
        let lines = shown(2.0);
        let remedy = &verdict.sentences[0].remedy;
        assert!(remedy.len() > 80 && lines[2].starts_with("      More") && !lines[2].contains('…'), "{lines:#?}");
        let words: Vec<_> = lines[2..4].iter().flat_map(|line| line.split_whitespace()).collect();
        assert_eq!(words.join(" "), *remedy);
        assert!(lines.iter().any(|line| line.contains("pending-compaction-bytes 900; stopped 2/s")), "{lines:#?}");
        assert!(shown(0.0).iter().any(|line| line.contains("pending-compaction-bytes 900; slowed")));
        let mut many = verdict.clone();
        many.sentences = vec![verdict.sentences[0].clone(); 9];
        let lines = screen.lines(&Seen { now: &now, point: None, history: &history, verdict: &many });
        assert!(lines.iter().any(|line| line == "      and 7 more"), "{lines:#?}");
    }

    #[test]
    fn levels_keep_their_units_and_writers_that_wait_are_counted() {
        let (before, mut now) = readings();
        let point = Point::between(&before, &now).unwrap();
        let level = |level| {
            let mut seen = spillway::observe::ObservedLevel::default();
            (seen.level, seen.tables, seen.bytes) = (level, 12, 345 << 20);
            seen
        };
        now.families[1].levels = (0..7).map(level).collect();
        let mut stall = spillway::observe::ObservedStall::default();
        stall.waiting = 3;
        now.writes.as_mut().unwrap().stalls = vec![stall];
        (now.ingests.queued, now.ingests.queued_tables, now.ingests.oldest_queued_s) = (2, 5, 90);
        let history = History::default();
        let verdict = Judge::default().judge(&now, &history, &[]);
        for width in [80, 120, 200] {
            let screen = Screen { width, height: 24, colours: false };
            let lines = screen.lines(&Seen { now: &now, point: Some(&point), history: &history, verdict: &verdict });
            let levels = lines.iter().find(|line| line.contains("L0 12·345 MiB")).unwrap();
            let shown: Vec<_> = levels.split("  ").filter(|part| part.contains('·')).collect();
            assert!(shown.len() > 1 && shown.iter().all(|part| part.trim().ends_with(" MiB")), "{lines:#?}");
            let left = 7 - shown.len();
            assert!(left == 0 || levels.ends_with(&format!("  +{left}")), "{lines:#?}");
            assert!(console::measure_text_width(levels) <= width, "{lines:#?}");
            assert!(lines.iter().any(|line| line.starts_with("waits") && line.contains("3 wait now")), "{lines:#?}");
            let ingests = lines.iter().find(|line| line.starts_with("ingests")).unwrap();
            assert!(ingests.contains(" 2 without a level, of 5 tables, the oldest "), "{ingests}");
        }
    }

    #[test]
    fn the_first_reading_and_a_small_terminal_are_no_trouble() {
        let (now, _) = readings();
        let history = History::default();
        let verdict = Judge::default().judge(&now, &history, &[]);
        for (width, height) in [(80, 24), (10, 3), (1, 1)] {
            let screen = Screen { width, height, colours: true };
            screen.lines(&Seen { now: &now, point: None, history: &history, verdict: &verdict });
        }
    }
}
