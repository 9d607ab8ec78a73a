use std::sync::atomic::AtomicUsize;

use base::{FamilyId, UserOrder};

use super::*;

const FAMILY: FamilyId = FamilyId(1);

fn bounds(smallest: &[u8], largest: &[u8]) -> [KeyBounds; 1] {
    [KeyBounds::new(FAMILY, &UserOrder::Bytewise, smallest, largest)]
}

#[test]
fn visibility_advances_in_order_whatever_the_order_of_finishing() {
    let pipeline = Pipeline::new(SeqNo(10));
    let enter = |i: u64| pipeline.enter(SeqNo(11 + i), 100 * (i + 1), &bounds(b"a", b"b"));
    let tickets: Vec<Ticket> = (0..3).map(enter).collect();
    pipeline.finish(tickets[2]);
    pipeline.finish(tickets[1]);
    assert_eq!((pipeline.visible(), pipeline.published_log()), (SeqNo(10), 0));
    pipeline.finish(tickets[0]);
    assert_eq!((pipeline.visible(), pipeline.published_log()), (SeqNo(13), 300));
    pipeline.wait_visible(SeqNo(13)).expect("visible");
}

#[test]
fn writes_without_a_log_record_leave_the_published_position_alone() {
    let pipeline = Pipeline::new(SeqNo(0));
    let tickets = [(1, 100), (2, 0), (3, 0)].map(|(seq, log_end)| pipeline.enter(SeqNo(seq), log_end, &[]));
    pipeline.finish(tickets[0]);
    pipeline.finish(tickets[2]);
    pipeline.finish(tickets[1]);
    assert_eq!((pipeline.visible(), pipeline.published_log(), pipeline.entered_log()), (SeqNo(3), 100, 100));
}

#[test]
fn unfinished_writes_are_shown_and_published_ones_are_not() {
    let pipeline = Pipeline::new(SeqNo(0));
    let overlapping = |key: &[u8]| {
        let mut count = 0;
        pipeline.for_each_in_flight(|t| count += usize::from(t.may_overlap(FAMILY, &UserOrder::Bytewise, key, key)));
        count
    };
    let first = pipeline.enter(SeqNo(1), 0, &bounds(b"a", b"c"));
    let second = pipeline.enter(SeqNo(2), 0, &bounds(b"c", b"d"));
    let unbounded = pipeline.enter(SeqNo(3), 0, &[bounds(b"x", b"y")[0]; 9]);
    pipeline.finish(second);
    assert_eq!([overlapping(b"b"), overlapping(b"c"), overlapping(b"e")], [2, 3, 1], "the second is not visible yet");
    pipeline.finish(unbounded);
    pipeline.finish(first);
    assert_eq!(overlapping(b"c"), 0);
    assert_eq!(pipeline.visible(), SeqNo(3));
}

#[test]
fn a_full_ring_has_room_again_once_its_oldest_write_is_published() {
    let pipeline = Pipeline::new(SeqNo(0));
    let tickets: Vec<Ticket> = (1..=IN_FLIGHT_MAX as u64).map(|i| pipeline.enter(SeqNo(i), i, &[])).collect();
    assert!(!pipeline.has_room());
    tickets[1..].iter().for_each(|&ticket| pipeline.finish(ticket));
    assert!(!pipeline.has_room());
    pipeline.finish(tickets[0]);
    assert!(pipeline.has_room());
    assert_eq!(pipeline.visible(), SeqNo(IN_FLIGHT_MAX as u64));
}

#[test]
fn a_broken_pipeline_wakes_its_waiters() {
    let pipeline = Pipeline::new(SeqNo(0));
    let _never_finished = pipeline.enter(SeqNo(1), 0, &[]);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| pipeline.wait_visible(SeqNo(1)));
        pipeline.break_down();
        waiter.join().expect("no panic").expect_err("never visible");
    });
}

/// Writers hold several numbers at once and finish them in another order than they took them; a looker checks all the
/// while that nothing is missed: a write is shown, or its insert is over.
#[test]
fn many_writers_publish_everything_and_none_is_overlooked() {
    const WRITERS: usize = 4;
    const ROUNDS: u64 = 2_000;
    const HELD: u64 = 3;
    const LAST: u64 = WRITERS as u64 * ROUNDS * HELD;
    let pipeline = Pipeline::new(SeqNo(0));
    let commit = parking_lot::Mutex::new(0u64);
    let inserted: Vec<std::sync::atomic::AtomicBool> = (0..=LAST).map(|_| Default::default()).collect();
    let looks = AtomicUsize::new(0);
    let enter = || loop {
        let mut last = commit.lock();
        if pipeline.has_room() {
            *last += 1;
            let key = last.to_be_bytes();
            break (pipeline.enter(SeqNo(*last), *last, &bounds(&key, &key)), *last);
        }
    };
    let write = || {
        while looks.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now(); // the looker may start last
        }
        for _ in 0..ROUNDS {
            let held: Vec<(Ticket, u64)> = (0..HELD).map(|_| enter()).collect();
            for &(ticket, seq) in held.iter().rev() {
                inserted[seq as usize].store(true, Ordering::Relaxed);
                pipeline.finish(ticket);
            }
            for (_, seq) in held {
                pipeline.wait_visible(SeqNo(seq)).expect("visible");
                assert!(pipeline.published_log() >= seq);
            }
        }
    };
    let look = || {
        while pipeline.visible() < SeqNo(LAST) {
            let (visible, last) = (pipeline.visible().0, *commit.lock());
            let mut shown = vec![false; (last - visible) as usize + 1];
            pipeline.for_each_in_flight(|touched| {
                for seq in visible..=last {
                    let key = seq.to_be_bytes();
                    shown[(seq - visible) as usize] |= touched.may_overlap(FAMILY, &UserOrder::Bytewise, &key, &key);
                }
            });
            let missed = (visible + 1..=last)
                .find(|&seq| !shown[(seq - visible) as usize] && !inserted[seq as usize].load(Ordering::Relaxed));
            assert_eq!(missed, None, "neither in flight nor inserted");
            looks.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        (0..WRITERS).for_each(|_| drop(scope.spawn(write)));
        scope.spawn(look);
    });
    assert_eq!((pipeline.visible(), pipeline.published_log()), (SeqNo(LAST), LAST));
}
