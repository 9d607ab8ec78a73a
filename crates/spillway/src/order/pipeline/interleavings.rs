//! Interleavings of commits as texts, on a fake WAL and a fake memtable. One step a line:
//!
//! `number NAME COUNT BYTES` takes COUNT numbers and BYTES of WAL (0: not logged); `append`, `insert` and `finish NAME`
//! are its next steps; `fail NAME` breaks the pipeline. Behind `=>` stand the last visible number, the published WAL
//! position, a reader's commits, and the commits that a crash of the process leaves in the WAL: replay ends at a hole.

#![allow(clippy::indexing_slicing, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::*;

struct Commit {
    ticket: Ticket,
    last: u64,
    log: std::ops::Range<u64>,
    is_appended: bool,
    is_inserted: bool,
}

struct World {
    pipeline: Pipeline,
    last: u64,
    log_end: u64,
    commits: BTreeMap<String, Commit>,
    /// In the order of numbers.
    names: Vec<String>,
}

impl World {
    fn step(&mut self, step: &str) {
        let words: Vec<&str> = step.split_whitespace().collect();
        match words[..] {
            ["number", name, count, bytes] => self.number(name, parsed(count), parsed(bytes)),
            ["append", name] => self.commits.get_mut(name).expect("numbered").is_appended = true,
            ["insert", name] => self.commits.get_mut(name).expect("numbered").is_inserted = true,
            ["finish", name] => self.pipeline.finish(self.commits[name].ticket),
            ["fail", _] => self.pipeline.break_down(),
            _ => panic!("no step: {step}"),
        }
    }

    fn number(&mut self, name: &str, count: u64, bytes: u64) {
        let start = self.log_end;
        self.last += count;
        self.log_end += bytes;
        let ticket = self.pipeline.enter(SeqNo(self.last), if bytes > 0 { self.log_end } else { 0 }, &[]);
        let log = start..self.log_end;
        self.names.push(name.to_owned());
        let commit = Commit { ticket, last: self.last, log, is_appended: false, is_inserted: false };
        self.commits.insert(name.to_owned(), commit);
    }

    fn in_order(&self) -> impl Iterator<Item = (&String, &Commit)> {
        self.names.iter().map(|name| (name, &self.commits[name]))
    }

    /// Also checks S2, C2: everything visible is in the memtable, everything published is in the WAL.
    fn shown(&self) -> String {
        let (visible, published) = (self.pipeline.visible().0, self.pipeline.published_log());
        let mut text = format!("{visible} {published}; reads");
        for (name, commit) in self.in_order().filter(|(_, commit)| commit.last <= visible) {
            assert!(commit.is_inserted, "{name} is visible, not inserted");
            write!(text, " {name}").expect("text");
        }
        text += "; keeps";
        for (name, commit) in self.in_order().filter(|(_, commit)| !commit.log.is_empty()) {
            if !commit.is_appended {
                assert!(published <= commit.log.start, "{name} is published, not appended");
                break;
            }
            write!(text, " {name}").expect("text");
        }
        text
    }
}

fn parsed(word: &str) -> u64 {
    word.parse().expect("a number")
}

/// The script with its results.
fn run(script: &str) -> String {
    let (pipeline, commits) = (Pipeline::new(SeqNo(0)), BTreeMap::new());
    let mut world = World { pipeline, last: 0, log_end: 0, commits, names: Vec::new() };
    let mut text = String::new();
    for line in script.lines() {
        let steps = line.split("=>").next().unwrap_or_default().trim();
        steps.split(',').for_each(|step| world.step(step));
        writeln!(text, "{steps} => {}", world.shown()).expect("text");
    }
    text
}

fn check(script: &str) {
    let script: String = script.trim().lines().map(|line| format!("{}\n", line.trim())).collect();
    assert_eq!(run(&script), script);
}

#[test]
fn writers_that_finish_in_order() {
    check(
        "number a 1 10 => 0 0; reads; keeps
         number b 2 20 => 0 0; reads; keeps
         append a, insert a => 0 0; reads; keeps a
         finish a => 1 10; reads a; keeps a
         append b, insert b => 1 10; reads a; keeps a b
         finish b => 3 30; reads a b; keeps a b",
    );
}

/// The youngest is done first: it waits, and the oldest publishes all. Until then a crash loses all three.
#[test]
fn writers_that_finish_backwards() {
    check(
        "number a 1 10, number b 1 10, number c 1 10 => 0 0; reads; keeps
         append c, insert c, finish c => 0 0; reads; keeps
         append b, insert b, finish b => 0 0; reads; keeps
         append a => 0 0; reads; keeps a b c
         insert a, finish a => 3 30; reads a b c; keeps a b c",
    );
}

/// An ingest is in the queue at once: it only appends. A write before it holds back its publication.
#[test]
fn an_ingest_between_writers() {
    check(
        "number a 1 10, number ingest 2 50, number b 1 10 => 0 0; reads; keeps
         insert ingest, append ingest, finish ingest => 0 0; reads; keeps
         append b, insert b => 0 0; reads; keeps
         append a, insert a, finish a => 3 60; reads a ingest; keeps a ingest b
         finish b => 4 70; reads a ingest b; keeps a ingest b",
    );
}

/// A write without WAL becomes visible in its turn and leaves the published position alone.
#[test]
fn a_write_that_is_not_logged() {
    check(
        "number a 1 10, number unlogged 5 0, number b 1 10 => 0 0; reads; keeps
         insert unlogged, finish unlogged => 0 0; reads; keeps
         append a, insert a, finish a => 6 10; reads a unlogged; keeps a
         append b, insert b, finish b => 7 20; reads a unlogged b; keeps a b",
    );
}

/// C4: nothing younger than a failed commit is ever visible, though its record may be in the WAL.
#[test]
fn a_commit_that_fails_after_it_was_numbered() {
    check(
        "number a 1 10, number b 1 10, number c 1 10 => 0 0; reads; keeps
         append a, insert a, finish a => 1 10; reads a; keeps a
         fail b => 1 10; reads a; keeps a
         append c, insert c, finish c => 1 10; reads a; keeps a",
    );
}
