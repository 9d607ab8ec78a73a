//! Parameters of ToplingDB's `DispatcherTable`: a writer per level and a reader per kind of file.

use crate::error::{Error, Result};
use crate::options::known::{self, check_params};
use crate::options::row::Load;
use crate::options::table_kind::TableClass;
use crate::options::tree::{Content, Node};

/// The name as a table format.
pub const NAME: &str = "DispatcherTable";

/// All names of the class; ToplingDB's first documents misspell it.
pub const NAMES: [&str; 2] = [NAME, "DispatherTable"];

/// The parameters as in the document: each value is a name or an object.
pub struct DispatcherParams<'a> {
    /// The format of levels without one.
    pub default: &'a Node,
    /// By class. The file itself tells its kind; a reader only supplies options.
    pub readers: &'a [Node],
    /// The formats from level 0 on.
    pub level_writers: &'a [Node],
}

impl<'a> DispatcherParams<'a> {
    /// Errors about missing parameters point at `at`. Parameters without effect become warnings in `load`.
    ///
    /// # Errors
    /// `InvalidArgument`, with the place: an unknown, missing or malformed parameter.
    pub fn of(at: &Node, params: &'a [Node], load: &mut Load) -> Result<DispatcherParams<'a>> {
        check_params(NAME, params, &["default", "readers", "level_writers"], known::DISPATCHER, &mut load.warnings)?;
        let param = |name: &str| params.iter().find(|param| param.name() == name && !param.is_null());
        let default = param("default").ok_or_else(|| at.error(format!("class `{NAME}` needs `default`")))?;
        let readers = param("readers").map_or(Ok(&[][..]), |readers| readers.members("one reader for each class"))?;
        let level_writers = match param("level_writers") {
            None => &[],
            Some(Node { content: Content::List(writers), .. }) if !writers.is_empty() => writers.as_slice(),
            Some(other) => return Err(other.error("this should be a list with one writer for each level")),
        };
        Ok(DispatcherParams { default, readers, level_writers })
    }
}

/// Refuses a reader if its object's class differs from its key.
///
/// # Errors
/// `InvalidArgument`, with the place.
pub fn check_reader(reader: &Node, class: &TableClass) -> Result<()> {
    if reader.name() == class.name() {
        return Ok(());
    }
    let what = format!("files of `{}` are not read by an object of class `{}`", reader.name(), class.name());
    Err(reader.locate(Error::invalid_argument(what)))
}
