use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use base::ErrorKind;
use vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, MemoryVfs, Operation, RealVfs, Rule, Vfs};

use super::*;

const MIB: usize = 1 << 20;

fn image(vfs: &Arc<MemoryVfs>) -> ImageFile {
    ImageFile::new(Arc::clone(vfs) as Arc<dyn Vfs>, "/image")
}

/// Stores a number in each allocated granule until no more can be reserved; returns how many.
fn fill(arena: &Arena, granules_each: usize) -> u64 {
    let mut count = 0;
    while arena.try_reserve(granules_each * GRANULE_BYTES) {
        for _ in 0..granules_each {
            count += 1;
            // SAFETY: just allocated, and used as an atomic word only.
            unsafe { arena.word(arena.allocate(GRANULE_BYTES)) }.store(count, Release);
        }
    }
    count
}

fn make_all_present(arena: &Arena) {
    while arena.prefault(usize::MAX, &|_| true) {}
}

#[test]
fn reservations_end_at_the_capacity() {
    let arena = Arena::new(64).expect("maps");
    assert!(arena.try_reserve(49) && arena.try_reserve(7), "the 56 bytes behind the null granule");
    assert!(!arena.try_reserve(1));
    assert!(!arena.try_reserve(usize::MAX));
    assert!(arena.try_reserve(0));
    let refs: Vec<u32> = (0..7).map(|_| arena.allocate(1).raw()).collect();
    assert_eq!(refs, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((arena.allocated(), arena.reserved()), (64, 64));
}

#[test]
fn what_is_given_back_can_be_promised_again() {
    let arena = Arena::new(64).expect("maps");
    assert!(arena.try_reserve(56) && !arena.try_reserve(1));
    arena.give_back(16);
    assert!(!arena.try_reserve(17) && arena.try_reserve(16) && !arena.try_reserve(1));
    let refs: Vec<u32> = (0..7).map(|_| arena.allocate(1).raw()).collect();
    assert_eq!(refs, [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
#[should_panic(expected = "without a reservation")]
fn allocating_past_the_capacity_stops() {
    Arena::new(64).expect("maps").allocate(64);
}

#[test]
fn capacities_out_of_reach_are_refused() {
    let memory = MemoryVfs::new(1);
    let file = image(&memory);
    for image in [None, Some(&file)] {
        for capacity in [0, CAPACITY_MAX_BYTES + 1, usize::MAX] {
            let error = Arena::with(&ArenaConfig { image, ..ArenaConfig::new(capacity) }).err().expect("refused");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
    }
    assert!(memory.all_files().is_empty());
}

#[test]
fn every_backing_is_zeroed_and_filled_to_the_last_granule() {
    let vfs = MemoryVfs::new(1);
    let file = image(&vfs);
    let plain = ArenaConfig::new(if cfg!(miri) { 20_000 } else { 5 * MIB });
    let configs = [
        plain.clone(),
        ArenaConfig { source: Source::Heap, ..plain.clone() },
        ArenaConfig { huge_pages: true, commits_ahead: true, ..plain.clone() },
        ArenaConfig { exact_accounting: true, ..plain.clone() },
        ArenaConfig { image: Some(&file), commits_ahead: true, ..plain.clone() },
    ];
    for config in configs {
        let arena = Arena::with(&config).expect("made");
        assert_eq!(arena.file().is_some(), config.image.is_some() && !cfg!(miri));
        let first = arena.allocated();
        let count = fill(&arena, 5);
        let room = config.capacity - if arena.file().is_some() { 0 } else { GRANULE_BYTES };
        assert_eq!(count as usize, room / (5 * GRANULE_BYTES) * 5);
        for i in 0..count {
            // SAFETY: all granules from the first on were allocated one after the other, as atomic words.
            let word = unsafe { arena.word(Ref::from_raw((first / GRANULE_BYTES) as u32).forward(i as usize)) };
            assert_eq!(word.load(Relaxed), i + 1);
        }
        assert!(arena.held_bytes() + 4096 > arena.allocated(), "all was touched, less the header");
    }
}

#[test]
fn what_is_held_is_told_before_it_is_touched() {
    let plain = ArenaConfig::new(8 * MIB);
    let held = |config: &ArenaConfig<'_>| {
        let arena = Arena::with(config).expect("made");
        let before = arena.held_bytes();
        assert!(arena.try_reserve(100));
        let reserved = arena.held_bytes();
        make_all_present(&arena);
        [before, reserved, arena.held_bytes()]
    };
    let heap = held(&ArenaConfig { source: Source::Heap, ..plain.clone() });
    assert_eq!(heap, [8 * MIB; 3], "the allocator may give memory that is present");
    if cfg!(miri) {
        return;
    }
    assert_eq!(held(&plain), [8, 8, 8 * MIB]);
    assert_eq!(held(&ArenaConfig { commits_ahead: true, ..plain.clone() }), [8, 2 * MIB, 8 * MIB]);
    assert_eq!(held(&ArenaConfig { exact_accounting: true, ..plain.clone() }), [0, 0, 8 * MIB]);
    let vfs = MemoryVfs::new(1);
    let file = image(&vfs);
    let total = 8 * MIB + IMAGE_HEADER_BYTES;
    assert_eq!(held(&ArenaConfig { image: Some(&file), ..plain.clone() }), [4096, 4096, total]);
}

/// Prefaults a window; returns the number of steps.
fn steps(arena: &Arena, ahead: usize) -> usize {
    std::iter::repeat_with(|| arena.prefault(ahead, &|_| true)).take_while(|stepped| *stepped).count()
}

/// By the kernel's count: no store into the window faults, and pages behind it are absent.
#[test]
#[cfg_attr(miri, ignore)]
fn a_window_is_made_present_in_steps_and_moves_with_what_is_promised() {
    let dir = tempfile::tempdir().expect("made");
    let file = ImageFile::new(RealVfs::new(), dir.path().join("image"));
    let plain = ArenaConfig::new(16 * MIB);
    let configs = [plain.clone(), ArenaConfig { image: Some(&file), ..plain.clone() }];
    for config in configs {
        let arena = Arena::with(&config).expect("made");
        let resident = || arena.region.resident_bytes();
        assert!(arena.try_reserve(100));
        let before = resident();
        assert!(!arena.prefault(MIB, &|more| more < 4096), "nothing is held that may not be");
        assert_eq!(resident(), before);
        let count = steps(&arena, MIB);
        assert!((4..=5).contains(&count), "{count} steps");
        assert!((MIB + 100..2 * MIB).contains(&resident()), "{}", resident());
        assert!(resident() >= arena.held_bytes());
        assert_eq!(steps(&arena, MIB), 0, "until more is promised");
        assert!(arena.try_reserve(5 * MIB));
        assert!((3..=21).contains(&steps(&arena, MIB)));
        assert!((6 * MIB + 100..10 * MIB).contains(&resident()), "{}", resident());
        assert!(arena.held_bytes() >= 6 * MIB + 100, "it counts as held");
        assert!(arena.try_reserve(10 * MIB));
        assert!(steps(&arena, 32 * MIB) > 0 && steps(&arena, 32 * MIB) == 0);
        assert!(resident() >= 16 * MIB, "and ends with the capacity");
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn memory_of_the_allocator_is_made_present_too() {
    let arena = Arena::with(&ArenaConfig { source: Source::Heap, ..ArenaConfig::new(16 * MIB) }).expect("made");
    assert!(arena.try_reserve(100));
    assert_eq!(steps(&arena, 3 * MIB), 13, "of small pages");
    assert!(arena.region.resident_bytes() >= 3 * MIB);
}

/// Reservations find the disk or memory of a prefault ready.
#[test]
#[cfg_attr(miri, ignore)]
fn what_was_made_present_is_ready_for_whoever_reserves() {
    let vfs = MemoryVfs::new(1);
    let file = image(&vfs);
    for config in [
        ArenaConfig { commits_ahead: true, ..ArenaConfig::new(16 * MIB) },
        ArenaConfig { image: Some(&file), ..ArenaConfig::new(16 * MIB) },
    ] {
        let arena = Arena::with(&config).expect("made");
        assert!(steps(&arena, 5 * MIB) > 0);
        let ready = arena.ready.load(Relaxed);
        assert!(ready >= 5 * MIB);
        assert!(arena.try_reserve(4 * MIB));
        assert_eq!(arena.ready.load(Relaxed), ready, "nothing was left to do");
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_file_that_was_cut_is_made_present_no_further() {
    let vfs = MemoryVfs::new(1);
    let file = image(&vfs);
    let arena = Arena::with(&ArenaConfig { image: Some(&file), ..ArenaConfig::new(16 * MIB) }).expect("made");
    arena.file().expect("in a file").give_back_the_rest().expect("cut");
    let bytes = vfs.metadata(&file.path).expect("there").len;
    assert_eq!(steps(&arena, 4 * MIB), 0);
    assert_eq!(vfs.metadata(&file.path).expect("there").len, bytes);
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_crash_between_two_stores_leaves_a_beginning_of_what_was_stored() {
    let vfs = MemoryVfs::new(1);
    let file = image(&vfs);
    let arena = Arena::with(&ArenaConfig { image: Some(&file), ..ArenaConfig::new(MIB) }).expect("made");
    assert!(arena.file().is_some());
    vfs.sync_dir(Path::new("/")).expect("synced");
    for count in 1..600_u64 {
        assert!(arena.try_reserve(GRANULE_BYTES));
        // SAFETY: just allocated, and used as an atomic word only.
        unsafe { arena.word(arena.allocate(GRANULE_BYTES)) }.store(count, Release);
        if count % 97 != 0 {
            continue;
        }
        let killed = vfs.crash_clone(count, CrashPolicy::ProcessKilled).read_file(&file.path).expect("there");
        let (header, words) = killed.split_at(IMAGE_HEADER_BYTES);
        assert!(header.iter().all(|byte| *byte == 0));
        let words: Vec<u64> = words.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let stored = words.iter().take_while(|word| **word != 0).count();
        assert_eq!(stored as u64, count);
        assert!(words.iter().take(stored).copied().eq(1..=count) && words.iter().skip(stored).all(|word| *word == 0));
    }
}

/// A memtable in a file, with every file system call failing in turn, once and for good.
#[test]
#[cfg_attr(miri, ignore)]
fn a_file_system_that_fails_makes_a_memtable_full_or_nameless_and_never_worse() {
    const PAGE: usize = 4096;
    let capacity = 10 * MIB;
    // A step that fails leaves what was allocated before, less the header.
    let filled = [4 * MIB - PAGE, 8 * MIB - PAGE, capacity - PAGE, capacity];
    for operation in [Operation::CreateMapped, Operation::Allocate] {
        for code in [FaultCode::NoSpace, FaultCode::Io] {
            for (nth, sticky) in (1..=4).flat_map(|nth| [(nth, false), (nth, true)]) {
                let memory = MemoryVfs::new(1);
                let faulty = FaultVfs::new(Arc::clone(&memory) as Arc<dyn Vfs>);
                let rule = Rule::new(Fault::Error(code)).on(operation).nth(nth);
                faulty.inject(if sticky { rule.sticky() } else { rule });
                let file = ImageFile::new(faulty, "/image");
                let config = ArenaConfig { image: Some(&file), ..ArenaConfig::new(capacity) };
                let arena = Arena::with(&config).expect("a failing file system is gone around");
                let stored = fill(&arena, PAGE / GRANULE_BYTES) as usize * GRANULE_BYTES;
                assert_eq!(memory.all_files().len(), usize::from(arena.file().is_some()), "no file is left");
                assert!(filled.contains(&stored), "{operation:?} {code:?} {nth}: {stored}");
                assert!(stored < capacity || arena.file().is_some());
                make_all_present(&arena);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_file_that_can_be_neither_used_nor_removed_is_left_and_told() {
    let memory = MemoryVfs::new(1);
    let faulty = FaultVfs::new(Arc::clone(&memory) as Arc<dyn Vfs>);
    faulty.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(Operation::Allocate).sticky());
    faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::RemoveFile));
    let file = ImageFile::new(faulty, "/image");
    let arena = Arena::with(&ArenaConfig { image: Some(&file), ..ArenaConfig::new(MIB) }).expect("made in memory");
    assert!(arena.file().is_none());
    assert_eq!(memory.read_file(&file.path).expect("left").len(), 0);
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_file_that_exists_is_not_taken() {
    let vfs = MemoryVfs::new(1);
    let file = image(&vfs);
    vfs.write_file(&file.path, b"somebody's").expect("written");
    let error = Arena::with(&ArenaConfig { image: Some(&file), ..ArenaConfig::new(MIB) }).err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(vfs.read_file(&file.path).expect("there"), b"somebody's");
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_disk_with_little_left_is_used_to_the_last_page() {
    let vfs = MemoryVfs::new(1);
    vfs.set_capacity(Some(5 * MIB as u64));
    let file = image(&vfs);
    let arena = Arena::with(&ArenaConfig { image: Some(&file), ..ArenaConfig::new(64 * MIB) }).expect("made");
    assert_eq!(fill(&arena, 1) as usize * GRANULE_BYTES, 5 * MIB - IMAGE_HEADER_BYTES);
    make_all_present(&arena);
    assert!(!arena.try_reserve(1));
    vfs.set_capacity(None);
    assert!(arena.try_reserve(MIB), "there is room again");
}

/// A file has room for the first extents, or the memtable is in memory.
#[test]
#[cfg_attr(miri, ignore)]
fn a_disk_with_next_to_nothing_left_is_not_begun_with() {
    for (left, in_file) in [(0, false), (IMAGE_HEADER_BYTES, false), (60 << 10, false), (64 << 10, true)] {
        let vfs = MemoryVfs::new(1);
        vfs.set_capacity(Some(left as u64));
        let file = image(&vfs);
        for option in ["trie", "skip_list"] {
            let option = format!(r#"{option}:{{"convert_to_sst":"kFileMmap"}}"#);
            let factory = crate::factory_from_option_string(&option).expect("known");
            let mut config = crate::MemtableConfig::new(Default::default(), base::FamilyId(0), MIB);
            config.image = Some(file.clone());
            let memtable = factory.create(&config).expect("made");
            assert!(memtable.try_reserve(100));
            assert_eq!(vfs.all_files().len(), usize::from(in_file), "{option}, {left} bytes were left");
            drop(memtable);
        }
    }
}

/// Real extents on a real disk that is full: an error and no signal.
#[test]
#[cfg_attr(miri, ignore)]
fn a_full_disk_is_never_a_signal() {
    for kind in [Mount::tmpfs, Mount::ext4] {
        let dir = tempfile::tempdir().expect("made");
        let Some(mounted) = kind(dir.path()) else {
            println!("skipped: no file system can be mounted here");
            continue;
        };
        let file = ImageFile::new(RealVfs::new(), mounted.0.join("image"));
        for commits_ahead in [false, true] {
            let config = ArenaConfig { image: Some(&file), commits_ahead, ..ArenaConfig::new(64 * MIB) };
            let arena = Arena::with(&config).expect("made");
            assert!(arena.file().is_some());
            let stored = fill(&arena, 16) as usize * GRANULE_BYTES;
            assert!((4 * MIB..DISK_MIB * MIB).contains(&stored), "{stored}");
            make_all_present(&arena);
            assert!(!arena.try_reserve(DISK_MIB * MIB));
            drop(arena);
            assert!(!file.vfs.exists(&file.path).expect("asked"), "the file goes with its arena");
        }
    }
}

const DISK_MIB: usize = 16;

/// A mounted file system, gone when dropped.
struct Mount(std::path::PathBuf);

impl Mount {
    fn tmpfs(dir: &Path) -> Option<Mount> {
        let size = format!("size={DISK_MIB}m");
        run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", dir.to_str()?]).then(|| Mount(dir.to_owned()))
    }

    fn ext4(dir: &Path) -> Option<Mount> {
        let image = tempfile::NamedTempFile::new().ok()?;
        image.as_file().set_len((DISK_MIB * MIB) as u64).ok()?;
        let (image, dir) = (image.path().to_str()?, dir.to_str()?);
        let mounted = run("mkfs.ext4", &["-q", "-F", image]) && run("mount", &["-o", "loop", image, dir]);
        mounted.then(|| Mount(dir.into()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let path = self.0.to_string_lossy().into_owned();
        assert!(run("umount", &[&path]) || std::thread::panicking(), "cannot unmount {path}");
    }
}

fn run(command: &str, arguments: &[&str]) -> bool {
    std::process::Command::new(command).args(arguments).output().is_ok_and(|output| output.status.success())
}
