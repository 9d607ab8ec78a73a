// A durable queue: producers put at its end, consumers take from its front, and what was taken is deleted. Each task is
// given to one consumer; what a consumer had not finished when the program died is given again. Run it with
//
//     cargo run --example queue

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spillway::{Db, Family, Options, Pinned, Result};

struct Queue {
    tasks: Family,
    /// Number of the next task. Locked while it is put: a consumer that saw a later one first would pass it by.
    end: Mutex<u64>,
    /// Number up to which tasks were given to consumers.
    front: Mutex<u64>,
}

impl Queue {
    /// Opens the queue, and finds its ends: what is in it was not finished.
    fn open(tasks: Family) -> Result<Queue> {
        let end = tasks.last()?.map_or(0, |(key, _)| number(&key) + 1);
        let front = tasks.first()?.map_or(end, |(key, _)| number(&key));
        Ok(Queue { tasks, end: Mutex::new(end), front: Mutex::new(front) })
    }

    /// Adds a task. It survives the end of the program; a loss of power only after `db.sync()`.
    fn push(&self, task: &[u8]) -> Result<u64> {
        let mut end = locked(&self.end);
        self.tasks.put(end.to_be_bytes(), task)?;
        *end += 1;
        Ok(*end - 1)
    }

    /// Gives the oldest task that nobody has been given. The range begins behind the ones given before: a scan from the
    /// very first key would step over all that were deleted since the last compaction.
    fn take(&self) -> Result<Option<(u64, Pinned)>> {
        let mut front = locked(&self.front);
        let Some((key, task)) = self.tasks.range(front.to_be_bytes()..).next().transpose()? else { return Ok(None) };
        *front = number(&key) + 1;
        Ok(Some((number(&key), task)))
    }

    /// The task is done, and does not come again. It was put once only, so this delete is the cheap one.
    fn done(&self, number: u64) -> Result<()> {
        self.tasks.single_delete(number.to_be_bytes())
    }
}

fn locked(number: &Mutex<u64>) -> MutexGuard<'_, u64> {
    number.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().expect("keys have 8 bytes"))
}

fn main() -> Result<()> {
    let dir = std::env::temp_dir().join("spillway-queue");
    let db = Db::open_with(&dir, &Options::new().memtable("trie"))?;
    let queue = Queue::open(db.family("tasks")?)?;
    let is_over = AtomicBool::new(false);

    let done = std::thread::scope(|scope| {
        let produce = || (0..10_000).try_for_each(|n| queue.push(format!("task {n}").as_bytes()).map(drop));
        let consume = || -> Result<usize> {
            let mut done = 0;
            loop {
                let was_over = is_over.load(Ordering::Acquire);
                match queue.take()? {
                    Some((number, _task)) => {
                        queue.done(number)?;
                        done += 1;
                    }
                    None if was_over => return Ok(done),
                    None => std::thread::yield_now(), // a service would wait for a producer's signal
                }
            }
        };
        let consumers = [scope.spawn(consume), scope.spawn(consume)];
        let producers = [scope.spawn(produce), scope.spawn(produce)];
        let produced = producers.into_iter().try_for_each(|producer| producer.join().expect("no panic"));
        is_over.store(true, Ordering::Release);
        produced?;
        consumers.into_iter().map(|consumer| consumer.join().expect("no panic")).sum::<Result<usize>>()
    })?;
    println!("2 producers and 2 consumers: {done} tasks done");

    let last = queue.push(b"the one that is not finished")?;
    db.sync()?;
    println!("given task {last}: {}", queue.take()?.is_some());
    db.close()?;

    let db = Db::open(&dir)?;
    let queue = Queue::open(db.family("tasks")?)?;
    while let Some((number, task)) = queue.take()? {
        println!("given again after a restart: task {number}, {}", task.escape_ascii());
        queue.done(number)?;
    }
    println!("{} tasks are left", db.family("tasks")?.iter().count());
    db.close()?;
    Db::destroy(&dir)
}
