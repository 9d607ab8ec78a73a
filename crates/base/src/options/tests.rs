use std::sync::Arc;

use serde_json::Value;

use super::row::{Load, rows};
use super::*;
use crate::comparator::UserOrder;
use crate::error::ErrorKind;
use crate::extend::BuiltinPrefix;
use crate::merge;

/// Written by RocksDB 7.8.3's tool; what stands in it is what that version knows.
const BY_7_8: &str = include_str!("testdata/OPTIONS-7.8.3");
const BY_11_9: &str = include_str!("testdata/OPTIONS-11.9.0");

/// Names that RocksDB 7.8 knows and writes only when they are set.
const UNWRITTEN_BY_7_8: [&str; 3] = ["wal_dir", "db_log_dir", "compression_per_level"];

fn read(text: &str) -> crate::Result<(OptionsFile, Vec<String>)> {
    OptionsFile::read(text, DbOptions::default(), &|_| FamilyOptions::default(), false)
}

/// A text that `G` takes for an option and that is not its default.
fn other_text<G: OptionGroup + Default>(row: &row::Row, default: &str) -> Option<&'static str> {
    let candidates: &[&str] = match row.name {
        "comparator" => &["rocksdb.ReverseBytewiseComparator"],
        "merge_operator" => &["{id=StringAppendOperator;delimiter=\\;;}"],
        "prefix_extractor" => &["rocksdb.FixedPrefix.8"],
        "compaction_style" => &["kCompactionStyleUniversal"],
        "sst_partitioner_factory" => &["{id=SstPartitionerFixedPrefixFactory;length=4;}"],
        "table_properties_collectors" => &[
            "{{id=CompactOnDeletionCollector;min_file_size=7;deletion_ratio=0.500000;deletion_trigger=50;window_size=100;}:\
             {id=CompactOnDeletionCollector;min_file_size=0;deletion_ratio=0.250000;deletion_trigger=0;window_size=0;}}",
        ],
        "compaction_pri" => &["kOldestLargestSeqFirst"],
        "compaction_options_universal" => {
            &["{size_ratio=5;max_read_amp=9;stop_style=kCompactionStopStyleSimilarSize;}"]
        }
        "compaction_options_fifo" => &["{max_table_files_size=5;allow_compaction=true;}"],
        "stop_style" => &["kCompactionStopStyleSimilarSize"],
        "filter_policy" => &["bloomfilter:9.5:false"],
        "compression_per_level" => &["kNoCompression:kZSTD"],
        "compression_opts" => &["{window_bits=-12;level=3;max_dict_bytes=4096;zstd_max_train_bytes=1;}"],
        "table_factory" => &["ToplingZipTable\\:\\{\"builderMinLevel\"\\:2\\}"],
        "memtable_factory" => &["cspp\\:\\{\"mem_cap\"\\:\"16G\\;#\"\\}"],
        "ignore_unsupported_options" => &[], // never written
        "wal_dir" | "db_log_dir" => &["\\ a\\;b \\#\\{\\n"],
        "block_based_table_factory" => &[], // changed as a group of its own
        _ => &[
            "true",
            "false",
            "5",
            "0.125",
            "3",
            "2",
            "70000",
            "kZSTD",
            "kCRC32c",
            "mapped",
            "kTwoLevelIndexSearch",
            "kDataBlockBinaryAndHash",
            "kAbsoluteConsistency",
            "kLow",
            "0640",
            "WARN_LEVEL",
        ],
    };
    let takes = |text: &str| string::set(&mut G::default(), row.name, text, &mut Load::default()).is_ok();
    let same_number = |text: &str| text.parse::<f64>().is_ok_and(|number| Ok(number) == default.parse());
    candidates.iter().copied().find(|text| takes(text) && *text != default && !same_number(text))
}

fn fresh() -> Vec<Box<dyn OptionGroup>> {
    vec![
        Box::new(DbOptions::default()),
        Box::new(FamilyOptions::default()),
        Box::new(TableOptions::default()),
        Box::new(CompressionOptions::default()),
        Box::new(UniversalOptions::default()),
        Box::new(FifoOptions::default()),
    ]
}

/// Every row of a group at a value that is not its default, and how many rows have none.
fn changed<G: OptionGroup + Default>() -> (G, Vec<&'static str>) {
    let (mut group, mut unchangeable) = (G::default(), Vec::new());
    let defaults = G::default();
    for (row, setting) in defaults.settings() {
        match other_text::<G>(row, &setting.text()) {
            Some(text) => string::set(&mut group, row.name, text, &mut Load::default()).expect(row.name),
            None => unchangeable.push(row.name),
        }
    }
    for ((row, before), (_, after)) in defaults.settings().iter().zip(group.settings()) {
        let differs = before.text() != after.text();
        assert_eq!(differs, !unchangeable.contains(&row.name), "{}", row.name);
    }
    (group, unchangeable)
}

fn changed_family() -> FamilyOptions {
    let (mut family, unchangeable) = changed::<FamilyOptions>();
    assert_eq!(unchangeable, ["block_based_table_factory"]);
    let (table, unchangeable) = changed::<TableOptions>();
    assert_eq!(unchangeable, Vec::<&str>::new());
    family.table = table;
    family
}

fn round_trips<G: OptionGroup + Default + Clone>(group: &G) {
    let text = string::print(group);
    let mut by_string = G::default();
    assert_eq!(apply_string(&mut by_string, &text).expect("reads its own text"), Vec::<String>::new());
    assert_eq!(string::print(&by_string), text);

    let value = to_value(group);
    let mut by_value = G::default();
    apply_value(&mut by_value, &value).expect("reads its own value");
    assert_eq!(string::print(&by_value), text);
    for syntax in [Syntax::Json, Syntax::Yaml] {
        let mut by_document = G::default();
        let document = serde_json::to_string_pretty(&value).expect("prints");
        apply_document(&mut by_document, &document, syntax).expect("reads its own document");
        assert_eq!(string::print(&by_document), text, "{syntax:?}");
    }
}

#[test]
fn every_row_round_trips_through_strings_and_documents() {
    let (db, unchangeable) = changed::<DbOptions>();
    assert_eq!(unchangeable, ["ignore_unsupported_options"]);
    round_trips(&db);
    round_trips(&DbOptions::default());
    round_trips(&changed_family());
    round_trips(&FamilyOptions::default());
}

#[test]
fn every_row_round_trips_through_an_options_file() {
    let (db, _) = changed::<DbOptions>();
    let (family, other) = (changed_family(), FamilyOptions::default());
    let text = ini::write(&db, &[("odd: #name", &family), ("default", &other)], Audience::Spillway);
    let (file, warnings) = read(&text).expect("reads its own file");
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(string::print(&file.db), string::print(&db));
    let names: Vec<&str> = file.families.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["default", "odd: #name"]);
    assert_eq!(string::print(&file.families[1].1), string::print(&family));
    assert_eq!(string::print(&file.families[0].1), string::print(&other));
}

#[test]
fn a_file_for_rocksdb_holds_only_names_that_7_8_knows() {
    let (db, family) = (changed::<DbOptions>().0, changed_family());
    let text = ini::write(&db, &[("default", &family)], Audience::RocksDb);
    assert!(!text.contains("[Spillway"));
    let known = |name: &str| BY_7_8.lines().any(|line| line.trim_start().starts_with(&format!("{name}=")));
    let names = text.lines().filter_map(|line| line.trim().split_once('=')).map(|(name, _)| name);
    for name in names {
        assert!(known(name) || UNWRITTEN_BY_7_8.contains(&name), "{name}");
    }
    read(&text).expect("we read it too");
}

#[test]
fn files_of_rocksdb_are_read_without_a_name_left_over() {
    let (file, warnings) = read(BY_7_8).expect("7.8");
    assert_eq!(warnings, Vec::<String>::new());
    assert!(!file.family("default").expect("there").level_compaction_dynamic_level_bytes);

    let (file, warnings) = read(BY_11_9).expect("11.9");
    assert_eq!(warnings, Vec::<String>::new());
    let mut family = file.family("default").expect("there").clone();
    assert_eq!(family.settle(), Vec::<String>::new());
    assert_eq!(family.merge_operator.as_ref().expect("set").name(), "UInt64AddOperator");
    assert_eq!(family.compression, CompressionKind::Lz4);
    assert!(file.db.avoid_flush_during_shutdown && family.disable_auto_compactions);
    assert_eq!(family.table.format_version, 7);
    assert_eq!(file.families.len(), 2);
}

#[test]
fn what_cannot_be_honoured_is_told() {
    let told = |from: &str, to: &str| read(&BY_7_8.replace(from, to)).expect("reads").1;
    let direct = told("use_direct_reads=false", "use_direct_reads=true");
    assert_eq!(direct.len(), 1);
    assert!(direct[0].contains("`use_direct_reads=true`") && direct[0].starts_with("line "), "{direct:?}");
    let ribbon = told("filter_policy=nullptr", "filter_policy=ribbonfilter:10:0");
    assert!(ribbon[0].contains("bloomfilter:10:false is used"), "{ribbon:?}");
    let nested = told("level=32767;use_zstd_dict_trainer=true;strategy=0", "level=5;strategy=2");
    assert!(nested.iter().any(|warning| warning.contains("strategy=2")), "{nested:?}");

    let error = read(&BY_7_8.replace("leveldb.BytewiseComparator", "mine")).expect_err("unknown comparator");
    assert!(error.message().contains("comparator `mine` is unknown"), "{error}");
}

#[test]
fn unknown_names_are_errors_that_name_line_and_neighbour() {
    let text = BY_7_8.replace("max_background_jobs", "max_backgruond_jobs");
    let error = read(&text).expect_err("unknown");
    assert!(error.message().starts_with("line "), "{error}");
    assert!(error.message().contains("did you mean `max_background_jobs`?"), "{error}");
    let lenient = OptionsFile::read(&text, DbOptions::default(), &|_| FamilyOptions::default(), true);
    let warnings = lenient.expect("skips it").1;
    assert!(warnings.len() == 1 && warnings[0].contains("max_backgruond_jobs"), "{warnings:?}");

    let json = "{\n  \"compression_opts\": {\n    \"levle\": 3\n  }\n}";
    let yaml = "write_buffer_size: 1M\ncompression_opts:\n  levle: 3\n";
    for (text, syntax) in [(json, Syntax::Json), (yaml, Syntax::Yaml)] {
        let error = apply_document(&mut FamilyOptions::default(), text, syntax).expect_err("unknown").to_string();
        assert!(error.contains("did you mean `level`?") && error.contains("line 3"), "{syntax:?}: {error}");
    }
}

#[test]
fn option_strings_take_rocksdbs_syntax() {
    let mut family = FamilyOptions::default();
    let text = " write_buffer_size = 128K ; block_based_table_factory={block_size=8k;filter_policy=bloomfilter:10:false;\
                block_cache=1G} ;compression_opts=-14:5:0:1024; prefix_extractor=fixed:4;compression_per_level=\
                kNoCompression:kLZ4Compression;merge_operator={id=StringAppendOperator;delimiter=\\:};";
    apply_string(&mut family, text).expect("valid");
    assert_eq!(family.write_buffer_size, 128 << 10);
    assert_eq!((family.table.block_size, *family.table.block_cache), (8192, 1 << 30));
    assert_eq!(family.table.filter_policy, FilterPolicy::bloom(10.0));
    assert_eq!((family.compression_opts.level(), family.compression_opts.max_dict_bytes), (Some(5), 1024));
    assert_eq!(family.prefix_extractor().expect("set").name(), "rocksdb.FixedPrefix.4");
    assert_eq!(family.compression_at(5, false), CompressionKind::Lz4);
    let merge = family.merge_operator.expect("set");
    assert_eq!(merge.full_merge(b"", Some(b"a"), &[b"b"]).expect("merges"), b"a:b");
}

#[test]
fn a_refused_value_leaves_one_that_no_text_can_set() {
    let mut family = FamilyOptions { compression: CompressionKind::Bzip2, ..FamilyOptions::default() };
    let warnings = apply_string(&mut family, "ignore_unsupported_options=true;compression=kXpressCompression");
    let warnings = warnings.expect("passed over");
    assert!(warnings[0].contains("kBZip2Compression is used"), "{warnings:?}");
    assert_eq!(family.compression, CompressionKind::Bzip2);
}

#[test]
fn bits_per_key_are_refused_with_the_range_that_is_taken() {
    let parse = |bits: &str| FilterPolicy::parse(&format!("bloomfilter:{bits}:false"));
    let taken = [("0", None), ("0.4", None), ("0.5", Some(0.5)), ("100", Some(100.0))];
    assert!(taken.iter().all(|(bits, policy)| parse(bits).expect(bits).bits_per_key == *policy));
    for bits in ["-1", "100.5", "many", "NaN"] {
        let message = parse(bits).expect_err(bits).to_string();
        assert!(message.contains(&format!("`{bits}` is no number of bits per key from 0 to 100")), "{message}");
    }
}

#[test]
fn malformed_strings_are_refused_and_change_nothing() {
    for bad in [
        "write_buffer_size",
        "=1",
        "block_based_table_factory={block_size=1",
        "a}",
        "write_buffer_size=1M;nope=1",
        "write_buffer_size=-1",
        "write_buffer_size=1X",
        "num_levels=0",
        "num_levels=99999999999999999999999999999999999999999",
        "compaction_style=kCompactionStyleNone",
        "compression=kBZip2Compression",
        "compression_opts=1:2",
        "max_bytes_for_level_multiplier=NaN",
        "enable_blob_files=true",
        "ignore_unsupported_options=maybe",
        "block_based_table_factory={format_version=8}",
        "block_based_table_factory={block_size=1M}x",
        "memtable_factory={{{{{{{{{{{{{{{{{{{{}}}}}}}}}}}}}}}}}}}}",
    ] {
        let mut family = FamilyOptions::default();
        let before = string::print(&family);
        let error = apply_string(&mut family, &format!("disable_auto_compactions=true;{bad}")).expect_err(bad);
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::Unsupported), "{bad}: {error}");
        assert_eq!(string::print(&family), before, "{bad}");
    }
}

#[test]
fn documents_take_lists_suffixes_and_memtables_with_parameters() {
    let yaml = "DBOptions:\n  log_file_bytes: 1M\nCFOptions:\n  default:\n    write_buffer_size: 64K\n    \
                compression_per_level: [kNoCompression, kZSTD]\n    memtable_factory:\n      cspp: {mem_cap: 16G}\n    \
                block_based_table_factory:\n      filter_policy: bloomfilter:10:false\n";
    let new = &|_: &str| FamilyOptions::default();
    let (file, _) = OptionsFile::read_document(yaml, Syntax::Yaml, DbOptions::default(), new).expect("valid");
    assert_eq!(file.db.log_file_bytes, 1 << 20);
    let family = file.family("default").expect("there");
    assert_eq!(family.write_buffer_size, 64 << 10);
    assert_eq!(family.compression_per_level.0, [CompressionKind::None, CompressionKind::Zstd]);
    assert_eq!(family.memtable_factory, "cspp:{\"mem_cap\":\"16G\"}");
    assert_eq!(family.table.filter_policy, FilterPolicy::bloom(10.0));

    let twice = "{\"num_levels\": 3, \"num_levels\": 4}";
    assert!(apply_document(&mut FamilyOptions::default(), twice, Syntax::Json).is_err());
    let section = OptionsFile::read_document("{\"DbOptions\": {}}", Syntax::Json, DbOptions::default(), new);
    assert!(section.expect_err("unknown").to_string().contains("did you mean `DBOptions`?"));
}

#[test]
fn members_are_set_by_dotted_names_and_the_rest_stays() {
    let mut family = FamilyOptions::default();
    apply_string(
        &mut family,
        "compression_opts={level=7;max_dict_bytes=100};block_based_table_factory={block_size=9000}",
    )
    .unwrap();
    let dotted = "compression_opts.level=3;compaction_options_universal.size_ratio=5;\
                  block_based_table_factory.block_restart_interval=4;table_factory.id=BlockBasedTable";
    apply_string(&mut family, dotted).unwrap();
    assert_eq!((family.compression_opts.level, family.compression_opts.max_dict_bytes), (3, 100));
    assert_eq!((family.table.block_size, family.table.block_restart_interval), (9000, 4));
    assert_eq!(family.compaction_options_universal.size_ratio, 5);
    apply_string(&mut family, "table_factory.block_size=8192").unwrap();
    assert_eq!(family.table.block_size, 8192);
    apply_string(&mut family, "table_factory={id=BlockBasedTable;block_size=4096}").unwrap();
    assert_eq!((family.table.block_size, family.table.block_restart_interval), (4096, 4));
    let running = [("compaction_options_fifo.max_table_files_size", "1M"), ("table_factory.block_size", "8192")];
    set_at_runtime(&mut family, &running).unwrap();
    assert_eq!((family.compaction_options_fifo.max_table_files_size, family.table.block_size), (1 << 20, 8192));
    assert!(set_at_runtime(&mut family, &[("block_based_table_factory.checksum", "kCRC32c")]).is_err());
    for wrong in
        ["wal_dir.x=1", "num_levels.x=1", "compression_opts.x=1", "table_factory={id=BlockBasedTable;x=1}", ".=1"]
    {
        let error = apply_string(&mut family, wrong).expect_err(wrong).to_string();
        assert!(error.contains("Extra option not recognized: "), "{wrong}: {error}");
    }
}

#[test]
fn only_mutable_rows_change_at_run_time() {
    let mut family = FamilyOptions::default();
    set_at_runtime(&mut family, &[("write_buffer_size", "1M"), ("block_based_table_factory", "{block_size=8192}")])
        .expect("both are mutable");
    assert_eq!((family.write_buffer_size, family.table.block_size), (1 << 20, 8192));
    assert!(set_at_runtime(&mut family, &[("num_levels", "3")]).is_err());
    assert!(set_at_runtime(&mut family, &[("block_based_table_factory", "{checksum=kCRC32c}")]).is_err());
    assert_eq!((family.num_levels, family.table.checksum), (7, ChecksumKind::Xxh3));
}

#[test]
fn supplied_objects_satisfy_their_names() {
    struct Mine;
    impl crate::extend::MergeOperator for Mine {
        fn name(&self) -> &str {
            "mine"
        }
        fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Option<Vec<u8>> {
            None
        }
    }
    assert!(apply_string(&mut FamilyOptions::default(), "merge_operator=mine").is_err());
    let mut family = FamilyOptions { merge_operator: Some(Arc::new(Mine)), ..FamilyOptions::default() };
    apply_string(&mut family, "merge_operator=mine").expect("supplied");
    apply_string(&mut family, "merge_operator=max").expect("built in");
    assert_eq!(family.merge_operator.expect("set").name(), merge::by_name("max").expect("built in").name());
}

/// As RocksDB 9.8 writes them.
#[test]
fn options_of_rocksdbs_ttl_databases_tell_that_values_have_times() {
    let read = |line: &str| {
        let text = format!(
            "[Version]\nrocksdb_version=9.8.4\noptions_file_version=1.1\n[DBOptions]\n[CFOptions \"default\"]\n{line}\n"
        );
        OptionsFile::read(&text, DbOptions::default(), &|_| FamilyOptions::default(), true)
    };
    let operator = "merge_operator={id=TtlMergeOperator;user_operator={id=UInt64AddOperator;};}";
    for line in [
        "compaction_filter_factory={id=TtlCompactionFilterFactory;user_filter_factory=nullptr;ttl=3600;}",
        "compaction_filter={id=TtlCompactionFilter;user_filter=nullptr;ttl=3600;}",
        operator,
        "value_ttl_s=60",
    ] {
        let (file, warnings) = read(line).expect(line);
        let family = file.family("default").expect("named");
        assert!(*family.value_times && warnings.is_empty(), "{line}: {warnings:?}");
        let merges = family.merge_operator.as_ref().map(|operator| operator.name().to_owned());
        assert_eq!(merges.as_deref(), (line == operator).then_some("UInt64AddOperator"), "{line}");
    }
    let own = "compaction_filter_factory={id=TtlCompactionFilterFactory;user_filter_factory=mine;ttl=3600;}";
    assert!(read(own).expect_err("the program's own").message().contains("no such factory was supplied"));
    assert!(!*read("merge_operator=uint64add").expect("valid").0.family("default").expect("named").value_times);
}

#[test]
fn settling_and_validating() {
    let mut family = FamilyOptions { level0_file_num_compaction_trigger: 50, ..FamilyOptions::default() };
    assert_eq!(family.settle().len(), 2);
    assert_eq!((family.level0_slowdown_writes_trigger, family.level0_stop_writes_trigger), (50, 50));
    assert_eq!(FamilyOptions::default().settle(), Vec::<String>::new());
    FamilyOptions::default().validate().expect("defaults are valid");
    DbOptions::default().validate().expect("defaults are valid");
    let bad = FamilyOptions { num_levels: 0, ..FamilyOptions::default() };
    assert!(bad.validate().expect_err("out of bounds").message().contains("num_levels"));
    let mut bad = FamilyOptions::default();
    bad.table.index_type = IndexType::HashSearch;
    assert!(bad.validate().expect_err("no extractor").message().contains("prefix_extractor"));
    let mut unpartitioned = FamilyOptions::default();
    unpartitioned.table.partition_filters = true;
    unpartitioned.validate().expect("RocksDB takes it");
    assert!(unpartitioned.settle()[0].contains("partition_filters") && !unpartitioned.table.partition_filters);
}

#[test]
fn every_row_is_documented_and_no_name_is_in_both_tables() {
    for group in fresh() {
        for (row, _) in group.settings() {
            assert!(row.doc.trim().len() > 10, "{}", row.name);
            assert!(group.unhonoured().iter().all(|other| other.name != row.name), "{}", row.name);
        }
    }
    let listed = rows::<FamilyOptions>();
    let style = listed.iter().find(|row| row.name == "num_levels").expect("listed");
    assert_eq!((style.default.as_str(), style.bounds.as_str(), style.mutable), ("7", "1 to 64", false));
}

#[test]
fn values_keep_their_json_types() {
    let value = to_value(&FamilyOptions::default());
    assert_eq!(value["num_levels"], Value::from(7));
    assert_eq!(value["disable_auto_compactions"], Value::Bool(false));
    assert_eq!(value["block_based_table_factory"]["block_size"], Value::from(4096));
    assert_eq!(value["comparator"], Value::from(UserOrder::Bytewise.name()));
    assert_eq!(BuiltinPrefix::parse("fixed:8"), Some(BuiltinPrefix::Fixed(8)));
}

#[test]
fn damaged_files_are_errors_or_less_options_but_never_panics() {
    for cut in 0..BY_7_8.len() {
        // A cut inside a value can leave a valid one; what matters is that every cut is answered.
        let answered = read(&BY_7_8[..cut]).map(|(file, _)| file.families.len());
        assert!(answered.is_err() || answered.is_ok_and(|families| families <= 1));
    }
    for bad in [
        "[",
        "[CFOptions",
        "[CFOptions \"a]",
        "[CFOptions a]",
        "a=1",
        "[DBOptions]\nx",
        "[TableOptions/CuteTable \"a\"]",
        "[CFOptions \"a\"]\n[CFOptions \"a\"]",
        "[TableOptions/BlockBasedTable \"a\"]",
        "[Version]\noptions_file_version=2.0",
    ] {
        let error = read(&format!("{bad}\n")).expect_err(bad);
        assert!(error.message().starts_with("line "), "{bad}: {error}");
    }
}

/// A value that no version of RocksDB has by default.
fn off_default(row: &known::Unhonoured) -> &'static str {
    match row.defaults.first() {
        Some(&"true") if !row.defaults.contains(&"false") => "false",
        Some(&("true" | "false")) => "other",
        Some(default) if default.parse::<f64>().is_ok() => "77",
        _ => "Other",
    }
}

#[test]
fn a_flag_may_be_a_number_and_an_object_have_no_name() {
    let mut seen = 0;
    for row in fresh().iter().flat_map(|group| group.unhonoured()) {
        for (default, other) in [("true", "1"), ("false", "0"), ("nullptr", "")] {
            if row.defaults.contains(&default) {
                assert!(row.is_default(other), "{}={other}", row.name);
                assert!(row.defaults.len() > 1 || !row.is_default("2"), "{}", row.name);
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

/// How a document names an option of a group, alone.
fn document(title: &str, name: &str, text: &str, flag: bool) -> String {
    let accepted = if flag { ", \"ignore_unsupported_options\": true" } else { "" };
    match title {
        "DBOptions" => format!("{{\"{name}\": \"{text}\"{accepted}}}"),
        "CFOptions" => format!("{{\"{name}\": \"{text}\"{accepted}}}"),
        "BlockBasedTable" => format!("{{\"block_based_table_factory\": {{\"{name}\": \"{text}\"}}{accepted}}}"),
        _ => format!("{{\"{title}\": {{\"{name}\": \"{text}\"}}{accepted}}}"),
    }
}

fn option_text(title: &str, name: &str, text: &str) -> String {
    match title {
        "BlockBasedTable" => format!("block_based_table_factory={{{name}={text}}}"),
        "DBOptions" | "CFOptions" => format!("{name}={text}"),
        _ => format!("{title}={{{name}={text}}}"),
    }
}

/// What every door makes of an option: an option string, a document in both syntaxes, an OPTIONS file.
fn through_all_doors(title: &str, name: &str, text: &str, flag: bool) -> Vec<crate::Result<Vec<String>>> {
    fn doors<G: OptionGroup + Default + Clone>(string: &str, document: &str) -> Vec<crate::Result<Vec<String>>> {
        let json = apply_document(&mut G::default(), document, Syntax::Json);
        vec![apply_string(&mut G::default(), string), json, apply_document(&mut G::default(), document, Syntax::Yaml)]
    }
    let option = option_text(title, name, text);
    let accepted = if flag { format!("{option};ignore_unsupported_options=true") } else { option.clone() };
    let document = document(title, name, text, flag);
    let section = if title == "DBOptions" { "[DBOptions]" } else { "[CFOptions \"default\"]" };
    let start = DbOptions { ignore_unsupported_options: flag, ..DbOptions::default() };
    let file = OptionsFile::read(&format!("{section}\n{option}\n"), start, &|_| FamilyOptions::default(), false);
    let mut outcomes = match title {
        "DBOptions" => doors::<DbOptions>(&accepted, &document),
        _ => doors::<FamilyOptions>(&accepted, &document),
    };
    outcomes.push(file.map(|(_, warnings)| warnings));
    outcomes
}

/// The rule: what changes what is stored, kept or found is refused by every door, and passes with the flag; what changes
/// only how is taken by every door, told of, and kept.
#[test]
fn nothing_is_silent_whatever_the_row_and_the_door() {
    let groups: [(&str, &[known::Unhonoured]); 6] = [
        ("DBOptions", known::DB),
        ("CFOptions", known::FAMILY),
        ("BlockBasedTable", known::TABLE),
        ("compression_opts", known::COMPRESSION),
        ("compaction_options_universal", known::UNIVERSAL),
        ("compaction_options_fifo", known::FIFO),
    ];
    for (title, rows) in groups {
        for row in rows {
            let text = off_default(row);
            let silent = row.defaults.is_empty(); // means nothing by itself
            let refused = matches!(row.changes, known::Changes::What(_));
            for outcome in through_all_doors(title, row.name, text, false) {
                match outcome {
                    Err(error) => {
                        assert!(refused && error.kind() == ErrorKind::Unsupported, "{}: {error}", row.name);
                        let message = error.message();
                        assert!(message.contains(row.name) && message.contains(known::IGNORE_UNSUPPORTED), "{message}");
                    }
                    Ok(warnings) => {
                        assert!(!refused, "{} is passed over", row.name);
                        assert_eq!(warnings.len(), usize::from(!silent), "{}: {warnings:?}", row.name);
                    }
                }
            }
            for outcome in through_all_doors(title, row.name, text, true) {
                let warnings = outcome.expect(row.name);
                assert_eq!(warnings.len(), usize::from(!silent), "{}: {warnings:?}", row.name);
            }
        }
    }
}

#[test]
fn what_is_kept_is_told_at_every_opening_and_written() {
    let (mut db, mut family) = (DbOptions::default(), FamilyOptions::default());
    let text = "use_fsync=true;sample_for_compression=7;compaction_options_universal={incremental=true};compression_opts=\
                {parallel_threads=4};block_based_table_factory={filter_policy=ribbonfilter:9.5;index_shortening=\
                kNoShortening}";
    let said = apply_both(&mut db, &mut family, text).expect("only how");
    assert_eq!(said.len(), 6, "{said:?}");
    assert_eq!(db.kept.get("use_fsync"), Some("true"));
    assert_eq!(family.table.filter_policy, FilterPolicy::bloom(9.5));
    assert_eq!(kept::review(&db, false).expect("only how").len(), 1);
    let told = kept::review(&family, false).expect("only how");
    assert_eq!(told.len(), 5, "{told:?}");

    let file = ini::write(&db, &[("default", &family)], Audience::Spillway);
    let (back, _) = read(&file).expect("its own");
    assert_eq!(back.db.kept, db.kept);
    let back = back.family("default").expect("there");
    assert_eq!(back.table.kept.get("index_shortening"), Some("kNoShortening"));
    assert_eq!((&back.kept, &back.compression_opts.kept), (&family.kept, &family.compression_opts.kept));
    let exported = ini::write(&db, &[("default", &family)], Audience::RocksDb);
    assert!(!exported.contains("index_shortening") && !exported.contains("sample_for_compression=7"));
}

#[test]
fn a_retired_option_is_read_and_told_of_and_not_written() {
    let (mut db, mut family) = (DbOptions::default(), FamilyOptions::default());
    let said = apply_both(&mut db, &mut family, "pace_background_writes=true").expect("known");
    assert!(said.is_empty(), "what it was by default: {said:?}");
    let said = apply_both(&mut db, &mut family, "pace_background_writes=false").expect("known");
    assert_eq!(said, ["option `pace_background_writes=false` has no effect any more"]);
    let file = ini::write(&db, &[("default", &family)], Audience::Spillway);
    assert!(!file.contains("pace_background_writes"), "{file}");
}

#[test]
fn an_options_file_says_the_format_version_that_was_asked_for() {
    let mut family = FamilyOptions::default();
    family.table.format_version = 7;
    family.table.kept.set("format_version", "8"); // as who brings options within their bounds
    let text = ini::write(&DbOptions::default(), &[("default", &family)], Audience::Spillway);
    assert!(text.contains("\n  format_version=8\n"), "{text}");
    let (file, warnings) = read(&text).expect("valid");
    let back = &file.family("default").expect("there").table;
    assert_eq!((back.format_version, back.asked_format_version()), (7, 8));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let shared = ini::write(&DbOptions::default(), &[("default", &family)], Audience::RocksDb);
    assert!(shared.contains("\n  format_version=7\n"), "RocksDB opens it: {shared}");
}

#[test]
fn what_a_setter_kept_is_refused_when_it_is_reviewed() {
    let mut family = FamilyOptions::default();
    family.kept.set("compression", "kBZip2Compression");
    let error = kept::review(&family, false).expect_err("bzip2 is not written");
    assert!(error.message().contains("option `compression`") && error.message().contains("kZSTD"), "{error}");
    assert_eq!(kept::review(&family, true).expect("accepted").len(), 1);
    let (mut db, mut family) = (DbOptions::default(), FamilyOptions::default());
    keep_both(&mut db, &mut family, "persist_stats_to_disk=true;enable_blob_files=true").expect("kept");
    assert_eq!(
        (db.kept.get("persist_stats_to_disk"), family.kept.get("enable_blob_files")),
        (Some("true"), Some("true"))
    );
    assert!(kept::review(&db, false).is_err() && kept::review(&family, false).is_err());
    assert_eq!(ini::write(&db, &[("default", &family)], Audience::Spillway).find("blob_files"), None);
}

/// Where no dictionary is written although one was asked for, it is said; the value stays, for getters.
#[test]
fn a_dictionary_that_no_compressor_writes_is_told_of() {
    for (text, is_told) in [
        ("compression=kZSTD;compression_opts={max_dict_bytes=4096}", false),
        ("bottommost_compression=kZSTD;compression_opts={max_dict_bytes=4096}", false),
        ("compression=kLZ4Compression;compression_opts={max_dict_bytes=4096}", true),
        ("compression=kLZ4Compression", false),
    ] {
        let mut options = FamilyOptions::default();
        apply_string(&mut options, text).unwrap();
        let before = options.compression_opts.max_dict_bytes;
        assert_eq!(options.settle().iter().any(|remark| remark.contains("max_dict_bytes")), is_told, "{text}");
        assert_eq!(options.compression_opts.max_dict_bytes, before, "{text}");
    }
}

#[test]
fn what_rocksdb_writes_for_a_universal_family_is_taken() {
    let mut family = FamilyOptions::default();
    let text = "compaction_style=kCompactionStyleUniversal;ttl=2592000;periodic_compaction_seconds=2592000;\
                compaction_options_universal={reduce_file_locking=true;incremental=false;size_ratio=7;max_read_amp=-1}";
    assert_eq!(apply_string(&mut family, text).expect("nobody set the ages"), Vec::<String>::new());
    assert_eq!(family.compaction_style, CompactionStyle::Universal);
    assert_eq!(family.compaction_options_universal.size_ratio, 7);
    assert_eq!(family.age_limits(), AgeLimits { ttl_s: 0, periodic_s: 2_592_000 });
}

/// As RocksDB 11.8.1 writes them into its OPTIONS file.
#[test]
fn ages_count_as_the_style_has_it() {
    let limits = |text: &str| {
        let mut family = FamilyOptions::default();
        apply_string(&mut family, text).expect(text);
        let AgeLimits { ttl_s, periodic_s } = family.age_limits();
        (ttl_s, periodic_s)
    };
    let month = 2_592_000;
    assert_eq!(limits(""), (month, 0));
    assert_eq!(limits("ttl=0;periodic_compaction_seconds=100"), (0, 100));
    let of = |style: &str, text: &str| limits(&format!("compaction_style=kCompactionStyle{style};{text}"));
    assert_eq!(of("Universal", ""), (0, month));
    assert_eq!(of("Universal", "ttl=0"), (0, month));
    assert_eq!(of("Universal", "periodic_compaction_seconds=100"), (0, 100));
    assert_eq!(of("Universal", "ttl=50;periodic_compaction_seconds=100"), (0, 50));
    assert_eq!(of("Universal", "periodic_compaction_seconds=0"), (0, month));
    assert_eq!(of("Universal", "ttl=0;periodic_compaction_seconds=0"), (0, 0));
    assert_eq!(of("FIFO", ""), (month, 0));
    assert_eq!(of("FIFO", "ttl=50;periodic_compaction_seconds=100"), (50, 0));
}

/// RocksDB 7.8 refuses a group with a name it does not know.
#[test]
fn a_group_names_what_7_8_does_not_know_only_when_it_is_set() {
    let mut family = FamilyOptions::default();
    let written = |family: &FamilyOptions| ini::write(&DbOptions::default(), &[("default", family)], Audience::RocksDb);
    assert!(!written(&family).contains("max_read_amp"));
    family.compaction_options_universal.max_read_amp = 0;
    assert!(written(&family).contains("max_read_amp=0;"));
}

#[test]
fn fewer_runs_than_start_a_compaction_are_refused() {
    let mut family = FamilyOptions::default();
    apply_string(&mut family, "compaction_options_universal={max_read_amp=3}").expect("in bounds");
    family.validate().expect("by level");
    family.compaction_style = CompactionStyle::Universal;
    assert!(family.validate().expect_err("the trigger is 4").to_string().contains("max_read_amp"));
}

/// RocksDB's reader of lines drops it.
#[test]
fn a_last_line_without_an_end_is_passed_over_and_told() {
    let family = |_: &str| FamilyOptions::default();
    let text = "[DBOptions]\n  max_open_files=5\n[CFOptions \"default\"]\n  num_levels=3";
    let (file, warnings) = OptionsFile::read(text, DbOptions::default(), &family, false).expect("taken");
    assert_eq!((file.db.max_open_files, file.families[0].1.num_levels), (5, 7));
    assert!(warnings.len() == 1 && warnings[0].contains("`  num_levels=3`"), "{warnings:?}");
    let (file, warnings) =
        OptionsFile::read(&format!("{text}\n  "), DbOptions::default(), &family, false).expect("taken");
    assert_eq!((file.families[0].1.num_levels, warnings.len()), (3, 0));
}
