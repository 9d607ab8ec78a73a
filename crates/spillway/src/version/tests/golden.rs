//! MANIFESTs as text. `UPDATE=1 cargo test -p spillway-db version::tests::golden` writes the expected files anew.

use std::path::{Path, PathBuf};

use vfs::memory::MemoryVfs;
use vfs::{IfExists, IoClass, Vfs};

use super::*;
use crate::version::dump::dump;
use crate::version::edit::{LogEnd, WalRange};
use crate::version::manifest::{ManifestWriter, manifest_path, write_alone};
use crate::version::recover::recover;
use crate::version::snapshot::ManifestKind;
use crate::version::table_file::Backing;

fn expected_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Compares with the file of that name under `tests/fixtures`, or writes it.
fn check_golden(name: &str, text: &str) {
    let path = expected_path(name);
    let real = vfs::real::RealVfs::new();
    if std::env::var_os("UPDATE").is_some() {
        let mut file = real.create(&path, IfExists::Truncate).unwrap();
        file.append(text.as_bytes(), IoClass::Other).unwrap();
        return;
    }
    let expected = vfs::read_all(&*real, &path, 1 << 20, IoClass::Other).unwrap();
    assert_eq!(text, String::from_utf8(expected).unwrap(), "{name}; UPDATE=1 rewrites it");
}

fn dump_text(vfs: &dyn Vfs, manifest: u64) -> String {
    let mut text = String::new();
    dump(vfs, &manifest_path(dir(), FileNumber(manifest)), &mut |line| {
        text.push_str(line);
        text.push('\n');
    })
    .unwrap();
    text
}

/// A directory with a MANIFEST that RocksDB wrote.
pub(super) fn rocksdb_dir(manifest: &[u8]) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    vfs.write_file(&dir().join("MANIFEST-000005"), manifest).unwrap();
    vfs.write_file(&dir().join("CURRENT"), b"MANIFEST-000005\n").unwrap();
    vfs
}

pub(super) const INGESTED: &[u8] = include_bytes!("../../../tests/fixtures/db-ingested/MANIFEST-000005");
pub(super) const UNFLUSHED: &[u8] = include_bytes!("../../../tests/fixtures/db-unflushed/MANIFEST-000005");

#[test]
fn manifests_of_rocksdb_read_as_text() {
    check_golden("db-ingested/manifest.txt", &dump_text(&*rocksdb_dir(INGESTED), 5));
    check_golden("db-unflushed/manifest.txt", &dump_text(&*rocksdb_dir(UNFLUSHED), 5));
}

#[test]
fn manifests_of_rocksdb_recover() {
    let recovered = recover(&*rocksdb_dir(UNFLUSHED), dir()).unwrap();
    assert!(!recovered.fenced);
    assert_eq!(recovered.warnings, Vec::<String>::new());
    assert_eq!(recovered.db_id.as_deref(), Some("299e53fb-8225-495d-be91-4d87c81a8739"));
    let names: Vec<_> = recovered.families.iter().map(|family| (family.id.0, &*family.name)).collect();
    assert_eq!(names, [(0, "default"), (1, "second")]);
    let tables = |family: usize| -> Vec<_> {
        recovered.families[family].tables.iter().map(|(level, meta)| (*level, meta.number.0)).collect()
    };
    assert_eq!(tables(0), [(0, 11), (0, 14), (0, 17)]);
    assert_eq!(tables(1), [(0, 12), (0, 15), (0, 18)]);
    assert_eq!(recovered.last_seq, SeqNo(1263));
    assert_eq!(recovered.next_file, FileNumber(19));
    assert_eq!(recovered.min_log_to_keep, FileNumber(16));
    assert!(recovered.families.iter().all(|family| family.flushed_through.is_none()));
}

fn two_families() -> ManifestSnapshot {
    let mut second = family(1, "second", &[(0, table(12, 0, 9, 4))]);
    second.linked_ingests = vec![SeqNo(44)];
    let ranged = FileMeta {
        largest: key::encode(b"000900", SeqNo::MAX, ValueKind::RangeDeletion),
        path_id: 2,
        temperature: 0x0c,
        marked_for_compaction: true,
        oldest_ancestor_time: 1_700_000_000,
        file_creation_time: 1_700_000_001,
        file_checksum: vec![0xab, 0xcd],
        file_checksum_func: "FileChecksumCrc32c".into(),
        unique_id: Some((1, u64::MAX)),
        ..table(11, 500, 900, 2)
    };
    let mut all = snapshot(vec![family(0, "default", &[(0, table(10, 0, 9, 3)), (3, ranged)]), second]);
    all.log_ends = vec![LogEnd { log: FileNumber(9), end_offset: 4096, last_seq: SeqNo(50), on_disk: true }];
    all.wal_range = Some(WalRange { oldest: FileNumber(9), newest: Some(FileNumber(15)) });
    all.log_dir = "/logs".into();
    all.options_file = Some(FileNumber(14));
    all
}

#[test]
fn our_manifest_reads_as_text() {
    let vfs = MemoryVfs::new(1);
    vfs.create_dir_all(dir()).unwrap();
    let mut writer = ManifestWriter::create(vfs.clone(), dir(), FileNumber(20), &two_families(), 1 << 20).unwrap();
    let mut flush = VersionEdit::new(FamilyId(0));
    flush.flushed_through = Some(SeqNo(60));
    flush.added.push((0, table(30, 0, 5, 5)));
    let mut compaction = VersionEdit::new(FamilyId(1));
    compaction.deleted.push((0, FileNumber(12)));
    compaction.added.push((6, table(31, 0, 9, 4)));
    writer.commit(&[flush, compaction]).unwrap();
    let mut excise = VersionEdit::new(FamilyId(0));
    excise.deleted.push((0, FileNumber(30)));
    let backing = Some(Backing { number: FileNumber(30), file_bytes: 130 });
    let end = key::encode(b"000002", SeqNo::MAX, ValueKind::RangeDeletion);
    excise.added.push((
        0,
        FileMeta { backing, file_bytes: 60, largest: end, ..FileMeta { number: FileNumber(32), ..table(30, 0, 5, 5) } },
    ));
    excise
        .added
        .push((0, FileMeta { backing, file_bytes: 40, ..FileMeta { number: FileNumber(33), ..table(30, 4, 5, 5) } }));
    writer.commit(&[excise]).unwrap();
    writer.commit(&[VersionEdit { drop_family: true, ..VersionEdit::new(FamilyId(1)) }]).unwrap();
    let no_logs = WalRange::none_through(FileNumber(15));
    writer.commit(&[VersionEdit { wal_range: Some(no_logs), ..VersionEdit::default() }]).unwrap();
    check_golden("manifest-fenced.txt", &dump_text(&*vfs, 20));
    let bytes = vfs.read_file(&manifest_path(dir(), FileNumber(20))).unwrap();
    // Checksum, length and type; then the fence's tag, the length of its field, and version 1.
    assert_eq!(bytes[4..14], [7, 0, 1, 0x81, 0x80, 0xc0, 0x9a, 0x05, 1, 1], "the fence is the first record");
}

#[test]
fn an_export_has_nothing_private() {
    let vfs = MemoryVfs::new(1);
    vfs.create_dir_all(dir()).unwrap();
    write_alone(&*vfs, dir(), FileNumber(20), &two_families(), ManifestKind::Export { log_bytes: 0 }).unwrap();
    check_golden("manifest-export.txt", &dump_text(&*vfs, 20));
    assert!(!recover(&*vfs, dir()).unwrap().fenced);
}
