use std::path::Path;

use base::key::encode;
use base::options::IndexType;
use base::{ErrorKind, FamilyId, UserOrder};
use table::{BlockBasedTable, ExternalFile, Table, TableContext, TableReadOptions};
use vfs::{Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule};

use super::*;

const DIR: &str = "/tables";

fn disk() -> Arc<dyn Vfs> {
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
    vfs.create_dir_all(Path::new(DIR)).unwrap();
    vfs
}

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

fn create(vfs: &Arc<dyn Vfs>, name: &str, options: &FamilyOptions) -> Result<TableWriter> {
    TableWriter::create(vfs.clone(), path(name), options)
}

fn reversed() -> FamilyOptions {
    FamilyOptions { order: UserOrder::ReverseBytewise, ..FamilyOptions::default() }
}

/// The table as seen by a database after giving it this number.
fn open(vfs: &Arc<dyn Vfs>, written: &WrittenTable, order: &UserOrder, seq: u64) -> Arc<BlockBasedTable> {
    let order = InternalOrder::new(order.clone());
    let context = TableContext { order, largest_seq: Some(SeqNo(seq)), ..TableContext::default() };
    let file = vfs.open(&written.path).unwrap();
    BlockBasedTable::open(file, &written.path, written.file_bytes, &context).unwrap()
}

fn entries(table: &Arc<BlockBasedTable>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = table.clone().cursor(&TableReadOptions::default());
    let mut found = Vec::new();
    let mut more = cursor.seek_to_first();
    while more {
        found.push((cursor.key().to_vec(), cursor.value().to_vec()));
        more = cursor.next();
    }
    cursor.status().unwrap();
    found
}

#[test]
fn every_kind_of_entry_comes_back_under_the_number_it_is_given() {
    let vfs = disk();
    let mut table = create(&vfs, "all.sst", &FamilyOptions::default()).unwrap();
    table.delete_range(b"x", b"z").unwrap();
    table.put(b"a", b"1").unwrap();
    table.merge(b"b", b"2").unwrap();
    table.delete(b"c").unwrap();
    table.single_delete(b"d").unwrap();
    table.delete_range(b"0", b"b").unwrap();
    assert_eq!(table.entries(), 6);
    assert!(table.estimated_bytes() > 0);
    let written = table.finish().unwrap();
    assert_eq!(written.file_bytes, vfs.metadata(&written.path).unwrap().len);
    assert_eq!((written.entries, &*written.smallest, &*written.largest), (6, &b"0"[..], &b"z"[..]));

    let table = open(&vfs, &written, &UserOrder::Bytewise, 77);
    table.verify().unwrap();
    let expected = [
        (b"a", ValueKind::Value, &b"1"[..]),
        (b"b", ValueKind::Merge, b"2"),
        (b"c", ValueKind::Deletion, b""),
        (b"d", ValueKind::SingleDeletion, b""),
    ];
    assert_eq!(entries(&table), expected.map(|(key, kind, value)| (encode(key, SeqNo(77), kind), value.to_vec())));
    let tombstones = table.tombstones().unwrap();
    let ranges: Vec<_> = tombstones.fragments().iter().map(|f| (f.start.to_vec(), f.end.to_vec())).collect();
    assert_eq!(ranges, [(b"0".to_vec(), b"b".to_vec()), (b"x".to_vec(), b"z".to_vec())]);
}

#[test]
fn the_properties_are_those_of_a_table_to_be_ingested() {
    let vfs = disk();
    let mut sessions = Vec::new();
    for name in ["1.sst", "2.sst"] {
        let mut table = create(&vfs, name, &reversed()).unwrap();
        table.put(b"key", b"value").unwrap();
        let table = open(&vfs, &table.finish().unwrap(), &UserOrder::ReverseBytewise, 0);
        let properties = table.properties();
        assert_eq!(properties.external, Some(ExternalFile { version: 2, global_seqno: 0 }));
        assert_eq!(properties.comparator, UserOrder::REVERSE_BYTEWISE_NAME);
        assert_eq!((properties.family_id, properties.family_name.as_str()), (None, ""));
        assert_eq!((properties.db_id.as_str(), properties.original_file_number), ("SST Writer", 1));
        sessions.push(properties.session_id.clone());
    }
    sessions.dedup();
    assert_eq!(sessions.iter().map(String::len).collect::<Vec<_>>(), [20, 20], "each table has an id of its own");

    let options = Arc::new(FamilyOptions::default());
    let rules = FamilyRules { id: FamilyId(3), name: "third".into(), order: InternalOrder::default(), options };
    let mut table = TableWriter::create_at(vfs.clone(), &path("3.sst"), &rules).unwrap();
    table.add_internal(&encode(b"key", SeqNo::ZERO, ValueKind::Value), b"").unwrap();
    let table = open(&vfs, &table.finish().unwrap(), &UserOrder::Bytewise, 0);
    assert_eq!((table.properties().family_id, table.properties().family_name.as_str()), (Some(3), "third"));
}

#[test]
fn keys_must_ascend_in_the_familys_order_and_a_refused_one_leaves_the_table_as_it_was() {
    let vfs = disk();
    let mut table = create(&vfs, "up.sst", &FamilyOptions::default()).unwrap();
    table.put(b"b", b"kept").unwrap();
    for refused in [table.put(b"b", b"again"), table.delete(b"b"), table.merge(b"a\xff", b"")] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(
            error.message().contains("Keys must be added in strict ascending order")
                && error.message().contains("after \"b\""),
            "{error}"
        );
        assert_eq!(error.path(), Some(&*path("up.sst")));
    }
    assert_eq!(table.delete_range(b"d", b"c").unwrap_err().kind(), ErrorKind::InvalidArgument);
    table.delete_range(b"c", b"c").unwrap(); // nothing, as in RocksDB
    table.put(b"c", b"").unwrap();
    let written = table.finish().unwrap();
    assert_eq!((written.entries, &*written.smallest, &*written.largest), (2, &b"b"[..], &b"c"[..]));

    let mut table = create(&vfs, "down.sst", &reversed()).unwrap();
    table.put(b"b", b"").unwrap();
    assert!(table.put(b"c", b"").is_err());
    table.put(b"a", b"").unwrap();
    table.delete_range(b"z", b"y").unwrap();
    let written = table.finish().unwrap();
    assert_eq!((&*written.smallest, &*written.largest), (&b"z"[..], &b"a"[..]));
}

#[test]
fn the_empty_key_is_a_key() {
    let vfs = disk();
    let mut table = create(&vfs, "empty.sst", &FamilyOptions::default()).unwrap();
    table.put(b"", b"value").unwrap();
    assert!(table.put(b"", b"again").is_err());
    assert_eq!(entries(&open(&vfs, &table.finish().unwrap(), &UserOrder::Bytewise, 0)).len(), 1);
}

#[test]
fn nothing_is_overwritten_and_nothing_unfinished_stays() {
    let vfs = disk();
    let mut table = create(&vfs, "t.sst", &FamilyOptions::default()).unwrap();
    table.put(b"a", b"1").unwrap();
    let written = table.finish().unwrap();
    let there = create(&vfs, "t.sst", &FamilyOptions::default()).err().unwrap();
    assert_eq!((there.kind(), there.path()), (ErrorKind::InvalidArgument, Some(&*written.path)));
    assert_eq!(vfs.metadata(&written.path).unwrap().len, written.file_bytes, "what was there is whole");

    let mut dropped = create(&vfs, "dropped.sst", &FamilyOptions::default()).unwrap();
    dropped.put(b"a", b"1").unwrap();
    drop(dropped);
    let empty = create(&vfs, "empty.sst", &FamilyOptions::default()).unwrap();
    assert_eq!(empty.finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
    let mut contradicting = FamilyOptions::default();
    contradicting.table.index_type = IndexType::HashSearch; // without an extractor
    assert!(create(&vfs, "contradicting.sst", &contradicting).is_err());
    assert_eq!(vfs.read_dir(Path::new(DIR)).unwrap(), ["t.sst"]);
}

#[test]
fn a_disk_that_fails_leaves_no_table() {
    for operation in [Operation::Write, Operation::Sync] {
        let faults = FaultVfs::new(disk());
        let vfs: Arc<dyn Vfs> = faults.clone();
        let mut table = create(&vfs, "t.sst", &FamilyOptions::default()).unwrap();
        faults.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(operation));
        table.put(b"a", b"1").unwrap();
        let error = table.finish().unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::NoSpace, Some(&*path("t.sst"))));
        assert_eq!(vfs.read_dir(Path::new(DIR)).unwrap(), Vec::<String>::new(), "{operation:?}");
    }
}

#[test]
fn a_dictionary_asked_for_with_another_compressor_is_left_out() {
    let vfs = disk();
    let mut options = FamilyOptions { compression: CompressionKind::Lz4, ..FamilyOptions::default() };
    options.compression_opts.max_dict_bytes = 4096;
    let mut table = create(&vfs, "t.sst", &options).unwrap();
    table.put(b"a", b"1").unwrap();
    assert_eq!(open(&vfs, &table.finish().unwrap(), &UserOrder::Bytewise, 0).properties().compression, "LZ4");
}
