//! The place of a C setter's option among a database's: group, name and words.

use spillway::internal::options::kept::Kept as Texts;
use spillway::internal::options::known::{self, Unhonoured};
use spillway::internal::options::row::OptionGroup;
use spillway::internal::options::{CompressionOptions, DbOptions, FamilyOptions, TableOptions};

use super::Options;
use super::table::BlockBasedOptions;
use crate::kept::Keeps;
use crate::kept::number::Number;

/// Names shortened by C.
const RENAMED: [(&str, &str); 3] = [
    ("blob_gc_age_cutoff", "blob_garbage_collection_age_cutoff"),
    ("blob_gc_force_threshold", "blob_garbage_collection_force_threshold"),
    ("enable_blob_gc", "enable_blob_garbage_collection"),
];

/// Prefix of names of `compression_opts`.
const OF_COMPRESSION: &str = "compression_options_";

const COMPRESSIONS: &[(i128, &str)] = &[
    (0, "kNoCompression"),
    (1, "kSnappyCompression"),
    (2, "kZlibCompression"),
    (3, "kBZip2Compression"),
    (4, "kLZ4Compression"),
    (5, "kLZ4HCCompression"),
    (6, "kXpressCompression"),
    (7, "kZSTD"),
    (0x40, "kZSTDNotFinalCompression"),
    (0xff, "kDisableCompressionOption"),
];

/// Words for numbers, as written by option strings.
const WORDS: [(&str, &[(i128, &str)]); 11] = [
    ("access_hint_on_compaction_start", &[(0, "NONE"), (1, "NORMAL"), (2, "SEQUENTIAL"), (3, "WILLNEED")]),
    ("compression", COMPRESSIONS),
    ("bottommost_compression", COMPRESSIONS),
    ("blob_compression_type", COMPRESSIONS),
    ("wal_compression", COMPRESSIONS),
    (
        "compaction_style",
        &[
            (0, "kCompactionStyleLevel"),
            (1, "kCompactionStyleUniversal"),
            (2, "kCompactionStyleFIFO"),
            (3, "kCompactionStyleNone"),
        ],
    ),
    ("prepopulate_blob_cache", &[(0, "kDisable"), (1, "kFlushOnly")]),
    ("prepopulate_block_cache", &[(0, "kDisable"), (1, "kFlushOnly")]),
    ("index_block_search_type", &[(0, "kBinary"), (1, "kInterpolation")]),
    ("index_shortening", &[(0, "kNoShortening"), (1, "kShortenSeparators"), (2, "kShortenSeparatorsAndSuccessor")]),
    (
        "info_log_level",
        &[
            (0, "DEBUG_LEVEL"),
            (1, "INFO_LEVEL"),
            (2, "WARN_LEVEL"),
            (3, "ERROR_LEVEL"),
            (4, "FATAL_LEVEL"),
            (5, "HEADER_LEVEL"),
        ],
    ),
];

/// The words of an option set by number in C, if it has words.
pub fn words(option: &str) -> Option<&'static [(i128, &'static str)]> {
    WORDS.iter().find(|(name, _)| *name == option).map(|(_, words)| *words)
}

/// A group of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Db,
    Family,
    Table,
    Compression,
}

/// The group and the name there. `None` for options of C only.
fn home(name: &'static str) -> Option<(Home, &'static str)> {
    if let Some(inner) = name.strip_prefix(OF_COMPRESSION) {
        return Some((Home::Compression, inner));
    }
    let option = RENAMED.iter().find(|(short, _)| *short == name).map_or(name, |(_, option)| *option);
    let is_in = |rows: &[Unhonoured]| rows.iter().any(|row| row.name == option);
    if is_in(known::DB) || DbOptions::default().find_mut(option).is_some() {
        return Some((Home::Db, option));
    }
    if is_in(known::FAMILY) || FamilyOptions::default().find_mut(option).is_some() {
        return Some((Home::Family, option));
    }
    (is_in(known::TABLE) || TableOptions::default().find_mut(option).is_some()).then_some((Home::Table, option))
}

fn row(option: &str) -> Option<&'static Unhonoured> {
    let mut rows = [known::DB, known::FAMILY, known::TABLE, known::COMPRESSION].into_iter().flatten();
    rows.find(|row| row.name == option)
}

/// The number in option string form.
fn text(option: &str, number: Number) -> String {
    if let Some(words) = words(option) {
        let word = words.iter().find(|(known, _)| Number::Integer(*known) == number);
        return word.map_or_else(|| number.text(false), |(_, word)| (*word).to_owned());
    }
    let is_flag = row(option).is_some_and(|row| row.defaults.iter().any(|text| ["true", "false"].contains(text)));
    number.text(is_flag)
}

/// The number for a text.
fn number(option: &str, text: &str) -> Option<Number> {
    let word = words(option).and_then(|words| words.iter().find(|(_, word)| *word == text));
    word.map(|(number, _)| Number::Integer(*number)).or_else(|| Number::parse(text))
}

/// Keeps a value unless it is the default of every RocksDB version.
fn put(texts: &mut Texts, option: &str, value: Number) {
    let text = text(option, value);
    let silent = row(option).is_some_and(|row| row.defaults.len() == 1 && row.is_default(&text));
    if silent { texts.remove(option) } else { texts.set(option, &text) }
}

/// Keeps a value Spillway's option did not take. The open notes a number (the option has the nearest valid one), and
/// refuses a word.
fn put_field(texts: &mut Texts, option: &str, value: Number, taken: bool) {
    if taken {
        texts.remove(option);
    } else {
        texts.set(option, &text(option, value));
    }
}

impl Options {
    fn texts(&mut self, home: Home) -> &mut Texts {
        match home {
            Home::Db => &mut self.db.kept,
            Home::Family => &mut self.family.kept,
            Home::Table => &mut self.family.table.kept,
            Home::Compression => compression_texts(&mut self.family.compression_opts),
        }
    }

    fn text(&self, home: Home, option: &str) -> Option<&str> {
        match home {
            Home::Db => self.db.kept.get(option),
            Home::Family => self.family.kept.get(option),
            Home::Table => self.family.table.kept.get(option),
            Home::Compression => self.family.compression_opts.kept.get(option),
        }
    }
}

fn compression_texts(options: &mut CompressionOptions) -> &mut Texts {
    &mut options.kept
}

impl Keeps for Options {
    fn keep(&mut self, name: &'static str, number: Number, default: Number) {
        match home(name) {
            Some((home, option)) => put(self.texts(home), option, number),
            None => self.numbers.keep(name, number, default),
        }
    }

    fn keep_field(&mut self, name: &'static str, number: Number, taken: bool) {
        match home(name) {
            Some((home, option)) => put_field(self.texts(home), option, number, taken),
            None => self.numbers.keep_field(name, number, taken),
        }
    }

    fn kept(&self, name: &'static str) -> Option<Number> {
        match home(name) {
            Some((home, option)) => self.text(home, option).and_then(|text| number(option, text)),
            None => self.numbers.kept(name),
        }
    }
}

impl Keeps for BlockBasedOptions {
    fn keep(&mut self, name: &'static str, number: Number, default: Number) {
        match home(name) {
            Some((_, option)) => put(&mut self.table.kept, option, number),
            None => self.numbers.keep(name, number, default),
        }
    }

    fn keep_field(&mut self, name: &'static str, number: Number, taken: bool) {
        match home(name) {
            Some((_, option)) => put_field(&mut self.table.kept, option, number, taken),
            None => self.numbers.keep_field(name, number, taken),
        }
    }

    fn kept(&self, name: &'static str) -> Option<Number> {
        match home(name) {
            Some((_, option)) => self.table.kept.get(option).and_then(|text| number(option, text)),
            None => self.numbers.kept(name),
        }
    }
}
