//! `AsyncDb`: calls that wait do not stop the runtime, dropped futures, bounds, closing.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use spillway::{AsyncDb, ErrorKind, IngestFiles, IngestOptions, IngestProgress, Options, ReadOptions, WriteOptions};
use tokio::time::{sleep, timeout};

/// Lets reads of merged keys through once it is open, and counts those inside.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
    inside: AtomicUsize,
}

impl Gate {
    fn pass(&self) {
        self.inside.fetch_add(1, Ordering::SeqCst);
        let mut is_open = self.is_open.lock();
        while !*is_open {
            self.opened.wait(&mut is_open);
        }
    }

    fn open(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }

    fn inside(&self) -> usize {
        self.inside.load(Ordering::SeqCst)
    }
}

/// Merges wait for the gate; the last operand is their result.
fn gated_options(options: Options, gate: &Arc<Gate>) -> Options {
    let gate = gate.clone();
    options.merge_fn("gate", move |_, _, operands| {
        gate.pass();
        operands.last().map(|operand| operand.to_vec())
    })
}

/// A database in memory with the merged keys `slow` to `slow7`, whose reads wait for the gate.
async fn gated(blocking_calls: usize) -> (AsyncDb, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let options = gated_options(Options::in_memory(), &gate);
    let db = AsyncDb::builder().options(options).blocking_calls(blocking_calls).open("/db").await.unwrap();
    for n in 0..8 {
        db.merge(format!("slow{n}"), format!("{n}")).await.unwrap();
    }
    (db, gate)
}

async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(60), waiting).await.expect("in a minute");
}

fn synced() -> WriteOptions {
    WriteOptions::new().sync(true)
}

/// Polls a future once.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn a_slow_read_does_not_stop_the_runtime() {
    let (db, gate) = gated(4).await;
    let read = tokio::spawn({
        let db = db.clone();
        async move { db.get("slow3").await }
    });
    until(|| gate.inside() == 1).await; // the timer runs on the one thread of the runtime
    db.put("quick", "1").await.unwrap();
    assert!(db.contains_key("quick").await.unwrap());
    assert!(!read.is_finished());
    gate.open();
    assert_eq!(read.await.unwrap().unwrap().as_deref(), Some(b"3".as_slice()));
}

#[tokio::test]
async fn a_read_error_is_that_of_the_call() {
    let db = AsyncDb::builder().options(Options::in_memory()).open("/db").await.unwrap();
    assert_eq!(db.merge("a", "1").await.unwrap_err().kind(), ErrorKind::InvalidArgument, "no operator");
    let missing = tempfile::tempdir().unwrap();
    let refused = Options::new().create_if_missing(false);
    let error = AsyncDb::open_with(missing.path().join("db"), &refused).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn blocking_calls_are_bounded_and_writes_have_places_of_their_own() {
    let (db, gate) = gated(2).await;
    let reads: Vec<_> = (0..6)
        .map(|n| {
            let db = db.clone();
            tokio::spawn(async move { db.get(format!("slow{n}")).await })
        })
        .collect();
    until(|| gate.inside() == 2).await;
    db.put_with("synced", "1", &synced()).await.unwrap();
    sleep(Duration::from_millis(20)).await;
    assert_eq!(gate.inside(), 2, "the others wait without a thread");
    gate.open();
    for read in reads {
        assert!(read.await.unwrap().unwrap().is_some());
    }
    assert_eq!(gate.inside(), 6);
}

#[tokio::test]
async fn a_dropped_write_is_done_if_it_was_begun() {
    let (db, gate) = gated(1).await;
    let synced = synced();
    let _ = poll(pin!(db.put_with("begun", "1", &synced))); // and dropped, mostly before it is synced
    let begun = db.db().clone();
    until(|| begun.contains_key("begun").unwrap()).await;

    let occupant = tokio::spawn({
        let db = db.clone();
        async move { db.run(|db| db.get("slow1").map(drop)).await }
    });
    until(|| gate.inside() == 1).await;
    assert!(poll(pin!(db.put_with("waiting", "1", &synced))).is_pending(), "it waits for its turn");
    drop(db.put("never polled", "1"));
    gate.open();
    occupant.await.unwrap().unwrap();
    db.put_with("later", "1", &synced).await.unwrap();
    assert!(!db.contains_key("waiting").await.unwrap());
    assert!(!db.contains_key("never polled").await.unwrap());
}

#[tokio::test]
async fn a_write_that_would_wait_moves_to_another_thread() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let options = gated_options(Options::new(), &gate).write_buffer_size(64 << 10).max_write_buffer_number(2);
    let db = AsyncDb::open_with(dir.path(), &options).await.unwrap();
    // Its flush waits for the gate.
    db.put("merged", "0").await.unwrap();
    db.merge("merged", "1").await.unwrap();
    let impatient = WriteOptions::new().no_slowdown(true);
    let mut refused = 0;
    while refused < 10 {
        match db.put_with("a", vec![0; 4096], &impatient).await {
            Ok(()) => refused = 0,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Busy, "it was asked not to wait");
                refused += 1;
                sleep(Duration::from_millis(1)).await;
            }
        }
    }

    let put = loop {
        let db = db.clone();
        let put = tokio::spawn(async move { db.put("a", vec![1; 4096]).await });
        sleep(Duration::from_millis(20)).await; // the timer runs on the one thread of the runtime
        if !put.is_finished() {
            break put;
        }
    };
    gate.open();
    put.await.unwrap().unwrap();
    assert_eq!(db.get("a").await.unwrap().as_deref(), Some([1; 4096].as_slice()));
    db.close().await.unwrap();
}

/// Writes `n` keys, which begin with their number in two bytes.
async fn fill(db: &AsyncDb, n: u16) {
    for n in 0..n {
        db.put(n.to_be_bytes(), "value").await.unwrap();
    }
}

fn number(key: &[u8]) -> u16 {
    u16::from_be_bytes(key.try_into().unwrap())
}

#[tokio::test]
async fn iterators_give_every_entry_once_from_either_end() {
    let db = AsyncDb::builder().options(Options::in_memory()).open("/db").await.unwrap();
    fill(&db, 1000).await;
    let mut entries = db.iter();
    db.put(2000u16.to_be_bytes(), "later than the iterator").await.unwrap();
    for n in 0..1000 {
        let (key, _) = entries.next().await.unwrap().unwrap();
        assert_eq!(number(&key), n);
    }
    assert!(entries.next().await.is_none());
    assert!(entries.next_chunk(1).await.unwrap().is_empty());

    let mut entries = db.range(..1000u16.to_be_bytes()).rev();
    assert_eq!(number(&entries.next().await.unwrap().unwrap().0), 999);
    let mut expected = 999;
    loop {
        let chunk = entries.next_chunk(300).await.unwrap();
        if chunk.is_empty() {
            break;
        }
        assert!(chunk.len() <= 300);
        for (key, _) in chunk {
            expected -= 1;
            assert_eq!(number(&key), expected);
        }
    }
    assert_eq!(expected, 0);
    assert!(entries.next_chunk(0).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_chunk_of_large_values_is_short() {
    let db = AsyncDb::builder().options(Options::in_memory()).open("/db").await.unwrap();
    for n in 0..8u8 {
        db.put([n], vec![n; 300 << 10]).await.unwrap();
    }
    assert_eq!(db.iter().next_chunk(100).await.unwrap().len(), 4, "the one that reaches 1 MiB is the last");
}

#[tokio::test]
async fn a_dropped_fetch_loses_no_entry() {
    let db = AsyncDb::builder().options(Options::in_memory()).blocking_calls(1).open("/db").await.unwrap();
    fill(&db, 1000).await;
    let mut entries = db.iter();
    let mut expected = 0;
    loop {
        let polled = poll(pin!(entries.next_chunk(7)));
        let given = match polled {
            Poll::Ready(chunk) => chunk.unwrap(),
            Poll::Pending => entries.next().await.into_iter().map(Result::unwrap).collect(),
        };
        if given.is_empty() {
            break;
        }
        for (key, _) in given {
            assert_eq!(number(&key), expected);
            expected += 1;
        }
    }
    assert_eq!(expected, 1000);
}

#[tokio::test]
async fn close_ends_calls_in_flight() {
    let (db, gate) = gated(1).await;
    let mut entries = db.prefix("quick");
    let calls: Vec<_> = (0..4)
        .map(|n| {
            let db = db.clone();
            tokio::spawn(async move { db.get(format!("slow{n}")).await })
        })
        .collect();
    until(|| gate.inside() == 1).await;
    let close = tokio::spawn({
        let db = db.clone();
        async move { db.close().await }
    });
    let closed = db.db().clone();
    until(|| closed.get("x").is_err()).await;
    gate.open();
    close.await.unwrap().unwrap();
    for call in calls.into_iter().skip(1) {
        assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Closed, "it had not begun");
    }
    assert_eq!(db.put("a", "1").await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.get("a").await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(entries.next().await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert!(entries.next().await.is_none(), "the error ends it");
    db.close().await.unwrap();
}

#[tokio::test]
async fn the_last_handle_closes_in_the_background() {
    let dir = tempfile::tempdir().unwrap();
    let db = AsyncDb::open(dir.path()).await.unwrap();
    let family = db.family("other").await.unwrap();
    drop(db);
    family.put("a", "1").await.unwrap();
    let entries = family.iter();
    drop(family);
    assert_eq!(AsyncDb::open(dir.path()).await.unwrap_err().kind(), ErrorKind::Busy, "the iterator is a handle");
    drop(entries);
    let reopened = async {
        loop {
            match AsyncDb::open(dir.path()).await {
                Err(error) if error.kind() == ErrorKind::Busy => sleep(Duration::from_millis(1)).await,
                opened => break opened.unwrap(),
            }
        }
    };
    let db = timeout(Duration::from_secs(60), reopened).await.unwrap();
    assert!(db.find_family("other").unwrap().contains_key("a").await.unwrap());
}

#[tokio::test]
async fn batches_snapshots_and_ingests() {
    let dir = tempfile::tempdir().unwrap();
    let db = AsyncDb::open(dir.path().join("db")).await.unwrap();
    let users = db.family("users").await.unwrap();
    let mut batch = db.batch();
    batch.put(&users, "1", "Ada").put(db.default_family(), "users", "1");
    db.commit(batch).await.unwrap();
    let before = ReadOptions::new().snapshot(&db.snapshot());

    let file = dir.path().join("users.sst");
    let (table, path) = (users.family().clone(), file.clone());
    let write = move |_: &spillway::Db| {
        let mut table = table.table_writer(path)?;
        table.put("2", "Grace")?;
        table.finish()
    };
    db.run(write).await.unwrap();
    let progress = IngestProgress::default();
    let ready = db.prepare_ingest([IngestFiles::new(&users, [&file])], &IngestOptions::new(), &progress).await.unwrap();
    assert_eq!(db.commit_ingest(ready).await.unwrap().tables, 1);
    assert_eq!(users.ingest([&file]).await.unwrap().tables, 1, "once more");
    assert!(users.contains_key("2").await.unwrap());
    assert!(users.get_with("2", &before).await.unwrap().is_none());
    let found = users.multi_get(["1", "2", "3"]).await.unwrap();
    assert_eq!(found.iter().filter(|value| value.is_some()).count(), 2);
    assert!(users.iter_with(&before).next_chunk(10).await.unwrap().len() == 1);

    let large: Vec<u8> = vec![7; 1 << 20];
    users.put("3", &large).await.unwrap();
    assert_eq!(users.last().await.unwrap().unwrap().1.len(), large.len());
    db.close().await.unwrap();
}

#[test]
fn a_runtime_that_ended_gives_closed_or_the_value() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let db = first.block_on(AsyncDb::builder().options(Options::in_memory()).open("/db")).unwrap();
    first.block_on(db.put("a", "1")).unwrap();
    drop(first);
    assert!(second.block_on(db.contains_key("a")).unwrap(), "a database is of no one runtime");
    drop(second);
    drop(db); // outside a runtime: at once
}

#[tokio::test]
async fn lookups_that_memory_answers_need_no_thread() {
    let (db, gate) = gated(1).await;
    db.put("quick", "1").await.unwrap();
    let slow = tokio::spawn({
        let db = db.clone();
        async move { db.get("slow0").await }
    });
    until(|| gate.inside() == 1).await; // the one thread is taken
    let found = |value: Option<spillway::Pinned>| value.map(|value| value.to_vec());
    let Poll::Ready(quick) = poll(pin!(db.get("quick"))) else { panic!("it is in the memtable") };
    assert_eq!(found(quick.unwrap()), Some(b"1".to_vec()));
    assert!(poll(pin!(db.contains_key("absent"))).is_ready());
    assert!(poll(pin!(db.multi_get(["quick", "absent"]))).is_ready());
    assert!(poll(pin!(db.multi_get(["quick", "slow1"]))).is_pending(), "merge operators are the user's code");
    assert!(poll(pin!(db.multi_get(vec!["quick"; 1000]))).is_pending(), "this takes long");
    let in_memory = ReadOptions::new().read_tier(spillway::ReadTier::BlockCache);
    assert!(poll(pin!(db.default_family().get_with("quick", &in_memory))).is_ready());

    gate.open();
    slow.await.unwrap().unwrap();
    db.flush().await.unwrap();
    assert_eq!(db.default_family().get_with("quick", &in_memory).await.unwrap_err().kind(), ErrorKind::Incomplete);
    // On a thread, which may end before this one looks.
    assert_eq!(found(db.get("quick").await.unwrap()), Some(b"1".to_vec()));
    assert!(poll(pin!(db.get("quick"))).is_ready(), "its block is cached");
}

/// A stack larger than the address space: the system refuses each thread.
#[test]
fn where_the_runtime_gets_no_thread_calls_are_tasks() {
    let runtime = tokio::runtime::Builder::new_current_thread().thread_stack_size(1 << 56).build().unwrap();
    runtime.block_on(async {
        let db = AsyncDb::builder().options(Options::in_memory()).open("/db").await.unwrap();
        let synced = WriteOptions::new().sync(true);
        for key in ["a", "b"] {
            db.put_with(key, "value", &synced).await.unwrap();
        }
        assert_eq!(db.run(|db| db.get("a")).await.unwrap().as_deref(), Some(&b"value"[..]));
        assert_eq!(db.iter().next_chunk(5).await.unwrap().len(), 2);
        db.close().await.unwrap();
    });
}
