//! The pipeline under every interleaving of a few threads, with two slots in its ring. Run by
//! `RUSTFLAGS="--cfg loom" cargo test -p spillway-db --lib loom_`.

use base::{FamilyId, UserOrder};
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use super::*;

const FAMILY: FamilyId = FamilyId(0);

/// A database of so many numbers: the pipeline, the last number given out, a fake WAL and a fake memtable.
struct World<const NUMBERS: usize> {
    pipeline: Pipeline,
    commit: Mutex<u64>,
    /// Relaxed on both sides, like `inserted`: only the pipeline makes a record be seen.
    appended: [AtomicU64; NUMBERS],
    inserted: [AtomicU64; NUMBERS],
}

impl<const NUMBERS: usize> World<NUMBERS> {
    fn new() -> Arc<Self> {
        let [appended, inserted] = [(); 2].map(|()| std::array::from_fn(|_| AtomicU64::new(0)));
        Arc::new(World { pipeline: Pipeline::new(SeqNo(0)), commit: Mutex::new(0), appended, inserted })
    }

    /// A place for the next number, once the ring has room for it.
    fn enter(&self) -> (Ticket, SeqNo) {
        loop {
            let mut last = self.commit.lock().expect("no panic under the lock");
            if self.pipeline.has_room() {
                *last += 1;
                let key = [*last as u8];
                let bounds = [KeyBounds::new(FAMILY, &UserOrder::Bytewise, &key, &key)];
                return (self.pipeline.enter(SeqNo(*last), 10 * *last, &bounds), SeqNo(*last));
            }
            drop(last);
            thread::yield_now();
        }
    }

    /// Appends the record, then inserts the entry.
    fn apply(&self, seq: SeqNo) {
        self.appended[seq.0 as usize - 1].store(1, Ordering::Relaxed);
        self.inserted[seq.0 as usize - 1].store(1, Ordering::Relaxed);
    }

    fn is_inserted(&self, seq: u64) -> bool {
        self.inserted[seq as usize - 1].load(Ordering::Relaxed) == 1
    }

    fn is_appended(&self, seq: u64) -> bool {
        self.appended[seq as usize - 1].load(Ordering::Relaxed) == 1
    }

    /// A write from number to acknowledgement.
    fn write(&self) {
        let (ticket, seq) = self.enter();
        self.apply(seq);
        self.pipeline.finish(ticket);
        self.pipeline.wait_visible(seq).expect("nothing fails here");
        self.check_visible();
    }

    /// S2: everything up to the visible number can be read, and so can the log up to the published position.
    fn check_visible(&self) {
        let visible = self.pipeline.visible().0;
        assert!((1..=visible).all(|seq| self.is_inserted(seq)), "{visible} is visible");
        let published = self.pipeline.published_log() / 10;
        assert!((1..=published).all(|seq| self.is_appended(seq)), "the records through {published} are published");
    }

    fn check_all_published(&self) {
        let last = NUMBERS as u64;
        assert_eq!((self.pipeline.visible().0, self.pipeline.published_log()), (last, 10 * last));
    }
}

fn join<const THREADS: usize>(threads: [thread::JoinHandle<()>; THREADS]) {
    for thread in threads {
        thread.join().expect("no panic");
    }
}

fn model(preemptions_max: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions_max);
    builder.check(body);
}

#[test]
fn loom_two_writers_and_a_reader_see_only_what_is_whole() {
    model(3, || {
        let world = World::<2>::new();
        let writers = [(); 2].map(|()| {
            let world = world.clone();
            thread::spawn(move || world.write())
        });
        world.check_visible();
        join(writers);
        world.check_all_published();
    });
}

#[test]
fn loom_the_visible_number_never_goes_back() {
    model(3, || {
        let world = World::<2>::new();
        let writers = [(); 2].map(|()| {
            let world = world.clone();
            thread::spawn(move || {
                let (ticket, seq) = world.enter();
                world.apply(seq);
                world.pipeline.finish(ticket);
            })
        });
        let (first, log_first) = (world.pipeline.visible(), world.pipeline.published_log());
        assert!(world.pipeline.visible() >= first && world.pipeline.published_log() >= log_first);
        join(writers);
        world.check_all_published();
    });
}

#[test]
fn loom_three_writers_share_a_ring_of_two() {
    model(2, || {
        let world = World::<3>::new();
        let writers = [(); 2].map(|()| {
            let world = world.clone();
            thread::spawn(move || world.write())
        });
        world.write();
        join(writers);
        world.check_all_published();
    });
}

/// One thread finishes the younger of two writes first, another waits for the younger, a third for the log.
#[test]
fn loom_a_waiter_is_always_woken() {
    model(3, || {
        let world = World::<2>::new();
        let (older, older_seq) = world.enter();
        let (younger, younger_seq) = world.enter();
        let finisher = |ticket, seq| {
            let world = world.clone();
            thread::spawn(move || {
                world.apply(seq);
                world.pipeline.finish(ticket);
            })
        };
        let finishers = [finisher(younger, younger_seq), finisher(older, older_seq)];
        world.pipeline.wait_visible(younger_seq).expect("nothing fails here");
        world.check_visible();
        world.pipeline.wait_published(20).expect("nothing fails here");
        join(finishers);
    });
}

#[test]
fn loom_a_failed_write_wakes_everyone_and_hides_what_is_younger() {
    model(3, || {
        let world = World::<2>::new();
        let (_never_finished, failed) = world.enter();
        let writer = {
            let world = world.clone();
            thread::spawn(move || {
                let (ticket, seq) = world.enter();
                world.apply(seq);
                world.pipeline.finish(ticket);
                world.pipeline.wait_visible(seq).expect_err("an older write failed");
            })
        };
        let failing = {
            let world = world.clone();
            thread::spawn(move || world.pipeline.break_down())
        };
        world.pipeline.wait_visible(failed).expect_err("it failed");
        join([writer, failing]);
        assert_eq!(world.pipeline.visible(), SeqNo(0));
    });
}

/// While a slot is reused by a different thread than the publisher of its last write: every write numbered before a
/// look is shown or inserted, and no untouched key is shown.
#[test]
fn loom_no_write_is_overlooked_while_slots_are_used_again() {
    model(3, || {
        let world = World::<3>::new();
        let held = world.enter();
        let finisher = {
            let world = world.clone();
            thread::spawn(move || {
                world.apply(held.1);
                world.pipeline.finish(held.0);
            })
        };
        let writer = {
            let world = world.clone();
            thread::spawn(move || {
                let tickets = [(); 2].map(|()| {
                    let (ticket, seq) = world.enter();
                    world.apply(seq);
                    ticket
                });
                tickets.iter().for_each(|&ticket| world.pipeline.finish(ticket));
            })
        };
        let numbered = *world.commit.lock().expect("no panic under the lock");
        let mut shown = Vec::new();
        world.pipeline.for_each_in_flight(|touched| shown.push(*touched));
        let exact = |seq: u64| {
            let key = [seq as u8];
            Touched::Keys(KeyBounds::new(FAMILY, &UserOrder::Bytewise, &key, &key))
        };
        assert!(shown.iter().all(|touched| (1..=3).any(|seq| exact(seq) == *touched)), "{shown:?}");
        assert!((1..=numbered).all(|seq| shown.contains(&exact(seq)) || world.is_inserted(seq)), "{shown:?}");
        join([finisher, writer]);
        world.check_all_published();
    });
}
