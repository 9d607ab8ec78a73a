//! Option strings as RocksDB reads them, so that one can be laid over another: `name=value;group={name=value;...}`.

use std::fmt;

use base::{Error, Result};

/// Options in the order in which they were first named.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptionText(Vec<(String, Value)>);

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Plain(String),
    Group(OptionText),
}

impl OptionText {
    /// # Errors
    /// `InvalidArgument`: a piece has no `=`, or braces do not close.
    pub fn parse(text: &str) -> Result<OptionText> {
        let wrong = || Error::invalid_argument(format!("{text:?} is no option string: name=value;name={{name=value}}"));
        let mut options = Vec::new();
        for piece in pieces(text).ok_or_else(wrong)? {
            let (name, value) = piece.split_once('=').ok_or_else(wrong)?;
            let value = value.trim();
            let within = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            let value = match within {
                Some(within) => Value::Group(OptionText::parse(within)?),
                None => Value::Plain(value.to_owned()),
            };
            options.push((name.trim().to_owned(), value));
        }
        Ok(OptionText(options))
    }

    /// Adds options; those of the same name are replaced, groups option by option.
    #[must_use]
    pub fn overlaid(mut self, others: &OptionText) -> OptionText {
        for (name, value) in &others.0 {
            match (self.0.iter_mut().find(|(known, _)| known == name), value) {
                (Some((_, Value::Group(group))), Value::Group(more)) => *group = std::mem::take(group).overlaid(more),
                (Some((_, old)), value) => *old = value.clone(),
                (None, value) => self.0.push((name.clone(), value.clone())),
            }
        }
        self
    }
}

impl fmt::Display for OptionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { ";" };
            match value {
                Value::Plain(value) => write!(f, "{separator}{name}={value}")?,
                Value::Group(group) => write!(f, "{separator}{name}={{{group}}}")?,
            }
        }
        Ok(())
    }
}

/// What semicolons outside of braces separate; `None` where braces do not close.
fn pieces(text: &str) -> Option<Vec<&str>> {
    let mut pieces = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1)?,
            ';' if depth == 0 => {
                pieces.push(text.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(text.get(start..)?);
    pieces.retain(|piece| !piece.trim().is_empty());
    (depth == 0).then_some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlaid(below: &str, above: &str) -> String {
        OptionText::parse(below).unwrap().overlaid(&OptionText::parse(above).unwrap()).to_string()
    }

    #[test]
    fn what_is_above_replaces_what_is_below() {
        assert_eq!(overlaid("a=1;b=2", "b=3; c = 4;"), "a=1;b=3;c=4");
        assert_eq!(overlaid("t={x=1;y={z=2}};a=1", "t={y={z=3};w=4}"), "t={x=1;y={z=3};w=4};a=1");
        assert_eq!(overlaid("t={x=1}", "t=nullptr"), "t=nullptr");
        let factory = r#"m=trie:{"mem_cap":"16G";"x":{}}"#;
        assert_eq!(overlaid("", factory), factory, "braces that do not begin a value belong to it");
    }

    #[test]
    fn what_is_no_option_string_is_refused() {
        for wrong in ["a", "a={b=1", "a=1};", "a={b}"] {
            assert!(OptionText::parse(wrong).is_err(), "{wrong}");
        }
    }
}
