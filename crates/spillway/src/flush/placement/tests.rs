//! Placement as text: levels, reserved spans, tables to place, and their levels.
//! `UPDATE=1 cargo test -p spillway-db ingest::placement` writes the expected parts anew.
//!
//! A case is input lines, `----`, expected lines, and an empty line. Input lines:
//!
//! - `NAME=VALUE ...`: options of the family, from here on;
//! - `LEVEL: NUMBER:ENTRY,ENTRY... ...`: tables of the version, level 0's newest first. An entry is a key, or `START-END`
//!   for a range tombstone;
//! - `taken LEVEL FIRST LAST`: a span that a running compaction writes into or another job has reserved; `LAST)` is an
//!   exclusive end;
//! - `place NUMBER:ENTRY,...`: the next table of the run; shown is its level. `top` instead: placed above everything;
//!   `flushed`: the table of a memtable of the same flush;
//! - `install`: the placed tables are in the version from here on;
//! - `holds [LEVEL:NUMBER ...]`: whether the places still stand if the named tables leave by the same edit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use base::options::apply_string;
use base::tombstone::RangeTombstone;
use base::{Error, FamilyId, InternalOrder, ValueKind, key};
use vfs::IfExists;

use super::*;
use crate::version::builder::VersionBuilder;
use crate::version::edit::VersionEdit;
use crate::version::purge::PurgeQueue;
use crate::version::table_store::{OpenSlots, TableOpener, TableStore};

struct NoTables;

impl TableOpener for NoTables {
    fn open(&self, _meta: &FileMeta) -> Result<Arc<dyn Table>> {
        Err(Error::unsupported("tables are known by their entries here"))
    }
}

fn store() -> Arc<TableStore> {
    TableStore::new(
        Box::new(NoTables),
        OpenSlots::new(-1),
        crate::version::log_life::LogLives::new(vfs::MemoryVfs::new(1), "/logs".into(), PurgeQueue::new()),
    )
}

/// User keys; with an end, a range tombstone.
type Entry = (Vec<u8>, Option<Vec<u8>>);

/// Probe with the entries of every table.
#[derive(Default)]
struct Entries(BTreeMap<u64, Vec<Entry>>);

impl Probe for Entries {
    fn has_data(&self, file: &TableFile, span: &Span) -> Result<bool> {
        let reaches = |(start, end): &Entry| {
            let of_entry = Span {
                start: start.clone(),
                end: end.as_ref().unwrap_or(start).clone(),
                end_is_exclusive: end.is_some(),
            };
            of_entry.overlaps(&UserOrder::Bytewise, span)
        };
        Ok(self.0.get(&file.number().0).expect("a table of the case").iter().any(reaches))
    }
}

#[derive(Default)]
struct World {
    options: FamilyOptions,
    edit: VersionEdit,
    entries: Entries,
    epoch: u64,
    taken: Vec<(usize, Span)>,
    /// Tables of the run so far, with the word for how each is placed.
    run: Vec<(FileMeta, String)>,
}

impl World {
    fn version(&self) -> Version {
        let store = store();
        let empty = Version::empty(InternalOrder::default(), self.options.num_levels);
        let mut builder = VersionBuilder::new(&empty, &store);
        builder.apply(&self.edit).unwrap();
        builder.build().unwrap().version
    }

    /// `NUMBER:ENTRY,ENTRY...`
    fn table(&mut self, text: &str) -> FileMeta {
        let (number, entries) = text.split_once(':').unwrap();
        let number: u64 = number.parse().unwrap();
        let entry = |text: &str| match text.split_once('-') {
            Some((start, end)) => (start.into(), Some(end.into())),
            None => (text.into(), None),
        };
        let entries: Vec<Entry> = entries.split(',').map(entry).collect();
        let smallest = entries.iter().map(|(start, _)| start).min().unwrap();
        let largest = |(start, end): &Entry| match end {
            Some(end) => key::encode(end, SeqNo::MAX, ValueKind::RangeDeletion),
            None => key::encode(start, SeqNo(1), ValueKind::Value),
        };
        let order = InternalOrder::default();
        let meta = FileMeta {
            number: FileNumber(number),
            file_bytes: 1000,
            smallest: key::encode(smallest, SeqNo(1), ValueKind::Value),
            largest: entries.iter().map(largest).max_by(|a, b| order.compare(a, b)).unwrap(),
            ..FileMeta::default()
        };
        self.entries.0.insert(number, entries);
        meta
    }

    fn add(&mut self, level: usize, mut meta: FileMeta) {
        self.epoch -= 1;
        meta.epoch_number = self.epoch;
        self.edit.added.push((level, meta));
    }

    fn placed(&self, version: &Version) -> Vec<Placed> {
        let mut placement = Placement::new(version, &self.options, &self.taken);
        for (meta, verb) in &self.run {
            match &**verb {
                "top" => placement.place_on_top(meta.clone()),
                "flushed" => placement.place_flushed(&store().file(meta.clone())),
                _ => placement.place(meta.clone(), &self.entries).unwrap(),
            }
        }
        placement.placed()
    }

    fn command(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["taken", level, first, last] => {
                let (end, end_is_exclusive) = last.strip_suffix(')').map_or((last, false), |end| (end, true));
                let span = Span { start: first.into(), end: end.into(), end_is_exclusive };
                self.taken.push((level.parse().unwrap(), span));
                String::new()
            }
            [verb @ ("place" | "top" | "flushed"), table] => {
                let meta = self.table(table);
                self.run.push((meta, verb.to_owned()));
                let placed = self.placed(&self.version()).pop().unwrap();
                format!("{} -> L{}\n", placed.meta.number.0, placed.level)
            }
            ["install"] => {
                let placed = self.placed(&self.version());
                self.epoch += 1000;
                placed.into_iter().rev().for_each(|placed| self.add(placed.level, placed.meta));
                self.run.clear();
                String::new()
            }
            ["holds", ref leaving @ ..] => {
                let leaving = leaving.iter().map(|place| {
                    let (level, number) = place.split_once(':').unwrap();
                    (level.parse().unwrap(), FileNumber(number.parse().unwrap()))
                });
                self.holds(&leaving.collect::<Vec<_>>())
            }
            [level, ref tables @ ..] if level.ends_with(':') => {
                let level = level.trim_end_matches(':').parse().unwrap();
                for table in tables {
                    let meta = self.table(table);
                    self.add(level, meta);
                }
                String::new()
            }
            _ => {
                apply_string(&mut self.options, &words.join(";")).unwrap();
                String::new()
            }
        }
    }

    /// Whether the places that were found without what is `taken` now, and without the tables that leave, stand beside
    /// them.
    fn holds(&self, leaving: &[(usize, FileNumber)]) -> String {
        let mut before = VersionEdit::new(FamilyId::DEFAULT);
        let stays = |(level, meta): &&(usize, FileMeta)| !leaving.contains(&(*level, meta.number));
        before.added = self.edit.added.iter().filter(stays).cloned().collect();
        let alone = World {
            options: self.options.clone(),
            edit: before,
            entries: Entries(self.entries.0.clone()),
            run: self.run.clone(),
            ..World::default()
        };
        let placed = alone.placed(&alone.version());
        let levels: String = placed.iter().map(|p| format!(" {}:L{}", p.meta.number.0, p.level)).collect();
        let holds = Placement::still_holds(&placed, leaving, &self.version(), &self.taken);
        format!("{}{levels}\n", if holds { "holds" } else { "does not hold" })
    }
}

/// What a case's input lines yield.
fn outcome(input: &str) -> String {
    let options = FamilyOptions { level_compaction_dynamic_level_bytes: false, ..FamilyOptions::default() };
    let edit = VersionEdit::new(FamilyId::DEFAULT);
    let mut world = World { options, edit, epoch: 1000, ..World::default() };
    let lines = input.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.fold(String::new(), |text, line| text + &world.command(line))
}

#[test]
fn tables_get_the_deepest_level_that_keeps_reads_right() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/flush/placement/testdata/levels.txt");
    let real = vfs::RealVfs::new();
    let text = String::from_utf8(vfs::read_all(&*real, &path, 1 << 20, IoClass::Other).unwrap()).unwrap();
    let mut written = String::new();
    for case in text.split("\n\n").filter(|case| !case.trim().is_empty()) {
        let input = case.split_once("----").map_or(case, |(input, _)| input).trim_end();
        writeln!(written, "{}\n----\n{}", input.trim_start(), outcome(input)).unwrap();
    }
    if std::env::var_os("UPDATE").is_some() {
        let mut file = real.create(&path, IfExists::Truncate).unwrap();
        file.append(written.as_bytes(), IoClass::Other).unwrap();
        return;
    }
    assert_eq!(text, written, "UPDATE=1 rewrites it");
}

/// A probe of a table's tombstones finds the one that covers a span's start, and the one that begins in it.
#[test]
fn tombstones_that_reach_into_a_span_are_found() {
    let order = UserOrder::Bytewise;
    let tombstone = |start: &str, end: &str| RangeTombstone { start: start.into(), end: end.into(), seq: SeqNo(1) };
    let all = FragmentedTombstones::build(order.clone(), vec![tombstone("c", "f"), tombstone("m", "p")]);
    let found = |start: &str, end: &str, end_is_exclusive: bool| {
        covers_any(&all, &Span { start: start.into(), end: end.into(), end_is_exclusive }, &order)
    };
    let cases = [("a", "b"), ("a", "c"), ("d", "e"), ("e", "k"), ("f", "l"), ("f", "m"), ("k", "z"), ("p", "z")];
    let inclusive = cases.map(|(start, end)| found(start, end, false));
    assert_eq!(inclusive, [false, true, true, true, false, true, true, false]);
    let exclusive = cases.map(|(start, end)| found(start, end, true));
    assert_eq!(exclusive, [false, false, true, true, false, false, true, false]);
}
