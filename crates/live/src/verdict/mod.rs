//! Is it well? A reading in words.

use serde::Serialize;
use spillway::observe::{Advice, AdviceSeverity, Observation, WriteGate};

use crate::history::{History, Point};
use crate::options;
use crate::units::Bytes;

/// How well it is; ordered from well to bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Level {
    /// Nothing to do.
    #[default]
    Good,
    /// Writes are slowed down, or something may get worse.
    Attention,
    /// Writes are stopped or refused.
    Bad,
}

/// One thing to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Sentence {
    /// How bad it is.
    pub level: Level,
    /// The thing, with its figures.
    pub text: String,
    /// What helps; empty if nothing is to be done. An option has when a change of it takes effect behind its name.
    pub remedy: String,
    /// The first family with it, if it is of one.
    pub family: Option<String>,
    /// The element of the page that shows it; empty for none.
    pub place: &'static str,
}

/// What is to be known now, the worst first: a sentence for each trouble.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The worst of the sentences.
    pub level: Level,
    /// One at least.
    pub sentences: Vec<Sentence>,
}

/// Stalls of the last minute count.
const STALL_WINDOW_MS: u64 = 60_000;
/// A wait of 10 ms in a second is worth a word.
const STALL_MS_PER_SECOND: f64 = 10.0;
/// A trouble is told once it was seen over so long: with the third reading of a viewer.
const TOLD_AFTER_MS: u64 = 2_000;
/// It is taken back once it was not seen for so long.
const CALM_AFTER_MS: u64 = 10_000;
/// A wait under way is worth a word from then on.
const LONG_WAIT_US: u64 = 1_000_000;
/// From then on it is told as past.
const PAST_AFTER_MS: u64 = 3_000;

/// Judges readings one after the other, in words that do not change with each of them.
///
/// A trouble is told once it was seen over two seconds, and taken back after ten without it. The first reading, and what
/// does not pass by itself, are told at once.
#[derive(Debug, Default)]
pub struct Judge {
    troubles: Vec<Lasting>,
    has_judged: bool,
}

/// A trouble over several readings; times are in milliseconds since 1970.
#[derive(Debug)]
struct Lasting {
    trouble: Trouble,
    first_ms: u64,
    last_ms: u64,
    /// When `trouble` was last seen as it is.
    worded_ms: u64,
    is_told: bool,
}

/// Something that is wrong in one reading.
#[derive(Clone, Debug)]
struct Trouble {
    /// The cause of waiting, or the rule and the family.
    about: String,
    kind: Kind,
    sentence: Sentence,
    /// The families with it; the sentence is of the first.
    families: Vec<String>,
}

/// Ordered by importance, within one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Worth a look.
    Advice,
    /// Writers waited in the last minute.
    Waited,
    /// Writers wait now.
    Waits,
    /// It does not pass by itself.
    Broken,
}

impl Judge {
    /// Judges the newest reading, the minute before it, and what rules of thumb say of them.
    pub fn judge(&mut self, now: &Observation, history: &History, advice: &[Advice]) -> Verdict {
        let now_ms = now.process.unix_time_us / 1000;
        for trouble in troubles(now, history, advice) {
            self.note(trouble, now_ms);
        }
        self.troubles.retain(|lasting| now_ms.saturating_sub(lasting.last_ms) < CALM_AFTER_MS);
        for lasting in &mut self.troubles {
            let is_lasting = lasting.last_ms.saturating_sub(lasting.first_ms) >= TOLD_AFTER_MS;
            lasting.is_told |= is_lasting || !self.has_judged || lasting.trouble.kind == Kind::Broken;
        }
        self.has_judged = true;
        let mut told: Vec<_> = self.troubles.iter().filter(|lasting| lasting.is_told).collect();
        told.sort_by_key(|lasting| std::cmp::Reverse(lasting.trouble.weight()));
        let mut sentences: Vec<_> = told.into_iter().map(|lasting| lasting.words(now_ms)).collect();
        let level = sentences.first().map_or(Level::Good, |worst| worst.level);
        if level == Level::Good {
            sentences.push(well(now, history.last()));
        }
        Verdict { level, sentences }
    }

    fn note(&mut self, trouble: Trouble, now_ms: u64) {
        let Some(lasting) = self.troubles.iter_mut().find(|lasting| lasting.trouble.about == trouble.about) else {
            let (first_ms, last_ms, worded_ms) = (now_ms, now_ms, now_ms);
            return self.troubles.push(Lasting { trouble, first_ms, last_ms, worded_ms, is_told: false });
        };
        lasting.last_ms = now_ms;
        // The worst of the last seconds stays: stopped and slowed down would take turns.
        let is_old = now_ms.saturating_sub(lasting.worded_ms) >= CALM_AFTER_MS;
        if is_old || trouble.weight() >= lasting.trouble.weight() {
            (lasting.trouble, lasting.worded_ms) = (trouble, now_ms);
        }
    }
}

impl Lasting {
    fn words(&self, now_ms: u64) -> Sentence {
        let mut sentence = self.trouble.sentence.clone();
        sentence.family = self.trouble.families.first().cloned();
        let more = self.trouble.families.len().saturating_sub(1);
        if more > 0 {
            let families = if more == 1 { "family" } else { "families" };
            sentence.text += &format!(" So in {more} more {families}.");
        }
        if now_ms.saturating_sub(self.worded_ms) >= PAST_AFTER_MS {
            sentence.text = format!("A moment ago: {}", sentence.text);
        }
        sentence
    }
}

impl Trouble {
    fn weight(&self) -> (Level, Kind) {
        (self.sentence.level, self.kind)
    }
}

/// What is wrong in one reading: a trouble for each cause of waiting, and for each piece of advice that presses.
fn troubles(now: &Observation, history: &History, advice: &[Advice]) -> Vec<Trouble> {
    let mut found: Vec<Trouble> = Vec::new();
    for trouble in advice.iter().filter_map(pressing).chain(gate(now)).chain(waiting(now)).chain(waited(now, history)) {
        match found.iter_mut().find(|known| known.about == trouble.about) {
            Some(known) => {
                known.sentence.level = known.sentence.level.max(trouble.sentence.level);
                known.kind = known.kind.max(trouble.kind);
                let is_new = |family: &String| !known.families.contains(family);
                let more: Vec<_> = trouble.families.into_iter().filter(is_new).collect();
                known.families.extend(more);
            }
            None => found.push(trouble),
        }
    }
    found
}

fn sentence(level: Level, text: impl Into<String>, remedy: impl Into<String>) -> Sentence {
    Sentence { level, text: text.into(), remedy: remedy.into(), family: None, place: "" }
}

/// Where the page shows a cause of waiting, or what a rule of advice looks at.
fn place(about: &str) -> &'static str {
    match about {
        "l0-file-count" | "level0-behind" | "memtable-limit" | "memtable-switch" | "buffers-too-small" => {
            "chart-level0"
        }
        "pending-compaction-bytes" | "compactions-behind" => "chart-debt",
        "memory-limit" => "card-memory",
        "log-switch" | "pipeline-full" | "ingest-latch" => WAITS,
        "read-only" | "disk-full" => "chart-ran",
        "slow-syncs" => "chart-writes",
        "filters" | "tombstones" => "card-answers",
        "cache-too-small" => "chart-cache",
        "old-snapshot" => "card-kept",
        "old-iterator" => "chart-kept",
        _ => "",
    }
}

const WAITS: &str = "chart-waits";

/// Advice that cannot wait until somebody looks for it.
fn pressing(advice: &Advice) -> Option<Trouble> {
    let level = match advice.severity {
        AdviceSeverity::Urgent => Level::Bad,
        AdviceSeverity::Warning => Level::Attention,
        _ => return None,
    };
    let family = advice.family.as_ref().map_or_else(String::new, |family| format!("Family {family}: "));
    let (about, kind) = match advice.rule.as_str() {
        "read-only" | "disk-full" | "recovery-doubts" => (advice.rule.clone(), Kind::Broken),
        "level0-behind" => ("l0-file-count".to_string(), Kind::Waits),
        "compactions-behind" => ("pending-compaction-bytes".to_string(), Kind::Waits),
        "memory-limit" => (advice.rule.clone(), Kind::Waited),
        "buffers-too-small" => ("memtable-limit".to_string(), Kind::Waited),
        rule => (format!("{rule} {family}"), Kind::Advice),
    };
    let text = format!("{family}{}.", advice.seen.trim_end_matches('.'));
    let change = match (&advice.option, &advice.to) {
        (Some(name), Some(to)) => {
            let from = advice.from.as_deref().filter(|from| !from.is_empty());
            let from = from.map_or_else(String::new, |from| format!("{} → ", options::text(name, from)));
            format!(" {name}: {from}{} ({}).", options::text(name, to), options::when(advice.is_mutable))
        }
        _ => String::new(),
    };
    let families = advice.family.iter().cloned().collect();
    let told = sentence(level, text, format!("{}{change}", advice.advice));
    Some(Trouble { about, kind, sentence: Sentence { place: place(&advice.rule), ..told }, families })
}

fn well(now: &Observation, last: Option<&Point>) -> Sentence {
    let text = match last {
        _ if now.writes.is_none() => "Open for reading; nothing stands in the way.".to_string(),
        Some(point) if point.writes >= 1.0 => format!(
            "All is well: {:.0} writes a second, and none waits.{}",
            point.writes,
            point.write_p99_us.map_or_else(String::new, |us| format!(" Their p99 is {us} µs."))
        ),
        Some(_) => "All is well, and nothing is written.".to_string(),
        None => "Nothing is in the way of writes; rates come with the second reading.".to_string(),
    };
    sentence(Level::Good, text, "")
}

/// What a cause of waiting means, and what helps.
pub fn meaning(cause: &str) -> (&'static str, &'static str) {
    match cause {
        "memtable-limit" => (
            "all memtables are full, and flushes are slower than writes",
            "More or larger memtables: max_write_buffer_number, write_buffer_size (at run time); a faster disk.",
        ),
        "memory-limit" => (
            "memtables have reached the limit on their memory",
            "A larger db_write_buffer_size (at the next open) or budget; fewer databases or families that write at once.",
        ),
        "l0-file-count" => (
            "level 0 has too many tables: compactions are slower than flushes",
            "More max_background_jobs or max_subcompactions (at run time) where processors idle; larger memtables; fewer writes.",
        ),
        "pending-compaction-bytes" => (
            "too many bytes wait for a compaction",
            "More max_background_jobs where processors idle, a higher soft_pending_compaction_bytes_limit (at run time); \
             fewer writes.",
        ),
        "memtable-switch" => ("a new memtable was not ready", "Larger memtables: write_buffer_size (at run time)."),
        "log-switch" => ("a new log was not ready", "Larger logs: log_file_bytes (at the next open); a faster disk."),
        "pipeline-full" => ("too many writers are under way, or one is slow", "Fewer threads that write at once."),
        "ingest-latch" => ("an ingest held the keys", "Smaller ingests, or those without a write to the same keys."),
        _ => ("", ""),
    }
}

/// Writers are stopped or slowed down at the instant of the reading.
fn gate(now: &Observation) -> Option<Trouble> {
    let health = &now.health;
    let cause = health.gate_cause.clone().unwrap_or_default();
    let (why, remedy) = meaning(&cause);
    let told = match health.gate {
        WriteGate::Stopped => sentence(Level::Bad, format!("Writers are stopped: {why}."), remedy),
        WriteGate::Delayed => {
            let rate =
                health.delayed_bytes_per_second.map_or_else(String::new, |rate| format!(" to {}/s", Bytes(rate)));
            sentence(Level::Attention, format!("Writers are slowed down{rate}: {why}."), remedy)
        }
        _ => return None,
    };
    let causing = now.families.iter().filter(|family| family.gate_cause.as_ref() == Some(&cause));
    let families = causing.map(|family| family.name.clone()).collect();
    let told = Sentence { place: place(&cause), ..told };
    Some(Trouble { about: cause, kind: Kind::Waits, sentence: told, families })
}

/// Writers wait at the instant of the reading, and have for long.
fn waiting(now: &Observation) -> Option<Trouble> {
    let stalls = now.writes.iter().flat_map(|writes| &writes.stalls);
    let stall = stalls.filter(|stall| stall.waiting_us >= LONG_WAIT_US).max_by_key(|stall| stall.waiting_us)?;
    let (why, remedy) = meaning(&stall.cause);
    let (who, seconds) = (stall.waiting, stall.waiting_us as f64 / 1e6);
    let who = if who == 1 { "A writer waits".to_owned() } else { format!("{who} writers wait") };
    let told = sentence(Level::Bad, format!("{who}, the first for {seconds:.0} s: {why}."), remedy);
    let told = Sentence { place: place(&stall.cause), ..told };
    Some(Trouble { about: stall.cause.clone(), kind: Kind::Waits, sentence: told, families: Vec::new() })
}

/// Writers waited in the last minute.
fn waited(now: &Observation, history: &History) -> Option<Trouble> {
    let after = now.process.unix_time_us / 1000;
    let recent = history.points().rev().take_while(|point| point.unix_ms + STALL_WINDOW_MS > after);
    let (mut seconds, mut stops, mut by_cause) = (0.0, 0.0, std::collections::BTreeMap::<&str, f64>::new());
    for point in recent {
        seconds += point.seconds;
        stops += point.stops * point.seconds;
        for (cause, ms) in &point.stall_ms {
            *by_cause.entry(cause).or_default() += ms * point.seconds;
        }
    }
    let all: f64 = by_cause.values().sum();
    let (most, _) = by_cause.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    if all < STALL_MS_PER_SECOND * seconds {
        return None;
    }
    let (why, remedy) = meaning(most);
    let how =
        if stops >= 0.5 { format!("were stopped {stops:.0} times and waited") } else { "were slowed down by".into() };
    let text = format!("Writers {how} {:.1} s in the last {seconds:.0} s, most since {why}.", all / 1000.0);
    let told = Sentence { place: WAITS, ..sentence(Level::Attention, text, remedy) };
    Some(Trouble { about: most.to_string(), kind: Kind::Waited, sentence: told, families: Vec::new() })
}

#[cfg(test)]
mod tests;
