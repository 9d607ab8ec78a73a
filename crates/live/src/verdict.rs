//! Is it well? A reading in words.

use serde::Serialize;
use spillway::observe::{Advice, AdviceSeverity, Observation, WriteGate};

use crate::history::{History, Point};
use crate::units::Bytes;

/// How well it is; ordered from well to bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Level {
    /// Nothing to do.
    #[default]
    Good,
    /// Worth a look: it may get worse.
    Attention,
    /// Writes wait or fail.
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
    /// What helps; empty if nothing is to be done.
    pub remedy: String,
}

/// What is to be known now, the worst first.
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

impl Verdict {
    /// Judges the newest reading, the minute before it, and what rules of thumb say of them.
    pub fn of(now: &Observation, history: &History, advice: &[Advice]) -> Verdict {
        let mut sentences: Vec<_> = advice.iter().filter_map(pressing).collect();
        waits(now, history, &mut sentences);
        sentences.sort_by_key(|sentence: &Sentence| std::cmp::Reverse(sentence.level));
        let level = sentences.first().map_or(Level::Good, |worst| worst.level);
        if level == Level::Good {
            sentences.insert(0, well(now, history.last()));
        }
        Verdict { level, sentences }
    }
}

fn sentence(level: Level, text: impl Into<String>, remedy: impl Into<String>) -> Sentence {
    Sentence { level, text: text.into(), remedy: remedy.into() }
}

/// Advice that cannot wait until somebody looks for it.
fn pressing(advice: &Advice) -> Option<Sentence> {
    let level = match advice.severity {
        AdviceSeverity::Urgent => Level::Bad,
        AdviceSeverity::Warning => Level::Attention,
        _ => return None,
    };
    let family = advice.family.as_ref().map_or_else(String::new, |family| format!("Family {family}: "));
    Some(sentence(level, format!("{family}{}.", advice.seen.trim_end_matches('.')), advice.advice.clone()))
}

fn well(now: &Observation, last: Option<&Point>) -> Sentence {
    let text = match last {
        _ if now.writes.is_none() => "Open for reading; nothing stands in the way.".to_string(),
        Some(point) if point.writes >= 1.0 => format!(
            "All is well: {:.0} writes a second, and none waits.{}",
            point.writes,
            point.write_p99_us.map_or_else(String::new, |us| format!(" 99 in 100 take at most {us} µs."))
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
            "More or larger memtables (max_write_buffer_number, write_buffer_size); a faster disk.",
        ),
        "memory-limit" => (
            "memtables have reached the limit on their memory",
            "A larger db_write_buffer_size or budget; fewer databases or families that write at once.",
        ),
        "l0-file-count" => (
            "level 0 has too many tables: compactions are slower than flushes",
            "More max_background_jobs or max_subcompactions where processors idle; larger memtables; fewer writes.",
        ),
        "pending-compaction-bytes" => (
            "too many bytes wait for a compaction",
            "More max_background_jobs where processors idle; a higher soft_pending_compaction_bytes_limit; fewer writes.",
        ),
        "memtable-switch" => ("a new memtable was not ready", "Larger memtables (write_buffer_size)."),
        "log-switch" => ("a new log was not ready", "Larger logs (log_file_bytes); a faster disk."),
        "pipeline-full" => ("too many writers are under way, or one is slow", "Fewer threads that write at once."),
        "ingest-latch" => ("an ingest held the keys", "Smaller ingests, or those without a write to the same keys."),
        _ => ("", ""),
    }
}

fn waits(now: &Observation, history: &History, out: &mut Vec<Sentence>) {
    let gate = now.health.gate;
    let cause = now.health.gate_cause.as_deref().unwrap_or_default();
    let (why, remedy) = meaning(cause);
    if gate == WriteGate::Stopped {
        out.push(sentence(Level::Bad, format!("Writers are stopped: {why}."), remedy));
    } else if gate == WriteGate::Delayed {
        let rate =
            now.health.delayed_bytes_per_second.map_or_else(String::new, |rate| format!(" to {}/s", Bytes(rate)));
        out.push(sentence(Level::Attention, format!("Writers are slowed down{rate}: {why}."), remedy));
    }
    let after = now.process.unix_time_us / 1000;
    let recent = history.points().rev().take_while(|point| point.unix_ms + STALL_WINDOW_MS > after);
    let (mut seconds, mut by_cause) = (0.0, std::collections::BTreeMap::<&str, f64>::new());
    for point in recent {
        seconds += point.seconds;
        for (cause, ms) in &point.stall_ms {
            *by_cause.entry(cause).or_default() += ms * point.seconds;
        }
    }
    let all: f64 = by_cause.values().sum();
    let Some((most, _)) = by_cause.iter().max_by(|a, b| a.1.total_cmp(b.1)) else { return };
    if all < STALL_MS_PER_SECOND * seconds || (gate != WriteGate::Free && cause == *most) {
        return;
    }
    let (why, remedy) = meaning(most);
    let text = format!("Writers waited {:.1} s in the last {seconds:.0} s, most since {why}.", all / 1000.0);
    out.push(sentence(Level::Attention, text, remedy));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(severity: AdviceSeverity) -> Advice {
        let mut advice = Advice::default();
        (advice.severity, advice.seen, advice.family) = (severity, "seen".into(), Some("f".into()));
        advice
    }

    fn writing(gate: WriteGate) -> Observation {
        let mut now = Observation::default();
        now.writes = Some(Default::default());
        (now.health.gate, now.health.gate_cause) = (gate, Some("l0-file-count".into()));
        now.process.unix_time_us = 60_000_000;
        now
    }

    #[test]
    fn the_worst_comes_first() {
        let history = History::default();
        let of = |now: &Observation, advice: &[Advice]| Verdict::of(now, &history, advice);
        let well = of(&writing(WriteGate::Free), &[advice(AdviceSeverity::Note)]);
        assert!(well.level == Level::Good && well.sentences.len() == 1, "{well:?}");
        let all = [advice(AdviceSeverity::Warning), advice(AdviceSeverity::Urgent)];
        let bad = of(&writing(WriteGate::Delayed), &all);
        let levels: Vec<_> = bad.sentences.iter().map(|sentence| sentence.level).collect();
        assert_eq!((bad.level, levels), (Level::Bad, vec![Level::Bad, Level::Attention, Level::Attention]));
        assert_eq!(bad.sentences[0].text, "Family f: seen.");
        let stopped = of(&writing(WriteGate::Stopped), &[]);
        assert!(stopped.level == Level::Bad && stopped.sentences[0].text.contains("level 0"), "{stopped:?}");
    }

    #[test]
    fn waits_of_the_last_minute_are_told_by_their_cause() {
        let mut point = Point::default();
        (point.unix_ms, point.seconds) = (50_000, 1.0);
        point.stall_ms = [("memtable-limit".to_string(), 400.0), ("log-switch".to_string(), 5.0)].into();
        let mut history = History::default();
        history.push(point);
        let told = Verdict::of(&writing(WriteGate::Free), &history, &[]);
        let text = &told.sentences[0].text;
        assert!(told.level == Level::Attention && text.contains("0.4 s") && text.contains("all memtables"), "{text}");
        let mut later = writing(WriteGate::Free);
        later.process.unix_time_us = 120_000_000;
        assert_eq!(Verdict::of(&later, &history, &[]).level, Level::Good, "a minute ago");
    }
}
