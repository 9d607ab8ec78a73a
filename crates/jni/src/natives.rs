//! The natives beside those of RocksDB's jars: names, descriptors, and none left out.

#![allow(clippy::disallowed_methods, reason = "a test uses the real file system as other programs do")]

use std::collections::{BTreeMap, BTreeSet};

use crate::boundary::Native;
use crate::{
    batch, callbacks, database, extend, files, iterator, lives, objects, options, perf, statistics, transactions,
};

/// Tables of natives by hand.
const BY_HAND: &[&[Native]] = &[
    callbacks::NATIVES,
    callbacks::comparator::NATIVES,
    callbacks::comparator::native::NATIVES,
    callbacks::filter::NATIVES,
    callbacks::filter::closing::NATIVES,
    callbacks::filter::empty_values::NATIVES,
    callbacks::filter::set::NATIVES,
    callbacks::filter::set::of_options::NATIVES,
    callbacks::flink::NATIVES,
    callbacks::listener::NATIVES,
    callbacks::listener::own_test::NATIVES,
    callbacks::logger::NATIVES,
    callbacks::logger::of_database_options::NATIVES,
    callbacks::logger::of_options::NATIVES,
    callbacks::logger::to_stderr::NATIVES,
    callbacks::own_tests::NATIVES,
    callbacks::own_tests::comparator::NATIVES,
    callbacks::table_filter::NATIVES,
    callbacks::table_filter::set::NATIVES,
    batch::changes::indexed::NATIVES,
    batch::changes::plain::NATIVES,
    batch::contents::helper::NATIVES,
    batch::contents::test::NATIVES,
    batch::handler::NATIVES,
    batch::indexed::NATIVES,
    batch::walk::NATIVES,
    batch::writes::NATIVES,
    database::batches::NATIVES,
    database::exists::NATIVES,
    database::families::NATIVES,
    database::family_handles::NATIVES,
    database::manage::NATIVES,
    database::open::NATIVES,
    database::properties::NATIVES,
    database::ranges::NATIVES,
    database::ranges::memory::NATIVES,
    database::read::NATIVES,
    database::read_many::NATIVES,
    database::snapshots::NATIVES,
    database::snapshots::numbers::NATIVES,
    database::ttl::NATIVES,
    database::write::NATIVES,
    files::backups::NATIVES,
    files::checkpoint::NATIVES,
    files::checkpoint::exported::NATIVES,
    files::checkpoint::import::NATIVES,
    files::compaction_info::NATIVES,
    files::compaction_info::stats::NATIVES,
    files::compaction_info::untold::NATIVES,
    files::ingest::NATIVES,
    files::lists::NATIVES,
    files::properties::NATIVES,
    files::table_reader::NATIVES,
    files::table_reader::iterator::NATIVES,
    files::table_writer::NATIVES,
    files::updates::NATIVES,
    files::updates::made::NATIVES,
    iterator::NATIVES,
    iterator::made::NATIVES,
    transactions::changes::NATIVES,
    transactions::databases::optimistic::NATIVES,
    transactions::databases::pessimistic::NATIVES,
    transactions::life::NATIVES,
    transactions::notifier::NATIVES,
    transactions::reads::NATIVES,
    transactions::reports::NATIVES,
    extend::collector::NATIVES,
    extend::partitioner::NATIVES,
    extend::string_append::NATIVES,
    extend::uint64_add::NATIVES,
    objects::cache::bloom::NATIVES,
    objects::cache::clock::NATIVES,
    objects::cache::hyper_clock::NATIVES,
    objects::cache::lru::NATIVES,
    objects::cache::usage::NATIVES,
    objects::env::any::NATIVES,
    objects::env::memory::NATIVES,
    objects::env::timed::NATIVES,
    objects::file_manager::NATIVES,
    objects::limiter::rate::NATIVES,
    objects::limiter::tasks::NATIVES,
    objects::limiter::write_buffers::NATIVES,
    objects::env::of_database::NATIVES,
    objects::slice::any::NATIVES,
    objects::slice::of_array::NATIVES,
    objects::slice::of_buffer::NATIVES,
    objects::threads::NATIVES,
    objects::threads::names::NATIVES,
    options::backup::others::NATIVES,
    options::backup::restore::NATIVES,
    options::calls::cancel::NATIVES,
    options::calls::ingest_made::NATIVES,
    options::calls::write_copy::NATIVES,
    options::comparator::NATIVES,
    options::config::NATIVES,
    options::env::others::NATIVES,
    options::files::NATIVES,
    options::lives::both::NATIVES,
    options::lives::of_database::NATIVES,
    options::lives::of_family::NATIVES,
    options::objects::collectors::NATIVES,
    options::read::others::NATIVES,
    options::table::hash_linked_list::NATIVES,
    options::table::hash_skip_list::NATIVES,
    options::table::of_blocks::NATIVES,
    options::table::plain::NATIVES,
    options::table::skip_list::NATIVES,
    options::table::vector::NATIVES,
    options::transactions::order::NATIVES,
    perf::NATIVES,
    perf::counts::NATIVES,
    perf::level::NATIVES,
    statistics::NATIVES,
];

/// Tables of several classes, and of setters and getters.
const SETTINGS: &[&[&[Native]]] = &[
    callbacks::listener::set::NATIVES,
    lives::NATIVES,
    options::backup::NATIVES,
    options::calls::compact_range::NATIVES,
    options::calls::compact_tables::NATIVES,
    options::calls::flush::NATIVES,
    options::calls::import::NATIVES,
    options::calls::ingest_files::NATIVES,
    options::calls::write::NATIVES,
    options::compression::NATIVES,
    options::database::NATIVES,
    options::env::NATIVES,
    options::family::NATIVES,
    options::lives::presets::NATIVES,
    options::objects::of_database::NATIVES,
    options::objects::of_family::NATIVES,
    options::read::NATIVES,
    options::styles::fifo::NATIVES,
    options::styles::universal::NATIVES,
    options::transactions::of_database::NATIVES,
    options::transactions::optimistic::NATIVES,
    options::transactions::pessimistic::NATIVES,
];

const JARS: &str = include_str!("../natives.tsv");

/// Symbols with their descriptors.
fn jars() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut symbols: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for line in JARS.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let (symbol, descriptor) = (fields.next().unwrap(), fields.next().unwrap());
        symbols.entry(symbol).or_default().insert(descriptor);
    }
    symbols
}

fn ours() -> impl Iterator<Item = &'static Native> {
    BY_HAND.iter().copied().flatten().chain(SETTINGS.iter().copied().flatten().copied().flatten())
}

/// The first type of a descriptor, and the rest.
fn split_type(text: &str) -> (&str, &str) {
    let element = text.find(|c| c != '[').unwrap();
    let end = if text[element..].starts_with('L') { text.find(';').unwrap() } else { element };
    text.split_at(end + 1)
}

fn types(descriptor: &str) -> (Vec<&str>, &str) {
    let (mut rest, result) = descriptor.strip_prefix('(').unwrap().split_once(')').unwrap();
    let mut parameters = Vec::new();
    while !rest.is_empty() {
        let (one, others) = split_type(rest);
        parameters.push(one);
        rest = others;
    }
    (parameters, result)
}

/// Whether a type of ours is the descriptor's; `L*` is any class, `[*` any array of objects.
fn is_type(ours: &str, theirs: &str) -> bool {
    match ours {
        "L*" => theirs.starts_with('L'),
        "[*" => theirs.starts_with("[L") || theirs.starts_with("[["),
        _ => ours == theirs,
    }
}

fn matches(native: &Native, descriptor: &str) -> bool {
    let (parameters, result) = types(descriptor);
    parameters.len() == native.parameters.len()
        && native.parameters.iter().zip(&parameters).all(|(ours, theirs)| is_type(ours, theirs))
        && is_type(native.result, result)
}

/// The symbols in the list of the jars that a native of ours serves: by its name, and by the short one of a long name.
fn in_jars(jars: &BTreeMap<&'static str, BTreeSet<&'static str>>, symbol: &str, native: &Native) -> Vec<&'static str> {
    let names = [Some(symbol), symbol.split_once("__").map(|(short, _)| short)];
    let known = names.into_iter().flatten().filter_map(|name| jars.get_key_value(name));
    known.filter(|(_, forms)| forms.iter().any(|form| matches(native, form))).map(|(symbol, _)| *symbol).collect()
}

#[test]
fn natives_are_those_of_the_jars() {
    let jars = jars();
    let mut covered: BTreeMap<&str, usize> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for native in ours() {
        let symbol = format!("{}_{}", native.class, native.method);
        let known = in_jars(&jars, &symbol, native);
        assert!(!known.is_empty(), "no jar has {symbol} as ({}){}", native.parameters.concat(), native.result);
        known.into_iter().for_each(|known| *covered.entry(known).or_default() += 1);
        assert!(seen.insert(symbol.clone()), "{symbol} is there twice");
    }
    for (symbol, count) in &covered {
        let forms = jars[symbol].len();
        assert!(*count == 1 || *count == forms, "{symbol}: {count} of {forms} forms");
    }
    let mut list = String::from("absent! {\n");
    for (symbol, descriptors) in jars.iter().filter(|(symbol, _)| !covered.contains_key(*symbol)) {
        let method = symbol.split_once('_').unwrap().1;
        let result = descriptors.iter().next().unwrap().split_once(')').unwrap().1;
        let kind = match result {
            "D" => "double",
            _ if method.starts_with("dispose") => "closing",
            _ => "plain",
        };
        list += &format!("    {kind} \"{symbol}\"\n");
    }
    list += "}\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/absent/list.rs");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &list).unwrap();
    }
    let now = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(now, list, "the list of absent natives is old: UPDATE=1 cargo test -p spillway-db-jni natives");
}
