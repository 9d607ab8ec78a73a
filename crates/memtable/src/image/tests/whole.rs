//! Images of whole memtables pass, and have their data.

use super::*;
use crate::conformance::ShortestFirst;
use vfs::{CrashPolicy, Vfs};

const OPTIONS: [&str; 2] = ["trie", "skip_list"];

fn assert_holds(subject: &Subject, bytes: &[u8], is_sealed: bool) {
    let image = Image::open(bytes, subject.user_order()).expect("whole");
    assert_eq!(pairs(&image), subject.points());
    assert_eq!(ranges(&image), subject.ranges());
    let report = &image.report;
    assert_eq!(report.counts, subject.memtable.counts());
    assert_eq!(report.counts.range_deletions, subject.ranges().len() as u64);
    assert_eq!(report.largest_seq.0, subject.ops.iter().map(|op| op.1).max().unwrap_or(0));
    assert_eq!(report.locked_nodes, 0);
    assert_eq!(report.header.sealed.is_some(), is_sealed);
}

#[test]
fn images_of_random_memtables_have_the_models_data() {
    for option in OPTIONS {
        for (seed, count) in [(1, 0), (2, 1), (3, 2), (4, 40), (5, 3000)] {
            let mut orders = vec![UserOrder::Bytewise, UserOrder::ReverseBytewise];
            orders.push(UserOrder::Custom(Arc::new(ShortestFirst)));
            for order in orders {
                let mut subject = Subject::new(option, order, 4 << 20);
                subject.insert_all(random_ops(&mut Random(seed), count));
                assert_holds(&subject, &subject.image(), false);
                let (open, sealed) = subject.images();
                assert_holds(&subject, &open, false);
                assert_holds(&subject, &sealed, true);
            }
        }
    }
}

#[test]
fn what_a_killed_process_leaves_has_every_entry() {
    for option in OPTIONS {
        let mut subject = Subject::new(option, UserOrder::Bytewise, 1 << 20);
        for op in random_ops(&mut Random(9), 150) {
            subject.insert(op);
            if subject.ops.len().is_multiple_of(16) {
                let left = subject.vfs.crash_clone(1, CrashPolicy::ProcessKilled);
                assert_holds(&subject, &left.read_file(Path::new("/image")).expect("there"), false);
            }
        }
    }
}

#[test]
fn keys_and_values_of_any_length_pass() {
    for option in OPTIONS {
        let mut subject = Subject::new(option, UserOrder::Bytewise, 8 << 20);
        for n in [0usize, 1, 1023, 1024, 65_535, 65_536] {
            for last in [b'a', b'b'] {
                let mut key = vec![b'k'; n];
                subject.insert(value_op(&key, n as u64, &vec![last; n / 3]));
                key.push(last);
                subject.insert(value_op(&key, n as u64, &vec![last; 1 << (19 - last % 2)]));
            }
        }
        let (open, sealed) = subject.images();
        assert_holds(&subject, &open, false);
        assert_holds(&subject, &sealed, true);
    }
}

#[test]
fn a_skiplist_with_a_filter_passes() {
    let vfs = MemoryVfs::new(1);
    let mut config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, 1 << 20);
    config.image = Some(ImageFile::new(vfs.clone(), "/image"));
    config.bloom_ratio = 0.1;
    let memtable = factory_from_option_string("skip_list").expect("known").create(&config).expect("created");
    assert!(put(&*memtable, b"k", 1, ValueKind::Value, b"v"));
    let bytes = vfs.read_file(Path::new("/image")).expect("there");
    let image = Image::open(&bytes, &UserOrder::default()).expect("whole");
    assert_eq!(pairs(&image).len(), 1);
}

#[test]
fn what_was_not_expected_is_refused() {
    let subject = Subject::new("trie", UserOrder::Bytewise, 1 << 20);
    let bytes = subject.image();
    let reverse = Image::open(&bytes, &UserOrder::ReverseBytewise).err().expect("refused");
    assert_eq!(reverse.kind(), base::ErrorKind::InvalidArgument);
    assert!(reverse.message().contains("leveldb.BytewiseComparator"), "{reverse}");
}

/// A memtable whose order's name is too long for an image is refused, in a file or not.
#[test]
fn orders_with_endless_names_are_refused() {
    struct Endless(String);
    impl base::Comparator for Endless {
        fn name(&self) -> &str {
            &self.0
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            a.cmp(b)
        }
    }
    let order = UserOrder::Custom(Arc::new(Endless("n".repeat(1025))));
    let config = MemtableConfig::new(InternalOrder::new(order), FamilyId::DEFAULT, 1 << 20);
    let error = factory_from_option_string("skip_list").expect("known").create(&config).err().expect("refused");
    assert!(error.message().contains("has 1025 bytes"), "{error}");
}

#[test]
fn the_page_shows_a_trie_and_a_skiplist() {
    for option in OPTIONS {
        let mut subject = Subject::new(option, UserOrder::Bytewise, 64 << 10);
        subject.insert_all([
            value_op(b"", 1, b"e"),
            value_op(b"river", 2, b"old"),
            value_op(b"river", 3, b"new"),
            value_op(b"rain", 4, b"x"),
            (b"s".to_vec(), 5, ValueKind::RangeDeletion, b"t".to_vec()),
        ]);
        let (_, sealed) = subject.images();
        let dump = hexdump(&sealed);
        assert!(PAGE.contains(&format!("```text\n{dump}```")), "docs/format/image.md does not show:\n{dump}");
        let golden = super::damage::golden_images();
        assert!(golden.contains(&sealed), "the page is not read as it was written");
    }
}

/// Offset, sixteen bytes, their text; repeated lines of zeros once.
fn hexdump(bytes: &[u8]) -> String {
    let mut dump = String::new();
    let mut zeros = false;
    for (index, line) in bytes.chunks(16).enumerate() {
        let is_last = (index + 1) * 16 >= bytes.len();
        if line.iter().all(|byte| *byte == 0) && !is_last {
            if !zeros {
                dump.push_str("*\n");
            }
            zeros = true;
            continue;
        }
        zeros = false;
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let text: String =
            line.iter().map(|&b| if b.is_ascii_graphic() || b == b' ' { char::from(b) } else { '.' }).collect();
        dump.push_str(&format!("{:06x}  {:47}  |{text}|\n", index * 16, hex.join(" ")));
    }
    dump
}

/// A leftover file would make the next attempt fail.
#[test]
fn a_memtable_that_cannot_be_made_leaves_no_file() {
    for option in OPTIONS {
        let vfs = MemoryVfs::new(1);
        let factory = factory_from_option_string(option).expect("known");
        let mut config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, 1 << 20);
        config.image = Some(ImageFile::new(vfs.clone(), "/image"));
        config.bloom_ratio = 0.9;
        assert!(factory.create(&config).is_err());
        config.bloom_ratio = 0.0;
        let memtable = factory.create(&config).expect("no file is in the way");
        assert!(factory.create(&config).is_err(), "now one is");
        assert!(vfs.exists(Path::new("/image")).expect("asked"), "which is another's, and stays");
        drop(memtable);
    }
}
