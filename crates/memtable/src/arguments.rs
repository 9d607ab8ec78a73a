//! Arguments of a representation in an option: one value behind a colon, `key=value` pairs in braces, or a JSON object.
//! All become pairs of texts for the same getters. Their errors name the key and the bounds.

use std::ops::RangeInclusive;

use base::options::row::{Load, Setting};
use base::options::{Members, nearest, string};
use base::{Error, Result};
use serde_json::Value;

/// A parsed option.
#[derive(Debug)]
pub(crate) struct Arguments {
    name: String,
    /// The argument without a name: the text behind the first colon, unless it is a JSON object.
    positional: Option<String>,
    pairs: Vec<(String, String)>,
}

impl Arguments {
    /// Parses `name`, `name:value`, `name:{"key":value}` or `{id=name;key=value}`.
    pub(crate) fn parse(option: &str) -> Result<Arguments> {
        if option.starts_with('{') {
            return Self::of_pairs(option);
        }
        let Some((name, value)) = option.split_once(':') else {
            return Ok(Self::bare(option));
        };
        let (name, value) = (name.trim(), value.trim());
        if !value.starts_with('{') {
            return Ok(Arguments { positional: Some(value.to_owned()), ..Self::bare(name) });
        }
        let Members::<String, Value>(members) = serde_json::from_str(value).map_err(|e| {
            Error::invalid_argument(format!("the arguments of memtable {name} are no JSON object: {e}"))
        })?;
        let text = |(key, value): (String, Value)| match value {
            Value::String(text) => Ok((key, text)),
            Value::Number(_) | Value::Bool(_) => Ok((key, value.to_string())),
            Value::Null | Value::Array(_) | Value::Object(_) => Err(Error::invalid_argument(format!(
                "{key} of memtable {name} is {value}, neither a string nor a number nor true or false"
            ))),
        };
        let pairs = members.into_iter().map(text).collect::<Result<_>>()?;
        Ok(Arguments { pairs, ..Self::bare(name) })
    }

    fn of_pairs(option: &str) -> Result<Arguments> {
        let mut name = None;
        let mut pairs = Vec::new();
        for (key, value) in string::pairs(option)? {
            if key == "id" {
                if let Some(name) = name.replace(value) {
                    return Err(Error::invalid_argument(format!(
                        "id of a memtable is given twice, {name} and {value}"
                    )));
                }
            } else {
                pairs.push((key.to_owned(), value.to_owned()));
            }
        }
        let name = name.ok_or_else(|| Error::invalid_argument(format!("no id in memtable option {option:?}")))?;
        Ok(Arguments { pairs, ..Self::bare(name) })
    }

    fn bare(name: &str) -> Arguments {
        Arguments { name: name.to_owned(), positional: None, pairs: Vec::new() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Names the unnamed argument `positional`, and checks that every key is one of `known`.
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown key, with the nearest known one; a duplicate key; or an unnamed argument if
    /// `positional` is `None`.
    pub(crate) fn settle(&mut self, positional: Option<&str>, known: &[&str]) -> Result<()> {
        if let Some(value) = self.positional.take() {
            let key = positional.ok_or_else(|| {
                Error::invalid_argument(format!(
                    "memtable {} takes no argument {value:?} without a name; write {}:{{\"key\":value}}",
                    self.name, self.name
                ))
            })?;
            self.pairs.push((key.to_owned(), value));
        }
        for (i, (key, _)) in self.pairs.iter().enumerate() {
            if !known.contains(&key.as_str()) {
                let hint = nearest(key, known.iter().copied());
                let hint = hint.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                return Err(Error::invalid_argument(format!("memtable {} has no argument {key:?}{hint}", self.name)));
            }
            if self.pairs.iter().skip(i + 1).any(|(other, _)| other == key) {
                return Err(Error::invalid_argument(format!("{key} of memtable {} is given twice", self.name)));
            }
        }
        Ok(())
    }

    /// A number within `bounds`; `None` if not given.
    pub(crate) fn number(&self, key: &str, bounds: RangeInclusive<usize>) -> Result<Option<usize>> {
        self.integer(key, bounds, |number| number.to_string())
    }

    /// A size in bytes within `bounds`, plain or with suffix K, M, G or T; `None` if not given.
    pub(crate) fn bytes(&self, key: &str, bounds: RangeInclusive<usize>) -> Result<Option<usize>> {
        self.integer(key, bounds, bytes_text)
    }

    /// `true` or `false`; `None` if not given.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>> {
        self.flag_or(key, &[])
    }

    /// `true` or `false`, or one of `choices`; `None` if not given.
    pub(crate) fn flag_or(&self, key: &str, choices: &[(&str, bool)]) -> Result<Option<bool>> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let named = || choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice);
        parsed(text).or_else(named).map(Some).ok_or_else(|| {
            let names: Vec<&str> = ["true", "false"].into_iter().chain(choices.iter().map(|(name, _)| *name)).collect();
            self.refused(key, text, &names.join(" or "))
        })
    }

    /// One of `choices`; `None` if not given.
    pub(crate) fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let found = choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice);
        found.map(Some).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.refused(key, text, &names.join(" or "))
        })
    }

    fn integer(&self, key: &str, bounds: RangeInclusive<usize>, print: fn(usize) -> String) -> Result<Option<usize>> {
        let Some(text) = self.text(key) else { return Ok(None) };
        parsed(text).filter(|number| bounds.contains(number)).map(Some).ok_or_else(|| {
            let wanted = format!("a number from {} to {}", print(*bounds.start()), print(*bounds.end()));
            self.refused(key, text, &wanted)
        })
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str())
    }

    fn refused(&self, key: &str, text: &str, wanted: &str) -> Error {
        Error::invalid_argument(format!("{key} of memtable {} is {text:?}, not {wanted}", self.name))
    }
}

/// Parses as every option of this type does.
fn parsed<T: Setting + Default>(text: &str) -> Option<T> {
    let mut value = T::default();
    value.set(text, &mut Load::default()).is_ok().then_some(value)
}

/// A size with the largest suffix without loss; parsing it yields the same.
pub(crate) fn bytes_text(bytes: usize) -> String {
    let suffixes = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let fits = |(shift, _): &&(u32, &str)| bytes != 0 && bytes.trailing_zeros() >= *shift;
    match suffixes.iter().find(fits) {
        Some((shift, suffix)) => format!("{}{suffix}", bytes >> shift),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["mem_cap", "use_vm", "mode"];

    fn settled(option: &str) -> Result<Arguments> {
        let mut arguments = Arguments::parse(option)?;
        arguments.settle(Some("mem_cap"), KNOWN)?;
        Ok(arguments)
    }

    #[test]
    fn every_syntax_gives_the_same_arguments() {
        for option in [
            r#"m:{"mem_cap":"16G","use_vm":false,"mode":"b"}"#,
            r#"m: {"mem_cap": 17179869184, "use_vm": "false", "mode": "b"}"#,
            "{id=m;mem_cap=16G;use_vm=false;mode=b}",
            "{ mode=b; use_vm=0; mem_cap = 16384M; id=m; }",
        ] {
            let arguments = settled(option).expect(option);
            assert_eq!(arguments.name(), "m");
            assert_eq!(arguments.bytes("mem_cap", 1..=1 << 40).expect(option), Some(16 << 30));
            assert_eq!(arguments.flag("use_vm").expect(option), Some(false));
            assert_eq!(arguments.choice("mode", &[("a", 1), ("b", 2)]).expect(option), Some(2));
        }
        let arguments = settled("m:7").expect("positional");
        assert_eq!(arguments.number("mem_cap", 0..=7).expect("in bounds"), Some(7));
        assert_eq!(arguments.flag("use_vm").expect("absent"), None);
    }

    #[test]
    fn what_is_refused_is_named() {
        let error = |option: &str| settled(option).expect_err(option).message().to_owned();
        assert_eq!(error("m:{\"mem_kap\":1}"), r#"memtable m has no argument "mem_kap"; did you mean "mem_cap"?"#);
        assert_eq!(error("{id=m;zzzzzzzz=1}"), r#"memtable m has no argument "zzzzzzzz""#);
        assert_eq!(error("{id=m;mode=a;mode=b}"), "mode of memtable m is given twice");
        assert_eq!(error(r#"m:{"mode":"a","mode":"b"}"#), "mode of memtable m is given twice");
        assert_eq!(error("{id=m;id=n;mode=a}"), "id of a memtable is given twice, m and n");
        assert!(error("m:{\"mem_cap\":[1]}").starts_with("mem_cap of memtable m is [1], neither"));
        assert!(error("m:{\"mem_cap\"").starts_with("the arguments of memtable m are no JSON object"));
        assert!(error("{mem_cap=1}").starts_with("no id"));

        let arguments = settled(r#"m:{"mem_cap":"1K","use_vm":"maybe","mode":"c"}"#).expect("not read yet");
        let message = |result: Result<Option<usize>>| result.expect_err("refused").message().to_owned();
        let expected = r#"mem_cap of memtable m is "1K", not a number from 4K to 3M"#;
        assert_eq!(message(arguments.bytes("mem_cap", 4096..=3 << 20)), expected);
        let expected = r#"use_vm of memtable m is "maybe", not true or false"#;
        assert_eq!(arguments.flag("use_vm").expect_err("refused").message(), expected);
        let expected = r#"mode of memtable m is "c", not a or b"#;
        assert_eq!(arguments.choice("mode", &[("a", 1), ("b", 2)]).expect_err("refused").message(), expected);
    }

    #[test]
    fn sizes_are_printed_as_they_are_parsed() {
        for bytes in [0, 1, 1023, 1024, 1536, 2 << 20, 3 << 29, 2 << 30, 5 << 40, usize::MAX] {
            assert_eq!(parsed::<usize>(&bytes_text(bytes)), Some(bytes), "{}", bytes_text(bytes));
        }
        assert_eq!([bytes_text(2 << 30), bytes_text(3 << 29), bytes_text(100)], ["2G", "1536M", "100"]);
    }
}
