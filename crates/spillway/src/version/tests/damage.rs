//! Damaged MANIFESTs: every flipped bit and every cut. What is recovered is a state that was committed, or an error.

use base::ErrorKind;
use vfs::Vfs;
use vfs::memory::MemoryVfs;
use wal::framed::BLOCK_BYTES;

use super::golden::{INGESTED, UNFLUSHED, rocksdb_dir};
use super::*;
use crate::version::manifest::{ManifestWriter, manifest_path};
use crate::version::recover::{Recovered, recover};

/// Everything that matters of what was recovered, as text.
fn gist(recovered: &Recovered) -> String {
    format!("{:?} {:?} {:?}", recovered.families, recovered.last_seq, recovered.log_ends)
}

/// A MANIFEST of ours with `commits` commits.
fn ours(commits: u64) -> Vec<u8> {
    let vfs = MemoryVfs::new(1);
    vfs.create_dir_all(dir()).unwrap();
    let start = snapshot(vec![family(0, "default", &[(1, table(1, 0, 9, 1))])]);
    let mut writer = ManifestWriter::create(vfs.clone(), dir(), FileNumber(5), &start, 1 << 20).unwrap();
    for i in 0..commits {
        let mut edit = VersionEdit::new(FamilyId(0));
        edit.added.push((0, table(50 + i, i, i + 5, i + 2)));
        edit.flushed_through = Some(SeqNo(20 + i));
        writer.commit(&[edit]).unwrap();
    }
    vfs.read_file(&manifest_path(dir(), FileNumber(5))).unwrap()
}

#[test]
fn a_flipped_bit_is_found() {
    for bytes in [INGESTED.to_vec(), UNFLUSHED.to_vec(), ours(4), ours(0)] {
        let whole = gist(&recover(&*rocksdb_dir(&bytes), dir()).unwrap());
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match recover(&*rocksdb_dir(&flipped), dir()) {
                Ok(recovered) => assert_eq!(gist(&recovered), whole, "bit {bit} of {}", bytes.len()),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported), "{error}");
                    assert!(error.path().is_some_and(|path| path.ends_with("MANIFEST-000005")), "{error}");
                    assert!(error.offset().is_some(), "{error}");
                }
            }
        }
    }
}

#[test]
fn a_cut_leaves_the_commits_before_it() {
    let states: Vec<_> =
        (0..=4).map(|n| (ours(n).len(), gist(&recover(&*rocksdb_dir(&ours(n)), dir()).unwrap()))).collect();
    let bytes = ours(4);
    for len in 0..=bytes.len() {
        for zeros in [0, 40, 5000] {
            let mut cut = bytes[..len].to_vec();
            cut.resize(len + zeros, 0);
            let expected = states.iter().rev().find(|(whole, _)| *whole <= len);
            match (recover(&*rocksdb_dir(&cut), dir()), expected) {
                (Ok(recovered), Some((whole, state))) => {
                    assert_eq!(gist(&recovered), *state, "cut at {len}");
                    assert_eq!(
                        recovered.warnings.is_empty(),
                        zeros == 0 && *whole == len,
                        "cut at {len}, {zeros} zeros"
                    );
                }
                (Err(error), None) => assert_eq!(error.kind(), ErrorKind::Corruption, "cut at {len}"),
                // No crash leaves a few zeros inside a sector: that a record ends in them is damage.
                (Err(error), Some(_)) if zeros == 40 => assert_eq!(error.kind(), ErrorKind::Corruption),
                (Err(error), Some(_)) => panic!("{error}, cut at {len}, {zeros} zeros"),
                (Ok(_), None) => panic!("a part of a snapshot was taken for a whole one, cut at {len}"),
            }
        }
    }
}

/// A record of several blocks can end with a whole fragment, and lack the others.
#[test]
fn a_cut_between_the_fragments_of_a_record_leaves_the_commits_before_it() {
    let vfs = MemoryVfs::new(1);
    vfs.create_dir_all(dir()).unwrap();
    let start = snapshot(vec![family(0, "default", &[(1, table(1, 0, 9, 1))])]);
    let mut writer = ManifestWriter::create(vfs.clone(), dir(), FileNumber(5), &start, 1 << 20).unwrap();
    let before = gist(&recover(&*vfs, dir()).unwrap());
    let mut edit = VersionEdit::new(FamilyId(0));
    edit.added.extend((0..4000).map(|i| (0, table(50 + i, i, i + 5, i + 2))));
    writer.commit(&[edit]).unwrap();
    let bytes = vfs.read_file(&manifest_path(dir(), FileNumber(5))).unwrap();
    let blocks = bytes.len() / BLOCK_BYTES;
    assert!(blocks > 2);
    for len in (1..=blocks).flat_map(|block| [block * BLOCK_BYTES - 1, block * BLOCK_BYTES, block * BLOCK_BYTES + 1]) {
        let recovered = recover(&*rocksdb_dir(&bytes[..len]), dir()).unwrap();
        assert_eq!(gist(&recovered), before, "cut at {len}");
        assert_eq!(recovered.warnings.len(), 1);
    }
    // The last fragment's type and length changed: nothing is missing, so this is damage.
    for (at, change) in [(4, 1), (5, 1), (6, 6)] {
        let mut damaged = bytes.clone();
        damaged[blocks * BLOCK_BYTES + at] ^= change;
        assert_eq!(recover(&*rocksdb_dir(&damaged), dir()).unwrap_err().kind(), ErrorKind::Corruption, "byte {at}");
    }
}

/// An ingest of many tables is one record, of any size.
#[test]
fn a_cut_deep_in_a_long_record_leaves_the_commits_before_it() {
    let vfs = MemoryVfs::new(1);
    vfs.create_dir_all(dir()).unwrap();
    let start = snapshot(vec![family(0, "default", &[(1, table(1, 0, 9, 1))])]);
    let mut writer = ManifestWriter::create(vfs.clone(), dir(), FileNumber(5), &start, 64 << 20).unwrap();
    let before = gist(&recover(&*vfs, dir()).unwrap());
    let bound = |seq| base::key::encode(&[b'k'; 1024], SeqNo(seq), base::ValueKind::Value);
    let mut edit = VersionEdit::new(FamilyId(0));
    let tables = (0..9000).map(|i| FileMeta { smallest: bound(2), largest: bound(1), ..table(50 + i, 1, 2, 2) });
    edit.added.extend(tables.map(|meta| (0, meta)));
    writer.commit(&[edit]).unwrap();
    let bytes = vfs.read_file(&manifest_path(dir(), FileNumber(5))).unwrap();
    let recovered = recover(&*rocksdb_dir(&bytes[..(17 << 20) + 3]), dir()).unwrap();
    assert_eq!(gist(&recovered), before);
    assert_eq!(recovered.warnings.len(), 1);
}

#[test]
fn damage_before_the_last_record_names_its_offset() {
    let mut bytes = ours(3);
    let second_commit = ours(1).len();
    bytes[second_commit + 9] ^= 0x40;
    let error = recover(&*rocksdb_dir(&bytes), dir()).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(second_commit as u64)));

    // Zeros do not excuse what something was appended to.
    let mut bytes = ours(3);
    bytes[second_commit..ours(2).len()].fill(0);
    let error = recover(&*rocksdb_dir(&bytes), dir()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}

#[test]
fn current_names_a_manifest_and_nothing_else() {
    let vfs = rocksdb_dir(INGESTED);
    for (text, part) in [
        ("", "does not end with newline"),
        ("MANIFEST-000005", "does not end with newline"),
        ("../MANIFEST-000005\n", "names \"../MANIFEST-000005\", which is no MANIFEST"),
        ("../x\n", "names \"../x\", which is no MANIFEST"),
        ("/etc/passwd\n", "which is no MANIFEST"),
        ("000005.sst\n", "which is no MANIFEST"),
        ("MANIFEST-000005\n\n", "which is no MANIFEST"),
        ("MANIFEST-000006\n", "names a MANIFEST that is not there"),
        ("MANIFEST-\n", "which is no MANIFEST"),
    ] {
        vfs.write_file(&dir().join("CURRENT"), text.as_bytes()).unwrap();
        let error = recover(&*vfs, dir()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains(part), "{error} lacks {part:?}");
    }
    vfs.write_file(&dir().join("CURRENT"), &[b'M'; 300]).unwrap();
    assert_eq!(recover(&*vfs, dir()).unwrap_err().kind(), ErrorKind::Corruption);
    vfs.remove_file(&dir().join("CURRENT")).unwrap();
    assert!(recover(&*vfs, dir()).unwrap_err().is_not_found(), "no database");
}
