//! Configuration in ToplingDB's form: a JSON or YAML document with named objects by kind (memtables, caches, tables,
//! sets of options) and databases. Objects refer to each other by name; databases are opened by name.
//! `docs/configuration.md` is its manual.
//!
//! Every error and warning names line, column and key. Keeps B2: `base::options::tree` bounds the document.

use std::path::Path;

use base::options::tree::{DOCUMENT_BYTES_MAX, Node, Syntax};
use base::options::{DbOptions, FamilyOptions};
use base::{Error, Result};
use vfs::{IoClass, Vfs};

use crate::config::databases::SharedCache;
use crate::config::sections::{DATABASES, DB_OPTIONS, Document, FAMILY_OPTIONS, Kind, unknown_name};
use crate::database::handle::Database;

mod databases;
mod describe;
mod environment;
mod groups;
mod objects;
mod sections;
#[cfg(test)]
mod tests;

pub use databases::ConfiguredDb;
pub use environment::Environment;

/// Options before the document is applied. Supply the program's own comparators, merge operators, prefix extractors and
/// listeners here. The document names them.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Options of each database before the document.
    pub db: DbOptions,
    /// Options of each family before the document.
    pub family: FamilyOptions,
}

/// A configuration, read and checked.
#[derive(Clone)]
pub struct Config {
    databases: Vec<ConfiguredDb>,
    /// Index of the database named by section `open`.
    open: Option<usize>,
    warnings: Vec<String>,
}

impl Config {
    /// Reads a file: JSON if its name ends in `.json`, else YAML.
    ///
    /// # Errors
    /// As [`from_str`](Config::from_str), with the path; `Io` if it cannot be read.
    pub fn from_file(vfs: &dyn Vfs, path: &Path, start: &Start) -> Result<Config> {
        let bytes = vfs::read_all(vfs, path, DOCUMENT_BYTES_MAX as u64, IoClass::Other)?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| Error::invalid_argument("the file is not UTF-8 text").at_path(path))?;
        Config::from_str(&text, Syntax::of_file(path).unwrap_or(Syntax::Yaml), start)
            .map_err(|error| error.at_path(path))
    }

    /// Reads a text.
    ///
    /// # Errors
    /// `InvalidArgument`: a part is malformed, unknown, out of bounds, or refers to a missing object. `Unsupported`: a
    /// ToplingDB feature cannot be honoured. Both with line, column and key.
    pub fn from_str(text: &str, syntax: Syntax, start: &Start) -> Result<Config> {
        Config::of_node(&Node::read(text, syntax)?, start, &mut Vec::new())
    }

    /// Reads a document's tree. Databases share the `caches`; those that are not there yet are added.
    ///
    /// # Errors
    /// As [`from_str`](Config::from_str).
    fn of_node(root: &Node, start: &Start, caches: &mut Vec<SharedCache>) -> Result<Config> {
        let mut document = Document::new(root, start)?;
        for kind in Kind::ALL {
            document.try_objects(kind)?;
        }
        for set in document.named(DB_OPTIONS)? {
            document.db(set).map(drop).or_else(|error| document.pass_if_unsupported(error))?;
        }
        for set in document.named(FAMILY_OPTIONS)? {
            document.family(set).map(drop).or_else(|error| document.pass_if_unsupported(error))?;
        }
        let mut databases = document.databases(caches)?;
        for database in &mut databases {
            document.warnings.extend(database.settle()?);
        }
        let open = match document.open() {
            Some(node) => Some(position(&databases, &node.text()?).ok_or_else(|| {
                let name = node.text().unwrap_or_default();
                node.error(unknown_name(DATABASES, &name, document.named(DATABASES).unwrap_or_default()))
            })?),
            None => None,
        };
        Ok(Config { databases, open, warnings: without_repetitions(document.warnings) })
    }

    /// Parts of the document without effect here, with line, column and key.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The databases, in the document's order.
    pub fn databases(&self) -> &[ConfiguredDb] {
        &self.databases
    }

    /// The database named `name`. Without a name: the one of section `open`, or the only one.
    ///
    /// # Errors
    /// `InvalidArgument`: no database has the name, or no name is given and there is no default.
    pub fn database(&self, name: Option<&str>) -> Result<&ConfiguredDb> {
        let names = || self.databases.iter().map(|database| database.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = match name {
            Some(name) => position(&self.databases, name),
            None => self.open.or((self.databases.len() == 1).then_some(0)),
        };
        found.and_then(|at| self.databases.get(at)).ok_or_else(|| {
            Error::invalid_argument(match name {
                _ if self.databases.is_empty() => {
                    "the configuration describes no database (section `databases`)".to_owned()
                }
                Some(name) => format!("the configuration has no database `{name}`; it has: {}", names()),
                None => format!("which database? `open` names none; there are: {}", names()),
            })
        })
    }

    /// Opens the database named `name`, or the default one, in the real file system.
    ///
    /// # Errors
    /// As [`database`](Config::database) and [`Database::open`].
    pub fn open(&self, name: Option<&str>) -> Result<Database> {
        self.database(name)?.open()
    }
}

fn position(databases: &[ConfiguredDb], name: &str) -> Option<usize> {
    let name = name
        .strip_prefix('$')
        .map_or(name, |rest| rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(rest));
    databases.iter().position(|database| database.name == name)
}

/// An object is checked by itself and again at each reference.
fn without_repetitions(warnings: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    warnings.into_iter().filter(|warning| seen.insert(warning.clone())).collect()
}
