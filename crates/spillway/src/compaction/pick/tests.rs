//! Picks as text: levels and files in, plans out. `UPDATE=1 cargo test -p spillway-db compaction::pick` rewrites the
//! expected parts.
//!
//! A file is a list of cases: input lines, `----`, expected lines, and an empty line. Input lines:
//!
//! - `NAME=VALUE ...`: options of the family, from here on;
//! - `LEVEL: NUMBER:FIRST-LAST:BYTES ...`: files, level 0 newest first; `LAST)` is the exclusive end of a range
//!   tombstone; `BYTES@SEQ` gives all entries the number SEQ, `BYTES@SEQ..SEQ` numbers from here to there, otherwise some have 1 and some 2; `!` behind it marks the
//!   file for compaction, `^` makes it mostly deletions, `%` gives it range tombstones,
//!   `&` has it refer to values in a log, `~` makes it virtual, `~FILE/BYTES` virtual in a file of so many bytes; level-0 files are
//!   older than files of earlier lines, or newer if the level is written `+0`; `BYTES@@SECOND` is when file and data were
//!   written, `BYTES@@SECOND/SECOND` when the data was, and the file;
//! - `now SECOND`: the time; `due`: when the next file gets due for its age;
//! - `run`: picks a compaction by itself and notes it as running; `end ID`: it is over, the files stand as they were;
//! - `range LEVEL FIRST LAST [move] [before NUMBER]`: the next step of a compaction by hand (`*` is an end of the key
//!   space), noted as running;
//! - `files LEVEL NUMBER ... [move]`: the compaction of named files into a level, noted as running;
//! - `pick`, `scores`, `targets`, `pending`: print their results.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::options::apply_string;
use base::{Error, FamilyId, FileNumber, InternalOrder, Result, SeqNo, ValueKind, key};
use table::Table;
use vfs::{IfExists, IoClass};

use super::*;
use crate::compaction::levels::pending_bytes;
use crate::version::builder::VersionBuilder;
use crate::version::edit::VersionEdit;
use crate::version::log_life::ValueLog;
use crate::version::purge::PurgeQueue;
use crate::version::table_file::{Backing, FileMeta};
use crate::version::table_store::{OpenSlots, TableOpener, TableStore};

struct NoTables;

impl TableOpener for NoTables {
    fn open(&self, _meta: &FileMeta) -> Result<Arc<dyn Table>> {
        Err(Error::unsupported("a pick reads no table"))
    }
}

struct World {
    options: FamilyOptions,
    edit: VersionEdit,
    epoch: u64,
    running: FamilyCompactions,
    now_s: u64,
}

impl World {
    fn version(&self) -> Version {
        let store = TableStore::new(
            Box::new(NoTables),
            OpenSlots::new(-1),
            crate::version::log_life::LogLives::new(vfs::MemoryVfs::new(1), "/logs".into(), PurgeQueue::new()),
        );
        let empty = Version::empty(InternalOrder::default(), self.options.num_levels);
        let mut builder = VersionBuilder::new(&empty, &store);
        builder.apply(&self.edit).unwrap();
        builder.build().unwrap().version
    }

    fn add_files(&mut self, level: &str, files: &str) {
        if level.starts_with('+') {
            self.epoch += 1000;
        }
        let level: usize = level.parse().unwrap();
        for text in files.split_whitespace() {
            let (text, in_log) = text.strip_suffix('&').map_or((text, false), |text| (text, true));
            let (text, deletes_ranges) = text.strip_suffix('%').map_or((text, false), |text| (text, true));
            let (text, mostly_deletions) = text.strip_suffix('^').map_or((text, false), |text| (text, true));
            let (text, marked) = text.strip_suffix('!').map_or((text, false), |text| (text, true));
            let (text, backing) = text.split_once('~').map_or((text, None), |(text, file)| (text, Some(backing(file))));
            let (text, times_s) = text.split_once("@@").unwrap_or((text, "0"));
            let (data_s, file_s) = times_s.split_once('/').unwrap_or((times_s, times_s));
            let parts: Vec<&str> = text.split(':').collect();
            let [number, keys, bytes] = parts[..] else { panic!("not a file: {text}") };
            let (first, last) = keys.split_once('-').unwrap();
            let (bytes, (smallest_seq, largest_seq)) = match bytes.split_once('@') {
                Some((bytes, seqs)) => {
                    let (first, last) = seqs.split_once("..").unwrap_or((seqs, seqs));
                    (bytes, (first.parse().unwrap(), last.parse().unwrap()))
                }
                None => (bytes, (1, 2)),
            };
            let largest = match last.strip_suffix(')') {
                Some(end) => key::encode(end.as_bytes(), SeqNo::MAX, ValueKind::RangeDeletion),
                // Newer versions come first: the next file may begin with an older one of the same key.
                None => key::encode(last.as_bytes(), SeqNo(if first == last { 1 } else { 2 }), ValueKind::Value),
            };
            self.epoch -= 1;
            self.edit.added.push((
                level,
                FileMeta {
                    number: FileNumber(number.parse().unwrap()),
                    file_bytes: bytes.parse().unwrap(),
                    smallest: key::encode(first.as_bytes(), SeqNo(1), ValueKind::Value),
                    largest,
                    smallest_seq: SeqNo(smallest_seq),
                    largest_seq: SeqNo(largest_seq),
                    epoch_number: self.epoch,
                    marked_for_compaction: marked,
                    oldest_ancestor_time: data_s.parse().unwrap(),
                    file_creation_time: file_s.parse().unwrap(),
                    mostly_deletions,
                    deletes_ranges,
                    value_logs: in_log.then_some(ValueLog { log: FileNumber(9), bytes: 100 }).into_iter().collect(),
                    backing,
                    ..FileMeta::default()
                },
            ));
        }
    }

    fn range(&mut self, words: &[&str]) -> String {
        let end = |word: &str| (word != "*").then(|| word.as_bytes().to_vec());
        let (first, last) = (end(words[1]), end(words[2]));
        let before = words.iter().position(|word| *word == "before").map(|at| words[at + 1].parse().unwrap());
        let request = RangeRequest {
            level: words[0].parse().unwrap(),
            start: first.as_deref(),
            end: last.as_deref(),
            in_place_before: before.map(FileNumber),
            may_move: words.contains(&"move"),
        };
        let step = Picker::new(&self.version(), &self.options, &self.running, 1).range(&request);
        match step {
            RangePick::Nothing => "nothing\n".into(),
            RangePick::Busy => "busy\n".into(),
            RangePick::Step { pick, resume_at } => {
                let resume_at = resume_at.map(|key| format!("then from {}\n", String::from_utf8(key).unwrap()));
                self.start(Some(*pick)) + &resume_at.unwrap_or_default()
            }
        }
    }

    fn files(&mut self, words: &[&str]) -> String {
        let files = words[1..].iter().filter_map(|word| word.parse().ok()).map(FileNumber).collect();
        let (output_level, may_move) = (words[0].parse().unwrap(), words.contains(&"move"));
        let request = FilesRequest { files: &files, output_level, may_move };
        match Picker::new(&self.version(), &self.options, &self.running, 1).named(&request) {
            Err(error) => format!("{error}\n"),
            Ok(RangePick::Nothing) => "nothing\n".into(),
            Ok(RangePick::Busy) => "busy\n".into(),
            Ok(RangePick::Step { pick, .. }) => self.start(Some(*pick)),
        }
    }

    fn start(&mut self, pick: Option<Pick>) -> String {
        let Some(pick) = pick else { return "nothing\n".into() };
        let id = self.running.begin(&pick);
        format!("{id}: {}", describe(&pick))
    }

    fn command(&mut self, line: &str) -> String {
        let version = self.version();
        let targets = LevelTargets::of(&version, &self.options);
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["run"] => {
                let pick = Picker::new(&version, &self.options, &self.running, 1).at(self.now_s).automatic();
                self.start(pick)
            }
            ["pick"] => {
                let pick = Picker::new(&version, &self.options, &self.running, 1).at(self.now_s).automatic();
                pick.map_or("nothing\n".into(), |pick| describe(&pick))
            }
            ["now", now_s] => {
                self.now_s = now_s.parse().unwrap();
                String::new()
            }
            ["due"] => {
                next_due_s(&version, &self.options, self.now_s).map_or("never\n".into(), |at| format!("due at {at}\n"))
            }
            ["end", id] => {
                self.running.end(id.parse().unwrap());
                String::new()
            }
            ["range", ref words @ ..] => self.range(words),
            ["files", ref words @ ..] => self.files(words),
            ["scores"] => {
                let all = scores(&version, &self.options, &targets, &self.running);
                let due = all.iter().filter(|(_, score)| *score > 0.0);
                due.fold(String::new(), |text, (level, score)| text + &format!("L{level} {score:.2}\n"))
            }
            ["targets"] => {
                let levels = targets.base_level..version.num_levels();
                let sizes = levels.map(|level| format!(" L{level}={}", targets.max_bytes(level)));
                format!("base L{}:{}\n", targets.base_level, sizes.collect::<String>())
            }
            ["pending"] => format!("{} bytes\n", pending_bytes(&version, &self.options)),
            _ if words[0].ends_with(':') => {
                self.add_files(words[0].trim_end_matches(':'), &words[1..].join(" "));
                String::new()
            }
            _ => {
                apply_string(&mut self.options, &words.join(";")).unwrap();
                String::new()
            }
        }
    }
}

fn backing(text: &str) -> Backing {
    let (number, file_bytes) = text.split_once('/').unwrap_or(("1000000", "1000000"));
    Backing { number: FileNumber(number.parse().unwrap()), file_bytes: file_bytes.parse().unwrap() }
}

fn describe(pick: &Pick) -> String {
    let mut text = pick.reason.name().to_string();
    let numbers =
        |files: &[Arc<TableFile>]| files.iter().map(|file| file.number().0.to_string()).collect::<Vec<_>>().join(" ");
    for inputs in &pick.inputs {
        write!(text, " L{}[{}]", inputs.level, numbers(&inputs.files)).unwrap();
    }
    write!(text, " -> L{}", pick.output_level).unwrap();
    let end = if pick.span.end_is_exclusive { ")" } else { "]" };
    let (first, last) = (String::from_utf8_lossy(&pick.span.start), String::from_utf8_lossy(&pick.span.end));
    write!(text, " [{first} {last}{end}").unwrap();
    if !pick.grandparents.is_empty() {
        write!(text, " over [{}]", numbers(&pick.grandparents)).unwrap();
    }
    for (said, word) in [(pick.trivial_move, " moved"), (pick.drops, " dropped"), (pick.bottommost, " bottommost")] {
        text.push_str(if said { word } else { "" });
    }
    if pick.compression == CompressionKind::None && !pick.trivial_move && !pick.drops {
        text.push_str(" uncompressed");
    }
    if let Some(number) = pick.sinks {
        write!(text, ", {} sinks", number.0).unwrap();
    }
    text + "\n"
}

/// What a case's input lines yield.
fn outcome(input: &str) -> String {
    let options = FamilyOptions {
        level_compaction_dynamic_level_bytes: false,
        max_bytes_for_level_base: 4096.into(),
        target_file_size_base: 4096,
        ..FamilyOptions::default()
    };
    let mut world = World {
        options,
        edit: VersionEdit::new(FamilyId::DEFAULT),
        epoch: 1000,
        running: FamilyCompactions::default(),
        now_s: 0,
    };
    let lines = input.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.fold(String::new(), |text, line| text + &world.command(line))
}

fn check(name: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/compaction/pick/testdata").join(name);
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
    assert_eq!(text, written, "{name}; UPDATE=1 rewrites it");
}

#[test]
fn level0() {
    check("level0.txt");
}

#[test]
fn large_files_over_little() {
    check("sink.txt");
}

#[test]
fn sorted_levels() {
    check("sorted.txt");
}

#[test]
fn priorities_of_tables() {
    check("priority.txt");
}

#[test]
fn named_files() {
    check("named.txt");
}

#[test]
fn ranges() {
    check("range.txt");
}

#[test]
fn sizes() {
    check("sizes.txt");
}

#[test]
fn universal_compaction() {
    check("universal.txt");
}

#[test]
fn fifo_compaction() {
    check("fifo.txt");
}

#[test]
fn compactions_for_age() {
    check("ages.txt");
}

#[test]
fn what_excises_left() {
    check("excised.txt");
}

#[test]
fn ingests_from_behind() {
    check("behind.txt");
}

#[test]
fn tables_with_mostly_deletions() {
    check("deletions.txt");
}
