//! Rules of thumb over one reading, or over what happened between two: what was seen, and the option to change.
//!
//! A rule speaks only where its figure is far beyond noise: a healthy database gets no advice. Without an earlier reading
//! the rules look at everything since the open. Rules that need `statistics` are silent without it, and one piece of
//! advice says so.

mod memory;
mod reads;
#[cfg(test)]
mod tests;
mod writes;

use base::options::row::Change;
use base::options::{DbOptions, FamilyOptions, OptionGroup, TableOptions};

use super::observation::{plain, plain_choice};
use super::{Observation, ObservedFamily, ObservedSample, WriteGate};

plain_choice! {
    /// How urgent a piece of advice is.
    #[derive(PartialOrd, Ord)]
    pub enum AdviceSeverity {
        /// Something could be better.
        #[default]
        Note,
        /// Something is slow, or will be.
        Warning,
        /// Writes fail or stand still, or will soon.
        Urgent,
    }
}

plain! {
    /// A piece of advice.
    pub struct Advice {
        /// How urgent it is.
        pub severity: AdviceSeverity,
        /// The rule's name, such as `level0-behind`.
        pub rule: String,
        /// The family, if it is of one.
        pub family: Option<String>,
        /// What was seen, in words with figures and units.
        pub seen: String,
        /// What it means and what to do, in words.
        pub advice: String,
        /// The option to change.
        pub option: Option<String>,
        /// Its present value.
        pub from: Option<String>,
        /// The value to try.
        pub to: Option<String>,
        /// The option can be changed while the database is open; else it takes effect at the next open.
        pub is_mutable: bool,
    }
}

/// What the rules look at.
pub(super) struct Scene<'a> {
    pub now: &'a Observation,
    /// The earlier reading of the same open.
    pub before: Option<&'a Observation>,
    /// From there, or from the open, to now.
    pub seconds: f64,
}

type Rule = fn(&Scene<'_>) -> Vec<Advice>;

const RULES: [Rule; 13] = [
    writes::refused,
    writes::recovery_doubts,
    writes::disk_is_full,
    writes::level0_behind,
    writes::bytes_behind,
    writes::buffers_too_small,
    writes::slow_syncs,
    writes::memory_limit,
    reads::filters,
    reads::tombstones,
    memory::cache_too_small,
    memory::old_snapshots,
    memory::old_iterators,
];

/// Shorter intervals tell too little.
const SECONDS_MIN: f64 = 1.0;

impl Observation {
    /// Advice, most urgent first: on what happened since `before`, an earlier reading of the same open; without one, or if
    /// it is another's, on everything since the open.
    pub fn advice(&self, before: Option<&Observation>) -> Vec<Advice> {
        let is_same = |before: &&Observation| {
            (before.process.pid, &before.process.identity) == (self.process.pid, &self.process.identity)
                && self.seconds_since(before) >= SECONDS_MIN
        };
        let before = before.filter(is_same);
        let since_open = || self.process.uptime_us as f64 / 1e6;
        let seconds = before.map_or_else(since_open, |before| self.seconds_since(before));
        let scene = Scene { now: self, before, seconds: seconds.max(SECONDS_MIN) };
        let mut advice: Vec<Advice> = RULES.iter().flat_map(|rule| rule(&scene)).collect();
        if self.writes.is_some() && self.statistics.is_none() {
            advice.push(not_measured(self.sample.as_ref()));
        }
        advice.sort_by_key(|advice| std::cmp::Reverse(advice.severity));
        advice
    }
}

fn not_measured(sample: Option<&ObservedSample>) -> Advice {
    let seen = "the option statistics is off".to_owned();
    let what = match sample {
        Some(_) => {
            "Latencies, and where reads are answered, are known of a sample alone, and nothing is known of filters: open \
             with statistics=true."
        }
        None => "Nothing is known of latencies, filters, and where reads are answered: open with statistics=true.",
    };
    Advice::new("not-measured", AdviceSeverity::Note, seen, what).option(
        "statistics",
        "false".to_owned(),
        "true".to_owned(),
    )
}

impl Advice {
    pub(super) fn new(rule: &str, severity: AdviceSeverity, seen: String, advice: &str) -> Advice {
        Advice { severity, rule: rule.to_owned(), seen, advice: advice.to_owned(), ..Advice::default() }
    }

    fn option(self, name: &str, from: String, to: String) -> Advice {
        Advice { option: Some(name.to_owned()), from: Some(from), to: Some(to), is_mutable: is_mutable(name), ..self }
    }

    fn of(self, family: &ObservedFamily) -> Advice {
        Advice { family: Some(family.name.clone()), ..self }
    }
}

impl Scene<'_> {
    /// The growth of a counter since the earlier reading.
    fn grown(&self, read: impl Fn(&Observation) -> u64) -> u64 {
        read(self.now).saturating_sub(self.before.map_or(0, read))
    }

    /// The growth of a family's counter.
    fn grown_in(&self, family: &ObservedFamily, read: impl Fn(&ObservedFamily) -> u64) -> u64 {
        let before = self.before.and_then(|before| before.families.iter().find(|other| other.id == family.id));
        read(family).saturating_sub(before.map_or(0, &read))
    }

    /// Seconds that writers waited for a cause, all together.
    fn stalled_s(&self, cause: &str) -> f64 {
        let micros = |seen: &Observation| {
            let stalls = seen.writes.iter().flat_map(|writes| &writes.stalls);
            stalls.filter(|stall| stall.cause == cause).map(|stall| stall.micros).sum()
        };
        self.grown(micros) as f64 / 1e6
    }

    /// The value of an option as text: what the reading says, else its default.
    fn option(&self, family: Option<&str>, name: &str) -> String {
        let changed = self.now.options.iter().find(|option| option.family.as_deref() == family && option.name == name);
        changed.map_or_else(|| default_of(family.is_some(), name), |option| option.value.clone())
    }

    /// The same as a number; 0 if it is none.
    fn number(&self, family: Option<&str>, name: &str) -> u64 {
        self.option(family, name).parse().unwrap_or(0)
    }
}

fn default_of(is_familys: bool, name: &str) -> String {
    let (of_db, of_family) = (DbOptions::default(), FamilyOptions::default());
    let group: &dyn OptionGroup = if is_familys { &of_family } else { &of_db };
    let found = group.settings().into_iter().find(|(row, _)| row.name == name);
    found.map_or_else(String::new, |(_, setting)| setting.text())
}

/// Of an option of databases, families or tables.
fn is_mutable(name: &str) -> bool {
    let (of_db, of_family, of_table) = (DbOptions::default(), FamilyOptions::default(), TableOptions::default());
    let groups: [&dyn OptionGroup; 3] = [&of_db, &of_family, &of_table];
    let mut rows = groups.into_iter().flat_map(OptionGroup::settings).map(|(row, _)| row);
    rows.any(|row| row.name == name && row.change == Change::Mutable)
}

/// Bytes for people.
fn bytes(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return if unit == "bytes" { format!("{bytes} bytes") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}

/// A part of a whole in percent, for people.
fn percent(part: f64, whole: f64) -> String {
    format!("{:.0} %", 100.0 * part / whole.max(f64::MIN_POSITIVE))
}
