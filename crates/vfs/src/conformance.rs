//! Conformance tests, run on every backing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::ErrorKind;

use crate::{
    FaultVfs, FileKind, IfExists, IoClass, MemoryVfs, RandomFile, ReadRequest, RealVfs, Vfs, read_all, read_many,
};

const CLASS: IoClass = IoClass::Other;

/// Runs a check in an empty directory of each backing.
fn everywhere(check: impl Fn(&dyn Vfs, &Path)) {
    let scratch = tempfile::tempdir().unwrap();
    check(&*RealVfs::new(), scratch.path());
    check(&*MemoryVfs::new(1), Path::new("/"));
    let faulty = FaultVfs::new(MemoryVfs::new(1));
    check(&*faulty, Path::new("/"));
    assert_eq!(faulty.fired(), 0);
}

fn kind_of<T>(result: base::Result<T>) -> ErrorKind {
    result.err().expect("this must fail").kind()
}

#[test]
fn what_is_appended_is_read_back() {
    everywhere(|vfs, dir| {
        let path = dir.join("a");
        let mut file = vfs.create(&path, IfExists::Fail).unwrap();
        file.append(b"hello ", CLASS).unwrap();
        file.append(b"", CLASS).unwrap();
        file.start_writeback(CLASS);
        file.append(b"wor", CLASS).unwrap();
        file.write_back(CLASS);
        file.append(b"ld", CLASS).unwrap();
        file.write_back(CLASS);
        file.write_back(CLASS);
        file.sync(CLASS).unwrap();
        assert_eq!(file.len(), 11);
        assert_eq!(kind_of(vfs.create(&path, IfExists::Fail)), ErrorKind::InvalidArgument);

        let mut more = vfs.open_append(&path).unwrap();
        assert_eq!(more.len(), 11);
        more.append(b"!", CLASS).unwrap();
        let read = vfs.open(&path).unwrap();
        read.expect_random();
        read.prefetch(0, 12);
        let mut buf = [0; 100];
        assert_eq!(read.read_at(6, &mut buf, CLASS).unwrap(), 6);
        assert_eq!(&buf[..6], b"world!");
        assert_eq!(read.read_at(12, &mut buf, CLASS).unwrap(), 0);
        assert_eq!(read.read_at(1000, &mut buf, CLASS).unwrap(), 0);
        assert_eq!(read_all(vfs, &path, 12, CLASS).unwrap(), b"hello world!");
        assert_eq!(kind_of(read_all(vfs, &path, 11, CLASS)), ErrorKind::Corruption);

        vfs.create(&path, IfExists::Truncate).unwrap();
        assert!(vfs.open(&path).unwrap().is_empty().unwrap());
    });
}

/// Reads one batch of `len` bytes at each offset of each file, and compares it with single reads.
fn assert_batch_is_single_reads(files: &[Arc<dyn RandomFile>], offsets: &[u64], len: usize) {
    let wanted: Vec<(&dyn RandomFile, u64)> =
        offsets.iter().flat_map(|&at| files.iter().map(move |file| (&**file, at))).collect();
    let mut bufs = vec![vec![0; len]; wanted.len()];
    let requests = wanted.iter().zip(&mut bufs);
    let mut reads: Vec<_> = requests.map(|((file, at), buf)| ReadRequest::new(*file, *at, buf)).collect();
    read_many(&mut reads, CLASS);
    let read: Vec<usize> = reads.into_iter().map(|read| read.read.unwrap()).collect();
    for (i, (file, at)) in wanted.into_iter().enumerate() {
        let mut alone = vec![0; len];
        assert_eq!(file.read_at(at, &mut alone, CLASS).unwrap(), read[i]);
        assert_eq!(alone, bufs[i], "{len} bytes at {at}");
    }
}

#[test]
fn a_batch_of_reads_is_as_many_single_reads() {
    everywhere(|vfs, dir| {
        let [a, b] = ["a", "b"].map(|name| {
            let bytes: Vec<u8> = (0..100_000_u32).flat_map(|i| (i * 7).to_le_bytes()).collect();
            let path = dir.join(name);
            crate::write_all(vfs, &path, IfExists::Fail, &bytes, CLASS).unwrap();
            path
        });
        let files = [&a, &b].map(|path| vfs.open(path).unwrap());
        let offsets = [0, 8, 4095, 300_001, 4095, 399_990, 400_000, 500_000, 130_000];
        for len in [0, 10, 5000] {
            assert_batch_is_single_reads(&files, &offsets, len);
            assert_batch_is_single_reads(&files[..1], &offsets[..1], len);
            assert_batch_is_single_reads(&files, &[], len);
        }
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (files, offsets) = (&files, [thread * 90_000, thread * 1000, 399_000]);
                scope.spawn(move || assert_batch_is_single_reads(files, &offsets, 3000));
            }
        });
        vfs.create(&a, IfExists::Truncate).unwrap();
        assert_batch_is_single_reads(&files, &offsets, 100);
    });
}

#[test]
fn absence_is_told_apart() {
    everywhere(|vfs, dir| {
        let path = dir.join("none");
        assert!(!vfs.exists(&path).unwrap());
        assert!(vfs.open(&path).err().unwrap().is_not_found());
        assert!(vfs.open_append(&path).err().unwrap().is_not_found());
        assert!(vfs.map_read(&path).err().unwrap().is_not_found());
        assert!(vfs.remove_file(&path).unwrap_err().is_not_found());
        assert!(vfs.rename(&path, &dir.join("b")).unwrap_err().is_not_found());
        assert!(vfs.read_dir(&path).unwrap_err().is_not_found());
        assert!(vfs.create(&path.join("x"), IfExists::Truncate).err().unwrap().is_not_found());
        assert!(vfs.canonicalize(&path).unwrap_err().is_not_found());
    });
}

#[test]
fn names_move_link_and_go() {
    everywhere(|vfs, dir| {
        let [a, b, c] = ["a", "b", "c"].map(|name| dir.join("sub/deep").join(name));
        let deep = dir.join("sub/deep");
        vfs.create_dir_all(&deep).unwrap();
        vfs.create_dir_all(&deep).unwrap();
        vfs.create(&a, IfExists::Fail).unwrap().append(b"first", CLASS).unwrap();
        vfs.create(&b, IfExists::Fail).unwrap().append(b"second", CLASS).unwrap();
        let open = vfs.open(&b).unwrap();
        vfs.rename(&a, &b).unwrap();
        assert_eq!(open.len().unwrap(), 6, "an open file outlives its name");
        assert_eq!(read_all(vfs, &b, 100, CLASS).unwrap(), b"first");

        vfs.hard_link(&b, &c).unwrap();
        assert_eq!(kind_of(vfs.hard_link(&b, &c)), ErrorKind::InvalidArgument);
        let identity = |path: &Path| vfs.metadata(path).unwrap().identity;
        assert_eq!(identity(&b), identity(&c), "two names of one file");
        let other = dir.join("other");
        vfs.create(&other, IfExists::Fail).unwrap();
        assert!(identity(&b) != identity(&other) && identity(&b) != identity(&deep));
        vfs.remove_file(&other).unwrap();
        vfs.open_append(&c).unwrap().append(b"+", CLASS).unwrap();
        assert_eq!(vfs.read_dir(&deep).unwrap(), ["b", "c"]);
        vfs.sync_dir(&deep).unwrap();
        assert!(vfs.remove_dir(&deep).is_err(), "it is not empty");
        vfs.remove_file(&b).unwrap();
        assert_eq!(read_all(vfs, &c, 100, CLASS).unwrap(), b"first+");
        vfs.remove_file(&c).unwrap();
        vfs.remove_dir(&deep).unwrap();
        assert_eq!(vfs.read_dir(&dir.join("sub")).unwrap(), [""; 0]);
        let meta = vfs.metadata(&dir.join("sub")).unwrap();
        assert_eq!(meta.kind, FileKind::Directory);
        assert_eq!(vfs.canonicalize(&dir.join("sub/..")).unwrap(), vfs.canonicalize(dir).unwrap());
    });
}

#[test]
fn a_directory_is_not_read_as_a_file() {
    everywhere(|vfs, dir| {
        vfs.create_dir_all(&dir.join("d")).unwrap();
        assert_eq!(kind_of(vfs.open(&dir.join("d"))), ErrorKind::InvalidArgument);
        assert_eq!(kind_of(vfs.map_read(&dir.join("d"))), ErrorKind::InvalidArgument);
        assert!(vfs.remove_file(&dir.join("d")).is_err());
    });
}

#[test]
fn a_shared_file_is_written_at_positions() {
    everywhere(|vfs, dir| {
        let path = dir.join("s");
        let file = vfs.create_shared(&path).unwrap();
        assert_eq!(kind_of(vfs.create_shared(&path)), ErrorKind::InvalidArgument);
        assert!(file.is_empty().unwrap());
        file.allocate(0, 10_000, CLASS).unwrap();
        assert_eq!(file.len().unwrap(), 10_000);
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let file = Arc::clone(&file);
                scope.spawn(move || file.write_at(u64::from(thread) * 100, &[thread + 1; 100], CLASS).unwrap());
            }
        });
        file.start_writeback(0, 8192, CLASS).unwrap();
        file.sync(CLASS).unwrap();
        let mut buf = [9; 402];
        assert_eq!(file.read_at(0, &mut buf, CLASS).unwrap(), 402);
        assert_eq!([buf[0], buf[100], buf[399], buf[400]], [1, 2, 4, 0]);
        file.truncate(150).unwrap();
        assert_eq!(vfs.metadata(&path).unwrap().len, 150);
        assert!(file.write_at(u64::MAX, b"x", CLASS).is_err());
    });
}

#[test]
fn a_mapped_file_is_its_mapping() {
    everywhere(|vfs, dir| {
        let path = dir.join("m");
        assert_eq!(kind_of(vfs.create_mapped(&path, 0)), ErrorKind::InvalidArgument);
        let mapping = match vfs.create_mapped(&path, 100_001) {
            Err(e) if e.kind() == ErrorKind::Unsupported => return,
            mapping => mapping.unwrap(),
        };
        assert_eq!(mapping.capacity(), 102_400);
        assert_eq!(mapping.allocated(), 0);
        assert!(vfs.create_mapped(&path, 4096).is_err(), "the file is there");
        mapping.ensure(5000).unwrap();
        assert_eq!(mapping.allocated(), 8192);
        assert_eq!(kind_of(mapping.ensure(200_000)), ErrorKind::InvalidArgument);
        mapping.populate(0, 1 << 40);

        let bytes: Vec<u8> = (1..=21).collect();
        mapping.write(8, &[0xff; 32]);
        mapping.write(8, &bytes);
        mapping.release(0, 1 << 40);
        for (skip, len) in [(0, 40), (3, 7), (8, 8), (9, 20), (28, 4), (13, 0)] {
            let mut expected = [&[0; 8][..], &bytes, &[0; 3], &[0xff; 8]].concat();
            expected = expected[skip..skip + len].to_vec();
            let mut buf = vec![0xee; len];
            mapping.read(skip as u64, &mut buf);
            assert_eq!(buf, expected, "{len} bytes at {skip}");
        }
        mapping.start_writeback(0, 4096, CLASS).unwrap();
        mapping.start_writeback(8192, 0, CLASS).unwrap();
        mapping.sync(CLASS).unwrap();
        let mut through_file = [0; 21];
        vfs.open(&path).unwrap().read_at(8, &mut through_file, CLASS).unwrap();
        assert_eq!(through_file[..], bytes);

        mapping.truncate_on_drop(29);
        drop(mapping);
        let read = vfs.map_read(&path).unwrap();
        assert_eq!(read.as_ref().as_ref()[8..], bytes);
        vfs.create(&dir.join("empty"), IfExists::Fail).unwrap();
        assert!(vfs.map_read(&dir.join("empty")).unwrap().as_ref().as_ref().is_empty());
    });
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_mapped_file_that_was_cut_is_appended_to_and_grows_no_more() {
    everywhere(|vfs, dir| {
        let path = dir.join("m");
        let Ok(mapping) = vfs.create_mapped(&path, 100_000) else { return };
        mapping.ensure(50_000).unwrap();
        let memory = std::sync::Arc::clone(&mapping).memory().unwrap();
        mapping.write(4000, &[7; 16]);
        mapping.cut(4100).unwrap();
        assert_eq!((mapping.allocated(), vfs.metadata(&path).unwrap().len), (8192, 8192));
        mapping.ensure(8192).unwrap();
        assert_eq!(kind_of(mapping.ensure(8193)), ErrorKind::InvalidArgument);
        mapping.populate(0, 100_000);
        let mut file = vfs.open_append(&path).unwrap();
        file.append(&[9; 5], CLASS).unwrap();
        mapping.cut(100_000).unwrap();
        let mut buf = [0; 16];
        mapping.read(4000, &mut buf);
        assert_eq!(buf, [7; 16]);
        drop((mapping, memory));
        let read = vfs.map_read(&path).unwrap();
        assert_eq!(read.as_ref().as_ref()[4000..4016], [7; 16]);
        assert_eq!(read.as_ref().as_ref()[8192..], [9; 5]);
    });
}

#[test]
#[cfg_attr(miri, ignore)]
fn stores_by_address_are_the_files() {
    everywhere(|vfs, dir| {
        let path = dir.join("m");
        let Ok(mapping) = vfs.create_mapped(&path, 20_000) else { return };
        mapping.ensure(8192).unwrap();
        mapping.write(0, &[1; 8]);
        let memory = std::sync::Arc::clone(&mapping).memory().unwrap();
        assert_eq!(memory.capacity(), 20_480);
        // SAFETY: the bytes lie below `allocated`, and only this thread accesses them.
        let store = |at: usize, byte: u8| unsafe { *memory.as_ptr().add(at) = byte };
        // SAFETY: as above.
        let load = |at: usize| unsafe { *memory.as_ptr().add(at) };
        assert_eq!([load(0), load(8)], [1, 0]);
        store(8, 2);
        store(8191, 3);
        mapping.write(16, &[4; 8]);
        assert_eq!(load(16), 4);
        let mut buf = [9; 9];
        mapping.read(7, &mut buf);
        assert_eq!(buf, [1, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(std::sync::Arc::clone(&mapping).memory().unwrap().as_ptr(), memory.as_ptr(), "one address");
        mapping.sync(CLASS).unwrap();
        assert_eq!(vfs.map_read(&path).unwrap().as_ref().as_ref()[8191], 3);
        assert!(memory.resident_bytes() >= 8192);

        mapping.truncate_on_drop(100);
        drop(mapping);
        store(24, 5);
        assert_eq!(vfs.metadata(&path).unwrap().len, 8192, "the memory keeps the mapping");
        drop(memory);
        let left = vfs.map_read(&path).unwrap();
        let left = left.as_ref().as_ref();
        assert_eq!((left.len(), left[8], left[24]), (100, 2, 5));
    });
}

#[test]
fn a_store_beyond_what_is_allocated_is_refused() {
    everywhere(|vfs, dir| {
        let Ok(mapping) = vfs.create_mapped(&dir.join("m"), 1 << 20) else { return };
        mapping.ensure(4096).unwrap();
        let caught = |access: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(access)).is_err();
        assert!(caught(&|| mapping.write(4096, &[1])));
        assert!(caught(&|| mapping.write(4088, &[1; 9])));
        assert!(caught(&|| mapping.write(4, &[1])), "not at a word");
        assert!(caught(&|| mapping.read(4090, &mut [0; 7])));
        assert!(caught(&|| mapping.read(u64::MAX, &mut [0; 7])));
        mapping.write(4088, &[1; 8]);
    });
}

#[test]
fn a_lock_has_one_holder() {
    everywhere(|vfs, dir| {
        let path = dir.join("LOCK");
        let held = vfs.lock(&path).unwrap();
        let error = vfs.lock(&path).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.message().contains("another handle in this process"), "{error}");
        vfs.lock(&dir.join("OTHER")).unwrap();
        drop(held);
        vfs.lock(&path).unwrap();
        vfs.lock(&path).unwrap();
    });
}

#[test]
fn a_file_has_the_page_cache_of_its_directory() {
    everywhere(|vfs, dir| {
        let path = dir.join("f");
        drop(vfs.create(&path, IfExists::Fail).unwrap());
        assert_eq!(vfs.page_cache_id(&path), vfs.page_cache_id(dir));
        assert_eq!(
            vfs.page_cache_id(&dir.join("absent")).is_some(),
            vfs.runs_inline(),
            "what is not there lies nowhere"
        );
    });
}

#[test]
fn time_grows_and_numbers_differ() {
    everywhere(|vfs, _| {
        let before = vfs.now();
        vfs.sleep(Duration::from_millis(2));
        assert!(vfs.now() >= before + Duration::from_millis(2));
        assert!(vfs.unix_time_us() > 1_500_000_000_000_000);
        assert_ne!(vfs.random_u64(), vfs.random_u64());
        if !vfs.runs_inline() {
            let (sender, receiver) = std::sync::mpsc::channel();
            vfs.spawn("worker", Box::new(move || sender.send(7).unwrap())).unwrap().join();
            assert_eq!(receiver.recv().unwrap(), 7);
        }
    });
}
