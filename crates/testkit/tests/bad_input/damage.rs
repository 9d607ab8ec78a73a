//! Every byte of every file with a bit flipped: correct data, or an error that names a file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use testkit::random::Random;
use testkit::run::{DIR, panic_message};
use testkit::threads::within;

use crate::common::{SCRIPT, copy, database, read};

/// Behind this the files of this database are space allocated ahead, tried more coarsely.
const DENSE_BYTES: usize = 8 << 10;
const COARSE_STRIDE: usize = 211;

#[test]
fn a_flipped_bit_anywhere_gives_correct_data_or_an_error() {
    within(Duration::from_secs(300), || {
        let whole = database(SCRIPT);
        let expected = read(&copy(&whole)).unwrap();
        let mut random = Random::new(1);
        let (mut correct, mut refused) = (0, 0);
        for path in whole.all_files().into_iter().filter(|path| path.starts_with(DIR)) {
            let len = whole.read_file(&path).unwrap().len();
            let coarse = (DENSE_BYTES..len).step_by(COARSE_STRIDE);
            for byte in (0..len.min(DENSE_BYTES)).chain(coarse) {
                let bit = byte as u64 * 8 + random.below(8);
                let place = || format!("{}, bit {bit}", path.display());
                let vfs = copy(&whole);
                vfs.flip_bit(&path, bit).unwrap();
                match catch_unwind(AssertUnwindSafe(|| read(&vfs))) {
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
        assert!(refused > 1000 && correct > 0);
    });
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
