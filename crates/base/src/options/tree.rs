//! A JSON or YAML document as a tree. Every value has its line, column and key path, for errors found later.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::options::parse::{self, Raw, RawContent};
use crate::options::suggest::nearest;

pub use crate::options::parse::{DOCUMENT_BYTES_MAX, Syntax};

/// A position in a document. Both count from 1; 0 if the value was not read from a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: u64,
    /// In characters.
    pub column: u64,
}

impl Place {
    /// Puts the place before an error's message.
    pub(super) fn locate(self, error: Error) -> Error {
        if self == Place::default() { error } else { error.context(self) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// The key path of a value.
#[derive(Debug)]
struct Path {
    /// A key, or `[N]` in a list. Empty at the root.
    name: String,
    parent: Option<Arc<Path>>,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = &self.parent
            && parent.parent.is_some()
        {
            write!(f, "{parent}")?;
            f.write_str(if self.name.starts_with('[') { "" } else { "." })?;
        }
        f.write_str(&self.name)
    }
}

/// A value of a document.
#[derive(Debug)]
pub struct Node {
    path: Arc<Path>,
    key_at: Place,
    at: Place,
    /// What stands there.
    pub content: Content,
}

/// The content of a node.
#[derive(Debug)]
pub enum Content {
    /// Neither an array nor an object.
    Scalar(Value),
    /// Items in order.
    List(Vec<Node>),
    /// In the document's order; names are unique.
    Map(Vec<Node>),
}

impl Node {
    /// Reads a document.
    ///
    /// # Errors
    /// `InvalidArgument`, with line and column: bad syntax, a duplicate key, or a limit exceeded (size, depth, values,
    /// repetitions by YAML aliases).
    pub fn read(text: &str, syntax: Syntax) -> Result<Node> {
        Node::grow(root(), Place::default(), parse::read(text, syntax)?)
    }

    /// Wraps a value parsed elsewhere, without positions.
    ///
    /// # Errors
    /// `InvalidArgument`: nested too deeply.
    pub fn from_value(value: &Value) -> Result<Node> {
        Node::grow(root(), Place::default(), Raw::from_value(value, 0)?)
    }

    fn grow(path: Arc<Path>, key_at: Place, raw: Raw) -> Result<Node> {
        let below = |name: String| Arc::new(Path { name, parent: Some(path.clone()) });
        let at = raw.at;
        let content = match raw.content {
            RawContent::Scalar(value) => Content::Scalar(value),
            RawContent::List(items) => {
                let items = items.into_iter().enumerate();
                let grown = items.map(|(i, item)| Node::grow(below(format!("[{i}]")), item.at, item));
                Content::List(grown.collect::<Result<_>>()?)
            }
            RawContent::Map(members) => {
                let grown = members.into_iter().map(|(key, value)| Node::grow(below(key.name), key.at, value));
                let grown = grown.collect::<Result<Vec<_>>>()?;
                refuse_repeated(&grown)?;
                Content::Map(grown)
            }
        };
        Ok(Node { path, key_at, at, content })
    }

    /// The key of the value; empty for the whole document.
    pub fn name(&self) -> &str {
        &self.path.name
    }

    /// The key path ("CFOptions.default.num_levels").
    pub fn path(&self) -> impl fmt::Display + '_ {
        &*self.path
    }

    /// The members of an object; empty for `null`.
    ///
    /// # Errors
    /// `InvalidArgument`: not an object; `what` names the expected members.
    pub fn members(&self, what: &str) -> Result<&[Node]> {
        match &self.content {
            Content::Map(members) => Ok(members),
            Content::Scalar(Value::Null) => Ok(&[]),
            Content::Scalar(_) | Content::List(_) => Err(self.error(format!("this should be an object with {what}"))),
        }
    }

    /// The member called `name`, if this is an object with such a member.
    pub fn member(&self, name: &str) -> Option<&Node> {
        match &self.content {
            Content::Map(members) => members.iter().find(|member| member.name() == name),
            Content::Scalar(_) | Content::List(_) => None,
        }
    }

    /// True for `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(Value::Null))
    }

    /// A scalar in option string form.
    ///
    /// # Errors
    /// `InvalidArgument` for a list or an object.
    pub fn text(&self) -> Result<String> {
        match &self.content {
            Content::Scalar(Value::Null) => Ok("nullptr".to_owned()),
            Content::Scalar(Value::String(text)) => Ok(text.clone()),
            Content::Scalar(other) => Ok(other.to_string()),
            Content::List(_) => Err(self.error("this takes no list")),
            Content::Map(_) => Err(self.error("this takes no object")),
        }
    }

    /// As a JSON value, without places.
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Node::to_value).collect(),
            Content::Map(members) => members.iter().map(|node| (node.name().to_owned(), node.to_value())).collect(),
        }
    }

    /// `InvalidArgument` at the value.
    pub fn error(&self, message: impl Into<String>) -> Error {
        self.locate(Error::invalid_argument(message))
    }

    /// `InvalidArgument` at an unknown key ("there is no section", "x has no parameter"). The hint is chosen from
    /// `known`.
    pub fn unknown<'a>(&self, says: &str, known: impl Iterator<Item = &'a str>) -> Error {
        let hint = nearest(self.name(), known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        self.locate_key(Error::invalid_argument(format!("{says} `{}`{hint}", self.name())))
    }

    /// Adds the value's position to an error.
    pub fn locate(&self, error: Error) -> Error {
        self.located(self.at, error)
    }

    /// Adds the key's position to an error.
    pub fn locate_key(&self, error: Error) -> Error {
        self.located(self.key_at, error)
    }

    /// A remark about the key, for a list of warnings.
    pub fn remark(&self, message: impl Into<String>) -> String {
        self.locate_key(Error::invalid_argument(message)).message().to_owned()
    }

    fn located(&self, at: Place, error: Error) -> Error {
        at.locate(if self.path.parent.is_some() { error.context(self.path()) } else { error })
    }
}

fn root() -> Arc<Path> {
    Arc::new(Path { name: String::new(), parent: None })
}

fn refuse_repeated(members: &[Node]) -> Result<()> {
    let mut sorted: Vec<&Node> = members.iter().collect();
    sorted.sort_by_key(|node| node.name()); // stable: duplicates keep the document's order
    for pair in sorted.windows(2) {
        if let [first, second] = pair
            && first.name() == second.name()
        {
            let before =
                if first.key_at == Place::default() { String::new() } else { format!(", at {}", first.key_at) };
            return Err(second.locate_key(Error::invalid_argument(format!("the key is there already{before}"))));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(node: &Node, lines: &mut Vec<String>) {
        let shown = match &node.content {
            Content::Scalar(value) => value.to_string(),
            Content::List(_) => "list".to_owned(),
            Content::Map(_) => "map".to_owned(),
        };
        let at = |place: Place| format!("{}:{}", place.line, place.column);
        lines.push(format!("{} {} {}={shown}", at(node.key_at), at(node.at), node.path()));
        if let Content::List(nodes) | Content::Map(nodes) = &node.content {
            nodes.iter().for_each(|node| outline(node, lines));
        }
    }

    fn outlined(text: &str, syntax: Syntax) -> Vec<String> {
        let mut lines = Vec::new();
        outline(&Node::read(text, syntax).expect("reads"), &mut lines);
        lines
    }

    fn refused(text: &str, syntax: Syntax) -> String {
        Node::read(text, syntax).expect_err(text).message().to_owned()
    }

    #[test]
    fn values_of_both_syntaxes_know_where_they_stand() {
        let json = "{\"a\": {\"b\": [1,\n\t\"\\ud83d\\ude00é\", {\"c\": null}]},\n \"d\\u0065\": 2.5}";
        let expected = [
            "0:0 1:1 =map",
            "1:2 1:7 a=map",
            "1:8 1:13 a.b=list",
            "1:14 1:14 a.b[0]=1",
            "2:2 2:2 a.b[1]=\"😀é\"",
            "2:19 2:19 a.b[2]=map",
            "2:20 2:25 a.b[2].c=null",
            "3:2 3:13 de=2.5",
        ];
        assert_eq!(outlined(json, Syntax::Json), expected);
        let yaml = "a:\n  b: [1, x]\n  c:\n\"d e\": ~\n8: yes\n";
        let expected = [
            "0:0 1:1 =map",
            "1:1 2:3 a=map",
            "2:3 2:6 a.b=list",
            "2:7 2:7 a.b[0]=1",
            "2:10 2:10 a.b[1]=\"x\"",
            "3:3 3:4 a.c=null",
            "4:1 4:8 d e=null",
            "5:1 5:4 8=\"yes\"",
        ];
        assert_eq!(outlined(yaml, Syntax::Yaml), expected);
    }

    #[test]
    fn aliases_stand_where_they_are_used() {
        let yaml = "base: &b {x: 1, y: 2}\nd:\n  <<: *b\n  y: 3\n";
        let lines = outlined(yaml, Syntax::Yaml);
        assert!(
            lines.contains(&"4:3 4:6 d.y=3".to_owned()) && lines.contains(&"1:11 3:7 d.x=1".to_owned()),
            "{lines:?}"
        );
    }

    #[test]
    fn what_is_no_document_is_refused_with_its_place() {
        for (syntax, text, expected) in [
            (Syntax::Json, "{\"a\": 1,\n \"b\": }", "line 2, column 7: expected value"),
            (Syntax::Json, "{\"a\": 1} x", "line 1, column 10: trailing characters"),
            (Syntax::Json, "{\"a\": \"\\ud83d\"}", "line 1, column 7: unexpected end of hex escape"),
            (Syntax::Json, "a: 1", "line 1, column 1: expected value"),
            (
                Syntax::Json,
                "{\"a\": {\"b\": 1,\n\"b\": 2}}",
                "line 2, column 1: a.b: the key is there already, at line 1, column 8",
            ),
            (Syntax::Yaml, "a: 1\nb: 2\na: 3\n", "line 3, column 1: duplicate mapping key: a"),
            (Syntax::Yaml, "a: [1\nb: 2\n", "line 2, column 2: illegal placement of ':' indicator"),
            (Syntax::Yaml, "a: 1\n---\nb: 1\n", "the text holds 2 documents; one is expected"),
            (Syntax::Yaml, "a: *nope\n", "line 1, column 4: while parsing node, found unknown anchor"),
        ] {
            assert_eq!(refused(text, syntax), expected, "{text}");
        }
    }

    #[test]
    fn limits_hold_however_a_document_grows() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        for syntax in [Syntax::Json, Syntax::Yaml] {
            Node::read(&nested(30), syntax).expect("not deep");
            for depth in [40, 100_000] {
                let message = refused(&nested(depth), syntax);
                assert!(
                    message.contains("nested") || message.contains("epth") || message.contains("recursion"),
                    "{syntax:?} {depth}: {message}"
                );
            }
            let long = "x".repeat(DOCUMENT_BYTES_MAX + 1);
            assert!(refused(&long, syntax).contains("bytes"), "{syntax:?}");
            let text = format!("{{\"a\": \"{}\"}}", "x".repeat(100_000));
            assert!(refused(&text, syntax).contains("longer than"), "{syntax:?}");
            let key = format!("{{\"{}\": 1}}", "x".repeat(100_000));
            assert!(refused(&key, syntax).contains("longer than"), "{syntax:?}");
        }
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..9 {
            let before = format!("*a{},", level - 1).repeat(10);
            bomb += &format!("a{level}: &a{level} [{before}]\n");
        }
        assert!(refused(&bomb, Syntax::Yaml).contains("alias"), "{}", refused(&bomb, Syntax::Yaml));
        assert!(!refused("a: &a [*a]\n", Syntax::Yaml).is_empty());
        let mut deep = Value::Null;
        for _ in 0..100 {
            deep = Value::Array(vec![deep]);
        }
        assert!(Node::from_value(&deep).is_err());
    }

    #[test]
    fn garbage_is_answered() {
        let seed = "a: &x {b: [1, \"q\\n\", 'z'], <<: *x}\n- ? | >\n%!@`{}[]";
        for cut in 0..seed.len() {
            for syntax in [Syntax::Json, Syntax::Yaml] {
                let _ = Node::read(&seed[cut..], syntax); // either way, without a panic
                let _ = Node::read(&seed[..cut], syntax);
            }
        }
    }
}
