//! The representations by the names that users write in option strings. A new one is a file and a line here.
//!
//! `name`, `name:argument`, or RocksDB's `{id=name;key=argument}`.

use std::sync::Arc;

use base::{Error, Result};

use crate::{MemtableFactory, skiplist, vector};

/// A line of the registry.
struct Representation {
    name: &'static str,
    /// Other names for the same, RocksDB's among them.
    aliases: &'static [&'static str],
    make: fn(&Arguments<'_>) -> Result<Arc<dyn MemtableFactory>>,
}

const REPRESENTATIONS: &[Representation] = &[
    Representation { name: skiplist::NAME, aliases: &["SkipListFactory"], make: skiplist::Factory::from_arguments },
    Representation { name: vector::NAME, aliases: &["VectorRepFactory"], make: vector::Factory::from_arguments },
];

/// The names of all representations, aliases left out.
pub fn names() -> impl Iterator<Item = &'static str> {
    REPRESENTATIONS.iter().map(|r| r.name)
}

/// The factory that an option string names: `skip_list`, `SkipListFactory`, `skip_list:16`, `vector:1024`, ...
///
/// # Errors
/// `InvalidArgument` for an unknown name, an argument that the representation does not have, or one out of bounds.
pub fn factory_from_option_string(option: &str) -> Result<Arc<dyn MemtableFactory>> {
    let arguments = Arguments::parse(option.trim())?;
    let known = |r: &&Representation| r.name == arguments.name || r.aliases.contains(&arguments.name);
    let Some(representation) = REPRESENTATIONS.iter().find(known) else {
        let known: Vec<&str> =
            REPRESENTATIONS.iter().flat_map(|r| [r.name].into_iter().chain(r.aliases.iter().copied())).collect();
        return Err(Error::invalid_argument(format!(
            "no memtable is called {:?}; known are {}",
            arguments.name,
            known.join(", ")
        )));
    };
    (representation.make)(&arguments)
}

/// An option string taken apart.
pub(crate) struct Arguments<'a> {
    name: &'a str,
    values: Values<'a>,
}

enum Values<'a> {
    /// What follows the first colon.
    Positional(Option<&'a str>),
    Named(Vec<(&'a str, &'a str)>),
}

impl<'a> Arguments<'a> {
    fn parse(option: &'a str) -> Result<Arguments<'a>> {
        let Some(inner) = option.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
            let (name, value) = option.split_once(':').map_or((option, None), |(name, value)| (name, Some(value)));
            return Ok(Arguments { name, values: Values::Positional(value) });
        };
        let mut name = None;
        let mut named = Vec::new();
        for pair in inner.split(';').map(str::trim).filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("id", value)) => name = Some(value),
                Some(pair) => named.push(pair),
                None => return Err(Error::invalid_argument(format!("no = in {pair:?} of memtable option {option:?}"))),
            }
        }
        let name = name.ok_or_else(|| Error::invalid_argument(format!("no id in memtable option {option:?}")))?;
        Ok(Arguments { name, values: Values::Named(named) })
    }

    /// The only argument of a representation: a number of at most `max`, `None` where it is not given.
    ///
    /// # Errors
    /// `InvalidArgument` where it is no such number, or where other arguments are given.
    pub(crate) fn number(&self, key: &str, max: usize) -> Result<Option<usize>> {
        let text = match &self.values {
            Values::Positional(text) => *text,
            Values::Named(pairs) => {
                if let Some((other, _)) = pairs.iter().find(|(name, _)| *name != key) {
                    return Err(Error::invalid_argument(format!("memtable {} has no argument {other:?}", self.name)));
                }
                pairs.last().map(|(_, value)| *value)
            }
        };
        let Some(text) = text else { return Ok(None) };
        match text.parse::<usize>() {
            Ok(number) if number <= max => Ok(Some(number)),
            _ => Err(Error::invalid_argument(format!(
                "{key} of memtable {} is {text:?}, not a number from 0 to {max}",
                self.name
            ))),
        }
    }
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
            ("{id=vector;count=7}", "vector:7"),
        ] {
            assert_eq!(canonical(option), expected);
            assert_eq!(canonical(expected), expected, "what a factory prints it understands");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        assert_eq!(
            canonical("prefix_hash:7"),
            "no memtable is called \"prefix_hash\"; known are skip_list, SkipListFactory, vector, VectorRepFactory"
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
        ] {
            let error = factory_from_option_string(option).err().expect(option);
            assert_eq!(error.kind(), base::ErrorKind::InvalidArgument, "{option}");
        }
    }
}
