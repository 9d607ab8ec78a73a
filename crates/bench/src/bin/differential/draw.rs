//! Draws histories from seeds.

use std::collections::BTreeSet;

use bench::workload::Rng;

use crate::library::whole::{Begin, Change, Compaction, How, Ingest};
use crate::shape::Frame;
use crate::step::{FILLED, Fill, Move, SLOTS, Seen, Shape, Side, Step, Target, View, filled_key};

/// A history and how its database is opened first.
pub struct History {
    pub shape: Shape,
    pub steps: Vec<Step>,
    /// The numbers of the steps to do: all, unless fewer were asked for.
    pub kept: Vec<usize>,
}

impl History {
    pub fn draw(seed: u64, length: usize) -> History {
        let mut rng = Rng::new(seed);
        let frame = Frame::draw(&mut Draw { rng: &mut rng });
        let shape = frame.shape(&mut Draw { rng: &mut rng });
        let mut drawing = Drawing { draw: Draw { rng: &mut rng }, frame: &frame, number: 0 };
        // All families but one are there from the beginning.
        let families = (1..SLOTS - 1).map(Step::CreateFamily).collect::<Vec<_>>();
        let steps = families.into_iter().chain(std::iter::repeat_with(|| drawing.step())).take(length).collect();
        History { shape, steps, kept: (0..length).collect() }
    }
}

/// Small numbers and choices.
pub struct Draw<'a> {
    pub rng: &'a mut Rng,
}

impl Draw<'_> {
    pub fn below(&mut self, limit: usize) -> usize {
        (self.rng.below(limit as u64)) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        let at = self.below(choices.len());
        choices.get(at).expect("a choice")
    }
}

struct Drawing<'a> {
    draw: Draw<'a>,
    frame: &'a Frame,
    /// Of values, so that each is another.
    number: u64,
}

impl Drawing<'_> {
    fn step(&mut self) -> Step {
        match self.draw.below(1000) {
            0..380 => self.change_somewhere(),
            380..520 => self.get(),
            520..600 => self.walk(),
            600..710 => self.cursor(),
            710..810 => self.transaction(),
            810..885 => self.batch(),
            885..897 => Step::Fill { family: self.family(), fill: self.fill() },
            897..920 => match self.draw.chance(60) {
                true => Step::Snapshot(self.slot()),
                false => Step::Release(self.slot()),
            },
            920..950 => Step::Flush(self.slot()),
            // Ends transactions: rarer where there are some.
            950..968 if self.frame.has_transactions() && self.draw.chance(70) => Step::Flush(self.slot()),
            950..968 => Step::Compact(self.slot(), self.compaction()),
            968..980 => self.ingest(),
            980..985 => match self.draw.chance(60) {
                true => Step::CreateFamily(1 + self.draw.below(SLOTS - 1)),
                false => Step::DropFamily(1 + self.draw.below(SLOTS - 1)),
            },
            985..990 => Step::Scan,
            990..994 => Step::Checkpoint { log_bytes: self.log_bytes() },
            994..997 => Step::Reopen(Box::new(self.frame.shape(&mut self.draw))),
            997 => Step::LookReadOnly,
            _ => match self.draw.chance(80) {
                true => Step::Exchange { log_bytes: self.log_bytes() },
                false => Step::Scan,
            },
        }
    }

    fn slot(&mut self) -> usize {
        self.draw.below(SLOTS)
    }

    /// Without a flush RocksDB's checkpoints lack unlogged writes; ours have them.
    fn log_bytes(&mut self) -> u64 {
        if self.frame.all_logged && self.draw.chance(60) { u64::MAX } else { 0 }
    }

    fn unlogged(&mut self) -> bool {
        self.draw.chance(5) && !self.frame.all_logged
    }

    /// Mostly the default family, which is always there.
    fn family(&mut self) -> usize {
        if self.draw.chance(40) { 0 } else { self.slot() }
    }

    /// Often one of a few, for conflicts and for values that are looked up again.
    fn key(&mut self) -> Vec<u8> {
        let letter = b'a' + self.draw.below(4) as u8;
        let digit = |draw: &mut Draw<'_>| b'0' + draw.below(10) as u8;
        if self.draw.chance(30) {
            return vec![letter, b'0' + self.draw.below(2) as u8];
        }
        if self.draw.chance(15) {
            return filled_key(self.draw.below(FILLED));
        }
        match self.draw.below(20) {
            0 => vec![],
            1 => vec![letter],
            2..14 => vec![letter, digit(&mut self.draw)],
            14..19 => vec![letter, digit(&mut self.draw), digit(&mut self.draw)],
            _ => vec![letter, digit(&mut self.draw), 0xff, 0],
        }
    }

    fn value(&mut self, family: usize) -> Vec<u8> {
        self.number += 1;
        if crate::world::merging(family) == crate::library::whole::Merging::Count && self.draw.chance(90) {
            return (self.draw.below(1000) as u64).to_le_bytes().to_vec();
        }
        let mut value = format!("v{}", self.number).into_bytes();
        match self.draw.below(20) {
            0 => value.clear(),
            1 => value.resize(600, b'x'),
            2 => value.resize(3000, b'y'),
            _ => {}
        }
        value
    }

    /// A key of those that are only put and deleted singly.
    fn single_key(&mut self) -> Vec<u8> {
        vec![b'~', b'0' + self.draw.below(8) as u8]
    }

    fn change(&mut self, family: usize) -> Change {
        match self.draw.below(100) {
            0..50 => Change::Put(self.key(), self.value(family)),
            50..70 => Change::Delete(self.key()),
            70..95 => Change::Merge(self.key(), self.operand(family)),
            _ => self.delete_range(),
        }
    }

    fn operand(&mut self, family: usize) -> Vec<u8> {
        let mut value = self.value(family);
        value.truncate(20);
        value
    }

    fn delete_range(&mut self) -> Change {
        let (from, to) = self.ordered_keys();
        Change::DeleteRange(from, to)
    }

    /// Two keys in the order of the database.
    fn ordered_keys(&mut self) -> (Vec<u8>, Vec<u8>) {
        let (one, other) = (self.key(), self.key());
        if (one > other) == self.frame.backwards { (one, other) } else { (other, one) }
    }

    fn target(&mut self) -> Target {
        let slot = self.slot();
        match self.draw.below(100) {
            0..40 => Target::Database,
            40..55 => Target::Batch(slot),
            55..70 => Target::Indexed(slot),
            _ if self.frame.has_transactions() => Target::Transaction(slot),
            _ => Target::Database,
        }
    }

    fn fill(&mut self) -> Fill {
        let count = 1 + self.draw.below(300);
        Fill {
            first: self.draw.below(FILLED),
            count,
            stride: 1 + self.draw.below(3),
            deletes: self.draw.chance(50),
            value_bytes: self.draw.below(3) * 100,
        }
    }

    fn change_somewhere(&mut self) -> Step {
        let (to, family) = (self.target(), self.family());
        let change = match to {
            Target::Database if self.draw.chance(10) => match self.draw.chance(50) {
                true => Change::Put(self.single_key(), self.value(family)),
                false => Change::SingleDelete(self.single_key()),
            },
            _ => self.change(family),
        };
        Step::Change { to, family, change, unlogged: self.unlogged() }
    }

    fn seen(&mut self) -> Seen {
        match self.draw.below(10) {
            0..7 => Seen::Latest,
            7..9 => Seen::Snapshot(self.slot()),
            _ => Seen::Own,
        }
    }

    fn read_key(&mut self) -> Vec<u8> {
        if self.draw.chance(8) { self.single_key() } else { self.key() }
    }

    fn get(&mut self) -> Step {
        let (from, seen, family) = (self.target(), self.seen(), self.family());
        match (from, self.draw.chance(50)) {
            (Target::Indexed(slot), true) => return Step::GetFromBatch { slot, family, key: self.read_key() },
            (Target::Transaction(slot), true) => {
                let (key, exclusive) = (self.key(), self.draw.chance(60));
                return Step::GetForUpdate { slot, family, key, exclusive };
            }
            _ => {}
        }
        let (how, most) = match self.draw.below(4) {
            0 => (How::Single, 1),
            1 => (How::Pinned, 1),
            2 => (How::Several, 8),
            _ => (How::Batched, 40),
        };
        let keys = (0..=self.draw.below(most)).map(|_| self.read_key()).collect();
        Step::Get { from, seen, family, keys, how }
    }

    fn view(&mut self) -> View {
        let (lower, upper) = self.ordered_keys();
        let total_order = self.draw.chance(60);
        View {
            lower: self.draw.chance(30).then_some(lower),
            upper: self.draw.chance(30).then_some(upper),
            total_order,
            // RocksDB's has an effect without a total order only.
            same_prefix: !total_order && self.draw.chance(50),
            pinned: self.draw.chance(20),
            readahead: if self.draw.chance(20) { 4096 } else { 0 },
        }
    }

    fn a_move(&mut self) -> Move {
        match self.draw.below(100) {
            0..8 => Move::First,
            8..16 => Move::Last,
            16..32 => Move::Seek(self.read_key()),
            32..48 => Move::SeekBack(self.read_key()),
            48..75 => Move::Next,
            _ => Move::Prev,
        }
    }

    fn walk(&mut self) -> Step {
        let (from, seen, family, view) = (self.target(), self.seen(), self.family(), self.view());
        let first = if self.draw.chance(50) { Move::Seek(self.read_key()) } else { self.a_move() };
        let more = self.draw.below(12);
        let moves = std::iter::once(first).chain((0..more).map(|_| self.a_move())).collect();
        Step::Walk { from, seen, family, view, moves }
    }

    fn cursor(&mut self) -> Step {
        let slot = self.slot();
        match self.draw.below(100) {
            0..30 => Step::OpenCursor { slot, family: self.family(), seen: self.seen(), view: self.view() },
            30..92 => Step::Move(slot, self.a_move()),
            92..97 => Step::Refresh(slot),
            _ => Step::CloseCursor(slot),
        }
    }

    fn transaction(&mut self) -> Step {
        let slot = self.slot();
        match self.draw.below(100) {
            _ if !self.frame.has_transactions() => self.change_somewhere(),
            0..25 => {
                let (snapshot, deadlock_detect) = (self.draw.chance(50), self.draw.chance(30));
                let lock_timeout_ms = self.draw.below(2) as i64;
                Step::Begin(slot, Begin { snapshot, deadlock_detect, lock_timeout_ms })
            }
            25..45 => Step::Commit(slot),
            45..52 => Step::RollBack(slot),
            52..77 => Step::Save(Target::Transaction(slot)),
            _ => Step::RollBackToSave(Target::Transaction(slot)),
        }
    }

    fn batch(&mut self) -> Step {
        let slot = self.slot();
        let either = if self.draw.chance(50) { Target::Batch(slot) } else { Target::Indexed(slot) };
        match self.draw.below(100) {
            0..20 => Step::WriteBatch { slot, unlogged: self.unlogged(), copied: self.draw.chance(20) },
            20..26 => Step::NewIndexed { slot, overwrite: self.draw.chance(60) },
            26..40 => Step::WriteIndexed(slot),
            40..68 => Step::Save(either),
            68..90 => Step::RollBackToSave(either),
            90..98 => Step::ForgetSave(slot),
            _ => Step::Clear(either),
        }
    }

    fn compaction(&mut self) -> Compaction {
        let (from, to) = self.ordered_keys();
        Compaction {
            from: self.draw.chance(40).then_some(from),
            to: self.draw.chance(40).then_some(to),
            exclusive: self.draw.chance(30),
            bottommost: self.draw.below(4) as u8,
            target_level: self.draw.chance(20).then(|| self.draw.below(self.frame.levels) as i32),
        }
    }

    fn ingest(&mut self) -> Step {
        let family = self.family();
        let mut keys: Vec<Vec<u8>> =
            (0..=self.draw.below(20)).map(|_| self.key()).collect::<BTreeSet<_>>().into_iter().collect();
        if self.frame.backwards {
            keys.reverse();
        }
        let mut changes: Vec<Change> = Vec::new();
        for key in keys {
            changes.push(match self.draw.below(10) {
                0..6 => Change::Put(key, self.value(family)),
                6..8 => Change::Delete(key),
                _ => Change::Merge(key, self.operand(family)),
            });
        }
        let tables = match self.draw.below(3) {
            0 if changes.len() > 1 => {
                let second = changes.split_off(changes.len() / 2);
                vec![changes, second]
            }
            1 => {
                changes.push(self.delete_range());
                vec![changes]
            }
            _ => vec![changes],
        };
        let by = if self.draw.chance(50) { Side::Ours } else { Side::Theirs };
        // Ours refuses to change a file that it does not copy (docs/compat.md).
        let (moved, number_in_file) = *self.draw.pick(&[&(false, false), &(true, false), &(false, true)]);
        let how = Ingest { moved, snapshots: true, number_in_file };
        Step::Ingest { family, by, tables, how }
    }
}
