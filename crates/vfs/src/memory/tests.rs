use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::ErrorKind;

use super::{CrashPolicy, MemoryVfs};
use crate::{AppendFile, IfExists, IoClass, Vfs};

const CLASS: IoClass = IoClass::Other;
const SEEDS: u64 = 300;

fn root() -> &'static Path {
    Path::new("/")
}

/// A durable file holding "old", open for appending.
fn with_durable_file(path: &Path) -> (Arc<MemoryVfs>, Box<dyn AppendFile>) {
    let vfs = MemoryVfs::new(1);
    let mut file = vfs.create(path, IfExists::Fail).unwrap();
    file.append(b"old", CLASS).unwrap();
    file.sync(CLASS).unwrap();
    vfs.sync_dir(root()).unwrap();
    (vfs, file)
}

/// What `path` holds under each of many seeds, sorted and without repetition; `None` for no file.
fn outcomes(vfs: &MemoryVfs, policy: CrashPolicy, path: &Path) -> Vec<Option<Vec<u8>>> {
    let mut found: Vec<_> = (0..SEEDS).map(|seed| vfs.crash_clone(seed, policy).read_file(path).ok()).collect();
    found.sort();
    found.dedup();
    found
}

fn one(bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    vec![Some(bytes.to_vec())]
}

#[test]
fn what_was_synced_survives_every_crash() {
    let path = Path::new("/f");
    let (vfs, _file) = with_durable_file(path);
    for policy in CrashPolicy::ALL {
        assert_eq!(outcomes(&vfs, policy, path), one(b"old"), "{policy:?}");
        let id = |vfs: &MemoryVfs| vfs.page_cache_id(path).unwrap();
        assert_eq!(id(&vfs.crash_clone(0, policy)) == id(&vfs), policy == CrashPolicy::ProcessKilled);
        assert_ne!(id(&vfs.remounted(0, policy)), id(&vfs));
    }
}

#[test]
fn unsynced_content_meets_its_policy() {
    let path = Path::new("/f");
    let (vfs, mut file) = with_durable_file(path);
    file.append(b"+new", CLASS).unwrap();
    use CrashPolicy::*;
    assert_eq!(outcomes(&vfs, NothingUnsyncedKept, path), one(b"old"));
    assert_eq!(outcomes(&vfs, AllKept, path), one(b"old+new"));
    assert_eq!(outcomes(&vfs, DirectoryEntriesLost, path), one(b"old+new"));
    assert_eq!(outcomes(&vfs, ProcessKilled, path), one(b"old+new"));
    assert_eq!(outcomes(&vfs, TornAt512, path), one(b"old"), "one sector is written whole or not");
    // Short; full length with the block lost, so zeros; all.
    let expected = [&b"old"[..], b"old\0\0\0\0", b"old+new"].map(|bytes| Some(bytes.to_vec()));
    assert_eq!(outcomes(&vfs, RandomBlocksKept, path), expected);
}

#[test]
fn unsynced_names_meet_their_policy() {
    let path = Path::new("/new");
    let (vfs, _old) = with_durable_file(Path::new("/f"));
    let mut file = vfs.create(path, IfExists::Fail).unwrap();
    file.append(b"x", CLASS).unwrap();
    file.sync(CLASS).unwrap();
    use CrashPolicy::*;
    for policy in [NothingUnsyncedKept, DirectoryEntriesLost] {
        assert_eq!(outcomes(&vfs, policy, path), [None]);
    }
    for policy in [AllKept, TornAt512, ProcessKilled] {
        assert_eq!(outcomes(&vfs, policy, path), one(b"x"));
    }
    assert_eq!(outcomes(&vfs, RandomBlocksKept, path), [None, Some(b"x".to_vec())]);
    vfs.sync_dir(root()).unwrap();
    for policy in CrashPolicy::ALL {
        assert_eq!(outcomes(&vfs, policy, path), one(b"x"));
    }
}

#[test]
fn a_rename_gives_the_old_or_the_new_and_never_none() {
    let [path, temporary] = ["/CURRENT", "/d/tmp"].map(Path::new);
    let (vfs, _file) = with_durable_file(path);
    vfs.create_dir_all(Path::new("/d")).unwrap();
    vfs.sync_dir(root()).unwrap();
    let mut next = vfs.create(temporary, IfExists::Fail).unwrap();
    next.append(b"new", CLASS).unwrap();
    next.sync(CLASS).unwrap();
    vfs.rename(temporary, path).unwrap();
    let names = |bytes: &[u8]| Some(bytes.to_vec());
    assert_eq!(outcomes(&vfs, CrashPolicy::RandomBlocksKept, path), [names(b"new"), names(b"old")]);
    for seed in 0..SEEDS {
        let after = vfs.crash_clone(seed, CrashPolicy::RandomBlocksKept);
        let moved = after.read_file(path).unwrap() == b"new";
        assert!(!(moved && after.exists(temporary).unwrap()), "half of a move");
    }
    // Syncing the directory it left makes the whole move durable.
    vfs.sync_dir(Path::new("/d")).unwrap();
    let after = vfs.crash_clone(0, CrashPolicy::NothingUnsyncedKept);
    assert_eq!(after.all_files(), [PathBuf::from("/CURRENT")]);
    assert_eq!(after.read_file(path).unwrap(), b"new");
}

#[test]
fn a_rename_over_unsynced_content_may_give_an_empty_file() {
    let path = Path::new("/CURRENT");
    let (vfs, _file) = with_durable_file(path);
    vfs.create(Path::new("/tmp"), IfExists::Fail).unwrap().append(b"new", CLASS).unwrap();
    vfs.rename(Path::new("/tmp"), path).unwrap();
    vfs.sync_dir(root()).unwrap();
    assert_eq!(outcomes(&vfs, CrashPolicy::NothingUnsyncedKept, path), one(b""));
}

#[test]
fn a_removal_that_was_not_synced_is_undone_by_a_crash() {
    let path = Path::new("/f");
    let (vfs, _file) = with_durable_file(path);
    vfs.hard_link(path, Path::new("/g")).unwrap();
    vfs.sync_dir(root()).unwrap();
    vfs.remove_file(path).unwrap();
    let after = vfs.crash_clone(0, CrashPolicy::NothingUnsyncedKept);
    assert_eq!(after.all_files().len(), 2);
    after.open_append(path).unwrap().append(b"!", CLASS).unwrap();
    assert_eq!(after.read_file(Path::new("/g")).unwrap(), b"old!", "still one file");
    assert_eq!(vfs.read_file(Path::new("/g")).unwrap(), b"old", "a clone is apart");
}

#[test]
fn the_last_write_is_torn_between_sectors() {
    let path = Path::new("/f");
    let (vfs, mut file) = with_durable_file(path);
    file.append(&[b'a'; 97], CLASS).unwrap();
    file.append(&[b'b'; 1000], CLASS).unwrap();
    let lengths: Vec<_> =
        outcomes(&vfs, CrashPolicy::TornAt512, path).into_iter().map(|bytes| bytes.unwrap().len()).collect();
    assert_eq!(lengths, [100, 512, 1024]);
}

#[test]
fn blocks_survive_one_by_one_and_lengths_are_ones_the_file_had() {
    let path = Path::new("/f");
    let vfs = MemoryVfs::new(1);
    vfs.write_file(path, &[b'o'; 8192]).unwrap();
    let mut file = vfs.open_append(path).unwrap();
    file.append(&[b'n'; 8192], CLASS).unwrap();
    let found = outcomes(&vfs, CrashPolicy::RandomBlocksKept, path);
    // The old length, or the new one with each of two blocks kept or zero.
    assert_eq!(found.len(), 5);
    for bytes in found.into_iter().flatten() {
        assert!(bytes.len() == 8192 || bytes.len() == 16384);
        assert!(bytes[..8192].iter().all(|&byte| byte == b'o'));
        assert!(bytes[8192..].chunks(4096).all(|block| block.iter().all(|byte| *byte == block[0])));
    }
}

#[test]
fn an_unsynced_truncation_can_be_undone_whole_or_by_blocks() {
    let path = Path::new("/f");
    let vfs = MemoryVfs::new(1);
    vfs.write_file(path, &[b'o'; 5000]).unwrap();
    vfs.create(path, IfExists::Truncate).unwrap().append(b"new", CLASS).unwrap();
    assert_eq!(outcomes(&vfs, CrashPolicy::NothingUnsyncedKept, path), one(&[b'o'; 5000]));
    let found = outcomes(&vfs, CrashPolicy::RandomBlocksKept, path);
    assert!(found.contains(&Some(b"new".to_vec())));
    assert!(found.contains(&Some(vec![b'o'; 5000])));
    assert!(found.contains(&Some(Vec::new())));
}

#[test]
fn a_mapping_can_be_lost_after_any_store_to_a_page() {
    let path = Path::new("/m");
    let vfs = MemoryVfs::new(1);
    let mapping = vfs.create_mapped(path, 8192).unwrap();
    mapping.ensure(8192).unwrap();
    mapping.sync(CLASS).unwrap();
    vfs.sync_dir(root()).unwrap();
    for value in 1..=3_u8 {
        mapping.write(0, &[value; 8]);
        mapping.write(4096, &[value; 8]);
    }
    let mut pages: Vec<_> = outcomes(&vfs, CrashPolicy::RandomBlocksKept, path)
        .into_iter()
        .map(|bytes| bytes.map(|bytes| (bytes[0], bytes[4096])).unwrap())
        .collect();
    pages.dedup();
    assert_eq!(pages.len(), 16, "each page after 0 to 3 stores, independently");
    let killed = vfs.crash_clone(0, CrashPolicy::ProcessKilled);
    assert_eq!(killed.read_file(path).unwrap()[4096], 3);
    let then_power_lost = killed.crash_clone(0, CrashPolicy::NothingUnsyncedKept);
    assert_eq!(then_power_lost.read_file(path).unwrap()[4096], 0, "a kill syncs nothing");
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_crash_between_two_stores_by_address_has_the_first() {
    let path = Path::new("/m");
    let vfs = MemoryVfs::new(1);
    let mapping = vfs.create_mapped(path, 8192).unwrap();
    mapping.ensure(8192).unwrap();
    mapping.sync(CLASS).unwrap();
    vfs.sync_dir(root()).unwrap();
    let memory = std::sync::Arc::clone(&mapping).memory().unwrap();
    // SAFETY: the bytes lie below `allocated`, and only this thread accesses them.
    let store = |at: usize, byte: u8| unsafe { *memory.as_ptr().add(at) = byte };
    let operations = vfs.operations();
    let mut clones = Vec::new();
    for value in 1..=3 {
        store(0, value);
        clones.push(vfs.crash_clone(0, CrashPolicy::ProcessKilled));
        store(4096, value);
        clones.push(vfs.crash_clone(0, CrashPolicy::AllKept));
    }
    let found: Vec<_> = clones.iter().map(|clone| clone.read_file(path).unwrap()).map(|b| (b[0], b[4096])).collect();
    assert_eq!(found, [(1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (3, 3)]);
    assert_eq!(vfs.operations(), operations);
    let pages = |bytes: Option<Vec<u8>>| bytes.map(|bytes| (bytes[0], bytes[4096])).unwrap();
    let mut lost: Vec<_> = outcomes(&vfs, CrashPolicy::RandomBlocksKept, path).into_iter().map(pages).collect();
    lost.dedup();
    assert_eq!(lost.len(), 16, "each page as somebody saw it, independently");
    let synced = || pages(vfs.crash_clone(0, CrashPolicy::NothingUnsyncedKept).read_file(path).ok());
    assert_eq!(synced(), (0, 0));
    mapping.sync(CLASS).unwrap();
    store(0, 9);
    assert_eq!(synced(), (3, 3));
    assert_eq!(pages(vfs.crash_clone(0, CrashPolicy::TornAt512).read_file(path).ok()), (9, 3));
}

#[test]
fn a_crash_can_be_had_at_each_operation() {
    let life = |vfs: &MemoryVfs| {
        let mapping = vfs.create_mapped(Path::new("/m"), 4096).unwrap();
        mapping.ensure(4096).unwrap();
        mapping.write(0, &[1; 8]);
        mapping.write(8, &[2; 8]);
        vfs.create(Path::new("/f"), IfExists::Fail).unwrap().append(&[7; 1500], CLASS).unwrap();
    };
    let counting = MemoryVfs::new(1);
    life(&counting);
    assert_eq!(counting.operations(), 6);
    let image_at = |operation, seed, policy| {
        let vfs = MemoryVfs::new(1);
        vfs.crash_at(operation, seed, policy);
        life(&vfs);
        assert_eq!(vfs.operations(), 6, "the run goes on");
        vfs.take_crash_image()
    };
    let kept = |operation| image_at(operation, 0, CrashPolicy::AllKept).unwrap();
    assert!(kept(0).all_files().is_empty());
    assert!(kept(1).read_file(Path::new("/m")).unwrap().is_empty());
    assert_eq!(kept(3).read_file(Path::new("/m")).unwrap()[..16], [[1; 8], [0; 8]].concat());
    assert_eq!(kept(4).all_files(), [PathBuf::from("/m")]);
    assert!(kept(5).read_file(Path::new("/f")).unwrap().is_empty());
    assert!(image_at(6, 0, CrashPolicy::AllKept).is_none());

    let mut torn: Vec<_> = (0..SEEDS)
        .map(|seed| image_at(5, seed, CrashPolicy::TornAt512).unwrap().read_file(Path::new("/f")).unwrap().len())
        .collect();
    torn.sort_unstable();
    torn.dedup();
    assert_eq!(torn, [0, 512, 1024], "a part of the write that was about to happen");
}

#[test]
fn the_same_seed_gives_the_same_world() {
    let [a, b, c] = [5, 5, 6].map(MemoryVfs::new);
    let draw = |vfs: &MemoryVfs| (vfs.random_u64(), vfs.random_u64(), vfs.now(), vfs.unix_time_us());
    let drawn = draw(&a);
    assert_eq!(drawn, draw(&b));
    assert_ne!(drawn.0, draw(&c).0);
    assert_eq!(a.spawn("job", Box::new(|| {})).err().unwrap().kind(), ErrorKind::Unsupported);
}

#[test]
fn a_full_disk_is_no_space_and_takes_nothing() {
    let vfs = MemoryVfs::new(1);
    vfs.set_capacity(Some(10_000));
    let mut file = vfs.create(Path::new("/f"), IfExists::Fail).unwrap();
    file.append(&[1; 6000], CLASS).unwrap();
    assert_eq!(vfs.free_bytes(root()), Some(4000));
    assert_eq!(file.append(&[1; 4001], CLASS).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(file.len(), 6000);
    let mapping = vfs.create_mapped(Path::new("/m"), 1 << 20).unwrap();
    assert_eq!(mapping.ensure(1).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(mapping.allocated(), 0);
    vfs.remove_file(Path::new("/f")).unwrap();
    mapping.ensure(8192).unwrap();
}

#[test]
fn files_are_damaged_at_rest() {
    let vfs = MemoryVfs::new(1);
    let path = Path::new("/deep/f");
    vfs.write_file(path, b"abc").unwrap();
    vfs.flip_bit(path, 8).unwrap();
    vfs.truncate(path, 2).unwrap();
    let after = vfs.crash_clone(0, CrashPolicy::NothingUnsyncedKept);
    assert_eq!(after.read_file(path).unwrap(), b"ac");
    assert_eq!(after.operations(), 0);
}

#[test]
fn a_lock_dies_with_its_process() {
    let vfs = MemoryVfs::new(1);
    let path = Path::new("/LOCK");
    let _held = vfs.lock(path).unwrap();
    assert!(vfs.lock(path).is_err());
    vfs.crash_clone(0, CrashPolicy::ProcessKilled).lock(path).unwrap();
}
