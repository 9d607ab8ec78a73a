//! OpenMetrics text: the form alone.

use std::fmt::Write;

use base::metrics::Distribution;
use base::name;

use crate::observe::{ObservedHistogram, ObservedTrace};

/// A kind of metric.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
    StateSet,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
            Kind::StateSet => "stateset",
        }
    }

    /// What a sample's name has behind the metric's.
    fn suffix(self) -> &'static str {
        match self {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            _ => "",
        }
    }
}

/// Labels of a sample, escaped when written.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// Text being written. All samples of a metric follow its head.
pub(super) struct Text {
    out: String,
    /// Of the last head: name and kind.
    metric: (String, Kind),
}

impl Text {
    pub fn new() -> Self {
        Text { out: String::new(), metric: (String::new(), Kind::Gauge) }
    }

    /// Begins a metric. The unit is the end of its name, if it has one.
    pub fn metric(&mut self, name: &str, kind: Kind, help: &str) -> &mut Self {
        self.metric = (name.to_owned(), kind);
        let _ = writeln!(self.out, "# TYPE {name} {}", kind.name());
        for unit in ["bytes", "seconds", "ratio"] {
            if name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')) {
                let _ = writeln!(self.out, "# UNIT {name} {unit}");
            }
        }
        let _ = writeln!(self.out, "# HELP {name} {}", escaped(help));
        self
    }

    /// A sample of the metric begun last.
    pub fn sample(&mut self, labels: Labels<'_>, value: f64) -> &mut Self {
        let (name, kind) = (self.metric.0.clone(), self.metric.1);
        self.line(&name, kind.suffix(), labels, None, value);
        self
    }

    /// A metric of one sample without labels.
    pub fn single(&mut self, name: &str, kind: Kind, help: &str, value: u64) {
        self.metric(name, kind, help).sample(&[], value as f64);
    }

    /// The samples of a histogram; values are divided by `per_unit`.
    pub fn histogram(&mut self, labels: Labels<'_>, values: &ObservedHistogram, per_unit: f64) {
        self.histogram_with(labels, values, per_unit, &[]);
    }

    /// A histogram whose buckets have the latest of `traces` that fall into them as exemplars.
    pub fn histogram_with(
        &mut self,
        labels: Labels<'_>,
        values: &ObservedHistogram,
        per_unit: f64,
        traces: &[ObservedTrace],
    ) {
        let (name, mut below) = (self.metric.0.clone(), None);
        for limit in limits() {
            let le = number(limit as f64 / per_unit);
            self.line(&name, "_bucket", labels, Some(&le), values.count_up_to(limit) as f64);
            self.exemplar(latest(traces, below, Some(limit)), per_unit);
            below = Some(limit);
        }
        self.line(&name, "_bucket", labels, Some("+Inf"), values.count as f64);
        self.exemplar(latest(traces, below, None), per_unit);
        self.line(&name, "_count", labels, None, values.count as f64);
        self.line(&name, "_sum", labels, None, values.sum as f64 / per_unit);
    }

    fn line(&mut self, name: &str, suffix: &str, labels: Labels<'_>, le: Option<&str>, value: f64) {
        let labels = labels.iter().copied().chain(le.map(|le| ("le", le)));
        let labels: Vec<_> = labels.map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.out, "{name}{suffix}{labels} {}", number(value));
    }

    /// Adds an exemplar to the last line.
    fn exemplar(&mut self, trace: Option<&ObservedTrace>, per_unit: f64) {
        let Some(ObservedTrace { trace_id, micros, unix_time_us }) = trace else { return };
        self.out.truncate(self.out.trim_end_matches('\n').len());
        let (value, seconds) = (number(*micros as f64 / per_unit), number(*unix_time_us as f64 / 1e6));
        let _ = writeln!(self.out, " # {{trace_id=\"{}\"}} {value} {seconds}", escaped(trace_id));
    }

    pub fn end(mut self) -> String {
        self.out.push_str("# EOF\n");
        self.out
    }
}

/// Limits of the buckets shown: every second one of our histograms, from 4 to 50 million.
fn limits() -> impl Iterator<Item = u64> {
    let all = Distribution::default().buckets().map(|(limit, _)| limit).collect::<Vec<_>>();
    all.into_iter().skip(3).step_by(2).take_while(|limit| *limit <= 50_000_000)
}

/// Most characters of an exemplar's labels, names and values together.
const EXEMPLAR_LABELS_MAX: usize = 128;

/// The latest trace of the bucket above `below` up to `limit` whose id fits into an exemplar.
fn latest(traces: &[ObservedTrace], below: Option<u64>, limit: Option<u64>) -> Option<&ObservedTrace> {
    let is_in = |micros| below.is_none_or(|below| micros > below) && limit.is_none_or(|limit| micros <= limit);
    let fits = |id: &str| "trace_id".len() + id.chars().count() <= EXEMPLAR_LABELS_MAX;
    let fitting = traces.iter().filter(|trace| is_in(trace.micros) && fits(&trace.trace_id));
    fitting.max_by_key(|trace| trace.unix_time_us)
}

/// `Display` of a float never has an exponent, and no point for whole numbers.
fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { "NaN".to_owned() }
}

/// As OpenMetrics wants it in label values and help texts.
fn escaped(text: &str) -> String {
    name::with_bytes_shown(text, "\\x").replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
