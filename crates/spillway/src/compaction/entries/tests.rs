#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
use std::fmt::Write as _;

use base::key::encode;
use base::limits::ENTRY_BYTES_MAX;

use super::*;
use crate::cursor::options::ReadOptions;
use crate::cursor::testing::{
    FakeTable, Join, KEYS, Random, VecCursor, VersionMaker, Write, context, fragmented, history, key_name, memtable_of,
    model, order, points, range_tombstones,
};
use crate::queue::view::ReadView;
use crate::read::get::get;

fn rules(visible: u64) -> EntryRules {
    EntryRules {
        order: order(),
        snapshots: CapturedSnapshots { snapshots: Vec::new(), visible: SeqNo(visible) },
        merge_operator: Some(Arc::new(Join)),
        filter: None,
        level: 3,
        bottommost: false,
        key_not_below: None,
        range: UserBounds::default(),
        beneath: None,
    }
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn stream(input: Entries, tombstones: Vec<RangeTombstone>, rules: EntryRules) -> EntryStream<VecCursor> {
    let tombstones: Vec<_> = fragmented(tombstones).into_iter().collect();
    EntryStream::new(VecCursor::new(order(), input), &tombstones, rules)
}

fn drain(stream: &mut EntryStream<VecCursor>) -> Entries {
    let mut out = Entries::new();
    while stream.advance().unwrap() {
        out.push((stream.key().to_vec(), stream.value().to_vec()));
    }
    assert!(out.windows(2).all(|pair| order().compare(&pair[0].0, &pair[1].0).is_lt()), "keys ascend");
    out
}

fn table(entries: Entries, tombstones: Vec<RangeTombstone>) -> ((Vec<u8>, Vec<u8>), FakeTable) {
    let bounds =
        (encode(b"", SeqNo::MAX, ValueKind::RangeDeletion), encode(b"\xff", SeqNo::MAX, ValueKind::RangeDeletion));
    (bounds, FakeTable::new(entries, fragmented(tombstones)))
}

/// Compacts the young part of a history over the old part, twice, and reads through the outcome at every number that a
/// reader may have.
#[test]
fn readers_see_through_the_output_what_they_saw_before() {
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let writes = history(&mut random, 120);
        let cut = [0, random.below(120)][random.below(2) as usize] as usize;
        let (below, input) = writes.split_at(cut);
        let visible = 60 + random.below(62);
        let captured = |random: &mut Random, count: u64| {
            let mut snapshots: Vec<SeqNo> = (0..count).map(|_| SeqNo(random.below(visible + 1))).collect();
            snapshots.sort();
            snapshots.dedup();
            CapturedSnapshots { snapshots, visible: SeqNo(visible) }
        };
        let count = random.below(4);
        let first = captured(&mut random, count);
        // Later some of the snapshots are gone.
        let later = CapturedSnapshots {
            snapshots: first.snapshots.iter().copied().filter(|_| random.below(2) == 0).collect(),
            visible: SeqNo(visible),
        };
        let (mut entries, mut ranges) = (points(input), range_tombstones(input));
        for snapshots in [first, later] {
            let held: Vec<Vec<u8>> = below.iter().map(|write| write.key.clone()).collect();
            let not_below: KeyNotBelow = Box::new(move |key: &[u8]| !held.iter().any(|k| k == key));
            let rules = EntryRules {
                snapshots: snapshots.clone(),
                bottommost: below.is_empty() && random.below(2) == 0,
                key_not_below: (random.below(2) == 0).then_some(not_below),
                ..rules(visible)
            };
            let mut stream = stream(entries, ranges, rules);
            entries = drain(&mut stream);
            let at = key_name(random.below(KEYS));
            ranges = stream.tombstones_out(None, Some(&at));
            ranges.extend(stream.tombstones_out(Some(&at), None));
            let mut maker = VersionMaker::default();
            let (bounds, young) = table(entries.clone(), ranges.clone());
            maker.add(1, bounds, young);
            let (bounds, old) = table(points(below), range_tombstones(below));
            maker.add(3, bounds, old);
            let view = ReadView::new(memtable_of(&[]), Vec::new(), Arc::new(maker.build()));
            let numbers = snapshots.snapshots.iter().copied().chain((visible..=121).map(SeqNo));
            for seq in numbers {
                let expected = model(&writes, seq);
                for name in (0..=KEYS).map(key_name) {
                    let found = get(&view, &context(), &name, seq, &ReadOptions::default()).unwrap().value;
                    assert_eq!(
                        found.as_deref(),
                        expected.get(&name).map(Vec::as_slice),
                        "seed {seed} at {seq} {name:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_empty_key_is_a_key() {
    let input = [3, 2, 1].map(|seq| (encode(b"", SeqNo(seq), ValueKind::Value), Vec::new())).to_vec();
    assert_eq!(drain(&mut stream(input, Vec::new(), EntryRules { bottommost: true, ..rules(9) })).len(), 1);
}

#[test]
fn a_range_of_the_input_is_taken() {
    let input: Entries =
        ["a", "b", "c", "d"].map(|key| (encode(key.as_bytes(), SeqNo(1), ValueKind::Value), Vec::new())).into();
    let range = UserBounds { lower: Some(b"b".to_vec()), upper: Some(b"d".to_vec()) };
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"z".to_vec(), seq: SeqNo(12) };
    let mut stream = stream(input.clone(), vec![tombstone], EntryRules { range, ..rules(9) });
    assert_eq!(drain(&mut stream), input[1..3]);
    let cut = RangeTombstone { start: b"b".to_vec(), end: b"d".to_vec(), seq: SeqNo(12) };
    assert_eq!(stream.tombstones_out(None, None), [cut]);
}

/// Does what the value says.
struct Obedient;

impl CompactionFilter for Obedient {
    fn name(&self) -> &str {
        "obedient"
    }

    fn filter(&self, level: usize, _key: &[u8], value: &[u8]) -> FilterDecision {
        assert_eq!(level, 3);
        match value {
            b"drop" => FilterDecision::Remove,
            b"change" => FilterDecision::ChangeValue(b"changed".to_vec()),
            b"outgrow" => FilterDecision::ChangeValue(outgrown()),
            value => match value.strip_prefix(b"skip-to-") {
                Some(until) => FilterDecision::RemoveAndSkipUntil(until.to_vec()),
                None => FilterDecision::Keep,
            },
        }
    }

    fn filter_merge_operand(&self, level: usize, key: &[u8], operand: &[u8]) -> FilterDecision {
        self.filter(level, key, operand)
    }
}

/// A value that no table can hold, with any key. Never touched, so never in memory.
fn outgrown() -> Vec<u8> {
    vec![0; ENTRY_BYTES_MAX + 1]
}

/// Joins, except that "apart" keeps to itself, "fail" cannot be applied, and "outgrow" exceeds a table's limit.
struct Picky;

impl MergeOperator for Picky {
    fn name(&self) -> &str {
        "picky"
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        match operands {
            _ if operands.contains(&&b"fail"[..]) => None,
            _ if operands.contains(&&b"outgrow"[..]) => Some(outgrown()),
            _ => Join.full_merge(key, existing, operands),
        }
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        match newer {
            b"apart" => None,
            b"outgrow" => Some(outgrown()),
            _ => Join.partial_merge(key, older, newer),
        }
    }
}

/// A case of the golden file, its directives read.
struct Case {
    rules: EntryRules,
    input: Vec<Write>,
    output: Option<(Vec<u8>, Vec<u8>)>,
}

impl Case {
    fn parse(lines: &str) -> Case {
        let mut case = Case { rules: rules(0), input: Vec::new(), output: None };
        case.rules.merge_operator = Some(Arc::new(Picky));
        for line in lines.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |word: &str| SeqNo(word.trim_start_matches('@').parse().unwrap());
            let key = |word: &str| word.as_bytes().to_vec();
            match words[..] {
                ["visible", seq] => case.rules.snapshots.visible = number(seq),
                ["snapshots", ..] => case.rules.snapshots.snapshots = words[1..].iter().map(|w| number(w)).collect(),
                ["bottommost"] => case.rules.bottommost = true,
                ["filter"] => case.rules.filter = Some(Arc::new(Obedient)),
                ["not-below", ..] => {
                    let keys: Vec<Vec<u8>> = words[1..].iter().map(|word| key(word)).collect();
                    case.rules.key_not_below = Some(Box::new(move |asked| keys.iter().any(|key| key == asked)));
                }
                ["output", lower, upper] => case.output = Some((key(lower), key(upper))),
                ["range", start, end, seq] => case.input.push(Write {
                    key: key(start),
                    seq: number(seq),
                    kind: ValueKind::RangeDeletion,
                    value: key(end),
                }),
                [name, seq, ref what @ ..] => {
                    let kind = match what[0] {
                        "put" => ValueKind::Value,
                        "del" => ValueKind::Deletion,
                        "sdel" => ValueKind::SingleDeletion,
                        "merge" => ValueKind::Merge,
                        other => panic!("kind {other}"),
                    };
                    let value = what.get(1).map_or(Vec::new(), |word| key(word));
                    case.input.push(Write { key: key(name), seq: number(seq), kind, value });
                }
                _ => panic!("line {line}"),
            }
        }
        case
    }

    fn run(self) -> String {
        let mut stream = stream(points(&self.input), range_tombstones(&self.input), self.rules);
        let mut text = String::new();
        for (key, value) in drain(&mut stream) {
            let ParsedKey { user_key, seq, kind } = ParsedKey::parse(&key).unwrap();
            let kind = match kind {
                ValueKind::Value => "put",
                ValueKind::Deletion => "del",
                ValueKind::SingleDeletion => "sdel",
                ValueKind::Merge => "merge",
                ValueKind::RangeDeletion => panic!("a range deletion among points"),
            };
            let line = format!("{} @{seq} {kind} {}", text_of(user_key), text_of(&value));
            writeln!(text, "{}", line.trim_end()).unwrap();
        }
        let (lower, upper) = self.output.unzip();
        for t in stream.tombstones_out(lower.as_deref(), upper.as_deref()) {
            writeln!(text, "range {} {} @{}", text_of(&t.start), text_of(&t.end), t.seq).unwrap();
        }
        let d = stream.drops();
        let counts = [
            ("shadowed", d.shadowed),
            ("covered", d.covered),
            ("deletions", d.deletions),
            ("single_deletions", d.single_deletions),
            ("filtered", d.filtered),
            ("merged", d.merged),
        ];
        for (cause, count) in counts.iter().filter(|(_, count)| *count > 0) {
            writeln!(text, "dropped {count} {cause}").unwrap();
        }
        text
    }
}

fn text_of(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The cases of `testdata/entries.txt`; `UPDATE=1` writes what comes out, to be reviewed.
#[test]
fn golden_cases() {
    let golden = include_str!("../testdata/entries.txt");
    let mut actual = Vec::new();
    for case in golden.split("\n\n").filter(|case| !case.trim().is_empty()) {
        let (input, _) = case.split_once("----").unwrap();
        actual.push(format!("{input}----\n{}", Case::parse(input.trim_start()).run()));
    }
    let actual = actual.join("\n");
    if std::env::var_os("UPDATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/compaction/testdata/entries.txt");
        std::fs::write(path, &actual).unwrap();
    } else {
        assert_eq!(actual, golden);
    }
}
