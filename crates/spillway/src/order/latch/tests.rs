use std::cmp::Ordering as Order;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use base::{Comparator, Error, ErrorKind};

use super::*;

static BYTEWISE: UserOrder = UserOrder::Bytewise;

fn span_in(family: u32, order: &UserOrder, start: &[u8], end: &[u8], end_is_exclusive: bool) -> LatchSpan {
    let span = Span { start: start.to_vec(), end: end.to_vec(), end_is_exclusive };
    LatchSpan { family: FamilyId(family), order: order.clone(), span }
}

/// Keys of family 0, the end included.
fn span(start: &str, end: &str) -> LatchSpan {
    span_in(0, &BYTEWISE, start.as_bytes(), end.as_bytes(), false)
}

fn keys<'a>(start: &'a str, end: &'a str) -> KeyRange<'a> {
    let (start, end) = (start.as_bytes(), end.as_bytes());
    KeyRange { family: FamilyId(0), order: &BYTEWISE, start, end, end_is_exclusive: false }
}

fn go_on() -> Result<()> {
    Ok(())
}

fn acquire(latches: &RangeLatches, spans: Vec<LatchSpan>) -> LatchGuard<'_> {
    latches.acquire(Reach::of(spans), &go_on, || ()).expect("nothing ends the wait")
}

/// Waits until so many entries are in the queue, granted or not.
fn until_queued(latches: &RangeLatches, entries: usize) {
    while latches.lock().entries.len() < entries {
        std::thread::yield_now();
    }
}

#[test]
fn without_a_latch_everyone_passes_and_with_one_nobody_does_unseen() {
    let latches = RangeLatches::new();
    assert!(latches.lets_pass(&LatchPermit::default()));
    let latch = acquire(&latches, vec![span("c", "f")]);
    assert!(!latches.lets_pass(&LatchPermit::default()));
    assert!(latches.look(&[keys("d", "d")]).is_none());
    let permit = latches.look(&[keys("g", "z")]).expect("not latched");
    assert!(latches.lets_pass(&permit));
    let other = acquire(&latches, vec![span("x", "y")]);
    assert!(!latches.lets_pass(&permit), "a latch of which the permit knows nothing");
    assert!(latches.look(&[keys("g", "z")]).is_none());
    let permit = latches.look(&[keys("g", "h")]).expect("not latched");
    drop(latch);
    assert!(latches.lets_pass(&permit), "what is gone makes no permit worse");
    assert!(!latches.lets_pass(&LatchPermit::default()), "one is left");
    drop(other);
    assert!(latches.lets_pass(&LatchPermit::default()));
    let again = acquire(&latches, vec![span("g", "g")]);
    assert!(!latches.lets_pass(&permit), "stamps are not given twice");
    drop(again);
}

#[test]
fn a_gate_holds_everything_back_and_waits_for_every_latch() {
    let latches = RangeLatches::new();
    let gate = latches.acquire(Reach::Everything, &go_on, || ()).expect("nothing is in its way");
    assert!(!latches.lets_pass(&LatchPermit::default()));
    let elsewhere = KeyRange { family: FamilyId(7), ..keys("z", "z") };
    assert!(latches.look(&[elsewhere]).is_none(), "of whatever family");
    assert!(latches.look(&[]).is_none());
    drop(gate);
    let latch = acquire(&latches, vec![span("c", "f")]);
    std::thread::scope(|scope| {
        let gate = scope.spawn(|| latches.acquire(Reach::Everything, &go_on, || ()));
        until_queued(&latches, 2);
        assert!(latches.look(&[elsewhere]).is_some(), "it is not closed yet");
        drop(latch);
        let gate = gate.join().expect("no panic").expect("nothing ends the wait");
        assert!(latches.look(&[elsewhere]).is_none());
        drop(gate);
    });
    assert!(latches.lets_pass(&LatchPermit::default()));
}

/// Another latch is held all the while, so that there is a stamp before and after.
#[test]
fn a_latch_that_was_waited_for_makes_older_clearances_worthless() {
    let latches = RangeLatches::new();
    let _elsewhere = acquire(&latches, vec![span("x", "y")]);
    let first = acquire(&latches, vec![span("a", "c")]);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| acquire(&latches, vec![span("c", "m")]));
        until_queued(&latches, 3);
        let permit = latches.look(&[keys("k", "k")]).expect("what is only asked for holds no write back");
        assert!(latches.lets_pass(&permit));
        drop(first);
        let _second = second.join().expect("no panic");
        assert!(!latches.lets_pass(&permit));
    });
}

#[test]
fn the_barrier_is_passed_when_the_latch_is_seen_already() {
    let latches = RangeLatches::new();
    let mut passes_at_barrier = true;
    let barrier = || passes_at_barrier = latches.lets_pass(&LatchPermit::default());
    drop(latches.acquire(Reach::of(vec![span("a", "b")]), &go_on, barrier).expect("nothing in the way"));
    assert!(!passes_at_barrier);
}

/// By length first, then by bytes.
struct ByLength;

impl Comparator for ByLength {
    fn name(&self) -> &str {
        "test.ByLength"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Order {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

/// Every pair of ranges over five keys, against the plain definition of overlap: a key that both hold.
#[test]
fn overlap_is_exact_in_every_order_and_at_both_ends() {
    let long = "a".repeat(40);
    for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise, UserOrder::Custom(Arc::new(ByLength))] {
        let mut all = [b"b".to_vec(), b"ba".to_vec(), b"c".to_vec(), long.clone().into(), format!("{long}b").into()];
        all.sort_by(|a, b| order.compare(a, b));
        let ranges = || (0..5).flat_map(|from| (from..5).flat_map(move |to| [(from, to, false), (from, to, true)]));
        let last = |(_, to, exclusive): (usize, usize, bool)| 2 * to - usize::from(exclusive); // halves are keys between
        for a in ranges().filter(|(from, to, exclusive)| from < to || !exclusive) {
            for b in ranges().filter(|(from, to, exclusive)| from < to || !exclusive) {
                let expected = 2 * a.0 <= last(b) && 2 * b.0 <= last(a);
                let latched = span_in(0, &order, &all[a.0], &all[a.1], a.2);
                let other = span_in(0, &order, &all[b.0], &all[b.1], b.2);
                let (start, end) = (&*all[b.0], &*all[b.1]);
                let range = KeyRange { family: FamilyId(0), order: &order, start, end, end_is_exclusive: b.2 };
                let reaches = |span: &LatchSpan| Reach::of(vec![span.clone()]);
                assert_eq!(reaches(&latched).meets(&reaches(&other)), expected, "{order:?} {a:?} {b:?}");
                assert_eq!(reaches(&latched).meets_keys(&[range]), expected, "{order:?} {a:?} {b:?}");
                assert!(LatchSpan::of(&range).span == other.span);
                let elsewhere = KeyRange { family: FamilyId(1), ..range };
                assert!(!reaches(&latched).meets_keys(&[elsewhere]));
                assert!(!reaches(&latched).meets(&reaches(&LatchSpan::of(&elsewhere))));
            }
        }
    }
}

#[test]
fn a_batch_over_several_families_waits_for_a_latch_in_any_of_them() {
    let latches = RangeLatches::new();
    let latch = acquire(&latches, vec![span("a", "b"), span_in(7, &BYTEWISE, b"m", b"p", true)]);
    let in_seven = |key| KeyRange { family: FamilyId(7), ..keys(key, key) };
    assert!(latches.look(&[keys("x", "y"), in_seven("n")]).is_none());
    assert!(latches.look(&[keys("a", "a"), in_seven("x")]).is_none());
    assert!(latches.look(&[keys("n", "n"), in_seven("p")]).is_some(), "the span ends before p");
    drop(latch);
}

#[test]
fn a_write_that_overlaps_waits_and_keeps_the_next_latch_off_until_it_is_numbered() {
    let latches = RangeLatches::new();
    let latch = acquire(&latches, vec![span("c", "f")]);
    let (is_numbered, is_dropped) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let permit = latches.wait(&[keys("d", "d")], &go_on).expect("nothing ends the wait");
            assert!(is_dropped.load(Ordering::Acquire), "let go while the latch was held");
            assert!(latches.lets_pass(&permit));
            until_queued(&latches, 2); // the pass, and the second ingest
            is_numbered.store(true, Ordering::Release);
            drop(permit);
        });
        until_queued(&latches, 2);
        scope.spawn(|| {
            let latch = acquire(&latches, vec![span("a", "d")]);
            assert!(is_numbered.load(Ordering::Acquire), "it was asked for after the write had come");
            drop(latch);
        });
        until_queued(&latches, 3);
        is_dropped.store(true, Ordering::Release);
        drop(latch);
    });
    assert!(latches.lock().entries.is_empty() && latches.lets_pass(&LatchPermit::default()));
}

#[test]
fn a_pass_that_is_given_back_is_worth_nothing_under_the_next_latch() {
    let latches = RangeLatches::new();
    let mut permit = latches.wait(&[keys("a", "b")], &go_on).expect("nothing to wait for");
    let elsewhere = acquire(&latches, vec![span("x", "y")]);
    assert!(latches.lets_pass(&permit));
    permit.give_back();
    assert!(!latches.lets_pass(&permit));
    drop(elsewhere);
    drop(acquire(&latches, vec![span("a", "a")])); // would hang if the pass still stood
}

#[test]
fn latches_are_granted_in_order_and_whole() {
    let latches = RangeLatches::new();
    let first = acquire(&latches, vec![span("a", "b")]);
    let order = parking_lot::Mutex::new(Vec::new());
    let ingest = |name: &'static str, spans: Vec<LatchSpan>| {
        let latch = acquire(&latches, spans);
        order.lock().push(name);
        drop(latch);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| ingest("both", vec![span("b", "c"), span("m", "n")]));
        until_queued(&latches, 2);
        scope.spawn(|| ingest("behind the one that waits", vec![span("n", "o")]));
        until_queued(&latches, 3);
        assert!(latches.look(&[keys("m", "o")]).is_some(), "what is only asked for holds no write back");
        ingest("elsewhere", vec![span("x", "y")]);
        drop(first);
    });
    assert_eq!(order.into_inner(), ["elsewhere", "both", "behind the one that waits"]);
}

#[test]
fn passes_do_not_keep_each_other_off() {
    let latches = RangeLatches::new();
    let passes = [(); 3].map(|()| latches.wait(&[keys("a", "z")], &go_on).expect("nothing to wait for"));
    assert!(passes.iter().all(|pass| latches.lets_pass(pass)));
}

#[test]
fn a_wait_that_ends_in_an_error_leaves_nothing_behind() {
    let latches = RangeLatches::new();
    let is_closed = AtomicBool::new(false);
    let go_on = || if is_closed.load(Ordering::Acquire) { Err(Error::closed("it was closed")) } else { Ok(()) };
    let latch = acquire(&latches, vec![span("a", "k")]);
    std::thread::scope(|scope| {
        let ingest = scope.spawn(|| latches.acquire(Reach::of(vec![span("k", "z")]), &go_on, || ()).err());
        until_queued(&latches, 2);
        let write = scope.spawn(|| latches.wait(&[keys("b", "b")], &go_on).err());
        until_queued(&latches, 3);
        is_closed.store(true, Ordering::Release);
        latches.wake();
        for error in [ingest.join(), write.join()].map(|joined| joined.expect("no panic")) {
            assert_eq!(error.map(|e| e.kind()), Some(ErrorKind::Closed));
        }
    });
    assert_eq!(latches.lock().entries.len(), 1, "the one that is held");
    drop(latch);
    assert!(latches.lets_pass(&LatchPermit::default()));
}

/// The ingest that gives up stood between one that is held and one that waits only for the one that gave up.
#[test]
fn who_gives_up_lets_those_behind_go_on() {
    let latches = RangeLatches::new();
    let is_cancelled = AtomicBool::new(false);
    let may_wait = || if is_cancelled.load(Ordering::Acquire) { Err(Error::closed("cancelled")) } else { Ok(()) };
    let held = acquire(&latches, vec![span("a", "c")]);
    std::thread::scope(|scope| {
        let cancelled = scope.spawn(|| latches.acquire(Reach::of(vec![span("c", "m")]), &may_wait, || ()).err());
        until_queued(&latches, 2);
        let behind = scope.spawn(|| drop(acquire(&latches, vec![span("m", "z")])));
        until_queued(&latches, 3);
        is_cancelled.store(true, Ordering::Release);
        latches.wake();
        assert!(cancelled.join().expect("no panic").is_some());
        behind.join().expect("no panic");
    });
    drop(held);
}

#[test]
fn a_holder_that_panics_frees_its_latch() {
    let latches = RangeLatches::new();
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let _latch = acquire(&latches, vec![span("a", "z")]);
            panic!("while it was held");
        });
        holder.join().expect_err("it panicked");
    });
    drop(acquire(&latches, vec![span("a", "z")]));
}

/// What the stress test's threads share: per key the number of writes, and whether an ingest holds it.
struct World {
    latches: RangeLatches,
    commit: parking_lot::Mutex<u64>,
    writes: Vec<AtomicUsize>,
    latched: Vec<AtomicBool>,
    waits: AtomicUsize,
}

const KEYS: usize = 16;

#[expect(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]
impl World {
    /// Writes the keys from `first` to `last`, as a commit does: the numbers are taken under the commit lock.
    fn write(&self, first: usize, last: usize) {
        let bytes = [[first as u8], [last as u8]];
        let range = KeyRange { start: &bytes[0], end: &bytes[1], ..keys("", "") };
        let mut permit = LatchPermit::default();
        loop {
            let mut number = self.commit.lock();
            if self.latches.lets_pass(&permit) {
                assert!((first..=last).all(|key| !self.latched[key].load(Ordering::Relaxed)), "numbered under a latch");
                *number += 1;
                self.writes[first..=last].iter().for_each(|writes| _ = writes.fetch_add(1, Ordering::Relaxed));
                drop(number);
                return;
            }
            drop(number);
            permit = self.latches.look(&[range]).unwrap_or_else(|| {
                self.waits.fetch_add(1, Ordering::Relaxed);
                self.latches.wait(&[range], &go_on).expect("nothing ends the wait")
            });
        }
    }

    fn ingest(&self, ranges: [(usize, usize); 2]) {
        let spans = ranges.map(|(first, last)| span_in(0, &BYTEWISE, &[first as u8], &[last as u8], false));
        let latch =
            self.latches.acquire(Reach::of(spans.to_vec()), &go_on, || drop(self.commit.lock())).expect("no end");
        let held: std::collections::BTreeSet<usize> = ranges.iter().flat_map(|&(first, last)| first..=last).collect();
        let writes = || held.iter().map(|&key| self.writes[key].load(Ordering::Relaxed)).collect::<Vec<_>>();
        let before = writes();
        held.iter().for_each(|&key| assert!(!self.latched[key].swap(true, Ordering::Relaxed), "latched twice"));
        (0..20).for_each(|_| std::thread::yield_now());
        assert_eq!(writes(), before, "a write took a number under the latch");
        held.iter().for_each(|&key| self.latched[key].store(false, Ordering::Relaxed));
        drop(latch);
    }
}

#[test]
fn writers_and_ingests_that_meet_at_random_all_come_through() {
    const ROUNDS: usize = 300;
    let world = World {
        latches: RangeLatches::new(),
        commit: parking_lot::Mutex::new(0),
        writes: (0..KEYS).map(|_| AtomicUsize::new(0)).collect(),
        latched: (0..KEYS).map(|_| AtomicBool::new(false)).collect(),
        waits: AtomicUsize::new(0),
    };
    let ingests_left = AtomicUsize::new(3 * ROUNDS);
    let range = |random: &mut u64| {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let first = (*random >> 33) as usize % KEYS;
        (first, (first + (*random >> 50) as usize % 4).min(KEYS - 1))
    };
    let write = |mut random: u64| {
        while ingests_left.load(Ordering::Relaxed) > 0 {
            let (first, last) = range(&mut random);
            world.write(first, last);
        }
    };
    let ingest = |mut random: u64| {
        for _ in 0..ROUNDS {
            world.ingest([range(&mut random), range(&mut random)]);
            ingests_left.fetch_sub(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || write(thread));
            scope.spawn(move || ingest(100 + thread));
        }
    });
    assert!(world.waits.load(Ordering::Relaxed) > 0, "no write ever met a latch");
    let total: u64 = *world.commit.lock();
    assert!(world.latches.lock().entries.is_empty() && total > 0);
}

#[test]
fn a_latch_that_is_tried_for_waits_for_nobody_and_leaves_nothing_behind() {
    let latches = RangeLatches::new();
    let held = acquire(&latches, vec![span("c", "f")]);
    let barriers = std::cell::Cell::new(0);
    let barrier = || barriers.set(barriers.get() + 1);
    assert!(latches.try_acquire(Reach::of(vec![span("f", "h")]), barrier).is_none());
    assert!(latches.try_acquire(Reach::Everything, barrier).is_none());
    assert_eq!((latches.lock().entries.len(), barriers.get()), (1, 0));
    let aside = latches.try_acquire(Reach::of(vec![span("g", "h")]), barrier).expect("nothing of it is latched");
    assert!(latches.look(&[keys("h", "h")]).is_none());
    drop((held, aside));
    let pass = latches.wait(&[keys("a", "a")], &go_on).expect("nothing ends the wait");
    assert!(latches.try_acquire(Reach::Everything, barrier).is_none(), "somebody was let pass");
    drop(pass);
    let gate = latches.try_acquire(Reach::Everything, barrier).expect("nothing is latched");
    assert!(latches.look(&[keys("z", "z")]).is_none());
    drop(gate);
    assert!(latches.lets_pass(&LatchPermit::default()) && barriers.get() == 2);
}

/// Every pair of spans, one by one.
#[test]
fn reaches_meet_where_any_of_their_spans_do() {
    let mut random = 7u64;
    let mut next = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut met = 0;
    for round in 0..4000 {
        let mut spans = |count: u64| -> Vec<LatchSpan> {
            let one = |_| {
                let (family, start, length) = (next(3) as u32, next(200), next(4));
                let key = |at: u64| format!("{at:04}").into_bytes();
                let exclusive = length > 0 && next(2) == 0;
                span_in(family, &BYTEWISE, &key(start), &key(start + length), exclusive)
            };
            (0..count).map(one).collect()
        };
        let (ones, others) = (spans(1 + round % 40), spans(1 + round / 97 % 12));
        let same = |a: &LatchSpan, b: &LatchSpan| a.family == b.family && a.span.overlaps(&a.order, &b.span);
        let meets = ones.iter().any(|a| others.iter().any(|b| same(a, b)));
        met += usize::from(meets);
        let ranges: Vec<KeyRange<'_>> = others.iter().map(|b| KeyRange::of(b.family, &b.order, &b.span)).collect();
        let (reach, other) = (Reach::of(ones.clone()), Reach::of(others.clone()));
        assert_eq!((reach.meets(&other), other.meets(&reach)), (meets, meets), "round {round}");
        assert_eq!(reach.meets_keys(&ranges), meets, "round {round}");
    }
    assert!((400..3600).contains(&met), "{met}");
}

/// An ingest of thousands of tables latches each by itself, and every write looks at them under one lock.
#[test]
fn a_write_looks_at_few_of_many_spans() {
    static COMPARISONS: AtomicUsize = AtomicUsize::new(0);
    struct Counting;
    impl Comparator for Counting {
        fn name(&self) -> &str {
            "test.Counting"
        }

        fn compare(&self, a: &[u8], b: &[u8]) -> Order {
            COMPARISONS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            a.cmp(b)
        }
    }
    let order = UserOrder::Custom(Arc::new(Counting));
    let key = |at: usize| format!("{at:06}").into_bytes();
    let one = |at: usize| span_in(0, &order, &key(2 * at), &key(2 * at), false);
    let latches = RangeLatches::new();
    let _latch = acquire(&latches, (0..10_000).map(one).collect());
    let comparisons = |look: &dyn Fn()| {
        let before = COMPARISONS.load(std::sync::atomic::Ordering::Relaxed);
        look();
        COMPARISONS.load(std::sync::atomic::Ordering::Relaxed) - before
    };
    let (between, within) = (key(15_001), key(15_002));
    fn range<'a>(order: &'a UserOrder, key: &'a [u8]) -> KeyRange<'a> {
        KeyRange { family: FamilyId(0), order, start: key, end: key, end_is_exclusive: false }
    }
    let cost = comparisons(&|| {
        assert!(latches.look(&[range(&order, &between)]).is_some());
        assert!(latches.look(&[range(&order, &within)]).is_none());
    });
    assert!(cost < 100, "{cost}");
    let gaps: Vec<LatchSpan> =
        (0..10_000).map(|at| span_in(0, &order, &key(2 * at + 1), &key(2 * at + 1), false)).collect();
    let (one, other) = (Reach::of((0..10_000).map(one).collect()), Reach::of(gaps));
    let cost = comparisons(&|| assert!(!one.meets(&other)));
    assert!(cost < 100_000, "{cost}");
}
