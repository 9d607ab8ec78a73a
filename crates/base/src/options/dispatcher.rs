//! The parameters of ToplingDB's `DispatcherTable`, which has a writer for each level and a reader for each kind of file.

use crate::error::{Error, Result};
use crate::options::known::{self, check_params};
use crate::options::row::Load;
use crate::options::table_kind::TableClass;
use crate::options::tree::{Content, Node};

pub const NAME: &str = "DispatcherTable";

/// The class under all of its names; ToplingDB's first documents have it with a slip.
pub const NAMES: [&str; 2] = [NAME, "DispatherTable"];

/// The parameters, each value still as it stands in the document: a name, or an object in its place.
pub struct DispatcherParams<'a> {
    pub default: &'a Node,
    /// By class. A file's kind is known from the file, so that a reader has a say only in the options it brings.
    pub readers: &'a [Node],
    pub level_writers: &'a [Node],
}

impl<'a> DispatcherParams<'a> {
    /// `at` is what is to blame where something is missing. Warns in `load` of what has no effect.
    ///
    /// # Errors
    /// `InvalidArgument`, with the place: a parameter that is unknown, missing or of another shape.
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

/// Refuses a reader whose object is of another class than its key says.
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
