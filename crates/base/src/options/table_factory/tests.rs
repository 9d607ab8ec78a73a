use super::*;
use crate::error::ErrorKind;
use crate::options::{
    Audience, DbOptions, FamilyOptions, OptionsFile, ZipTableOptions, apply_document, apply_string, apply_value, ini,
    to_value,
};

const BY_LEVEL: &str =
    "DispatcherTable:{\"default\":\"SingleFastTable\",\"level_writers\":[\"SingleFastTable\",\"BlockBasedTable\"]}";

/// Choices as they are written.
const CHOICES: [&str; 8] = [
    "BlockBasedTable",
    "SingleFastTable",
    "ToplingZipTable",
    "VecAutoSortTable:{\"memory_bytes\":131072}",
    "ToplingZipTable:{\"builderMinLevel\":3}",
    BY_LEVEL,
    "ToplingZipTable:{\"localTempDir\":\"/a b;{c}:d#\"}",
    "DispatcherTable:{\"default\":\"BlockBasedTable\",\"level_writers\":[{\"class\":\"ToplingZipTable\",\"params\":\
     {\"builderMinLevel\":2}}]}",
];

fn family(choice: &str) -> FamilyOptions {
    let table_factory = TableFactory::parse(choice, &mut Load::default()).expect(choice);
    FamilyOptions { table_factory, ..FamilyOptions::default() }
}

fn zip_from(level: usize) -> TableKind {
    TableKind::Zip(ZipTableOptions { builder_min_level: level, ..ZipTableOptions::default() })
}

#[test]
fn choices_round_trip_through_every_syntax() {
    for choice in CHOICES {
        let given = family(choice);
        assert_eq!(given.table_factory.to_string(), choice);
        let mut back = FamilyOptions::default();
        apply_string(&mut back, &string::print(&given)).expect(choice);
        assert_eq!(back.table_factory, given.table_factory);
        let value = to_value(&given);
        let mut back = FamilyOptions::default();
        apply_value(&mut back, &value).expect(choice);
        assert_eq!(back.table_factory, given.table_factory);
        for syntax in [Syntax::Json, Syntax::Yaml] {
            let mut back = FamilyOptions::default();
            apply_document(&mut back, &value.to_string(), syntax).expect(choice);
            assert_eq!(back.table_factory, given.table_factory, "{syntax:?}");
        }
        let file = ini::write(&DbOptions::default(), &[("default", &given)], Audience::Spillway);
        let start = &|_: &str| FamilyOptions::default();
        let (read, warnings) = OptionsFile::read(&file, DbOptions::default(), start, false).expect(choice);
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(read.family("default").expect("there").table_factory, given.table_factory);
    }
}

#[test]
fn rocksdb_is_told_of_no_choice() {
    let file = ini::write(&DbOptions::default(), &[("default", &family(BY_LEVEL))], Audience::RocksDb);
    assert!(!file.contains("table_factory") && file.contains("[TableOptions/BlockBasedTable \"default\"]"), "{file}");
}

#[test]
fn option_strings_and_documents_take_choices_as_users_write_them() {
    let by_level = BY_LEVEL;
    for (text, expected) in [
        ("table_factory=SingleFastTable", "SingleFastTable"),
        ("table_factory={id=ToplingZipTable;builderMinLevel=3;}", CHOICES[4]),
        ("table_factory={id=BlockBasedTable}", "BlockBasedTable"),
        (
            "table_factory=DispatcherTable:{\"default\":\"SingleFastTable\",\"level_writers\":[\"SingleFastTable\",\
             \"BlockBased\"]};num_levels=5",
            by_level,
        ),
        ("table_factory={DispatherTable:{\"default\":\"SingleFastTable\"}}", "SingleFastTable"),
    ] {
        let mut family = FamilyOptions::default();
        let warnings = apply_string(&mut family, text).expect(text);
        assert_eq!((family.table_factory.to_string().as_str(), warnings.len()), (expected, 0), "{text}");
    }
    for (text, expected) in [
        ("table_factory: {class: SingleFastTable}", "SingleFastTable"),
        ("table_factory: {ToplingZipTable: {builderMinLevel: 3}}", CHOICES[4]),
        (
            "table_factory:\n  class: DispatcherTable\n  params:\n    default: {class: SingleFastTable}\n    readers: \
             {CSPPMemTabTable: CSPPMemTabTable, BlockBasedTable: BlockBased}\n    level_writers: [SingleFastTable, \
             {class: BlockBasedTable}]\n",
            by_level,
        ),
    ] {
        let mut family = FamilyOptions::default();
        let warnings = apply_document(&mut family, text, Syntax::Yaml).expect(text);
        assert_eq!((family.table_factory.to_string().as_str(), warnings.len()), (expected, 0), "{text}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, kind, expected) in [
        ("SingleFastTabel", ErrorKind::InvalidArgument, "there is no class `SingleFastTabel`; did you mean"),
        ("SimpleTopTable", ErrorKind::Unsupported, "class `SimpleTopTable`: it is neither"),
        ("CSPPMemTabTable", ErrorKind::InvalidArgument, "`CSPPMemTabTable` is for readers"),
        ("DispatcherTable", ErrorKind::InvalidArgument, "class `DispatcherTable` needs `default`"),
        (
            "{class: BlockBasedTable, params: {block_size: 8K}}",
            ErrorKind::InvalidArgument,
            "column 50: \
          table_factory.params.block_size: the options of block-based tables stand in block_based_table_factory",
        ),
        (
            "{class: ToplingZipTable, params: {sampleRation: 1}}",
            ErrorKind::InvalidArgument,
            "column 50: \
          table_factory.params.sampleRation: ToplingZipTable has no parameter `sampleRation`",
        ),
        (
            "{class: ToplingZipTable, params: {builderMinLevel: 64}}",
            ErrorKind::InvalidArgument,
            "`64` is out of bounds",
        ),
        (
            "{class: DispatcherTable, params: {default: BlockBasedTable, level_writers: BlockBasedTable}}",
            ErrorKind::InvalidArgument,
            "this should be a list with one writer for each level",
        ),
        (
            "{class: DispatcherTable, params: {default: BlockBasedTable, readers: {SingleFastTable: BlockBasedTable}}}",
            ErrorKind::InvalidArgument,
            "files of `SingleFastTable` are not read by an object of class `BlockBasedTable`",
        ),
    ] {
        let text = format!("table_factory: {text}");
        let mut family = FamilyOptions::default();
        let error = apply_document(&mut family, &text, Syntax::Yaml).expect_err(&text);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(expected), "{error}");
        assert_eq!(family.table_factory, TableFactory::default());
    }
    let many = vec![TableKind::BlockBased; LEVEL_WRITERS_MAX + 1];
    assert!(TableFactory::by_level(TableKind::BlockBased, many).is_err());
    let bad = FamilyOptions { table_factory: zip_from(64).into(), ..FamilyOptions::default() };
    assert!(bad.validate().expect_err("out of bounds").message().contains("option `table_factory`: ToplingZipTable"));
}

#[test]
fn parameters_without_effect_are_warned_about() {
    let text =
        "table_factory: {class: SingleFastTable, params: {indexType: MainPatricia, keyPrefixLen: 4, debugLevel: 0}}";
    let warnings = apply_document(&mut FamilyOptions::default(), text, Syntax::Yaml).expect("valid");
    assert_eq!(warnings, ["line 1, column 75: table_factory.params.keyPrefixLen: this has no effect here"]);
}

#[test]
fn levels_have_their_writers() {
    let kinds = vec![TableKind::SingleFast, TableKind::BlockBased, zip_from(4)];
    let factory = TableFactory::by_level(TableKind::SingleFast, kinds).expect("valid");
    let names: Vec<_> = (0..7).map(|level| factory.at_level(level).name()).collect();
    let (fast, blocks, zip) = ("SingleFastTable", "BlockBasedTable", "ToplingZipTable");
    // From level 4 on the zip writer writes; above, where it is asked, the default does.
    assert_eq!(names, [fast, blocks, fast, fast, zip, zip, zip]);
    assert_eq!(TableFactory::from(TableKind::SingleFast).at_level(5), &TableKind::SingleFast);
    assert!(TableKind::BlockBased.same_format(&TableKind::AutoSort(Default::default())));
    assert!(!TableKind::BlockBased.same_format(&TableKind::SingleFast));
}
