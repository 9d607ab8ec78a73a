//! The memtable option: a representation by name, with its parameters.

use std::fmt;
use std::ops::Deref;

use serde_json::{Map, Value};

use crate::error::Result;
use crate::options::row::{Load, Setting};
use crate::options::string;
use crate::options::table_kind::class_and_params;
use crate::options::tree::Node;

/// A family's memtable, in the syntax of the memtable registry: `trie`, `skip_list:16`, `cspp:{"mem_cap":"16G"}`,
/// `{id=SkipListFactory;lookahead=0;}`. The registry alone validates names and parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemtableChoice(String);

impl Default for MemtableChoice {
    fn default() -> Self {
        MemtableChoice("skip_list".to_owned())
    }
}

impl MemtableChoice {
    /// Reads a choice from an object: `{class: NAME, params: {...}}`, as in ToplingDB, or `{NAME: {...}}`.
    ///
    /// # Errors
    /// `InvalidArgument`, with the place: a malformed object.
    pub fn from_object(node: &Node) -> Result<MemtableChoice> {
        let (_, name, params) = class_and_params(node, "memtable")?;
        Ok(MemtableChoice::of_class(&name, params))
    }

    /// The choice of a representation with parameters, each a member of an object.
    pub fn of_class<'a>(name: &str, params: impl IntoIterator<Item = &'a Node>) -> MemtableChoice {
        let params: Map<_, _> = params.into_iter().map(|node| (node.name().to_owned(), node.to_value())).collect();
        MemtableChoice(if params.is_empty() { name.to_owned() } else { format!("{name}:{}", Value::Object(params)) })
    }
}

impl Deref for MemtableChoice {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for MemtableChoice {
    fn from(text: &str) -> Self {
        MemtableChoice(text.to_owned())
    }
}

impl From<String> for MemtableChoice {
    fn from(text: String) -> Self {
        MemtableChoice(text)
    }
}

impl fmt::Display for MemtableChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<str> for MemtableChoice {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for MemtableChoice {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl Setting for MemtableChoice {
    fn kind(&self) -> String {
        "memtable".to_owned()
    }

    fn text(&self) -> String {
        string::escape(&self.0)
    }

    /// Restores the braces of `{lookahead=4;id=NAME}`, stripped by option strings.
    fn set(&mut self, text: &str, _load: &mut Load) -> Result<()> {
        let text = string::unescape(text.trim());
        let lost_braces = !text.starts_with('{') && string::members(&text).is_some();
        self.0 = if lost_braces { format!("{{{text}}}") } else { text };
        Ok(())
    }

    fn value(&self) -> Value {
        Value::String(self.0.clone())
    }

    fn is_free_text(&self) -> bool {
        true
    }

    fn set_object(&mut self, node: &Node, _load: &mut Load) -> Option<Result<()>> {
        Some(MemtableChoice::from_object(node).map(|choice| *self = choice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{
        Audience, DbOptions, FamilyOptions, OptionsFile, Syntax, apply_document, apply_string, apply_value, ini,
        to_value,
    };

    /// What users write, with everything in it that the syntaxes around it use for themselves.
    const CHOICES: [&str; 14] = [
        "trie",
        "cspp:{\"mem_cap\":\"16G\"}",
        "cspp:{\"mem_cap\":17179869184,\"use_vm\":true}",
        "cspp:{\"dir\":\"/a b; c={d}#e\\\\f\\\"\",\"n\":null}",
        "sorted_hash",
        "hash_spdb:400000",
        "speedb.HashSpdRepFactory:1000",
        "sorted_hash:{\"bucket_count\":1000,\"run_entries\":500}",
        "{id=hash_spdb;bucket_count=1000;run_entries=500;}",
        "prefix_hash",
        "hash_linkedlist",
        "vector",
        "skip_list:16",
        "{id=SkipListFactory;lookahead=0;}",
    ];

    fn family(choice: &str) -> FamilyOptions {
        FamilyOptions { memtable_factory: choice.into(), ..FamilyOptions::default() }
    }

    fn by_string(text: &str) -> String {
        let mut family = FamilyOptions::default();
        apply_string(&mut family, text).expect(text);
        assert_eq!(family.num_levels, 3, "{text}");
        family.memtable_factory.to_string()
    }

    #[test]
    fn choices_round_trip_through_every_syntax() {
        let start = &|_: &str| FamilyOptions::default();
        for choice in CHOICES {
            let given = family(choice);
            assert_eq!(by_string(&format!("{};num_levels=3", string::print(&given).trim_end_matches(';'))), choice);
            let value = to_value(&given);
            let mut back = FamilyOptions::default();
            apply_value(&mut back, &value).expect(choice);
            assert_eq!(back.memtable_factory, *choice);
            for syntax in [Syntax::Json, Syntax::Yaml] {
                let mut back = FamilyOptions::default();
                apply_document(&mut back, &value.to_string(), syntax).expect(choice);
                assert_eq!(back.memtable_factory, *choice, "{syntax:?}");
            }
            let file = ini::write(&DbOptions::default(), &[("default", &given)], Audience::Spillway);
            let (read, warnings) = OptionsFile::read(&file, DbOptions::default(), start, false).expect(choice);
            assert_eq!(warnings, Vec::<String>::new());
            assert_eq!(read.family("default").expect("there").memtable_factory, *choice);
        }
    }

    #[test]
    fn option_strings_take_choices_as_users_write_them() {
        for (text, expected) in [
            ("memtable_factory=trie;num_levels=3", "trie"),
            ("memtable_factory=hash_spdb:1000;num_levels=3", "hash_spdb:1000"),
            (
                "memtable_factory={id=hash_spdb;run_entries=500;bucket_count=7};num_levels=3",
                "{id=hash_spdb;run_entries=500;bucket_count=7}",
            ),
            ("num_levels=3;memtable_factory=cspp:{\"mem_cap\":\"16G\",\"use_vm\":true}", CSPP),
            ("memtable_factory={cspp:{\"mem_cap\":\"16G\",\"use_vm\":true}};num_levels=3", CSPP),
            ("memtable_factory={id=SkipListFactory;lookahead=0;};num_levels=3", "{id=SkipListFactory;lookahead=0;}"),
            ("memtable_factory={lookahead=4;id=SkipListFactory};num_levels=3", "{lookahead=4;id=SkipListFactory}"),
            ("memtable_factory={ bucket_count=9; id=hash_spdb };num_levels=3", "{bucket_count=9; id=hash_spdb}"),
            ("memtable=vector;num_levels=3", "vector"),
            ("memtable={count=7;id=vector};num_levels=3;memtable_factory={count=7;id=vector}", "{count=7;id=vector}"),
        ] {
            assert_eq!(by_string(text), expected, "{text}");
        }
    }

    #[test]
    fn both_names_with_different_values_are_refused() {
        let says = "set one option by its two names; leave one of them out";
        let mut family = FamilyOptions::default();
        let error = apply_string(&mut family, "memtable=vector;memtable_factory=trie").expect_err("two");
        assert_eq!(error.message(), format!("`memtable=vector` and `memtable_factory=trie` {says}"));
        let text = "memtable_factory: {class: trie}\nmemtable: vector\n";
        let error = apply_document(&mut family, text, Syntax::Yaml).expect_err("two");
        assert!(
            error.message().starts_with("line 2, column 1: memtable: ") && error.message().ends_with(says),
            "{error}"
        );
        let (both, same) = ("[CFOptions \"default\"]\n  memtable=vector\n", "  memtable_factory=vector\n");
        let other = "[CFOptions \"more\"]\n  memtable_factory=trie\n  memtable=trie\n";
        let read = |text: &str| OptionsFile::read(text, DbOptions::default(), &|_| FamilyOptions::default(), false);
        let (file, _) = read(&format!("{both}{same}{other}")).expect("the same twice");
        assert_eq!(file.family("more").expect("there").memtable_factory, "trie");
        let error = read(&format!("{both}  memtable_factory=trie\n")).expect_err("two");
        assert!(error.message().starts_with("line 3: ") && error.message().ends_with(says), "{error}");
    }

    #[test]
    fn second_name_is_read_by_documents_and_not_written() {
        for text in ["memtable: vector", "memtable: {class: vector}"] {
            let mut family = FamilyOptions::default();
            apply_document(&mut family, text, Syntax::Yaml).expect(text);
            assert_eq!(family.memtable_factory, "vector");
            assert!(!string::print(&family).contains("memtable="));
        }
    }

    const CSPP: &str = "cspp:{\"mem_cap\":\"16G\",\"use_vm\":true}";

    #[test]
    fn options_files_of_rocksdb_keep_the_object() {
        let text = "[CFOptions \"default\"]\n  memtable_factory={id=SkipListFactory;lookahead=0;}\n";
        let start = &|_: &str| FamilyOptions::default();
        let (file, _) = OptionsFile::read(text, DbOptions::default(), start, false).expect("valid");
        assert_eq!(file.family("default").expect("there").memtable_factory, "{id=SkipListFactory;lookahead=0;}");
    }

    #[test]
    fn documents_take_objects() {
        for (text, expected) in [
            ("memtable_factory: {cspp: {mem_cap: 16G, use_vm: true}}", Ok(CSPP)),
            ("memtable_factory: {class: cspp, params: {mem_cap: 16G, use_vm: true}}", Ok(CSPP)),
            ("memtable_factory: {class: trie}", Ok("trie")),
            ("memtable_factory: {trie: }", Ok("trie")),
            (
                "memtable_factory: {class: trie, parms: {}}",
                Err("line 1, column 33: memtable_factory.parms: there is no"),
            ),
            ("memtable_factory: {a: {}, b: {}}", Err("line 1, column 19: memtable_factory: a memtable is written as")),
            ("memtable_factory: {trie: 5}", Err("line 1, column 26: memtable_factory.trie: this should be an object")),
        ] {
            let mut family = FamilyOptions::default();
            let outcome = apply_document(&mut family, text, Syntax::Yaml);
            match (outcome, expected) {
                (Ok(_), Ok(choice)) => assert_eq!(family.memtable_factory, *choice),
                (Err(error), Err(start)) => assert!(error.message().starts_with(start), "{error}"),
                (outcome, _) => panic!("{text}: {outcome:?}"),
            }
        }
        let error = apply_document(&mut DbOptions::default(), "wal_dir: {a: b}", Syntax::Yaml).expect_err("no object");
        assert!(error.message().contains("wal_dir: this takes no object"), "{error}");
    }
}
