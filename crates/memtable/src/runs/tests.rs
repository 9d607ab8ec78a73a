//! Lists with small chunks, so that a few hundred entries exercise every chunk operation.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use base::key::ParsedKey;
use base::{Comparator, Cursor, SeqNo, ValueKind, key};
use parking_lot::Mutex;
use vfs::Task;

use super::{Entries, Growth, Item, RunsCursor, RunsList};
use crate::arena::Arena;
use crate::order::{Bytewise, Custom, KeyOrder, ReverseBytewise};
use crate::record::{self, record_bytes};
use crate::stripe::Counts;
use crate::{Background, Entry};

fn list_of<O: KeyOrder>(order: O, max: usize, background: Background) -> Arc<RunsList<O>> {
    let arena = Arena::new(1 << 20).expect("maps");
    RunsList::new(Entries { arena, order }, Growth { first: 2, max }, background)
}

fn list(background: Background) -> Arc<RunsList<Bytewise>> {
    list_of(Bytewise, 8, background)
}

fn put<O: KeyOrder>(list: &RunsList<O>, user_key: &[u8], seq: u64) {
    let entry = Entry { user_key, seq: SeqNo(seq), kind: ValueKind::Value, value: b"" };
    let arena = &list.entries.arena;
    assert!(arena.try_reserve(record_bytes(&entry).next_multiple_of(8)));
    let at = arena.allocate(record_bytes(&entry));
    // SAFETY: the allocation has room for the record and is not published yet.
    unsafe { record::write(arena, at, &entry) };
    let mut counts = Counts::default();
    counts.note(&entry);
    list.append(&[list.entries.item(at, user_key)], counts);
}

/// Numbers in no order, each once below 2^20.
fn mixed(i: u64) -> u64 {
    i.wrapping_mul(0x9E37_79B9) % (1 << 20)
}

fn put_mixed(list: &RunsList<Bytewise>, range: std::ops::Range<u64>) {
    range.for_each(|i| put(list, &mixed(i).to_be_bytes(), i));
}

fn rest(cursor: &mut dyn Cursor, mut more: bool, step: fn(&mut dyn Cursor) -> bool) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while more {
        keys.push(cursor.key().to_vec());
        more = step(cursor);
    }
    keys
}

fn forward<O: KeyOrder>(list: &Arc<RunsList<O>>) -> Vec<Vec<u8>> {
    let mut cursor = RunsCursor::new(Arc::clone(list));
    let more = cursor.seek_to_first();
    rest(&mut cursor, more, |cursor| cursor.next())
}

fn backward<O: KeyOrder>(list: &Arc<RunsList<O>>) -> Vec<Vec<u8>> {
    let mut cursor = RunsCursor::new(Arc::clone(list));
    let more = cursor.seek_to_last();
    rest(&mut cursor, more, |cursor| cursor.prev())
}

/// Checks for the first `count` of `put_mixed`, in order, either way.
fn check(list: &Arc<RunsList<Bytewise>>, count: u64) {
    let mut expected: Vec<_> =
        (0..count).map(|i| key::encode(&mixed(i).to_be_bytes(), SeqNo(i), ValueKind::Value)).collect();
    expected.sort();
    assert_eq!(forward(list), expected);
    expected.reverse();
    assert_eq!(backward(list), expected);
}

type Queue = Arc<Mutex<VecDeque<Task>>>;

/// A background whose tasks wait in a queue.
fn queued() -> (Background, Queue) {
    let queue = Queue::default();
    let tasks = Arc::clone(&queue);
    (Background::new(move |task| tasks.lock().push_back(task)), queue)
}

fn run_all(queue: &Queue) {
    let next = || queue.lock().pop_front();
    while let Some(task) = next() {
        task();
    }
}

/// Keys with all kinds of shared prefixes, each several times.
fn awkward_keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for len in 0..24 {
        keys.push(vec![0; len]);
        keys.push(vec![0xff; len]);
        keys.push([&b"a shared beginning "[..], &vec![0; len]].concat());
    }
    for i in 0..60u64 {
        keys.push(format!("a shared beginning, then {i:04}").into_bytes());
        keys.push([&b"a shared beginning"[..], &mixed(i).to_be_bytes(), b"tail"].concat());
        keys.push(b"one key".to_vec());
        keys.push(vec![b'x'; 7 * i as usize % 150]);
    }
    keys
}

fn check_sort<O: KeyOrder>(order: O, compare: fn(&[u8], &[u8]) -> std::cmp::Ordering, max: usize) {
    let list = list_of(order, max, Background::inline());
    let mut expected = Vec::new();
    for (i, key) in awkward_keys().into_iter().enumerate() {
        let seq = mixed(i as u64);
        put(&list, &key, seq);
        expected.push((key, seq));
    }
    expected.sort_by(|a, b| compare(&a.0, &b.0).then_with(|| b.1.cmp(&a.1)));
    let parsed = |internal: &Vec<u8>| {
        let key = ParsedKey::parse(internal).expect("whole");
        (key.user_key.to_vec(), key.seq.0)
    };
    let check = || assert_eq!(forward(&list).iter().map(parsed).collect::<Vec<_>>(), expected);
    check();
    list.seal();
    check();
    for (key, seq) in &expected {
        let mut found = None;
        list.get(&base::LookupKey::new(key, SeqNo(*seq)), &mut |seq, _, _| {
            found = Some(seq.0);
            false
        });
        assert_eq!(found, Some(*seq), "{key:?}");
    }
}

#[test]
fn keys_that_share_anything_are_sorted() {
    let maxima: &[usize] = if cfg!(miri) { &[100] } else { &[8, 100, usize::MAX] };
    for &max in maxima {
        check_sort(Bytewise, |a, b| a.cmp(b), max);
        check_sort(ReverseBytewise, |a, b| b.cmp(a), max);
    }
}

#[test]
fn a_background_that_never_runs_loses_nothing_and_keeps_nothing_alive() {
    let (background, queue) = queued();
    let list = list(background);
    for part in 0..5 {
        put_mixed(&list, 40 * part..40 * (part + 1));
        check(&list, 40 * (part + 1));
    }
    assert_eq!(queue.lock().len(), 1, "asked for once");
    let weak = Arc::downgrade(&list);
    drop(list);
    assert!(weak.upgrade().is_none());
    run_all(&queue);
}

#[test]
fn a_background_that_runs_late_finds_what_readers_left() {
    let (background, queue) = queued();
    let list = list(background);
    put_mixed(&list, 0..100);
    run_all(&queue);
    let chunks = list.current().chunks.len();
    assert!(chunks <= 5, "{chunks} chunks of 100 entries");
    check(&list, 100);
    put_mixed(&list, 100..150);
    check(&list, 150);
    run_all(&queue);
    check(&list, 150);
    list.seal();
    run_all(&queue);
    check(&list, 150);
    assert_eq!(list.current().chunks.len(), 1);
}

#[test]
fn an_inline_background_keeps_the_ladder_in_order() {
    const COUNT: u64 = if cfg!(miri) { 40 } else { 200 };
    let list = list(Background::inline());
    for count in 0..COUNT {
        check_ladder(&list);
        put_mixed(&list, count..count + 1);
        let mut cursor = RunsCursor::new(Arc::clone(&list));
        assert!(cursor.seek(&key::encode(&mixed(count).to_be_bytes(), SeqNo(count), ValueKind::Value)));
        assert_eq!(key::user_key(cursor.key()), mixed(count).to_be_bytes());
    }
    check(&list, COUNT);
}

fn check_ladder(list: &RunsList<Bytewise>) {
    let parts = list.current();
    assert!(parts.too_similar(usize::MAX).is_none());
    assert!(parts.chunks.is_sorted_by_key(|chunk| std::cmp::Reverse(chunk.len())));
}

#[test]
fn a_cursor_stays_on_its_runs_while_others_merge_them() {
    let list = list(Background::inline());
    put_mixed(&list, 0..60);
    let all = forward(&list);
    let mut cursor = RunsCursor::new(Arc::clone(&list));
    assert!(cursor.seek(&all[30]));
    put_mixed(&list, 60..120);
    check(&list, 120);
    list.seal();
    let with_old_runs = list.heap_bytes();
    assert_eq!(rest(&mut cursor, true, |cursor| cursor.next()), all[30..]);
    assert!(cursor.seek_for_prev(&all[30]), "now on the merged run");
    assert!(list.heap_bytes() <= with_old_runs - 60 * size_of::<Item>(), "the old runs counted while they were held");
    assert_eq!(rest(&mut cursor, true, |cursor| cursor.prev()).len(), {
        let merged = forward(&list);
        merged.iter().position(|key| *key == all[30]).expect("there") + 1
    });
}

/// Writers make progress while readers cut, even if the background never runs.
#[test]
fn cuts_while_writers_write_see_all_that_was_written_before() {
    const WRITERS: u64 = 3;
    const EACH: u64 = if cfg!(miri) { 20 } else { 2000 };
    for background in [Background::inline(), Background::new(|_| {})] {
        let list = list(background);
        let done = [const { AtomicU64::new(0) }; WRITERS as usize];
        std::thread::scope(|scope| {
            for (writer, done) in (0..).zip(&done) {
                let list = &list;
                scope.spawn(move || {
                    for i in 0..EACH {
                        put(list, &mixed(i * WRITERS + writer).to_be_bytes(), i + 1);
                        done.store(i + 1, std::sync::atomic::Ordering::Release);
                    }
                });
            }
            scope.spawn(|| {
                let mut seen = 0;
                while seen < WRITERS * EACH {
                    let before: u64 = done.iter().map(|done| done.load(std::sync::atomic::Ordering::Acquire)).sum();
                    let keys = forward(&list);
                    assert!(keys.is_sorted() && keys.len() as u64 >= before.max(seen));
                    seen = keys.len() as u64;
                }
            });
        });
        assert_eq!(done.iter().map(|done| done.load(Relaxed)).sum::<u64>(), WRITERS * EACH);
        list.seal();
        assert_eq!(forward(&list).len() as u64, WRITERS * EACH);
    }
}

/// If keys change their prefix after a base was learnt, old and new runs compare correctly.
#[test]
fn runs_of_different_bases_are_walked_and_merged_together() {
    let (background, queue) = queued();
    let list = list_of(Bytewise, 100, background);
    let (mut expected, mut learnt) = (Vec::new(), false);
    for (seq, prefix) in (0..4).zip(["table 1, row ", "table 2, row ", "a", "z"]) {
        for i in 0..100u64 {
            let key = format!("{prefix}{:06}", mixed(i));
            put(&list, key.as_bytes(), seq);
            expected.push(key::encode(key.as_bytes(), SeqNo(seq), ValueKind::Value));
        }
        expected.sort();
        assert_eq!(forward(&list), expected);
        assert_eq!(backward(&list).len(), expected.len());
        learnt |= list.current().runs().any(|run| !run.base.is_empty());
    }
    assert!(learnt);
    run_all(&queue);
    list.seal();
    assert_eq!(forward(&list), expected);
}

/// Counts comparisons, and panics in a chosen one.
#[derive(Default)]
struct Watched {
    comparisons: AtomicU64,
    panics: AtomicBool,
}

impl Comparator for Watched {
    fn name(&self) -> &str {
        "test.Watched"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        self.comparisons.fetch_add(1, Relaxed);
        assert!(!self.panics.swap(false, Relaxed), "as it was told to");
        a.cmp(b)
    }
}

#[test]
fn entries_whose_comparator_panics_are_sorted_by_the_next_who_asks() {
    let watched = Arc::new(Watched::default());
    let list = list_of(Custom::new(watched.clone()), 100, Background::inline());
    (0..50).for_each(|i| put(&list, &mixed(i).to_be_bytes(), i));
    watched.panics.store(true, Relaxed);
    let read = || forward(&list).len();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).is_err());
    assert_eq!(read(), 50);
    assert!(forward(&list).is_sorted());
}

/// However many chunks the background has left.
#[test]
fn sealing_compares_each_entry_a_few_times() {
    const COUNT: u64 = if cfg!(miri) { 400 } else { 4000 };
    let watched = Arc::new(Watched::default());
    let list = list_of(Custom::new(watched.clone()), 8, Background::new(|_| {}));
    (0..COUNT).for_each(|i| put(&list, &mixed(i).to_be_bytes(), i));
    list.seal();
    let each = watched.comparisons.load(Relaxed) / COUNT;
    assert!(each <= 24, "{each} comparisons for each entry");
    assert_eq!(forward(&list).len() as u64, COUNT);
}

#[test]
fn what_lists_and_chunks_hold_is_counted_with_the_room_they_made() {
    let arena = Arena::new(1 << 20).expect("maps");
    let growth = Growth { first: 10_000, max: usize::MAX };
    let list = RunsList::new(Entries { arena, order: Bytewise }, growth, Background::inline());
    put_mixed(&list, 0..600);
    let before = list.heap_bytes();
    assert!(before >= 10_000 * size_of::<Item>());
    let items = vec![Item::NONE; 3];
    let gauge = Arc::default();
    let chunk = super::chunk::Chunk::unsorted(
        {
            let mut items = items;
            items.reserve_exact(97);
            items
        },
        &gauge,
    );
    assert_eq!(gauge.load(Relaxed), 100 * size_of::<Item>());
    chunk.sort_with(|_| list.current().runs().next().expect("one").base.clone());
    assert_eq!(gauge.load(Relaxed), 3 * size_of::<Item>());
    put(&list, b"one more", 9999);
    assert!(list.heap_bytes() < before / 2, "room for 10,000 is made once");
}
