//! Draws the tables of the documentation from the kept figures, so that they cannot say anything else.

mod engines;
pub mod flushes;
pub mod ingests;
mod memtables;
pub mod operation_costs;
mod persists;
pub mod restarts;
pub mod sides;

use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use serde::de::DeserializeOwned;
use vfs::{IfExists, IoClass, Vfs};

use crate::beside_db_bench::{Record, Suite};
use crate::flush::{self, FlushRecord};
use crate::ingest::{self, IngestRecord};
use crate::machine::Setting;
use crate::memtable::{self, MemtableRecord};
use crate::persist::{self, PersistRecord};
use crate::restart::{self, RestartRecord};
use crate::sides::SideRecord;

const RESULTS_BYTES_MAX: u64 = 64 << 20;
const DOCUMENT_BYTES_MAX: u64 = 4 << 20;

/// The parts of the document that are drawn, by the names in their markers.
const SECTIONS: [&str; 9] = [
    "figures",
    "figures of memtables",
    "figures of the engine with each memtable",
    "figures of persist",
    "figures of ingests",
    "figures of flushes",
    "figures of restarts",
    "figures side by side",
    "figures of operations",
];

/// Stands in a part of which no figures are kept.
const NOTHING: &str = "\nNo run is kept yet.\n";

/// What is drawn in each of [`SECTIONS`].
#[derive(Default)]
struct Drawn {
    standard: String,
    memtables: String,
    engine: String,
    persist: String,
    ingests: String,
    flushes: String,
    restarts: String,
    sides: String,
    operations: String,
    /// Files beside the document, and what is in them.
    pictures: Vec<(String, String)>,
}

/// Replaces the marked parts of `document` by tables of what `results` holds; or only compares, where `check`.
///
/// # Errors
/// `InvalidArgument`: the document lacks markers, a line of the results cannot be read, or `check` and they differ.
pub fn run(vfs: &Arc<dyn Vfs>, results: &Path, document: &Path, check: bool) -> Result<()> {
    let vfs = vfs.as_ref();
    let mut drawn = Drawn::default();
    for name in vfs.read_dir(results)?.iter().filter(|name| name.ends_with(".jsonl")) {
        let path = results.join(name);
        drawn.add(name, &read_text(vfs, &path, RESULTS_BYTES_MAX)?).map_err(|e| e.at_path(&path))?;
    }
    let old = read_text(vfs, document, DOCUMENT_BYTES_MAX)?;
    let mut new = old.clone();
    let texts = [
        drawn.standard,
        drawn.memtables,
        drawn.engine,
        drawn.persist,
        drawn.ingests,
        drawn.flushes,
        drawn.restarts,
        drawn.sides,
        drawn.operations,
    ];
    for (section, text) in SECTIONS.into_iter().zip(texts) {
        let text = if text.is_empty() { NOTHING.to_owned() } else { text };
        new = replace(&new, section, &text).map_err(|e| e.at_path(document))?;
    }
    keep(vfs, document, Some(&old), &new, check)?;
    for (name, picture) in drawn.pictures {
        let path = document.with_file_name(name);
        let old = if vfs.exists(&path)? { Some(read_text(vfs, &path, DOCUMENT_BYTES_MAX)?) } else { None };
        keep(vfs, &path, old.as_deref(), &picture, check)?;
    }
    Ok(())
}

/// Writes a file whose content has changed; or only compares, where `check`.
fn keep(vfs: &dyn Vfs, path: &Path, old: Option<&str>, new: &str, check: bool) -> Result<()> {
    if old == Some(new) {
        return Ok(());
    }
    if check {
        let message = "the figures differ from the results; run `spillway bench report`";
        return Err(Error::invalid_argument(message).at_path(path));
    }
    vfs.create(path, IfExists::Truncate)?.append(new.as_bytes(), IoClass::Other)
}

fn read_text(vfs: &dyn Vfs, path: &Path, max: u64) -> Result<String> {
    let bytes = vfs::read_all(vfs, path, max, IoClass::Other)?;
    String::from_utf8(bytes).map_err(|_| Error::invalid_argument("not text").at_path(path))
}

impl Drawn {
    /// Draws a file, whose lines are all of the kind of the first.
    fn add(&mut self, name: &str, text: &str) -> Result<()> {
        match kind_of(text)?.as_deref() {
            Some(memtable::KIND) => self.memtables.push_str(&memtables::draw(name, &parse::<MemtableRecord>(text)?)),
            Some(ingest::KIND) => self.add_ingests(name, &parse::<IngestRecord>(text)?),
            Some(persist::KIND) => self.persist.push_str(&persists::draw(name, &parse::<PersistRecord>(text)?)),
            Some(flush::KIND) => self.flushes.push_str(&flushes::draw(name, &parse::<FlushRecord>(text)?)),
            Some(restart::KIND) => self.restarts.push_str(&restarts::draw(name, &parse::<RestartRecord>(text)?)),
            Some(crate::sides::KIND) => self.add_sides(name, &parse::<SideRecord>(text)?),
            Some(operation_costs::KIND) => {
                self.operations.push_str(&operation_costs::draw(name, &parse::<operation_costs::OperationCost>(text)?));
            }
            Some(other) => {
                return Err(Error::invalid_argument(format!("line 1: no results are of the kind {other:?}")));
            }
            None => {
                let records = parse::<Record>(text)?;
                let of_suite = match records.first().map(|record| record.suite) {
                    Some(Suite::Memtables) => &mut self.engine,
                    _ => &mut self.standard,
                };
                of_suite.push_str(&engines::draw(name, &records));
            }
        }
        Ok(())
    }

    fn add_ingests(&mut self, name: &str, records: &[IngestRecord]) {
        let picture = format!("{}.svg", name.trim_end_matches(".jsonl"));
        self.ingests.push_str(&ingests::draw(name, records, &picture));
        if let Some(plot) = ingests::plot(records) {
            self.pictures.push((picture, plot.svg()));
        }
    }

    fn add_sides(&mut self, name: &str, records: &[SideRecord]) {
        let pictures = sides::pictures(name.trim_end_matches(".jsonl"), records);
        self.sides.push_str(&sides::draw(name, records, &pictures));
        self.pictures.extend(pictures.into_iter().map(|picture| (picture.name, picture.svg)));
    }
}

/// What stands above the tables of one file.
fn heading(name: &str, Setting { machine, commit, .. }: &Setting) -> String {
    format!(
        "\n### {name}\n\n{} ({} cores, {} GiB), Linux {}, {}. Spillway at commit {commit}.\n",
        machine.cpu, machine.cores, machine.memory_gib, machine.kernel, machine.file_system
    )
}

/// What the first line says that it is; nothing in runs beside db_bench.
fn kind_of(text: &str) -> Result<Option<String>> {
    let Some(line) = text.lines().find(|line| !line.trim().is_empty()) else { return Ok(None) };
    let line: serde_json::Value =
        serde_json::from_str(line).map_err(|e| Error::invalid_argument(format!("line 1: {e}")))?;
    Ok(line.get("kind").and_then(|kind| kind.as_str()).map(str::to_owned))
}

fn parse<R: DeserializeOwned>(text: &str) -> Result<Vec<R>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| Error::invalid_argument(format!("line {}: {e}", at + 1)))
    };
    lines.map(read).collect()
}

/// Puts `drawn` between the markers of a section.
fn replace(document: &str, section: &str, drawn: &str) -> Result<String> {
    let begin = format!("<!-- {section}: begin (drawn by `spillway bench report`; do not edit) -->");
    let end = format!("<!-- {section}: end -->");
    let parts = document.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let (before, after) =
        parts.ok_or_else(|| Error::invalid_argument(format!("the markers {begin} and {end} are missing")))?;
    Ok(format!("{before}{begin}\n{drawn}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::WritersRecord;
    use crate::sinks::json_of;

    #[test]
    fn only_the_marked_part_is_replaced() {
        let marked = |inside: &str| {
            format!(
                "before\n<!-- x: begin (drawn by `spillway bench report`; do not edit) -->\n{inside}<!-- x: end -->\nafter\n"
            )
        };
        assert_eq!(replace(&marked("old\n"), "x", "new\n").unwrap(), marked("new\n"));
        assert!(replace(&marked("old\n"), "y", "new\n").is_err());
        assert!(replace("no markers", "x", "new\n").is_err());
    }

    #[test]
    fn lines_that_are_no_records_are_named() {
        let line = serde_json::to_string(&Record::default()).unwrap();
        assert_eq!(parse::<Record>(&format!("{line}\n\n{line}\n")).unwrap().len(), 2);
        assert!(parse::<Record>(&format!("{line}\n{{}}")).err().unwrap().to_string().contains("line 2"));
    }

    #[test]
    fn files_go_to_the_section_of_their_kind() {
        let mut drawn = Drawn::default();
        let memtable = MemtableRecord { kind: memtable::KIND.to_owned(), ..MemtableRecord::default() };
        let persist = PersistRecord { kind: persist::KIND.to_owned(), ..PersistRecord::default() };
        let engine = Record { suite: Suite::Memtables, ..Record::default() };
        drawn.add("s.jsonl", &json_of(&Record::default()).unwrap()).unwrap();
        drawn.add("m.jsonl", &json_of(&memtable).unwrap()).unwrap();
        drawn.add("p.jsonl", &json_of(&persist).unwrap()).unwrap();
        drawn.add("e.jsonl", &json_of(&engine).unwrap()).unwrap();
        let setting_of = |kind: &str| Setting { kind: kind.to_owned(), ..Setting::default() };
        let writers =
            IngestRecord::Writers(WritersRecord { setting: setting_of(ingest::KIND), ..WritersRecord::default() });
        let flushed = FlushRecord { setting: setting_of(flush::KIND), ..FlushRecord::default() };
        let restarted = RestartRecord { setting: setting_of(restart::KIND), ..RestartRecord::default() };
        drawn.add("f.jsonl", &json_of(&flushed).unwrap()).unwrap();
        drawn.add("r.jsonl", &json_of(&restarted).unwrap()).unwrap();
        drawn.add("i.jsonl", &json_of(&writers).unwrap()).unwrap();
        assert!(drawn.standard.contains("### s.jsonl") && !drawn.standard.contains("### e.jsonl"));
        assert!(drawn.memtables.contains("### m.jsonl") && drawn.persist.contains("### p.jsonl"));
        assert!(drawn.engine.contains("### e.jsonl") && drawn.ingests.contains("### i.jsonl"));
        assert!(drawn.flushes.contains("### f.jsonl") && drawn.restarts.contains("### r.jsonl"));
        assert!(drawn.ingests.contains("(i.svg)") && drawn.pictures[0].0 == "i.svg");
        assert!(drawn.add("x.jsonl", r#"{"kind":"poem"}"#).unwrap_err().to_string().contains("poem"));
    }
}
