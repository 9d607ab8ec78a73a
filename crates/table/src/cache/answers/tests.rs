use super::log::{Log, Read};
use super::*;

fn hash(key: u64) -> u64 {
    xxh3_64(&key.to_be_bytes())
}

fn question(content: u64, user_key: &[u8]) -> Question<'_> {
    Question { content, user_key, seq: SeqNo(100) }
}

fn answer(decided_at: u64, value: Option<&[u8]>) -> Answer<'_> {
    Answer { decided_at: SeqNo(decided_at), value }
}

/// Asks until the key is hot, and keeps the answer.
fn heat(answers: &Answers, question: &Question<'_>, value: Option<&[u8]>) {
    for _ in 0..5 {
        if let Reply::Wanted(hash) = answers.ask(question) {
            answers.keep(hash, question, &answer(7, value));
        }
    }
}

fn known(value: Option<&[u8]>) -> Reply {
    Reply::Known(value.map(|value| Pinned::from(value.to_vec())))
}

#[test]
fn a_key_is_hot_from_its_fifth_question_on() {
    let bucket = Bucket::default();
    assert_eq!([7; 6].map(|key| bucket.count(hash(key))), [false, false, false, false, true, true]);
}

#[test]
fn keys_met_once_do_not_displace_a_hot_one() {
    let buckets: Vec<Bucket> = (0..64).map(|_| Bucket::default()).collect();
    let count = |key: u64| buckets[hash(key) as usize % 64].count(hash(key));
    for _ in 0..20 {
        count(7);
    }
    for cold in 1000..5000 {
        assert!(!count(cold), "{cold}");
        if cold % 500 == 0 {
            assert!(count(7), "after {cold}");
        }
    }
    for cold in 10_000..50_000 {
        count(cold);
    }
    assert!(!count(7), "a hot key that comes no more leaves");
}

#[test]
fn as_many_keys_as_entries_can_be_hot_but_few_of_many_more() {
    let hot_of = |keys: u64| {
        let buckets: Vec<Bucket> = (0..512).map(|_| Bucket::default()).collect();
        let count = |key: u64| buckets[hash(key) as usize % 512].count(hash(key));
        for key in (0..9).flat_map(|_| 0..keys) {
            count(key);
        }
        (0..keys).filter(|&key| count(key)).count()
    };
    assert!(hot_of(1024) > 900, "{}", hot_of(1024));
    assert!(hot_of(100_000) < 1000, "{}", hot_of(100_000));
}

#[test]
fn an_answer_is_for_its_content_its_key_and_later_lookups() {
    let answers = Answers::within(64 << 10);
    let value = b"a value of no whole number of words";
    heat(&answers, &question(1, b"key"), Some(value));
    assert_eq!(answers.ask(&question(1, b"key")), known(Some(value)));
    assert_eq!(answers.ask(&Question { seq: SeqNo(7), ..question(1, b"key") }), known(Some(value)));
    assert_eq!(answers.ask(&Question { seq: SeqNo(6), ..question(1, b"key") }), Reply::Unknown);
    assert!(matches!(answers.ask(&question(2, b"key")), Reply::Wanted(_)), "it is still hot");
    for (key, value) in [(&b"absent"[..], None), (b"", Some(&b""[..])), (b"eight by", Some(b"eight by"))] {
        heat(&answers, &question(1, key), value);
        assert_eq!(answers.ask(&question(1, key)), known(value), "{key:?}");
    }
    heat(&answers, &question(2, b"key"), None);
    assert_eq!(answers.ask(&question(2, b"key")), known(None));
}

#[test]
fn memory_is_a_share_and_comes_with_use() {
    for bytes in [0, 2300] {
        let answers = Answers::within(bytes);
        heat(&answers, &question(1, b"key"), Some(b"value"));
        assert_eq!((answers.ask(&question(1, b"key")), answers.memory_bytes()), (Reply::Unknown, 0));
    }
    let answers = Answers::within(1 << 20);
    let buckets = (1 << 20) / (512 + 64);
    assert_eq!(answers.memory_bytes(), buckets * 64);
    heat(&answers, &question(1, b"key"), Some(&[1; PART_BYTES_MAX + 1]));
    assert!(answers.log.get().is_none(), "nothing is kept");
    heat(&answers, &question(1, b"key"), Some(&[1; PART_BYTES_MAX]));
    assert_eq!(answers.ask(&question(1, b"key")), known(Some(&[1; PART_BYTES_MAX])));
    assert_eq!(answers.memory_bytes(), buckets * (512 + 64));
}

#[test]
fn the_log_forgets_the_oldest_and_confuses_nothing() {
    let log = Log::new(4000);
    let key = |n: u64| [&n.to_be_bytes()[..], &vec![n as u8; n as usize % 13]].concat();
    let value = |n: u64| vec![n as u8; n as usize % 200];
    let mut kept = std::collections::VecDeque::new();
    for n in 0..2000 {
        let at = log.append(&question(1, &key(n)), &answer(7, Some(&value(n)))).expect("it fits");
        kept.push_back((n, at));
        let read = |&(n, at): &(u64, u64)| match log.read(at, &question(1, &key(n))) {
            Read::Answer(found) => {
                assert_eq!(found, Some(value(n)));
                true
            }
            _ => false,
        };
        while !kept.front().is_some_and(read) {
            kept.pop_front();
        }
        assert!(kept.iter().all(read), "older answers go first");
        assert!(n < 50 || kept.len() >= 8, "{}", kept.len());
    }
    assert!(log.append(&question(1, &[1; 1000]), &answer(7, Some(&[1; 200]))).is_none(), "too long for this log");
}

/// Values tell their key and content.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test of threads needs threads")]
fn readers_beside_appends_see_whole_answers() {
    let answers = Answers::within(8 << 10);
    let value = |content: u64, key: u64| vec![(content * 31 + key) as u8; 40 + key as usize];
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (answers, value) = (&answers, &value);
            scope.spawn(move || {
                // A thread that was held up meets little of its own between the others' answers: it goes on alone.
                let (mut found, mut step) = (0, 0u64);
                while step < 40_000 || (found <= 1000 && step < 4_000_000) {
                    step += 1;
                    let (content, key) = (1 + step / 500, (step * 7 + thread) % 64);
                    let bytes = key.to_be_bytes();
                    let question = question(content, &bytes);
                    match answers.ask(&question) {
                        Reply::Known(got) => {
                            assert_eq!(got.as_deref(), Some(&value(content, key)[..]));
                            found += 1;
                        }
                        Reply::Wanted(hash) => {
                            answers.keep(hash, &question, &answer(7, Some(&value(content, key))));
                        }
                        Reply::Unknown => {}
                    }
                }
                assert!(found > 1000, "{found}");
            });
        }
    });
}
