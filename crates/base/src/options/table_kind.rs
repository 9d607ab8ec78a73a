//! Kinds of tables under ToplingDB's names, with their writers' parameters.

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::features;
use crate::options::dispatcher;
use crate::options::document::apply_member;
use crate::options::known::{self, check_params};
use crate::options::row::{ANY, Load, OptionGroup, option_table, within};
use crate::options::string;
use crate::options::suggest::nearest;
use crate::options::tree::Node;

/// A kind of table, with its writer's parameters.
#[derive(Clone, Debug, Default)]
pub enum TableKind {
    /// RocksDB's, as the family's `block_based_table_factory` says.
    #[default]
    BlockBased,
    /// Entries back to back and an index to all of them, for the upper levels.
    SingleFast,
    /// Values compressed one by one against a dictionary, for the lower levels.
    Zip(ZipTableOptions),
    /// Block-based tables whose entries may be added in any order.
    AutoSort(AutoSortOptions),
}

option_table! {
    /// Options of tables whose values are compressed one by one.
    struct ZipTableOptions = "ToplingZipTable", unhonoured: known::ZIP_TABLE;

    /// Levels above this one are written by the dispatcher's default.
    builder_min_level as "builderMinLevel": usize = 0, within(0.0, 63.0), Spillway, Fixed;
    /// The directory of temporary files; empty for that of the table.
    local_temp_dir as "localTempDir": String = String::new(), ANY, Spillway, Fixed;
    /// Bytes of entries that are kept in memory until all are known; more than that goes to a temporary file.
    memory_bytes: usize = 64 << 20, within(65536.0, 1099511627776.0), Spillway, Fixed;
}

option_table! {
    /// Options of tables that are sorted when they are finished.
    struct AutoSortOptions = "VecAutoSortTable", unhonoured: known::AUTO_SORT_TABLE;

    /// Bytes of memory to sort in; what has no room there goes to temporary files beside the table.
    memory_bytes: usize = 256 << 20, within(65536.0, 1099511627776.0), Spillway, Fixed;
}

/// The remedy for parameters of `BlockBasedTable` beside its name.
const ELSEWHERE: &str = "the options of block-based tables stand in block_based_table_factory";

/// Formats of ToplingDB and RocksDB neither read nor written here.
const REFUSED: [(&str, &str); 7] = [
    ("AdaptiveTable", "of the formats it mixes only BlockBasedTable is supported; use that"),
    ("CSPPAutoSortTable", "use VecAutoSortTable"),
    ("CuckooTable", "cuckoo tables are neither read nor written; use BlockBasedTable"),
    ("PlainTable", "plain tables are neither read nor written; use SingleFastTable"),
    ("SimpleTopTable", "it is neither read nor written; use SingleFastTable"),
    ("TerarkZipTable", "it is neither read nor written; use ToplingZipTable"),
    ("ToplingFastTable", "it is neither read nor written; use SingleFastTable"),
];

impl TableKind {
    /// The names of the writable kinds.
    pub const NAMES: [&str; 4] = ["BlockBasedTable", "SingleFastTable", "ToplingZipTable", "VecAutoSortTable"];

    /// The format's name.
    pub fn name(&self) -> &'static str {
        match self {
            TableKind::BlockBased => "BlockBasedTable",
            TableKind::SingleFast => "SingleFastTable",
            TableKind::Zip(_) => "ToplingZipTable",
            TableKind::AutoSort(_) => "VecAutoSortTable",
        }
    }

    /// Whether a class of this name is [`BlockBased`](TableKind::BlockBased).
    pub(super) fn is_block_based(name: &str) -> bool {
        ["BlockBasedTable", "BlockBased"].contains(&name)
    }

    /// True if both kinds have one file format: a file of one kind can replace a file of the other.
    pub fn same_format(&self, other: &TableKind) -> bool {
        self.format() == other.format()
    }

    /// The name of the kind a reader detects.
    fn format(&self) -> &'static str {
        match self {
            TableKind::AutoSort(_) => TableKind::BlockBased.name(),
            other => other.name(),
        }
    }

    pub(super) fn writes_at(&self, level: usize) -> bool {
        match self {
            TableKind::Zip(options) => level >= options.builder_min_level,
            TableKind::BlockBased | TableKind::SingleFast | TableKind::AutoSort(_) => true,
        }
    }

    /// Reads the members of an option string: `{id=NAME;a=1;}`.
    pub(super) fn of_members(name: &str, members: &[(&str, &str)], load: &mut Load) -> Result<TableKind> {
        let mut kind = TableClass::by_name(name)?.written()?;
        for (member, text) in members.iter().filter(|(member, _)| *member != "id") {
            match kind.options_mut() {
                Some(options) => string::set(options, member, text, load)?,
                None => return Err(Error::invalid_argument(format!("{name} has no parameter `{member}`"))),
            }
        }
        Ok(kind)
    }

    /// The JSON form: a name, or an object if a parameter differs from its default.
    pub(super) fn to_value(&self) -> Value {
        let params = self.params();
        if params.is_empty() { json!(self.name()) } else { json!({"class": self.name(), "params": params}) }
    }

    /// Parameters with a non-default value.
    pub(super) fn params(&self) -> Map<String, Value> {
        match self {
            TableKind::Zip(options) => differing(options),
            TableKind::AutoSort(options) => differing(options),
            TableKind::BlockBased | TableKind::SingleFast => Map::new(),
        }
    }

    fn options_mut(&mut self) -> Option<&mut dyn OptionGroup> {
        match self {
            TableKind::Zip(options) => Some(options),
            TableKind::AutoSort(options) => Some(options),
            TableKind::BlockBased | TableKind::SingleFast => None,
        }
    }

    /// Checks every parameter's bounds, and that this build has the kind.
    pub(super) fn validate(&self) -> Result<()> {
        if *self != TableKind::BlockBased {
            features::check_topling(self.name())?;
        }
        match self {
            TableKind::Zip(options) => string::check_bounds(options),
            TableKind::AutoSort(options) => string::check_bounds(options),
            TableKind::BlockBased | TableKind::SingleFast => Ok(()),
        }
        .map_err(|error| error.context(self.name()))
    }
}

fn differing<G: OptionGroup + Default>(options: &G) -> Map<String, Value> {
    let defaults = G::default();
    let pairs = options.settings().into_iter().zip(defaults.settings());
    let changed = pairs.filter(|((_, setting), (_, default))| setting.text() != default.text());
    changed.map(|((row, setting), _)| (row.name.to_owned(), setting.value())).collect()
}

impl PartialEq for TableKind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.params() == other.params()
    }
}

/// A class of tables: writable, or only readable.
#[derive(Clone, Debug, PartialEq)]
pub enum TableClass {
    /// A format that can be written.
    Written(TableKind),
    /// A memtable converted to a table. Only flushes make such tables, from memtables with `convert_to_sst`.
    Converted,
}

impl TableClass {
    /// The name of tables that were memtables.
    pub const CONVERTED: &str = "CSPPMemTabTable";

    /// The format's name.
    pub fn name(&self) -> &'static str {
        match self {
            TableClass::Written(kind) => kind.name(),
            TableClass::Converted => Self::CONVERTED,
        }
    }

    /// The kind to write.
    ///
    /// # Errors
    /// `InvalidArgument`: the class is only readable.
    pub fn written(self) -> Result<TableKind> {
        match self {
            TableClass::Written(kind) => Ok(kind),
            TableClass::Converted => Err(Error::invalid_argument(format!(
                "`{}` is for readers: flushes make such tables of memtables with convert_to_sst, and nothing else does",
                Self::CONVERTED
            ))),
        }
    }

    /// The class called `name`, with its parameters; `at` is the name's position. Block-based tables take no parameters
    /// here. Parameters without effect become warnings in `load`.
    ///
    /// # Errors
    /// `InvalidArgument`, with the place: an unknown class or parameter, a bad value. `Unsupported`: an unsupported
    /// format.
    pub fn of(at: &Node, name: &str, params: &[Node], load: &mut Load) -> Result<TableClass> {
        let mut class = TableClass::by_name(name).map_err(|error| at.locate(error))?;
        let unhonoured = match &class {
            TableClass::Converted => known::CONVERTED_TABLE,
            TableClass::Written(TableKind::SingleFast) => known::FAST_TABLE,
            TableClass::Written(TableKind::Zip(options)) => options.unhonoured(),
            TableClass::Written(TableKind::AutoSort(options)) => options.unhonoured(),
            TableClass::Written(TableKind::BlockBased) => match params.first() {
                None => return Ok(class),
                Some(param) => return Err(param.locate_key(Error::invalid_argument(ELSEWHERE))),
            },
        };
        let TableClass::Written(kind) = &mut class else {
            check_params(name, params, &[], unhonoured, &mut load.warnings)?;
            return Ok(class);
        };
        let own: Vec<&str> = match kind.options_mut() {
            Some(options) => options.settings().into_iter().map(|(row, _)| row.name).collect(),
            None => Vec::new(),
        };
        check_params(name, params, &own, unhonoured, &mut load.warnings)?;
        if let Some(options) = kind.options_mut() {
            let own_params = params.iter().filter(|param| own.contains(&param.name()) && !param.is_null());
            own_params.into_iter().try_for_each(|param| apply_member(options, param, load))?;
        }
        Ok(class)
    }

    fn by_name(name: &str) -> Result<TableClass> {
        if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return Err(Error::unsupported(format!("class `{name}`: {reason}")));
        }
        let kind = match name {
            _ if TableKind::is_block_based(name) => TableKind::BlockBased,
            "SingleFastTable" => TableKind::SingleFast,
            "ToplingZipTable" => TableKind::Zip(ZipTableOptions::default()),
            "VecAutoSortTable" => TableKind::AutoSort(AutoSortOptions::default()),
            Self::CONVERTED => return Ok(TableClass::Converted),
            _ => {
                let known = TableKind::NAMES.into_iter().chain([Self::CONVERTED, dispatcher::NAME]);
                let hint = match nearest(name, known.clone()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are: {}", known.collect::<Vec<_>>().join(", ")),
                };
                return Err(Error::invalid_argument(format!("there is no class `{name}`; {hint}")));
            }
        };
        Ok(TableClass::Written(kind))
    }
}

/// The position of an object's class, its name and its parameters: `{class: NAME, params: {...}}` as in ToplingDB, or
/// `{NAME: {...}}`. `what` names the object in errors.
///
/// # Errors
/// `InvalidArgument`, with the place: a malformed object.
pub(super) fn class_and_params<'a>(node: &'a Node, what: &str) -> Result<(&'a Node, String, &'a [Node])> {
    let members = node.members("`class` and `params`")?;
    let (at, name, params) = match (node.member("class"), members) {
        (Some(class), _) => {
            if let Some(other) = members.iter().find(|member| !["class", "params"].contains(&member.name())) {
                return Err(other.unknown("there is no key", ["class", "params"].into_iter()));
            }
            (class, class.text()?, node.member("params"))
        }
        (None, [only]) => (only, only.name().to_owned(), Some(only)),
        (None, _) => return Err(node.error(format!("a {what} is written as {{class: NAME, params: {{...}}}}"))),
    };
    Ok((at, name, params.map_or(Ok(&[][..]), |params| params.members("parameters"))?))
}
