//! Tables and pictures of libraries side by side. What is behind stands first.

use std::fmt::Write;

use crate::latency::Distribution;
use crate::medians::{in_order, median, spread};
use crate::plot::bars::{Bars, Group};
use crate::plot::{Across, Panel, Plot, Series};
use crate::sides::{SideRecord, Unit, Window};

/// A picture of one file.
pub struct Picture {
    /// Of the file.
    pub name: String,
    about: &'static str,
    pub svg: String,
}

/// The tables of one file, and under them its pictures.
pub fn draw(name: &str, records: &[SideRecord], pictures: &[Picture]) -> String {
    let Some(first) = records.first() else {
        return String::new();
    };
    let mut text = super::heading(name, &first.setting);
    text.push_str(&tables(records));
    for picture in pictures {
        let _ = writeln!(text, "\n![{}]({})", picture.about, picture.name);
    }
    text
}

/// The pictures of one file, whose names begin with `stem`.
pub fn pictures(stem: &str, records: &[SideRecord]) -> Vec<Picture> {
    let picture = |end: &str, about, svg| Picture { name: format!("{stem}{end}.svg"), about, svg };
    let ratios = ratios(records).map(|bars| picture("", "How far libraries are ahead, by workload", bars.svg()));
    let over_time = over_time(records);
    let over_time =
        over_time.map(|plot| picture("-ingest", "Latencies of writes over time, beside ingests", plot.svg()));
    ratios.into_iter().chain(over_time).collect()
}

/// All rounds of a workload, by library.
struct Row<'a> {
    name: String,
    unit: Unit,
    sides: Vec<Vec<&'a SideRecord>>,
}

/// Figures of the same conditions: libraries in the order of the command line, rows in that of the suite.
struct Table<'a> {
    libs: Vec<&'a str>,
    rows: Vec<Row<'a>>,
}

type Figure = fn(&SideRecord) -> Option<f64>;

impl<'a> Table<'a> {
    /// One for each set of conditions.
    fn all(records: &'a [SideRecord]) -> Vec<(&'a str, Table<'a>)> {
        let of_conditions = in_order(records, |record| record.setting.flags.as_str());
        of_conditions.into_iter().map(|(conditions, records)| (conditions, Table::of(&records))).collect()
    }

    fn of(records: &[&'a SideRecord]) -> Table<'a> {
        // Who goes first changes; who is named first had the first turn of the first round.
        let libs: Vec<&str> =
            in_order(records.iter().copied(), |record| record.lib.as_str()).into_iter().map(|(lib, _)| lib).collect();
        let rows = in_order(records.iter().copied(), |record| (record.workload.as_str(), record.mode.as_str()));
        let row = |(_, records): (_, Vec<&'a SideRecord>)| {
            let first = records.first()?;
            let of_lib = |lib: &&str| records.iter().copied().filter(|record| record.lib == *lib).collect();
            Some(Row { name: first.name(), unit: first.unit, sides: libs.iter().map(of_lib).collect() })
        };
        Table { rows: rows.into_iter().filter_map(row).collect(), libs }
    }

    /// Rows in which a library is behind the first, the furthest first; then the others.
    fn behind_first(&self) -> Vec<&Row<'a>> {
        let worst = |row: &Row<'_>| {
            let advantages = (1..self.libs.len()).filter_map(|side| row.advantage(side));
            advantages.fold(1.0, f64::min)
        };
        let mut rows: Vec<&Row<'a>> = self.rows.iter().collect();
        rows.sort_by(|one, other| worst(one).total_cmp(&worst(other)));
        rows
    }
}

impl Row<'_> {
    /// A library's median over the rounds.
    fn median(&self, side: usize, figure: Figure) -> Option<f64> {
        median(self.sides.get(side)?.iter().filter_map(|record| figure(record)).collect())
    }

    /// How far a library is ahead of the first, by medians.
    fn advantage(&self, side: usize) -> Option<f64> {
        Some(self.unit.advantage(self.median(side, figure)?, self.median(0, figure)?))
    }

    /// The least and the most of that among the rounds.
    fn by_round(&self, side: usize) -> Option<(f64, f64)> {
        let first = self.sides.first()?;
        let of_round = |record: &&SideRecord| {
            let over = first.iter().find(|over| over.round == record.round)?;
            Some(self.unit.advantage(record.figure, over.figure))
        };
        let advantages: Vec<f64> = self.sides.get(side)?.iter().filter_map(of_round).collect();
        (!advantages.is_empty()).then(|| spread(&advantages))
    }

    /// A figure of every library, in their order; empty where none has it.
    fn cells(&self, figure: impl Fn(&SideRecord) -> Option<f64>, digits: usize) -> String {
        let of = |side: &Vec<&SideRecord>| median(side.iter().filter_map(|record| figure(record)).collect());
        let medians: Vec<Option<f64>> = self.sides.iter().map(of).collect();
        if medians.iter().all(Option::is_none) {
            return String::new();
        }
        let shown = medians.iter().map(|figure| figure.map_or("-".to_owned(), |figure| format!("{figure:.digits$}")));
        shown.collect::<Vec<_>>().join(" / ")
    }
}

fn figure(record: &SideRecord) -> Option<f64> {
    Some(record.figure)
}

/// The tables of a run.
pub fn tables(records: &[SideRecord]) -> String {
    let mut text = String::new();
    for (conditions, table) in Table::all(records) {
        let rounds = records.iter().map(|record| record.round).max().unwrap_or_default() + 1;
        let _ = writeln!(text, "\n`{conditions}`, medians of {rounds} round(s). Options:\n\n```");
        for lib in &table.libs {
            let of_lib = records.iter().find(|record| record.lib == *lib);
            let _ = of_lib.map(|record| writeln!(text, "{lib} ({}): {}", record.version, record.options));
        }
        text.push_str("```\n");
        figures(&mut text, &table);
        times(&mut text, &table);
        costs(&mut text, &table);
    }
    text
}

/// The figure that stands for each workload, beside the first library's.
fn figures(text: &mut String, table: &Table<'_>) {
    let Some((first, others)) = table.libs.split_first() else { return };
    let _ = write!(
        text,
        "\nWhat is behind stands first. A ratio above 1 is better, whatever the unit.\n\n| workload | of | {first} |"
    );
    for lib in others {
        let _ = write!(text, " {lib} | ahead of {first} | lowest - highest by round | CPU per op of {first}'s |");
    }
    let _ = writeln!(text, "\n|---|---|---|{}", "---|---|---|---|".repeat(others.len()));
    for row in table.behind_first() {
        let shown = |side| row.median(side, figure).map_or("-".to_owned(), |figure| format!("{figure:.1}"));
        let _ = write!(text, "| {} | {} | {} |", row.name, row.unit.name(), shown(0));
        let cpu = |side| row.median(side, |record| Some(record.idle_cpu_us_per_op.unwrap_or(record.cpu_us_per_op)));
        for side in 1..table.libs.len() {
            let ahead = row.advantage(side).map_or("-".to_owned(), |ahead| format!("**{ahead:.2}**"));
            let (low, high) = row.by_round(side).unwrap_or_default();
            let ratio = cpu(side).zip(cpu(0)).map_or("-".to_owned(), |(own, over)| format!("{:.2}", own / over));
            let _ = write!(text, " {} | {ahead} | {low:.2} - {high:.2} | {ratio} |", shown(side));
        }
        text.push('\n');
    }
}

/// Times of single operations.
fn times(text: &mut String, table: &Table<'_>) {
    let _ = writeln!(
        text,
        "\nTimes of single operations in \u{b5}s, {}:\n\n| workload | of | p50 | p99 | p99.9 | p99.99 | longest |\n|---|---|---|---|---|---|---|",
        table.libs.join(" / ")
    );
    for row in &table.rows {
        for kind in ["read", "write", "seek"] {
            let cell = |figure: fn(&Distribution) -> f64| row.cells(|record| record.latency.get(kind).map(figure), 1);
            let cells =
                [cell(|d| d.p50_us), cell(|d| d.p99_us), cell(|d| d.p999_us), cell(|d| d.p9999_us), cell(|d| d.max_us)];
            if !cells.iter().all(String::is_empty) {
                let _ = writeln!(text, "| {} | {kind} | {} |", row.name, cells.join(" | "));
            }
        }
    }
}

/// What the work took: time to the last acknowledgement and to the end of flushes and compactions, processor, bytes, memory.
fn costs(text: &mut String, table: &Table<'_>) {
    let _ = writeln!(
        text,
        "\nWhat it took, {}: seconds to the last acknowledgement and until flushes and compactions were idle; processor time of all threads \
         per operation, to the one and to the other; bytes that the kernel was made to store, and that went through write calls, over the \
         bytes of keys and values; the most memory held; the files in the end.\n\n\
         | workload | s | s to idle | CPU \u{b5}s/op | to idle | stored / user's | written / user's | MB held | MB of files |\n\
         |---|---|---|---|---|---|---|---|---|",
        table.libs.join(" / ")
    );
    for row in &table.rows {
        let over_user = |bytes: fn(&SideRecord) -> u64| {
            row.cells(|r| (r.user_bytes > 0).then(|| bytes(r) as f64 / r.user_bytes as f64), 2)
        };
        let cells = [
            row.cells(|record| Some(record.wall_s), 2),
            row.cells(|record| record.idle_wall_s, 2),
            row.cells(|record| Some(record.cpu_us_per_op), 2),
            row.cells(|record| record.idle_cpu_us_per_op, 2),
            over_user(|record| record.storage_bytes),
            over_user(|record| record.call_bytes),
            row.cells(|record| Some(record.peak_bytes as f64 / 1e6), 0),
            row.cells(|record| record.disk_bytes.map(|bytes| bytes as f64 / 1e6), 1),
        ];
        let _ = writeln!(text, "| {} | {} |", row.name, cells.join(" | "));
    }
}

/// How far libraries are ahead of the first, as bars. `None` where there is one library only.
fn ratios(records: &[SideRecord]) -> Option<Bars> {
    let (conditions, table) = Table::all(records).into_iter().next()?;
    let (first, others) = table.libs.split_first()?;
    let groups = table.rows.iter().map(|row| Group {
        title: format!("{} ({})", row.name, row.unit.name()),
        ratios: (1..table.libs.len()).map(|side| row.advantage(side)).collect(),
    });
    (!others.is_empty()).then(|| Bars {
        title: format!("How far ahead of {first}"),
        names: others.iter().map(|lib| (*lib).to_owned()).collect(),
        groups: groups.collect(),
        caption: caption("Above 1 is better, whatever the unit. Medians.", conditions, records),
    })
}

/// Latencies of writers over time, with the ingests among them: a panel for each library and mode, in the first round that has it.
fn over_time(records: &[SideRecord]) -> Option<Plot> {
    let runs: Vec<&SideRecord> = records.iter().filter(|record| !record.windows.is_empty()).collect();
    let first = *runs.first()?;
    let libs = in_order(records, |record| record.lib.as_str());
    let modes = in_order(runs.iter().copied(), |record| record.mode.as_str());
    let panels = modes.iter().flat_map(|(_, of_mode)| {
        libs.iter().filter_map(|(lib, _)| of_mode.iter().find(|record| record.lib == *lib)).map(|record| panel(record))
    });
    let end_s = first.windows.len() as f64 * first.windows.get(1)?.at_s;
    Some(Plot {
        title: "Writes beside ingests".to_owned(),
        x_label: "seconds; dotted: an ingest is called".to_owned(),
        y_label: "latency (logarithmic)".to_owned(),
        across: Across::Seconds(end_s),
        panels: panels.collect(),
        caption: caption("From each write's intended start, by tenths of a second.", &first.setting.flags, records),
    })
}

fn panel(record: &SideRecord) -> Panel {
    let series = |name: &str, figure: fn(&Window) -> f64| Series {
        name: name.to_owned(),
        values: record.windows.iter().map(figure).collect(),
    };
    Panel {
        title: format!("{}, {}", record.lib, record.mode),
        series: vec![series("p50", |w| w.p50_us), series("longest", |w| w.max_us), series("p99", |w| w.p99_us)],
        marks: record.ingests.iter().map(|ingest| ingest.at_s).collect(),
    }
}

fn caption(about: &str, conditions: &str, records: &[SideRecord]) -> Vec<String> {
    let libs = in_order(records, |record| record.lib.as_str());
    let versions: Vec<String> =
        libs.iter().filter_map(|(lib, of_lib)| Some(format!("{lib}: {}", of_lib.first()?.version))).collect();
    let machine = records.first().map(|record| &record.setting.machine);
    let machine = machine.map(|m| {
        format!("{} ({} cores, {} GiB), Linux {}, {}.", m.cpu, m.cores, m.memory_gib, m.kernel, m.file_system)
    });
    vec![format!("{about} {conditions}"), format!("{}. {}", versions.join(", "), machine.unwrap_or_default())]
}

#[cfg(test)]
#[path = "sides_tests.rs"]
mod tests;
