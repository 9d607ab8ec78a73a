//! The `table_factory` option: the kind of written tables, for all levels or per level. Readers need no choice: a
//! file's last eight bytes tell its kind.

use std::fmt;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::options::dispatcher::{self, DispatcherParams};
use crate::options::row::{Load, Setting};
use crate::options::string;
use crate::options::table_kind::{TableClass, TableKind, class_and_params};
use crate::options::tree::{Content, Node, Syntax};

/// Most per-level writers; equals the most levels.
const LEVEL_WRITERS_MAX: usize = 64;

/// RocksDB's other formats.
const INSTEAD_BLOCK_BASED: [&str; 2] = ["PlainTable", "CuckooTable"];

/// The kind of a family's written tables.
///
/// As an option: `SingleFastTable`, `ToplingZipTable:{"sampleRatio":0.01}`, `{id=ToplingZipTable;sampleRatio=0.01;}`, or by
/// level `DispatcherTable:{"default":"SingleFastTable","level_writers":["SingleFastTable","BlockBasedTable"]}`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableFactory {
    default: TableKind,
    /// From level 0; the last entry applies to deeper levels too. Empty: `default` everywhere.
    by_level: Vec<TableKind>,
}

impl From<TableKind> for TableFactory {
    fn from(kind: TableKind) -> Self {
        TableFactory { default: kind, by_level: Vec::new() }
    }
}

impl TableFactory {
    /// One kind per level, from level 0; the last entry applies to deeper levels. `default` if the list is empty, or if
    /// the kind does not write at the level.
    ///
    /// # Errors
    /// `InvalidArgument`: more kinds than levels.
    pub fn by_level(default: TableKind, by_level: Vec<TableKind>) -> Result<TableFactory> {
        if by_level.len() > LEVEL_WRITERS_MAX {
            let many = by_level.len();
            return Err(Error::invalid_argument(format!("{many} level_writers; there are {LEVEL_WRITERS_MAX} levels")));
        }
        Ok(TableFactory { default, by_level })
    }

    /// The kind of tables written at `level`.
    pub fn at_level(&self, level: usize) -> &TableKind {
        let chosen = self.by_level.get(level).or(self.by_level.last()).unwrap_or(&self.default);
        if chosen.writes_at(level) { chosen } else { &self.default }
    }

    /// The kind of tables written without a level.
    pub fn without_level(&self) -> &TableKind {
        &self.default
    }

    /// Every kind in use for writing.
    pub fn kinds(&self) -> impl Iterator<Item = &TableKind> {
        std::iter::once(&self.default).chain(&self.by_level)
    }

    /// Reads a choice from an object: `{class: NAME, params: {...}}`, as in ToplingDB, or `{NAME: {...}}`.
    fn from_object(node: &Node, load: &mut Load) -> Result<TableFactory> {
        let (class, name, params) = class_and_params(node, "table")?;
        TableFactory::of_class(class, &name, params, load)
    }

    /// The choice of a class. Errors about the name or a missing parameter point at `at`.
    fn of_class(at: &Node, name: &str, params: &[Node], load: &mut Load) -> Result<TableFactory> {
        if let Some(what) = INSTEAD_BLOCK_BASED.iter().find(|other| **other == name) {
            load.warnings.push(format!("`{what}` is neither read nor written; BlockBasedTable is used"));
            return Ok(TableKind::BlockBased.into());
        }
        if !dispatcher::NAMES.contains(&name) {
            return Ok(written(at, name, params, load)?.into());
        }
        let parts = DispatcherParams::of(at, params, load)?;
        for reader in parts.readers {
            let class = class_in_place(reader, load)?;
            dispatcher::check_reader(reader, &class)?;
        }
        let default = kind_in_place(parts.default, load)?;
        let by_level = parts.level_writers.iter().map(|writer| kind_in_place(writer, load)).collect::<Result<_>>()?;
        TableFactory::by_level(default, by_level).map_err(|error| at.locate(error))
    }

    /// # Errors
    /// `InvalidArgument`: a parameter out of its bounds.
    pub(super) fn validate(&self) -> Result<()> {
        self.kinds().try_for_each(TableKind::validate)
    }

    fn parse(text: &str, load: &mut Load) -> Result<TableFactory> {
        let text = text.trim();
        let (name, members) = string::object_id(text)?;
        if !members.is_empty() {
            return Ok(TableKind::of_members(&string::unescape(name), &members, load)?.into());
        }
        let (name, params) = match text.split_once(':') {
            Some((name, params)) => (name.trim(), Node::read(params, Syntax::Json)?),
            None => (text, Node::from_value(&json!({}))?),
        };
        TableFactory::of_class(&params, name, params.members("parameters")?, load)
    }
}

fn written(at: &Node, name: &str, params: &[Node], load: &mut Load) -> Result<TableKind> {
    TableClass::of(at, name, params, load)?.written().map_err(|error| at.locate(error))
}

/// The class given by a name or by an object in place of a name.
fn class_in_place(node: &Node, load: &mut Load) -> Result<TableClass> {
    match &node.content {
        Content::Map(_) => {
            let (at, name, params) = class_and_params(node, "table")?;
            TableClass::of(at, &name, params, load)
        }
        Content::Scalar(_) | Content::List(_) => TableClass::of(node, &node.text()?, &[], load),
    }
}

fn kind_in_place(node: &Node, load: &mut Load) -> Result<TableKind> {
    class_in_place(node, load)?.written().map_err(|error| node.locate(error))
}

/// In option string form, not escaped.
impl fmt::Display for TableFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.by_level.is_empty() {
            let level_writers: Vec<Value> = self.by_level.iter().map(TableKind::to_value).collect();
            let params = json!({"default": self.default.to_value(), "level_writers": level_writers});
            return write!(f, "{}:{params}", dispatcher::NAME);
        }
        f.write_str(self.default.name())?;
        match Value::Object(self.default.params()) {
            Value::Object(params) if params.is_empty() => Ok(()),
            params => write!(f, ":{params}"),
        }
    }
}

impl Setting for TableFactory {
    fn kind(&self) -> String {
        format!("{}, {}", TableKind::NAMES.join(", "), dispatcher::NAME)
    }

    fn text(&self) -> String {
        string::escape(&self.to_string())
    }

    fn set(&mut self, text: &str, load: &mut Load) -> Result<()> {
        *self = TableFactory::parse(&string::unescape(text.trim()), load)?;
        Ok(())
    }

    fn value(&self) -> Value {
        Value::String(self.to_string())
    }

    fn is_free_text(&self) -> bool {
        true
    }

    /// # Errors
    /// As [`set`](Setting::set), with the place.
    fn set_object(&mut self, node: &Node, load: &mut Load) -> Option<Result<()>> {
        Some(TableFactory::from_object(node, load).map(|factory| *self = factory))
    }
}

#[cfg(test)]
mod tests;
