//! Databases described by a document.

use std::fmt;
use std::path::Path;

use base::Result;
use base::options::tree::Syntax;
use vfs::RealVfs;

use crate::api::Shared;
use crate::api::db::Db;
use crate::api::options::Options;
use crate::config::{Config as EngineConfig, Start};
use crate::core::open_options::DEFAULT_FAMILY;
use crate::database::handle::Database;

/// Databases described by a JSON or YAML document, in ToplingDB's form: options, caches and memtables have names and
/// refer to each other, and databases are opened by name. `docs/configuration.md` is its manual.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// use spillway::Config;
///
/// let document = r#"{
///     "DBOptions": { "small": { "create_if_missing": true, "max_open_files": 100 } },
///     "databases": { "events": { "params": { "path": "DIR", "db_options": "small" } } }
/// }"#;
/// # let document = document.replace("DIR", &dir.path().to_string_lossy());
/// let db = Config::from_json(&document)?.open("events")?;
/// db.put("k", "v")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Config(EngineConfig);

impl Config {
    /// Reads a file: JSON if its name ends in `.json`, else YAML.
    ///
    /// # Errors
    /// `InvalidArgument`: a part is malformed, unknown, out of bounds, or refers to what is missing. `Unsupported`: it
    /// cannot be honoured. Both with line, column and key. `Io`: the file cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Config> {
        Config::from_file_over(path, &Options::new())
    }

    /// As [`from_file`](Self::from_file), over options: those of the document count, and objects that it only names
    /// (comparators, merge operators, listeners) are taken from `options`.
    ///
    /// # Errors
    /// As of [`from_file`](Self::from_file).
    pub fn from_file_over(path: impl AsRef<Path>, options: &Options) -> Result<Config> {
        EngineConfig::from_file(&*RealVfs::new(), path.as_ref(), &start(options)?).map(Config)
    }

    /// Reads a JSON text.
    ///
    /// # Errors
    /// As of [`from_file`](Self::from_file).
    pub fn from_json(text: &str) -> Result<Config> {
        EngineConfig::from_str(text, Syntax::Json, &Start::default()).map(Config)
    }

    /// Reads a YAML text.
    ///
    /// # Errors
    /// As of [`from_file`](Self::from_file).
    pub fn from_yaml(text: &str) -> Result<Config> {
        EngineConfig::from_str(text, Syntax::Yaml, &Start::default()).map(Config)
    }

    /// Parts of the document without effect here, with line, column and key.
    pub fn warnings(&self) -> &[String] {
        self.0.warnings()
    }

    /// The names of the databases, in the document's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.databases().iter().map(|database| database.name.as_str())
    }

    /// Opens a database. Databases of one document share caches by their names.
    ///
    /// # Errors
    /// `InvalidArgument`: the document has no such database. Else as of [`Db::open_with`].
    pub fn open(&self, name: &str) -> Result<Db> {
        self.open_by(Some(name))
    }

    /// Opens the database that the document's section `open` names, or the only one.
    ///
    /// # Errors
    /// As of [`open`](Self::open). `InvalidArgument`: there are several, and none is named.
    pub fn open_default(&self) -> Result<Db> {
        self.open_by(None)
    }

    fn open_by(&self, name: Option<&str>) -> Result<Db> {
        let described = self.0.database(name)?;
        let database = Database::open(&described.path, &described.open_options(RealVfs::new()))?;
        Ok(Db::of(Shared::new(database, Default::default())?))
    }
}

/// The options that a document is read over.
fn start(options: &Options) -> Result<Start> {
    let mut open = options.resolve_given()?;
    let family = open.family_or_others(DEFAULT_FAMILY);
    open.db.create_if_missing = false; // the document says
    Ok(Start { db: open.db, family })
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("databases", &self.names().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
