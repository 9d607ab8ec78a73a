//! What reading every block finds (`verify_checksums_before_ingest`), and what is found without it.

use base::ValueKind::Value;
use base::options::ChecksumKind;
use testkit::engine::ErrorKind;

use crate::common::{Entry, Forge, Place, default, only_place, verifying};

/// Several data blocks; every key and value can be told apart.
fn entries() -> Vec<(String, String)> {
    (0..400).map(|i| (format!("key{i:04}"), format!("value{i:04}"))).collect()
}

fn forged(forge: &Forge) -> Vec<u8> {
    let entries = entries();
    let entries: Vec<Entry<'_>> = entries.iter().map(|(key, value)| (&**key, 0, Value, &**value)).collect();
    forge.bytes(&entries, &[])
}

fn small_blocks() -> Forge {
    let mut forge = Forge::new();
    forge.config.options.block_size = 512;
    forge.config.options.block_restart_interval = 1; // whole keys, to be found in the file
    forge
}

#[test]
fn damage_that_no_checksum_guards_is_found_by_what_it_says() {
    let place = Place::in_memory();
    let path = place.path("damaged.sst");
    let whole = forged(&small_blocks());
    place.write(&path, &whole);
    drop(
        place
            .db
            .prepare_ingest(
                &[testkit::engine::IngestRequest::new(place.family.clone(), vec![path.clone()])],
                &verifying(),
                &Default::default(),
            )
            .unwrap(),
    );
    let replaced = |what: &str, with: &str| {
        let mut bytes = whole.clone();
        let at = only_place(&whole, what.as_bytes());
        bytes[at..at + with.len()].copy_from_slice(with.as_bytes());
        bytes
    };
    let mut cases = vec![
        ("order within a block", replaced("key0101", "key0103"), "not in order"),
        ("order across blocks", replaced("key0201", "key9999"), ""),
    ];
    for (name, more) in [("rocksdb.num.entries", 1), ("rocksdb.num.data.blocks", 1)] {
        let mut bytes = whole.clone();
        bytes[only_place(&whole, name.as_bytes()) + name.len()] += more;
        cases.push((name, bytes, "its properties say"));
    }
    for (case, bytes, said) in cases {
        place.write(&path, &bytes);
        let error = place.refused_one(&path, &verifying());
        assert_eq!(error.kind(), ErrorKind::Corruption, "{case}: {error}");
        assert!(error.message().contains(said), "{case}: {error}");
        assert_eq!(place.bytes(&path), bytes);
    }
}

#[test]
fn first_and_last_key_are_looked_at_in_any_case() {
    let place = Place::in_memory();
    let path = place.path("damaged.sst");
    let mut bytes = forged(&small_blocks());
    let at = only_place(&bytes, b"key0000");
    bytes[at..at + 7].copy_from_slice(b"zzz0000");
    place.write(&path, &bytes);
    let error = place.refused_one(&path, &default());
    assert!(error.message().contains("not sorted"), "{error}");
}

/// Of a table with checksums, each block in turn is damaged. Those that are read in any case are told from the rest.
#[test]
fn a_damaged_block_is_found_by_a_scan_wherever_it_is() {
    let place = Place::in_memory();
    let path = place.path("damaged.sst");
    let mut forge = small_blocks();
    forge.config.options.checksum = ChecksumKind::Xxh3;
    let whole = forged(&forge);
    let data_end = only_place(&whole, b"value0399") + 9;
    let (mut found, mut passed) = (0, 0);
    for at in (0..data_end).step_by(300) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        place.write(&path, &bytes);
        let error = place.refused_one(&path, &verifying());
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(path.as_path())));
        assert!(error.offset().is_some(), "{error}");
        let request = testkit::engine::IngestRequest::new(place.family.clone(), vec![path.clone()]);
        match place.db.prepare_ingest(&[request], &default(), &Default::default()) {
            Ok(_) => passed += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                found += 1;
            }
        }
    }
    assert!(found >= 2 && passed > 5, "without a scan the first and the last block are read: {found}, {passed}");
}

#[test]
fn a_table_is_cut_off_nowhere_unnoticed() {
    let place = Place::in_memory();
    let path = place.path("cut.sst");
    let mut forge = small_blocks();
    forge.config.options.checksum = ChecksumKind::Crc32c;
    let whole = forged(&forge);
    for len in (0..whole.len()).step_by(97).chain(whole.len() - 60..whole.len()) {
        place.write(&path, &whole[..len]);
        let error = place.refused_one(&path, &default());
        assert!(matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported), "{len}: {error}");
    }
}
