//! Versions after random sequences of edits, against lists that are searched one by one.

use std::collections::BTreeMap;

use super::*;
use crate::version::builder::VersionBuilder;

/// Tables by level and number; levels below 0 without overlaps.
#[derive(Default, Clone)]
struct Model {
    tables: BTreeMap<(usize, u64), FileMeta>,
    next_number: u64,
}

fn spans_overlap(a: &FileMeta, b: &FileMeta) -> bool {
    a.smallest_user_key() <= b.largest_user_key() && b.smallest_user_key() <= a.largest_user_key()
}

impl Model {
    /// A change that fits: some tables go, some come, some move down.
    fn change(&mut self, random: &mut Random) -> VersionEdit {
        let mut edit = VersionEdit::default();
        for key in self.tables.keys().copied().collect::<Vec<_>>() {
            if !random.chance(4) {
                continue;
            }
            let meta = self.tables.remove(&key).unwrap();
            edit.deleted.push((key.0, meta.number));
            if random.chance(3) {
                self.add(random.below(5) as usize, meta, &mut edit);
            }
        }
        for _ in 0..random.below(6) {
            self.next_number += 1;
            let first = random.below(200);
            let meta = table(self.next_number, first, first + random.below(20), self.next_number);
            self.add(random.below(5) as usize, meta, &mut edit);
        }
        edit
    }

    fn add(&mut self, level: usize, meta: FileMeta, edit: &mut VersionEdit) {
        let fits = self.level(level).iter().all(|other| level == 0 || !spans_overlap(other, &meta));
        if fits {
            edit.added.push((level, meta.clone()));
            self.tables.insert((level, meta.number.0), meta);
        }
    }

    /// In the level's order.
    fn level(&self, level: usize) -> Vec<FileMeta> {
        let mut tables: Vec<_> = self.tables.range((level, 0)..(level + 1, 0)).map(|(_, meta)| meta.clone()).collect();
        if level == 0 {
            tables.sort_by_key(|meta| std::cmp::Reverse(meta.epoch_number));
        } else {
            tables.sort_by(|a, b| a.smallest.cmp(&b.smallest));
        }
        tables
    }

    /// What overlaps, in level 0 with all that overlaps that.
    fn overlapping(&self, level: usize, first: &[u8], last: &[u8]) -> Vec<u64> {
        let tables = self.level(level);
        let (mut first, mut last) = (first.to_vec(), last.to_vec());
        loop {
            let found: Vec<_> = tables
                .iter()
                .filter(|meta| meta.smallest_user_key() <= &last[..] && meta.largest_user_key() >= &first[..])
                .collect();
            let grown_first = found.iter().map(|meta| meta.smallest_user_key().to_vec()).min().unwrap_or(first.clone());
            let grown_last = found.iter().map(|meta| meta.largest_user_key().to_vec()).max().unwrap_or(last.clone());
            if level > 0 || (grown_first >= first && grown_last <= last) {
                return found.iter().map(|meta| meta.number.0).collect();
            }
            (first, last) = (first.min(grown_first), last.max(grown_last));
        }
    }
}

fn numbers(files: &[Arc<crate::version::table_file::TableFile>]) -> Vec<u64> {
    files.iter().map(|file| file.number().0).collect()
}

fn check_searches(version: &Version, model: &Model, random: &mut Random) {
    for level in 0..7 {
        let tables = model.level(level);
        assert_eq!(version.level(level).iter().map(|file| file.meta.clone()).collect::<Vec<_>>(), tables);
        assert_eq!(version.level_bytes(level), tables.iter().map(|meta| meta.file_bytes).sum::<u64>());
        for _ in 0..20 {
            let first = random.below(220);
            let last = first + random.below(40);
            let (first, last) = (format!("{first:06}").into_bytes(), format!("{last:06}").into_bytes());
            let expected = model.overlapping(level, &first, &last);
            assert_eq!(numbers(&version.overlapping(level, Some(&first), Some(&last))), expected);
            assert_eq!(version.overlaps(level, Some(&first), Some(&last)), !expected.is_empty());
            if level > 0 {
                let expected = model.overlapping(level, &first, &first);
                assert_eq!(version.find(level, &first).map(|file| file.number().0), expected.first().copied());
            }
        }
        assert_eq!(version.overlapping(level, None, None).len(), tables.len());
    }
}

#[test]
fn versions_follow_their_edits() {
    for seed in 1..40 {
        let mut random = Random(seed);
        let (store, purge) = store();
        let mut version = empty_version();
        let mut model = Model::default();
        for _ in 0..25 {
            let before: Vec<_> = model.tables.values().map(|meta| meta.number).collect();
            let mut builder = VersionBuilder::new(&version, &store);
            for _ in 0..1 + random.below(3) {
                builder.apply(&model.change(&mut random)).unwrap();
            }
            let built = builder.build().unwrap();
            let removed: Vec<_> = built.removed.iter().map(|file| file.number()).collect();
            let live: Vec<_> = model.tables.values().map(|meta| meta.number).collect();
            let mut gone: Vec<_> = before.into_iter().filter(|number| !live.contains(number)).collect();
            gone.sort();
            assert_eq!(removed, gone);
            version = built.version;
            check_searches(&version, &model, &mut random);
            built.removed.iter().for_each(|file| file.mark_obsolete());
            drop(built.removed);
            let mut purged: Vec<_> = purge.take().iter().map(|file| file.number).collect();
            purged.sort();
            assert_eq!(purged, gone, "the last version that held them is gone");
        }
    }
}

#[test]
fn levels_that_no_edit_names_are_shared() {
    let base = version_of(&[(1, table(1, 0, 9, 1)), (2, table(2, 0, 9, 1))]);
    let (store, _) = store();
    let mut builder = VersionBuilder::new(&base, &store);
    builder.apply(&VersionEdit { added: vec![(1, table(3, 20, 29, 1))], ..VersionEdit::default() }).unwrap();
    let built = builder.build().unwrap();
    assert!(Arc::ptr_eq(&base.levels()[2], &built.version.levels()[2]));
    assert!(Arc::ptr_eq(&base.level(1)[0], &built.version.level(1)[0]), "handles stay");
    assert_eq!(base.level(1).len(), 1, "the base is as it was");
}

#[test]
fn a_moved_table_keeps_its_handle_and_its_file() {
    let (store, purge) = store();
    let base = empty_version();
    let mut builder = VersionBuilder::new(&base, &store);
    builder.apply(&VersionEdit { added: vec![(0, table(1, 0, 9, 1))], ..VersionEdit::default() }).unwrap();
    let first = builder.build().unwrap().version;
    let mut warmer = table(1, 0, 9, 1);
    let moved = |meta: FileMeta| VersionEdit {
        deleted: vec![(0, FileNumber(1))],
        added: vec![(1, meta)],
        ..VersionEdit::default()
    };
    let mut builder = VersionBuilder::new(&first, &store);
    builder.apply(&moved(warmer.clone())).unwrap();
    let second = builder.build().unwrap();
    assert!(Arc::ptr_eq(&first.level(0)[0], &second.version.level(1)[0]));
    assert!(second.removed.is_empty());

    warmer.temperature = 4;
    let mut builder = VersionBuilder::new(&first, &store);
    builder.apply(&moved(warmer)).unwrap();
    let changed = builder.build().unwrap();
    assert!(changed.removed.is_empty(), "the file lives on under new metadata");
    changed.version.level(1)[0].mark_obsolete();
    drop(changed);
    assert!(purge.is_empty(), "the old metadata still pins the file");
    drop((first, second));
    assert_eq!(purge.take().len(), 1);
}

#[test]
fn edits_that_do_not_fit_are_refused_by_name() {
    let base = version_of(&[(0, table(1, 0, 9, 1)), (1, table(2, 10, 19, 1)), (1, table(3, 30, 39, 1))]);
    let (store, _) = store();
    let refusal = |deleted: Vec<(usize, FileNumber)>, added: Vec<(usize, FileMeta)>| {
        let mut builder = VersionBuilder::new(&base, &store);
        let edit = VersionEdit { deleted, added, ..VersionEdit::default() };
        builder.apply(&edit).and_then(|()| builder.build()).map(drop).unwrap_err().message().to_string()
    };
    let gone = |level, number| vec![(level, FileNumber(number))];
    let none = Vec::new;
    for (deleted, added, message) in [
        (gone(1, 7), none(), "table 000007.sst is deleted from level 1 but is not there"),
        (gone(2, 2), none(), "table 000002.sst is deleted from level 2 but is not there"),
        ([gone(1, 2), gone(1, 2)].concat(), none(), "table 000002.sst is deleted from level 1 but is not there"),
        (Vec::new(), vec![(1, table(2, 50, 59, 1))], "table 000002.sst is added to level 1 but is there already"),
        (Vec::new(), vec![(7, table(9, 1, 2, 1))], "table 000009.sst is in level 7, but the family has 7 levels"),
        (Vec::new(), vec![(1, table(9, 5, 2, 1))], "table 000009.sst has its smallest key above its largest"),
        (Vec::new(), vec![(1, table(9, 0, 11, 1))], "table 000002.sst overlaps 000009.sst in level 1"),
        (Vec::new(), vec![(1, table(9, 25, 31, 1))], "table 000003.sst overlaps 000009.sst in level 1"),
        (Vec::new(), vec![(1, table(9, 12, 13, 1))], "table 000009.sst overlaps 000002.sst in level 1"),
        (
            Vec::new(),
            vec![(2, table(8, 0, 5, 1)), (2, table(9, 5, 6, 1))],
            "table 000009.sst overlaps 000008.sst in level 2",
        ),
    ] {
        assert_eq!(refusal(deleted, added), message);
    }
}

#[test]
fn the_end_of_a_range_tombstone_is_outside() {
    let mut ranged = table(1, 0, 10, 1);
    ranged.largest = key::encode(b"000010", SeqNo::MAX, ValueKind::RangeDeletion);
    let version = version_of(&[(1, ranged.clone()), (1, table(2, 10, 19, 1))]);
    assert_eq!(version.find(1, b"000010").map(|file| file.number().0), Some(2));
    assert_eq!(version.find(1, b"000009z").map(|file| file.number().0), Some(1));
    assert_eq!(numbers(&version.overlapping(1, Some(b"000010"), Some(b"000010"))), [2]);
    assert_eq!(numbers(&version.overlapping(1, Some(b"000005"), Some(b"000010"))), [1, 2]);
    let level_zero = version_of(&[(0, ranged)]);
    assert!(!level_zero.overlaps(0, Some(b"000010"), None));
}

#[test]
fn a_key_split_between_neighbours_is_found_in_both() {
    let mut newer = table(1, 0, 10, 1);
    newer.largest = key::encode(b"000010", SeqNo(9), ValueKind::Value);
    let mut older = table(2, 10, 19, 1);
    older.smallest = key::encode(b"000010", SeqNo(5), ValueKind::Value);
    let version = version_of(&[(1, newer), (1, older)]);
    assert_eq!(numbers(version.candidates(1, b"000010")), [1, 2]);
    assert_eq!(numbers(version.candidates(1, b"000011")), [2]);
}

#[test]
fn other_orders_are_searched_alike() {
    struct ByLength;
    impl base::Comparator for ByLength {
        fn name(&self) -> &str {
            "test.ByLength"
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            a.len().cmp(&b.len()).then_with(|| a.cmp(b))
        }
    }
    let meta = |number: u64, first: &str, last: &str| FileMeta {
        smallest: key::encode(first.as_bytes(), SeqNo(1), ValueKind::Value),
        largest: key::encode(last.as_bytes(), SeqNo(1), ValueKind::Value),
        ..table(number, 0, 0, 1)
    };
    let (store, _) = store();
    for (order, tables, probes) in [
        (
            base::UserOrder::ReverseBytewise,
            [meta(1, "zebra-long", "zebra-lonf"), meta(2, "mmm", "ccc")],
            [("zebra-long", 1), ("zebra-lonfx", 1), ("d", 2), ("n", 0), ("a", 0), ("ccc", 2)],
        ),
        (
            base::UserOrder::Custom(Arc::new(ByLength)),
            [meta(1, "z", "zz"), meta(2, "aaaa", "aaaaaa")],
            [("z", 1), ("aa", 1), ("aaa", 0), ("zzzz", 2), ("aaaaaa", 2), ("b", 0)],
        ),
    ] {
        let base = Version::empty(InternalOrder::new(order), 3);
        let mut builder = VersionBuilder::new(&base, &store);
        builder.apply(&VersionEdit { added: tables.map(|meta| (1, meta)).to_vec(), ..VersionEdit::default() }).unwrap();
        let version = builder.build().unwrap().version;
        for (probe, expected) in probes {
            let found = version.find(1, probe.as_bytes()).map_or(0, |file| file.number().0);
            assert_eq!(found, expected, "{probe}");
        }
    }
}
