//! Random scripts. Keys are few, so they recur; values are large enough to fill memtables within a script.

use std::collections::VecDeque;

use crate::ingest::{Demands, File, Ingest, Source, Way};
use crate::ops::{Action, Change, Durability, Key, Op, Range, Script, Step, Value};
use crate::order::{KeyOrder, arrange};
use crate::profile::Profile;
use crate::random::Random;

const FAMILIES: [&str; 4] = ["default", "other", "sums", "third"];
const SNAPSHOTS: [&str; 3] = ["s", "t", "u"];
const PREPARED: [&str; 2] = ["p", "q"];
const TRANSACTIONS: [&str; 3] = ["x", "y", "z"];
const ITERATORS: [&str; 2] = ["i", "j"];

/// Sum of the weights of a script's operations.
const WEIGHTS: u64 = 1074;

/// As [`WEIGHTS`], with what only lives have.
const WEIGHTS_OF_LIVES: u64 = 1262;

/// Number of remembered deleted keys: the oldest have been through compactions.
const DELETED_MAX: usize = 30;

/// A script of `len` operations, determined by the seed.
pub fn script(seed: u64, profile: &Profile, len: usize) -> Script {
    let mut generator = Generator::new(seed, profile, WEIGHTS);
    let mut ops = generator.first_families();
    ops.extend((0..len).map(|_| generator.op()));
    Script { profile: profile.to_string(), ops }
}

/// The name of a family's import. Its merge operator is the family's.
fn imported(family: &str) -> String {
    format!("{family}-2")
}

/// A script of `len` operations of which each changes or holds something. Flushes and compactions are frequent, so that
/// little work leaves every kind of file.
pub fn life(seed: u64, profile: &Profile, len: usize) -> Script {
    let mut generator = Generator::new(seed, profile, WEIGHTS_OF_LIVES);
    let mut ops = generator.first_families();
    let end = ops.len() + len;
    while ops.len() < end {
        let mut op = generator.op();
        if let Op::Single(change, _) = &mut op
            && generator.random.chance(10)
        {
            change.family = imported(&change.family);
        }
        if !only_looks(&op) {
            ops.push(op);
        }
    }
    Script { profile: profile.to_string(), ops }
}

/// Whether the operation only compares.
fn only_looks(op: &Op) -> bool {
    let is_read = matches!(op, Op::Get(..) | Op::MultiGet(..) | Op::Scan { .. } | Op::Move(..) | Op::Check);
    is_read || matches!(op, Op::ReadOnly { .. } | Op::Checkpoint | Op::Release(_) | Op::Close(_))
}

struct Generator {
    random: Random,
    /// Operations are drawn below it.
    weights: u64,
    order: KeyOrder,
    /// Includes ingests behind.
    behind: bool,
    /// Ingests can reach the last level.
    fills_levels: bool,
    /// Last deleted keys; ingests behind must not resurrect them.
    deleted: VecDeque<Key>,
    /// Number of distinct keys.
    keys: u64,
    /// Percentage of values with thousands of bytes.
    long_values: u64,
}

impl Generator {
    fn new(seed: u64, profile: &Profile, weights: u64) -> Generator {
        let Profile { order, behind, .. } = *profile;
        let mut random = Random::new(seed);
        let keys = *random.pick(&[4, 30, 300]);
        let long_values = *random.pick(&[0, 20, 60]);
        let fills_levels = profile.fills_levels();
        Generator { random, weights, order, behind, fills_levels, deleted: VecDeque::new(), keys, long_values }
    }

    fn first_families(&self) -> Vec<Op> {
        vec![Op::Create("other".to_owned()), Op::Create("sums".to_owned())]
    }

    fn op(&mut self) -> Op {
        match self.random.below(self.weights) {
            0..480 => Op::Single(self.change(), self.durability()),
            480..560 => {
                let changes = (0..1 + self.random.below(12)).map(|_| self.change()).collect();
                Op::Batch(changes, self.durability())
            }
            560..570 => Op::Sync,
            570..600 => Op::Snapshot(self.name(&SNAPSHOTS)),
            600..620 => Op::Release(self.name(&SNAPSHOTS)),
            620..650 => Op::Flush((0..1 + self.random.below(3)).map(|_| self.name(&FAMILIES)).collect()),
            650..665 => self.compact(),
            665..667 => Op::Checkpoint,
            1000..1030 | 1044..1074 => Op::Ingest(self.ingest()),
            1030..1034 => Op::Prepare(self.name(&PREPARED), self.ingest()),
            1034..1038 => Op::Commit(self.name(&PREPARED)),
            1038..1040 => Op::Abandon(self.name(&PREPARED)),
            1040..1043 => Op::ReadOnly { closed: false },
            1043 => Op::ReadOnly { closed: true },
            667..675 => Op::Create(self.name(&FAMILIES)),
            675..680 => Op::Drop(self.name(&FAMILIES)),
            680..690 => Op::Reopen,
            690..740 => Op::Get(self.name(&FAMILIES), self.key()),
            740..760 => Op::MultiGet(self.name(&FAMILIES), (0..8).map(|_| self.key()).collect()),
            760..800 => {
                let (family, range) = (self.name(&FAMILIES), self.range());
                Op::Scan { family, range, reverse: self.random.chance(50) }
            }
            800..830 => {
                Op::Iterate { name: self.name(&ITERATORS), family: self.name(&FAMILIES), range: self.prefix_range() }
            }
            830..985 => Op::Move(self.name(&ITERATORS), self.step()),
            985..990 => Op::Close(self.name(&ITERATORS)),
            990..1000 => Op::Check,
            WEIGHTS..1134 => Op::Flush(vec![self.name(&FAMILIES)]),
            1134..1164 => Op::Compact { family: self.name(&FAMILIES), from: None, to: None, force: true },
            1164..1184 => Op::Reopen,
            1184..1200 => {
                let family = self.name(&FAMILIES);
                Op::Import { name: imported(&family), family }
            }
            1200..1204 => Op::Drop(imported(&self.name(&FAMILIES))),
            1204..1234 => {
                let changes = (0..1 + self.random.below(4)).map(|_| self.change()).collect();
                Op::Begin(self.name(&TRANSACTIONS), changes)
            }
            1234..1254 => Op::End(self.name(&TRANSACTIONS)),
            _ => Op::Undo(self.name(&TRANSACTIONS)),
        }
    }

    fn compact(&mut self) -> Op {
        let (mut from, mut to) = (self.maybe_key(), self.maybe_key());
        if let (Some(from), Some(to)) = (&mut from, &mut to) {
            arrange(&self.order.order(), from, to);
        }
        Op::Compact { family: self.name(&FAMILIES), from, to, force: self.random.chance(30) }
    }

    fn name(&mut self, names: &[&str]) -> String {
        (*self.random.pick(names)).to_owned()
    }

    fn change(&mut self) -> Change {
        let family = self.name(&FAMILIES);
        let key = self.key();
        let action = match self.random.below(100) {
            0..48 => Action::Put(key, self.value(&family)),
            48..60 => Action::Put(self.single_key(), self.value(&family)),
            60..72 => {
                self.deleted.push_front(key.clone());
                self.deleted.truncate(DELETED_MAX);
                Action::Delete(key)
            }
            72..80 => Action::SingleDelete(self.single_key()),
            80..93 => Action::Merge(key, self.operand(&family)),
            _ => {
                let (start, end) = self.span_from(key);
                Action::DeleteRange(start, end)
            }
        };
        Change { family, action }
    }

    /// Mostly narrow: wide ranges would delete the data needed to fill levels.
    fn span_from(&mut self, key: Key) -> (Key, Key) {
        let (mut start, mut end) = match self.random.chance(80) {
            true => (key.clone(), self.order.a_little_behind(&key)),
            false => (key, self.key()),
        };
        arrange(&self.order.order(), &mut start, &mut end);
        (start, end)
    }

    fn ingest(&mut self) -> Ingest {
        let way = *self.random.pick(&Way::ALL);
        let source = *self.random.pick(&Source::ALL);
        let demands = self.demands();
        if demands.behind && self.random.chance(80) {
            return self.ingest_behind(Ingest { way, source, demands, ..Ingest::default() });
        }
        let mut ingest = Ingest { way, source, verified: self.random.chance(20), demands, ..Ingest::default() };
        if (demands.numberless || demands.bottommost) && self.random.chance(60) {
            let family = self.name(&FAMILIES);
            return Ingest { files: vec![self.fresh_file(family)], source: Source::Linked, ..ingest };
        }
        let excises_percent = if demands == Demands::default() { 40 } else { 5 }; // most demands forbid them
        for _ in 0..1 + self.random.below(3) {
            let family = self.name(&FAMILIES);
            if self.random.chance(excises_percent) {
                let key = self.key();
                let (start, end) = self.span_from(key);
                ingest.excises.push((family.clone(), start, end));
            }
            ingest.files.extend((0..self.random.below(4)).map(|_| self.file(&family)));
            if self.random.chance(15) {
                ingest.files.extend(self.touching_files(&family));
            }
        }
        if self.random.chance(30) {
            ingest.batch = (0..1 + self.random.below(5)).map(|_| self.change()).collect();
        }
        ingest
    }

    /// Mostly no demands.
    fn demands(&mut self) -> Demands {
        let mut demands = Demands { behind: self.behind && self.random.chance(40), ..Demands::default() };
        if self.random.chance(35) {
            let (_, field) = *self.random.pick(&Demands::ALL);
            *field(&mut demands) = true;
        }
        demands.bottommost &= self.fills_levels;
        demands
    }

    /// An acceptable ingest behind: one or two narrow tables, as none ever leaves the last level.
    fn ingest_behind(&mut self, mut ingest: Ingest) -> Ingest {
        if ingest.source == Source::Numbered {
            ingest.source = Source::Copied;
        }
        for _ in 0..1 + self.random.below(2) {
            let family = self.name(&FAMILIES);
            let mut file = self.file(&family);
            file.entries.truncate(3);
            if let Some(key) = self.deleted.pop_back().filter(|_| self.random.chance(50)) {
                file.entries = vec![Action::Put(key, self.value(&family))];
            }
            ingest.files.push(file);
        }
        ingest
    }

    /// A table of rarely used keys, so that it overlaps nothing.
    fn fresh_file(&mut self, family: String) -> File {
        let first = self.random.below(2000);
        let put = |number: u64| {
            let value = if family.starts_with("sum") { Value::Number(number) } else { Value::text("fresh") };
            Action::Put(format!("f{:04}", first + number).into_bytes(), value)
        };
        File { entries: (0..1 + self.random.below(3)).map(put).collect(), family }
    }

    /// Two disjoint tables: the second begins at the end of a range deletion in the first.
    fn touching_files(&mut self, family: &str) -> [File; 2] {
        let key = self.key();
        let (start, end) = self.span_from(key);
        let number = self.random.below(1000);
        let value = if family.starts_with("sum") { Value::Number(number) } else { Value::text(format!("t{number}")) };
        let file = |entry: Action| File { family: family.to_owned(), entries: vec![entry] };
        [file(Action::DeleteRange(start, end.clone())), file(Action::Put(end, value))]
    }

    /// A table with keys from everywhere or from a narrow range.
    fn file(&mut self, family: &str) -> File {
        let (first, spread) = (self.random.below(self.keys), *self.random.pick(&[1, 5, self.keys]));
        let entry = |generator: &mut Self| {
            let mut action = generator.change().action;
            let near = format!("k{:03}", first + generator.random.below(spread)).into_bytes();
            match &mut action {
                Action::Put(key, _) if key.starts_with(b"s") => {}
                Action::Put(key, value) | Action::Merge(key, value) => {
                    *key = near;
                    if family.starts_with("sum") && matches!(value, Value::Repeated { .. } | Value::Noise { .. }) {
                        *value = Value::Number(generator.random.below(1000));
                    }
                }
                Action::Delete(key) => *key = near,
                Action::SingleDelete(_) => {}
                Action::DeleteRange(start, end) => (*start, *end) = generator.span_from(near),
            }
            action
        };
        let entries = (0..1 + self.random.below(15)).map(|_| entry(self)).collect();
        File { family: family.to_owned(), entries }
    }

    fn durability(&mut self) -> Durability {
        let hasty = self.random.chance(25);
        let durability = match self.random.below(20) {
            0 => Durability { sync: true, ..Durability::default() },
            1 => Durability { disable_wal: true, flush: self.random.chance(30), ..Durability::default() },
            2 => Durability { flush: self.random.chance(20), sync: self.random.chance(30), ..Durability::default() },
            _ => Durability::default(),
        };
        Durability { hasty, ..durability }
    }

    fn key(&mut self) -> Key {
        match self.random.below(self.keys) {
            0 => Key::new(),
            1 => vec![0xff; 3],
            number => format!("k{number:03}").into_bytes(),
        }
    }

    /// A key rarely written except by puts and single-deletes.
    fn single_key(&mut self) -> Key {
        format!("s{:02}", self.random.below(40)).into_bytes()
    }

    fn maybe_key(&mut self) -> Option<Key> {
        self.random.chance(50).then(|| self.key())
    }

    fn value(&mut self, family: &str) -> Value {
        if family.starts_with("sum") && self.random.chance(70) {
            return Value::Number(self.random.below(1000));
        }
        let text = format!("v{}.", self.random.below(1000)).into_bytes();
        if !self.random.chance(self.long_values) {
            return Value::Repeated { text, times: self.random.below(4) as u32 };
        }
        let len = 1000 + self.random.below(7000) as u32;
        match self.random.chance(70) {
            true => Value::Noise { seed: self.random.below(1000), len },
            false => Value::Repeated { text, times: len / 5 },
        }
    }

    /// Short, so that operands pile up.
    fn operand(&mut self, family: &str) -> Value {
        let number = self.random.below(1000);
        if family.starts_with("sum") { Value::Number(number) } else { Value::text(format!("m{number}")) }
    }

    fn range(&mut self) -> Range {
        let snapshot = self.random.chance(40).then(|| self.name(&SNAPSHOTS));
        if self.random.chance(50) {
            return Range { snapshot, ..Range::default() };
        }
        Range { snapshot, from: self.maybe_key(), to: self.maybe_key(), prefix: false }
    }

    fn prefix_range(&mut self) -> Range {
        Range { prefix: self.random.chance(25), ..self.range() }
    }

    fn step(&mut self) -> Step {
        match self.random.below(20) {
            0 => Step::First,
            1 => Step::Last,
            2..5 => Step::Seek(self.key()),
            5..8 => Step::SeekForPrev(self.key()),
            8..14 => Step::Next,
            _ => Step::Prev,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, profile};

    #[test]
    fn one_seed_gives_one_script_that_survives_printing() {
        let [profile, ..] = profile::ALL;
        let first = script(7, &profile, 500);
        assert_eq!(first, script(7, &profile, 500));
        assert_ne!(first, script(8, &profile, 500));
        assert_eq!(parse::script(&first.to_string()).unwrap(), first);
    }
}
