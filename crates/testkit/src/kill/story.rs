//! Operations of the threads of a process to be killed. Each thread counts its operations, and the count alone
//! determines each operation: the expected contents follow from the counts.
//!
//! Threads write disjoint keys, so their relative order does not matter. In one family the keys of all threads
//! interleave. In the other families each thread's keys are contiguous, and ranges of them are deleted.

use base::UserOrder;

use crate::ingest::{File, Ingest, Way};
use crate::ops::{Action, Change, Durability, Key, Value};
use crate::random::Random;

/// Every operation writes to each of them.
pub const FAMILIES: [&str; 3] = ["default", "lists", "sums"];

/// Family with interleaved keys of all threads.
const SHARED: &str = "default";

/// Distinct keys of a thread in each family.
const KEYS: u64 = 60;

/// Maximum number of keys covered by a range deletion.
const RANGE_KEYS: u64 = 12;

/// Operations determined by a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Story {
    pub seed: u64,
    /// Percentage of ingests.
    pub ingests_percent: u64,
}

/// One operation: a plain batch if it has neither files nor excises.
pub struct Operation {
    pub ingest: Ingest,
    pub durability: Durability,
}

impl Operation {
    pub fn is_ingest(&self) -> bool {
        !self.ingest.files.is_empty() || !self.ingest.excises.is_empty()
    }
}

/// Key of a thread's operation counter.
pub fn counter(thread: u64) -> Key {
    format!("n{thread}").into_bytes()
}

impl Story {
    /// Operation number `n` of a thread, counted from 1.
    pub fn operation(&self, thread: u64, n: u64, order: &UserOrder) -> Operation {
        let mut random = Random::new(self.seed ^ (thread << 48) ^ n);
        let mut ingest = Ingest::default();
        if random.chance(self.ingests_percent) {
            ingest.way = *random.pick(&[Way::Flushable, Way::Flushable, Way::Flushable, Way::Direct]);
            let in_files: Vec<&str> = FAMILIES.into_iter().filter(|_| random.chance(60)).collect();
            for family in &in_files {
                let entries = changes(&mut random, thread, n, family, 1 + n % 20);
                ingest.files.push(File { family: (*family).to_owned(), entries });
            }
            if random.chance(20) {
                let (start, end) = range(&mut random, thread);
                ingest.excises.push(("lists".to_owned(), start, end));
            }
        }
        // Every family gets the counter.
        let rides_along = ingest.way == Way::Flushable || random.chance(50);
        for family in FAMILIES {
            let in_file = ingest.files.iter_mut().find(|file| file.family == family);
            let count = Action::Put(counter(thread), Value::Number(n));
            match in_file {
                Some(file) => file.entries.push(count),
                None if rides_along => {
                    let actions = changes(&mut random, thread, n, family, n % 4);
                    let all = actions.into_iter().chain([count]);
                    ingest.batch.extend(all.map(|action| Change { family: family.to_owned(), action }));
                }
                None => ingest.files.push(File { family: family.to_owned(), entries: vec![count] }),
            }
        }
        ingest.arrange(order);
        // Rare: both wait for the disk, and lives are short.
        let rare = random.below(400);
        let durability = Durability { sync: rare == 0, flush: rare == 1, ..Durability::default() };
        Operation { ingest, durability }
    }
}

fn key(random: &mut Random, thread: u64, family: &str) -> Key {
    let number = random.below(KEYS);
    if family == SHARED { format!("{number:03}-{thread}") } else { format!("{thread}-{number:03}") }.into_bytes()
}

fn range(random: &mut Random, thread: u64) -> (Key, Key) {
    let start = random.below(KEYS);
    let end = start + 1 + random.below(RANGE_KEYS);
    (format!("{thread}-{start:03}").into_bytes(), format!("{thread}-{end:03}").into_bytes())
}

/// `count` changes of operation `n` of a thread, to one family.
fn changes(random: &mut Random, thread: u64, n: u64, family: &str, count: u64) -> Vec<Action> {
    let counts = family == "sums";
    let change = |_| {
        let key = key(random, thread, family);
        match random.below(20) {
            0..11 if counts => Action::Put(key, Value::Number(n)),
            0..11 => Action::Put(key, Value::Noise { seed: n, len: value_len(random) }),
            11..13 => Action::Delete(key),
            13 if family != SHARED => {
                let (start, end) = range(random, thread);
                Action::DeleteRange(start, end)
            }
            _ if counts => Action::Merge(key, Value::Number(n)),
            _ => Action::Merge(key, Value::text(n.to_string())),
        }
    };
    (0..count).map(change).collect()
}

/// Inline values, values large enough to stay in the WAL, and rarely a value that makes a large batch.
fn value_len(random: &mut Random) -> u32 {
    let most = match random.below(100) {
        0..30 => 12,
        30..98 => 900,
        _ => 14_000,
    };
    random.below(most) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_the_same_whoever_asks_and_count_in_every_family() {
        let story = Story { seed: 7, ingests_percent: 30 };
        let order = UserOrder::ReverseBytewise;
        let mut ingests = 0;
        for n in 1..400 {
            let operation = story.operation(2, n, &order);
            assert_eq!(operation.ingest, story.operation(2, n, &order).ingest);
            let changes = operation.ingest.changes(&order);
            let counts = |family: &&str| {
                changes.iter().any(|change| {
                    change.family == **family && change.action == Action::Put(counter(2), Value::Number(n))
                })
            };
            assert!(FAMILIES.iter().all(counts));
            ingests += usize::from(operation.is_ingest());
            let quiet = Story { ingests_percent: 0, ..story }.operation(2, n, &order);
            assert!(!quiet.is_ingest() && !quiet.ingest.batch.is_empty());
        }
        assert!((60..200).contains(&ingests), "{ingests}");
    }
}
