//! The representations by their option names. A new representation is one file and one line here.
//!
//! Accepted: `name`, `name:argument`, `name:{"key":value}`, or RocksDB's `{id=name;key=value}`. [`Arguments`] treats all
//! alike.

use std::sync::Arc;

use base::options::nearest;
use base::{Error, Result};

pub(crate) use crate::arguments::Arguments;
use crate::{MemtableFactory, skiplist, sorted_hash, trie, vector};

/// A line of the registry.
struct Representation {
    name: &'static str,
    /// Aliases: RocksDB's names, and the classes of JSON and YAML configurations.
    aliases: &'static [&'static str],
    /// The argument allowed behind a colon without its name.
    positional: Option<&'static str>,
    /// The names of all arguments. Unknown ones are refused before `make` is called.
    arguments: &'static [&'static str],
    make: fn(&Arguments) -> Result<Arc<dyn MemtableFactory>>,
}

const REPRESENTATIONS: &[Representation] = &[
    Representation {
        name: skiplist::NAME,
        aliases: &["SkipListFactory", "SkipList", "SkipListRep", "skiplist"],
        positional: Some("lookahead"),
        arguments: skiplist::ARGUMENTS,
        make: skiplist::Factory::from_arguments,
    },
    Representation {
        name: trie::NAME,
        aliases: &["cspp", "CSPPMemTabFactory", "CSPPMemTab"],
        positional: None,
        arguments: trie::params::NAMES,
        make: trie::Factory::from_arguments,
    },
    Representation {
        name: vector::NAME,
        aliases: &["VectorRepFactory", "Vector", "VectorRep"],
        positional: Some("count"),
        arguments: &["count"],
        make: vector::Factory::from_arguments,
    },
    Representation {
        name: sorted_hash::NAME,
        aliases: &[
            "speedb.HashSpdRepFactory",
            "HashSpdRepFactory",
            "hash_spdb",
            "prefix_hash",
            "hash_skiplist",
            "HashSkipListRepFactory",
            "HashSkipList",
            "HashSkipListRep",
            "hash_linkedlist",
            "HashLinkListRepFactory",
            "HashLinkList",
            "HashLinkListRep",
        ],
        positional: Some("bucket_count"),
        arguments: sorted_hash::ARGUMENTS,
        make: sorted_hash::Factory::from_arguments,
    },
];

/// The names of all representations, aliases left out.
pub fn names() -> impl Iterator<Item = &'static str> {
    REPRESENTATIONS.iter().map(|r| r.name)
}

/// The factory named by an option string: `skip_list`, `SkipListFactory`, `skip_list:16`, `{id=vector;count=1024}`, ...
///
/// # Errors
/// `InvalidArgument`: an unknown name or argument, or a value out of bounds. The message has the nearest name or the
/// bounds.
pub fn factory_from_option_string(option: &str) -> Result<Arc<dyn MemtableFactory>> {
    let mut arguments = Arguments::parse(option.trim())?;
    let all_names = || REPRESENTATIONS.iter().flat_map(|r| [r.name].into_iter().chain(r.aliases.iter().copied()));
    let name = arguments.name();
    let Some(representation) = REPRESENTATIONS.iter().find(|r| r.name == name || r.aliases.contains(&name)) else {
        let hint = nearest(name, all_names()).map(|near| format!("did you mean {near:?}? ")).unwrap_or_default();
        let known = all_names().collect::<Vec<_>>().join(", ");
        return Err(Error::invalid_argument(format!("no memtable is called {name:?}; {hint}known are {known}")));
    };
    arguments.settle(representation.positional, representation.arguments)?;
    (representation.make)(&arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(option: &str) -> String {
        factory_from_option_string(option).map_or_else(|e| e.message().to_owned(), |f| f.option_string())
    }

    #[test]
    fn names_and_aliases_yield_the_canonical_string() {
        for (option, expected) in [
            ("skip_list", "skip_list"),
            (" SkipListFactory ", "skip_list"),
            ("skip_list:16", "skip_list:16"),
            ("{id=SkipListFactory;lookahead=5;}", "skip_list:5"),
            ("vector", "vector"),
            ("VectorRepFactory", "vector"),
            ("vector:1024", "vector:1024"),
            ("cspp", "trie"),
            ("CSPPMemTabFactory", "trie"),
            (r#"cspp:{"mem_cap":"16G","use_vm":true}"#, r#"trie:{"mem_cap":"16G"}"#),
            ("{id=trie;use_vm=false}", r#"trie:{"use_vm":false}"#),
            ("{id=vector;count=7}", "vector:7"),
            ("vector:{\"count\":\"1K\"}", "vector:1024"),
            (r#"skip_list:{"convert_to_sst":"kDumpMem"}"#, r#"skip_list:{"convert_to_sst":"kDumpMem"}"#),
            ("{id=skip_list;lookahead=3;sync_sst_file=0}", r#"skip_list:{"sync_sst_file":false,"lookahead":3}"#),
        ] {
            assert_eq!(canonical(option), expected);
            assert_eq!(canonical(expected), expected, "what a factory prints it understands");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let error = canonical("rbtree:7");
        assert!(
            error.starts_with("no memtable is called \"rbtree\"; known are skip_list, SkipListFactory, "),
            "{error}"
        );
        let error = canonical("SkipListFactori");
        assert!(
            error.starts_with("no memtable is called \"SkipListFactori\"; did you mean \"SkipListFactory\"? "),
            "{error}"
        );
        for option in [
            "",
            "skip_list:",
            "skip_list:x",
            "skip_list:-1",
            "vector:99999999999",
            "{id=vector;lookahead=1}",
            "{lookahead=1}",
            "{id}",
            "{id=vector;count=1;count=2}",
            "vector:{\"count\":true}",
            "vector:{\"count\":null}",
            "vector:{",
        ] {
            let error = factory_from_option_string(option).err().expect(option);
            assert_eq!(error.kind(), base::ErrorKind::InvalidArgument, "{option}");
        }
    }
}
