//! Images exposed, files kept or not, and memtables reopened. The conformance suite compares their reads.

use std::panic::{AssertUnwindSafe, catch_unwind};

use base::ErrorKind;
use vfs::Vfs;

use super::*;
use crate::Counts;
use crate::conformance::reopened;
use crate::image::reopen;

const OPTIONS: [&str; 2] = ["trie", "skip_list"];

fn converting(option: &str) -> String {
    format!(r#"{option}:{{"convert_to_sst":"kDumpMem"}}"#)
}

fn in_memory(option: &str) -> Arc<dyn Memtable> {
    let config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, 64 << 10);
    factory_from_option_string(option).expect("known").create(&config).expect("created")
}

#[test]
#[cfg_attr(miri, ignore)]
fn an_image_is_handed_out_once_it_is_sealed_and_is_what_the_file_has() {
    for option in OPTIONS {
        let mut subject = Subject::new(option, UserOrder::Bytewise, 64 << 10);
        subject.insert_all(a_few_of_each());
        assert!(subject.memtable.image().is_none());
        let (_, sealed) = subject.images();
        let image = subject.memtable.image().expect("sealed");
        assert_eq!(image.bytes, sealed);
        let expected = Counts {
            entries: 19,
            deletions: 3,
            payload_bytes: image.totals.payload_bytes,
            key_bytes: 42,
            merge_operands: 1,
            range_deletions: 2,
        };
        assert_eq!(image.totals, expected);
        let report = crate::image::check(image.bytes, subject.user_order()).expect("whole");
        assert_eq!(report.counts, expected);
        let file = image.file.expect("in a file");
        assert_eq!(file.place().path, Path::new("/image"));
        assert_eq!(file.file_bytes(), subject.image().len() as u64);
    }
}

#[test]
fn memory_without_a_file_has_an_image_where_conversion_is_wanted() {
    for option in OPTIONS {
        let plain = in_memory(option);
        plain.seal();
        assert!(plain.image().is_none());
        let memtable = in_memory(&converting(option));
        let (before, capacity) = (memtable.reserved_bytes(), memtable.capacity_bytes());
        assert!(before < 1024 && capacity == 64 << 10, "the header is not the entries': {before} {capacity}");
        for (key, seq, kind, value) in a_few_of_each() {
            assert!(put(&*memtable, &key, seq, kind, &value));
        }
        memtable.seal();
        memtable.seal();
        let image = memtable.image().expect("sealed");
        assert!(image.file.is_none());
        assert_eq!(crate::image::check(image.bytes, &UserOrder::Bytewise).expect("whole").counts.entries, 19);
        let image = reopened(&*memtable, &UserOrder::Bytewise).expect("has an image");
        let lookup = base::LookupKey::new(b"ab", SeqNo(12));
        let read = |memtable: &Arc<dyn Memtable>| {
            let mut found = Vec::new();
            memtable.get(&lookup, &mut |seq, kind, value| {
                found.push((seq, kind, value.to_vec()));
                true
            });
            let mut cursor = Arc::clone(memtable).cursor();
            let mut more = cursor.seek_to_last();
            while more {
                found.push((SeqNo::ZERO, ValueKind::Value, [cursor.key(), cursor.value()].concat()));
                more = cursor.prev();
            }
            (found, memtable.tombstones().map(|all| all.fragments().to_vec()))
        };
        assert_eq!(read(&image), read(&memtable));
    }
    let vector = in_memory("vector");
    vector.seal();
    assert!(vector.image().is_none());
}

/// Otherwise exposed bytes would change under their readers.
#[test]
fn inserts_into_what_was_sealed_or_reopened_panic() {
    for option in OPTIONS {
        let memtable = in_memory(&converting(option));
        assert!(put(&*memtable, b"k", 1, ValueKind::Value, b"v"));
        assert!(memtable.try_reserve(1000));
        memtable.seal();
        let image = reopened(&*memtable, &UserOrder::Bytewise).expect("has an image");
        assert!(!image.try_reserve(8));
        assert_eq!(image.reserved_bytes(), image.capacity_bytes());
        for target in [&memtable, &image] {
            let before = target.image().expect("sealed").bytes.to_vec();
            for kind in [ValueKind::Value, ValueKind::RangeDeletion] {
                let entry = crate::Entry { user_key: b"l", seq: SeqNo(2), kind, value: b"m" };
                let one = catch_unwind(AssertUnwindSafe(|| target.insert(entry)));
                let all = catch_unwind(AssertUnwindSafe(|| target.insert_all(&mut std::iter::once(entry))));
                assert!(one.is_err() && all.is_err());
            }
            assert!(target.image().expect("sealed").bytes == before);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_file_goes_with_its_memtable_unless_it_is_kept() {
    for (option, is_kept) in OPTIONS.into_iter().flat_map(|option| [(option, false), (option, true)]) {
        let subject = Subject::new(option, UserOrder::Bytewise, 64 << 10);
        subject.memtable.seal();
        if is_kept {
            subject.memtable.image().expect("sealed").file.expect("in a file").keep();
        }
        drop(subject.memtable);
        assert_eq!(subject.vfs.exists(Path::new("/image")).expect("asked"), is_kept);
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn what_is_no_sealed_image_of_that_length_is_not_reopened() {
    for option in OPTIONS {
        let mut subject = Subject::new(option, UserOrder::Bytewise, 64 << 10);
        subject.insert_all(a_few_of_each());
        let (open, sealed) = subject.images();
        let refused = |bytes: &[u8], len: usize, order: &UserOrder| {
            let path = Path::new("/damaged");
            subject.vfs.write_file(path, bytes).expect("written");
            let mapping = subject.vfs.map_read(path).expect("mapped");
            reopen(mapping, len as u64, order).err().expect("refused").kind()
        };
        let order = subject.user_order();
        assert_eq!(refused(&open, open.len(), order), ErrorKind::Corruption, "not sealed");
        assert_eq!(refused(&sealed, sealed.len() + 8, order), ErrorKind::Corruption, "longer than the file");
        assert_eq!(refused(&sealed, sealed.len() - 8, order), ErrorKind::Corruption);
        assert_eq!(refused(&sealed, 0, order), ErrorKind::Corruption);
        let longer = [&sealed[..], &[0; 64]].concat();
        assert_eq!(refused(&longer, longer.len(), order), ErrorKind::Corruption, "longer than the image");
        assert_eq!(refused(&sealed, sealed.len(), &UserOrder::ReverseBytewise), ErrorKind::InvalidArgument);
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn range_deletions_and_versions_of_an_image_are_read() {
    for option in OPTIONS {
        let mut subject = Subject::new(option, UserOrder::Bytewise, 64 << 10);
        subject.insert_all(a_few_of_each());
        subject.memtable.seal();
        let image = reopened(&*subject.memtable, &UserOrder::Bytewise).expect("has an image");
        let (found, expected) = (image.tombstones().expect("two"), subject.memtable.tombstones().expect("two"));
        assert_eq!(found.fragments(), expected.fragments());
        assert_eq!(image.name(), option);
        assert_eq!((image.entries(), image.counts().deletions), (19, 3));
    }
}
