//! The barrier and the waits under every interleaving of a few threads. Run by
//! `RUSTFLAGS="--cfg loom" cargo test -p spillway-db --lib loom_`.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64};
use loom::thread;

use base::Error;

use super::*;

static ORDER: UserOrder = UserOrder::Bytewise;

/// Number allocation: the commit lock, and the count of allocated numbers in place of the pipeline's slots.
struct World {
    latches: RangeLatches,
    commit: Mutex<()>,
    /// Relaxed on both sides: only the commit lock makes it be seen.
    numbered: AtomicU64,
    closed: AtomicBool,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(World {
            latches: RangeLatches::new(),
            commit: Mutex::new(()),
            numbered: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        })
    }

    fn go_on(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::closed("it was closed")) } else { Ok(()) }
    }

    fn write(&self) -> Result<()> {
        let keys = [KeyRange { family: FamilyId(0), order: &ORDER, start: b"k", end: b"k", end_is_exclusive: false }];
        let mut permit = LatchPermit::default();
        loop {
            let commit = self.commit.lock().expect("no panic under the lock");
            if self.latches.lets_pass(&permit) {
                self.numbered.fetch_add(1, Ordering::Relaxed);
                drop(commit); // before the pass
                return Ok(());
            }
            drop(commit);
            permit = match self.latches.look(&keys) {
                Some(permit) => permit,
                None => self.latches.wait(&keys, &|| self.go_on())?,
            };
        }
    }

    fn pass_barrier(&self) {
        drop(self.commit.lock().expect("no panic under the lock"));
    }

    /// Latches, and checks: every write numbered until the end was found at the beginning.
    fn ingest(&self, span: LatchSpan, barrier: impl FnOnce()) {
        let latch = self.latches.acquire(Reach::of(vec![span]), &|| Ok(()), barrier).expect("nothing closes");
        let found = self.numbered.load(Ordering::Relaxed);
        let commit = self.commit.lock().expect("no panic under the lock");
        assert_eq!(self.numbered.load(Ordering::Relaxed), found, "a number was given out under a latch");
        drop(commit);
        drop(latch);
    }
}

fn span(start: &str, end: &str) -> LatchSpan {
    let span = Span { start: start.into(), end: end.into(), end_is_exclusive: false };
    LatchSpan { family: FamilyId(0), order: ORDER.clone(), span }
}

fn model(preemptions_max: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions_max);
    builder.check(body);
}

fn spawn(world: &Arc<World>, work: impl FnOnce(&World) + 'static) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || work(&world))
}

fn join<const THREADS: usize>(threads: [thread::JoinHandle<()>; THREADS]) {
    for thread in threads {
        thread.join().expect("no panic");
    }
}

#[test]
fn loom_no_write_is_numbered_under_a_latch() {
    model(3, || {
        let world = World::new();
        let writers = [(); 2].map(|()| spawn(&world, |world| world.write().expect("nothing closes")));
        world.ingest(span("a", "z"), || world.pass_barrier());
        join(writers);
        assert_eq!(world.numbered.load(Ordering::Relaxed), 2);
        assert_eq!(world.latches.stamp.load(Ordering::Relaxed), 0, "nothing is left behind");
    });
}

#[test]
#[should_panic(expected = "a number was given out under a latch")]
fn loom_the_barrier_is_needed() {
    model(3, || {
        let world = World::new();
        let writer = spawn(&world, |world| world.write().expect("nothing closes"));
        world.ingest(span("a", "z"), || ());
        writer.join().expect("no panic");
    });
}

/// The writer may have looked when only the latch that it does not overlap was there.
#[test]
fn loom_a_clearance_is_no_good_for_a_later_latch() {
    model(3, || {
        let world = World::new();
        let elsewhere = spawn(&world, |world| {
            drop(
                world
                    .latches
                    .acquire(Reach::of(vec![span("x", "z")]), &|| Ok(()), || world.pass_barrier())
                    .expect("nothing closes"),
            );
        });
        let writer = spawn(&world, |world| world.write().expect("nothing closes"));
        world.ingest(span("a", "m"), || world.pass_barrier());
        join([elsewhere, writer]);
        assert_eq!(world.numbered.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn loom_overlapping_latches_follow_each_other() {
    model(3, || {
        let world = World::new();
        let ingest = spawn(&world, |world| world.ingest(span("a", "k"), || world.pass_barrier()));
        let writer = spawn(&world, |world| world.write().expect("nothing closes"));
        world.ingest(span("k", "z"), || world.pass_barrier());
        join([ingest, writer]);
        assert_eq!(world.numbered.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn loom_a_writer_that_waits_learns_that_it_is_over() {
    model(3, || {
        let world = World::new();
        let latch = world.latches.acquire(Reach::of(vec![span("a", "z")]), &|| Ok(()), || world.pass_barrier());
        let writer = spawn(&world, |world| drop(world.write().expect_err("the latch outlives the database")));
        world.closed.store(true, Ordering::Release);
        world.latches.wake();
        writer.join().expect("no panic");
        drop(latch.expect("nothing closes before"));
    });
}
