//! A table of medians: rows by some fields of the records, columns by the values of one more field, ratios to one of the columns.

use std::collections::BTreeMap;
use std::fmt::Write;

use base::{Error, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::medians::{in_order, median, spread};

/// Describes a table. A field is named by its path, with dots between names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spec {
    /// Name of the results file.
    pub file: String,
    /// Records count when each of these fields has one of these values.
    pub only: BTreeMap<String, Vec<Value>>,
    /// Fields naming a row by their values.
    pub rows: Vec<String>,
    /// The field with the columns' names.
    pub across: String,
    /// The columns in order; all if empty.
    pub columns: Vec<String>,
    pub figures: Vec<Figure>,
    /// The column to which ratios of the first figure relate; empty for no ratios.
    pub base: String,
    pub better: Better,
    /// Rows with a column behind the base come first.
    pub behind_first: bool,
    /// Rows with a column ahead of the base come first: the base's losses.
    pub ahead_first: bool,
    /// The file of a picture of the ratios, seen from the document.
    pub picture: Option<String>,
    /// Title of the picture.
    pub title: String,
}

/// A figure of a record.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Figure {
    pub field: String,
    pub name: String,
    pub digits: Option<usize>,
    /// Factor to the unit shown.
    pub times: Option<f64>,
    /// A field to divide by.
    pub per: Option<String>,
}

/// Which figures are better.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    #[default]
    Less,
    /// By the record's field `unit`: more if it is a rate per second, less otherwise.
    Unit,
}

impl Figure {
    pub fn new(field: &str, name: &str, digits: usize) -> Figure {
        Figure { field: field.to_owned(), name: name.to_owned(), digits: Some(digits), ..Figure::default() }
    }

    fn of(&self, record: &Value) -> Option<f64> {
        let of = |field: &str| at(record, field)?.as_f64();
        let per = self.per.as_deref().map_or(Some(1.0), of)?;
        (per != 0.0).then(|| of(&self.field).map(|figure| figure * self.times.unwrap_or(1.0) / per))?
    }

    fn shown(&self, figure: Option<f64>) -> String {
        let digits = self.digits.unwrap_or(1);
        // Counts are differences: a value just below zero is shown as zero.
        let none = |figure: &f64| figure.abs() < 0.5 * 0.1f64.powi(digits as i32);
        figure.map_or("-".to_owned(), |figure| format!("{:.digits$}", if none(&figure) { 0.0 } else { figure }))
    }
}

/// The records of one row, by column.
pub struct Row<'a> {
    pub name: String,
    unit: String,
    columns: Vec<Vec<&'a Value>>,
}

/// Records as they stand in a table.
pub struct Table<'a> {
    pub columns: Vec<String>,
    pub rows: Vec<Row<'a>>,
    /// Place of the base among the columns.
    base: Option<usize>,
}

fn at<'a>(record: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(record, |value, name| value.get(name))
}

/// A value as the name of a row or column; empty if missing.
fn word(record: &Value, path: &str) -> String {
    match at(record, path) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

impl<'a> Table<'a> {
    pub fn of(spec: &Spec, records: &'a [Value]) -> Table<'a> {
        let counts = |record: &&Value| {
            spec.only.iter().all(|(field, values)| at(record, field).is_some_and(|value| values.contains(value)))
        };
        let records: Vec<&Value> = records.iter().filter(counts).collect();
        let of_column = |record: &&'a Value| word(record, &spec.across);
        let columns: Vec<String> = match spec.columns.as_slice() {
            [] => in_order(records.iter(), of_column).into_iter().map(|(name, _)| name).collect(),
            given => given.to_vec(),
        };
        let name = |record: &Value| {
            let words = spec.rows.iter().map(|field| word(record, field)).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join(", ")
        };
        let base = columns.iter().position(|column| *column == spec.base).filter(|_| !spec.base.is_empty());
        let row = |(name, records): (String, Vec<&'a Value>)| Row {
            name,
            unit: records.first().map_or_else(String::new, |record| word(record, "unit")),
            columns: columns
                .iter()
                .map(|column| records.iter().filter(|r| word(r, &spec.across) == *column).copied().collect())
                .collect(),
        };
        let rows = in_order(records.iter().copied(), name).into_iter().map(row).collect();
        let mut table = Table { columns, rows, base };
        if spec.behind_first {
            let mut rows = std::mem::take(&mut table.rows);
            rows.sort_by(|one, other| table.worst(spec, one).total_cmp(&table.worst(spec, other)));
            table.rows = rows;
        }
        if spec.ahead_first {
            let mut rows = std::mem::take(&mut table.rows);
            rows.sort_by(|one, other| table.best(spec, other).total_cmp(&table.best(spec, one)));
            table.rows = rows;
        }
        table
    }

    /// The ratio furthest ahead of the base; 1 if no column is ahead.
    fn best(&self, spec: &Spec, row: &Row<'_>) -> f64 {
        self.beside_base().filter_map(|(at, _)| self.ratio(spec, row, at)).fold(1.0, f64::max)
    }

    /// The ratio furthest behind the base; 1 if all columns are ahead.
    fn worst(&self, spec: &Spec, row: &Row<'_>) -> f64 {
        self.beside_base().filter_map(|(at, _)| self.ratio(spec, row, at)).fold(1.0, f64::min)
    }

    /// The columns with ratios, and their positions.
    pub fn beside_base(&self) -> impl Iterator<Item = (usize, &String)> {
        let base = self.base;
        self.columns.iter().enumerate().filter(move |(at, _)| base.is_some_and(|base| base != *at))
    }

    /// How far a column is ahead of the base, by medians.
    pub fn ratio(&self, spec: &Spec, row: &Row<'_>, column: usize) -> Option<f64> {
        let figure = spec.figures.first()?;
        let of = |at: usize| row.median(at, figure);
        advantage(spec.better, &row.unit, of(column)?, of(self.base?)?)
    }

    /// The lowest and the highest ratio among the rounds.
    fn by_round(&self, spec: &Spec, row: &Row<'_>, column: usize) -> Option<(f64, f64)> {
        let (figure, base) = (spec.figures.first()?, row.columns.get(self.base?)?);
        let of_round = |record: &&Value| {
            let over = base.iter().find(|over| word(over, "round") == word(record, "round"))?;
            advantage(spec.better, &row.unit, figure.of(record)?, figure.of(over)?)
        };
        let ratios: Vec<f64> = row.columns.get(column)?.iter().filter_map(of_round).collect();
        (ratios.len() > 1).then(|| spread(&ratios))
    }

    fn cells(&self, spec: &Spec, row: &Row<'_>) -> Vec<String> {
        let mut cells = vec![row.name.clone()];
        if spec.better == Better::Unit {
            cells.push(row.unit.clone());
        }
        for column in 0..self.columns.len() {
            cells.extend(spec.figures.iter().map(|figure| figure.shown(row.median(column, figure))));
        }
        for (column, _) in self.beside_base() {
            let ratio = self.ratio(spec, row, column).map_or("-".to_owned(), |ratio| format!("**{ratio:.2}**"));
            let spread = self.by_round(spec, row, column);
            cells.push(ratio + &spread.map_or(String::new(), |(low, high)| format!(" ({low:.2} - {high:.2})")));
        }
        cells
    }

    fn titles(&self, spec: &Spec) -> Vec<String> {
        let mut titles = vec![spec.rows.join(", ")];
        if spec.better == Better::Unit {
            titles.push("of".to_owned());
        }
        for column in &self.columns {
            titles.extend(spec.figures.iter().map(|figure| format!("{column} {}", figure.name).trim().to_owned()));
        }
        let than = |(_, column): (usize, &String)| format!("{column} ahead of {}", spec.base);
        titles.extend(self.beside_base().map(than));
        titles
    }
}

impl Row<'_> {
    fn median(&self, column: usize, figure: &Figure) -> Option<f64> {
        median(self.columns.get(column)?.iter().filter_map(|record| figure.of(record)).collect())
    }
}

/// By how much `figure` is better than `over`: above 1 for better.
fn advantage(better: Better, unit: &str, figure: f64, over: f64) -> Option<f64> {
    let more = better == Better::Unit && unit.ends_with("/s");
    let (good, bad) = if more { (figure, over) } else { (over, figure) };
    (good > 0.0 && bad > 0.0).then(|| good / bad)
}

/// The table, with a line on the origin of its figures.
///
/// # Errors
/// `InvalidArgument`: no record passes `only`.
pub fn drawn(spec: &Spec, records: &[Value]) -> Result<String> {
    let table = Table::of(spec, records);
    if table.rows.is_empty() {
        return Err(Error::invalid_argument(format!("no record in {:?} fits the table", spec.file)));
    }
    let titles = table.titles(spec);
    let mut text = format!("| {} |\n|{}\n", titles.join(" | "), "---|".repeat(titles.len()));
    for row in &table.rows {
        let _ = writeln!(text, "| {} |", table.cells(spec, row).join(" | "));
    }
    let _ = writeln!(text, "\n{}", origin(spec, &table));
    Ok(text)
}

/// Place, time and conditions of a table's figures.
pub fn origin(spec: &Spec, table: &Table<'_>) -> String {
    let records: Vec<&Value> = table.rows.iter().flat_map(|row| row.columns.iter().flatten()).copied().collect();
    let distinct = |of: &dyn Fn(&Value) -> String| {
        let words = in_order(records.iter().copied(), of).into_iter().map(|(word, _)| word);
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    };
    let versions = distinct(&|record| match (word(record, "lib"), word(record, "version")) {
        (_, version) if version.is_empty() => String::new(),
        (lib, version) => format!("{lib} is {version}"),
    });
    let rounds = in_order(records.iter().copied(), |record| word(record, "round")).len();
    let rounds = if rounds > 1 { format!("medians of {rounds} rounds") } else { String::new() };
    let commits = distinct(&|record| word(record, "commit"));
    let parts = [
        if spec.file.is_empty() { String::new() } else { format!("`{}`", spec.file) },
        distinct(&machine),
        distinct(&|record| at(record, "unix_time_s").and_then(Value::as_u64).map_or_else(String::new, date)),
        format!("Spillway at {commits}"),
        versions,
        rounds,
        distinct(&|record| word(record, "flags"))
            .split(", ")
            .map(|flags| format!("`{flags}`"))
            .collect::<Vec<_>>()
            .join(", "),
    ];
    parts.into_iter().filter(|part| !part.is_empty() && part != "``").collect::<Vec<_>>().join("; ") + "."
}

fn machine(record: &Value) -> String {
    let of = |name: &str| word(record, &format!("machine.{name}"));
    let (cpu, kernel) = (of("cpu"), of("kernel"));
    if cpu.is_empty() {
        return String::new();
    }
    format!("{cpu} ({} cores, {} GiB), Linux {kernel}, {}", of("cores"), of("memory_gib"), of("file_system"))
}

/// The day of a time, in UTC.
fn date(unix_time_s: u64) -> String {
    // Days count from 0000-03-01: leap days end their years (Hinnant's civil_from_days).
    let days = unix_time_s / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec() -> Spec {
        Spec {
            rows: vec!["workload".to_owned(), "mode".to_owned()],
            across: "lib".to_owned(),
            figures: vec![Figure::new("figure", "", 1), Figure::new("latency.read.p99_us", "p99", 0)],
            base: "a".to_owned(),
            better: Better::Unit,
            behind_first: true,
            ..Spec::default()
        }
    }

    fn record(workload: &str, lib: &str, round: u32, figure: f64) -> Value {
        let unit = if workload == "restart" { "ms" } else { "ops/s" };
        json!({"workload": workload, "mode": "", "lib": lib, "round": round, "figure": figure, "unit": unit,
               "latency": {"read": {"p99_us": 7.4}}, "commit": "c0ffee", "flags": "--x=1", "unix_time_s": 1_795_535_969_u64})
    }

    #[test]
    fn medians_stand_beside_their_ratio_and_what_is_behind_stands_first() {
        let records = [
            record("get", "a", 0, 100.0),
            record("get", "b", 0, 200.0),
            record("get", "a", 1, 300.0),
            record("get", "b", 1, 300.0),
            record("restart", "a", 0, 10.0),
            record("restart", "b", 0, 20.0),
            record("put", "a", 0, 5.0),
        ];
        let text = drawn(&spec(), &records).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "| workload, mode | of | a | a p99 | b | b p99 | b ahead of a |");
        assert_eq!(lines[2], "| restart | ms | 10.0 | 7 | 20.0 | 7 | **0.50** |");
        assert_eq!(lines[3], "| get | ops/s | 200.0 | 7 | 250.0 | 7 | **1.25** (1.00 - 2.00) |");
        assert_eq!(lines[4], "| put | ops/s | 5.0 | 7 | - | - | - |");
        assert_eq!(lines[6], "2026-11-24; Spillway at c0ffee; medians of 2 rounds; `--x=1`.");
    }

    #[test]
    fn what_the_base_loses_stands_first() {
        let records = [
            record("get", "a", 0, 100.0),
            record("get", "b", 0, 50.0),
            record("put", "a", 0, 100.0),
            record("put", "b", 0, 101.0),
            record("scan", "a", 0, 100.0),
            record("scan", "b", 0, 300.0),
        ];
        let text = drawn(&Spec { behind_first: false, ahead_first: true, ..spec() }, &records).unwrap();
        let names: Vec<&str> = text.lines().skip(2).take(3).map(|line| line.split(' ').nth(1).unwrap()).collect();
        assert_eq!(names, ["scan", "put", "get"]);
    }

    #[test]
    fn records_are_chosen_by_their_fields() {
        let only = BTreeMap::from([("workload".to_owned(), vec![json!("put")])]);
        let records = [record("get", "a", 0, 1.0), record("put", "a", 0, 5.0)];
        let text = drawn(&Spec { only: only.clone(), ..spec() }, &records).unwrap();
        assert!(text.contains("| put |") && !text.contains("| get |"), "{text}");
        assert!(drawn(&Spec { only, ..spec() }, &records[..1]).is_err());
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let days = [0, 951_782_400, 951_868_800, 1_767_225_599].map(date);
        assert_eq!(days, ["1970-01-01", "2000-02-29", "2000-03-01", "2025-12-31"]);
    }
}
