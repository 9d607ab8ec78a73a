//! The sections of a configuration: sections of named objects, the naming of objects, and ToplingDB's unsupported
//! sections.

use base::options::known::{Unhonoured, check_params};
use base::options::nearest;
use base::options::row::{Load, Setting};
use base::options::tree::{Content, Node};
use base::{Error, Result};

use crate::config::Start;

/// A section with named objects: `NAME: {class: CLASS, params: {...}}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cache,
    Comparator,
    FilterPolicy,
    MemTableRepFactory,
    MergeOperator,
    SliceTransform,
    SstPartitionerFactory,
    Statistics,
    TableFactory,
    WriteBufferManager,
}

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Cache,
        Kind::Comparator,
        Kind::FilterPolicy,
        Kind::MemTableRepFactory,
        Kind::MergeOperator,
        Kind::SliceTransform,
        Kind::SstPartitionerFactory,
        Kind::Statistics,
        Kind::TableFactory,
        Kind::WriteBufferManager,
    ];

    pub fn section(self) -> &'static str {
        match self {
            Kind::Cache => "Cache",
            Kind::Comparator => "Comparator",
            Kind::FilterPolicy => "FilterPolicy",
            Kind::MemTableRepFactory => "MemTableRepFactory",
            Kind::MergeOperator => "MergeOperator",
            Kind::SliceTransform => "SliceTransform",
            Kind::SstPartitionerFactory => "SstPartitionerFactory",
            Kind::Statistics => "Statistics",
            Kind::TableFactory => "TableFactory",
            Kind::WriteBufferManager => "WriteBufferManager",
        }
    }
}

pub(super) const DB_OPTIONS: &str = "DBOptions";
pub(super) const FAMILY_OPTIONS: &str = "CFOptions";
pub(super) const DATABASES: &str = "databases";
pub(super) const OPEN: &str = "open";

/// ToplingDB's sections without a use here, and why.
const FOREIGN: &[(&str, &str)] = &[
    ("AnyPlugin", "there are no plugins"),
    ("CompactionExecutorFactory", "compactions run in this process"),
    ("CompactionFilter", "filters are supplied in code, in FamilyOptions::compaction_filter"),
    ("CompactionFilterFactory", "filters are supplied in code, in FamilyOptions::compaction_filter"),
    ("ConcurrentTaskLimiter", "max_background_jobs limits background work"),
    ("Env", "the file system is supplied in code, in OpenOptions::vfs"),
    ("EventListener", "listeners are supplied in code, in DbOptions::listeners"),
    ("FileChecksumGenFactory", "checksums of whole files are not written"),
    ("FileSystem", "the file system is supplied in code, in OpenOptions::vfs"),
    ("FlushBlockPolicyFactory", "blocks are cut by block_size"),
    ("Logger", "loggers are supplied in code"),
    ("MemoryAllocator", "the allocator is the program's"),
    ("PersistentCache", "only the block cache is there"),
    ("RateLimiter", "set rate_limiter_bytes_per_sec"),
    ("SstFileManager", "files are deleted at once"),
    ("TablePropertiesCollectorFactory", "tables have RocksDB's properties only"),
    ("TransactionDBMutexFactory", "there are no transactions"),
    ("WBWIFactory", "there are no indexed batches"),
    ("http", "there is no web server"),
    ("permissions", "there is no web server to be permitted anything"),
    ("setenv", "the environment is the program's"),
];

/// A configuration's text as a tree.
pub(super) struct Document<'a> {
    root: &'a Node,
    pub start: &'a Start,
    /// Parts without effect here, in the order in which they are found.
    pub warnings: Vec<String>,
}

impl<'a> Document<'a> {
    /// Checks the names of the sections. Warns of sections without effect.
    pub fn new(root: &'a Node, start: &'a Start) -> Result<Document<'a>> {
        let mut warnings = Vec::new();
        let known = || {
            let own = [DB_OPTIONS, FAMILY_OPTIONS, DATABASES, OPEN];
            Kind::ALL.into_iter().map(Kind::section).chain(own).chain(FOREIGN.iter().map(|(name, _)| *name))
        };
        for section in root.members("sections such as CFOptions and databases")? {
            if let Some((_, reason)) = FOREIGN.iter().find(|(name, _)| *name == section.name()) {
                warnings.push(section.remark(format!("this has no effect here: {reason}")));
            } else if !known().any(|name| name == section.name()) {
                return Err(section.unknown("there is no section", known()));
            }
        }
        Ok(Document { root, start, warnings })
    }

    /// Section `open`: the name of a database.
    pub fn open(&self) -> Option<&'a Node> {
        self.root.member(OPEN)
    }

    /// The objects of a section, in the document's order.
    pub fn named(&self, section: &str) -> Result<&'a [Node]> {
        let what = "one object per name ({NAME: {...}})";
        self.root.member(section).map_or(Ok(&[]), |section| section.members(what))
    }

    /// The object of a value: itself if it is an object, else the one in `section` with its name.
    ///
    /// `${name}` and `$name` always refer; `None` for a bare text without an object in `section`.
    pub fn refer(&self, section: &str, value: &'a Node) -> Result<Option<&'a Node>> {
        if let Content::Map(_) = value.content {
            return Ok(Some(value));
        }
        let text = value.text()?;
        let (name, must) = match text.strip_prefix('$') {
            Some(rest) => (rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(rest), true),
            None => (text.as_str(), false),
        };
        let objects = self.named(section)?;
        match objects.iter().find(|object| object.name() == name) {
            None if must => Err(value.error(unknown_name(section, name, objects))),
            found => Ok(found),
        }
    }

    /// The error for a text neither a name in a section nor valid for the option: the former if a name is near, else
    /// `error`.
    pub fn neither(&self, section: &str, value: &Node, error: Error) -> Error {
        let objects = self.named(section).unwrap_or_default();
        match value.text().ok().filter(|text| nearest(text, objects.iter().map(Node::name)).is_some()) {
            Some(text) => value.error(unknown_name(section, &text, objects)),
            None => error,
        }
    }

    /// As [`refer`](Document::refer), for values valid only as references.
    pub fn require(&self, section: &str, value: &'a Node) -> Result<&'a Node> {
        match self.refer(section, value)? {
            Some(object) => Ok(object),
            None => Err(self.unknown(section, value)),
        }
    }

    /// The error for a value without an object in a section.
    pub fn unknown(&self, section: &str, value: &Node) -> Error {
        match (value.text(), self.named(section)) {
            (Ok(text), Ok(objects)) => value.error(unknown_name(section, &text, objects)),
            (Err(error), _) | (_, Err(error)) => error,
        }
    }
}

/// Says the name is unknown, and suggests a near one.
pub(super) fn unknown_name(section: &str, name: &str, objects: &[Node]) -> String {
    let names: Vec<&str> = objects.iter().map(Node::name).collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("there is no `{name}` in {section}; did you mean `{near}`?"),
        None if names.is_empty() => format!("there is no `{name}`, for there is nothing in {section}"),
        None => format!("there is no `{name}` in {section}; there are: {}", names.join(", ")),
    }
}

/// The parts of an object.
pub(super) struct Object<'a> {
    /// The value of `class`.
    pub class: &'a Node,
    pub class_name: String,
    pub params: &'a [Node],
}

impl<'a> Object<'a> {
    pub fn new(node: &'a Node) -> Result<Object<'a>> {
        let mut class = None;
        let mut params: &[Node] = &[];
        for member in node.members("`class` and `params`")? {
            match member.name() {
                "class" => class = Some(member),
                "params" => params = member.members("parameters")?,
                _ => return Err(member.unknown("there is no key", ["class", "params"].into_iter())),
            }
        }
        let class = class.ok_or_else(|| node.error("it has no `class`"))?;
        Ok(Object { class, class_name: class.text()?, params })
    }

    pub fn param(&self, name: &str) -> Option<&'a Node> {
        self.params.iter().find(|param| param.name() == name)
    }

    /// Refuses parameters in neither `known` nor `unhonoured`; warns of the latter.
    pub fn check_params(&self, known: &[&str], unhonoured: &[Unhonoured], warnings: &mut Vec<String>) -> Result<()> {
        check_params(&self.class_name, self.params, known, unhonoured, warnings)
    }

    /// The error for an unknown class.
    pub fn unknown_class(&self, known: &[&str]) -> Error {
        let name = &self.class_name;
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", known.join(", ")),
        };
        self.class.error(format!("there is no class `{name}`; {hint}"))
    }
}

/// A number; integers may have the suffix K, M, G or T.
pub(super) fn number<T: Setting + Default>(node: &Node) -> Result<T> {
    let mut number = T::default();
    number.set(&node.text()?, &mut Load::default()).map_err(|error| node.locate(error))?;
    Ok(number)
}
