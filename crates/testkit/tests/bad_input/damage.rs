//! Bit flips in every byte of every file: reads return correct data, or an error naming a file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use testkit::engine::Db;
use testkit::engine::version::recover::recover;
use testkit::random::Random;
use testkit::run::{DIR, panic_message};
use testkit::threads::within;

use crate::common::{INGESTS, PLAIN, SCRIPT, Subject, copy, database, read};

const LIMIT: Duration = Duration::from_secs(300);

/// Behind this the files of this database are space allocated ahead, tried more coarsely.
const DENSE_BYTES: usize = 8 << 10;
const COARSE_STRIDE: usize = 211;

/// Flips a bit in every `stride`th byte of the selected files. Returns the numbers of harmless and of refused flips.
fn flip_bits(subject: Subject, stride: usize, is_asked_for: impl Fn(&Path) -> bool) -> [u32; 2] {
    let whole = subject.database();
    let expected = subject.read(&copy(&whole)).unwrap();
    let mut random = Random::new(1);
    let [mut correct, mut refused] = [0; 2];
    for path in whole.all_files().into_iter().filter(|path| path.starts_with(DIR) && is_asked_for(path)) {
        let len = whole.read_file(&path).unwrap().len();
        let coarse = (DENSE_BYTES..len).step_by(COARSE_STRIDE);
        for byte in (0..len.min(DENSE_BYTES)).step_by(stride).chain(coarse) {
            let bit = byte as u64 * 8 + random.below(8);
            let place = || format!("{}, bit {bit}", path.display());
            let vfs = copy(&whole);
            vfs.flip_bit(&path, bit).unwrap();
            match catch_unwind(AssertUnwindSafe(|| subject.read(&vfs))) {
                Ok(Ok(contents)) => {
                    assert!(contents == expected, "{}: wrong data: {contents:?}", place());
                    correct += 1;
                }
                Ok(Err(error)) => {
                    assert!(error.path().is_some_and(|named| named.starts_with(DIR)), "{}: {error:?}", place());
                    refused += 1;
                }
                Err(panic) => panic!("{}: panicked: {}", place(), panic_message(&*panic)),
            }
        }
    }
    println!("{correct} flips did no harm, {refused} were refused");
    [correct, refused]
}

#[test]
fn a_flipped_bit_anywhere_gives_correct_data_or_an_error() {
    within(LIMIT, || {
        let [correct, refused] = flip_bits(PLAIN, 1, |_| true);
        assert!(refused > 1000 && correct > 0);
    });
}

/// Flips bits in all metadata of ingests, and in their tables.
#[test]
fn a_flipped_bit_beside_ingests_gives_correct_data_or_an_error() {
    let tells_of_ingests = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("MANIFEST") || name.ends_with(".splog") || name.ends_with(".sst")
    };
    within(LIMIT, move || {
        let [_, refused] = flip_bits(INGESTS, 2, tells_of_ingests);
        assert!(refused > 1000);
    });
}

#[test]
fn the_database_with_ingests_has_them_in_every_place() {
    let vfs = INGESTS.database();
    let families = recover(&*vfs, Path::new(DIR)).unwrap().families;
    assert!(families.iter().any(|family| !family.linked_ingests.is_empty()), "{families:?}");
    let db = Db::open(DIR, &INGESTS.options(&vfs)).unwrap();
    let tables = db.live_files();
    for family in ["default", "users"] {
        assert!(tables.iter().any(|table| table.family == family && table.is_queued), "{family}: {tables:?}");
    }
    assert!(tables.iter().any(|table| table.is_virtual), "{tables:?}");
}

#[test]
fn files_that_are_no_database_files_are_left_alone() {
    let vfs = database(SCRIPT);
    let others = ["notes.txt", "000001.sst.bak", "MANIFEST", "CURRENT.old", "12x.splog", "99999999999999999999999.sst"];
    for name in others {
        vfs.write_file(&Path::new(DIR).join(name), b"not ours").unwrap();
    }
    read(&vfs).unwrap();
    for name in others {
        assert_eq!(vfs.read_file(&Path::new(DIR).join(name)).unwrap(), b"not ours", "{name}");
    }
}
