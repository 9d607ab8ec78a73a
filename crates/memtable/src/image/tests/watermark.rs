//! An image's header while its memtable lives: identity and watermark.

use base::FamilyId;
use vfs::{CrashPolicy, Vfs};

use super::*;
use crate::conformance::reopened;
use crate::image::{HEADER_BYTES, Header, ImageIdentity, Watermark};

const OPTIONS: [&str; 2] = ["trie", "skip_list"];

fn header_of(vfs: &MemoryVfs) -> Header {
    let bytes = vfs.read_file(Path::new("/image")).expect("there");
    Header::read(&bytes[..HEADER_BYTES]).expect("a header")
}

#[test]
#[cfg_attr(miri, ignore)]
fn an_image_says_from_the_start_whose_it_is_and_which_file() {
    let identity = ImageIdentity {
        page_cache: ImageIdentity::number_of("a boot and a mount"),
        database: 7,
        family: FamilyId(3),
        created_at: SeqNo(41),
        extra: 9,
    };
    for option in OPTIONS {
        let vfs = MemoryVfs::new(1);
        let mut config = MemtableConfig::new(InternalOrder::default(), FamilyId(3), 64 << 10);
        config.image = Some(ImageFile { identity, ..ImageFile::new(vfs.clone(), "/image") });
        let memtable = factory_from_option_string(option).expect("known").create(&config).expect("created");
        let header = header_of(&vfs);
        assert_eq!((header.identity, header.watermark), (identity, Watermark::default()));
        assert_eq!(header.file, vfs.metadata(Path::new("/image")).expect("there").identity);
        memtable.seal();
        assert_eq!(header_of(&vfs).identity, identity);
        let left = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
        assert_eq!(left.metadata(Path::new("/image")).expect("there").identity, header.file, "still the same file");
        let copy = vfs.read_file(Path::new("/image")).expect("there");
        vfs.write_file(Path::new("/copy"), &copy).expect("written");
        assert_ne!(vfs.metadata(Path::new("/copy")).expect("there").identity, header.file);
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn marks_only_grow_and_are_in_the_file_at_once() {
    for option in OPTIONS {
        let mut subject = Subject::new(option, UserOrder::Bytewise, 64 << 10);
        let watermark = |subject: &Subject| {
            let found = header_of(&subject.vfs.crash_clone(1, CrashPolicy::ProcessKilled)).watermark;
            (found.complete_through.0, found.position, found.is_foreign)
        };
        assert_eq!(watermark(&subject), (0, 0, false));
        for (begins_after, empty_through) in [(3, 7), (2, 6)] {
            subject.memtable.begin_after(SeqNo(begins_after));
            subject.memtable.advance_empty_to(SeqNo(empty_through));
            let found = header_of(&subject.vfs.crash_clone(1, CrashPolicy::ProcessKilled)).watermark;
            assert_eq!((found.begins_after, found.empty_through), (Some(SeqNo(3)), SeqNo(7)));
        }
        subject.insert_all(a_few_of_each());
        subject.memtable.mark(SeqNo(10), 100);
        assert_eq!(watermark(&subject), (10, 100, false));
        subject.memtable.mark(SeqNo(8), 90);
        assert_eq!(watermark(&subject), (10, 100, false));
        subject.memtable.mark(SeqNo(12), 90);
        assert_eq!(watermark(&subject), (12, 100, false), "the position stays where it was");
        subject.memtable.mark(SeqNo(12), 120);
        assert!(subject.memtable.mark_foreign());
        assert_eq!(watermark(&subject), (12, 120, true));
        let handed_out = header_of(&subject.vfs).watermark.handed_out_bytes;
        subject.memtable.seal();
        assert_eq!(header_of(&subject.vfs).sealed.expect("sealed").allocated_bytes, handed_out);
    }
}

/// Otherwise exposed bytes would change under their readers.
#[test]
fn what_is_sealed_reopened_or_without_an_image_is_not_marked() {
    for option in OPTIONS {
        let config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, 64 << 10);
        let create =
            |option: &str| factory_from_option_string(option).expect("known").create(&config).expect("created");
        let plain = create(option);
        plain.mark(SeqNo(1), 1);
        assert!(!plain.mark_foreign());
        let memtable = create(&format!(r#"{option}:{{"convert_to_sst":"kDumpMem"}}"#));
        memtable.mark(SeqNo(5), 6);
        memtable.seal();
        let bytes = memtable.image().expect("sealed").bytes;
        let before = bytes.to_vec();
        memtable.mark(SeqNo(7), 8);
        assert!(!memtable.mark_foreign());
        assert_eq!(bytes, before);
        let watermark = Header::read(bytes).expect("a header").watermark;
        assert_eq!((watermark.complete_through, watermark.position), (SeqNo(5), 6));
        let image = reopened(&*memtable, &UserOrder::Bytewise).expect("has an image");
        image.mark(SeqNo(7), 8);
        assert!(!image.mark_foreign());
        assert_eq!(image.image().expect("sealed").bytes, before);
    }
}
