use std::sync::atomic::AtomicU64;

use super::*;
use crate::cursor::testing::Random;

const KEYS: u64 = 24;

fn key(n: u64) -> Vec<u8> {
    format!("{n:02}").into_bytes()
}

/// A write between its number and its publication.
struct Write {
    seq: u64,
    key: u64,
    is_live: bool,
    has_cut: bool,
}

/// A history of one family, with gaps.
struct Life {
    gaps: Arc<Gaps>,
    last: Arc<AtomicU64>,
    visible: u64,
    era: u64,
    published: Vec<(u64, u64, bool)>,
    in_flight: Vec<Write>,
}

impl Life {
    fn new() -> Self {
        let (gaps, last) = (Gaps::new(UserOrder::Bytewise), Arc::new(AtomicU64::new(0)));
        let numbers = last.clone();
        gaps.learn_with(Box::new(move || Some(SeqNo(numbers.load(Relaxed)))));
        Life { gaps, last, visible: 0, era: 0, published: Vec::new(), in_flight: Vec::new() }
    }

    fn is_live(&self, at: u64, key: u64) -> bool {
        let latest = self.published.iter().rev().find(|(seq, of, _)| *seq <= at && *of == key);
        latest.is_some_and(|(.., is_live)| *is_live)
    }

    fn number(&mut self, random: &mut Random) {
        let seq = self.last.fetch_add(1, Relaxed) + 1;
        let is_live = random.below(4) == 0;
        self.in_flight.push(Write { seq, key: random.below(KEYS), is_live, has_cut: false });
    }

    fn cut(&mut self, nth: usize) {
        let write = &mut self.in_flight[nth];
        write.has_cut = true;
        if write.is_live && self.gaps.are_known() {
            self.gaps.cut_keys(std::iter::once(key(write.key).as_slice()));
        }
    }

    fn publish(&mut self) {
        if self.in_flight.first().is_some_and(|write| write.has_cut) {
            let write = self.in_flight.remove(0);
            self.published.push((write.seq, write.key, write.is_live));
            self.visible = write.seq;
        }
    }

    /// A walk from `from` at `at`, until the first live key.
    fn walk(&self, at: u64, from: u64) -> Option<(u64, u64)> {
        let end = (from..KEYS).take_while(|key| !self.is_live(at, *key)).last()?;
        Some((from, end))
    }

    fn check(&self, at: u64, seed: u64) {
        let Some(known) = self.gaps.known(self.era) else { return };
        for n in 0..KEYS {
            let gap = known.find(&UserOrder::Bytewise, &key(n), SeqNo(at));
            assert!(gap.is_none() || !self.is_live(at, n), "seed {seed}: {n} is live at {at}, and in {gap:?}");
        }
        let apart = |pair: &[Arc<Gap>]| pair[0].lies_apart_before(&UserOrder::Bytewise, &pair[1]);
        assert!(known.gaps.windows(2).all(apart), "seed {seed}: {:?}", known.gaps);
        assert!(known.gaps.len() <= GAPS_MAX && known.watched.len() <= WATCHED_MAX);
    }
}

/// Writes are numbered, cut gaps, and are published, in every order that the commit path allows; readers add and look in
/// between.
#[test]
fn no_reader_finds_a_gap_over_a_live_key() {
    let mut found = 0;
    for seed in 0..400 {
        let (mut random, mut life) = (Random::new(seed), Life::new());
        let calm = random.below(2) == 0;
        for _ in 0..300 {
            match random.below(if calm { 14 } else { 8 }) {
                0 | 1 => life.number(&mut random),
                2 | 3 if !life.in_flight.is_empty() => {
                    let nth = random.below(life.in_flight.len() as u64) as usize;
                    life.cut(nth);
                }
                4 | 5 => life.publish(),
                6 if random.below(20) == 0 => {
                    life.era += 1;
                    life.gaps.begin_era(life.era);
                }
                _ => {
                    let at = life.visible - random.below(life.visible.min(3) + 1);
                    if let Some((start, end)) = life.walk(at, random.below(KEYS)) {
                        let (start, end) = (Edge::closed(&key(start)), Edge::closed(&key(end)));
                        life.gaps.learn(Gap::new(start, end, SeqNo(at), random.below(1000)), life.era);
                    }
                }
            }
            life.check(life.visible, seed);
            life.check(life.visible.saturating_sub(2), seed);
            found += usize::from(life.gaps.known(life.era).is_some_and(|known| !known.gaps.is_empty()));
        }
    }
    assert!(found > 10_000, "{found}");
}

fn gaps_of(known: &Known) -> String {
    let edge = |edge: &Edge| String::from_utf8_lossy(&edge.key).into_owned();
    let show = |gap: &Arc<Gap>| {
        let (from, to) = (if gap.start.is_open { '(' } else { '[' }, if gap.end.is_open { ')' } else { ']' });
        format!("{from}{} {}{to}", edge(&gap.start), edge(&gap.end))
    };
    known.gaps.iter().map(show).collect::<Vec<_>>().join(" ")
}

#[test]
fn gaps_grow_join_and_are_cut() {
    let life = Life::new();
    let learn = |start: u64, end: u64| {
        let (start, end) = (Edge::closed(&key(start)), Edge::closed(&key(end)));
        life.gaps.learn(Gap::new(start, end, SeqNo(0), 1000), 0);
    };
    let shown = || gaps_of(&life.gaps.known(0).unwrap());
    learn(1, 9);
    learn(12, 18);
    assert_eq!(shown(), "[01 09] [12 18]");
    life.gaps.cut_keys([key(3), key(12), key(18), key(20)].iter().map(Vec::as_slice));
    assert_eq!(shown(), "[01 03) (03 09] (12 18)");
    learn(8, 13);
    assert_eq!(shown(), "[01 03) (03 18)");
    life.gaps.cut(&Cut { start: &key(4), end: &key(6), end_is_open: true });
    assert_eq!(shown(), "[01 03) (03 04) [06 18)");
    learn(18, 19);
    assert_eq!(shown(), "[01 03) (03 04) [06 19]");
    life.gaps.begin_era(1);
    assert!(life.gaps.known(0).is_none());
    learn(1, 9);
    assert!(!life.gaps.are_known(), "of a version of the era before");
}

/// A write may have been numbered, and have looked for gaps, before the run was added.
#[test]
fn a_run_is_a_gap_only_once_no_write_can_have_missed_it() {
    let mut life = Life::new();
    let learn = |life: &Life, at: u64| {
        life.gaps.learn(Gap::new(Edge::closed(b"05"), Edge::closed(b"09"), SeqNo(at), 1000), 0);
    };
    life.in_flight.push(Write { seq: 1, key: 7, is_live: false, has_cut: false });
    life.last.store(1, Relaxed);
    learn(&life, 0);
    let found =
        |life: &Life, at: u64| life.gaps.known(0).unwrap().find(&UserOrder::Bytewise, b"06", SeqNo(at)).is_some();
    assert!(found(&life, 0), "it is empty at the number it was found at");
    life.cut(0);
    life.publish();
    assert!(!found(&life, 1));
    learn(&life, 1);
    assert!(found(&life, 1) && found(&life, 2));
    assert!(!found(&life, 0), "nothing is known of older numbers then");
}
