//! Documents as text. `UPDATE=1 cargo test -p spillway-db config` writes the expected outcomes anew.

use std::path::{Path, PathBuf};

use base::ErrorKind;
use base::options::tree::Syntax;
use vfs::memory::MemoryVfs;
use vfs::{IfExists, IoClass, Vfs};

use super::*;
use crate::internal::{ReadOptions, WriteOptions};

fn read(text: &str, syntax: Syntax) -> Result<Config> {
    Config::from_str(text, syntax, &Start::default())
}

/// JSON where it begins so, else YAML.
fn syntax_of(text: &str) -> Syntax {
    if text.starts_with('{') { Syntax::Json } else { Syntax::Yaml }
}

fn outcome(input: &str) -> String {
    let config = match read(input, syntax_of(input)) {
        Ok(config) => config,
        Err(error) => return format!("{:?}: {}\n", error.kind(), error.message()),
    };
    let mut text: String = config.databases().iter().map(|database| database.describe(false)).collect();
    if let Ok(meant) = config.database(None) {
        text += &format!("opens {}\n", meant.name);
    }
    config.warnings().iter().for_each(|warning| text += &format!("warning: {warning}\n"));
    text
}

/// Cases are parted by empty lines: a document, `----`, what it comes to.
fn check(name: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/testdata").join(name);
    let real = vfs::RealVfs::new();
    let text = String::from_utf8(vfs::read_all(&*real, &path, 1 << 20, IoClass::Other).unwrap()).unwrap();
    let mut written = Vec::new();
    for case in text.split("\n\n").filter(|case| !case.trim().is_empty()) {
        let input = case.split_once("\n----").map_or(case, |(input, _)| input).trim_matches('\n');
        written.push(format!("{input}\n----\n{}", outcome(input)));
    }
    let written = written.join("\n");
    if std::env::var_os("UPDATE").is_some() {
        let mut file = real.create(&path, IfExists::Truncate).unwrap();
        file.append(written.as_bytes(), IoClass::Other).unwrap();
        return;
    }
    assert_eq!(text, written, "{name}; UPDATE=1 rewrites it");
}

#[test]
fn documents_that_are_good() {
    check("good.txt");
}

#[test]
fn documents_with_unknown_names() {
    check("unknown.txt");
}

#[test]
fn documents_with_bad_values() {
    check("values.txt");
}

#[test]
fn table_factories() {
    check("tables.txt");
}

#[test]
fn what_of_toplingdb_is_not_here() {
    check("foreign.txt");
}

#[test]
fn databases_open_by_name_and_share_their_cache() {
    let text = "Cache: {lru: {class: LRUCache, params: {capacity: 8M}}}\n\
                TableFactory: {bb: {class: BlockBasedTable, params: {block_cache: lru}}}\n\
                CFOptions:\n  plain: {table_factory: bb}\n  bulk: {template: plain, memtable_factory: Vector}\n\
                DBOptions:\n  new: {create_if_missing: true, create_missing_column_families: true}\n\
                databases:\n  a: {params: {db_options: new, column_families: {default: plain, bulk: bulk}}}\n  \
                b: {params: {path: /elsewhere/b, db_options: new, cf_options: plain}}\nopen: b\n";
    let config = read(text, Syntax::Yaml).unwrap();
    assert_eq!(config.warnings(), Vec::<String>::new());
    let vfs: std::sync::Arc<dyn Vfs> = MemoryVfs::new(1);
    let [a, b] = config.databases() else { panic!("two") };
    let (a_options, b_options) = (a.open_options(vfs.clone()), b.open_options(vfs.clone()));
    let (a_cache, b_cache) = (a_options.block_cache.clone().unwrap(), b_options.block_cache.clone().unwrap());
    assert!(std::sync::Arc::ptr_eq(&a_cache, &b_cache), "the same object is the same cache");

    let db = Database::open(&a.path, &a_options).unwrap();
    let bulk = db.family("bulk").unwrap();
    db.put(&bulk, b"k", b"v", &WriteOptions::default()).unwrap();
    assert_eq!(db.get(&bulk, b"k", &ReadOptions::default()).unwrap().as_deref(), Some(&b"v"[..]));
    assert!(bulk.options().memtable_factory.starts_with("vector"));
    db.close().unwrap();
    assert_eq!(config.database(None).unwrap().path, Path::new("/elsewhere/b"));
    assert_eq!(config.database(Some("a")).unwrap().path, Path::new("a"));
    let error = config.database(Some("c")).err().unwrap();
    assert!(error.message().contains("it has: a, b"), "{error}");
}

#[test]
fn files_tell_their_names() {
    let vfs = MemoryVfs::new(1);
    let path = Path::new("/conf/app.yaml");
    vfs.create_dir_all(Path::new("/conf")).unwrap();
    vfs.write_file(path, b"open: x\n").unwrap();
    let error = Config::from_file(&*vfs, path, &Start::default()).err().unwrap();
    assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some(path)));
    assert!(error.message().starts_with("line 1, column 7: open: there is no `x`"), "{error}");
    vfs.write_file(path, &[0xff, 0xfe]).unwrap();
    assert!(Config::from_file(&*vfs, path, &Start::default()).is_err());
}

/// Not a golden text: which memtables there are changes.
#[test]
fn unknown_memtables_are_named_where_they_stand() {
    for (text, place) in [
        ("MemTableRepFactory:\n  m: { class: SkipLits }\n", "line 2, column 15: MemTableRepFactory.m.class: "),
        ("CFOptions: { a: { memtable_factory: SkipLits } }\n", "line 1, column 37: CFOptions.a.memtable_factory: "),
    ] {
        let error = read(text, Syntax::Yaml).err().unwrap();
        assert!(error.message().starts_with(place) && error.message().contains("SkipList"), "{error}");
    }
}

const RUNS_OF_5K: &str = r#"sorted_hash:{"bucket_count":400000,"run_entries":5120}"#;

#[test]
fn every_class_of_memtable_is_known() {
    for (class, params, expected) in [
        ("cspp", "{ mem_cap: 16G, use_vm: true }", &["trie", "cspp"][..]),
        ("CSPPMemTab", "", &["trie", "cspp"]),
        ("trie", "", &["trie"]),
        ("speedb.HashSpdRepFactory", "{ bucket_count: 400000 }", &["sorted_hash", "hash_spdb"]),
        ("hash_spdb", "{ hash_bucket_count: 400000, use_merge: true, run_entries: 5K }", &[RUNS_OF_5K]),
        ("HashSkipList", "{ bucket_count: 1000 }", &["sorted_hash", "prefix_hash"]),
        ("HashLinkList", "{ bucket_count: 1000 }", &["sorted_hash", "hash_linkedlist"]),
        ("sorted_hash", "", &["sorted_hash"]),
        ("SkipList", "{ lookahead: 0 }", &["skip_list"]),
        ("Vector", "{ count: 7 }", &["vector"]),
    ] {
        let text = format!(
            "MemTableRepFactory: {{ m: {{ class: {class}, params: {params} }} }}\n\
             databases: {{ d: {{ params: {{ cf_options: {{ memtable_factory: $m }} }} }} }}\n"
        );
        let config = read(&text, Syntax::Yaml).unwrap_or_else(|error| panic!("{class}: {error}"));
        let choice = config.databases()[0].families[0].1.memtable_factory.clone();
        assert!(expected.iter().any(|name| choice.starts_with(name)), "{class}: {choice}");
        assert_eq!(super::objects::canonical_memtable(&choice).unwrap(), choice, "{class}");
    }
}

#[test]
fn table_factories_can_stand_in_their_place() {
    let text = "databases: {d: {params: {cf_options: {table_factory: VALUE}}}}";
    for (value, expected) in [
        ("SingleFastTable", "SingleFastTable"),
        ("{class: SingleFastTable}", "SingleFastTable"),
        ("'ToplingZipTable:{\"builderMinLevel\":2}'", "ToplingZipTable:{\"builderMinLevel\":2}"),
        ("{class: DispatcherTable, params: {default: {class: SingleFastTable}}}", "SingleFastTable"),
    ] {
        let config = read(&text.replace("VALUE", value), Syntax::Yaml).unwrap();
        assert_eq!(config.databases()[0].families[0].1.table_factory.to_string(), expected);
    }
}

#[test]
fn what_the_program_supplies_can_be_named() {
    let start = Start {
        family: FamilyOptions { merge_operator: Some(std::sync::Arc::new(Mine)), ..FamilyOptions::default() },
        ..Start::default()
    };
    let text = "CFOptions: {f: {merge_operator: mine}}\ndatabases: {d: {params: {cf_options: f}}}\n";
    let config = Config::from_str(text, Syntax::Yaml, &start).unwrap();
    assert_eq!(config.databases()[0].families[0].1.merge_operator.as_ref().unwrap().name(), "mine");
    assert!(read(text, Syntax::Yaml).err().unwrap().message().contains("merge operator `mine` is unknown"));
}

struct Mine;

impl base::extend::MergeOperator for Mine {
    fn name(&self) -> &str {
        "mine"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn cut_and_garbled_documents_are_answered() {
    let text = "MemTableRepFactory: {m: {class: SkipList, params: {lookahead: 3}}}\nCache: {c: {class: LRUCache, params: \
                {capacity: 1M}}}\nCFOptions: {d: {memtable_factory: \"${m}\", template: e}, e: {num_levels: 3}}\n\
                databases: {x: {params: {cf_options: d}}}\nopen: x\n";
    read(text, Syntax::Yaml).unwrap();
    for at in 0..text.len() {
        let _ = read(&text[..at], Syntax::Yaml); // either way, without a panic
        let _ = read(&text[at..], Syntax::Yaml);
        for with in ["[", "}", "null", ": &a *a", "$"] {
            let garbled = format!("{}{with}{}", &text[..at], &text[at + 1..]);
            if let Err(error) = read(&garbled, Syntax::Yaml) {
                assert_ne!(error.kind(), ErrorKind::Corruption, "{garbled}");
            }
        }
    }
}

/// A check of the document and the event log of the open tell the same.
#[test]
fn options_without_effect_beside_others_are_told() {
    let text = "
CFOptions:
  kept: { memtable_factory: { class: trie, params: { mem_cap: 1M } } }
  hash: { memtable_factory: { class: sorted_hash, params: { bucket_count: 100M } } }
DBOptions: { dbo: { memtable_as_log_index: true, create_if_missing: true, create_missing_column_families: true } }
databases: { d: { params: { path: /db, db_options: dbo, column_families: { default: kept, more: hash } } } }
";
    let config = read(text, Syntax::Yaml).expect("it is well-formed");
    let (vfs, database) = (MemoryVfs::new(1), config.database(None).expect("one"));
    vfs.set_runs_inline(false); // or there is no LOG
    Database::open(&database.path, &database.open_options(vfs.clone())).expect("opens").close().expect("closes");
    let log = vfs::read_all(&*vfs, Path::new("/db/LOG"), 1 << 20, IoClass::Other).expect("there");
    let log = String::from_utf8(log).expect("text");
    let told = [
        ("default", "write_buffer_size (64M) has no effect: memtables are full at mem_cap (1M)"),
        (
            "default",
            "memtable_as_log_index has no effect: the trie holds its values where convert_to_sst is kDontConvert",
        ),
        ("more", "bucket_count (104857600) is cut to 2099200: buckets take a quarter of the memtable at most"),
        (
            "more",
            "memtable_as_log_index has no effect: a sorted_hash holds its values; skip_list and trie can leave them",
        ),
    ];
    let of_check: Vec<_> = told.map(|(family, what)| format!("database d, column family \"{family}\": {what}")).into();
    assert_eq!(config.warnings(), of_check);
    for (family, what) in told {
        let line = format!("column family \"{family}\": {what}");
        assert_eq!(
            log.lines().filter(|log| log.contains("[WARN]") && log.ends_with(&line)).count(),
            1,
            "{line}:\n{log}"
        );
    }
}

/// The size of level 1 that counts is shown, whether or not it was written down.
#[test]
fn level_one_follows_the_write_buffer_in_what_a_check_shows() {
    let text = "databases: {d: {params: {cf_options: {write_buffer_size: 2G, memtable_factory: {class: trie, params: \
                {convert_to_sst: kFileMmap}}}}}}";
    let shown = read(text, Syntax::Yaml).expect("valid").databases()[0].describe(false);
    assert!(shown.contains("max_bytes_for_level_base=2147483648\n"), "{shown}");
}

/// What the document says in vain stands in the event log too, each remark once: options that are kept are told of by the
/// open itself.
#[test]
fn the_event_log_has_every_remark_once() {
    let text = "
Cache: { lru: { class: LRUCache, params: { capacity: 1M, strict_capacity_limit: true, low_pri_pool_ratio: 0.7 } } }
TableFactory: { bb: { class: BlockBasedTable, params: { block_cache: lru } } }
DBOptions: { dbo: { ignore_unsupported_options: true, persist_stats_to_disk: true, use_fsync: true, create_if_missing: true } }
CFOptions: { cfo: { table_factory: bb, sample_for_compression: 7 } }
databases: { d: { params: { path: /db, db_options: dbo, cf_options: cfo } } }
";
    let config = Config::from_str(text, Syntax::Yaml, &Start::default()).expect("it is well-formed");
    assert_eq!(config.warnings().len(), 4, "{:?}", config.warnings());
    let (vfs, database) = (MemoryVfs::new(1), config.database(None).expect("one"));
    vfs.set_runs_inline(false); // or there is no LOG
    let db = Database::open(&database.path, &database.open_options(vfs.clone())).expect("opens");
    db.close().expect("closes");
    let log = vfs::read_all(&*vfs, Path::new("/db/LOG"), 1 << 20, IoClass::Other).expect("there");
    let log = String::from_utf8(log).expect("text");
    let told = |what: &str| log.lines().filter(|line| line.contains("[WARN]") && line.contains(what)).count();
    assert!(database.open_options(vfs).block_cache.is_some_and(|cache| cache.is_strict()));
    for what in ["low_pri_pool_ratio", "persist_stats_to_disk", "use_fsync", "sample_for_compression"] {
        assert_eq!(told(what), 1, "{what}:\n{log}");
    }
}
